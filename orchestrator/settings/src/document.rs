//! What a configuration file says: known keys with their values and places. Values are not judged here.

use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{Key, SECTIONS, Section};
use super::problem::{Origin, Problem, nearest};
use super::value::redacted;

/// A value before its type is known to be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Raw {
    /// The text of an environment variable, which can stand for any scalar.
    Variable(String),
    /// A TOML string.
    String(String),
    /// A TOML integer, in decimal.
    Integer(String),
    /// `true` or `false`.
    Boolean(String),
    /// A TOML table.
    Table(Vec<(Located<String>, Located<Raw>)>),
    /// A TOML value of a type that no key has.
    Other(&'static str),
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(text) | Self::String(text) => write!(f, "{:?}", redacted(text)),
            Self::Integer(text) | Self::Boolean(text) => f.write_str(text),
            Self::Table(_) => f.write_str("a table"),
            Self::Other(kind) => write!(f, "a value of type {kind}"),
        }
    }
}

/// Something with the place it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) origin: Origin,
}

impl<T> Located<T> {
    /// A problem at this place.
    pub(super) fn problem(&self, message: String) -> Problem {
        Problem { origin: self.origin.clone(), message }
    }
}

/// The known keys of a file.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) values: Vec<(&'static Key, Located<Raw>)>,
}

impl Document {
    /// Reads `text`, adding what it does not understand to `problems`.
    pub(super) fn parse(text: &str, problems: &mut Vec<Problem>) -> Self {
        let (root, errors) = DeTable::parse_recoverable(text);
        let mut reader = Reader { text, problems: Vec::new(), document: Self::default() };
        for error in errors {
            let at = error.span().map_or(text.len(), |span| span.start);
            reader.report(at, error.message().replace('\n', "; "));
        }
        problems.append(&mut reader.problems);
        reader.root(root.get_ref());
        // What the parser made of a broken line is guesswork; its own error is enough.
        let broken: Vec<usize> = problems.iter().filter_map(line).collect();
        reader.problems.retain(|problem| line(problem).is_none_or(|line| !broken.contains(&line)));
        problems.append(&mut reader.problems);
        let broken_value =
            |raw: &Located<Raw>| matches!(raw.origin, Origin::File { line, .. } if broken.contains(&line));
        reader.document.values.retain(|(_, raw)| !broken_value(raw));
        reader.document
    }
}

fn line(problem: &Problem) -> Option<usize> {
    match problem.origin {
        Origin::File { line, .. } => Some(line),
        Origin::Variable(_) => None,
    }
}

struct Reader<'a> {
    text: &'a str,
    problems: Vec<Problem>,
    document: Document,
}

