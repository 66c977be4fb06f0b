//! Why a host waits or did not succeed: typed, so that the API, the command line and the page show the same text.

use std::borrow::Cow;

use os_upgrade_calendar::Duration;
use os_upgrade_protocol::{Action, GroupName, HostName};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::clock::ClockDoubt;
use crate::left_out::is_default;
use crate::no_answer::NoAnswer;
use crate::node::{NodeWait, Pods};
use crate::slot::HostDenied;

/// Why a host waits, was skipped or did not succeed. `Display` gives the sentence for operators.
#[derive(
    Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, IntoStaticStr, VariantNames,
)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Reason {
    /// A slot has been requested and the answer is not known yet.
    #[error("asking for a slot of group {group}")]
    AskingForSlot {
        /// The group of the requested slot.
        group: GroupName,
    },
    /// The slot was refused.
    #[error("denied a slot of group {group}: {denial}")]
    SlotDenied {
        /// The group of the requested slot.
        group: GroupName,
        /// Who refused it, and why.
        denial: Denial,
    },
    /// The lock server did not answer.
    #[error("no slot of group {group}: the lock server is unreachable: {why}")]
    SlotUnreachable {
        /// The group of the requested slot.
        group: GroupName,
        /// Why there is no answer.
        why: NoAnswer,
    },
    /// The lock server's answer does not follow the FleetLock protocol.
    #[error("no slot of group {group}: the lock server violated the FleetLock protocol: {detail}")]
    SlotProtocol {
        /// The group of the requested slot.
        group: GroupName,
        /// A description of the answer.
        detail: String,
    },
    /// No heartbeat had arrived for too long when the run started.
    #[error("unreachable: no heartbeat when the run started")]
    Unreachable,
    /// The worker answered with an error.
    #[error("{action} failed: {message}")]
    WorkerError {
        /// The action of the failed command.
        action: Action,
        /// The worker's error message.
        message: String,
    },
    /// The worker answered that the host is not healthy after its reboot.
    #[error("not healthy after its reboot: {message}")]
    Unhealthy {
        /// Why, as the worker says.
        message: String,
    },
    /// The worker had not answered when the run's `not-after` passed.
    #[error("no reply to {action} before not-after{}", if *unreachable { "; it no longer sent heartbeats" } else { "" })]
    NoReply {
        /// The action of the unanswered command.
        action: Action,
        /// Whether its heartbeats were missing then.
        #[serde(default, skip_serializing_if = "is_default")]
        unreachable: bool,
    },
    /// The worker had not answered `reboot` within the rollout's `boot-timeout`.
    #[error("no reply to reboot within {after} (boot-timeout): it may have hung while booting")]
    BootTimeout {
        /// The `boot-timeout`.
        after: Duration,
    },
    /// An operator gave the host up: the run continues without it.
    #[error("given up by {actor}: {reason}")]
    GivenUp {
        /// The operator.
        actor: String,
        /// Why, as the operator says.
        reason: String,
    },
    /// The command had not been seen in the control stream when the run's `not-after` passed.
    #[error("{action} could not be sent before not-after")]
    NotSent {
        /// The action of the unsent command.
        action: Action,
    },
    /// Another host's failure ended the run.
    #[error("the run was ended by the failure of {host}")]
    RunFailed {
        /// The other host.
        host: HostName,
    },
    /// An operator cancelled the run.
    #[error("the run was cancelled by {actor}")]
    RunCancelled {
        /// The operator.
        actor: String,
    },
    /// The run's `not-after` passed before this host was upgraded.
    #[error("the run timed out {}", before_what(waited_for.as_ref()))]
    RunTimedOut {
        /// What the host was waiting for then; absent in records of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited_for: Option<LastWait>,
    },
    /// The site was restored, so the state of the host is not known.
    #[error("the site was restored by {actor}; what became of the host is not known")]
    Restored {
        /// Who restored it.
        actor: String,
    },
    /// The host has not been approved.
    #[error("waits for approval: os-upgrade hosts approve {}", shell_word(host.as_str()))]
    AwaitsApproval {
        /// The host.
        host: HostName,
    },
    /// An operator withdrew the host.
    #[error("withdrawn by {actor}: {reason}")]
    HostWithdrawn {
        /// The operator.
        actor: String,
        /// Why, as the operator says.
        reason: String,
    },
    /// A dry run of the drain was refused, so that nothing was evicted.
    #[error("its node cannot be drained: {pods}")]
    DrainRefused {
        /// The pods that would have to stay.
        pods: Pods,
    },
    /// Its node was not drained within `drain-timeout`.
    #[error("its node was not drained within {after} (drain-timeout){}", waits.as_ref().map(|waits| format!(": {waits}")).unwrap_or_default())]
    DrainTimedOut {
        /// The `drain-timeout`.
        after: Duration,
        /// What the drain waited for at last, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits: Option<NodeWait>,
    },
    /// Somebody else changed the cordon of its node during the drain.
    #[error("the drain of its node was given up: {detail}")]
    CordonLost {
        /// What was found.
        detail: String,
    },
    /// A host whose node is an API server of the cluster is under way, and no other node is drained beside it.
    #[error("waiting for its turn: {host} is an API server and under way")]
    ApiServerUnderWay {
        /// That host.
        host: HostName,
    },
    /// Its node is an API server of the cluster, and no other node may be under way beside it.
    #[error("waiting for its turn: it is an API server, and {host} is under way")]
    ApiServerWaits {
        /// A host under way.
        host: HostName,
    },
    /// The operator's command failed, so that the host was not rebooted.
    #[error("the reboot command failed: {}", shown(detail, output.as_ref()))]
    RebootCommandFailed {
        /// How it ended. Without `output`, an older version wrote this, and it may hold what the command printed.
        detail: String,
        /// The end of what it printed, which may hold secrets: for operators, and not in `Display`. Absent only if an older version
        /// wrote the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
    },
    /// The operator's command could not be started, so that nothing was run.
    #[error("the reboot command could not be started: {detail}")]
    RebootCommandNotStarted {
        /// Why not.
        detail: String,
    },
    /// Whether the operator's command has rebooted the host is not known.
    #[error("whether the reboot command has had an effect is not known: {}", shown(detail, output.as_ref()))]
    RebootUnknown {
        /// Why not. Without `output`, as above.
        detail: String,
        /// The end of what it printed, as above; empty also if its end is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<String>,
    },
    /// The cluster's nodes are not known.
    #[error("the nodes of the Kubernetes cluster have not been seen of late")]
    ClusterUnseen,
    /// The orchestrator's clock cannot be relied on.
    #[error("{0}")]
    #[serde(untagged)]
    #[strum(transparent)]
    Clock(ClockDoubt),
}

