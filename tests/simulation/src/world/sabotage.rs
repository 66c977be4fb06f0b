//! Planted bugs, done to what ships at its edge. See [`crate::bug`].

use bytes::Bytes;
use os_upgrade_kernel::fact::ReleaseCause;
use os_upgrade_kernel::{Batch, Effect, Fact, HostEvent, Input, Record, sends};
use os_upgrade_protocol::Command;
use os_upgrade_shell::journal::codec::{Kind, Message};
use os_upgrade_shell::node::{Event, Node};
use os_upgrade_worker_rules::state_file::RebootDue;
use os_upgrade_worker_rules::{BootId, Loaded, StateFile};

use super::World;
use crate::bug::Bug;
use crate::request::What;

impl World {
    /// The event that the node is given, if any, instead of `event`.
    pub(super) fn sabotage_event(&mut self, index: usize, mut event: Event) -> Option<Event> {
        if let (
            Some(Bug::RetryAfterIgnored),
            Event::Locked { retry_after, .. } | Event::Unlocked { retry_after, .. },
        ) = (self.bug, &mut event)
        {
            *retry_after = None;
        }
        let leads = self.instances[index].node.as_ref().is_some_and(Node::is_leading);
        let (Some(Bug::NoBarrier), true, Event::Call { call, request }) = (self.bug, leads, &event) else {
            return Some(event);
        };
        let wall = self.clock_of(index).wall;
        let node = self.instances[index].node.as_ref()?;
        let mut batch = Batch::new(node.state(), wall);
        match batch.decide(node.inventory().view(), &Input::Request(request.clone())) {
            Some(answer) if batch.is_empty() => {
                let call = *call;
                self.answered(index, call, Ok(answer));
                None
            }
            Some(_) | None => Some(event),
        }
    }

    /// Commands that follow from what is being appended are sent at once.
    pub(super) fn sabotage_append(&mut self, index: usize, message: &Message) {
        if self.bug != Some(Bug::SentBeforeCommit) || message.kind != Kind::Record || message.deflated {
            return;
        }
        let Some(node) = &self.instances[index].node else { return };
        let Ok(record) = serde_json::from_slice::<Record>(&message.payload) else { return };
        let mut state = node.state().clone();
        let Some(fence) = state.fence.as_ref().map(|fence| fence.sequence) else { return };
        let earlier: Vec<Effect> = sends(&state).collect();
        if state.apply_record(&record).is_err() {
            return;
        }
        for effect in sends(&state).filter(|effect| !earlier.contains(effect)).collect::<Vec<_>>() {
            if let Effect::Send { id, not_after } = effect {
                let what = What::Command { epoch: u64::MAX, fence, id, not_after };
                self.ask(index, what, Event::Tick);
            }
        }
    }

    /// What the journal says of slots is left out when it is read.
    pub(super) fn sabotage_journal(&self, event: Event) -> Event {
        let Event::Journal { sequence, message: Ok(mut message) } = event else { return event };
        if self.bug == Some(Bug::SlotForgotten)
            && message.kind == Kind::Record
            && !message.deflated
            && let Ok(mut record) = serde_json::from_slice::<Record>(&message.payload)
        {
            record.facts = record.facts.into_iter().flat_map(without_slot).collect();
            message.payload = Bytes::from(serde_json::to_vec(&record).expect("it was JSON"));
        }
        Event::Journal { sequence, message: Ok(message) }
    }

    /// The payload of a command as its worker is given it.
    pub(super) fn sabotage_payload(&self, payload: &Bytes) -> Vec<u8> {
        if self.bug == Some(Bug::NotAfterUncheckedByWorker)
            && let Ok(command) = Command::parse(payload)
        {
            let without = match command {
                Command::Prepare { hosts, .. } => Command::Prepare { hosts, not_after: None },
                Command::Upgrade { host, .. } => Command::Upgrade { host, not_after: None },
                Command::Reboot { host, .. } => Command::Reboot { host, not_after: None },
            };
            return without.to_payload();
        }
        payload.to_vec()
    }

    /// What a worker finds where its state file should be.
    pub(super) fn sabotage_loaded(&self, index: usize, loaded: Loaded) -> Loaded {
        if self.bug != Some(Bug::RebootWithoutStateFile) || loaded != Loaded::Nothing {
            return loaded;
        }
        let host = &self.hosts[index];
        let boot_id = BootId(format!("boot-{}", host.boot));
        let mut file = StateFile::new(host.name.clone());
        file.reboot_due = Some(RebootDue { sequence: 0, run: None, not_after: None, boot_id });
        Loaded::File(Box::new(file))
    }
}

/// The slot that a fact grants is gone at once; one that was never there is not given back.
fn without_slot(fact: Fact) -> Vec<Fact> {
    if let Fact::Host { host, event: HostEvent::SlotGranted { .. }, .. } = &fact {
        let released = Fact::SlotReleased { host: host.clone(), why: ReleaseCause::NotNeeded };
        return vec![fact, released];
    }
    let gives_back = matches!(fact, Fact::SlotReleased { .. } | Fact::SlotReleaseDue { .. });
    if gives_back { Vec::new() } else { vec![fact] }
}
