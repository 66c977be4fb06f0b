//! Facts: the content of the journal. A fact states what has become true, never what was requested.
//!
//! Their JSON is an on-disk format. Fields and variants may be added; none may be renamed or change its meaning.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, GroupName, HostName, Reply, RunId};
use serde::{Deserialize, Serialize};
use strum::VariantNames as _;

use crate::config::difference::Difference;
use crate::config::{Config, Rollout, Settings};
use crate::left_out::is_default;
use crate::node::NodeStep;
use crate::owner::Owner;
use crate::reason::ReleaseRefusal;
use crate::reboot_queue::EntryEvent;
use crate::restoration::{Outstanding, RestoreSource};
use crate::run::{Enlisted, HostEvent, RunResult, StopCause, Trigger};
use crate::secrets::SecretName;
use crate::slot::{ClientId, ReleaseCause};
use crate::start::MissedRun;

/// Something that has become true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Fact {
    /// The leader's settings differ from those in force and replace them.
    SettingsAdopted {
        /// In force from now on.
        settings: Settings,
    },
    /// An operator replaced or deleted the configuration.
    ConfigReplaced {
        /// In force from now on; `None` when it was deleted.
        config: Option<Config>,
        actor: String,
        /// Every place at which it differs from the previous configuration.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        difference: Vec<Difference>,
    },
    /// A fence is stored in the control stream; commands from here on carry it.
    Fenced {
        /// The fence's sequence in the control stream.
        sequence: u64,
        /// The leading instance.
        leader: String,
    },
    /// The control stream has been read past the fence: every command sent under an older fence has been seen, or will
    /// never appear.
    FencePassed {
        /// The fence's sequence in the control stream.
        sequence: u64,
    },
    /// A run started, with these hosts.
    RunStarted {
        /// Its id.
        run: RunId,
        /// What started it.
        trigger: Trigger,
        /// When it ends at the latest.
        not_after: DateTime<Utc>,
        /// How the run proceeds through the hosts.
        rollout: Rollout,
        /// The hosts that take part, and those that are skipped.
        hosts: Vec<Enlisted>,
    },
    /// Every host is prepared; upgrades may begin.
    UpgradesBegan { run: RunId },
    /// No further host is started.
    RunStopping {
        run: RunId,
        /// Why it stops.
        cause: StopCause,
    },
    /// The run is over.
    RunEnded {
        run: RunId,
        /// How it ended.
        result: RunResult,
    },
    /// A run was due in an occurrence of the maintenance windows, and can no longer start in it.
    RunMissed(MissedRun),
    /// Something happened to a host of the active run.
    Host {
        run: RunId,
        host: HostName,
        /// What happened.
        event: HostEvent,
    },
    /// A host's slot is about to be requested from a lock server, so it may be held from here on.
    SlotRequested {
        host: HostName,
        group: GroupName,
        /// Who needs the slot.
        #[serde(rename = "run")]
        owner: Owner,
    },
    /// A host's slot is no longer needed and must be released at the lock server, or once more if it was in doubt.
    SlotReleaseDue {
        host: HostName,
        /// The reason for the release.
        why: ReleaseCause,
    },
    /// The lock server has not released a host's slot; it is asked again.
    SlotReleaseRefused {
        host: HostName,
        /// Why not.
        refusal: ReleaseRefusal,
    },
    /// The outcome of a request to the lock server about a host's slot is not known, so that it may still be carried out.
    SlotInDoubt { host: HostName },
    /// The lock server has released a host's slot that is in doubt. It is asked once more after a while, in case it has
    /// carried out an earlier request meanwhile.
    SlotUnlocked { host: HostName },
    /// A host's slot is free.
    SlotReleased {
        host: HostName,
        /// The reason for the release.
        why: ReleaseCause,
    },
    /// An external FleetLock client holds a slot of an embedded semaphore.
    LockGranted {
        group: GroupName,
        /// The client's FleetLock id.
        id: ClientId,
        /// Who made the request.
        actor: String,
    },
    /// An external FleetLock client was refused a slot; it is remembered as a waiter for a while.
    LockAwaited {
        group: GroupName,
        /// The client's FleetLock id.
        id: ClientId,
        /// Who made the request.
        actor: String,
    },
    /// An external FleetLock client has released its slot. In what older versions wrote, it may only have waited for one.
    LockReleased {
        group: GroupName,
        /// The client's FleetLock id.
        id: ClientId,
        /// Who made the request.
        actor: String,
    },
    /// An external FleetLock client, which holds no slot, no longer waits for one.
    LockWaitEnded {
        group: GroupName,
        /// The client's FleetLock id.
        id: ClientId,
        /// Who made the request.
        actor: String,
    },
    /// An operator holds a slot of an embedded semaphore.
    HoldPlaced {
        group: GroupName,
        /// The id under which the slot is held.
        id: ClientId,
        actor: String,
        /// Why, as the operator says.
        reason: String,
    },
    /// An operator released a slot: neither the client nor an operator holds it any more, and the client no longer waits
    /// for one. A slot held for a run is released by a separate fact.
    HolderReleased {
        group: GroupName,
        /// The id that held it.
        id: ClientId,
        actor: String,
        /// Why, as the operator says; absent when it was released because the client has left the inventory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The strongbox, which held no secrets, got a new key.
    #[serde(rename = "strongbox-made")]
    #[strum(serialize = "strongbox-made")]
    StrongboxKeySet {
        /// A value derived from the key, by which it is recognised.
        check: String,
    },
    /// A secret was stored in the strongbox.
    #[serde(rename = "secret-kept")]
    #[strum(serialize = "secret-kept")]
    SecretStored {
        /// The secret's name.
        name: SecretName,
        /// The sealed secret.
        sealed: String,
        /// Who stored it.
        actor: String,
    },
    /// A secret was removed from the strongbox.
    SecretRemoved {
        /// The secret's name.
        name: SecretName,
        /// Who removed it.
        actor: String,
    },
    /// Hosts take part in every run that starts from here on.
    HostsApproved {
        /// The hosts, by name.
        hosts: Vec<HostName>,
        /// Who approved them.
        actor: String,
    },
    /// A host no longer takes part. What follows in the active run is a separate fact.
    HostWithdrawn {
        host: HostName,
        /// Who withdrew it.
        actor: String,
        /// The operator's reason.
        reason: String,
        /// Whether the decisions about the host are forgotten, as if there had been none.
        #[serde(default, skip_serializing_if = "is_default")]
        forgotten: bool,
    },
    /// A host is gone: decisions about it, and what it has announced, are forgotten.
    HostRemoved {
        host: HostName,
        /// Who removed it.
        actor: String,
        /// The operator's reason.
        reason: String,
        /// The sequence of its last announcement; 0 if it had announced nothing.
        announced: u64,
    },
    /// What was stored of a removed host has been deleted.
    HostPurged { host: HostName },
    /// A command appeared after its host's part in the run had ended; it is to be retracted. If a slot is still held in
    /// case the command appears, it is held for this command from here on.
    LateCommandSeen {
        host: HostName,
        action: Action,
        /// The command's sequence in the control stream.
        sequence: u64,
    },
    /// An attempt was made to retract an unanswered command of an ended run, or of a host that was given up.
    CommandRetracted {
        /// The host it was sent to.
        host: HostName,
        /// The command's sequence in the control stream.
        sequence: u64,
        /// Whether it was deleted; otherwise it had already been delivered to a worker.
        deleted: bool,
    },
    /// The site was restored from data kept outside the bus: earlier leaderships no longer count, and every slot that
    /// may be held is held.
    Restored {
        /// Where the state was restored from.
        source: RestoreSource,
        /// Who restored it.
        actor: String,
        /// Whether the control stream is still the one with the commands sent before.
        control_kept: bool,
        /// Commands in the control stream without a reply.
        outstanding: Vec<Outstanding>,
    },
    /// Hosts are to reboot: an entry of the reboot queue each, in this order.
    RebootsQueued {
        hosts: Vec<HostName>,
        /// Who queued them.
        actor: String,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// When the maintenance window opened in which they were queued without an operator, because they need a reboot.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<DateTime<Utc>>,
    },
    /// Something happened to an entry of the reboot queue.
    Reboot {
        index: u64,
        host: HostName,
        /// What happened.
        event: EntryEvent,
    },
    /// From here on entries of the reboot queue start, or no longer do.
    RebootQueueSwitched {
        /// Whether they start.
        enabled: bool,
        actor: String,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Entries of the reboot queue that have backed off may start again at once.
    RebootBackoffReset { actor: String },
    /// Something happened to the Kubernetes node of a host.
    Node {
        host: HostName,
        /// What happened.
        step: NodeStep,
    },
    /// A message in the control stream changed nothing. Of the ignored replies of a host, the first of each minute is
    /// recorded.
    Ignored {
        /// The message's sequence.
        sequence: u64,
        /// The host in its subject, if any.
        host: Option<HostName>,
        /// The reply, when it could be parsed; the text of an error is left out.
        reply: Option<Reply>,
        /// Why it changed nothing.
        why: IgnoreCause,
    },
}

/// What a fact is about, as far as the fact itself contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct About<'a> {
    /// The run, or the entry of the reboot queue, to whose history it belongs.
    pub owner: OwnerRef<'a>,
    /// The host, if it is about one.
    pub host: Option<&'a HostName>,
    /// The operator or client that caused it, if any.
    pub actor: Option<&'a str>,
}

