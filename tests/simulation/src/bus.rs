//! The bus in memory: journal, control stream, lease, and the durable consumers of workers.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use os_upgrade_kernel::Order;
use os_upgrade_protocol::{CommandId, Fence, HostName, subject};
use os_upgrade_shell::control_stream::RawControl;
use os_upgrade_shell::instance::{Acknowledged, StreamFacts, StreamSettings, Streams, Trim};
use os_upgrade_shell::journal::append::ReadBack;
use os_upgrade_shell::journal::codec::{Kind, Message};
use os_upgrade_shell::lease::{LEASE_TTL, LeaseAction, LeaseHolder, LeaseOutcome};
use os_upgrade_worker_rules::consumer::{ConsumerState, DeliverFrom};
use os_upgrade_worker_rules::limits::ACK_WAIT;

use crate::desired_stream::DesiredStream;
use crate::request::Answers;
use crate::time::Micros;

/// The creation time of all streams.
pub(crate) const CREATED: DateTime<Utc> = DateTime::UNIX_EPOCH;

#[derive(Debug, Clone, Default)]
pub(crate) struct Bus {
    /// Deleted messages are `None`.
    journal: Vec<Option<Message>>,
    /// When each message of the journal was stored, also of those that are deleted.
    journal_times: Vec<DateTime<Utc>>,
    /// Where the complete snapshots start.
    snapshots: Vec<u64>,
    control: Vec<Option<Stored>>,
    fence: u64,
    lease: Option<Lease>,
    /// Processes from which another one of the same name has taken the lease.
    overwritten: BTreeSet<String>,
    revisions: u64,
    /// What hosts are to have.
    pub(crate) desired: DesiredStream,
    consumers: BTreeMap<HostName, Consumer>,
    /// The last boot that each host has announced; absent for its first one.
    announced: BTreeMap<HostName, u32>,
}

/// A message of the control stream.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) subject: String,
    pub(crate) id: Option<CommandId>,
    /// Of a reply.
    pub(crate) answers: Answers,
    pub(crate) payload: Bytes,
    pub(crate) time: DateTime<Utc>,
}

#[derive(Debug, Clone)]
struct Lease {
    holder: LeaseHolder,
    revision: u64,
    until: Micros,
}

/// A worker's durable consumer: at most one message unacknowledged.
#[derive(Debug, Clone)]
pub(crate) struct Consumer {
    next: u64,
    delivered: u64,
    floor: u64,
    pending: Option<Pending>,
    /// Counts the host's consumers: an acknowledgement belongs to one of them.
    generation: u64,
    /// The consumer before its last acknowledgement, to which a killed bus may return.
    earlier: Option<Box<Consumer>>,
}

#[derive(Debug, Clone)]
struct Pending {
    sequence: u64,
    count: u64,
    until: Micros,
}

/// The last sequences of the streams, as they are or as they are known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) journal: u64,
    pub(crate) control: u64,
}

impl Ends {
    /// Whether either goes further than in `other`.
    pub(crate) fn is_beyond(self, other: Self) -> bool {
        self.journal > other.journal || self.control > other.control
    }
}

/// A command on its way to a worker.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) sequence: u64,
    pub(crate) count: u64,
    pub(crate) generation: u64,
    pub(crate) stored: Stored,
}

impl Bus {
    /// A worker announces the boot of its host.
    pub(crate) fn announce(&mut self, host: &HostName, boot: u32) {
        self.announced.insert(host.clone(), boot);
    }

    /// The boot that `host` has announced.
    pub(crate) fn announced(&self, host: &HostName) -> u32 {
        self.announced.get(host).copied().unwrap_or(0)
    }

    /// Where the streams end.
    pub(crate) fn ends(&self) -> Ends {
        Ends { journal: self.journal_len(), control: self.control_len() }
    }

    pub(crate) fn journal_len(&self) -> u64 {
        self.journal.len() as u64
    }

