//! An instance of the orchestrator: its process, its store, its clock.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_calendar::Zones;
use os_upgrade_kernel::fact::RunFact;
use os_upgrade_kernel::{Fact, Settings, System, Trigger};
use os_upgrade_shell::dispatch::DispatchSettings;
use os_upgrade_shell::instance::{Event, Instance as Logic, InstanceSettings, StoreKnowledge};
use os_upgrade_shell::jobs::SystemLimits;
use os_upgrade_shell::journal::Committed;

use crate::agenda::Process;
use crate::bus::CREATED;
use crate::plan::Plan;
use crate::request::Request;

/// How often a cluster is asked. By the program it is asked sooner for the first time, and later after that.
const CLUSTER: SystemLimits = SystemLimits::at_intervals(Duration::from_secs(3), Duration::from_millis(20));
/// How often the operator's commands are run, as by the program.
const REBOOT_COMMAND: SystemLimits =
    SystemLimits::at_intervals(Duration::from_secs(10), Duration::from_millis(100));

#[derive(Debug)]
pub(crate) struct Instance {
    index: usize,
    /// Its name in its data directory: another's, if the directory is a copy.
    pub(crate) name: String,
    /// The contents of its settings file.
    pub(crate) settings: Settings,
    /// Counts its processes.
    pub(crate) boot: u32,
    /// The process; none while it is not running.
    pub(crate) logic: Option<Logic>,
    /// While the process is paused: the items that it handles once it goes on.
    pub(crate) paused: Option<Vec<Process>>,
    /// Whether its link to the bus works.
    pub(crate) linked: bool,
    /// The kind of facts that its version does not know; `None`: it is the newest version.
    pub(crate) unknown_kind: Option<&'static str>,
    /// Its clock minus the right time.
    pub(crate) clock: TimeDelta,
    pub(crate) store: Store,
    pub(crate) journal: Option<Reader>,
    pub(crate) control: Option<Reader>,
    /// Counts readers: messages of an earlier reader are ignored.
    pub(crate) generations: u64,
    /// The event for each open request, if it is not answered in time.
    pub(crate) waiting: HashMap<u64, Event>,
    /// Whether it will soon decide on the events that it has received.
    pub(crate) decision_is_due: bool,
    /// Requests that its client keeps while it is disconnected.
    pub(crate) kept: Vec<Request>,
    /// Records on their way to the store.
    pub(crate) projected: VecDeque<Committed>,
    /// Records up to here were not passed to the store, which reads them from the journal.
    pub(crate) skipped: u64,
    /// The last record that its store had when the other instances last heard of it.
    pub(crate) announced: Option<u64>,
    /// The largest of these. A store that is lost later has had it.
    pub(crate) stored_once: Option<u64>,
    /// The instances of whose stores it has heard.
    pub(crate) heard: Vec<usize>,
    /// How often its process was shown that a copy of it had taken the lease from it.
    pub(crate) overwritten: u32,
    /// The journal sequence of the state that it shows readers.
    pub(crate) shown: u64,
}

/// A reader of a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader {
    pub(crate) generation: u64,
    pub(crate) next: u64,
    /// Whether the end of the journal is still to be reported.
    pub(crate) reports_end: bool,
}

/// The part of the projection that decisions depend on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Store {
    pub(crate) reached: Option<StoreKnowledge>,
    /// The time of the newest record since an operator last started a run.
    pub(crate) newest: Option<DateTime<Utc>>,
    /// An earlier state of `reached`.
    pub(crate) earlier: Option<StoreKnowledge>,
}

impl Store {
    /// The last record that it has; 0 without one.
    pub(crate) fn sequence(&self) -> u64 {
        self.reached.as_ref().map_or(0, |reached| reached.sequence)
    }

    /// Ingests a record.
    pub(crate) fn ingest(&mut self, committed: &Committed) {
        self.reached = Some(StoreKnowledge {
            sequence: committed.sequence,
            append_id: committed.append_id.clone(),
            control: committed.record.control,
            journal_created: CREATED,
            control_created: CREATED,
        });
        let starts = |fact: &Fact| {
            matches!(fact, Fact::Run(RunFact::Started { trigger: Trigger::Operator { .. }, .. }))
        };
        let is_vouched_for = committed.record.facts.iter().any(starts);
        let at = committed.record.at;
        self.newest = self.newest.filter(|newest| !is_vouched_for && *newest > at).or(Some(at));
        if committed.sequence.is_multiple_of(16) {
            self.earlier.clone_from(&self.reached);
        }
    }
}

fn own_name(index: usize) -> String {
    format!("i{index}")
}

impl Instance {
    pub(crate) fn new(index: usize, settings: &Settings) -> Self {
        Self {
            index,
            name: own_name(index),
            settings: settings.clone(),
            boot: 0,
            logic: None,
            paused: None,
            linked: true,
            unknown_kind: None,
            clock: TimeDelta::zero(),
            store: Store::default(),
            journal: None,
            control: None,
            generations: 0,
            waiting: HashMap::new(),
            decision_is_due: false,
            kept: Vec::new(),
            projected: VecDeque::new(),
            skipped: 0,
            announced: None,
            stored_once: None,
            heard: Vec::new(),
            overwritten: 0,
            shown: 0,
        }
    }

    /// The present process's name.
    pub(crate) fn nonce(&self) -> String {
        format!("i{}-{}", self.index, self.boot)
    }

    /// Whether its data directory is a copy of another instance's.
    pub(crate) fn is_copy(&self) -> bool {
        self.name != own_name(self.index)
    }

    /// Gives it a data directory of its own.
    pub(crate) fn make_original(&mut self) {
        self.name = own_name(self.index);
    }

    /// The sequence of the last record that the store has, that is on its way to it, or that it reads by itself.
    pub(crate) fn given(&self) -> u64 {
        let stored = || self.store.sequence();
        self.projected.back().map_or_else(stored, |committed| committed.sequence).max(self.skipped)
    }

    /// Starts a process.
    pub(crate) fn start(&mut self, plan: &Plan) {
        self.boot += 1;
        self.overwritten = 0;
        let lock_server = SystemLimits::at_intervals(Duration::from_secs(5), plan.lock_interval);
        self.logic = Some(Logic::new(InstanceSettings {
            zones: Zones::default(),
            name: self.name.clone(),
            nonce: self.nonce(),
            settings: self.settings.clone(),
            dispatch: DispatchSettings {
                publishes_max: plan.publishes_max,
                systems: BTreeMap::from([
                    (System::LockServer, lock_server),
                    (System::Cluster, CLUSTER),
                    (System::RebootCommand, REBOOT_COMMAND),
                ]),
            },
            snapshot_weight: plan.snapshot_weight,
            retention: plan.retention,
            store: self.store.reached.clone(),
            newest_record: self.store.newest.filter(|_| !plan.ignores_times),
            loss_confirmed_after: if plan.trusts_loss_at_once {
                Duration::ZERO
            } else {
                plan.loss_confirmed_after
            },
        }));
    }

    /// Ends the process; everything unfinished is lost.
    pub(crate) fn kill(&mut self) {
        self.logic = None;
        self.paused = None;
        self.journal = None;
        self.control = None;
        self.waiting.clear();
        self.decision_is_due = false;
        self.kept.clear();
        self.projected.clear();
        self.skipped = 0;
    }
}
