//! Why a host waits or did not succeed: typed, because it is journaled, and shown in several places.

use os_upgrade_calendar::Duration;
use os_upgrade_protocol::{Action, GroupName, HostName};
use os_upgrade_provider_rules::ProviderName;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::clock::ClockDoubt;
use crate::desired::ConfigurationWait;
use crate::left_out::is_default;
use crate::no_answer::NoAnswer;
use crate::node::{NodeWait, Pods};
use crate::pause::PauseCause;
use crate::slot::HostDenied;

/// Why a host waits, was skipped or did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Reason {
    /// A slot has been requested and the answer is not known yet.
    AskingForSlot {
        /// The group of the requested slot.
        group: GroupName,
    },
    /// The slot was refused.
    SlotDenied {
        /// The group of the requested slot.
        group: GroupName,
        /// Who refused it, and why.
        denial: Denial,
    },
    /// The lock server did not answer.
    SlotUnreachable {
        /// The group of the requested slot.
        group: GroupName,
        /// Why there is no answer.
        why: NoAnswer,
    },
    /// The lock server's answer does not follow the FleetLock protocol.
    SlotProtocol {
        /// The group of the requested slot.
        group: GroupName,
        /// A description of the answer.
        detail: String,
    },
    /// No heartbeat had arrived for too long when the run started.
    Unreachable,
    /// The worker answered with an error.
    WorkerError {
        /// The action of the failed command.
        action: Action,
        /// The worker's error message.
        message: String,
    },
    /// The worker answered that the host is not healthy after its reboot.
    Unhealthy {
        /// Why, as the worker says.
        message: String,
    },
    /// The worker had not answered when the run's `not-after` passed.
    NoReply {
        /// The action of the unanswered command.
        action: Action,
        /// Whether its heartbeats were missing then.
        #[serde(default, skip_serializing_if = "is_default")]
        unreachable: bool,
    },
    /// The worker had not answered `prepare` within the rollout's `prepare-timeout`.
    PrepareTimeout {
        /// The `prepare-timeout`.
        after: Duration,
    },
    /// The worker had not answered `upgrade` within the rollout's `upgrade-timeout`, and its host was not through when the run ended.
    UpgradeTimeout {
        /// The `upgrade-timeout`.
        after: Duration,
    },
    /// The worker had not answered `reboot` within the rollout's `boot-timeout`.
    BootTimeout {
        /// The `boot-timeout`.
        after: Duration,
    },
    /// An operator gave the host up: the run continues without it.
    GivenUp {
        actor: String,
        /// Why, as the operator says.
        reason: String,
    },
    /// The command had not been seen in the control stream when the run's `not-after` passed.
    NotSent {
        /// The action of the unsent command.
        action: Action,
    },
    /// Another host's failure ended the run.
    RunFailed {
        /// The other host.
        host: HostName,
    },
    /// An operator cancelled the run.
    RunCancelled {
        actor: String,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The run's `not-after` passed before this host was upgraded.
    RunTimedOut {
        /// What the host was waiting for then; absent if its turn was about to come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited_for: Option<LastWait>,
    },
    /// Less was left of the run than a host takes, before this host was upgraded.
    NoTimeLeft {
        /// How long a host takes: the rollout's `expected-duration`.
        expected: Duration,
        /// What the host was waiting for then; absent if its turn was about to come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waited_for: Option<LastWait>,
    },
    /// The site was restored, so the state of the host is not known.
    Restored {
        /// Who restored it.
        actor: String,
    },
    /// The host has not been approved.
    AwaitsApproval { host: HostName },
    /// An operator withdrew the host.
    HostWithdrawn {
        actor: String,
        /// Why, as the operator says.
        reason: String,
    },
    /// An operator deferred the host.
    HostDeferred {
        actor: String,
        /// Why, as the operator says.
        reason: String,
    },
    /// A dry run of the drain was refused, so that nothing was evicted.
    DrainRefused {
        /// The pods that would have to stay.
        pods: Pods,
    },
    /// Its node was not drained within `drain-timeout`.
    DrainTimedOut {
        /// The `drain-timeout`.
        after: Duration,
        /// What the drain waited for at last, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits: Option<NodeWait>,
    },
    /// Somebody else changed the cordon of its node during the drain.
    CordonLost {
        /// What was found.
        detail: String,
    },
    /// The mark of its node is of a journal that this site does not have, so its drain was given up.
    ForeignMark,
    /// A host whose node is an API server of the cluster is under way, and no other node is drained beside it.
    ApiServerUnderWay {
        /// That host.
        host: HostName,
    },
    /// Its node is an API server of the cluster, and no other node may be under way beside it.
    ApiServerWaits {
        /// A host under way.
        host: HostName,
    },
    /// The operator's command failed, so that the host was not rebooted.
    RebootCommandFailed {
        /// How it ended.
        detail: String,
        /// The end of what it printed, which may hold secrets: for operators, and not in its sentence.
        output: String,
    },
    /// The operator's command could not be started, so that nothing was run.
    RebootCommandNotStarted {
        /// Why not.
        detail: String,
    },
    /// Whether the operator's command has rebooted the host is not known.
    RebootUnknown {
        /// Why not.
        detail: String,
        /// The end of what it printed, as above; empty also if its end is not known.
        output: String,
    },
    /// It lacks what a required provider says that it is to have.
    ConfigurationMissing {
        provider: ProviderName,
        #[serde(flatten)]
        wait: ConfigurationWait,
    },
    /// The cluster's nodes are not known.
    ClusterUnseen,
    /// The site is paused.
    Paused(PauseCause),
    /// The orchestrator's clock cannot be relied on.
    #[serde(untagged)]
    #[strum(transparent)]
    Clock(ClockDoubt),
}

