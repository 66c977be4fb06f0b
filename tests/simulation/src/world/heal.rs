//! After the faults: everything is repaired, runs must end, and one more run must succeed.

use chrono::TimeDelta;
use os_upgrade_kernel::config::Rollout;
use os_upgrade_kernel::reboot_queue::EntryStatus;
use os_upgrade_kernel::{
    ClientId, ClockDoubt, Config, ConfigOperation, Effect, Expected, Job, Operation, Reachability, Request,
    RunOperation, RunResult, Slot, SlotOperation, SlotState, State, Subject, Trigger,
};
use os_upgrade_protocol::{GroupName, HostName};
use os_upgrade_shell::instance::Instance as Logic;

use super::World;
use crate::agenda::Item;
use crate::host::Host;
use crate::peer::Peer;
use crate::plan::window;
use crate::time::{MINUTE, Micros, SECOND};

/// How long the world may take to come to rest without faults, beyond the end of the active run.
const REST_MAX: Micros = 30 * MINUTE;

/// How long a call may take.
const CALL_MAX: Micros = 90 * SECOND;
/// Within this time every instance has found that the bus has lost data: one that was being stopped starts again after a minute, and believes in
/// the loss 30 s later.
const LOSS_FOUND_WITHIN: Micros = 2 * MINUTE;
/// How many runs are tried, since one may still suffer from the faults: a host that is booting, a very late answer.
const LAST_RUNS_MAX: u32 = 3;

impl World {
    /// Runs the world with faults, for as long as planned. Stops at the first violation.
    pub(crate) fn run_with_faults(&mut self) {
        let resumed = |world: &Self| {
            !world.checker.has_lost_data() && !world.is_rolled_back && world.checker.is_clean()
        };
        while self.now < self.plan.faults_until && resumed(self) && self.step() {}
    }

    /// Ends the faults and repairs everything.
    pub(crate) fn heal(&mut self) {
        self.faults_enabled = false;
        self.trace.record(self.now, || "HEALED: no more faults".to_owned());
        self.locks.is_up = true;
        self.bus_up = true;
        self.heal_cluster();
        self.correct_clocks();
        for index in 0..self.instances.len() {
            let boot = self.instances[index].boot;
            self.link_back(Peer::Instance(index));
            if self.instances[index].paused.is_some() {
                self.resume(index, boot);
            }
            self.after(SECOND, Item::Start { instance: index });
        }
        if self.is_rolled_back {
            self.free_hung_hosts();
        } else {
            self.leave_hung_for_queue();
        }
        for index in 0..self.hosts.len() {
            let host = &mut self.hosts[index];
            host.clock = TimeDelta::zero();
            if let Some(agent) = &mut host.agent {
                agent.hangs_until = 0;
            }
            let (boot, is_up) = (host.boot, host.is_up);
            self.link_back(Peer::Host(index));
            if is_up {
                self.after(SECOND, Item::StartWorker { host: index, boot });
            }
        }
    }

