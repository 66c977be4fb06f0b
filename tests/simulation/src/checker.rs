//! The checker: it knows what an outsider can see, and says what must never be seen.
//!
//! It is shown messages as they stand in the streams, questions to the lock server, answers to callers, and what
//! happens on hosts. It keeps its own books; of the orchestrator's code it uses the formats only, but for the fold of
//! the journal, with which the leader's state is compared at the end.
//!
//! | rule | | in |
//! |---|---|---|
//! | S1 | no group has more hosts under upgrade than slots | `steps` |
//! | S2 | no command is sent after `not-after` or the run's end, and no worker starts one | `commands`, `workers` |
//! | S3 | no host executes `upgrade` twice in a run | `workers` |
//! | S4 | no `upgrade` or `reboot` without a slot held | `steps` |
//! | S5 | an answer 2xx is never forgotten | `answers` |
//! | shown | who is told by the leader that a change is durable finds it there; what is shown is on its way to the store | `answers`, `journal` |
//! | log | what is decided is logged by one instance at most | `journal` |
//! | hint | workers are told that a run is stopping when it is | `answers` |
//! | S6 | a slot is never freed by time alone, nor by an operator while its host is at work | `steps` |
//! | window | a run starts by itself in an open window only, once in each occurrence, and ends with it | `journal` |
//! | semaphore | the history of all calls about slots is linearisable | `semaphore` |
//! | fair | a host leaves a free slot to each client that was refused before it came; nobody waits for long | `semaphore`, `steps` |
//! | lease | the lock server is asked by nobody but who holds the lease | `steps` |
//! | rate | the lock server is asked no more than it takes, and left alone when it wants to be | `rate` |
//! | once | no command stands in the stream twice | `commands` |
//! | enrol | no command goes to a host that was not approved when its run began, or was withdrawn before it began there | `enrolment` |
//! | secret | all secrets that are kept are under one key | `secrets` |
//! | worker | an executed command is acknowledged after its reply; a reboot follows its `reboot-required` | `workers` |
//! | journal | it can be followed, and nobody stops | `journal` |
//! | store | the projection misses nothing | `journal` |
//! | loss | where the bus has lost what it had acknowledged, whoever knows of it stops, and writes nothing | `loss` |
//! | live | runs end, slots come back, the next run goes well | `end` |

mod answers;
mod commands;
mod end;
mod enrolment;
mod journal;
mod loss;
mod rate;
mod secrets;
mod semaphore;
mod steps;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{ClientId, Config, LockProvider, OnFailure, Request, Settings};
use os_upgrade_protocol::{CommandId, GroupName, HostName, RunId};
use os_upgrade_shell::journal::follow::Follower;
use os_upgrade_shell::node::CallId;

use self::commands::CommandSeen;
use self::enrolment::Enrolled;
pub(crate) use self::loss::Knows;
use self::rate::Asked;
use self::secrets::Secrets;
use self::semaphore::Semaphores;
use self::steps::Step;
pub(crate) use self::workers::Begun;
use self::workers::HostSeen;
use crate::plan::Plan;
use crate::time::{Micros, SECOND};

/// For how long a call may have its effect after its asker has been told that the outcome is not known: an append that
/// is on its way comes at the latest a minute after it left, and that of a process that stands still after it goes on.
const MAY_YET_COME: Micros = 70 * SECOND;

/// Something that must never be seen was seen.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The rule's short name.
    pub rule: &'static str,
    /// What was seen.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.text)
    }
}

