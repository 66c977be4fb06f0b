//! The state of a site: the fold of its facts.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_calendar::Watermark;
use os_upgrade_protocol::{HostName, Revision, RunId};
use os_upgrade_scheduler::UnitName;
use serde::{Deserialize, Serialize};

use crate::config::{Config, Settings, tag};
use crate::control::{Fence, IgnoredReplies};
use crate::desired::Desired;
use crate::enrolment::{Deferral, Enrolled, Enrolment};
use crate::fact::{About, OwnerRef};
use crate::left_out::is_default;
use crate::node::Node;
use crate::owner::Owner;
use crate::pause::Pause;
use crate::reason::Reason;
use crate::reboot_queue::{QueueError, RebootQueue};
use crate::remembered::Remembered;
use crate::run::{HostError, Issued, Run, Turns};
use crate::secrets::Strongbox;
use crate::slot::{Semaphores, Slot};
use crate::start::MissedRuns;
use crate::unit::Units;

/// Everything durable about a site. Cheap to clone: copies share their large parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct State {
    /// Settings in force.
    pub settings: Arc<Settings>,
    /// The operators' configuration, if there is one.
    pub config: Option<Arc<Config>>,
    /// How many times the configuration has changed.
    pub config_revision: u64,
    /// The embedded semaphores.
    pub semaphores: Semaphores,
    /// The sealed secrets.
    pub strongbox: Strongbox,
    /// Which hosts operators approved or withdrew.
    #[serde(default, skip_serializing_if = "Enrolment::is_empty")]
    pub enrolment: Enrolment,
    /// What hosts are to have.
    #[serde(default, skip_serializing_if = "Desired::is_unused")]
    pub desired: Desired,
    /// What is to run on hosts.
    #[serde(default, skip_serializing_if = "Units::is_unused")]
    pub units: Units,
    /// Slots that hosts hold, or may hold, on behalf of runs.
    pub slots: OrdMap<HostName, Slot>,
    /// The active run.
    pub run: Option<Run>,
    /// The run that ended last.
    pub last_run: Option<Run>,
    /// The last run of the whole site that has ended, if a run of chosen hosts has ended since: it is kept to be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_whole_run: Option<Arc<Run>>,
    /// Up to when occurrences of the maintenance windows have started their run.
    #[serde(default, rename = "spent-at", skip_serializing_if = "Watermark::is_none")]
    pub watermark: Watermark,
    /// What is known of runs that were missed.
    #[serde(default, skip_serializing_if = "MissedRuns::is_empty")]
    pub missed: MissedRuns,
    /// The pause of the site; absent while it is not paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// Unanswered commands of ended runs and of hosts that were given up, by sequence: to be deleted unless already
    /// delivered to a worker.
    pub retractions: OrdMap<u64, HostName>,
    /// The fence under which commands are sent.
    pub fence: Option<Fence>,
    /// The sequence in the control stream up to which messages have been applied.
    pub control: u64,
    /// When each host was last upgraded.
    #[serde(default, rename = "last-upgraded-at", skip_serializing_if = "Remembered::is_empty")]
    pub last_upgrades: Remembered<DateTime<Utc>>,
    /// The last turn of each host.
    #[serde(default, skip_serializing_if = "is_default")]
    pub turns: Turns,
    /// Whose ignored replies were journaled of late.
    #[serde(default, skip_serializing_if = "IgnoredReplies::is_empty")]
    pub ignored_replies: IgnoredReplies,
    /// Hosts that are to reboot.
    #[serde(default, skip_serializing_if = "RebootQueue::is_unused")]
    pub reboot_queue: RebootQueue,
    /// The Kubernetes nodes that are cordoned, or may be.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub nodes: OrdMap<HostName, Node>,
    /// When the site was last restored, in seconds since 1970, and at least one more than the time before; 0 if it never was.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restored: i64,
}

impl Default for State {
    /// A new site with the default settings and their semaphores.
    fn default() -> Self {
        let settings = Settings::default();
        let mut semaphores = Semaphores::default();
        semaphores.configure(&settings.groups);
        Self {
            settings: Arc::new(settings),
            config: None,
            config_revision: 0,
            semaphores,
            strongbox: Strongbox::default(),
            enrolment: Enrolment::default(),
            desired: Desired::default(),
            units: Units::default(),
            slots: OrdMap::new(),
            run: None,
            last_run: None,
            last_whole_run: None,
            watermark: Watermark::NONE,
            missed: MissedRuns::default(),
            pause: None,
            retractions: OrdMap::new(),
            fence: None,
            control: 0,
            last_upgrades: Remembered::default(),
            turns: Turns::default(),
            ignored_replies: IgnoredReplies::default(),
            reboot_queue: RebootQueue::default(),
            nodes: OrdMap::new(),
            restored: 0,
        }
    }
}

