//! A host: its boot, its disk, and the worker's process on it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_protocol::{Action as CommandAction, GroupName, HostKey, HostName};
use os_upgrade_worker_rules::{self as rules, WorkerConfig, WorkerLogic};

use crate::agent::Agent;
use crate::desired_worker::{self, DesiredWorker};
use crate::plan::{HostPlan, application, host_name};
use crate::steer_plan::Ailment;
use crate::time::Micros;

/// How long a worker waits for a reboot that it has begun.
const REBOOT_WAIT: TimeDelta = TimeDelta::seconds(60);

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct Host {
    index: usize,
    pub(crate) name: HostName,
    pub(crate) group: Option<GroupName>,
    pub(crate) sdk: bool,
    pub(crate) reboots: u32,
    pub(crate) reboots_on_request: bool,
    pub(crate) announces_boot: bool,
    /// Counts its boots.
    pub(crate) boot: u32,
    /// When it has booted last.
    pub(crate) booted_at: Micros,
    /// Whether it is up.
    pub(crate) is_up: bool,
    /// Whether it hangs in its boot until somebody comes.
    pub(crate) hangs: bool,
    /// The command that goes wrong on it each time, and how.
    pub(crate) ailment: Option<(CommandAction, Ailment)>,
    /// The last command that its worker has dropped without an answer.
    pub(crate) unanswered: Option<u64>,
    pub(crate) linked: bool,
    /// Its clock minus the right time.
    pub(crate) clock: TimeDelta,
    /// The worker's state file.
    pub(crate) disk: Option<Vec<u8>>,
    /// Counts the worker's processes.
    pub(crate) process_count: u32,
    pub(crate) process: Option<Process>,
    /// Whether the worker reads its consumer.
    pub(crate) reads: bool,
    /// The last sequence of the stream when the consumer was opened.
    pub(crate) last_sequence_at_open: u64,
    /// Counts how often the worker has opened its consumer, which it does once for each connection.
    pub(crate) connection: u64,
    /// Whether it takes what providers give for it.
    pub(crate) configures: bool,
    /// The hall in which it stands, as its labels say; 0 if they say nothing.
    pub(crate) hall: u32,
    /// How many keys it has had before the present one.
    pub(crate) earlier_keys: u8,
    /// The worker's file about what the host is to have.
    pub(crate) desired_disk: Option<Vec<u8>>,
    /// The part of the worker's process that applies it.
    pub(crate) desired: Option<Box<DesiredWorker>>,
    /// Its agent, if it runs units, and its systemd.
    pub(crate) agent: Option<Box<Agent>>,
    /// The number of the content that it has of each name.
    pub(crate) contents: BTreeMap<String, u64>,
    /// Those of these names of which its worker has lost the state. It does not revoke what it does not know.
    pub(crate) forgotten: BTreeSet<String>,
}

/// A worker's process.
#[derive(Debug)]
pub(crate) enum Process {
    /// A worker with the SDK's rules.
    Sdk(Box<Sdk>),
    /// A worker that only keeps the specification, with the command that it works on.
    Plain(Option<PlainWork>),
}

#[derive(Debug)]
pub(crate) struct Sdk {
    pub(crate) logic: WorkerLogic,
    /// Events that have not been handled.
    pub(crate) mailbox: VecDeque<rules::Event>,
    /// Actions that have not been carried out, each with the worker's time when it was decided.
    pub(crate) todo: VecDeque<(DateTime<Utc>, rules::Action)>,
    pub(crate) step_is_due: bool,
    /// The event for each open request, if it is not answered in time.
    pub(crate) waiting: HashMap<u64, rules::Event>,
}

/// The command that a plain worker works on.
#[derive(Debug, Clone)]
pub(crate) struct PlainWork {
    pub(crate) sequence: u64,
    pub(crate) generation: u64,
    pub(crate) action: CommandAction,
    pub(crate) not_after: Option<DateTime<Utc>>,
    /// The boot to leave, if it names one.
    pub(crate) leave: Option<String>,
}

/// The id of a host's boot.
pub(crate) fn boot_id(boot: u32) -> String {
    format!("boot-{boot}")
}

impl Host {
    pub(crate) fn new(index: usize, plan: &HostPlan) -> Self {
        Self {
            index,
            name: host_name(index),
            group: plan.group.clone(),
            sdk: plan.sdk,
            reboots: plan.reboots,
            reboots_on_request: plan.reboots_on_request,
            announces_boot: plan.announces_boot,
            boot: 0,
            booted_at: 0,
            is_up: true,
            hangs: false,
            ailment: None,
            unanswered: None,
            linked: true,
            clock: TimeDelta::zero(),
            disk: None,
            process_count: 0,
            process: None,
            reads: false,
            last_sequence_at_open: 0,
            connection: 0,
            configures: false,
            hall: 0,
            earlier_keys: 0,
            desired_disk: None,
            desired: None,
            agent: None,
            contents: BTreeMap::new(),
            forgotten: BTreeSet::new(),
        }
    }

    /// The key to which what it is to have must be sealed, if it takes anything.
    pub(crate) fn key(&self) -> Option<HostKey> {
        self.configures.then(|| desired_worker::key(self.index, self.earlier_keys))
    }

    /// Whether it has something that its worker knows of.
    pub(crate) fn has_configuration(&self) -> bool {
        self.contents.keys().any(|name| !self.forgotten.contains(name))
    }

    /// The id of its present boot.
    pub(crate) fn boot_id(&self) -> String {
        boot_id(self.boot)
    }

    /// How `action` goes wrong on it, if it does.
    pub(crate) fn ailment_in(&self, action: CommandAction) -> Option<Ailment> {
        self.ailment.filter(|(ailing, _)| *ailing == action).map(|(_, ailment)| ailment)
    }

    /// Starts the worker's process.
    pub(crate) fn start(&mut self) {
        self.process_count += 1;
        self.reads = false;
        self.desired = self.configures.then(|| Box::new(DesiredWorker::new(self.name.clone())));
        self.process = Some(if self.sdk {
            let config = WorkerConfig {
                host: self.name.clone(),
                application: application(),
                reboot_wait: REBOOT_WAIT,
            };
            Process::Sdk(Box::new(Sdk {
                logic: WorkerLogic::new(config),
                mailbox: VecDeque::new(),
                todo: VecDeque::new(),
                step_is_due: false,
                waiting: HashMap::new(),
            }))
        } else {
            Process::Plain(None)
        });
    }

    /// Ends the worker's process.
    pub(crate) fn kill(&mut self) {
        self.process = None;
        self.desired = None;
        self.reads = false;
    }

    pub(crate) fn sdk(&mut self) -> Option<&mut Sdk> {
        match &mut self.process {
            Some(Process::Sdk(sdk)) => Some(sdk),
            Some(Process::Plain(_)) | None => None,
        }
    }
}
