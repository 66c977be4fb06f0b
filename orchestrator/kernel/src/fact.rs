//! Facts: what the journal keeps. Each says what has become true, never what somebody asked for.
//!
//! Their JSON is a format on disk. A field or a variant may be added; none may be renamed or given another meaning.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, GroupName, HostName, Reply, RunId};
use serde::{Deserialize, Serialize};

use crate::client_id::ClientId;
use crate::config::{Config, Difference, Rollout, Settings, is_false};
use crate::restoration::{Outstanding, RestoreSource};
use crate::run::{Enlisted, HostEvent, RunResult, StopCause, Trigger};
use crate::strongbox::SecretName;

/// Something that has become true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
        /// Who asked. Older journals do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// A FleetLock client from outside was refused a slot, and is remembered for a while.
    LockAwaited {
        /// The group.
        group: GroupName,
        /// The client, as it calls itself.
        id: ClientId,
        /// Who asked. Older journals do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// A FleetLock client from outside has given its slot back, or waits for none any more.
    LockReleased {
        /// The group.
        group: GroupName,
        /// The client, as it calls itself.
        id: ClientId,
        /// Who asked. Older journals do not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
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
        /// Why.
        reason: String,
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
    /// A command appeared though its host's part in its run was over; it is to be withdrawn, and if a slot is still
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
    Withdrawn {
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

impl Fact {
    /// The fact's name: the `type` in its JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SettingsAdopted { .. } => "settings-adopted",
            Self::ConfigReplaced { .. } => "config-replaced",
            Self::Fenced { .. } => "fenced",
            Self::FencePassed { .. } => "fence-passed",
            Self::RunStarted { .. } => "run-started",
            Self::UpgradesBegan { .. } => "upgrades-began",
            Self::RunStopping { .. } => "run-stopping",
            Self::RunEnded { .. } => "run-ended",
            Self::Host { .. } => "host",
            Self::SlotRequested { .. } => "slot-requested",
            Self::SlotReleaseDue { .. } => "slot-release-due",
            Self::SlotReleased { .. } => "slot-released",
            Self::LockGranted { .. } => "lock-granted",
            Self::LockAwaited { .. } => "lock-awaited",
            Self::LockReleased { .. } => "lock-released",
            Self::HoldPlaced { .. } => "hold-placed",
            Self::HolderReleased { .. } => "holder-released",
            Self::StrongboxMade { .. } => "strongbox-made",
            Self::SecretKept { .. } => "secret-kept",
            Self::SecretRemoved { .. } => "secret-removed",
            Self::HostsApproved { .. } => "hosts-approved",
            Self::HostWithdrawn { .. } => "host-withdrawn",
            Self::LateCommandSeen { .. } => "late-command-seen",
            Self::Withdrawn { .. } => "withdrawn",
            Self::Restored { .. } => "restored",
            Self::Ignored { .. } => "ignored",
        }
    }
}

/// Why a slot is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReleaseCause {
    /// The host is through.
    Upgraded,
    /// The host failed or fell silent, and the setting says to release.
    Failed,
    /// The command for which it was taken was never sent.
    NeverSent,
    /// It was asked for and is not needed any more.
    NotNeeded,
    /// `done` came at last, after the host had been given up.
    LateDone,
    /// An operator said so.
    Operator,
}

impl Fact {
    /// That `event` happened to `host` in `run`.
    pub fn of_host(run: &RunId, host: &HostName, event: HostEvent) -> Self {
        Self::Host { run: run.clone(), host: host.clone(), event }
    }
}

impl ReleaseCause {
    /// The word in the history.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Upgraded => "upgraded",
            Self::Failed => "failed",
            Self::NeverSent => "never-sent",
            Self::NotNeeded => "not-needed",
            Self::LateDone => "late-done",
            Self::Operator => "operator",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_facts_name_is_the_type_in_its_json() {
        let host = HostName::new("h01").unwrap();
        let group = GroupName::new("default").unwrap();
        let id = ClientId::new("node-7").unwrap();
        let run = RunId::new("r1").unwrap();
        let secret = SecretName::new("lock-server").unwrap();
        let why = ReleaseCause::Upgraded;
        let facts = [
            Fact::SettingsAdopted { settings: Settings::default() },
            Fact::ConfigReplaced { config: None, actor: "api".to_owned(), difference: Vec::new() },
            Fact::Fenced { sequence: 1, leader: "a".to_owned() },
            Fact::FencePassed { sequence: 1 },
            Fact::RunStarted {
                run: run.clone(),
                trigger: Trigger::Operator { actor: "api".to_owned() },
                not_after: DateTime::UNIX_EPOCH,
                rollout: Rollout::default(),
                hosts: Vec::new(),
            },
            Fact::UpgradesBegan { run: run.clone() },
            Fact::RunStopping { run: run.clone(), cause: StopCause::Failed { host: host.clone() } },
            Fact::RunEnded { run: run.clone(), result: RunResult::Completed },
            Fact::Host { run: run.clone(), host: host.clone(), event: HostEvent::Prepared },
            Fact::SlotRequested { host: host.clone(), group: group.clone(), run },
            Fact::SlotReleaseDue { host: host.clone(), why },
            Fact::SlotReleased { host: host.clone(), why },
            Fact::LockGranted { group: group.clone(), id: id.clone(), actor: None },
            Fact::LockAwaited { group: group.clone(), id: id.clone(), actor: Some("token a".to_owned()) },
            Fact::LockReleased { group: group.clone(), id: id.clone(), actor: None },
            Fact::HoldPlaced {
                group: group.clone(),
                id: id.clone(),
                actor: "eve".to_owned(),
                reason: "disk".to_owned(),
            },
            Fact::HolderReleased { group, id, actor: "eve".to_owned(), reason: "gone".to_owned() },
            Fact::StrongboxMade { check: "c".to_owned() },
            Fact::SecretKept { name: secret.clone(), sealed: "s".to_owned(), actor: "eve".to_owned() },
            Fact::SecretRemoved { name: secret, actor: "eve".to_owned() },
            Fact::HostsApproved { hosts: vec![host.clone()], actor: "eve".to_owned() },
            Fact::HostWithdrawn {
                host: host.clone(),
                actor: "eve".to_owned(),
                reason: "stolen".to_owned(),
                forgotten: false,
            },
            Fact::LateCommandSeen { host: host.clone(), action: Action::Upgrade, sequence: 1 },
            Fact::Withdrawn { host, sequence: 1, deleted: true },
            Fact::Restored {
                source: RestoreSource::Store,
                actor: "cli".to_owned(),
                control_kept: true,
                outstanding: Vec::new(),
            },
            Fact::Ignored { sequence: 1, host: None, reply: None, why: IgnoreCause::NothingOutstanding },
        ];
        for fact in facts {
            let json = serde_json::to_value(&fact).unwrap();
            assert_eq!(json["type"], fact.name());
            assert_eq!(serde_json::from_value::<Fact>(json).unwrap(), fact);
        }
    }
}
