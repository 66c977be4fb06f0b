//! How keys are described: their sections, types, defaults and help.

use std::fmt::Write as _;

use super::problem::nearest;
use super::value::Shape;

/// One `[section]`, or `[section.part]` of one.
#[derive(Debug)]
pub struct Section {
    /// The name, as in the file. The name of a part begins with that of its section: `api.tls`.
    pub name: &'static str,
    /// The help, line by line.
    pub help: &'static [&'static str],
    /// The keys; one that is a table comes last, as TOML requires.
    pub keys: &'static [Key],
}

/// One key.
#[derive(Debug)]
pub struct Key {
    pub section: &'static str,
    /// The name, as in the file.
    pub name: &'static str,
    /// The help, line by line.
    pub help: &'static [&'static str],
    /// The kind of TOML value it takes.
    pub shape: Shape,
    /// The default.
    pub initial: Initial,
}

/// The default of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Initial {
    /// This value, as written in an environment variable.
    Is(&'static str),
    /// No value; this is an example of one.
    Unset(&'static str),
}

impl Section {
    /// Its key `name`.
    pub(super) fn key(&'static self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// The section with every key and its default, as in a configuration file.
    pub(super) fn as_toml(&self) -> String {
        let mut text = format!("\n{}[{}]\n", comment(self.help), self.name);
        for key in self.keys {
            text += &key.as_toml();
        }
        text
    }
}

impl Key {
    /// The environment variable that overrides it.
    pub fn variable(&self) -> String {
        let upper = |name: &str| name.to_uppercase().replace(['-', '.'], "_");
        format!("OS_UPGRADE_{}__{}", upper(self.section), upper(self.name))
    }

    pub(super) fn as_toml(&self) -> String {
        let mut text = comment(self.help);
        let (value, out) = match self.initial {
            Initial::Is(value) => (value, ""),
            Initial::Unset(value) => (value, "# "),
        };
        let line = match self.shape {
            Shape::String => format!("{out}{} = {value:?}", self.name),
            Shape::Integer | Shape::Boolean => format!("{out}{} = {value}", self.name),
            Shape::Table => {
                let entry = |entry: &str| {
                    let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
                    let is_number = value.parse::<u32>().is_ok();
                    let value = if is_number { value.to_owned() } else { format!("{value:?}") };
                    format!("\n{out}{name} = {value}")
                };
                let entries: String = value.split(',').map(entry).collect();
                text.insert(0, '\n');
                format!("{out}[{}.{}]{entries}", self.section, self.name)
            }
        };
        let _ = writeln!(text, "{line}");
        text
    }
}

fn comment(help: &[&str]) -> String {
    help.iter().flat_map(|line| ["#", line, "\n"]).collect()
}

/// Every section with its keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Schema(pub(super) &'static [Section]);

impl Schema {
    /// Every key.
    pub(super) fn keys(self) -> impl Iterator<Item = &'static Key> {
        self.0.iter().flat_map(|section| section.keys)
    }

    /// The section `name`, or the part `name` of `whole`.
    pub(super) fn section(self, whole: Option<&'static Section>, name: &str) -> Option<&'static Section> {
        match whole {
            None => self.0.iter().find(|section| section.name == name && !name.contains('.')),
            Some(whole) => self.parts(whole).find(|part| part.name[whole.name.len() + 1..] == *name),
        }
    }

    /// The parts of `whole` that are sections of their own.
    pub(super) fn parts(self, whole: &'static Section) -> impl Iterator<Item = &'static Section> {
        let is_part = |name: &str| name.strip_prefix(whole.name).is_some_and(|rest| rest.starts_with('.'));
        self.0.iter().filter(move |section| is_part(section.name))
    }

    /// The message for a section that does not exist.
    pub(super) fn unknown_section(self, name: &str) -> String {
        let names = self.0.iter().map(|section| section.name);
        let hint = match nearest(name, names.clone()) {
            Some(near) => format!("did you mean [{near}]?"),
            None => {
                format!("there are {}", names.map(|name| format!("[{name}]")).collect::<Vec<_>>().join(", "))
            }
        };
        format!("unknown section [{name}]; {hint}")
    }

    /// The message for a key that does not exist in `section`, or that is outside any section.
    pub(super) fn unknown_key(self, section: Option<&'static Section>, name: &str) -> String {
        let place = section
            .map_or_else(|| "outside any section".to_owned(), |section| format!("in [{}]", section.name));
        let keys = || section.into_iter().flat_map(|section| section.keys).map(|key| key.name);
        let elsewhere = self.keys().find(|key| key.name == name);
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
}