impl From<ClockDoubt> for Reason {
    fn from(doubt: ClockDoubt) -> Self {
        Self::Clock(doubt)
    }
}

/// What a host was waiting for when its run ended before its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum LastWait {
    /// Hosts that had not answered `prepare`; no upgrade begins before all have.
    HostsUnprepared {
        /// The first of them.
        host: HostName,
        /// How many others there were.
        #[serde(default, skip_serializing_if = "is_default")]
        others: usize,
    },
    /// Its turn to be prepared: as many hosts were being prepared, or were prepared and had not begun, as the rollout allows.
    HostsPreparing {
        /// How many those were.
        hosts: usize,
    },
    /// As many hosts were under way as the rollout allows.
    HostUnderWay {
        /// The first of them.
        host: HostName,
        /// How many others there were.
        #[serde(default, skip_serializing_if = "is_default")]
        others: usize,
    },
    /// The drain of its own node.
    NodeUndrained {
        /// What the drain waited for, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits: Option<NodeWait>,
    },
    /// What was recorded for it, or for the host of its group whose turn it was.
    #[serde(untagged)]
    Recorded(Box<Reason>),
}

/// Why a lock server has not granted or released a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum LockRefusal {
    /// It refused, with a FleetLock error.
    Denied {
        /// The error's `kind`, as received.
        lock_kind: String,
        /// The error's `value`, as received.
        value: String,
    },
    /// It did not answer.
    Unreachable {
        /// Why there is no answer.
        why: NoAnswer,
    },
    /// Its answer does not follow the FleetLock protocol.
    Protocol {
        /// A description of the answer.
        detail: String,
    },
}

impl LockRefusal {
    /// Whether `other` is of the same kind. Of refused releases only another kind is recorded: they are asked for until they succeed, and
    /// servers may add a time or an id to each answer.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Why a host waits whose slot of `group` was not granted because of it.
    pub(crate) fn reason(&self, group: &GroupName) -> Reason {
        let group = group.clone();
        match self.clone() {
            Self::Denied { lock_kind, value } => {
                Reason::SlotDenied { group, denial: Denial::External { lock_kind, value } }
            }
            Self::Unreachable { why } => Reason::SlotUnreachable { group, why },
            Self::Protocol { detail } => Reason::SlotProtocol { group, detail },
        }
    }
}

/// Who refused a slot, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "provider", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Denial {
    /// An embedded semaphore.
    Embedded(HostDenied),
    /// An external lock server, with a FleetLock error.
    External {
        /// The error's `kind`, as received.
        lock_kind: String,
        /// The error's `value`, as received.
        value: String,
    },
}

impl Reason {
    /// The `kind` in its JSON.
    pub fn kind(&self) -> &'static str {
        self.into()
    }

    /// What the operator's command printed.
    pub fn output(&self) -> Option<&str> {
        if let Self::RebootCommandFailed { output, .. } | Self::RebootUnknown { output, .. } = self {
            Some(output)
        } else {
            None
        }
    }

    /// Takes away what the operator's command printed: not everybody may see that.
    pub(crate) fn strip_output(&mut self) {
        if let Self::RebootCommandFailed { output, .. } | Self::RebootUnknown { output, .. } = self {
            output.clear();
        }
    }

    /// The operator who decided it, if any.
    pub fn actor(&self) -> Option<&str> {
        match self {
            Self::GivenUp { actor, .. }
            | Self::RunCancelled { actor, .. }
            | Self::Restored { actor }
            | Self::HostWithdrawn { actor, .. }
            | Self::HostDeferred { actor, .. } => Some(actor),
            Self::AskingForSlot { .. }
            | Self::SlotDenied { .. }
            | Self::SlotUnreachable { .. }
            | Self::SlotProtocol { .. }
            | Self::Clock(_)
            | Self::Unreachable
            | Self::WorkerError { .. }
            | Self::Unhealthy { .. }
            | Self::NoReply { .. }
            | Self::PrepareTimeout { .. }
            | Self::UpgradeTimeout { .. }
            | Self::BootTimeout { .. }
            | Self::NotSent { .. }
            | Self::RunFailed { .. }
            | Self::RunTimedOut { .. }
            | Self::NoTimeLeft { .. }
            | Self::AwaitsApproval { .. }
            | Self::DrainRefused { .. }
            | Self::DrainTimedOut { .. }
            | Self::CordonLost { .. }
            | Self::ForeignMark
            | Self::ApiServerUnderWay { .. }
            | Self::ApiServerWaits { .. }
            | Self::RebootCommandFailed { .. }
            | Self::RebootCommandNotStarted { .. }
            | Self::RebootUnknown { .. }
            | Self::ConfigurationMissing { .. }
            | Self::ClusterUnseen
            | Self::Paused(_) => None,
        }
    }

    /// Whether it is why a drain was given up.
    pub const fn is_of_drain(&self) -> bool {
        matches!(
            self,
            Self::DrainRefused { .. }
                | Self::DrainTimedOut { .. }
                | Self::CordonLost { .. }
                | Self::ForeignMark
        )
    }

    /// Every kind, as in the JSON.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS.iter().filter(|kind| **kind != "clock").chain(ClockDoubt::VARIANTS).copied()
    }
}
