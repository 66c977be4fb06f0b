//! What commands print: lines on standard output and standard error, and answers in the format that was asked for.

mod document;
mod table;

use clap::{Args, ValueEnum};
use console::Term;
use os_upgrade_api_types::body::Page;
use os_upgrade_console::{Detail, Row, Zone};
use os_upgrade_protocol::text::sanitized;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use self::table::{Canvas, table};
use crate::Failure;
use crate::arguments::GLOBAL;
pub use crate::lines::{errln, outln};

/// The format in which a command prints its results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people; fits the terminal
    #[default]
    Table,
    /// For people, with every column; nothing is cut
    Wide,
    /// JSON, for programs
    Json,
    /// YAML, for programs
    Yaml,
    /// Only the names of what is listed, one a line
    Name,
}

/// The options for what a command prints.
#[derive(Debug, Clone, Copy, Default, Args)]
#[command(next_help_heading = GLOBAL)]
pub(crate) struct Output {
    /// The output format
    #[arg(short = 'o', long = "output", value_name = "FORMAT", value_enum, default_value_t)]
    format: Format,
    /// Show times in UTC; by default they are local
    #[arg(long)]
    utc: bool,
    /// Print results and errors, but no confirmations and notes
    #[arg(long)]
    quiet: bool,
}

/// Details in lines, with names in a column of at least this width.
pub(crate) fn details(details: Vec<Detail>, head_columns: usize) -> String {
    let head = |name: &str| if name.is_empty() { String::new() } else { format!("{name}:") };
    let line = |(name, text): Detail| format!("{:<head_columns$} {}", head(name), sanitized(&text));
    details.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

/// An answer of the API as people see it.
pub(crate) trait View: DeserializeOwned {
    /// Its text, without a line break at its end.
    fn text(&self, canvas: &Canvas) -> String;

    /// The names of what it lists; absent if it is not a list.
    fn names(&self) -> Option<Vec<String>> {
        None
    }

    /// What people are told if it is a list of nothing, with times in UTC; absent otherwise.
    fn none(&self) -> Option<String> {
        None
    }
}

impl<R: Row + DeserializeOwned> View for Vec<R> {
    fn text(&self, canvas: &Canvas) -> String {
        if self.is_empty() { R::NONE.to_owned() } else { table(self, canvas).trim_end().to_owned() }
    }

    fn names(&self) -> Option<Vec<String>> {
        self.iter().map(Row::name).collect()
    }

    fn none(&self) -> Option<String> {
        self.is_empty().then(|| R::NONE.to_owned())
    }
}

impl<T: Row + DeserializeOwned> View for Page<T> {
    fn text(&self, canvas: &Canvas) -> String {
        self.items.text(canvas)
    }

    fn names(&self) -> Option<Vec<String>> {
        self.items.names()
    }

    fn none(&self) -> Option<String> {
        self.items.none()
    }
}

impl Output {
    /// Prints in `format`.
    pub(crate) const fn new(format: Format, utc: bool, quiet: bool) -> Self {
        Self { format, utc, quiet }
    }

    /// Prints `answer`: as it is for programs, as a `V` for people.
    ///
    /// # Errors
    /// The answer is not a `V`, or has no names to print.
    pub(crate) fn show<V: View>(self, answer: &Value) -> Result<(), Failure> {
        let view = || V::deserialize(answer).map_err(unexpected);
        match self.format {
            Format::Table | Format::Wide => {
                let view = view()?;
                if let Some(none) = view.none() {
                    self.aside(&self.canvas().zone.times_in(&none));
                } else {
                    outln!("{}", view.text(&self.canvas()));
                }
            }
            Format::Json | Format::Yaml => self.format.document(answer)?,
            Format::Name => {
                for name in view()?.names().ok_or_else(no_names)? {
                    // A control character in a name must not look like another name.
                    outln!("{}", sanitized(&name));
                }
            }
        }
        Ok(())
    }

    /// Prints one of many values, as they arrive: JSON on a line, YAML as a document, and a `line` for people.
    ///
    /// # Errors
    /// It cannot be written in the format that was asked for.
    pub(crate) fn show_one_of_many(
        self,
        value: &Value,
        line: impl FnOnce(Zone) -> String,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Table | Format::Wide => outln!("{}", line(self.canvas().zone)),
            Format::Json => outln!("{}", document::json_line(value)?),
            Format::Yaml => {
                outln!("---");
                self.format.document(value)?;
            }
            Format::Name => return Err(no_names()),
        }
        Ok(())
    }

    /// Prints that something was `done`, such as `approved`, with each of `names`.
    ///
    /// # Errors
    /// It cannot be written in the format that was asked for.
    pub(crate) fn done(self, done: &str, names: &[&str]) -> Result<(), Failure> {
        match self.format {
            Format::Table | Format::Wide => {
                for name in names {
                    self.note(&format!("{done}: {}", sanitized(name)));
                }
            }
            Format::Json | Format::Yaml => {
                self.format.document(&serde_json::json!({ done.replace(' ', "-"): names }))?;
            }
            Format::Name => {
                for name in names {
                    outln!("{}", sanitized(name));
                }
            }
        }
        Ok(())
    }

    /// Prints a line for people: not with `--quiet`, and not for programs.
    pub(crate) fn note(self, line: &str) {
        match self.format {
            Format::Table | Format::Wide if !self.quiet => outln!("{line}"),
            Format::Table | Format::Wide | Format::Json | Format::Yaml | Format::Name => {}
        }
    }

    /// Prints a result that is one line for people: with `--quiet` too, but not for programs.
    pub(crate) fn result(self, line: &str) {
        if self.is_for_people() {
            outln!("{line}");
        }
    }

    /// Prints a line for people beside the results, such as that there is none: on standard error, not with `--quiet`, and not
    /// for programs.
    pub(crate) fn aside(self, line: &str) {
        if self.has_asides() {
            errln!("{line}");
        }
    }

    /// Whether [`Self::aside`] prints anything; what only an aside needs is not read otherwise.
    pub(crate) const fn has_asides(self) -> bool {
        self.is_for_people() && !self.quiet
    }

    /// Whether people read it.
    pub(crate) const fn is_for_people(self) -> bool {
        self.format.is_for_people()
    }

    /// Whether only results and errors are to be printed.
    pub(crate) const fn is_quiet(self) -> bool {
        self.quiet
    }

    /// What text for people is drawn on.
    pub(crate) fn canvas(self) -> Canvas {
        let zone = if self.utc { Zone::Utc } else { Zone::Local };
        match self.format {
            Format::Wide => Canvas { is_wide: true, columns: None, zone },
            Format::Table | Format::Json | Format::Yaml | Format::Name => {
                Canvas { is_wide: false, columns: terminal_columns(), zone }
            }
        }
    }
}

