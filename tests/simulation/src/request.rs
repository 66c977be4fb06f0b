//! Requests on their way to the bus or the lock server.

use bytes::Bytes;
use os_upgrade_kernel::{Job, ManifestOrder, Order, Purge};
use os_upgrade_protocol::{DesiredFence, HostName, ItemId, Manifest};
use os_upgrade_shell::delivery::{ProviderQuestion, ProviderReply};
use os_upgrade_shell::instance::{Acknowledged, CallId, Event, Trim};
use os_upgrade_shell::jobs::StartedJob;
use os_upgrade_shell::journal::codec::Message;
use os_upgrade_shell::lease::{LeaseHolder, LeaseRequest};
use os_upgrade_worker_rules as rules;

use crate::desired_stream::SealedItem;
use crate::peer::Peer;
use crate::time::Micros;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) id: u64,
    pub(crate) from: Peer,
    /// The number of the sender's process: no other process receives the answer.
    pub(crate) process: u32,
    pub(crate) what: RequestKind,
    /// When it left.
    pub(crate) sent: Micros,
    /// How long its sender waits for the answer.
    pub(crate) timeout: Micros,
}

#[derive(Debug, Clone)]
pub(crate) enum RequestKind {
    Inspect(Box<Acknowledged>),
    Lease(LeaseRequest),
    Append {
        expected: u64,
        message: Message,
    },
    ReadJournal {
        sequence: u64,
    },
    Fence {
        epoch: u64,
    },
    Command {
        epoch: u64,
        fence: u64,
        order: Order,
    },
    /// What is stored of a removed host is deleted. Here every host announces itself again at once.
    Purge(Purge),
    /// The first half of a retraction: whether the command was delivered.
    Retract {
        host: HostName,
        sequence: u64,
    },
    /// The second half: the command is deleted.
    Delete {
        host: HostName,
        sequence: u64,
    },
    /// A call that a follower passes on to the process that leads.
    Forward {
        call: CallId,
        to: LeaseHolder,
        payload: Vec<u8>,
    },
    /// The streams are to be trimmed.
    Trim(Trim),
    /// A job in a system outside of the bus.
    Job(StartedJob),
    /// A request about what hosts are to have.
    Desired(DesiredRequest),
    /// A request of a worker.
    Worker(WorkerRequest),
}

/// A request about what hosts are to have. Each names the fence's epoch, which is returned with the outcome.
#[derive(Debug, Clone)]
pub(crate) enum DesiredRequest {
    /// The first half of putting a fence in place of an earlier one: the last one is read.
    Fence { epoch: u64, fence: DesiredFence },
    /// The second half: the fence is stored if the last one has the sequence `expected`.
    FenceOver { epoch: u64, expected: u64, fence: DesiredFence },
    /// The first half of publishing a manifest: it is stored, after the units that it names and that may not be there yet, if there are any.
    Manifest {
        epoch: u64,
        fence: u64,
        since: u64,
        order: ManifestOrder,
        manifest: Manifest,
        units: Vec<(ItemId, Bytes)>,
    },
    /// The second half: what it does not name is deleted.
    Sweep { epoch: u64, since: u64, order: ManifestOrder, manifest: Manifest },
    /// A provider is asked. It is no part of the bus.
    Ask { epoch: u64, fence: u64, question: Box<ProviderQuestion> },
    /// A provider of kind `hooks` is told of events. What it says about the first device answers this request, and about each of `more` the
    /// request of that number.
    Call { epoch: u64, fence: u64, question: Box<ProviderQuestion>, more: Vec<(u64, ProviderQuestion)> },
    /// What it gave is stored; then `reply` is the provider's.
    Item {
        epoch: u64,
        fence: u64,
        id: ItemId,
        item: SealedItem,
        question: Box<ProviderQuestion>,
        reply: Box<ProviderReply>,
    },
}

/// A request of a worker.
#[derive(Debug, Clone)]
pub(crate) enum WorkerRequest {
    Reply { sequence: u64, payload: Bytes, answers: Answers },
    Ack { generation: u64, sequence: u64 },
    InProgress { generation: u64 },
}

/// The headers in which a reply names what it answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers {
    pub(crate) command: Option<String>,
    pub(crate) run: Option<String>,
}

impl RequestKind {
    /// Whether it is for a system outside of the bus.
    pub(crate) fn is_job(&self) -> bool {
        matches!(self, Self::Job(_) | Self::Desired(DesiredRequest::Ask { .. } | DesiredRequest::Call { .. }))
    }

    /// Whether it is a run of an operator's command.
    pub(crate) fn is_command(&self) -> bool {
        matches!(self, Self::Job(StartedJob { job: Job::RebootCommand(_), .. }))
    }
}

/// The answer to a request, in the terms of its sender.
#[derive(Debug)]
pub(crate) enum Answer {
    Instance(Event),
    Worker(rules::Event),
}
