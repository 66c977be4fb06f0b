//! Why a host waits, or came to an unhappy end: typed, so that the API, the command line and the page say the same.

use std::borrow::Cow;

use os_upgrade_protocol::{Action, GroupName, HostName};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::duration::Duration;
use crate::semaphore::HostDenied;
use crate::strongbox::Sealed;

/// Why a host waits, or came to an unhappy end. `Display` gives the sentence for operators.
#[derive(
    Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, IntoStaticStr, VariantNames,
)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Reason {
    /// A slot has been asked for and the answer is not known yet.
    #[error("asking for a slot of group {group}")]
    AskingForSlot {
        /// The group whose slot is asked for.
        group: GroupName,
    },
    /// The semaphore said no.
    #[error("denied a slot of group {group}: {denial}")]
    SlotDenied {
        /// The group whose slot was asked for.
        group: GroupName,
        /// Who refused it, and why.
        denial: Denial,
    },
    /// The lock server did not answer.
    #[error("unreachable lock server, no slot of group {group}: {why}")]
    SlotUnreachable {
        /// The group whose slot was asked for.
        group: GroupName,
        /// Why not.
        why: NoAnswer,
    },
    /// The lock server answered with something that is not FleetLock.
    #[error("protocol error of the lock server, no slot of group {group}: {detail}")]
    SlotProtocol {
        /// The group whose slot was asked for.
        group: GroupName,
        /// What it answered.
        detail: String,
    },
    /// The orchestrator's clock and the bus's differ too much to keep to deadlines.
    #[error("the clocks of orchestrator and bus differ by {seconds} s")]
    ClockSkew {
        /// Their difference, in seconds.
        seconds: i64,
    },
    /// No heartbeat for too long when the run started.
    #[error("unreachable: no heartbeat when the run started")]
    Unreachable,
    /// The worker answered with an error.
    #[error("{action} failed: {message}")]
    WorkerError {
        /// What it had been asked.
        action: Action,
        /// Its message.
        message: String,
    },
    /// The worker had not answered when the run's time was over.
    #[error("no reply to {action} before not-after")]
    NoReply {
        /// What it had been asked.
        action: Action,
    },
    /// The worker had not answered `reboot` in the time that the rollout gives it.
    #[error("no reply to reboot within {after} (boot-timeout): it may hang in its boot")]
    BootTimeout {
        /// That time.
        after: Duration,
    },
    /// An operator had the run go on without the host.
    #[error("given up by {actor}: {reason}")]
    GivenUp {
        /// Who did.
        actor: String,
        /// Why.
        reason: String,
    },
    /// The command had not been sent, as far as is known, when the run's time was over.
    #[error("{action} could not be sent before not-after")]
    NotSent {
        /// What it was to be asked.
        action: Action,
    },
    /// Another host's failure ended the run.
    #[error("the run was ended by the failure of {host}")]
    RunFailed {
        /// That host.
        host: HostName,
    },
    /// An operator cancelled the run.
    #[error("the run was cancelled by {actor}")]
    RunCancelled {
        /// Who did.
        actor: String,
    },
    /// The run's time was over before this host's turn came.
    #[error("the run's time was over before its turn came")]
    RunTimedOut,
    /// The site was restored, so what became of the host is not known.
    #[error("the site was restored by {actor}; what became of the host is not known")]
    Restored {
        /// Who did it.
        actor: String,
    },
    /// Nobody has approved the host.
    #[error("waits for approval: os-upgrade hosts approve {}", shell_word(host.as_str()))]
    AwaitsApproval {
        /// The host.
        host: HostName,
    },
    /// An operator withdrew the host.
    #[error("withdrawn by {actor}: {reason}")]
    HostWithdrawn {
        /// Who did.
        actor: String,
        /// Why.
        reason: String,
    },
}

/// Why a system has not answered. `Display` gives the clause for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum NoAnswer {
    /// It is not said which system that would be.
    #[error("none is configured")]
    NotConfigured,
    /// The secret that it asks for cannot be used.
    #[error("{why}")]
    Sealed {
        /// Why not.
        why: Sealed,
    },
    /// It takes too long.
    #[error("timed out")]
    TimedOut,
    /// Something went wrong on the way, such as connecting or TLS.
    #[error("{detail}")]
    Failed {
        /// What, as the libraries say.
        detail: String,
    },
}

/// Who refused a slot, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "provider", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Denial {
    /// The semaphores here.
    #[error("{0} ({kind})", kind = .0.kind().as_str())]
    Embedded(HostDenied),
    /// Another lock server, with a FleetLock error.
    #[error("{value} ({lock_kind})")]
    External {
        /// The error's `kind`, as it was answered.
        lock_kind: String,
        /// The error's `value`, as it was answered.
        value: String,
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

impl Reason {
    /// The word that tells this kind from the others.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// Whose decision it is, where an operator made one.
    pub fn actor(&self) -> Option<&str> {
        match self {
            Self::GivenUp { actor, .. }
            | Self::RunCancelled { actor }
            | Self::Restored { actor }
            | Self::HostWithdrawn { actor, .. } => Some(actor),
            Self::AskingForSlot { .. }
            | Self::SlotDenied { .. }
            | Self::SlotUnreachable { .. }
            | Self::SlotProtocol { .. }
            | Self::ClockSkew { .. }
            | Self::Unreachable
            | Self::WorkerError { .. }
            | Self::NoReply { .. }
            | Self::BootTimeout { .. }
            | Self::NotSent { .. }
            | Self::RunFailed { .. }
            | Self::RunTimedOut
            | Self::AwaitsApproval { .. } => None,
        }
    }

    /// The word of each kind.
    pub const fn kinds() -> &'static [&'static str] {
        Self::VARIANTS
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
