//! The state of a site: the fold of its facts.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_calendar::Watermark;
use os_upgrade_protocol::{Action, GroupName, HostName, Reply, RunId};
use serde::{Deserialize, Serialize};

use crate::config::{Config, LockProvider, Settings, tag};
use crate::enrolment::{Enrolled, Enrolment};
use crate::fact::{About, Fact, IgnoreCause, RunRef};
use crate::ignored_replies::IgnoredReplies;
use crate::left_out::is_default;
use crate::missed::MissedRuns;
use crate::node::Node;
use crate::owner::Owner;
use crate::reason::Reason;
use crate::reboot_queue::{QueueError, RebootQueue};
use crate::remembered::Remembered;
use crate::run::{
    Ended, HostError, HostEvent, HostStatus, Issued, LateAnswer, LateResult, Phase, Run, RunHost, StopCause,
    Trigger,
};
use crate::semaphore::{Hold, Semaphores};
use crate::slot::{Fence, ReleaseCause, SentCommand, Slot, SlotState};
use crate::strongbox::Strongbox;
use crate::turns::Turns;

/// Everything durable about a site. Cheap to clone: copies share their large parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct State {
    /// Settings in force.
    pub settings: Arc<Settings>,
    /// The operators' configuration, if there is one.
    pub config: Option<Arc<Config>>,
    /// How many times the configuration has changed.
    pub config_revision: u64,
    /// The embedded semaphores.
    pub semaphores: Semaphores,
    /// The sealed secrets.
    pub strongbox: Strongbox,
    /// Which hosts operators approved or withdrew.
    #[serde(default, skip_serializing_if = "Enrolment::is_empty")]
    pub enrolment: Enrolment,
    /// Slots that hosts hold, or may hold, on behalf of runs.
    pub slots: OrdMap<HostName, Slot>,
    /// The active run.
    pub run: Option<Run>,
    /// The run that ended last.
    pub last_run: Option<Run>,
    /// Up to when occurrences of the maintenance windows have started their run.
    #[serde(default, rename = "spent-at", skip_serializing_if = "Watermark::is_none")]
    pub watermark: Watermark,
    /// What is known of runs that were missed.
    #[serde(default, skip_serializing_if = "MissedRuns::is_empty")]
    pub missed: MissedRuns,
    /// Unanswered commands of ended runs and of hosts that were given up, by sequence: to be deleted unless already
    /// delivered to a worker.
    pub retractions: OrdMap<u64, HostName>,
    /// The fence under which commands are sent.
    pub fence: Option<Fence>,
    /// The sequence in the control stream up to which messages have been applied.
    pub control: u64,
    /// When each host was last upgraded.
    #[serde(default, rename = "last-upgraded-at", skip_serializing_if = "Remembered::is_empty")]
    pub last_upgrades: Remembered<DateTime<Utc>>,
    /// The last turn of each host.
    #[serde(default, skip_serializing_if = "is_default")]
    pub turns: Turns,
    /// Whose ignored replies were journaled of late.
    #[serde(default, skip_serializing_if = "IgnoredReplies::is_empty")]
    pub ignored_replies: IgnoredReplies,
    /// Hosts that are to reboot.
    #[serde(default, skip_serializing_if = "RebootQueue::is_unused")]
    pub reboot_queue: RebootQueue,
    /// The Kubernetes nodes that are cordoned, or may be.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub nodes: OrdMap<HostName, Node>,
    /// When the site was last restored, in seconds since 1970; 0 if it never was.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restored: i64,
}

impl Default for State {
    /// A new site with the default settings and their semaphores.
    fn default() -> Self {
        let settings = Settings::default();
        let mut semaphores = Semaphores::default();
        semaphores.configure(&settings.groups);
        Self {
            settings: Arc::new(settings),
            config: None,
            config_revision: 0,
            semaphores,
            strongbox: Strongbox::default(),
            enrolment: Enrolment::default(),
            slots: OrdMap::new(),
            run: None,
            last_run: None,
            watermark: Watermark::NONE,
            missed: MissedRuns::default(),
            retractions: OrdMap::new(),
            fence: None,
            control: 0,
            last_upgrades: Remembered::default(),
            turns: Turns::default(),
            ignored_replies: IgnoredReplies::default(),
            reboot_queue: RebootQueue::default(),
            nodes: OrdMap::new(),
            restored: 0,
        }
    }
}

