//! Faults that happen spontaneously, and how links and the bus fail and return.

use chrono::TimeDelta;
use os_upgrade_shell::instance::Event;

use super::World;
use crate::agenda::{Item, Process, Worker};
use crate::bus::Ends;
use crate::checker::KnownEnds;
use crate::fault::Fault;
use crate::instance::Instance;
use crate::peer::Peer;
use crate::time::{MINUTE, Micros, SECOND};

/// Within this time every process that was up has found that the streams were purged: it inspects them every 10 s, and
/// may have to find the loss for 30 s; each inspection may take 20 s to be given up.
const PURGE_FOUND_WITHIN: Micros = 2 * MINUTE;

impl World {
    pub(super) fn fault(&mut self) {
        if !self.faults_enabled {
            return;
        }
        let every = 2 * self.plan.fault_every * self.slowdown();
        self.after(every, Item::Fault);
        let Some(fault) = self.plan.pick_fault(&mut self.rng) else { return };
        // It only counts once the machine is put back.
        if fault != Fault::MachineRolledBack {
            self.count(fault);
        }
        let instance = self.rng.usize(..self.instances.len());
        let host = self.rng.usize(..self.hosts.len());
        let boot = self.hosts[host].boot;
        match fault {
            Fault::OrchestratorCrash => self.kill(instance),
            Fault::OrchestratorStop => {
                let boot = self.instances[instance].boot;
                let what = Process::Event(Event::Stop);
                self.after(SECOND, Item::Process { instance, boot, what });
            }
            Fault::Reconfigured => self.reconfigure(instance),
            Fault::OrchestratorPause => self.pause(instance),
            Fault::OrchestratorCutOff => self.cut_off(Peer::Instance(instance)),
            Fault::WorkerCutOff => self.cut_off(Peer::Host(host)),
            Fault::BusCrash => self.kill_bus(),
            Fault::StreamsPurged => self.purge_streams(),
            Fault::MachineRolledBack => self.save_machine(),
            Fault::StrayMessage => self.bus.stray(),
            Fault::WorkerCrash => {
                self.hosts[host].kill();
                self.after(20 * SECOND, Item::StartWorker { host, boot });
            }
            Fault::PowerCut => self.reboot(host, boot, None),
            Fault::StaleRead => {
                let until = self.now + self.rng.u64(..10 * SECOND);
                self.stale_until = self.stale_until.max(until);
            }
            Fault::LockServerDown => {
                self.locks.is_up = false;
                self.after(MINUTE, Item::LocksBack);
            }
            Fault::ClockStep => self.step_clock(instance, host),
            Fault::BusClockStep => self.step_bus_clock(instance),
            Fault::DirectoryCopied
            | Fault::OlderVersion
            | Fault::TimeLost
            | Fault::StoreLost
            | Fault::StoreOlder
            | Fault::DataLost
            | Fault::BusAwayForHours
            | Fault::PausedBeforeWrite
            | Fault::KilledBeforeWrite
            | Fault::AcksForgotten
            | Fault::WorkerStateLost
            | Fault::SaveFails
            | Fault::UpgradeReboots
            | Fault::SlowBoot
            | Fault::RebootFails
            | Fault::HandlerFails
            | Fault::HandlerHangs
            | Fault::WorkerAnswersTwice
            | Fault::WorkerLies
            | Fault::MessageLost
            | Fault::MessageLate
            | Fault::AnswerLost
            | Fault::MessageSlow
            | Fault::DeliveredTwice
            | Fault::SentOnReconnect
            | Fault::LockDenied
            | Fault::LockLate
            | Fault::LockCarriedOutLate
            | Fault::LockAnswers202
            | Fault::LockAnswers429
            | Fault::LockAnswers500
            | Fault::BootHangs
            | Fault::RebootUnanswered
            | Fault::KubernetesDown
            | Fault::KubernetesUnanswered
            | Fault::KubernetesSlow
            | Fault::KubernetesLate
            | Fault::KubernetesThrottles
            | Fault::KubernetesConflict
            | Fault::KubernetesSilent
            | Fault::CordonedByAdmin
            | Fault::UncordonedByAdmin
            | Fault::NodeDeleted
            | Fault::CommandFails
            | Fault::CommandLies
            | Fault::CommandKilled
            | Fault::CommandHangs
            | Fault::BootCheckLate
            | Fault::BootCheckFails
            | Fault::BootCheckHangs
            | Fault::ProviderDown
            | Fault::ProviderSlow
            | Fault::ProviderFails
            | Fault::KeyChanged
            | Fault::AgentSilent
            | Fault::AgentsSilent
            | Fault::DesiredStateLost => {}
        }
    }

    pub(super) fn kill(&mut self, instance: usize) {
        self.instances[instance].kill();
        let away = if self.rng.bool() { SECOND } else { MINUTE };
        self.after(away, Item::Start { instance });
    }

