//! Why a command failed, and the exit code it ends with.

use std::process::ExitCode;

use os_upgrade_conformance as conformance;
use os_upgrade_recovery::RecoveryError;
use os_upgrade_settings as settings;
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_shell::text::one_line;

use crate::lines::errln;

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
    /// It has already printed why, and ends with this exit code.
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

impl From<NotDone> for Failure {
    fn from(not_done: NotDone) -> Self {
        Self::Runtime(not_done.into())
    }
}

impl From<RecoveryError> for Failure {
    fn from(error: RecoveryError) -> Self {
        Self::Runtime(error.into())
    }
}

impl From<conformance::Error> for Failure {
    fn from(error: conformance::Error) -> Self {
        Self::Runtime(error.into())
    }
}

impl Failure {
    /// Prints what went wrong to standard error, and returns the exit code.
    pub fn report(self) -> ExitCode {
        match self {
            Self::Settings(error) => {
                for line in error.to_string().lines() {
                    errln!("error: {line}");
                }
                ExitCode::from(2)
            }
            Self::Unusable { why, is_transient } => {
                errln!("error: {}", one_line(&why, usize::MAX));
                ExitCode::from(if is_transient { 1 } else { 2 })
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