    /// Every run ends, and one more succeeds and leaves nothing behind. After a loss of data nothing goes on: every
    /// instance that knows of the loss has stopped.
    pub(crate) fn liveness(&mut self) {
        if self.checker.has_lost_data() {
            let settled = self.now + LOSS_FOUND_WITHIN;
            while self.now < settled && self.checker.is_clean() && self.step() {}
            let halted = |instance: &crate::instance::Instance| {
                instance.logic.as_ref().is_some_and(|logic| logic.halted().is_some())
            };
            let halted: Vec<bool> = self.instances.iter().map(halted).collect();
            return self.checker.check_stopped(&halted, self.bus.ends());
        }
        if !self.until("an instance leads", |world| world.leader().is_some()) {
            return;
        }
        // Calls that were made during the faults are still on their way.
        let settled = self.now + CALL_MAX;
        self.until("calls under way have arrived", move |world| world.now > settled);
        if !self.is_resumed() {
            return;
        }
        // A host that was withdrawn while its clock was wrong disputes the leader's for an hour, unless it is approved.
        if !self.until_granted("every host is approved", World::approval_of_all) {
            return;
        }
        // Without a configuration no run can start, and none was missed.
        let is_configured = self.leader().is_some_and(|leader| leader.state().config.is_some());
        if is_configured && !self.vouch_for_clock() {
            return;
        }
        // What is remembered of them is of the moment before.
        if !self.is_rolled_back
            && !self.until("missed runs are recorded", |world| world.checker.has_missed_runs_recorded())
        {
            return;
        }
        if !self.until_granted("the configuration is accepted", World::config_without_windows)
            || !self.vouch_for_clock()
        {
            return;
        }
        let group = self.plan.settings.default_group.clone();
        self.locks.unlock(&group, "other");
        if self.is_rolled_back {
            self.unlock_what_nobody_remembers();
        }
        // Hosts at work keep their slots until the run has ended, which may be hours away.
        if !self.release_foreign_slots()
            || !self.until("the active run has ended and nothing is left to do", World::is_at_rest)
            || !self.release_foreign_slots()
            || !self.until("nothing is left to do", World::is_at_rest)
        {
            return;
        }
        self.check_remembered_run();
        if !self.queue_becomes_empty() {
            return;
        }
        self.remove_stubborn_pods();
        if self.can_schedule_run() && !self.scheduled_run_ends() {
            return;
        }
        if !self.nights_with_a_bad_host() {
            return;
        }
        for last in 1..=LAST_RUNS_MAX {
            let earlier = self.operators.runs;
            if !self.until("every host is seen", World::sees_every_host)
                || !self.until_granted("a run is accepted", World::last_trigger)
                || !self.until("the last run has ended", World::is_at_rest)
            {
                return;
            }
            if self.last_run_completed(earlier, last == LAST_RUNS_MAX) {
                break;
            }
        }
        if !self.is_delivered() || !self.units_settle() {
            return;
        }
        // What the checker remembers of slots and steps is of the moment before.
        if !self.is_rolled_back {
            if !self.nodes_are_left_as_they_were() || !self.contend() {
                return;
            }
            self.check_the_end();
        }
        self.everything_is_told();
    }

    /// After a time at which all clocks were ahead, an operator says that they are right by now, by starting a run.
    fn vouch_for_clock(&mut self) -> bool {
        // Until hosts agree, their doubt is the one that is shown. What one that hangs has said before counts for an hour.
        let agrees = |world: &Self| {
            let is_trusted = |leader: &Logic| leader.inventory().view().clock.is_trusted();
            world.hosts.iter().any(|host| host.hangs) || world.leader().is_some_and(is_trusted)
        };
        if !self.until("the clocks agree", agrees) {
            return false;
        }
        let doubt = |world: &Self| world.leader()?.inventory().view().clock.doubt.clone();
        let doubts = move |world: &Self| {
            doubt(world).is_some_and(|doubt| matches!(doubt, ClockDoubt::ClockBehind { .. }))
        };
        if !doubts(self) {
            return true;
        }
        let is_idle = |world: &Self| world.leader().is_some_and(|leader| leader.state().run.is_none());
        let cancel = |_: &mut Self| Request::new("operator", RunOperation::Cancel { reason: None }).into();
        (is_idle(self) || self.until_granted("a run is cancelled", cancel))
            && self.until("the cancelled run has ended", is_idle)
            // Longer than a host may be expected to take.
            && self.until_granted("a run is accepted", |world| world.trigger_for(2 * 60))
            && self.until("the clock is vouched for", move |world| world.leader().is_some() && !doubts(world))
    }

    /// Releases every slot that clients and operators hold, except of hosts at work; returns whether that succeeded.
    pub(super) fn release_foreign_slots(&mut self) -> bool {
        while let (true, Some((group, id))) = (self.checker.is_clean(), self.next_foreign_slot()) {
            let release = |_: &mut Self| {
                let (group, id, reason) = (group.clone(), id.clone(), "the end".to_owned());
                let operation = SlotOperation::Release { group, id, reason };
                Request::new("operator", operation).into()
            };
            if !self.until_granted("a slot is released", release) {
                return false;
            }
        }
        true
    }