#[derive(Debug)]
pub(crate) struct Checker {
    /// The present, in simulated time.
    pub(crate) now: Micros,
    violation: Option<Violation>,
    provider: LockProvider,
    on_failure: OnFailure,
    default_group: GroupName,
    /// The most slots that each group may have had.
    slots: BTreeMap<GroupName, u32>,
    hosts: Vec<HostSeen>,
    follower: Follower,
    /// The sequences of records that hold facts.
    records: Vec<u64>,
    /// Records that whoever decided them has logged.
    logged: BTreeSet<u64>,
    /// What each instance's store has reached.
    stores: BTreeMap<usize, u64>,
    runs: BTreeMap<RunId, RunSeen>,
    /// In whose name something has become true.
    acted: BTreeSet<String>,
    /// Every configuration with the time from which on it was in force.
    configs: Vec<(Micros, Option<Config>)>,
    /// The occurrence in which this lies has started its run, or an operator has cancelled one in it.
    occurrence_spent: Option<DateTime<Utc>>,
    /// How many runs have begun by themselves.
    pub(crate) scheduled: u64,
    /// How many hosts operators gave up after these had begun.
    pub(crate) given_up: u64,
    /// Hosts that hold a slot by the journal.
    granted: BTreeSet<HostName>,
    commands: BTreeMap<u64, CommandSeen>,
    ids: BTreeMap<CommandId, u64>,
    steps: BTreeMap<HostName, Step>,
    asked: Asked,
    /// Since when each host holds its slot that holds one.
    turns: BTreeMap<HostName, Micros>,
    longest_turn: Micros,
    /// How many answers about slots were found right, and how many clients waited for theirs beside runs.
    pub(crate) slot_answers: u64,
    pub(crate) waits: u64,
    calls: BTreeMap<CallId, (Request, Micros)>,
    semaphores: Semaphores,
    enrolled: Enrolled,
    secrets: Secrets,
    /// Who was told that nothing was changed.
    unchanged: BTreeSet<String>,
    /// Until when a slot of each client may have been given back at its own wish.
    unlocks: BTreeMap<ClientId, Micros>,
    /// Whether the bus has ever forgotten acknowledgements.
    acks_forgotten: bool,
    /// What each instance knows of what the bus has lost, once it has lost something.
    lost: Option<Vec<Knows>>,
    /// Clients that have been told that they hold a slot and have not asked to give it back since.
    clients: BTreeSet<(GroupName, ClientId)>,
}

/// A run as the journal tells of it.
#[derive(Debug)]
struct RunSeen {
    started: Micros,
    /// When it stopped, and when it ended, by the journal.
    stopped: Option<Micros>,
    ended: Option<Micros>,
    /// When any instance first showed that it had ended.
    end_shown: Option<Micros>,
    not_after: DateTime<Utc>,
}

impl Checker {
    pub(crate) fn new(plan: &Plan, names: Vec<HostName>) -> Self {
        let semaphores = Semaphores::new(names.clone());
        let hosts = names.into_iter().zip(&plan.hosts);
        Self {
            semaphores,
            enrolled: Enrolled::default(),
            secrets: Secrets::default(),
            now: 0,
            violation: None,
            provider: plan.settings.provider,
            on_failure: plan.settings.on_failure,
            default_group: plan.settings.default_group.clone(),
            slots: plan.settings.groups.clone(),
            hosts: hosts.map(|(name, host)| HostSeen::new(name, host)).collect(),
            follower: Follower::default(),
            records: Vec::new(),
            logged: BTreeSet::new(),
            stores: BTreeMap::new(),
            runs: BTreeMap::new(),
            configs: vec![(0, None)],
            occurrence_spent: None,
            scheduled: 0,
            given_up: 0,
            granted: BTreeSet::new(),
            commands: BTreeMap::new(),
            ids: BTreeMap::new(),
            steps: BTreeMap::new(),
            asked: Asked::default(),
            turns: BTreeMap::new(),
            longest_turn: 0,
            slot_answers: 0,
            waits: 0,
            calls: BTreeMap::new(),
            unchanged: BTreeSet::new(),
            acted: BTreeSet::new(),
            unlocks: BTreeMap::new(),
            acks_forgotten: false,
            lost: None,
            clients: BTreeSet::new(),
        }
    }

    /// Whether nothing has been seen that must not be.
    pub(crate) fn is_content(&self) -> bool {
        self.violation.is_none()
    }

    /// How many runs have begun.
    pub(crate) fn runs(&self) -> u64 {
        self.runs.len() as u64
    }

    /// How many upgrades the workers that keep the SDK's rules have begun.
    pub(crate) fn upgrades(&self) -> u64 {
        self.hosts.iter().map(HostSeen::upgrades).sum()
    }

    /// What was seen first that must not be.
    pub(crate) fn into_violation(self) -> Option<Violation> {
        self.violation
    }

    fn violated(&mut self, rule: &'static str, text: String) {
        // Of what is lost nothing can be promised but that it is noticed.
        if self.lost.is_some() && rule != "loss" {
            return;
        }
        self.violation.get_or_insert(Violation { rule, text });
    }

    /// An instance has been given other settings, which may come into force.
    pub(crate) fn settings_may_be(&mut self, settings: &Settings) {
        // The slots of a lock server elsewhere are its own.
        if self.provider == LockProvider::Embedded {
            for (group, slots) in &settings.groups {
                let most = self.slots.entry(group.clone()).or_default();
                *most = (*most).max(*slots);
            }
        }
    }

    fn host(&self, name: &HostName) -> Option<&HostSeen> {
        self.hosts.iter().find(|host| host.name == *name)
    }

    fn group_of(&self, name: &HostName) -> GroupName {
        let announced = self.host(name).and_then(|host| host.group.clone());
        announced.unwrap_or_else(|| self.default_group.clone())
    }
}
