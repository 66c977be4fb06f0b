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

    /// The value of a key, if it is set.
    pub(super) fn given(&self, section: &str, name: &str) -> Option<&Located<Raw>> {
        let mut values = self.values.iter();
        values.find(|(key, _)| key.section == section && key.name == name).map(|(_, raw)| raw)
    }

    /// The value of a key, or its default if it is not set; `None` if the value is bad.
    pub(super) fn read<T: Value>(&self, section: &str, name: &str, problems: &mut Vec<Problem>) -> Option<T> {
        match self.given(section, name) {
            Some(raw) => T::read(&format!("{section}.{name}"), raw, problems),
            None => self.default(section, name),
        }
    }

    /// Whether a key has another value than its default. A bad value is none.
    pub(super) fn is_changed<T: Value + PartialEq>(&self, section: &str, name: &str) -> bool {
        let value = self.read::<T>(section, name, &mut Vec::new());
        value.is_some() && value != self.default(section, name)
    }

    fn default<T: Value>(&self, section: &str, name: &str) -> Option<T> {
        match self.schema.keys().find(|key| key.section == section && key.name == name)?.initial {
            Initial::Is(text) => T::parse(text).ok(),
            Initial::Unset(_) => T::unset(),
        }
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
