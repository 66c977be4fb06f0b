//! Why a host waits, or came to an unhappy end: typed, so that the API, the command line and the page say the same.

use std::borrow::Cow;
use std::fmt;

use os_upgrade_protocol::{Action, GroupName, HostName};
use serde::{Deserialize, Serialize};

use crate::duration::Duration;

/// Why a host waits, or came to an unhappy end. `Display` gives the sentence for operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Reason {
    /// A slot has been asked for and the answer is not known yet.
    AskingForSlot {
        /// The group whose slot is asked for.
        group: GroupName,
    },
    /// The semaphore said no.
    SlotDenied {
        /// The group whose slot was asked for.
        group: GroupName,
        /// The FleetLock error's `kind`.
        lock_kind: String,
        /// The FleetLock error's `value`.
        value: String,
    },
    /// The lock server did not answer.
    SlotUnreachable {
        /// The group whose slot was asked for.
        group: GroupName,
        /// What went wrong.
        detail: String,
    },
    /// The lock server answered with something that is not FleetLock.
    SlotProtocol {
        /// The group whose slot was asked for.
        group: GroupName,
        /// What it answered.
        detail: String,
    },
    /// The orchestrator's clock and the bus's differ too much to keep to deadlines.
    ClockSkew {
        /// Their difference, in seconds.
        seconds: i64,
    },
    /// No heartbeat for too long when the run started.
    Unreachable,
    /// The worker answered with an error.
    WorkerError {
        /// What it had been asked.
        action: Action,
        /// Its message.
        message: String,
    },
    /// The worker had not answered when the run's time was over.
    NoReply {
        /// What it had been asked.
        action: Action,
    },
    /// The worker had not answered `reboot` in the time that the rollout gives it.
    BootTimeout {
        /// That time.
        after: Duration,
    },
    /// An operator had the run go on without the host.
    GivenUp {
        /// Who did.
        actor: String,
        /// Why.
        reason: String,
    },
    /// The command had not been sent, as far as is known, when the run's time was over.
    NotSent {
        /// What it was to be asked.
        action: Action,
    },
    /// Another host's failure ended the run.
    RunFailed {
        /// That host.
        host: HostName,
    },
    /// An operator cancelled the run.
    RunCancelled {
        /// Who did.
        actor: String,
    },
    /// The run's time was over before this host's turn came.
    RunTimedOut,
    /// The site was restored, so what became of the host is not known.
    Restored {
        /// Who did it.
        actor: String,
    },
    /// Nobody has approved the host.
    AwaitsApproval {
        /// The host.
        host: HostName,
    },
    /// An operator withdrew the host.
    HostWithdrawn {
        /// Who did.
        actor: String,
        /// Why.
        reason: String,
    },
}

/// A name as it can be typed in a shell: whoever reaches the bus chooses the names that operators copy.
pub fn quoted(name: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.bytes().all(plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("'{}'", name.replace('\'', r"'\''")))
}

/// The same, as an argument of its own.
fn shell_word(name: &str) -> Cow<'_, str> {
    if name.starts_with('-') { Cow::Owned(format!("-- {}", quoted(name))) } else { quoted(name) }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AskingForSlot { group } => write!(f, "asking for a slot of group {group}"),
            Self::SlotDenied { group, lock_kind, value } => {
                write!(f, "denied a slot of group {group}: {value} ({lock_kind})")
            }
            Self::SlotUnreachable { group, detail } => {
                write!(f, "unreachable lock server, no slot of group {group}: {detail}")
            }
            Self::SlotProtocol { group, detail } => {
                write!(f, "protocol error of the lock server, no slot of group {group}: {detail}")
            }
            Self::ClockSkew { seconds } => {
                write!(f, "the clocks of orchestrator and bus differ by {seconds} s")
            }
            Self::Unreachable => f.write_str("unreachable: no heartbeat when the run started"),
            Self::WorkerError { action, message } => write!(f, "{action} failed: {message}"),
            Self::NoReply { action } => write!(f, "no reply to {action} before not-after"),
            Self::BootTimeout { after } => {
                write!(f, "no reply to reboot within {after} (boot-timeout): it may hang in its boot")
            }
            Self::GivenUp { actor, reason } => write!(f, "given up by {actor}: {reason}"),
            Self::NotSent { action } => write!(f, "{action} could not be sent before not-after"),
            Self::RunFailed { host } => write!(f, "the run was ended by the failure of {host}"),
            Self::RunCancelled { actor } => write!(f, "the run was cancelled by {actor}"),
            Self::RunTimedOut => f.write_str("the run's time was over before its turn came"),
            Self::Restored { actor } => {
                write!(f, "the site was restored by {actor}; what became of the host is not known")
            }
            Self::AwaitsApproval { host } => {
                write!(f, "waits for approval: os-upgrade hosts approve {}", shell_word(host.as_str()))
            }
            Self::HostWithdrawn { actor, reason } => write!(f, "withdrawn by {actor}: {reason}"),
        }
    }
}

impl Reason {
    /// The word that tells this kind from the others, of a small fixed set.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::AskingForSlot { .. } => "asking-for-slot",
            Self::SlotDenied { .. } => "slot-denied",
            Self::SlotUnreachable { .. } => "slot-unreachable",
            Self::SlotProtocol { .. } => "slot-protocol",
            Self::ClockSkew { .. } => "clock-skew",
            Self::Unreachable => "unreachable",
            Self::WorkerError { .. } => "worker-error",
            Self::NoReply { .. } => "no-reply",
            Self::BootTimeout { .. } => "boot-timeout",
            Self::GivenUp { .. } => "given-up",
            Self::NotSent { .. } => "not-sent",
            Self::RunFailed { .. } => "run-failed",
            Self::RunCancelled { .. } => "run-cancelled",
            Self::RunTimedOut => "run-timed-out",
            Self::Restored { .. } => "restored",
            Self::AwaitsApproval { .. } => "awaits-approval",
            Self::HostWithdrawn { .. } => "host-withdrawn",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_typed_is_one_word() {
        for (name, typed) in [
            ("h01.example-site", "h01.example-site"),
            ("a b", "'a b'"),
            ("x;reboot", "'x;reboot'"),
            ("it's $(reboot)", r"'it'\''s $(reboot)'"),
            ("--all", "-- --all"),
        ] {
            let reason = Reason::AwaitsApproval { host: HostName::new(name).unwrap() };
            assert_eq!(reason.to_string(), format!("waits for approval: os-upgrade hosts approve {typed}"));
        }
    }
}
