//! Requests on their way to the bus or the lock server.

use bytes::Bytes;
use os_upgrade_kernel::{Job, Order, Purge};
use os_upgrade_protocol::HostName;
use os_upgrade_shell::instance::{Acknowledged, CallId, Event, Trim};
use os_upgrade_shell::jobs::StartedJob;
use os_upgrade_shell::journal::codec::Message;
use os_upgrade_shell::lease::{LeaseHolder, LeaseRequest};
use os_upgrade_worker_rules as rules;

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
    /// A request of a worker.
    Worker(WorkerRequest),
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
        matches!(self, Self::Job(_))
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