    /// A slot that a client or an operator holds, by the leader's state, and that can be released.
    fn next_foreign_slot(&self) -> Option<(GroupName, ClientId)> {
        let state = self.leader()?.state();
        let in_run = |id: &str| state.run.as_ref()?.host(&HostName::new(id).ok()?);
        let of_queue = |id: &str| HostName::new(id).is_ok_and(|host| state.entry_under_way(&host).is_some());
        let is_at_work = |id: &str| in_run(id).is_some_and(|host| host.status.is_under_way()) || of_queue(id);
        let mut held = state.semaphores.iter().flat_map(|(group, semaphore)| {
            let from_outside =
                semaphore.holders.iter().filter(|(_, holder)| holder.client || holder.hold.is_some());
            let holders = from_outside.filter(|(id, _)| !is_at_work(id));
            holders.map(move |(id, _)| (group.clone(), ClientId::new(id).expect("it was one before")))
        });
        held.next()
    }

    /// Whether every host is up and the leader sees it.
    pub(super) fn sees_every_host(&self) -> bool {
        self.sees_hosts(|_| true)
    }

    /// Whether every host that is meant is up and the leader sees it.
    pub(super) fn sees_hosts(&self, is_meant: impl Fn(&Host) -> bool) -> bool {
        let Some(leader) = self.leader() else { return false };
        let seen = |host: &Host| {
            let seen = leader.inventory().view().hosts.get(&host.name);
            host.process.is_some() && seen.is_some_and(|seen| seen.reachability != Reachability::Unreachable)
        };
        self.hosts.iter().filter(|host| is_meant(host)).all(seen)
    }

    /// Whether a scheduled run is possible: not if a clock that was ahead has started one in an occurrence that is
    /// still to come.
    fn can_schedule_run(&self) -> bool {
        let is_ahead = self.leader().is_some_and(|leader| leader.state().watermark.is_after(self.time()));
        !self.plan.config.maintenance_windows.is_empty() && !is_ahead
    }

    /// Whether a run starts automatically once windows are configured, and ends.
    fn scheduled_run_ends(&mut self) -> bool {
        self.vouch_for_clock()
            && self.until_granted("windows are accepted", Self::config_with_windows)
            && self.until("a run has started automatically", World::runs_scheduled)
            && self.until_granted("no windows are accepted", World::config_without_windows)
            && self.until("the run that started automatically has ended", World::is_at_rest)
    }

    fn runs_scheduled(&self) -> bool {
        let run = self.leader().and_then(|leader| leader.state().run.as_ref());
        run.is_some_and(|run| matches!(run.trigger, Trigger::Window { .. }))
    }

    /// A configuration in which a run starts every few minutes.
    pub(super) fn config_with_windows(&mut self) -> Request {
        let config = Config { maintenance_windows: vec![window(0, 10, 10)], ..self.base_config() };
        Self::put_config(config)
    }

    /// A configuration in which no run starts automatically.
    pub(super) fn config_without_windows(&mut self) -> Request {
        let config = self.base_config();
        Self::put_config(config)
    }

    pub(super) fn base_config(&self) -> Config {
        let Config { worker_applications, rollout, config_providers, .. } = self.plan.config.clone();
        // Every host comes back now, and none should be given up because it is slow.
        let Rollout { boot_timeout, prepare_timeout, upgrade_timeout, expected_duration, .. } =
            Rollout::default();
        let rollout =
            Rollout { boot_timeout, prepare_timeout, upgrade_timeout, expected_duration, ..rollout };
        Config { worker_applications, rollout, config_providers, ..Config::default() }
    }

    pub(super) fn put_config(config: Config) -> Request {
        let operation = ConfigOperation::Put { config: config.into(), expected: Expected::Anything };
        Request::new("operator", operation).into()
    }

    pub(super) fn last_trigger(&mut self) -> Request {
        self.trigger_for(3 * 3_600)
    }

    pub(super) fn trigger_for(&mut self, seconds: u64) -> Request {
        let mut request = self.trigger();
        if let Operation::Run(RunOperation::Trigger { timeout, .. }) = &mut request.operation {
            *timeout = Some(os_upgrade_calendar::Duration::from_secs(seconds));
        }
        request
    }

