//! Why a host waits or did not succeed, and why others did not answer.

use std::fmt::{self, Formatter};

use chrono::{DateTime, Utc};
use os_upgrade_kernel::reason::{Denial, LastWait, LockRefusal};
use os_upgrade_kernel::{NoAnswer, Reason};
use os_upgrade_protocol::time;

use crate::commands::shell_word;
use crate::describe::{Describe, describe};
use crate::node::FOREIGN_MARK;

/// By whom a host is deferred, until when if that ends by itself, and why.
pub(crate) fn deferred(actor: &str, until: Option<DateTime<Utc>>, reason: &str) -> String {
    let until = until.map(|until| format!(" until {}", time::format(until))).unwrap_or_default();
    format!("deferred by {actor}{until}: {reason}")
}

impl Describe for Reason {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::AskingForSlot { group } => write!(f, "asking for a slot of group {group}"),
            Self::SlotDenied { group, denial } => {
                write!(f, "denied a slot of group {group}: {denial}", denial = describe(denial))
            }
            Self::SlotUnreachable { group, why } => write!(
                f,
                "no slot of group {group}: the lock server is unreachable: {why}",
                why = describe(why)
            ),
            Self::SlotProtocol { group, detail } => write!(
                f,
                "no slot of group {group}: the lock server violated the FleetLock protocol: {detail}"
            ),
            Self::Unreachable => f.write_str("unreachable: no heartbeat when the run started"),
            Self::WorkerError { action, message } => write!(f, "{action} failed: {message}"),
            Self::Unhealthy { message } => write!(f, "not healthy after its reboot: {message}"),
            Self::NoReply { action, unreachable } => write!(
                f,
                "no reply to {action} before not-after{}",
                if *unreachable { "; it no longer sent heartbeats" } else { "" }
            ),
            Self::PrepareTimeout { after } => {
                write!(f, "no reply to prepare within {after} (prepare-timeout)")
            }
            Self::UpgradeTimeout { after } => {
                write!(f, "no reply to upgrade within {after} (upgrade-timeout): it may still be at work")
            }
            Self::BootTimeout { after } => {
                write!(f, "no reply to reboot within {after} (boot-timeout): it may have hung while booting")
            }
            Self::GivenUp { actor, reason } => write!(f, "given up by {actor}: {reason}"),
            Self::NotSent { action } => write!(f, "{action} could not be sent before not-after"),
            Self::RunFailed { host } => write!(f, "the run was ended by the failure of {host}"),
            Self::RunCancelled { actor, reason } => {
                write!(f, "the run was cancelled by {actor}")?;
                reason.iter().try_for_each(|reason| write!(f, ": {reason}"))
            }
            Self::RunTimedOut { waited_for } => {
                write!(f, "the run timed out {}", before_what(waited_for.as_ref()))
            }
            Self::NoTimeLeft { expected, waited_for } => write!(
                f,
                "less was left of the run than the {expected} that a host takes (expected-duration) {}",
                before_what(waited_for.as_ref())
            ),
            Self::Restored { actor } => {
                write!(f, "the site was restored by {actor}; what became of the host is not known")
            }
            Self::AwaitsApproval { host } => {
                write!(f, "waits for approval: os-upgrade hosts approve {}", shell_word(host.as_str()))
            }
            Self::HostDeferred { actor, reason } => f.write_str(&deferred(actor, None, reason)),
            Self::HostWithdrawn { actor, reason } => write!(f, "withdrawn by {actor}: {reason}"),
            Self::DrainRefused { pods } => {
                write!(f, "its node cannot be drained: {pods}", pods = describe(pods))
            }
            Self::DrainTimedOut { after, waits } => write!(
                f,
                "its node was not drained within {after} (drain-timeout){}",
                waits.as_ref().map(|waits| format!(": {}", describe(waits))).unwrap_or_default()
            ),
            Self::CordonLost { detail } => write!(f, "the drain of its node was given up: {detail}"),
            Self::ForeignMark => write!(f, "the drain of its node was given up: {FOREIGN_MARK}"),
            Self::ApiServerUnderWay { host } => {
                write!(f, "waiting for its turn: {host} is an API server and under way")
            }
            Self::ApiServerWaits { host } => {
                write!(f, "waiting for its turn: it is an API server, and {host} is under way")
            }
            Self::RebootCommandFailed { detail, output: _ } => {
                write!(f, "the reboot command failed: {detail}")
            }
            Self::RebootCommandNotStarted { detail } => {
                write!(f, "the reboot command could not be started: {detail}")
            }
            Self::RebootUnknown { detail, output: _ } => {
                write!(f, "whether the reboot command has had an effect is not known: {detail}")
            }
            Self::Paused(cause) => cause.describe(f),
            Self::ConfigurationMissing { provider, wait } => {
                write!(f, "lacks configuration of {provider}: {}", describe(wait))
            }
            Self::ClusterUnseen => {
                f.write_str("the nodes of the Kubernetes cluster have not been seen of late")
            }
            Self::Clock(it) => it.describe(f),
        }
    }
}

