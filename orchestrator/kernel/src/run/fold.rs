//! What facts about runs and their hosts change in the state.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, HostName, RunId};

use super::event::HostEvent;
use super::fact::RunFact;
use super::host::{HostStatus, Issued, LateAnswer, LateResult, RunHost};
use super::state::{Ended, Phase, Run, StopCause, Trigger};
use crate::owner::Owner;
use crate::reason::Reason;
use crate::slot::{ReleaseCause, Slot, SlotState};
use crate::state::{ApplyError, State};

impl State {
    pub(crate) fn apply_run(&mut self, fact: &RunFact, at: DateTime<Utc>) -> Result<(), ApplyError> {
        match fact {
            RunFact::Started { run, trigger, not_after, rollout, hosts } => {
                self.check_no_run(run)?;
                if let Trigger::Window { .. } = trigger {
                    self.watermark = self.watermark.and(at);
                }
                let (trigger, rollout) = (trigger.clone(), rollout.clone());
                let started =
                    Run::start(run.clone(), trigger, at, *not_after, rollout, hosts, &mut self.turns);
                self.run = Some(started);
                self.tell_of_run(hosts);
            }
            RunFact::UpgradesBegan { run } => self.active(run)?.phase = Phase::Upgrading,
            RunFact::Missed(run) => self.missed.missed(run),
            RunFact::Stopping { run, cause } => return self.apply_stopping(run, cause, at),
            RunFact::Ended { run, result, counts: _ } => {
                return self.apply_ended(run, Ended { at, result: *result });
            }
            RunFact::Host { run, host, event } => return self.apply_host(run, host, event, at),
        }
        Ok(())
    }

    fn apply_stopping(
        &mut self,
        run: &RunId,
        cause: &StopCause,
        at: DateTime<Utc>,
    ) -> Result<(), ApplyError> {
        let run = self.active(run)?;
        match cause {
            StopCause::Cancelled { .. } => {
                // A failed run stays failed.
                run.stopping.get_or_insert_with(|| cause.clone());
                // Not beyond what the run could use: the clock may have been wrong. A run of chosen hosts leaves the window to the site's.
                let used_until = at.min(run.not_after);
                if !run.trigger.is_targeted() {
                    self.watermark = self.watermark.and(used_until);
                }
            }
            StopCause::Failed { .. } | StopCause::Restored { .. } => run.stopping = Some(cause.clone()),
        }
        Ok(())
    }

    fn apply_ended(&mut self, run: &RunId, ended: Ended) -> Result<(), ApplyError> {
        self.active(run)?.ended = Some(ended);
        let Some(ended) = self.run.take() else {
            return Ok(());
        };
        let fence = self.fence.as_ref().map_or(0, |fence| fence.sequence);
        for (name, host) in ended.hosts() {
            self.turns.ended(name, run, host);
            // For a host that timed out, this was recorded at that time.
            let is_new = host.status != HostStatus::TimedOut;
            if let Some(sequence) = host.unanswered().filter(|_| is_new).and_then(|command| command.sequence)
            {
                self.retractions.insert(sequence, name.clone());
            }
            let not_seen = |command: Issued| command.action != Action::Prepare && command.sequence.is_none();
            let held = |slot: &&mut Slot| slot.owner.is_run(run) && slot.state == SlotState::Held;
            if host.command.is_some_and(not_seen)
                && let Some(slot) = self.slots.get_mut(name).filter(held)
            {
                slot.unsent_at_fence = Some(fence);
            }
        }
        let before = self.last_run.take();
        if !ended.trigger.is_targeted() {
            self.last_whole_run = None;
        } else if let Some(whole) = before.filter(|before| !before.trigger.is_targeted()) {
            self.last_whole_run = Some(Arc::new(whole));
        }
        self.last_run = Some(ended);
        Ok(())
    }