    pub(crate) fn control_len(&self) -> u64 {
        self.control.len() as u64
    }

    fn journal_at(&self, sequence: u64) -> Option<&Message> {
        self.journal.get(index(sequence))?.as_ref()
    }

    /// The first message of the journal at or after `from` that has not been deleted.
    pub(crate) fn journal_from(&self, from: u64) -> Option<(u64, &Message)> {
        let mut messages = (from.max(1)..).zip(self.journal.iter().skip(index(from)));
        messages.find_map(|(sequence, message)| Some((sequence, message.as_ref()?)))
    }

    /// The message of the control stream at `sequence`, unless it was deleted.
    pub(crate) fn control_at(&self, sequence: u64) -> Option<&Stored> {
        self.control.get(index(sequence))?.as_ref()
    }

    /// The first message of the control stream at or after `from` that has not been deleted.
    pub(crate) fn control_from(&self, from: u64) -> Option<RawControl> {
        let mut messages = self.control.iter().enumerate().skip(index(from));
        let (index, stored) = messages.find_map(|(index, stored)| Some((index, stored.as_ref()?)))?;
        Some(RawControl {
            sequence: index as u64 + 1,
            time: stored.time,
            subject: stored.subject.clone(),
            command_id: stored.id.as_ref().map(ToString::to_string),
            in_reply_to: stored.answers.command.clone(),
            run: stored.answers.run.clone(),
            payload: stored.payload.clone(),
        })
    }

    pub(crate) fn read_back(&self, sequence: u64) -> ReadBack {
        match self.journal_from(sequence) {
            Some((sequence, message)) => {
                ReadBack::Found { sequence, append_id: Some(message.append_id.clone()) }
            }
            None => ReadBack::Absent { last: self.journal_len() },
        }
    }

    /// The streams as they were `ago` messages before.
    pub(crate) fn inspect(&self, known: &Acknowledged, ago: u64) -> Streams {
        let first_of = |first: Option<usize>, last: u64| first.map_or(last + 1, |index| index as u64 + 1);
        // A server that is behind has what was deleted since; where nothing else is left, none is behind.
        let begins = first_of(self.journal.iter().position(Option::is_some), self.journal_len());
        let ago = if begins + ago <= self.journal_len() { ago } else { 0 };
        let journal = self.journal_len().saturating_sub(ago);
        let control = self.control_len().saturating_sub(ago);
        let facts = |first_sequence, last_sequence| {
            Some(StreamFacts { created: CREATED, first_sequence, last_sequence })
        };
        let journal_first = first_of(self.journal.iter().position(Option::is_some), journal);
        let control_first = first_of(self.control.iter().position(Option::is_some), control);
        let at_known = Some(known.journal.sequence).filter(|sequence| (1..=journal).contains(sequence));
        let at_known = at_known.and_then(|sequence| match self.journal_at(sequence) {
            Some(message) => Some(&message.append_id),
            None => self.journal_at(sequence + 1)?.previous.as_ref(),
        });
        let mark = known.mark.as_ref().filter(|mark| mark.sequence <= control);
        let at_mark = mark.and_then(|mark| self.control.get(index(mark.sequence))?.as_ref());
        Streams {
            journal: facts(journal_first, journal),
            control: facts(control_first, control),
            at_known: at_known.cloned(),
            at_mark: at_mark.map(|stored| stored.subject.clone()),
            follow_from: self.snapshot_before(journal).unwrap_or(journal_first),
            begins_with_snapshot: self.has_snapshot_at(journal_first),
            settings: StreamSettings::Unchanged,
        }
    }

    /// The sequence at which the newest complete snapshot starts that begins at `latest` or before.
    fn snapshot_before(&self, latest: u64) -> Option<u64> {
        self.snapshots
            .iter()
            .rev()
            .find(|start| **start <= latest && self.journal_at(**start).is_some())
            .copied()
    }

