//! What facts about the reboot queue change in the state.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, HostName};

use super::entry::{EntryEvent, EntryStatus};
use super::fact::QueueFact;
use super::state::Asked;
use crate::node::NodeStage;
use crate::state::{ApplyError, State};

impl State {
    /// Folds a fact about the reboot queue.
    pub(crate) fn apply_queue(&mut self, fact: &QueueFact, at: DateTime<Utc>) -> Result<(), ApplyError> {
        match fact {
            QueueFact::RebootsQueued { hosts, window: Some(window), .. } => {
                self.reboot_queue.add_required(hosts, *window, at);
            }
            QueueFact::RebootsQueued { hosts, actor, reason, window: None } => {
                let asked = Asked { actor: actor.clone(), reason: reason.clone() };
                self.reboot_queue.add(hosts.iter().cloned(), asked, at);
            }
            QueueFact::Reboot { index, host, event } => return self.apply_reboot(*index, host, event, at),
            QueueFact::Switched { enabled, .. } => self.reboot_queue.disabled = !enabled,
            QueueFact::BackoffReset { .. } => self.reboot_queue.reset_backoff(),
        }
        Ok(())
    }

    /// Folds what happened to the entry at `index`.
    fn apply_reboot(
        &mut self,
        index: u64,
        host: &HostName,
        event: &EntryEvent,
        at: DateTime<Utc>,
    ) -> Result<(), ApplyError> {
        if let EntryEvent::Started { group, provider, .. } = event {
            self.check_slot_free(host, group, *provider)?;
        }
        let before = self.reboot_queue.entries.get(&index).cloned();
        self.reboot_queue.apply(index, event, at)?;
        let Some(before) = before else { return Ok(()) };
        match event {
            EntryEvent::Started { group, provider, drain } => {
                self.hold_slot(host, group, *provider, &before.owner(index), at);
                self.slot_is_for(host, *drain, at);
            }
            EntryEvent::RebootBegan { boot_id } => {
                if let Some(node) = self.nodes.get_mut(host) {
                    node.left = Some(boot_id.clone());
                }
            }
            EntryEvent::AttemptDue { .. } => {
                if let Some(node) = self.nodes.get_mut(host) {
                    // One that is repeated is long after the drain.
                    if before.status == EntryStatus::Rebooting && node.stage == NodeStage::Drained {
                        node.reboots();
                    } else {
                        node.left.clone_from(&node.boot_id);
                    }
                }
            }
            EntryEvent::AttemptBegan => {
                if let Some(slot) = self.slots.get_mut(host) {
                    slot.command = None;
                    slot.begun = true;
                }
            }
            EntryEvent::Booted { checked: true } => {
                if let Some(node) = self.nodes.get_mut(host) {
                    node.left = None;
                }
            }
            EntryEvent::CommandSent { sequence, .. } => {
                self.command_of_slot_sent(host, &before.owner(index), Action::Reboot, *sequence);
            }
            EntryEvent::GivenUp { .. } => {
                if let Some(sequence) = before.unanswered().and_then(|command| command.sequence) {
                    self.retractions.insert(sequence, host.clone());
                }
            }
            EntryEvent::Waiting { .. }
            | EntryEvent::BackedOff { .. }
            | EntryEvent::Booted { checked: false }
            | EntryEvent::AttemptSucceeded
            | EntryEvent::AttemptUnknown { .. }
            | EntryEvent::Failed { .. }
            | EntryEvent::Cancelled { .. }
            | EntryEvent::NotRebooted
            | EntryEvent::Removed
            | EntryEvent::Rebooted => {}
        }
        Ok(())
    }
}
