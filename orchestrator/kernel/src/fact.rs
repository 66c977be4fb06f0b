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
    /// That `event` happened to `host` in `run`.
    pub fn of_host(run: &RunId, host: &HostName, event: HostEvent) -> Self {
        Self::Host { run: run.clone(), host: host.clone(), event }
    }

    /// The fact's name: the `type` in its JSON.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// Why a slot is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
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

impl ReleaseCause {
    /// The word in the history.
    pub fn as_str(self) -> &'static str {
        self.into()
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