    /// From where to follow the journal for a store that has it up to `stored`.
    pub(crate) fn follow_for_store(&self, stored: u64) -> u64 {
        let beginning = || self.journal_from(1).map_or(1, |(sequence, _)| sequence);
        self.snapshot_before(stored + 1).unwrap_or_else(beginning)
    }

    /// Deletes what nobody needs any more. Returns whether the journal begins with a complete snapshot.
    pub(crate) fn trim(&mut self, trim: Trim) -> bool {
        let Trim { journal_from, control_from } = trim;
        for message in self.journal.iter_mut().take(index(journal_from)) {
            *message = None;
        }
        for stored in self.control.iter_mut().take(index(control_from.max(1))) {
            stored.take_if(|stored| stored.subject != subject::LEADER);
        }
        for consumer in self.consumers.values_mut() {
            consumer.pending.take_if(|pending| pending.sequence < control_from);
        }
        self.snapshots.retain(|start| *start >= journal_from);
        self.journal_from(1).is_some_and(|(first, _)| self.snapshots.contains(&first))
    }

    /// Deletes all messages of the journal but the last `kept`, and all of the control stream.
    pub(crate) fn purge(&mut self, kept: usize) {
        let purged = self.journal.len().saturating_sub(kept);
        self.journal[..purged].fill(None);
        self.control.fill(None);
    }

    /// Whether a snapshot starts at `sequence`.
    pub(crate) fn has_snapshot_at(&self, sequence: u64) -> bool {
        self.snapshots.contains(&sequence)
    }

    /// Stores a message in the journal that is none of its own, and deletes it.
    pub(crate) fn stray(&mut self) {
        self.journal.push(None);
        self.journal_times.push(CREATED);
    }

    /// Whether the journal's last message is a record.
    pub(crate) fn ends_with_record(&self) -> bool {
        self.journal_at(self.journal_len()).is_some_and(|message| message.kind == Kind::Record)
    }

    /// Forgets everything after these sequences, as a bus does that acknowledged it before it was on disk.
    pub(crate) fn forget_after(&mut self, journal: u64, control: u64) {
        self.journal.truncate(index(journal + 1));
        self.journal_times.truncate(index(journal + 1));
        self.snapshots.retain(|start| *start <= journal);
        self.control.truncate(index(control + 1));
        self.fence = self.last_of(subject::LEADER);
        if self.fence > control {
            self.fence = 0;
        }
        self.lease = None;
        for consumer in self.consumers.values_mut() {
            consumer.next = consumer.next.min(control + 1);
            consumer.delivered = consumer.delivered.min(control);
            consumer.floor = consumer.floor.min(control);
            consumer.pending.take_if(|pending| pending.sequence > control);
            consumer.earlier = None;
        }
    }

    pub(crate) fn lease(&mut self, action: &LeaseAction, now: Micros, time: DateTime<Utc>) -> LeaseOutcome {
        self.lease.take_if(|lease| lease.until <= now);
        let (holder, expected) = match action {
            LeaseAction::Create(holder) => (holder, None),
            LeaseAction::Update { holder, revision } => (holder, Some(*revision)),
            LeaseAction::Release { revision } => {
                self.lease.take_if(|lease| lease.revision == *revision);
                return LeaseOutcome::Released;
            }
        };
        let current = self.lease.as_ref().map(|lease| lease.revision);
        if current != expected {
            return match &self.lease {
                Some(lease) => LeaseOutcome::Taken { holder: lease.holder.clone(), revision: lease.revision },
                None => LeaseOutcome::Failed,
            };
        }
        if let Some(Lease { holder: earlier, .. }) = &self.lease
            && earlier.instance == holder.instance
            && earlier.nonce != holder.nonce
        {
            self.overwritten.insert(earlier.nonce.clone());
        }
        self.revisions += 1;
        let until = now + Micros::try_from(LEASE_TTL.as_micros()).expect("a lease is short");
        self.lease = Some(Lease { holder: holder.clone(), revision: self.revisions, until });
        LeaseOutcome::Written { revision: self.revisions, at: Some(time) }
    }

