//! Unit files: their text, and the options that systemd and fleet find in it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::unit::hash::UnitHash;
use crate::unit::option::UnitOption;
use crate::unit::parse::{Assignment, parse};
use crate::unit::problem::{UNIT_BYTES_MAX, UnitFileError, UnitFileProblem};
use crate::unit::value::{is_skipped, trim, written};

/// A unit file. Two are equal if their texts are. Cheap to clone.
#[derive(Clone)]
pub struct UnitFile(Arc<Content>);

struct Content {
    text: String,
    options: Vec<UnitOption>,
    /// For each option how it was read.
    readings: Vec<Reading>,
}

struct Reading {
    /// The line on which the option begins.
    line: u32,
    /// Its value as one line, if that differs from the value as it is written.
    joined: Option<String>,
}

/// An option as systemd understands it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Assigned<'a> {
    /// The line of the file on which it begins.
    pub(crate) line: u32,
    /// What is assigned to.
    pub(crate) name: &'a str,
    /// The value as one line.
    pub(crate) value: &'a str,
}

impl UnitFile {
    /// Reads a unit file as systemd does: sections, comments that begin with `#` or `;`, values that continue after a backslash at the
    /// end of a line, past comments and blank lines. Empty values are options too. A byte order mark and carriage returns at the ends of
    /// lines are passed over.
    ///
    /// # Errors
    /// See [`UnitFileProblem`]. systemd passes over lines that it does not understand; here they are errors.
    pub fn parse(text: &str) -> Result<Self, UnitFileError> {
        if let Some(problem) = too_long(text) {
            return Err(problem);
        }
        Ok(Self::new(text.to_owned(), parse(text)?))
    }

    /// Writes a unit file as fleet's v1 does: sections in the order of their first option, the options of a section together, an empty
    /// line between sections. Blanks around names and values are dropped.
    ///
    /// # Errors
    /// Somebody who reads the file would not find these options in it: see [`UnitFileProblem`].
    pub fn from_options(options: Vec<UnitOption>) -> Result<Self, UnitFileError> {
        let options: Vec<UnitOption> = options.into_iter().map(plain).collect();
        let text = text_of(&options);
        if let Some(problem) = too_long(&text) {
            return Err(problem);
        }
        let found = parse(&text)?;
        let expected: Vec<&UnitOption> = by_section(&options).into_iter().flatten().collect();
        let differing = found.iter().zip(&expected).find(|pair| pair.0.option != **pair.1);
        let differing = differing.map(|(found, _)| found.line);
        if differing.is_none() && found.len() == expected.len() {
            return Ok(Self::new(text, found));
        }
        let line = differing.or(found.last().map(|last| last.line)).unwrap_or(1);
        Err(UnitFileError { line, problem: UnitFileProblem::NotOneOption })
    }

    fn new(text: String, found: Vec<Assignment>) -> Self {
        let (options, readings) = found
            .into_iter()
            .map(|Assignment { line, option, joined }| (option, Reading { line, joined }))
            .unzip();
        Self(Arc::new(Content { text, options, readings }))
    }

    /// The text of the file, byte for byte.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Its options, in their order.
    pub fn options(&self) -> &[UnitOption] {
        &self.0.options
    }

    /// The values of an option that is a list, each as one line. As for systemd, an empty value drops those before it.
    pub fn values(&self, section: &str, name: &str) -> impl Iterator<Item = &str> {
        let matching = self.assigned(section).filter(|assigned| assigned.name == name);
        let values: Vec<&str> = matching.map(|assigned| assigned.value).collect();
        let first = values.iter().rposition(|value| value.is_empty()).map_or(0, |index| index + 1);
        values.into_iter().skip(first)
    }

    /// The options of a section.
    pub(crate) fn assigned(&self, section: &str) -> impl Iterator<Item = Assigned<'_>> {
        let options = self.0.options.iter().zip(&self.0.readings);
        options.filter(move |(option, _)| option.section == section).map(|(option, reading)| Assigned {
            line: reading.line,
            name: &option.name,
            value: reading.joined.as_deref().unwrap_or(&option.value),
        })
    }

    /// The hash of the text, which is `fileHash` in v1-alpha.
    pub fn file_hash(&self) -> UnitHash {
        UnitHash::digest(self.text())
    }

    /// The hash of the text that [`Self::from_options`] would write, which is `hash` in the states of v1, and what fleet's clients
    /// compare a local file by.
    pub fn options_hash(&self) -> UnitHash {
        UnitHash::digest(&text_of(self.options()))
    }
}

impl PartialEq for UnitFile {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for UnitFile {}

impl fmt::Debug for UnitFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnitFile").field(&self.text()).finish()
    }
}

/// The error of a file that is too long.
fn too_long(text: &str) -> Option<UnitFileError> {
    let fitting = text.as_bytes().get(..UNIT_BYTES_MAX).filter(|fitting| fitting.len() < text.len())?;
    let line = (1..).zip(fitting.split(|byte| *byte == b'\n')).last().map_or(1, |(line, _)| line);
    Some(UnitFileError { line, problem: UnitFileProblem::TooLong })
}

/// `option` as a parser would read it: without blanks around its name and value, and without skipped lines in the latter.
fn plain(option: UnitOption) -> UnitOption {
    let mut lines = option.value.split('\n');
    let first = lines.next();
    let value = written(first.into_iter().chain(lines.filter(|line| !is_skipped(line))));
    UnitOption { section: option.section, name: trim(&option.name).to_owned(), value }
}

/// The options of each section together, sections in the order of their first option.
fn by_section(options: &[UnitOption]) -> Vec<Vec<&UnitOption>> {
    let mut sections: Vec<Vec<&UnitOption>> = Vec::new();
    let mut indexes: BTreeMap<&str, usize> = BTreeMap::new();
    for option in options {
        let index = *indexes.entry(&option.section).or_insert(sections.len());
        if index == sections.len() {
            sections.push(Vec::new());
        }
        sections[index].push(option);
    }
    sections
}

/// The text of a file with these options.
fn text_of(options: &[UnitOption]) -> String {
    let sections = by_section(options).into_iter().filter_map(|options| {
        let mut text = format!("[{}]\n", options.first()?.section);
        for option in options {
            text.extend([option.name.as_str(), "=", &option.value, "\n"]);
        }
        Some(text)
    });
    sections.collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests;
