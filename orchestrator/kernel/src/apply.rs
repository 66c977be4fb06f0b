//! Folds facts: each subject says what a fact about it changes.

use chrono::{DateTime, Utc};

use crate::control::{Fence, SentCommand};
use crate::fact::Fact;
use crate::run::{Ended, Phase, Run, Trigger};
use crate::slot::Slot;
use crate::state::{ApplyError, State};

impl State {
    /// Folds one fact that became true at `at`. On an error the state is unchanged.
    pub fn apply(&mut self, at: DateTime<Utc>, fact: &Fact) -> Result<(), ApplyError> {
        match fact {
            Fact::SettingsAdopted { settings } => {
                self.apply_settings(settings, at);
                Ok(())
            }
            Fact::ConfigReplaced { config, actor: _, difference: _ } => {
                self.apply_config(config.as_ref(), at);
                Ok(())
            }
            Fact::Fenced { sequence, leader } => {
                self.fence = Some(Fence { sequence: *sequence, leader: leader.clone(), passed: false });
                self.missed.leadership_began(self.config.as_deref(), at);
                Ok(())
            }
            Fact::FencePassed { sequence } => self.apply_fence_passed(*sequence),
            Fact::RunStarted { run, trigger, not_after, rollout, hosts } => {
                self.check_no_run(run)?;
                if let Trigger::Window { .. } = trigger {
                    self.watermark = self.watermark.and(at);
                }
                let (trigger, rollout) = (trigger.clone(), rollout.clone());
                let started =
                    Run::start(run.clone(), trigger, at, *not_after, rollout, hosts, &mut self.turns);
                self.run = Some(started);
                Ok(())
            }
            Fact::UpgradesBegan { run } => self.active(run).map(|run| run.phase = Phase::Upgrading),
            Fact::RunMissed(run) => {
                self.missed.missed(run);
                Ok(())
            }
            Fact::RunStopping { run, cause } => self.apply_run_stopping(run, cause, at),
            Fact::RunEnded { run, result } => self.apply_run_ended(run, Ended { at, result: *result }),
            Fact::Host { run, host, event } => self.apply_host(run, host, event, at),
            Fact::SlotRequested { host, group, owner } => self.apply_slot_requested(host, group, owner, at),
            Fact::SlotReleaseDue { host, why } => self.apply_slot_release_due(host, *why, at),
            Fact::SlotReleaseRefused { host, refusal } => {
                self.slot(host)?.refusal = Some(refusal.clone());
                Ok(())
            }
            Fact::SlotInDoubt { host } => self.slot(host).map(Slot::doubted),
            Fact::SlotUnlocked { host } => self.slot(host).map(|slot| slot.unlocked(at)),
            Fact::SlotReleased { host, why } => self.apply_slot_released(host, *why, at),
            Fact::LockGranted { .. }
            | Fact::LockAwaited { .. }
            | Fact::LockReleased { .. }
            | Fact::LockWaitEnded { .. }
            | Fact::HoldPlaced { .. }
            | Fact::HolderReleased { .. } => {
                self.apply_semaphores(at, fact);
                Ok(())
            }
            Fact::StrongboxKeySet { check } => {
                self.strongbox.check = Some(check.clone());
                Ok(())
            }
            Fact::SecretStored { name, sealed, actor } => {
                self.strongbox.apply_kept(name, sealed, actor, at);
                Ok(())
            }
            Fact::SecretRemoved { name, actor: _ } => {
                self.strongbox.secrets.remove(name);
                Ok(())
            }
            Fact::HostsApproved { .. }
            | Fact::HostWithdrawn { .. }
            | Fact::HostRemoved { .. }
            | Fact::HostPurged { .. } => {
                self.apply_enrolment(at, fact);
                Ok(())
            }
            Fact::LateCommandSeen { host, action, sequence } => {
                self.apply_late_command_seen(host, SentCommand { action: *action, sequence: *sequence });
                Ok(())
            }
            Fact::CommandRetracted { host: _, sequence, deleted: _ } => {
                self.retractions.remove(sequence);
                Ok(())
            }
            Fact::Restored { source: _, actor: _, control_kept, outstanding } => {
                self.apply_restored(*control_kept, outstanding, at);
                Ok(())
            }
            Fact::RebootsQueued { .. }
            | Fact::Reboot { .. }
            | Fact::RebootQueueSwitched { .. }
            | Fact::RebootBackoffReset { .. } => self.apply_reboots(at, fact),
            Fact::Node { host, step } => self.apply_node(host, step, at),
            Fact::Ignored { host, reply, why, .. } => {
                if let Some(host) = host {
                    self.apply_ignored(host, reply.as_ref(), why, at);
                }
                Ok(())
            }
        }
    }
}