    pub(crate) fn apply_host(
        &mut self,
        run: &RunId,
        host: &HostName,
        event: &HostEvent,
        at: DateTime<Utc>,
    ) -> Result<(), ApplyError> {
        if let HostEvent::SlotGranted { group, provider, .. } = event {
            self.check_slot_free(host, group, *provider)?;
        }
        let active = self.active(run)?;
        let last_turn = |active: &Run| active.host(host).map(|in_run| in_run.last_turn);
        let before = last_turn(active);
        active.apply(host, event, at)?;
        if let Some(turn) = last_turn(active).filter(|turn| before != Some(*turn)) {
            self.turns.taken(host, turn);
        }
        match event {
            HostEvent::SlotGranted { group, provider, drain } => {
                self.hold_slot(host, group, *provider, &Owner::Run(run.clone()), at);
                self.slot_is_for(host, *drain, at);
            }
            HostEvent::CommandSent { action: Action::Prepare, .. } => {}
            HostEvent::CommandSent {
                action: action @ (Action::Upgrade | Action::Reboot), sequence, ..
            } => {
                self.command_of_slot_sent(host, &Owner::Run(run.clone()), *action, *sequence);
            }
            HostEvent::RebootRequired => {
                // From here on only a reply to `reboot` ends the step.
                if let Some(slot) = self.slots.get_mut(host) {
                    slot.command = None;
                }
                if let Some(node) = self.nodes.get_mut(host) {
                    node.reboots();
                }
            }
            HostEvent::TimedOut { .. } => {
                let unanswered = self.active(run)?.host(host).and_then(RunHost::unanswered);
                if let Some(sequence) = unanswered.and_then(|command| command.sequence) {
                    self.retractions.insert(sequence, host.clone());
                }
            }
            HostEvent::Failed {
                reason: Reason::WorkerError { action: Action::Upgrade | Action::Reboot, .. },
            } => {
                if let Some(slot) = self.slots.get_mut(host).filter(|slot| slot.owner.is_run(run)) {
                    slot.failed = true;
                }
            }
            HostEvent::Upgraded => self.last_upgrades.record(host, at, |at| *at),
            HostEvent::Waiting { .. } => {
                if let Some(slot) = self.slots.get_mut(host) {
                    slot.asked();
                }
            }
            HostEvent::PrepareBegan
            | HostEvent::PrepareFailed { .. }
            | HostEvent::Prepared
            | HostEvent::TurnLost
            | HostEvent::Drained
            | HostEvent::BackedOff { .. }
            | HostEvent::Overdue { .. }
            | HostEvent::Recovering
            | HostEvent::Failed { .. }
            | HostEvent::Skipped { .. }
            | HostEvent::Cancelled { .. }
            | HostEvent::NotReached { .. } => {}
        }
        Ok(())
    }

    /// The slot of `host` is released because of a `done` that came after the host's part in the run.
    pub(crate) fn apply_late_done(&mut self, host: &HostName, why: ReleaseCause, at: DateTime<Utc>) {
        let slot = self.slots.get(host).filter(|slot| slot.state == SlotState::Held);
        let run = slot.filter(|_| why == ReleaseCause::LateDone).and_then(|slot| slot.owner.run()).cloned();
        if let Some(run) = run {
            self.apply_late_answer(host, &run, LateAnswer { at, result: LateResult::Done });
        }
    }

    pub(crate) fn apply_late_answer(&mut self, host: &HostName, run: &RunId, answer: LateAnswer) {
        if answer.result == LateResult::Done {
            self.last_upgrades.record(host, answer.at, |at| *at);
        }
        let whole = self.last_whole_run.as_mut().map(Arc::make_mut);
        let mut known = self.run.iter_mut().chain(&mut self.last_run).chain(whole);
        if let Some(run) = known.find(|known| known.id == *run) {
            run.answered_late(host, answer);
        }
    }

    pub(crate) fn check_no_run(&self, started: &RunId) -> Result<(), ApplyError> {
        match &self.run {
            Some(active) => {
                Err(ApplyError::RunActive { started: started.clone(), active: active.id.clone() })
            }
            None => Ok(()),
        }
    }

    pub(crate) fn active(&mut self, run: &RunId) -> Result<&mut Run, ApplyError> {
        self.run
            .as_mut()
            .filter(|active| active.id == *run)
            .ok_or_else(|| ApplyError::WrongRun { fact: run.clone() })
    }
}