impl From<ClockDoubt> for Reason {
    fn from(doubt: ClockDoubt) -> Self {
        Self::Clock(doubt)
    }
}

/// What a host was waiting for when its run ended before its turn. `Display` gives the clause for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum LastWait {
    /// Hosts that had not answered `prepare`; no upgrade begins before all have.
    #[error("{host}{} had not answered prepare", and_others(*others))]
    HostsUnprepared {
        /// The first of them.
        host: HostName,
        /// How many others there were.
        #[serde(default, skip_serializing_if = "is_default")]
        others: usize,
    },
    /// As many hosts were under way as the rollout allows.
    #[error("{host}{} under way", if *others == 0 { " was".to_owned() } else { format!("{} were", and_others(*others)) })]
    HostUnderWay {
        /// The first of them.
        host: HostName,
        /// How many others there were.
        #[serde(default, skip_serializing_if = "is_default")]
        others: usize,
    },
    /// The drain of its own node.
    #[error("its node was being drained{}", waits.as_ref().map(|waits| format!(": {waits}")).unwrap_or_default())]
    NodeUndrained {
        /// What the drain waited for, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits: Option<NodeWait>,
    },
    /// What was recorded for it, or for the host of its group whose turn it was.
    #[error("{0}")]
    #[serde(untagged)]
    Recorded(Box<Reason>),
}

/// Before what a run timed out, for operators.
fn before_what(waited_for: Option<&LastWait>) -> String {
    match waited_for {
        Some(wait @ LastWait::NodeUndrained { .. }) => format!("before its upgrade: {wait}"),
        Some(
            wait @ (LastWait::HostsUnprepared { .. } | LastWait::HostUnderWay { .. } | LastWait::Recorded(_)),
        ) => format!("before its turn: {wait}"),
        None => "before its turn".to_owned(),
    }
}

/// What those are shown who may not see what an older version wrote of a reboot command.
pub const WITHHELD: &str = "the role operator is shown why";

/// The `detail` of a reboot command for everybody. Without `output`, it may hold what the command printed.
fn shown<'a>(detail: &'a str, output: Option<&String>) -> &'a str {
    if output.is_some() { detail } else { WITHHELD }
}

fn and_others(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " and 1 other host".to_owned(),
        count => format!(" and {count} other hosts"),
    }
}

/// Why a lock server has not released a slot. `Display` gives the clause for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum ReleaseRefusal {
    /// It refused, with a FleetLock error.
    #[error("the lock server refuses: {value} ({lock_kind})")]
    Denied {
        /// The error's `kind`, as received.
        lock_kind: String,
        /// The error's `value`, as received.
        value: String,
    },
    /// It did not answer.
    #[error("the lock server is unreachable: {why}")]
    Unreachable {
        /// Why there is no answer.
        why: NoAnswer,
    },
    /// Its answer does not follow the FleetLock protocol.
    #[error("the lock server violated the FleetLock protocol: {detail}")]
    Protocol {
        /// A description of the answer.
        detail: String,
    },
}

