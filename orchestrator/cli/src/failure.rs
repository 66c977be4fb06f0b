//! Why a command failed, and the exit code it ends with.

use std::process::ExitCode;

use os_upgrade_conformance as conformance;
use os_upgrade_protocol::text::one_line;
use os_upgrade_settings as settings;
use os_upgrade_shell::not_done::NotDone;
use reqwest::StatusCode;

use crate::lines::errln;

/// The exit code of a command that has failed, and changes nothing.
const FAILED: u8 = 1;
/// The exit code of a command whose change was certainly not made.
const UNCHANGED: u8 = 5;
/// The exit code of a command whose change may have been made, or may still be made.
const UNKNOWN: u8 = 6;

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Its configuration is invalid.
    Settings(settings::Error),
    /// Its configuration is valid, but something it names, such as a file, cannot be used.
    Unusable {
        /// What is wrong.
        why: String,
        /// Whether the problem may pass without a change to the configuration, so that a retry makes sense.
        is_transient: bool,
    },
    /// The command line makes no sense.
    Usage(String),
    /// It failed while it ran.
    Runtime(anyhow::Error),
    /// It was to change something, and has certainly not done so.
    Unchanged(anyhow::Error),
    /// It may have changed something before it failed.
    Unknown(anyhow::Error),
    /// It has already printed why, and ends with this exit code.
    Status(u8),
}

/// The API has refused a request.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    /// The status of its answer.
    pub(crate) status: StatusCode,
    /// Why, for people.
    pub(crate) message: String,
    /// Whether it was a change, which has certainly not been made.
    pub(crate) of_change: bool,
}

impl From<settings::Error> for Failure {
    fn from(error: settings::Error) -> Self {
        Self::Settings(error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Runtime(error)
    }
}

impl From<NotDone> for Failure {
    fn from(not_done: NotDone) -> Self {
        Self::Runtime(not_done.into())
    }
}

impl From<conformance::Error> for Failure {
    fn from(error: conformance::Error) -> Self {
        Self::Runtime(error.into())
    }
}

impl Failure {
    /// Something that the operator named, such as a file, cannot be used.
    pub(crate) fn unusable(error: &anyhow::Error) -> Self {
        Self::Unusable { why: format!("{error:#}"), is_transient: false }
    }

    /// The failure of what precedes a change, which is certainly not made.
    pub(crate) fn unchanged(error: impl Into<anyhow::Error>) -> Self {
        Self::Unchanged(error.into())
    }

    /// Prints what went wrong to standard error, and returns the exit code.
    pub fn report(self) -> ExitCode {
        match self {
            Self::Settings(error) => {
                for line in error.to_string().lines() {
                    errln!("{} {line}", error_word());
                }
                ExitCode::from(2)
            }
            Self::Unusable { why, is_transient } => {
                errln!("{} {}", error_word(), one_line(&why, usize::MAX));
                ExitCode::from(if is_transient { 1 } else { 2 })
            }
            Self::Usage(wrong) => {
                errln!("{} {wrong}", error_word());
                ExitCode::from(2)
            }
            Self::Runtime(error) => failed(&error, code_of(&error)),
            Self::Unchanged(error) => failed(&error, UNCHANGED),
            Self::Unknown(error) => failed(&error, UNKNOWN),
            Self::Status(status) => ExitCode::from(status),
        }
    }
}

/// Prints why a command failed.
fn failed(error: &anyhow::Error, code: u8) -> ExitCode {
    errln!("{} {}", error_word(), one_line(&format!("{error:#}"), usize::MAX));
    ExitCode::from(code)
}

/// What a line about a failure begins with: in red on a terminal, unless `NO_COLOR` is set.
fn error_word() -> console::StyledObject<&'static str> {
    console::style("error:").for_stderr().red().bold()
}

/// The exit code of a command that failed with `error`.
fn code_of(error: &anyhow::Error) -> u8 {
    match (error.downcast_ref(), error.downcast_ref::<Refused>()) {
        (Some(NotDone::Unchanged { .. }), _) => UNCHANGED,
        (Some(NotDone::Unknown { .. }), _) => UNKNOWN,
        (None, Some(refused)) if refused.of_change => UNCHANGED,
        (None, _) => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn exit_codes_say_what_became_of_a_change() {
        let refused =
            |of_change| Refused { status: StatusCode::CONFLICT, message: "x".to_owned(), of_change };
        for (error, expected) in [
            (anyhow!("a read failed"), FAILED),
            (refused(false).into(), FAILED),
            (refused(true).into(), UNCHANGED),
            (anyhow::Error::from(refused(true)).context("approving the remaining hosts"), UNCHANGED),
            (NotDone::unchanged("x").into(), UNCHANGED),
            (NotDone::unknown("x").into(), UNKNOWN),
            (anyhow::Error::from(NotDone::unknown("x")).context("y"), UNKNOWN),
        ] {
            assert_eq!(code_of(&error), expected, "{error:?}");
        }
    }
}
