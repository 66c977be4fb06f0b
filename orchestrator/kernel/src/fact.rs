//! Facts: what the journal keeps. Each says what has become true, never what somebody asked for.
//!
//! Their JSON is a format on disk. A field or a variant may be added; none may be renamed or given another meaning.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, GroupName, HostName, Reply, RunId};
use serde::{Deserialize, Serialize};

use crate::client_id::ClientId;
use crate::config::difference::Difference;
use crate::config::{Config, Rollout, Settings, is_false};
use crate::reason::Reason;
use crate::restored::{Outstanding, RestoreSource};
use crate::run::{Enlisted, HostEvent, RunResult, StopCause, Trigger};
use crate::slot::ReleaseCause;
use crate::strongbox::SecretName;

/// Something that has become true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Fact {
    /// The leader's own settings, when they differ from those in force.
    SettingsAdopted {
        /// In force from now on.
        settings: Settings,
    },
    /// An operator's configuration.
    ConfigReplaced {
        /// In force from now on; `None` when it was deleted.
        config: Option<Config>,
        /// Who did it.
        actor: String,
        /// What it changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        difference: Vec<Difference>,
    },
    /// A fence stands in the control stream; commands from here on carry it.
    Fenced {
        /// Its sequence.
        sequence: u64,
        /// The instance that leads.
        leader: String,
    },
    /// The fence has been read past: every command sent under an older fence has been seen, or never will be.
    FencePassed {
        /// Its sequence.
        sequence: u64,
    },
    /// A run, with all its hosts.
    RunStarted {
        /// Its id.
        run: RunId,
        /// What started it.
        trigger: Trigger,
        /// When it ends at the latest.
        not_after: DateTime<Utc>,
        /// How it goes through the hosts.
        rollout: Rollout,
        /// Who takes part, and who would but does not.
        hosts: Vec<Enlisted>,
    },
    /// Every host is prepared; upgrades may begin.
    UpgradesBegan {
        /// The run.
        run: RunId,
    },
    /// No further host is started.
    RunStopping {
        /// The run.
        run: RunId,
        /// Why.
        cause: StopCause,
    },
    /// The run is over.
    RunEnded {
        /// The run.
        run: RunId,
        /// How it went.
        result: RunResult,
    },
    /// Something happened to a host of the active run.
    Host {
        /// The run.
        run: RunId,
        /// The host.
        host: HostName,
        /// What happened.
        event: HostEvent,
    },
    /// A host's slot is about to be asked for at a lock server, so it may be held from here on.
    SlotRequested {
        /// The host.
        host: HostName,
        /// Its group.
        group: GroupName,
        /// The run on whose behalf.
        run: RunId,
    },
    /// A host's slot is no longer needed and has to be given back to the lock server.
    SlotReleaseDue {
        /// The host.
        host: HostName,
        /// Why.
        why: ReleaseCause,
    },
    /// A host's slot is free.
    SlotReleased {
        /// The host.
        host: HostName,
        /// Why.
        why: ReleaseCause,
    },
    /// A FleetLock client from outside holds a slot of an embedded semaphore.
    LockGranted {
        /// The group.
        group: GroupName,
        /// The client, as it calls itself.
        id: ClientId,
        /// Who asked.
        actor: String,
    },
    /// A FleetLock client from outside was refused a slot, and is remembered for a while.
    LockAwaited {
        /// The group.
        group: GroupName,
        /// The client, as it calls itself.
        id: ClientId,
        /// Who asked.
        actor: String,
    },
    /// A FleetLock client from outside has given its slot back, or waits for none any more.
    LockReleased {
        /// The group.
        group: GroupName,
        /// The client, as it calls itself.
        id: ClientId,
        /// Who asked.
        actor: String,
    },
    /// An operator wants a slot of an embedded semaphore held.
    HoldPlaced {
        /// The group.
        group: GroupName,
        /// In whose name.
        id: ClientId,
        /// Who wants it.
        actor: String,
        /// Why.
        reason: String,
    },
    /// An operator has taken a slot back: neither the client nor an operator holds it any more, nor waits the client for
    /// one. What a run holds is released by a fact of its own.
    HolderReleased {
        /// The group.
        group: GroupName,
        /// Who held it.
        id: ClientId,
        /// Who took it back.
        actor: String,
        /// Why, as the operator says; absent where the client has left the inventory, and that was reason enough.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The strongbox has another key; it held nothing.
    StrongboxMade {
        /// Made of it.
        check: String,
    },
    /// A secret is kept in the strongbox.
    SecretKept {
        /// What it is called.
        name: SecretName,
        /// Sealed.
        sealed: String,
        /// Who has it kept.
        actor: String,
    },
    /// A secret is kept no longer.
    SecretRemoved {
        /// What it was called.
        name: SecretName,
        /// Who has it removed.
        actor: String,
    },
    /// Hosts take part in every run that starts from here on.
    HostsApproved {
        /// The hosts, by name.
        hosts: Vec<HostName>,
        /// Who approved them.
        actor: String,
    },
    /// A host takes no part any more. What that means in the active run is said by a fact of its own.
    HostWithdrawn {
        /// The host.
        host: HostName,
        /// Who withdrew it.
        actor: String,
        /// Why.
        reason: String,
        /// Whether it is from here on as if nothing had ever been decided about it.
        #[serde(default, skip_serializing_if = "is_false")]
        forgotten: bool,
    },
    /// A command appeared though its host's part in its run was over; it is to be retracted, and if a slot is still
    /// held in case it appears, it is held for it from here on.
    LateCommandSeen {
        /// The host.
        host: HostName,
        /// What it asks.
        action: Action,
        /// Its sequence.
        sequence: u64,
    },
    /// A command of an ended run, or of a host that was given up, that had not been answered was looked at.
    CommandRetracted {
        /// The host it was sent to.
        host: HostName,
        /// Its sequence.
        sequence: u64,
        /// Whether it was deleted; otherwise a worker has been given it.
        deleted: bool,
    },
    /// The site goes on from what was kept outside the bus: nothing of an earlier leadership counts any more, and
    /// whatever may hold a slot holds it.
    Restored {
        /// From what.
        source: RestoreSource,
        /// Who did it.
        actor: String,
        /// Whether the control stream is still the one that held the commands sent before.
        control_kept: bool,
        /// Commands in it that no reply has answered.
        outstanding: Vec<Outstanding>,
    },
    /// A message on the control stream that changes nothing, and why not.
    Ignored {
        /// Its sequence.
        sequence: u64,
        /// The host its subject names, if it names one.
        host: Option<HostName>,
        /// The reply, when it could be read.
        reply: Option<Reply>,
        /// Why it changes nothing.
        why: IgnoreCause,
    },
}

