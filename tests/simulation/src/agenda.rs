//! What is still to happen, in the order of simulated time. Items of the same time are taken in the order in which
//! they were scheduled.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use os_upgrade_kernel::{CommandJob, NodeJob};
use os_upgrade_protocol::{Hint, HostName};
use os_upgrade_shell::instance::Event;
use os_upgrade_worker_rules::{self as rules, DesiredEvent};

use crate::agent::AgentStep;
use crate::peer::Peer;
use crate::request::Request;
use crate::time::Micros;

/// An item of the agenda.
#[derive(Debug)]
pub(crate) enum Item {
    /// Something happens to an orchestrator's process, if it is still the same.
    Process { instance: usize, boot: u32, what: Process },
    /// An orchestrator is started.
    Start { instance: usize },
    /// A paused orchestrator goes on.
    Resume { instance: usize, boot: u32 },
    /// A request reaches the bus or the lock server.
    Arrive(Box<Request>),
    /// Something happens in a worker's process, if it is still the same.
    Worker { host: usize, process: u32, what: Worker },
    /// A worker is started.
    StartWorker { host: usize, boot: u32 },
    /// A host goes down to reboot, if it is still in that boot, perhaps because of a command.
    Reboot { host: usize, boot: u32, command: Option<u64> },
    /// A host goes down because of the operator's command, if it is still in that boot.
    RebootByCommand { host: usize, boot: u32, job: Box<CommandJob> },
    /// A run of the operator's command has its effect, if it goes on: the one of this request.
    CommandActs { request: u64 },
    /// A run of the operator's command ends, if it goes on.
    CommandEnds { request: u64 },
    /// A run of the operator's command ends if its instance does not lead any more.
    CommandDeposed { request: u64 },
    /// A host has booted.
    Booted { host: usize },
    /// A link to the bus is back.
    LinkBack(Peer),
    /// The machine of bus and orchestrators is put back to the moment that was saved.
    RollBack,
    /// The bus is back.
    BusBack,
    /// The lock server is back.
    LocksBack,
    /// The clocks of the bus and of all instances show the right time again.
    ClocksCorrected,
    /// The whole site loses its power, and its clocks the time.
    Outage,
    /// All clocks show the right time again.
    TimeBack,
    /// An operator does something.
    Act,
    /// An operator does something with the reboot queue.
    ActOnQueue,
    /// An operator pauses the site, or resumes it.
    Steer,
    /// An operator or a provider does something about what hosts are to have.
    ActOnDelivery,
    /// A provider of kind `hooks` calls back, or something happens to it.
    ActOnHooks,
    /// An operator does something about units, or agents fall silent.
    ActOnUnits,
    /// Every instance asks the cluster for its nodes.
    LookAtNodes,
    /// Something happens in the cluster by itself.
    ActOnCluster,
    /// The API server of the cluster is back.
    ClusterBack,
    /// The Node of a host is made anew.
    NodeMade { host: HostName },
    /// The cluster takes the silent kubelet of a host for lost, if the host is still down.
    KubeletLost { host: usize, boot: u32 },
    /// The kubelet of a host is ready, if the host is still in that boot.
    KubeletUp { host: usize, boot: u32 },
    /// A write that its sender has given up is carried out, if its node still has this version.
    LateNodeWrite { job: Box<NodeJob>, version: Option<u64> },
    /// A FleetLock client does something.
    Client { client: usize },
    /// A spontaneous fault happens.
    Fault,
}

/// What happens to an orchestrator's process.
#[derive(Debug)]
pub(crate) enum Process {
    Tick,
    Event(Event),
    /// The announcement of a host is read.
    Announced {
        host: usize,
    },
    /// The instance decides on the events that it has received.
    Run,
    /// A request leaves.
    Depart(Box<Request>),
    /// The answer to a request arrives.
    Return {
        request: u64,
        event: Event,
    },
    /// A request has not been answered in time.
    TimeOut {
        request: u64,
    },
    /// The journal is read on.
    Journal {
        generation: u64,
    },
    /// The control stream is read on.
    Control {
        generation: u64,
    },
    /// The store ingests projected records.
    Project,
}

/// What happens in a worker's process.
#[derive(Debug)]
pub(crate) enum Worker {
    Tick,
    Heartbeat,
    /// The next event or action.
    Step,
    /// The consumer is checked, or created.
    Open,
    /// The consumer is asked for a command.
    Pull,
    Event(rules::Event),
    /// The answer to a request comes back.
    Return {
        request: u64,
        event: rules::Event,
    },
    /// A request has not been answered in time.
    TimeOut {
        request: u64,
    },
    /// A hint arrives that the run is stopping.
    Hint(Hint),
    /// What the host is to have is read; `again`: and once more after a minute, and so on.
    ReadManifest {
        again: bool,
    },
    /// Something happens to what the host is to have.
    Desired(DesiredEvent),
    /// The next event or action about what the host is to have.
    DesiredStep,
    /// The agent sends its heartbeat, and looks what its host is to have.
    AgentBeats,
    /// Systemd has done what the agent has asked for.
    AgentDone(AgentStep),
    /// A plain worker has finished a command.
    PlainDone {
        sequence: u64,
    },
}

/// The items that are still to happen.
#[derive(Debug)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Entry>,
    scheduled: u64,
}

#[derive(Debug)]
struct Entry {
    at: Micros,
    order: u64,
    item: Item,
}

impl Agenda {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), scheduled: 0 }
    }

    pub(crate) fn schedule(&mut self, at: Micros, item: Item) {
        self.scheduled += 1;
        self.heap.push(Entry { at, order: self.scheduled, item });
    }

    /// Drops what `keep` does not want to happen any more.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Item) -> bool) {
        self.heap.retain(|entry| keep(&entry.item));
    }

    pub(crate) fn next(&mut self) -> Option<(Micros, Item)> {
        self.heap.pop().map(|entry| (entry.at, entry.item))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// A heap returns its largest item first, so the earliest must be the largest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}