/// A fact does not apply to the state: the journal and this program disagree. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The fact is about a run other than the active one.
    #[error("run {fact} is not the active one")]
    WrongRun {
        /// The run the fact is about.
        fact: RunId,
    },
    /// A run starts while another is active.
    #[error("run {started} starts while {active} is active")]
    RunActive {
        /// The run that starts.
        started: RunId,
        /// The active run.
        active: RunId,
    },
    /// The fact is about a slot that does not exist.
    #[error("host {0} has no slot")]
    NoSlot(HostName),
    /// A slot is granted to a host that has a different slot, or one that is being released.
    #[error("host {0} has another slot, which must be released first")]
    SlotTaken(HostName),
    /// The fact is about a node that is not cordoned.
    #[error("the node of host {0} is not cordoned")]
    NoNode(HostName),
    /// The fact is about a fence other than the current one.
    #[error("fence {0} is not the current one")]
    WrongFence(u64),
    /// The file of the unit is none for this version.
    #[error("the file of unit {0} cannot be read")]
    UnitFile(UnitName),
    /// The event does not apply to the host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The event does not apply to the reboot queue.
    #[error(transparent)]
    RebootQueue(#[from] QueueError),
}

impl State {
    /// The `ETag` of the current configuration, without quotes; it differs from that of every earlier configuration.
    pub fn config_tag(&self) -> Option<String> {
        self.config.as_deref().map(|config| tag::tag(self.config_revision, config))
    }

    /// Whether `host` takes part in runs that start now.
    pub fn enrolled(&self, host: &HostName) -> Enrolled<'_> {
        self.enrolment.of(host, self.settings.auto_approve)
    }

    /// Why `host` begins nothing that starts now, by what operators decided about it; absent if it may.
    pub fn left_out(&self, host: &HostName) -> Option<Reason> {
        let deferred = || self.enrolment.deferred.get(host).map(Deferral::as_reason);
        self.enrolled(host).left_out(host).or_else(deferred)
    }

    /// The last restoration as an epoch, in seconds since 1970; 0 if there was none.
    pub fn epoch(&self) -> u64 {
        u64::try_from(self.restored).unwrap_or_default()
    }

    /// The epoch of what `host` is to have.
    pub(crate) fn desired_epoch(&self, host: &HostName) -> u64 {
        self.epoch().max(self.desired.hosts.get(host).map_or(0, |host| host.resumed))
    }

    /// How new the manifest of `host` is that follows from this state.
    pub fn desired_revision(&self, host: &HostName) -> Revision {
        let changed = self.desired.hosts.get(host).map(|entry| entry.changed);
        let changed = changed.or_else(|| self.desired.emptied.get(host).copied());
        Revision { epoch: self.desired_epoch(host), sequence: changed.unwrap_or_default() }
    }

    /// To whose history a fact belongs, by what it is about, if known. Call it before the fact is folded.
    pub fn owner_of(&self, about: About<'_>) -> Option<Owner> {
        let slot = || self.slots.get(about.host?);
        let of_run = |run: &RunId| Owner::Run(run.clone());
        let in_run = |run: &Run| Some((of_run(&run.id), run.host(about.host?)?.command));
        let mut in_runs = self.known_runs().filter_map(in_run);
        match about.owner {
            OwnerRef::None => None,
            OwnerRef::Named(run) => Some(of_run(run)),
            OwnerRef::Owner(owner) => Some(owner.clone()),
            OwnerRef::OfSlot => slot().map(|slot| slot.owner.clone()),
            OwnerRef::OfCommand(sequence) => {
                let sent = |command: Option<Issued>| command.is_some_and(|it| it.sequence == Some(sequence));
                in_runs.find(|(_, command)| sent(*command)).map(|(run, _)| run)
            }
            OwnerRef::OfLateCommand => {
                let of_slot = slot().filter(|slot| slot.unsent_at_fence.is_some());
                let of_slot = of_slot.map(|slot| slot.owner.clone());
                of_slot.or_else(|| in_runs.next().map(|(run, _)| run))
            }
            OwnerRef::Latest => in_runs.next().map(|(run, _)| run),
        }
    }
}