impl Reader<'_> {
    fn origin(&self, at: usize) -> Origin {
        let before = self.text.get(..at).unwrap_or(self.text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Origin::File { line: before.matches('\n').count() + 1, column: before[start..].chars().count() + 1 }
    }

    fn report(&mut self, at: usize, message: String) {
        let origin = self.origin(at);
        self.problems.push(Problem { origin, message });
    }

    fn root(&mut self, root: &DeTable<'_>) {
        for (name, value) in root {
            let at = name.span().start;
            match (section(None, name.get_ref()), value.get_ref()) {
                (Some(section), value) => self.table(at, section, value),
                // A name in quotes, of which the dot is a part.
                (None, DeValue::Table(_)) if name.get_ref().contains('.') => {
                    self.report(at, unknown_section(&format!("{:?}", name.get_ref())));
                }
                (None, DeValue::Table(_)) => self.report(at, unknown_section(name.get_ref())),
                (None, _) => self.report(at, unknown_key(None, name.get_ref())),
            }
        }
    }

    fn table(&mut self, at: usize, section: &'static Section, value: &DeValue<'_>) {
        if let DeValue::Table(table) = value {
            self.section(section, table);
        } else {
            self.report(at, format!("{0} is a section: write [{0}]", section.name));
        }
    }

    fn section(&mut self, whole: &'static Section, table: &DeTable<'_>) {
        for (name, value) in table {
            let at = name.span().start;
            match (key(whole, name.get_ref()), section(Some(whole), name.get_ref()), value.get_ref()) {
                (Some(key), _, _) => {
                    let raw = self.raw(value);
                    self.document.values.push((key, raw));
                }
                (None, Some(part), value) => self.table(at, part, value),
                (None, None, DeValue::Table(_)) if parts(whole).next().is_some() => {
                    self.report(at, unknown_section(&format!("{}.{}", whole.name, name.get_ref())));
                }
                (None, None, _) => self.report(at, unknown_key(Some(whole), name.get_ref())),
            }
        }
    }

    fn raw(&self, value: &Spanned<DeValue<'_>>) -> Located<Raw> {
        let origin = self.origin(value.span().start);
        let value = match value.get_ref() {
            DeValue::String(text) => Raw::String(text.to_string()),
            DeValue::Integer(number) => {
                let number = i128::from_str_radix(number.as_str(), number.radix());
                Raw::Integer(
                    number.map_or_else(|_| "a number out of range".to_owned(), |number| number.to_string()),
                )
            }
            DeValue::Boolean(flag) => Raw::Boolean(flag.to_string()),
            DeValue::Table(table) => {
                Raw::Table(table.iter().map(|(key, value)| self.entry(key, value)).collect())
            }
            other @ (DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Array(_)) => {
                Raw::Other(other.type_str())
            }
        };
        Located { value, origin }
    }

    fn entry(
        &self,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> (Located<String>, Located<Raw>) {
        let key = Located { value: key.get_ref().to_string(), origin: self.origin(key.span().start) };
        (key, self.raw(value))
    }
}

/// The section `name`, or the part `name` of `whole`.
fn section(whole: Option<&'static Section>, name: &str) -> Option<&'static Section> {
    match whole {
        None => SECTIONS.iter().find(|section| section.name == name && !name.contains('.')),
        Some(whole) => parts(whole).find(|part| part.name[whole.name.len() + 1..] == *name),
    }
}

fn parts(whole: &'static Section) -> impl Iterator<Item = &'static Section> {
    let is_part = |name: &str| name.strip_prefix(whole.name).is_some_and(|rest| rest.starts_with('.'));
    SECTIONS.iter().filter(move |section| is_part(section.name))
}

fn key(section: &'static Section, name: &str) -> Option<&'static Key> {
    section.keys.iter().find(|key| key.name == name)
}

/// The message for a section that does not exist.
pub(super) fn unknown_section(name: &str) -> String {
    let names = SECTIONS.iter().map(|section| section.name);
    let hint = match nearest(name, names.clone()) {
        Some(near) => format!("did you mean [{near}]?"),
        None => format!("there are {}", names.map(|name| format!("[{name}]")).collect::<Vec<_>>().join(", ")),
    };
    format!("unknown section [{name}]; {hint}")
}

/// The message for a key that does not exist in `section`, or for one outside any.
pub(super) fn unknown_key(section: Option<&'static Section>, name: &str) -> String {
    let place =
        section.map_or_else(|| "outside any section".to_owned(), |section| format!("in [{}]", section.name));
    let keys = || section.into_iter().flat_map(|section| section.keys).map(|key| key.name);
    let elsewhere = SECTIONS.iter().flat_map(|section| section.keys).find(|key| key.name == name);
    let hint = match (nearest(name, keys()), elsewhere) {
        (Some(near), _) => format!("did you mean \"{near}\"?"),
        (None, Some(key)) => format!("did you mean \"{name}\" in [{}]?", key.section),
        (None, None) if section.is_some() => {
            format!("its keys are {}", keys().collect::<Vec<_>>().join(", "))
        }
        (None, None) => "every key is in a section".to_owned(),
    };
    format!("unknown key \"{name}\" {place}; {hint}")
}