    /// Changes the settings of one instance, and restarts it.
    fn reconfigure(&mut self, instance: usize) {
        let settings = &mut self.instances[instance].settings;
        for slots in settings.groups.values_mut() {
            *slots = self.rng.u32(1..=3);
        }
        settings.auto_approve = self.rng.bool();
        if self.plan.queue.is_some() {
            settings.reboot.max_concurrent = self.rng.u32(1..=3);
        }
        if let Some(command) = &self.plan.command {
            settings.reboot.command = (self.rng.u32(..4) > 0).then_some(command.settings);
        }
        let settings = settings.clone();
        self.checker.settings_changed(&settings);
        self.kill(instance);
    }

    pub(super) fn pause(&mut self, index: usize) {
        let instance = &mut self.instances[index];
        if instance.logic.is_none() || instance.paused.is_some() {
            return;
        }
        instance.paused = Some(Vec::new());
        let boot = instance.boot;
        let longest: Micros = if self.rng.bool() { 10 * SECOND } else { 3 * MINUTE };
        self.after(longest, Item::Resume { instance: index, boot });
    }

    fn cut_off(&mut self, peer: Peer) {
        match peer {
            Peer::Instance(instance) => self.instances[instance].linked = false,
            Peer::Host(host) => self.hosts[host].linked = false,
        }
        self.link_lost(peer);
        let longest = if self.rng.bool() { 3 * SECOND } else { MINUTE };
        self.after(longest, Item::LinkBack(peer));
    }

    fn kill_bus(&mut self) {
        if !self.bus_up {
            return;
        }
        self.bus_up = false;
        for peer in self.peers() {
            self.link_lost(peer);
        }
        if self.occurs(Fault::DataLost) {
            self.lose_data();
        } else if self.occurs(Fault::AcksForgotten) {
            self.bus.forget_acks(self.now);
            self.checker.acks_forgotten();
        }
        if self.occurs(Fault::BusAwayForHours) {
            let away = self.rng.u64(60 * MINUTE..90 * MINUTE);
            // The faults must not end before the bus is back.
            self.plan.faults_until += away;
            self.away_until = self.now + away;
            return self.at(away, Item::BusBack);
        }
        let longest = if self.rng.bool() { 2 * SECOND } else { MINUTE };
        self.after(longest, Item::BusBack);
    }

    /// How much less often operators, clients and faults act while the bus is away for hours: acting every second
    /// would prove nothing more, and take as long as many seeds.
    pub(super) fn slowdown(&self) -> Micros {
        if self.now < self.away_until { 60 } else { 1 }
    }

    /// Removes the end of the journal, of the control stream, or of both.
    fn lose_data(&mut self) {
        let (journal, control) = (self.bus.journal_len(), self.bus.control_len());
        let of = |rng: &mut fastrand::Rng, last: u64| last - rng.u64(..=last.min(20));
        let journal_kept = if self.rng.u32(..3) > 0 { of(&mut self.rng, journal) } else { journal };
        let control_kept = if self.rng.u32(..3) > 0 { of(&mut self.rng, control) } else { control };
        self.bus.forget_after(journal_kept, control_kept);
        self.trace
            .record(self.now, || format!("only {journal_kept} of {journal} and {control_kept} of {control}"));
        let ends_of = |index: usize| {
            let instance = &self.instances[index];
            let live = instance.logic.as_ref();
            let live = live.map(|logic| Ends { journal: logic.position(), control: logic.state().control });
            let stored = instance.store.reached.as_ref();
            let stored = stored.map(|store| Ends { journal: store.sequence, control: store.control });
            KnownEnds { process: instance.boot, live, reconnected: None, stored }
        };
        let known = (0..self.instances.len()).map(ends_of).collect();
        self.checker.data_lost(known);
    }

    /// Somebody deletes what is in the streams, while everybody stays connected. No further faults happen then.
    fn purge_streams(&mut self) {
        let kept = usize::from(self.bus.ends_with_record() && self.rng.bool());
        // A journal of which no more than that was ever there has lost nothing.
        if self.bus.journal_len() < 3 || !self.bus_up {
            return;
        }
        let next = self.bus.journal_len() + 1;
        self.bus.purge(kept);
        self.faults_enabled = false;
        self.trace.record(self.now, || format!("{kept} messages are left"));
        // Where the streams end does not show it.
        let ends = |instance: &Instance| KnownEnds {
            process: instance.boot,
            live: None,
            reconnected: None,
            stored: None,
        };
        self.checker.data_lost(self.instances.iter().map(ends).collect());
        let knows = |instance: &Instance| {
            let logic = instance.logic.as_ref().filter(|_| instance.paused.is_none() && instance.linked);
            let knows = logic.is_some_and(|logic| logic.has_read() && logic.state().fence.is_some());
            knows.then_some(instance.boot)
        };
        let know: Vec<Option<u32>> = self.instances.iter().map(knows).collect();
        let found_by = self.now + PURGE_FOUND_WITHIN;
        // With a snapshot in its place the journal looks as if it had been trimmed, and lacks nothing that anybody needs.
        let mut is_replaced = false;
        while self.now < found_by && self.step() {
            is_replaced |= kept == 0 && self.bus.has_snapshot_at(next);
        }
        let unaware = self.instances.iter().zip(know).position(|(instance, knew)| {
            let logic = instance.logic.as_ref().filter(|_| knew == Some(instance.boot));
            logic.is_some_and(|logic| logic.halted().is_none())
        });
        self.checker.purge_found(unaware.filter(|_| !is_replaced));
    }