/// How to find the owner of a fact; see [`State::owner_of`](crate::State::owner_of).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OwnerRef<'a> {
    /// It has none.
    #[default]
    None,
    /// The fact names the run.
    Named(&'a RunId),
    /// The fact names whose slot it is about.
    Owner(&'a Owner),
    /// The owner of the host's slot.
    OfSlot,
    /// The run of the command at this sequence.
    OfCommand(u64),
    /// The owner of a late command, which the fact does not name: the owner of the host's slot, otherwise
    /// probably the host's latest run.
    OfLateCommand,
    /// The active run, otherwise the last one, if the host is in it.
    Latest,
}

/// Data derived from the state, which must be derived again when a fact affects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The run, without its hosts.
    Run,
    /// The list of the run's hosts.
    HostList,
    /// The host in its run.
    Host,
    /// The commands to send: there may be new ones.
    Commands,
}

impl Fact {
    /// The fact that `event` happened to `host` in `run`.
    pub fn of_host(run: &RunId, host: &HostName, event: HostEvent) -> Self {
        Self::Host { run: run.clone(), host: host.clone(), event }
    }

    /// The fact's name: the `type` in its JSON.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// Every name.
    pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
        Self::VARIANTS.iter().copied()
    }

    /// What it is about.
    pub fn about(&self) -> About<'_> {
        let none = About::default();
        let of_host = |owner, host| About { owner, host: Some(host), actor: None };
        match self {
            Self::RunStarted { run, trigger, .. } => {
                About { owner: OwnerRef::Named(run), actor: trigger.actor(), ..none }
            }
            Self::RunStopping { run, cause, .. } => {
                About { owner: OwnerRef::Named(run), actor: cause.actor(), ..none }
            }
            Self::UpgradesBegan { run } | Self::RunEnded { run, .. } => {
                About { owner: OwnerRef::Named(run), ..none }
            }
            Self::Host { run, host, event } => {
                About { actor: event.actor(), ..of_host(OwnerRef::Named(run), host) }
            }
            Self::SlotRequested { host, owner, .. } => of_host(OwnerRef::Owner(owner), host),
            Self::SlotReleaseDue { host, .. }
            | Self::SlotReleaseRefused { host, .. }
            | Self::SlotInDoubt { host }
            | Self::SlotUnlocked { host }
            | Self::SlotReleased { host, .. } => of_host(OwnerRef::OfSlot, host),
            Self::LateCommandSeen { host, .. } => of_host(OwnerRef::OfLateCommand, host),
            Self::CommandRetracted { host, sequence, .. } => of_host(OwnerRef::OfCommand(*sequence), host),
            Self::Ignored { host, .. } => About { owner: OwnerRef::Latest, host: host.as_ref(), actor: None },
            Self::HostPurged { host } => of_host(OwnerRef::None, host),
            Self::Node { host, step } => About { actor: step.actor(), ..of_host(OwnerRef::OfSlot, host) },
            Self::Reboot { host, event, .. } => {
                About { actor: event.actor(), ..of_host(OwnerRef::None, host) }
            }
            Self::HostWithdrawn { host, actor, .. } | Self::HostRemoved { host, actor, .. } => {
                About { actor: Some(actor), ..of_host(OwnerRef::None, host) }
            }
            Self::ConfigReplaced { actor, .. }
            | Self::LockGranted { actor, .. }
            | Self::LockAwaited { actor, .. }
            | Self::LockReleased { actor, .. }
            | Self::LockWaitEnded { actor, .. }
            | Self::HoldPlaced { actor, .. }
            | Self::HolderReleased { actor, .. }
            | Self::SecretStored { actor, .. }
            | Self::SecretRemoved { actor, .. }
            | Self::HostsApproved { actor, .. }
            | Self::RebootsQueued { actor, .. }
            | Self::RebootQueueSwitched { actor, .. }
            | Self::RebootBackoffReset { actor }
            | Self::Restored { actor, .. } => About { actor: Some(actor), ..none },
            Self::SettingsAdopted { .. }
            | Self::Fenced { .. }
            | Self::FencePassed { .. }
            | Self::RunMissed(_)
            | Self::StrongboxKeySet { .. } => none,
        }
    }

    /// Whether `part` must be derived again after this fact.
    pub fn affects(&self, part: Part) -> bool {
        let parts: &[Part] = match self {
            Self::RunStarted { .. } => &[Part::Run, Part::HostList, Part::Commands],
            Self::UpgradesBegan { .. } | Self::RunStopping { .. } | Self::RunEnded { .. } => &[Part::Run],
            Self::Host {
                event: HostEvent::SlotGranted { .. } | HostEvent::Drained | HostEvent::RebootRequired,
                ..
            }
            | Self::Node { .. } => &[Part::Host, Part::Commands],
            Self::Host { .. } => &[Part::Host],
            Self::FencePassed { .. } | Self::Reboot { .. } => &[Part::Commands],
            Self::SettingsAdopted { .. }
            | Self::ConfigReplaced { .. }
            | Self::Fenced { .. }
            | Self::RunMissed(_)
            | Self::SlotRequested { .. }
            | Self::SlotReleaseDue { .. }
            | Self::SlotReleaseRefused { .. }
            | Self::SlotInDoubt { .. }
            | Self::SlotUnlocked { .. }
            | Self::SlotReleased { .. }
            | Self::LockGranted { .. }
            | Self::LockAwaited { .. }
            | Self::LockReleased { .. }
            | Self::LockWaitEnded { .. }
            | Self::HoldPlaced { .. }
            | Self::HolderReleased { .. }
            | Self::StrongboxKeySet { .. }
            | Self::SecretStored { .. }
            | Self::SecretRemoved { .. }
            | Self::HostsApproved { .. }
            | Self::HostWithdrawn { .. }
            | Self::HostRemoved { .. }
            | Self::HostPurged { .. }
            | Self::RebootsQueued { .. }
            | Self::RebootQueueSwitched { .. }
            | Self::RebootBackoffReset { .. }
            | Self::Restored { .. }
            | Self::LateCommandSeen { .. }
            | Self::CommandRetracted { .. }
            | Self::Ignored { .. } => &[],
        };
        parts.contains(&part)
    }
}

/// Why a message in the control stream changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum IgnoreCause {
    /// It could not be parsed.
    Malformed {
        /// The parse error.
        detail: String,
    },
    /// Its subject is not one of the protocol's.
    UnknownSubject {
        /// That subject.
        subject: String,
    },
    /// A reply to no command that is outstanding for its host.
    NothingOutstanding,
    /// A reply to the `upgrade` or `reboot` of a host whose part in the run had ended without one.
    TooLate { run: RunId },
    /// A further reply to a command that has been answered.
    AlreadyAnswered,
    /// A command that this site has not decided.
    ForeignCommand,
}

impl IgnoreCause {
    /// Whether the message was a reply.
    pub(crate) fn is_of_reply(&self) -> bool {
        match self {
            Self::Malformed { .. }
            | Self::NothingOutstanding
            | Self::TooLate { .. }
            | Self::AlreadyAnswered => true,
            Self::UnknownSubject { .. } | Self::ForeignCommand => false,
        }
    }
}

/// `facts`, if there are any.
pub(crate) fn non_empty(facts: Vec<Fact>) -> Option<Vec<Fact>> {
    (!facts.is_empty()).then_some(facts)
}