impl Format {
    /// Prints `value` for programs, or `text` for people.
    ///
    /// # Errors
    /// It cannot be written, or names were asked for, and there are none.
    pub(crate) fn print(self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        match self {
            Self::Table | Self::Wide => outln!("{}", text()),
            Self::Json | Self::Yaml => self.document(value)?,
            Self::Name => return Err(no_names()),
        }
        Ok(())
    }

    /// Whether people read it.
    pub(crate) const fn is_for_people(self) -> bool {
        match self {
            Self::Table | Self::Wide => true,
            Self::Json | Self::Yaml | Self::Name => false,
        }
    }

    fn document(self, value: &impl Serialize) -> Result<(), Failure> {
        let text = match self {
            Self::Yaml => document::yaml(value)?,
            Self::Table | Self::Wide | Self::Json | Self::Name => document::json(value)?,
        };
        outln!("{}", text.trim_end());
        Ok(())
    }
}

fn unexpected(error: serde_json::Error) -> Failure {
    anyhow::Error::from(error).context("unexpected response").into()
}

fn no_names() -> Failure {
    Failure::Usage("this command lists nothing that has a name; leave out -o name".to_owned())
}

/// The width to draw for: what `COLUMNS` says, or that of the terminal; absent if standard output is none.
fn terminal_columns() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| asked_columns(&columns));
    asked.or_else(measured_columns)
}

/// The width that a value of `COLUMNS` asks for; absent if it is no number of columns.
fn asked_columns(value: &str) -> Option<usize> {
    value.trim().parse().ok().filter(|columns| *columns > 0)
}

fn measured_columns() -> Option<usize> {
    let terminal = Term::stdout();
    let (_, columns) = terminal.is_term().then(|| terminal.size_checked()).flatten()?;
    Some(usize::from(columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_can_be_asked_for() {
        for (value, expected) in
            [("120", Some(120)), (" 80\n", Some(80)), ("0", None), ("", None), ("wide", None)]
        {
            assert_eq!(asked_columns(value), expected, "{value:?}");
        }
    }
}