/// What a fact is about, as far as it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Subject<'a> {
    /// The run in whose history it belongs.
    pub run: RunRef<'a>,
    /// The host.
    pub host: Option<&'a HostName>,
    /// Who caused it, where somebody did.
    pub actor: Option<&'a str>,
}

/// How the run of a fact is found; [`State::run_of`](crate::State::run_of) finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunRef<'a> {
    /// It is about none.
    #[default]
    None,
    /// The fact names it.
    Named(&'a RunId),
    /// The one for which the host's slot is held.
    OfSlot,
    /// The one whose command at this sequence it is about.
    OfCommand(u64),
    /// The one whose command was seen too late. The fact does not say which that is: it is the one for which the host's slot
    /// is held, or else probably the host's latest.
    OfLateCommand,
    /// The active one, if the host is in it.
    Active,
}

/// Something that is derived from the state, and has to be derived anew when a fact affects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The run itself, without its hosts.
    Run,
    /// The list of the run's hosts.
    HostList,
    /// The host in its run.
    Host,
    /// The commands that are to be sent: there may be further ones.
    Commands,
}

/// How much a fact says to an operator who is told of a few only, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Importance {
    /// How a run goes, or what is in force on the whole site.
    Site,
    /// What became of a host, or what an operator decided about one.
    Outcome,
    /// A step on a host's way, or of a client.
    Step,
    /// A command and its answer.
    Command,
    /// Bookkeeping, which tells an operator nothing.
    Bookkeeping,
}

impl Fact {
    /// That `event` happened to `host` in `run`.
    pub fn of_host(run: &RunId, host: &HostName, event: HostEvent) -> Self {
        Self::Host { run: run.clone(), host: host.clone(), event }
    }

