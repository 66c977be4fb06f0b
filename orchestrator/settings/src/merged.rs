//! The file's values, overridden by those of the environment. Values are not validated here.

use std::ffi::OsString;

use super::problem::{Origin, Problem, nearest};
use super::raw::{Located, Raw};
use super::section::{Initial, Key, Schema, Section};
use super::value::Value;

const PREFIX: &str = "OS_UPGRADE_";

/// Every key that is set, by file or environment.
#[derive(Debug)]
pub(super) struct Merged {
    schema: Schema,
    values: Vec<(&'static Key, Located<Raw>)>,
}

impl Merged {
    /// No key is set.
    pub(super) fn empty(schema: Schema) -> Self {
        Self { schema, values: Vec::new() }
    }

    /// Overrides the file's `values` with the variables of `environment`. Variables that are no key are added to `problems`.
    pub(super) fn new(
        schema: Schema,
        values: Vec<(&'static Key, Located<Raw>)>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut merged = Self { schema, values };
        for (name, value) in environment {
            let Some(name) = name.to_str().filter(|name| is_ours(name)) else {
                continue;
            };
            let origin = Origin::Variable(name.to_owned());
            match (schema.keys().find(|key| key.variable() == name), value.into_string()) {
                (None, _) => problems.push(Problem { origin, message: unknown_variable(schema, name) }),
                (Some(_), Err(_)) => problems.push(Problem { origin, message: "not UTF-8".to_owned() }),
                // Compose files and unit files use empty variables for keys that are not set.
                (Some(_), Ok(value)) if value.is_empty() => {}
                (Some(key), Ok(value)) => merged.set(key, Located { value: Raw::Variable(value), origin }),
            }
        }
        merged
    }

    fn set(&mut self, key: &'static Key, raw: Located<Raw>) {
        // A constant has no one address, so keys are told apart by their names.
        self.values.retain(|(given, _)| (given.section, given.name) != (key.section, key.name));
        self.values.push((key, raw));
    }

    /// Reads the key `name` of `section`, whose full name is `key`, or takes its default if it is not set.
    pub(super) fn read<T: Value + PartialEq>(
        &self,
        section: &'static str,
        name: &'static str,
        key: &'static str,
        problems: &mut Vec<Problem>,
    ) -> Setting<'_, T> {
        let mut values = self.values.iter();
        let given = values.find(|(key, _)| key.section == section && key.name == name).map(|(_, raw)| raw);
        let default = self.default(section, name);
        let Some(raw) = given else { return Setting { key, given, value: default, is_changed: false } };
        let value = T::read(key, raw, problems);
        let is_changed = value.is_some() && value != default;
        Setting { key, given, value, is_changed }
    }

    fn default<T: Value>(&self, section: &str, name: &str) -> Option<T> {
        match self.schema.keys().find(|key| key.section == section && key.name == name)?.initial {
            Initial::Is(text) => T::parse(text).ok(),
            Initial::Unset(_) => T::unset(),
        }
    }
}

/// A key as it was read.
#[derive(Debug)]
pub(super) struct Setting<'a, T> {
    /// Its name with that of its section.
    pub(super) key: &'static str,
    /// What it is set to; `None` if it is not set.
    pub(super) given: Option<&'a Located<Raw>>,
    /// Its value, which is the default of a key that is not set; `None` if it is bad.
    pub(super) value: Option<T>,
    /// Whether it has another value than its default. A bad value is none.
    pub(super) is_changed: bool,
}

impl<T> Setting<'_, T> {
    /// A problem of this key, where it is set.
    pub(super) fn problem(&self, message: &str) -> Option<Problem> {
        Some(self.given?.problem(format!("{}: {message}", self.key)))
    }

    /// The problem that this key is set without `other`.
    pub(super) fn needs<U>(&self, other: &Setting<'_, U>, why: &str) -> Option<Problem> {
        let problem = || self.problem(&format!("needs {}, {why}", other.key));
        if other.given.is_none() { problem() } else { None }
    }
}

/// Whether a variable is meant as a key. Others, such as `OS_UPGRADE_HOST`, belong to workers.
pub(super) fn is_ours(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|rest| rest.contains("__"))
}

fn unknown_variable(schema: Schema, name: &str) -> String {
    let variables: Vec<String> = schema.keys().map(Key::variable).collect();
    if let Some(near) = nearest(name, variables.iter().map(String::as_str)) {
        return format!("no such key; did you mean {near}?");
    }
    let lower = name.trim_start_matches(PREFIX).to_lowercase().replace('_', "-");
    let (section, key) = lower.split_once("--").unwrap_or((&lower, ""));
    let named = |candidate: &&Section| candidate.name.replace('.', "-") == section;
    match schema.0.iter().find(named) {
        Some(section) => schema.unknown_key(Some(section), key),
        None => schema.unknown_section(section),
    }
}
