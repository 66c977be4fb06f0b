//! What a restoration changes in the state: whatever may hold a slot holds it.

use chrono::{DateTime, Utc};
use os_upgrade_calendar::Watermark;
use os_upgrade_protocol::{Action, HostName};

use super::fact::RestorationFact;
use super::record::Outstanding;
use crate::config::LockProvider;
use crate::control::SentCommand;
use crate::node::Node;
use crate::slot::{Slot, SlotState};
use crate::state::State;

impl State {
    /// Drops the fence of the earlier leadership, and holds every slot that may be held.
    pub(crate) fn apply_restoration(&mut self, fact: &RestorationFact, at: DateTime<Utc>) {
        let RestorationFact::Restored { source: _, actor: _, control_kept, outstanding } = fact;
        self.fence = None;
        // A run started in the open occurrence may have been lost: none is started in it again.
        self.watermark = Watermark::up_to(at);
        if !*control_kept {
            self.retractions.clear();
        }
        self.reboot_queue.restored(at);
        self.restored = at.timestamp().max(self.restored.saturating_add(1));
        self.restored_nodes();
        self.desired.restored();
        self.units_restored();
        let hosts: Vec<HostName> = self.slots.keys().cloned().collect();
        for host in hosts {
            if let Some(slot) = self.slots.get_mut(&host) {
                assume_held(slot, at);
            }
        }
        for command in outstanding {
            if *control_kept {
                self.retractions.insert(command.sequence, command.host.clone());
            }
            match command.action {
                Action::Prepare => {}
                Action::Upgrade | Action::Reboot => self.assume_at_work(command, at),
            }
        }
    }

    fn assume_at_work(&mut self, command: &Outstanding, at: DateTime<Utc>) {
        let sent = SentCommand { action: command.action, sequence: command.sequence };
        let provider = self.settings.provider;
        let slot = self.slots.entry(command.host.clone()).or_insert_with(|| Slot {
            group: command.group.clone(),
            provider,
            state: SlotState::Held,
            since: at,
            held_since: None,
            refusal: None,
            in_doubt: false,
            unlocked_at: None,
            owner: command.owner.clone(),
            command: None,
            begun: true,
            failed: false,
            unsent_at_fence: None,
        });
        // The slot may have been in release after an earlier command.
        slot.state = SlotState::Held;
        slot.since = slot.held_since.take().unwrap_or(slot.since);
        slot.refusal = None;
        slot.in_doubt |= slot.unlocked_at.take().is_some();
        slot.owner = command.owner.clone();
        slot.command = Some(sent);
        let (has_node, host) =
            (self.settings.kubernetes.as_ref().is_some_and(|it| it.includes(&command.host)), &command.host);
        if has_node {
            self.nodes.entry(host.clone()).or_insert_with(|| Node::assumed_cordoned(at));
        }
        let (group, owner, since) = (slot.group.clone(), slot.owner.clone(), slot.since);
        if slot.provider == LockProvider::Embedded {
            self.semaphores.lock_for_owner(&group, command.host.as_str(), &owner, since);
        }
    }
}

/// A requested slot may have been granted, and a granted one used, in the part of the journal that is lost.
fn assume_held(slot: &mut Slot, at: DateTime<Utc>) {
    match slot.state {
        SlotState::Requested => {
            slot.state = SlotState::Held;
            slot.since = at;
        }
        // The step it was held for had ended.
        SlotState::Releasing { .. } => return,
        SlotState::Held => {}
    }
    slot.begun = true;
    slot.failed = false;
    slot.unsent_at_fence = None;
}
