//! Why a command did not do what it should, and the exit code that says so.

use std::process::ExitCode;

use os_upgrade_settings as settings;
use os_upgrade_shell::fleetlock::one_line;
use os_upgrade_shell::not_done::NotDone;

use crate::output::errln;

/// What `--help` says of them.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  refused, or it could not run or go on
  2  wrong usage, or an unusable configuration
  5  a change was certainly not made, and asking again is safe
  6  it is not known whether a change was made, and it may still come to be: look at the state";

/// The exit code of a command whose change was certainly not made.
const UNCHANGED: u8 = 5;
/// The exit code of a command of which it is not known whether its change was made.
const UNKNOWN: u8 = 6;

/// Why a command did not do what it should.
#[derive(Debug)]
pub enum Failure {
    /// Its configuration cannot be used.
    Settings(settings::Error),
    /// What its configuration names cannot be.
    Unusable {
        /// What is wrong.
        why: String,
        /// Whether it may be otherwise without anybody's doing, so that trying again is worth it.
        may_pass: bool,
    },
    /// What was asked for makes no sense.
    Usage(String),
    /// It could not run or go on.
    Runtime(anyhow::Error),
    /// It has said why, and ends with this status.
    Status(u8),
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

impl Failure {
    /// Says on standard error what went wrong, and gives the code to end with.
    pub fn tell(self) -> ExitCode {
        match self {
            Self::Settings(error) => {
                for line in error.to_string().lines() {
                    errln!("error: {line}");
                }
                ExitCode::from(2)
            }
            Self::Unusable { why, may_pass } => {
                errln!("error: {}", one_line(&why, usize::MAX));
                ExitCode::from(if may_pass { 1 } else { 2 })
            }
            Self::Usage(wrong) => {
                errln!("error: {wrong}");
                ExitCode::from(2)
            }
            Self::Runtime(error) => {
                errln!("error: {}", one_line(&format!("{error:#}"), usize::MAX));
                match error.downcast_ref() {
                    Some(NotDone::Unchanged { .. }) => ExitCode::from(UNCHANGED),
                    Some(NotDone::Unknown { .. }) => ExitCode::from(UNKNOWN),
                    None => ExitCode::FAILURE,
                }
            }
            Self::Status(status) => ExitCode::from(status),
        }
    }
}
