//! Reads unit files as systemd does, which passes over what it does not understand; here that is an error.

use crate::unit::option::UnitOption;
use crate::unit::problem::{UnitFileError, UnitFileProblem, WORD_BYTES_MAX};
use crate::unit::value::{is_continued, is_skipped, joined, trim, written};

/// An option with its place in the file.
#[derive(Debug, Clone)]
pub(super) struct Assignment {
    /// The line on which it begins, counted from 1.
    pub(super) line: u32,
    /// The option.
    pub(super) option: UnitOption,
    /// Its value as one line, if that differs from the value as it is written.
    pub(super) joined: Option<String>,
}

/// The options of a unit file, in their order.
pub(super) fn parse(text: &str) -> Result<Vec<Assignment>, UnitFileError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser::default();
    for (line, content) in (1..).zip(text.split('\n')) {
        let content = content.strip_suffix('\r').unwrap_or(content);
        parser.take(line, content).map_err(|problem| UnitFileError { line, problem })?;
    }
    parser.end_option();
    Ok(parser.found)
}

/// An option whose lines are being read.
struct Begun<'a> {
    line: u32,
    section: String,
    name: &'a str,
    lines: Vec<&'a str>,
}

#[derive(Default)]
struct Parser<'a> {
    section: Option<&'a str>,
    /// The option that the next line continues.
    begun: Option<Begun<'a>>,
    found: Vec<Assignment>,
}

impl<'a> Parser<'a> {
    fn take(&mut self, line: u32, content: &'a str) -> Result<(), UnitFileProblem> {
        if content.contains(['\0', '\r']) {
            return Err(UnitFileProblem::Control);
        }
        if is_skipped(content) {
            return Ok(());
        }
        match &mut self.begun {
            Some(begun) => begun.lines.push(content),
            None => match trim(content).strip_prefix('[') {
                Some(header) => {
                    self.section = Some(section_name(header)?);
                    return Ok(());
                }
                None => self.begun = Some(self.begin_option(line, content)?),
            },
        }
        if !is_continued(content) {
            self.end_option();
        }
        Ok(())
    }

    fn begin_option(&self, line: u32, content: &'a str) -> Result<Begun<'a>, UnitFileProblem> {
        let section = self.section.ok_or(UnitFileProblem::NoSection)?.to_owned();
        let (name, value) = content.split_once('=').ok_or(UnitFileProblem::NoEquals)?;
        let name = trim(name);
        if name.is_empty() || name.len() > WORD_BYTES_MAX {
            return Err(UnitFileProblem::Name);
        }
        Ok(Begun { line, section, name, lines: vec![value] })
    }

    /// Ends the option that was begun, if any.
    fn end_option(&mut self) {
        if let Some(Begun { line, section, name, lines }) = self.begun.take() {
            let value = written(lines.into_iter());
            let joined = joined(&value);
            let option = UnitOption { section, name: name.to_owned(), value };
            self.found.push(Assignment { line, option, joined });
        }
    }
}

/// The name in a header without its first bracket.
fn section_name(header: &str) -> Result<&str, UnitFileProblem> {
    let name = header.strip_suffix(']').ok_or(UnitFileProblem::Section)?;
    let is_name = !name.is_empty()
        && name.len() <= WORD_BYTES_MAX
        && !name.chars().any(|c| c.is_control() || ['[', ']'].contains(&c));
    if is_name { Ok(name) } else { Err(UnitFileProblem::Section) }
}