    /// The fact's name: the `type` in its JSON.
    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// What it is about.
    pub fn subject(&self) -> Subject<'_> {
        let none = Subject::default();
        let of_host = |run, host| Subject { run, host: Some(host), actor: None };
        match self {
            Self::RunStarted { run, trigger, .. } => {
                Subject { run: RunRef::Named(run), actor: trigger.actor(), ..none }
            }
            Self::RunStopping { run, cause, .. } => {
                Subject { run: RunRef::Named(run), actor: cause.actor(), ..none }
            }
            Self::UpgradesBegan { run } | Self::RunEnded { run, .. } => {
                Subject { run: RunRef::Named(run), ..none }
            }
            Self::Host { run, host, event } => {
                Subject { actor: event.actor(), ..of_host(RunRef::Named(run), host) }
            }
            Self::SlotRequested { host, run, .. } => of_host(RunRef::Named(run), host),
            Self::SlotReleaseDue { host, .. } | Self::SlotReleased { host, .. } => {
                of_host(RunRef::OfSlot, host)
            }
            Self::LateCommandSeen { host, .. } => of_host(RunRef::OfLateCommand, host),
            Self::CommandRetracted { host, sequence, .. } => of_host(RunRef::OfCommand(*sequence), host),
            Self::Ignored { host, .. } => Subject { run: RunRef::Active, host: host.as_ref(), actor: None },
            Self::HostWithdrawn { host, actor, .. } => {
                Subject { actor: Some(actor), ..of_host(RunRef::None, host) }
            }
            Self::ConfigReplaced { actor, .. }
            | Self::LockGranted { actor, .. }
            | Self::LockAwaited { actor, .. }
            | Self::LockReleased { actor, .. }
            | Self::HoldPlaced { actor, .. }
            | Self::HolderReleased { actor, .. }
            | Self::SecretKept { actor, .. }
            | Self::SecretRemoved { actor, .. }
            | Self::HostsApproved { actor, .. }
            | Self::Restored { actor, .. } => Subject { actor: Some(actor), ..none },
            Self::SettingsAdopted { .. }
            | Self::Fenced { .. }
            | Self::FencePassed { .. }
            | Self::StrongboxMade { .. } => none,
        }
    }

    /// Whether `part` of what is derived from the state has to be derived anew.
    pub fn affects(&self, part: Part) -> bool {
        let parts: &[Part] = match self {
            Self::RunStarted { .. } => &[Part::Run, Part::HostList, Part::Commands],
            Self::UpgradesBegan { .. } | Self::RunStopping { .. } | Self::RunEnded { .. } => &[Part::Run],
            Self::Host { event: HostEvent::SlotGranted { .. } | HostEvent::RebootRequired, .. } => {
                &[Part::Host, Part::Commands]
            }
            Self::Host { .. } => &[Part::Host],
            Self::FencePassed { .. } => &[Part::Commands],
            Self::SettingsAdopted { .. }
            | Self::ConfigReplaced { .. }
            | Self::Fenced { .. }
            | Self::SlotRequested { .. }
            | Self::SlotReleaseDue { .. }
            | Self::SlotReleased { .. }
            | Self::LockGranted { .. }
            | Self::LockAwaited { .. }
            | Self::LockReleased { .. }
            | Self::HoldPlaced { .. }
            | Self::HolderReleased { .. }
            | Self::StrongboxMade { .. }
            | Self::SecretKept { .. }
            | Self::SecretRemoved { .. }
            | Self::HostsApproved { .. }
            | Self::HostWithdrawn { .. }
            | Self::Restored { .. }
            | Self::LateCommandSeen { .. }
            | Self::CommandRetracted { .. }
            | Self::Ignored { .. } => &[],
        };
        parts.contains(&part)
    }

    /// The fact in a few words, and how much they say.
    pub fn summary(&self) -> (Importance, String) {
        use Importance::{Bookkeeping, Command, Outcome, Site, Step};
        match self {
            Self::SettingsAdopted { .. } => (Site, "settings adopted".to_owned()),
            Self::ConfigReplaced { actor, .. } => (Site, format!("configuration changed by {actor}")),
            Self::RunStarted { run, trigger, .. } => (
                Site,
                format!("run {run} started by {}", trigger.actor().unwrap_or("its maintenance window")),
            ),
            Self::RunStopping { run, cause } => (
                Site,
                match cause {
                    StopCause::Failed { host } => format!("run {run} stopped because {host} failed"),
                    StopCause::Cancelled { actor } => format!("run {run} cancelled by {actor}"),
                    StopCause::Restored { actor } => format!("run {run} given up by {actor}"),
                },
            ),
            Self::RunEnded { run, result } => (Site, format!("run {run} ended {}", result.as_str())),
            Self::Restored { source, actor, .. } => {
                (Site, format!("site restored from a {} by {actor}", source.as_str()))
            }
            Self::Host { host, event, .. } => match event {
                HostEvent::TimedOut { reason: Reason::GivenUp { actor, .. } }
                | HostEvent::Cancelled { reason: Reason::GivenUp { actor, .. } } => {
                    (Outcome, format!("{host} given up by {actor}"))
                }
                HostEvent::Upgraded => (Outcome, format!("{host} upgraded")),
                HostEvent::Failed { .. } => (Outcome, format!("{host} failed")),
                HostEvent::TimedOut { .. } => (Outcome, format!("{host} timed out")),
                HostEvent::SlotGranted { .. } => (Step, format!("{host} got its slot")),
                HostEvent::RebootRequired => (Step, format!("{host} asked for a reboot")),
                HostEvent::Cancelled { .. } => (Step, format!("{host} cancelled")),
                HostEvent::CommandSent { action, .. } => {
                    (Command, format!("{} sent to {host}", action.as_str()))
                }
                HostEvent::Prepared => (Command, format!("{host} prepared")),
                HostEvent::Waiting { .. } => (Bookkeeping, format!("{host} waits")),
                HostEvent::TurnLost => (Bookkeeping, format!("{host} lost its turn")),
            },
            Self::HoldPlaced { id, actor, .. } => (Outcome, format!("slot held for {id} by {actor}")),
            Self::HolderReleased { id, actor, reason: Some(_), .. } => {
                (Outcome, format!("slot of {id} released by {actor}"))
            }
            Self::HolderReleased { id, actor, reason: None, .. } => {
                (Outcome, format!("slot of {id}, which has left the inventory, released by {actor}"))
            }
            Self::SecretKept { name, actor, .. } => (Outcome, format!("secret {name} kept by {actor}")),
            Self::SecretRemoved { name, actor } => (Outcome, format!("secret {name} removed by {actor}")),
            Self::HostsApproved { hosts, actor } => {
                let named = hosts.first().map(HostName::as_str).unwrap_or_default();
                let more = match hosts.len() {
                    0 | 1 => String::new(),
                    all => format!(" and {} more", all - 1),
                };
                (Outcome, format!("{named}{more} approved by {actor}"))
            }
            Self::HostWithdrawn { host, actor, .. } => (Outcome, format!("{host} withdrawn by {actor}")),
            Self::SlotReleased { host, .. } => (Step, format!("slot of {host} released")),
            Self::SlotRequested { host, .. } => (Step, format!("slot of {host} asked for")),
            Self::LateCommandSeen { host, .. } => (Step, format!("late command of {host} seen")),
            Self::LockGranted { id, .. } => (Step, format!("slot granted to {id}")),
            Self::LockReleased { id, .. } => (Step, format!("slot of {id} given back")),
            Self::LockAwaited { id, .. } => (Bookkeeping, format!("slot awaited by {id}")),
            Self::SlotReleaseDue { host, .. } => (Bookkeeping, format!("slot of {host} to be given back")),
            Self::UpgradesBegan { run } => (Bookkeeping, format!("upgrades of {run} began")),
            Self::StrongboxMade { .. } => (Bookkeeping, "strongbox has another key".to_owned()),
            Self::Fenced { sequence, leader } => (Bookkeeping, format!("fence {sequence} of {leader}")),
            Self::FencePassed { sequence } => (Bookkeeping, format!("fence {sequence} passed")),
            Self::CommandRetracted { host, sequence, deleted } => {
                let what = if *deleted { "deleted" } else { "in its worker's hands" };
                (Bookkeeping, format!("command {sequence} of {host} {what}"))
            }
            Self::Ignored { sequence, .. } => (Bookkeeping, format!("message {sequence} ignored")),
        }
    }
}

/// Why a message on the control stream changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum IgnoreCause {
    /// It could not be read.
    Malformed {
        /// What is wrong with it.
        detail: String,
    },
    /// Its subject is not one of the protocol's.
    UnknownSubject {
        /// That subject.
        subject: String,
    },
    /// A reply to no command that is outstanding for its host.
    NothingOutstanding,
    /// A further reply to a command that has been answered.
    AlreadyAnswered,
    /// A command that nobody here has decided.
    ForeignCommand,
}
