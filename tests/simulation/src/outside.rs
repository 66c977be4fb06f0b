//! What an outsider sees of a simulation, in lines without a word of the code's own types: two versions of the code with the same
//! lines behave alike, whatever became of their types.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use os_upgrade_kernel::{CommandJob, CommandOrder, NodeJob, NodeOrder, SlotJob, SlotOrder};
use os_upgrade_shell::forward::{Outcome, encode_outcome};
use os_upgrade_shell::journal::codec::{Kind, Message};

use crate::bus::Stored;

/// What an outsider has seen of one seed, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    /// The number of lines.
    pub lines: usize,
    /// The hash of the lines, and of how often each check was made.
    pub hash: u64,
}

impl Digest {
    pub(crate) fn of(lines: &[String], asked: &BTreeMap<&'static str, u64>) -> Self {
        Self { lines: lines.len(), hash: hash(&(lines, asked)) }
    }
}

/// A message that the journal has stored at `sequence`. A snapshot follows from the records; its words are the version's own.
pub(crate) fn journal(sequence: u64, message: &Message) -> String {
    match message.kind {
        Kind::Snapshot { .. } => format!("journal {sequence} snapshot {}", message.append_id),
        Kind::Record => format!("journal {sequence} {} {}", message.append_id, text(&message.payload)),
    }
}

/// A message that the control stream has stored at `sequence`.
pub(crate) fn control(sequence: u64, stored: &Stored) -> String {
    let Stored { subject, id, answers, payload, time: _ } = stored;
    let id = id.as_ref().map(ToString::to_string).unwrap_or_default();
    let (command, run) = (answers.command.as_deref().unwrap_or(""), answers.run.as_deref().unwrap_or(""));
    format!("control {sequence} {subject} {id} {command} {run} {}", text(payload))
}

/// A request that a lock server receives.
pub(crate) fn lock(job: &SlotJob) -> String {
    let SlotJob { order, host, group } = job;
    let order = match order {
        SlotOrder::Lock => "pre-reboot",
        SlotOrder::Unlock => "steady-state",
    };
    format!("lock-server {order} {group} {host}")
}

/// Work that an API server of Kubernetes receives.
pub(crate) fn node(job: &NodeJob) -> String {
    let NodeJob { order, host, fence } = job;
    let order = match order {
        NodeOrder::Check { owner, is_cordoned } => format!("check {owner} {is_cordoned}"),
        NodeOrder::Evict { owner, is_cordoned, is_ours } => format!("evict {owner} {is_cordoned} {is_ours}"),
        NodeOrder::Hold => "hold".to_owned(),
        NodeOrder::Uncordon { ready, left, is_ours, takes_over } => {
            let left = left.as_deref().unwrap_or("");
            let takes_over = takes_over.map_or(0, |fence| fence.sequence);
            format!("uncordon {ready} {left} {is_ours} {takes_over}")
        }
    };
    format!("node {host} {order} under {}.{}", fence.restored, fence.sequence)
}

/// A command that is run for an operator.
pub(crate) fn command(job: &CommandJob) -> String {
    let CommandJob { order, host, node, index } = job;
    let order = match order {
        CommandOrder::Reboot { attempt } => format!("reboot {attempt}"),
        CommandOrder::CheckBoot { since } => format!("check-boot {since}"),
    };
    format!("command {order} {host} {node} {index}")
}

/// The answer to a call of a client or an operator.
pub(crate) fn answer(call: u64, outcome: &Outcome) -> String {
    let answer = encode_outcome(outcome).expect("an outcome serialises");
    format!("answer {call} {}", text(&answer))
}

/// Text as it is; what is compressed by its hash.
fn text(payload: &[u8]) -> String {
    std::str::from_utf8(payload).map_or_else(|_| format!("{:016x}", hash(payload)), str::to_owned)
}

fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