/// A fact does not apply to the state: the journal and this program disagree. The state is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The fact is about a run other than the active one.
    #[error("run {fact} is not the active one")]
    WrongRun {
        /// The run the fact is about.
        fact: RunId,
    },
    /// A run starts while another is active.
    #[error("run {started} starts while {active} is active")]
    RunActive {
        /// The run that starts.
        started: RunId,
        /// The active run.
        active: RunId,
    },
    /// The fact is about a slot that does not exist.
    #[error("host {0} has no slot")]
    NoSlot(HostName),
    /// A slot is granted to a host that has a different slot, or one that is being released.
    #[error("host {0} has another slot, which must be released first")]
    SlotTaken(HostName),
    /// The fact is about a node that is not cordoned.
    #[error("the node of host {0} is not cordoned")]
    NoNode(HostName),
    /// The fact is about a fence other than the current one.
    #[error("fence {0} is not the current one")]
    WrongFence(u64),
    /// The event does not apply to the host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The event does not apply to the reboot queue.
    #[error(transparent)]
    RebootQueue(#[from] QueueError),
}

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

    /// The `ETag` of the current configuration, without quotes; it differs from that of every earlier configuration.
    pub fn config_tag(&self) -> Option<String> {
        self.config.as_deref().map(|config| tag::tag(self.config_revision, config))
    }

    /// Whether `host` takes part in runs that start now.
    pub fn enrolled(&self, host: &HostName) -> Enrolled<'_> {
        self.enrolment.of(host, self.settings.auto_approve)
    }

    /// To whose history a fact belongs, by what it is about, if known. Call it before the fact is folded.
    pub fn owner_of(&self, about: About<'_>) -> Option<Owner> {
        let slot = || self.slots.get(about.host?);
        let of_run = |run: &RunId| Owner::Run(run.clone());
        let in_run = |run: &Run| Some((of_run(&run.id), run.host(about.host?)?.command));
        let mut in_runs = self.run.iter().chain(&self.last_run).filter_map(in_run);
        match about.run {
            RunRef::None => None,
            RunRef::Named(run) => Some(of_run(run)),
            RunRef::Owner(owner) => Some(owner.clone()),
            RunRef::OfSlot => slot().map(|slot| slot.owner.clone()),
            RunRef::OfCommand(sequence) => {
                let sent = |command: Option<Issued>| command.is_some_and(|it| it.sequence == Some(sequence));
                in_runs.find(|(_, command)| sent(*command)).map(|(run, _)| run)
            }
            RunRef::OfLateCommand => {
                let of_slot = slot().filter(|slot| slot.unsent_at_fence.is_some());
                let of_slot = of_slot.map(|slot| slot.owner.clone());
                of_slot.or_else(|| in_runs.next().map(|(run, _)| run))
            }
            RunRef::Latest => in_runs.next().map(|(run, _)| run),
        }
    }

    /// Whether a command of an ended run, or of a host that was given up, may still appear for `host`, or is being retracted: its
    /// worker may still begin.
    pub(crate) fn may_begin_late(&self, host: &HostName) -> bool {
        let is_being_retracted = self.retractions.values().any(|retracted| retracted == host);
        let slot = self.slots.get(host);
        is_being_retracted || slot.is_some_and(|slot| slot.may_see_late_command(self.fence.as_ref()))
    }

    /// Cancels the slot request of `run` for a host that will not be upgraded, or gives back the slot that it holds for its drain. A
    /// slot that the host held before the run stays held: what it is held for has not ended.
    pub(crate) fn cancel_slot_request(&self, run: &Run, host: &HostName) -> Option<Fact> {
        let slot = self.slots.get(host)?;
        let is_draining = run.host(host).is_some_and(|in_run| in_run.status == HostStatus::Draining);
        if is_draining && slot.begun {
            return self.uncordon_failed(host);
        }
        let is_unused = slot.owner.is_run(&run.id) && (slot.state == SlotState::Requested || is_draining);
        is_unused.then(|| self.release_slot(host, ReleaseCause::NotNeeded)).flatten()
    }

    /// Whether to request a slot for `host` from the lock server: the host waits for that answer and nothing else.
    pub(crate) fn needs_external_lock(&self, run: &Run, host: &HostName) -> bool {
        let waits = |in_run: &&RunHost| {
            in_run.status == HostStatus::Waiting && !matches!(in_run.reason, Some(Reason::Clock(_)))
        };
        let slot = self.slots.get(host).filter(|slot| !matches!(slot.state, SlotState::Releasing { .. }));
        match (run.host(host).filter(waits), slot) {
            (Some(in_run), Some(slot)) => {
                // One that is held already is left alone until its host may start.
                let is_bound = slot.state == SlotState::Held
                    && in_run.reason.as_ref().is_some_and(Reason::is_of_other_nodes);
                slot.provider == LockProvider::External
                    && slot.fits(&in_run.group, self.settings.provider)
                    && !is_bound
            }
            (None, _) | (_, None) => false,
        }
    }

    fn check_no_run(&self, started: &RunId) -> Result<(), ApplyError> {
        match &self.run {
            Some(active) => {
                Err(ApplyError::RunActive { started: started.clone(), active: active.id.clone() })
            }
            None => Ok(()),
        }
    }

    fn active(&mut self, run: &RunId) -> Result<&mut Run, ApplyError> {
        self.run
            .as_mut()
            .filter(|active| active.id == *run)
            .ok_or_else(|| ApplyError::WrongRun { fact: run.clone() })
    }

    fn slot(&mut self, host: &HostName) -> Result<&mut Slot, ApplyError> {
        self.slots.get_mut(host).ok_or_else(|| ApplyError::NoSlot(host.clone()))
    }

    fn apply_settings(&mut self, settings: &Settings, at: DateTime<Utc>) {
        self.semaphores.configure(&settings.groups);
        if !settings.auto_approve {
            self.enrolment.auto_approve_ended();
        }
        if settings.timezone != self.settings.timezone {
            self.missed.config_replaced(self.config.as_deref(), at);
        }
        self.settings = Arc::new(settings.clone());
    }

    fn apply_enrolment(&mut self, at: DateTime<Utc>, fact: &Fact) {
        self.enrolment.apply(at, fact, self.settings.auto_approve);
        if let Fact::HostRemoved { host, .. } = fact {
            self.last_upgrades.remove(host);
            self.turns.remove(host);
        }
    }

    fn apply_semaphores(&mut self, at: DateTime<Utc>, fact: &Fact) {
        if let Fact::LockGranted { group, id, .. } = fact {
            self.semaphores.lock_for_client(group, id, at);
        } else if let Fact::LockAwaited { group, id, .. } = fact {
            self.semaphores.refused(group, id, at);
        } else if let Fact::LockReleased { group, id, .. } = fact {
            self.semaphores.unlock_for_client(group, id);
        } else if let Fact::LockWaitEnded { group, id, .. } = fact {
            self.semaphores.stop_waiting(group, id);
        } else if let Fact::HoldPlaced { group, id, actor, reason } = fact {
            let (actor, reason) = (actor.clone(), reason.clone());
            self.semaphores.hold(group, id, Hold { actor, reason, since: at });
        } else if let Fact::HolderReleased { group, id, .. } = fact {
            self.semaphores.release(group, id);
        }
    }

    fn apply_config(&mut self, config: Option<&Config>, at: DateTime<Utc>) {
        self.config = config.cloned().map(Arc::new);
        self.missed.config_replaced(config, at);
        self.config_revision = self.config_revision.saturating_add(1);
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

    fn apply_run_stopping(
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
                // Not beyond what the run could use: the clock may have been wrong.
                let used_until = at.min(run.not_after);
                self.watermark = self.watermark.and(used_until);
            }
            StopCause::Failed { .. } | StopCause::Restored { .. } => run.stopping = Some(cause.clone()),
        }
        Ok(())
    }

    fn apply_run_ended(&mut self, run: &RunId, ended: Ended) -> Result<(), ApplyError> {
        self.active(run)?.ended = Some(ended);
        let Some(ended) = self.run.take() else {
            return Ok(());
        };
        let fence = self.fence.as_ref().map_or(0, |fence| fence.sequence);
        for (name, host) in ended.hosts() {
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
        self.last_run = Some(ended);
        Ok(())
    }

    fn apply_host(
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
        active.apply(host, event, at)?;
        let number = active.number;
        match event {
            HostEvent::SlotGranted { group, provider, drain } => {
                self.turns.granted(host, number);
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
            HostEvent::Upgraded => self.last_upgrades.record(host, at),
            HostEvent::Prepared
            | HostEvent::Waiting { .. }
            | HostEvent::TurnLost
            | HostEvent::Drained
            | HostEvent::BackedOff { .. }
            | HostEvent::Recovering
            | HostEvent::Failed { .. }
            | HostEvent::Cancelled { .. } => {}
        }
        Ok(())
    }

    /// Records that `host` holds a slot for `run`.
    pub(crate) fn hold_slot(
        &mut self,
        host: &HostName,
        group: &GroupName,
        provider: LockProvider,
        owner: &Owner,
        at: DateTime<Utc>,
    ) {
        let held = self.slots.get(host).filter(|slot| slot.state == SlotState::Held);
        let slot = Slot {
            group: group.clone(),
            provider,
            state: SlotState::Held,
            since: held.map_or(at, |slot| slot.since),
            held_since: None,
            refusal: None,
            in_doubt: self.slots.get(host).is_some_and(|slot| slot.in_doubt),
            unlocked_at: None,
            owner: owner.clone(),
            // The earlier command counts until the new one appears in the stream.
            command: held.and_then(|slot| slot.command),
            begun: held.is_some_and(|slot| slot.begun),
            unsent_at_fence: None,
        };
        if provider == LockProvider::Embedded {
            self.semaphores.lock_for_owner(group, host.as_str(), owner, slot.since);
        }
        self.slots.insert(host.clone(), slot);
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

    /// A host's slot may only be replaced by one of the same provider and group: otherwise nothing would record that the
    /// old one must be released.
    pub(crate) fn check_slot_free(
        &self,
        host: &HostName,
        group: &GroupName,
        provider: LockProvider,
    ) -> Result<(), ApplyError> {
        let differs = |slot: &Slot| {
            slot.provider != provider
                || slot.group != *group
                || matches!(slot.state, SlotState::Releasing { .. })
        };
        if self.slots.get(host).is_some_and(differs) {
            return Err(ApplyError::SlotTaken(host.clone()));
        }
        Ok(())
    }

    fn apply_slot_requested(
        &mut self,
        host: &HostName,
        group: &GroupName,
        owner: &Owner,
        at: DateTime<Utc>,
    ) -> Result<(), ApplyError> {
        // Requesting a held slot again is not journaled.
        if self.slots.contains_key(host) {
            return Err(ApplyError::SlotTaken(host.clone()));
        }
        self.slots.insert(host.clone(), Slot::requested(group, owner, at));
        Ok(())
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

    /// The slot of `host` is released because of a `done` that came after the host's part in the run.
    fn apply_late_done(&mut self, host: &HostName, why: ReleaseCause, at: DateTime<Utc>) {
        let slot = self.slots.get(host).filter(|slot| slot.state == SlotState::Held);
        let run = slot.filter(|_| why == ReleaseCause::LateDone).and_then(|slot| slot.owner.run()).cloned();
        if let Some(run) = run {
            self.apply_late_answer(host, &run, LateAnswer { at, result: LateResult::Done });
        }
    }

    fn apply_late_answer(&mut self, host: &HostName, run: &RunId, answer: LateAnswer) {
        if answer.result == LateResult::Done {
            self.last_upgrades.record(host, answer.at);
        }
        if let Some(run) = self.run.iter_mut().chain(&mut self.last_run).find(|known| known.id == *run) {
            run.answered_late(host, answer);
        }
    }

    fn apply_slot_release_due(
        &mut self,
        host: &HostName,
        why: ReleaseCause,
        at: DateTime<Utc>,
    ) -> Result<(), ApplyError> {
        self.apply_late_done(host, why, at);
        self.slot(host)?.release_due(why, at);
        self.node_keeps_no_slot(host);
        Ok(())
    }

    fn apply_slot_released(
        &mut self,
        host: &HostName,
        why: ReleaseCause,
        at: DateTime<Utc>,
    ) -> Result<(), ApplyError> {
        self.apply_late_done(host, why, at);
        let slot = self.slots.remove(host).ok_or_else(|| ApplyError::NoSlot(host.clone()))?;
        if slot.provider == LockProvider::Embedded {
            self.semaphores.unlock_for_owner(&slot.group, host.as_str());
        }
        self.node_keeps_no_slot(host);
        Ok(())
    }

    /// The slot of `host` is held for something else than before: for a drain of its node, or for what needs none. If an earlier
    /// cordon is just being ended, that does not release the slot any more.
    pub(crate) fn slot_is_for(&mut self, host: &HostName, drain: bool, at: DateTime<Utc>) {
        if drain {
            self.nodes.insert(host.clone(), Node::checking(at));
        } else {
            self.node_keeps_no_slot(host);
        }
    }

    /// An operator may release the slot of `host` while its node is still being uncordoned.
    fn node_keeps_no_slot(&mut self, host: &HostName) {
        if let Some(node) = self.nodes.get_mut(host) {
            node.slot_released();
        }
    }
}