impl ReleaseRefusal {
    /// Whether `other` is of the same kind. Only another kind is recorded: servers may add a time or an id to each answer.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Who refused a slot, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "provider", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Denial {
    /// An embedded semaphore.
    #[error("{0} ({kind})", kind = .0.kind().as_str())]
    Embedded(HostDenied),
    /// An external lock server, with a FleetLock error.
    #[error("{value} ({lock_kind})")]
    External {
        /// The error's `kind`, as received.
        lock_kind: String,
        /// The error's `value`, as received.
        value: String,
    },
}

/// A name, quoted for a shell if necessary: any client of the bus can announce a name that operators then copy.
pub fn quoted(name: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.bytes().all(plain) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(format!("'{}'", name.replace('\'', r"'\''")))
}

/// Like [`quoted`], with a `--` before a name that looks like an option.
pub fn shell_word(name: &str) -> Cow<'_, str> {
    if name.starts_with('-') { Cow::Owned(format!("-- {}", quoted(name))) } else { quoted(name) }
}

/// The command that releases the slot of `id` in `group`, without its reason.
pub fn lock_release(group: &str, id: &str) -> String {
    format!("os-upgrade lock release --group={} --id={}", quoted(group), quoted(id))
}

/// The command that has the node of `host` uncordoned, to be copied. The name comes last, as it may look like an option.
pub fn hosts_uncordon(host: &str) -> String {
    format!("os-upgrade hosts uncordon --reason=TEXT {}", shell_word(host))
}

impl Reason {
    /// The `kind` in its JSON.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// What the operator's command printed. If an older version wrote the reason, how it ended too.
    pub fn output(&self) -> Option<&str> {
        if let Self::RebootCommandFailed { detail, output } | Self::RebootUnknown { detail, output } = self {
            Some(output.as_ref().unwrap_or(detail))
        } else {
            None
        }
    }

    /// It, as whoever may not see what the operator's command printed sees it.
    pub(crate) fn without_output(mut self) -> Self {
        if let Self::RebootCommandFailed { detail, output } | Self::RebootUnknown { detail, output } =
            &mut self
        {
            *detail = shown(detail, output.as_ref()).to_owned();
            *output = Some(String::new());
        }
        self
    }

    /// The operator who decided it, if any.
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
            | Self::Clock(_)
            | Self::Unreachable
            | Self::WorkerError { .. }
            | Self::Unhealthy { .. }
            | Self::NoReply { .. }
            | Self::BootTimeout { .. }
            | Self::NotSent { .. }
            | Self::RunFailed { .. }
            | Self::RunTimedOut { .. }
            | Self::AwaitsApproval { .. }
            | Self::DrainRefused { .. }
            | Self::DrainTimedOut { .. }
            | Self::CordonLost { .. }
            | Self::ApiServerUnderWay { .. }
            | Self::ApiServerWaits { .. }
            | Self::RebootCommandFailed { .. }
            | Self::RebootCommandNotStarted { .. }
            | Self::RebootUnknown { .. }
            | Self::ClusterUnseen => None,
        }
    }

    /// Whether it is why a drain was given up.
    pub(crate) const fn is_of_drain(&self) -> bool {
        matches!(self, Self::DrainRefused { .. } | Self::DrainTimedOut { .. } | Self::CordonLost { .. })
    }

    /// Whether the host waits for other nodes of the cluster than its own.
    pub(crate) const fn is_of_other_nodes(&self) -> bool {
        matches!(self, Self::ApiServerUnderWay { .. } | Self::ApiServerWaits { .. } | Self::ClusterUnseen)
    }

    /// Whether a slot was requested for the host, and there was none.
    pub(crate) const fn is_slot_denied(&self) -> bool {
        matches!(self, Self::SlotDenied { .. })
    }

    /// Every kind, as in the JSON.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS.iter().filter(|kind| **kind != "clock").chain(ClockDoubt::VARIANTS).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever reads a sentence or the JSON of a blocker may be a viewer.
    #[test]
    fn output_of_reboot_commands_is_told_apart() {
        let reason = |output: Option<&str>| Reason::RebootCommandFailed {
            detail: "exit status 4".to_owned(),
            output: output.map(ToOwned::to_owned),
        };
        let how = "the reboot command failed: exit status 4";
        let withheld = "the reboot command failed: the role operator is shown why";
        for (output, sentence, for_operators) in [
            (Some("hunter2"), how, "hunter2"),
            (Some(""), how, ""),
            // An older version wrote all that it knew into the detail.
            (None, withheld, "exit status 4"),
        ] {
            let reason = reason(output);
            assert_eq!((reason.to_string().as_str(), reason.output()), (sentence, Some(for_operators)));
            let public = reason.without_output();
            assert_eq!((public.to_string().as_str(), public.output()), (sentence, Some("")));
        }
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
            assert_eq!(reason.to_string(), format!("waits for approval: os-upgrade hosts approve {typed}"));
        }
    }
}
