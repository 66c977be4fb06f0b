//! A host: its boot, its disk, and the worker's process on it.

use std::collections::{HashMap, VecDeque};

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_protocol::{Action as CommandAction, GroupName, HostName};
use os_upgrade_worker_rules::{self as rules, WorkerConfig, WorkerLogic};

use crate::plan::{HostPlan, application};

/// How long a worker waits for a reboot that it has started.
const REBOOT_WAIT: TimeDelta = TimeDelta::seconds(60);

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub(crate) struct Host {
    pub(crate) name: HostName,
    pub(crate) group: Option<GroupName>,
    pub(crate) sdk: bool,
    pub(crate) reboots: u32,
    /// Counts its boots.
    pub(crate) boot: u32,
    /// Whether it is up.
    pub(crate) is_up: bool,
    pub(crate) linked: bool,
    /// Its clock minus the right time.
    pub(crate) clock: TimeDelta,
    /// The worker's state file.
    pub(crate) disk: Option<Vec<u8>>,
    /// Counts the worker's processes.
    pub(crate) process_count: u32,
    pub(crate) process: Option<Process>,
    /// Whether its consumer is being read, and which one.
    pub(crate) reads: bool,
    /// Up to where the stream had come when it was opened.
    pub(crate) opened_at: u64,
}

/// A worker's process.
#[derive(Debug)]
pub(crate) enum Process {
    /// The rules of the SDK.
    Sdk(Box<Sdk>),
    /// One that keeps the specification and nothing more.
    Plain(Option<PlainWork>),
}

#[derive(Debug)]
pub(crate) struct Sdk {
    pub(crate) logic: WorkerLogic,
    /// Events that wait for their turn.
    pub(crate) mailbox: VecDeque<rules::Event>,
    /// Actions of the last event that have not been carried out, and the worker's time when they were decided.
    pub(crate) todo: VecDeque<(DateTime<Utc>, rules::Action)>,
    pub(crate) step_is_due: bool,
    /// What it is told when a request is not answered in time.
    pub(crate) waiting: HashMap<u64, rules::Event>,
}

/// What a plain worker is at.
#[derive(Debug, Clone)]
pub(crate) struct PlainWork {
    pub(crate) sequence: u64,
    pub(crate) generation: u64,
    pub(crate) action: CommandAction,
    pub(crate) not_after: Option<DateTime<Utc>>,
}

impl Host {
    pub(crate) fn new(index: usize, plan: &HostPlan) -> Self {
        Self {
            name: HostName::new(&format!("h{index}")).expect("a valid name"),
            group: plan.group.clone(),
            sdk: plan.sdk,
            reboots: plan.reboots,
            boot: 0,
            is_up: true,
            linked: true,
            clock: TimeDelta::zero(),
            disk: None,
            process_count: 0,
            process: None,
            reads: false,
            opened_at: 0,
        }
    }

    /// Starts the worker's process.
    pub(crate) fn start(&mut self) {
        self.process_count += 1;
        self.reads = false;
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
        self.reads = false;
    }

    pub(crate) fn sdk(&mut self) -> Option<&mut Sdk> {
        match &mut self.process {
            Some(Process::Sdk(sdk)) => Some(sdk),
            Some(Process::Plain(_)) | None => None,
        }
    }
}