    pub(super) fn bus_back(&mut self) {
        self.bus_up = true;
        for peer in self.peers() {
            self.link_restored(peer);
        }
    }

    pub(super) fn link_back(&mut self, peer: Peer) {
        match peer {
            Peer::Instance(instance) => self.instances[instance].linked = true,
            Peer::Host(host) => self.hosts[host].linked = true,
        }
        self.link_restored(peer);
    }

    pub(super) fn peers(&self) -> Vec<Peer> {
        let instances = (0..self.instances.len()).map(Peer::Instance);
        instances.chain((0..self.hosts.len()).map(Peer::Host)).collect()
    }

    /// A peer that has lost its link notices sooner or later, or not at all if the link is back soon enough.
    pub(super) fn link_lost(&mut self, peer: Peer) {
        match peer {
            Peer::Instance(instance) => {
                let boot = self.instances[instance].boot;
                let what = Process::Event(Event::Connected(false));
                self.after(SECOND, Item::Process { instance, boot, what });
            }
            Peer::Host(host) => self.hosts[host].reads = false,
        }
    }

    fn link_restored(&mut self, peer: Peer) {
        if !self.is_linked(peer) {
            return;
        }
        match peer {
            Peer::Instance(instance) => {
                let boot = self.instances[instance].boot;
                let kept = std::mem::take(&mut self.instances[instance].kept);
                if !kept.is_empty() {
                    self.checker.kept_until_now();
                }
                for request in kept {
                    self.send(request);
                }
                let what = Process::Event(Event::Connected(true));
                // After the event that the link was lost.
                let delay = SECOND + self.rng.u64(..SECOND);
                self.at(delay, Item::Process { instance, boot, what });
                // It reads again what was announced meanwhile.
                let is_announced = self.plan.queue.is_some() || self.plan.delivery.is_some();
                let read_again = if is_announced { self.hosts.len() } else { 0 };
                for host in 0..read_again {
                    self.at(delay, Item::Process { instance, boot, what: Process::Announced { host } });
                }
            }
            Peer::Host(host) => {
                let process = self.hosts[host].process_count;
                self.after(SECOND, Item::Worker { host, process, what: Worker::Open });
            }
        }
    }

    /// The clock of the bus's machine steps. At least one instance runs there.
    fn step_bus_clock(&mut self, instance: usize) {
        let largest = *self.rng.choice(&[5, 600, 3 * 24 * 3_600]).expect("not empty");
        let step = TimeDelta::seconds(self.rng.i64(-largest..=largest));
        self.checker.clock_changed();
        self.bus_clock += step;
        let together: Vec<bool> = self.instances.iter().map(|_| self.rng.bool()).collect();
        for (index, together) in together.into_iter().enumerate() {
            if together || index == instance {
                self.instances[index].clock += step;
            }
        }
        self.trace.record(self.now, || format!("the clock of the bus steps by {step}, with i{instance}"));
        let wrong_for = *self.rng.choice(&[2 * SECOND, 20 * SECOND, 2 * MINUTE]).expect("not empty");
        self.after(wrong_for, Item::ClocksCorrected);
    }

    /// Every machine goes down, and boots with a clock that is behind.
    pub(super) fn lose_power_and_time(&mut self) {
        let Some(outage) = self.plan.outage.clone().filter(|_| self.faults_enabled) else { return };
        self.count(Fault::TimeLost);
        self.trace.record(self.now, || format!("every clock is {} behind", outage.behind));
        self.kill_bus();
        self.bus_clock = -outage.behind;
        for index in 0..self.instances.len() {
            self.kill(index);
            self.instances[index].clock = -outage.behind;
        }
        for index in 0..self.hosts.len() {
            self.reboot(index, self.hosts[index].boot, None);
            self.hosts[index].clock = -outage.behind;
        }
        // The faults must not end before that.
        self.plan.faults_until = self.plan.faults_until.max(self.now + outage.wrong_for + MINUTE);
        self.at(outage.wrong_for, Item::TimeBack);
    }

    /// All clocks show the right time again.
    pub(super) fn correct_all_clocks(&mut self) {
        self.correct_clocks();
        for host in &mut self.hosts {
            host.clock = TimeDelta::zero();
        }
    }

    /// The clocks of the bus and of all instances show the right time again.
    pub(super) fn correct_clocks(&mut self) {
        self.checker.clock_changed();
        self.bus_clock = TimeDelta::zero();
        for instance in &mut self.instances {
            instance.clock = TimeDelta::zero();
        }
    }

    fn step_clock(&mut self, instance: usize, host: usize) {
        let largest = if self.rng.bool() { 20 } else { 7_200 };
        let step = TimeDelta::seconds(self.rng.i64(-largest..=largest));
        self.checker.clock_changed();
        if self.rng.bool() {
            self.instances[instance].clock += step;
        } else {
            self.hosts[host].clock += step;
        }
        self.trace.record(self.now, || format!("a clock steps by {step}: i{instance} or h{host}"));
    }
}
