//! The bus in memory, with workers on it and an observer who checks what stands there.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use os_upgrade_kernel::{Fact, HostStatus, Run, Standing};
use os_upgrade_protocol::{Action as Asked, Command, CommandId, HostName, Outcome, Reply, subject};
use os_upgrade_shell::control::RawControl;
use os_upgrade_shell::journal::append::ReadBack;
use os_upgrade_shell::journal::codec::Message;
use os_upgrade_shell::journal::follow::Follower;
use os_upgrade_shell::lease::{LEASE_TTL, LeaseAction, LeaseHolder, LeaseOutcome};

use super::Executions;

/// When everything was created.
pub(crate) const CREATED: DateTime<Utc> = DateTime::UNIX_EPOCH;

/// A message on its way to a stream.
#[derive(Clone)]
pub(crate) enum Publish {
    Journal { expected: u64, message: Message },
    Fence,
    Command { fence: u64, id: CommandId, not_after: DateTime<Utc> },
}

#[derive(Default)]
pub(crate) struct Bus {
    journal: Vec<Message>,
    control: Vec<Option<Stored>>,
    fence: u64,
    lease: Option<Lease>,
    revisions: u64,
    workers: BTreeMap<HostName, Worker>,
    pub(crate) observer: Follower,
    pub(crate) executions: Executions,
    /// How often each actor has replaced the configuration.
    pub(crate) configured: BTreeMap<String, u32>,
}

#[derive(Clone)]
struct Stored {
    subject: String,
    msg_id: Option<CommandId>,
    in_reply_to: Option<u64>,
    payload: Bytes,
    time: DateTime<Utc>,
}

struct Lease {
    holder: LeaseHolder,
    revision: u64,
    until: Duration,
}

/// A worker that keeps the rules.
#[derive(Default)]
struct Worker {
    next: usize,
    prepared: bool,
}

impl Bus {
    pub(crate) fn journal_len(&self) -> u64 {
        self.journal.len() as u64
    }

    pub(crate) fn control_len(&self) -> u64 {
        self.control.len() as u64
    }

    pub(crate) fn journal_at(&self, sequence: u64) -> Option<Message> {
        self.journal.get(usize::try_from(sequence).unwrap() - 1).cloned()
    }

    pub(crate) fn control_at(&self, sequence: u64) -> Option<RawControl> {
        let place = self.control.get(usize::try_from(sequence).unwrap() - 1)?;
        // A deleted message is not delivered; a foreign subject stands for it here, which nothing follows from.
        let gone = Stored {
            subject: "os-upgrade:control.deleted".to_owned(),
            msg_id: None,
            in_reply_to: None,
            payload: Bytes::new(),
            time: CREATED,
        };
        let stored = place.as_ref().unwrap_or(&gone);
        Some(RawControl {
            sequence,
            time: stored.time,
            subject: stored.subject.clone(),
            msg_id: stored.msg_id.as_ref().map(ToString::to_string),
            in_reply_to: stored.in_reply_to.map(|sequence| sequence.to_string()),
            payload: stored.payload.clone(),
        })
    }

    pub(crate) fn read_back(&self, sequence: u64) -> ReadBack {
        match self.journal_at(sequence) {
            Some(message) => ReadBack::Found { append_id: Some(message.append_id) },
            None => ReadBack::Absent,
        }
    }

    pub(crate) fn lease(&mut self, action: &LeaseAction, now: Duration) -> LeaseOutcome {
        let (holder, expected) = match action {
            LeaseAction::Create(holder) => (holder, None),
            LeaseAction::Update { holder, revision } => (holder, Some(*revision)),
            LeaseAction::Release { revision } => {
                let released = self.lease.take_if(|lease| lease.revision == *revision);
                return released.map_or(LeaseOutcome::Failed, |_| LeaseOutcome::Released);
            }
        };
        let current = self.lease.as_ref().map(|lease| lease.revision);
        if current != expected {
            return match &self.lease {
                Some(lease) => LeaseOutcome::Taken { holder: lease.holder.clone(), revision: lease.revision },
                None => LeaseOutcome::Failed,
            };
        }
        self.revisions += 1;
        self.lease = Some(Lease { holder: holder.clone(), revision: self.revisions, until: now + LEASE_TTL });
        LeaseOutcome::Written { revision: self.revisions }
    }

    /// Who holds the lease.
    pub(crate) fn leader(&self) -> Option<&LeaseHolder> {
        self.lease.as_ref().map(|lease| &lease.holder)
    }

    pub(crate) fn forget_lease(&mut self, now: Duration) {
        self.lease.take_if(|lease| lease.until <= now);
    }

