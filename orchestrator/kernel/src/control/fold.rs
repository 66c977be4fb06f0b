//! What messages of the control stream change in the state.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, HostName, Reply};

use super::fact::{ControlFact, IgnoreCause};
use super::fence::Fence;
use super::sent_command::SentCommand;
use crate::owner::Owner;
use crate::run::LateAnswer;
use crate::state::{ApplyError, State};

impl State {
    pub(crate) fn apply_control(&mut self, fact: &ControlFact, at: DateTime<Utc>) -> Result<(), ApplyError> {
        match fact {
            ControlFact::Fenced { sequence, leader } => {
                self.fence = Some(Fence { sequence: *sequence, leader: leader.clone(), passed: false });
                self.missed.leadership_began(self.config.as_deref(), at);
            }
            ControlFact::FencePassed { sequence } => return self.apply_fence_passed(*sequence),
            ControlFact::LateCommandSeen { host, action, sequence } => {
                self.apply_late_command_seen(host, SentCommand { action: *action, sequence: *sequence });
            }
            ControlFact::CommandRetracted { host: _, sequence, deleted: _ } => {
                self.retractions.remove(sequence);
            }
            ControlFact::Ignored { host: Some(host), reply, why, .. } => {
                self.apply_ignored(host, reply.as_ref(), why, at);
            }
            ControlFact::Ignored { host: None, .. } => {}
        }
        Ok(())
    }

    fn apply_fence_passed(&mut self, sequence: u64) -> Result<(), ApplyError> {
        let fence = self
            .fence
            .as_mut()
            .filter(|fence| fence.sequence == sequence)
            .ok_or(ApplyError::WrongFence(sequence))?;
        fence.passed = true;
        Ok(())
    }

    /// Records that a command of `owner`, for which `host` holds its slot, was seen in the control stream.
    pub(crate) fn command_of_slot_sent(
        &mut self,
        host: &HostName,
        owner: &Owner,
        action: Action,
        sequence: u64,
    ) {
        if let Some(slot) = self.slots.get_mut(host).filter(|slot| slot.owner == *owner) {
            slot.command = Some(SentCommand { action, sequence });
            slot.begun = true;
        }
    }

    fn apply_late_command_seen(&mut self, host: &HostName, command: SentCommand) {
        let of_slot = self.slots.get_mut(host).filter(|slot| slot.unsent_at_fence.is_some());
        if let Some(slot) = of_slot.filter(|_| command.action != Action::Prepare) {
            slot.command = Some(command);
            slot.begun = true;
            slot.unsent_at_fence = None;
        }
        self.retractions.insert(command.sequence, host.clone());
    }

    fn apply_ignored(
        &mut self,
        host: &HostName,
        reply: Option<&Reply>,
        why: &IgnoreCause,
        at: DateTime<Utc>,
    ) {
        if why.is_of_reply() {
            self.ignored_replies.record(host, at);
        }
        if let (Some(reply), IgnoreCause::TooLate { run }) = (reply, why) {
            self.apply_late_answer(host, run, LateAnswer { at, result: (&reply.result).into() });
        }
    }
}