impl Describe for LastWait {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostsUnprepared { host, others } => {
                write!(f, "{host}{} had not answered prepare", and_others(*others))
            }
            Self::HostsPreparing { hosts } => write!(
                f,
                "{} prepared first (max-preparing)",
                if *hosts == 1 { "1 other was".to_owned() } else { format!("{hosts} others were") }
            ),
            Self::HostUnderWay { host, others } => write!(
                f,
                "{host}{} under way",
                if *others == 0 { " was".to_owned() } else { format!("{} were", and_others(*others)) }
            ),
            Self::NodeUndrained { waits } => write!(
                f,
                "its node was being drained{}",
                waits.as_ref().map(|waits| format!(": {}", describe(waits))).unwrap_or_default()
            ),
            Self::Recorded(it) => it.describe(f),
        }
    }
}

impl Describe for LockRefusal {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Denied { lock_kind, value } => write!(f, "the lock server refuses: {value} ({lock_kind})"),
            Self::Unreachable { why } => {
                write!(f, "the lock server is unreachable: {why}", why = describe(why))
            }
            Self::Protocol { detail } => {
                write!(f, "the lock server violated the FleetLock protocol: {detail}")
            }
        }
    }
}

impl Describe for Denial {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded(it) => write!(f, "{it} ({kind})", kind = it.kind().as_str(), it = describe(it)),
            Self::External { lock_kind, value } => write!(f, "{value} ({lock_kind})"),
        }
    }
}

impl Describe for NoAnswer {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConfigured => f.write_str("none is configured"),
            Self::Sealed { why } => why.describe(f),
            Self::TimedOut => f.write_str("timed out"),
            Self::NotSent { detail } | Self::Failed { detail } => f.write_str(detail),
        }
    }
}

/// Before what a run timed out, for operators.
fn before_what(waited_for: Option<&LastWait>) -> String {
    match waited_for {
        Some(wait @ LastWait::NodeUndrained { .. }) => format!("before its upgrade: {}", describe(wait)),
        Some(
            wait @ (LastWait::HostsUnprepared { .. }
            | LastWait::HostsPreparing { .. }
            | LastWait::HostUnderWay { .. }
            | LastWait::Recorded(_)),
        ) => format!("before its turn: {}", describe(wait)),
        None => "before its turn".to_owned(),
    }
}

fn and_others(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " and 1 other host".to_owned(),
        count => format!(" and {count} other hosts"),
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_protocol::HostName;

    use super::*;

    /// Whoever reads a sentence may be a viewer.
    #[test]
    fn sentences_leave_out_what_a_reboot_command_printed() {
        let (detail, output) = ("exit status 4".to_owned(), "hunter2".to_owned());
        let reason = Reason::RebootCommandFailed { detail, output };
        assert_eq!(describe(&reason).to_string(), "the reboot command failed: exit status 4");
        assert_eq!(reason.output(), Some("hunter2"));
    }

    #[test]
    fn copied_commands_are_shell_safe() {
        for (name, typed) in [
            ("h01.example-site", "h01.example-site"),
            ("a b", "'a b'"),
            ("x;reboot", "'x;reboot'"),
            ("it's $(reboot)", r"'it'\''s $(reboot)'"),
            ("--all", "-- --all"),
        ] {
            let reason = Reason::AwaitsApproval { host: HostName::new(name).unwrap() };
            assert_eq!(
                describe(&reason).to_string(),
                format!("waits for approval: os-upgrade hosts approve {typed}")
            );
        }
    }
}