    /// Stores `message`, if its expectation holds; the sequence.
    pub(crate) fn store(&mut self, message: &Publish, time: DateTime<Utc>) -> Option<u64> {
        match message {
            Publish::Journal { expected, message } => self.append(*expected, message),
            Publish::Fence => {
                self.fence = self.push(subject::LEADER.to_owned(), None, None, Bytes::new(), time);
                Some(self.fence)
            }
            Publish::Command { fence, id, not_after } => {
                if *fence != self.fence {
                    return None;
                }
                self.check_command(id);
                let command = Command::for_host(id.action, id.host.clone(), Some(*not_after));
                let payload = Bytes::from(command.to_payload());
                Some(self.push(subject::command(&id.host), Some(id.clone()), None, payload, time))
            }
        }
    }

    fn append(&mut self, expected: u64, message: &Message) -> Option<u64> {
        if expected != self.journal_len() {
            return None;
        }
        self.journal.push(message.clone());
        let sequence = self.journal_len();
        let read = self.observer.read(sequence, message);
        let read = read.unwrap_or_else(|error| panic!("the journal cannot be followed: {error}"));
        for fact in read.iter().flat_map(|committed| &committed.record.facts) {
            if let Fact::ConfigReplaced { actor, .. } = fact {
                *self.configured.entry(actor.clone()).or_default() += 1;
            }
        }
        self.check_slots();
        Some(sequence)
    }

    fn push(
        &mut self,
        subject: String,
        msg_id: Option<CommandId>,
        in_reply_to: Option<u64>,
        payload: Bytes,
        time: DateTime<Utc>,
    ) -> u64 {
        self.control.push(Some(Stored { subject, msg_id, in_reply_to, payload, time }));
        self.control_len()
    }

    /// S1: no group has more holders than slots, nor more hosts under upgrade than holders.
    fn check_slots(&self) {
        let state = &self.observer.state;
        for (group, semaphore) in state.semaphores.iter() {
            assert!(
                semaphore.holders.len() <= semaphore.slots as usize,
                "S1: too many hold a slot of {group}"
            );
        }
        for host in state.run.iter().flat_map(Run::under_way) {
            let held = state.slots.get(host).is_some_and(|slot| slot.standing == Standing::Held);
            assert!(held, "S4: {host} is under way without a slot");
        }
    }

    /// What may stand in the control stream.
    fn check_command(&self, id: &CommandId) {
        let twice = self.control.iter().flatten().any(|stored| stored.msg_id.as_ref() == Some(id));
        assert!(!twice, "{id} stands in the stream twice");
        let state = &self.observer.state;
        if id.action != Asked::Prepare {
            let held = state.slots.get(&id.host).is_some_and(|slot| slot.standing == Standing::Held);
            assert!(held, "S4: {id} is sent without a slot");
        }
        let run = [&state.run, &state.last_run].into_iter().flatten().find(|run| run.id == id.run);
        let status = run.and_then(|run| run.host(&id.host)).map(|host| host.status);
        let expected = match id.action {
            Asked::Prepare => HostStatus::Pending,
            Asked::Upgrade => HostStatus::Upgrading,
            Asked::Reboot => HostStatus::Rebooting,
        };
        let ended = run.is_some_and(|run| run.ended.is_some());
        assert!(ended || status == Some(expected), "{id} is sent to a host that is {status:?}");
    }

    /// The worker of `host` takes its next command and answers it.
    pub(crate) fn worker_acts(&mut self, host: &HostName, roll: u32, time: DateTime<Utc>) {
        let worker = self.workers.entry(host.clone()).or_default();
        let found = self.control.iter().enumerate().skip(worker.next).find_map(|(index, stored)| {
            let stored = stored.as_ref()?;
            (stored.subject == subject::command(host)).then(|| (index, stored.clone()))
        });
        let Some((index, stored)) = found else { return };
        worker.next = index + 1;
        let command = Command::parse(&stored.payload).unwrap();
        if command.not_after().is_some_and(|not_after| not_after <= time) {
            return;
        }
        let result = match command.action() {
            Asked::Prepare => {
                worker.prepared = true;
                Outcome::Done
            }
            Asked::Upgrade => {
                assert!(worker.prepared, "{host} is to be upgraded without having been prepared");
                worker.prepared = false;
                let run = stored.msg_id.as_ref().unwrap().run.to_string();
                *self.executions.entry((run, host.clone())).or_default() += 1;
                match roll {
                    0..=2 => Outcome::error("no luck"),
                    3..=50 => Outcome::RebootRequired,
                    _ => Outcome::Done,
                }
            }
            Asked::Reboot => Outcome::Done,
        };
        let reply = Reply { action: command.action(), result };
        let in_reply_to = (!roll.is_multiple_of(3)).then_some(index as u64 + 1);
        for _ in 0..=u32::from(roll.is_multiple_of(7)) {
            let payload = Bytes::from(reply.to_payload());
            self.push(subject::reply(host), None, in_reply_to, payload, time);
        }
    }

    /// Deletes a command that its worker has not been given.
    pub(crate) fn withdraw(&mut self, host: &HostName, sequence: u64) -> bool {
        let index = usize::try_from(sequence).unwrap() - 1;
        let given = self.workers.get(host).is_some_and(|worker| worker.next > index);
        !given && self.control[index].take().is_some()
    }
}