    /// Repeats a request, as an operator would, until it is accepted.
    pub(super) fn until_granted(
        &mut self,
        what: &'static str,
        request: impl Fn(&mut Self) -> Request,
    ) -> bool {
        for _ in 0..200 {
            let Some(index) = self.instances.iter().position(Self::leads) else {
                if !self.until("an instance leads", |world| world.leader().is_some()) {
                    return false;
                }
                continue;
            };
            let request = request(self);
            let before = self.operators.calls;
            self.request(index, request);
            let until = self.now + 10 * SECOND;
            while self.now < until && self.operators.last_granted <= before && self.checker.is_clean() {
                self.step();
            }
            if !self.checker.is_clean() {
                return false;
            }
            if self.operators.last_granted > before {
                return true;
            }
        }
        self.checker.never_happened(what, "");
        false
    }

    pub(super) fn leads(instance: &crate::instance::Instance) -> bool {
        instance.logic.as_ref().is_some_and(Logic::is_leading)
    }

    /// Whether no run is active and nothing is under way, as the leader shows it.
    pub(super) fn is_at_rest(&self) -> bool {
        let Some(leader) = self.leader() else { return false };
        let state = leader.state();
        state.run.is_none() && state.retractions.is_empty() && is_settled(state)
    }

    pub(super) fn until(&mut self, what: &'static str, done: impl Fn(&Self) -> bool) -> bool {
        let mut until = self.now + REST_MAX;
        while self.checker.is_clean() {
            if done(self) {
                return true;
            }
            // The active run may have started since, or its leader may be a new one.
            if let Some(not_after) = self.checker.run_ends().filter(|_| self.now > until) {
                let left = (not_after - self.time()).num_microseconds().unwrap_or(0);
                let end = self.now.saturating_add_signed(left) + REST_MAX;
                until = until.max(end);
            }
            if self.now > until || !self.step() {
                let state = self.leader().map(|leader| format!("{:#?}", leader.state()));
                self.checker.never_happened(what, state.as_deref().unwrap_or("no instance leads"));
            }
        }
        false
    }

    /// Whether the run after `earlier` was completed; if not and it is the last, that is a violation.
    fn last_run_completed(&mut self, earlier: u32, is_last: bool) -> bool {
        let run = self.leader().and_then(|leader| leader.state().last_run.clone());
        let well = run.as_ref().is_some_and(|run| {
            let number: u32 = run.id.as_str().trim_start_matches('r').parse().unwrap_or(0);
            number > earlier && run.ended.is_some_and(|ended| ended.result == RunResult::Completed)
        });
        if !well && is_last {
            let state = self.leader().map(|leader| format!("{:#?}", leader.state()));
            self.checker
                .never_happened("the last run is completed", state.as_deref().unwrap_or("no instance leads"));
        }
        well
    }

    fn check_the_end(&mut self) {
        // Whenever an agent is heard again, something may be on its way to the leader.
        let has_read =
            |world: &Self| world.leader().is_some_and(|leader| leader.position() == world.bus.journal_len());
        if self.plan.units.is_some() && !self.until("the leader has read the journal", has_read) {
            return;
        }
        if let Some(state) = self.leader().map(|leader| leader.state().clone()) {
            self.checker.check_end(&state, &self.locks);
        }
    }
}

/// Whether nothing is left to do for the lock server and the control stream.
fn is_settled(state: &State) -> bool {
    let fence = state.fence.as_ref();
    // A slot for an entry of the reboot queue is asked for until somebody gives one back.
    let is_of_queued = |effect: &Effect| {
        let Effect::Job(job) = effect else { return false };
        let Subject::Host(host) = job.subject();
        let entry = state.entry_of_slot(&host);
        if let Job::RebootCommand(_) = job {
            return true;
        }
        // What the drain for an entry waits for is named by the queue.
        if let Job::Cluster(job) = job
            && state.entry_under_way(&job.host).is_some()
        {
            return true;
        }
        !job.is_release() && entry.is_some_and(|(_, entry)| entry.status == EntryStatus::Queued)
    };
    let nothing_due = os_upgrade_kernel::other_effects(state).all(|effect| is_of_queued(&effect));
    let is_settled =
        |slot: &Slot| !slot.may_see_late_command(fence) && !matches!(slot.state, SlotState::Releasing { .. });
    nothing_due && state.slots.values().all(is_settled)
}