    /// Whether another process of its name has taken the lease from the process `nonce`.
    pub(crate) fn is_overwritten(&self, nonce: &str) -> bool {
        self.overwritten.contains(nonce)
    }

    /// Whether the process with this nonce holds the lease.
    pub(crate) fn is_leased_to(&self, nonce: &str, now: Micros) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.holder.nonce == nonce && now < lease.until)
    }

    /// When the message of the journal at `sequence` was stored.
    pub(crate) fn stored_at(&self, sequence: u64) -> DateTime<Utc> {
        self.journal_times[index(sequence)]
    }

    /// Appends `message` at `time` if `expected` is the journal's last sequence; returns the new sequence.
    pub(crate) fn append(&mut self, expected: u64, message: &Message, time: DateTime<Utc>) -> Option<u64> {
        if expected != self.journal_len() {
            return None;
        }
        self.journal.push(Some(message.clone()));
        self.journal_times.push(time);
        let sequence = self.journal_len();
        if let Kind::Snapshot { .. } = message.kind
            && message.part == message.parts
        {
            self.snapshots.push(sequence + 1 - u64::from(message.parts));
        }
        Some(sequence)
    }

    pub(crate) fn publish_fence(&mut self, time: DateTime<Utc>) -> u64 {
        let subject = subject::LEADER.to_owned();
        let payload = Fence::new("leader", "nonce").to_payload().into();
        let fence = Stored { subject, id: None, answers: Answers::default(), payload, time };
        self.fence = self.push(fence);
        self.fence
    }

    /// The sequence of the last fence.
    pub(crate) fn fence(&self) -> u64 {
        self.fence
    }

    /// Publishes a command if `fence` is the last one; returns its sequence.
    pub(crate) fn publish_command(&mut self, order: &Order, fence: u64, time: DateTime<Utc>) -> Option<u64> {
        if fence != self.fence {
            return None;
        }
        let id = &order.id;
        let payload = Bytes::from(order.command().to_payload());
        let subject = subject::command(&id.host);
        let answers = Answers::default();
        Some(self.push(Stored { subject, id: Some(id.clone()), answers, payload, time }))
    }

    pub(crate) fn publish_reply(
        &mut self,
        host: &HostName,
        payload: Bytes,
        answers: Answers,
        time: DateTime<Utc>,
    ) -> u64 {
        self.push(Stored { subject: subject::reply(host), id: None, answers, payload, time })
    }

    fn push(&mut self, stored: Stored) -> u64 {
        self.control.push(Some(stored));
        self.control_len()
    }

    /// Whether the consumer of `host` has delivered the command at `sequence`.
    pub(crate) fn has_been_given(&self, host: &HostName, sequence: u64) -> bool {
        self.consumers.get(host).is_some_and(|consumer| consumer.delivered >= sequence)
    }

    /// Deletes a command; returns whether it existed.
    pub(crate) fn delete(&mut self, host: &HostName, sequence: u64) -> bool {
        if let Some(consumer) = self.consumers.get_mut(host) {
            // Deleting a message that is being delivered frees its consumer at once.
            consumer.pending.take_if(|pending| pending.sequence == sequence);
        }
        self.control.get_mut(index(sequence)).is_some_and(|place| place.take().is_some())
    }

    /// The consumer of `host`, as its worker sees it.
    pub(crate) fn consumer(&self, host: &HostName) -> Option<ConsumerState> {
        let consumer = self.consumers.get(host)?;
        Some(ConsumerState {
            as_configured: true,
            delivered: consumer.delivered,
            ack_floor: consumer.floor,
            pending: usize::from(consumer.pending.is_some()),
            // Requests end with their connections here.
            waiting: 0,
        })
    }

    /// Creates the consumer of `host`, in place of an existing one.
    pub(crate) fn make_consumer(&mut self, host: &HostName, from: DeliverFrom) {
        let next = match from {
            DeliverFrom::Sequence(sequence) => sequence,
            DeliverFrom::LastOfSubject => self.last_of(&subject::command(host)),
        };
        let generation = self.consumers.get(host).map_or(1, |consumer| consumer.generation + 1);
        let made =
            Consumer { next, delivered: next - 1, floor: next - 1, pending: None, generation, earlier: None };
        self.consumers.insert(host.clone(), made);
    }

    fn last_of(&self, subject: &str) -> u64 {
        let of_subject = |stored: &Option<Stored>| stored.as_ref().is_some_and(|it| it.subject == subject);
        self.control.iter().rposition(of_subject).map_or(self.control_len() + 1, |index| index as u64 + 1)
    }

    /// The next delivery of the consumer of `host`, if any is due.
    pub(crate) fn deliver(&mut self, host: &HostName, now: Micros) -> Option<Delivery> {
        let consumer = self.consumers.get_mut(host)?;
        let until = now + ack_wait();
        let (sequence, count) = match &mut consumer.pending {
            Some(pending) if pending.until <= now => {
                pending.until = until;
                pending.count += 1;
                (pending.sequence, pending.count)
            }
            Some(_) => return None,
            None => {
                let command = subject::command(host);
                let is_next = |stored: &&Option<Stored>| {
                    stored.as_ref().is_some_and(|stored| stored.subject == command)
                };
                let found = self.control.iter().skip(index(consumer.next)).position(|it| is_next(&it));
                let Some(skipped) = found else {
                    consumer.next = self.control.len() as u64 + 1;
                    return None;
                };
                let sequence = consumer.next + skipped as u64;
                consumer.next = sequence + 1;
                consumer.delivered = sequence;
                consumer.pending = Some(Pending { sequence, count: 1, until });
                (sequence, 1)
            }
        };
        let stored = self.control[index(sequence)].clone()?;
        Some(Delivery { sequence, count, generation: consumer.generation, stored })
    }

    /// When the consumer of `host` redelivers its unacknowledged message.
    pub(crate) fn redelivery(&self, host: &HostName) -> Option<Micros> {
        self.consumers.get(host)?.pending.as_ref().map(|pending| pending.until)
    }

    pub(crate) fn ack(&mut self, host: &HostName, generation: u64, sequence: u64) {
        let Some(consumer) = self.consumers.get_mut(host).filter(|it| it.generation == generation) else {
            return;
        };
        let before = Consumer { earlier: None, ..consumer.clone() };
        if consumer.pending.take_if(|pending| pending.sequence == sequence).is_some() {
            consumer.floor = consumer.floor.max(sequence);
            consumer.earlier = Some(Box::new(before));
        }
    }

    pub(crate) fn in_progress(&mut self, host: &HostName, generation: u64, now: Micros) {
        let consumer = self.consumers.get_mut(host).filter(|consumer| consumer.generation == generation);
        if let Some(pending) = consumer.and_then(|consumer| consumer.pending.as_mut()) {
            pending.until = now + ack_wait();
        }
    }

    /// Puts consumers back to before their last acknowledgement. A message that has been deleted since is not delivered again: a
    /// server forgets it when it starts, as nats-server 2.15.1 does with an older state of a consumer.
    pub(crate) fn forget_acks(&mut self, now: Micros) {
        for consumer in self.consumers.values_mut() {
            if let Some(earlier) = consumer.earlier.take() {
                *consumer = *earlier;
                let exists = |pending: &Pending| self.control[index(pending.sequence)].is_some();
                consumer.pending = consumer
                    .pending
                    .take()
                    .filter(exists)
                    .map(|pending| Pending { until: now + ack_wait(), ..pending });
            }
        }
    }
}

fn ack_wait() -> Micros {
    Micros::try_from(ACK_WAIT.num_microseconds().expect("it is short")).expect("it is positive")
}

fn index(sequence: u64) -> usize {
    usize::try_from(sequence.saturating_sub(1)).expect("streams in memory are small")
}
