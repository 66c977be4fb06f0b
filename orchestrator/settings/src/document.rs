//! The content of a configuration file: known keys with their values and positions. Values are not validated here.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Origin, Problem};
use super::raw::{Located, Raw};
use super::schema::SCHEMA;
use super::section::{Key, Section};

/// The known keys of a file.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) values: Vec<(&'static Key, Located<Raw>)>,
}

impl Document {
    /// Parses `text`; syntax errors and unknown keys are added to `problems`.
    pub(super) fn parse(text: &str, problems: &mut Vec<Problem>) -> Self {
        let (root, errors) = DeTable::parse_recoverable(text);
        let mut reader = Reader { text, problems: Vec::new(), document: Self::default() };
        for error in errors {
            let at = error.span().map_or(text.len(), |span| span.start);
            reader.report(at, error.message().replace('\n', "; "));
        }
        problems.append(&mut reader.problems);
        reader.root(root.get_ref());
        // What the parser recovered from a broken line is guesswork: its own error is enough.
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
            match (SCHEMA.section(None, name.get_ref()), value.get_ref()) {
                (Some(section), value) => self.table(at, section, value),
                // A quoted name, which contains the dot.
                (None, DeValue::Table(_)) if name.get_ref().contains('.') => {
                    self.report(at, SCHEMA.unknown_section(&format!("{:?}", name.get_ref())));
                }
                (None, DeValue::Table(_)) => self.report(at, SCHEMA.unknown_section(name.get_ref())),
                (None, _) => self.report(at, SCHEMA.unknown_key(None, name.get_ref())),
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
            match (whole.key(name.get_ref()), SCHEMA.section(Some(whole), name.get_ref()), value.get_ref()) {
                (Some(key), _, _) => {
                    let raw = self.raw(value);
                    self.document.values.push((key, raw));
                }
                (None, Some(part), value) => self.table(at, part, value),
                (None, None, DeValue::Table(_)) if SCHEMA.parts(whole).next().is_some() => {
                    self.report(at, SCHEMA.unknown_section(&format!("{}.{}", whole.name, name.get_ref())));
                }
                (None, None, _) => self.report(at, SCHEMA.unknown_key(Some(whole), name.get_ref())),
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
