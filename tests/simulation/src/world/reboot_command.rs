//! The operator's commands: one reboots a host of the reboot queue, the other one says whether it has booted.
//!
//! A command runs on the machine of the instance that begins it. It ends with the instance's process, with its leadership, and
//! when its time is up; whatever it has told a host to do by then happens. A process that is paused ends no command, but none
//! has its effect later than its time allows.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_kernel::reboot_queue::{AttemptStage, Entry};
use os_upgrade_kernel::{CommandJob, CommandOrder, CommandOutcome, Job, JobDone, NoAnswer};
use os_upgrade_protocol::HostName;
use os_upgrade_shell::instance::{Event, Instance as Logic};
use os_upgrade_shell::jobs::{JobId, JobReport};

use super::World;
use crate::agenda::{Item, Process};
use crate::bug::Bug;
use crate::command_plan::CommandPlan;
use crate::command_run::{CommandRun, Course};
use crate::fault::Fault;
use crate::outside;
use crate::request::Request;
use crate::time::{MINUTE, Micros, SECOND, beginning, span};

/// What an instance waits for a command beyond its time, as the program does.
const SLACK: Micros = 30 * SECOND;
/// How long a host that was told to reboot stays up, at most.
const GOES_DOWN_WITHIN: Micros = 5 * SECOND;

impl World {
    /// How long an instance waits for a command.
    pub(super) fn command_timeout(&self) -> Micros {
        self.plan.command.as_ref().map_or(0, CommandPlan::within) + SLACK
    }

    /// An instance runs a command.
    pub(super) fn run_command(&mut self, index: usize, request: &Request, id: JobId, job: CommandJob) {
        let course = match &job.order {
            CommandOrder::Reboot { .. } => {
                let has_copies = self.faults.contains_key(&Fault::DirectoryCopied);
                self.checker.command_runs(&job, &self.locks, has_copies);
                let wait = self.until_next_second(index);
                let Course { takes, acts_after, outcome } = self.draw_reboot();
                Course { takes: wait + takes, acts_after: acts_after.map(|after| wait + after), outcome }
            }
            CommandOrder::CheckBoot { since } => {
                let has_booted = self.host_named(&job.host).is_some_and(|host| {
                    let host = &self.hosts[host];
                    host.is_up && (beginning() + span(host.booted_at)).timestamp() >= since.timestamp()
                });
                let Some(course) = self.draw_boot_check(has_booted) else { return };
                course
            }
        };
        let Course { takes, acts_after, outcome } = course;
        let (now, process) = (self.now, request.process);
        self.outside.record(now, || outside::command(&job));
        self.trace.record(now, || {
            format!(
                "i{index} runs {:?} for {}: {outcome:?} after {takes}, acts after {acts_after:?}",
                job.order, job.host
            )
        });
        self.commands.insert(request.id, CommandRun { instance: index, process, id, job, outcome });
        let request = request.id;
        if let Some(after) = acts_after {
            self.at(after, Item::CommandActs { request });
        }
        self.at(takes, Item::CommandEnds { request });
        self.command_is_deposed(request);
    }

    /// How long an instance waits before it runs the command, if boots are checked, which is in whole seconds.
    fn until_next_second(&self, index: usize) -> Micros {
        let into_second = u64::from(self.clock_of(index).wall.timestamp_subsec_micros());
        let checks_boot = self.plan.command.as_ref().is_some_and(|plan| plan.settings.checks_boot);
        if checks_boot { SECOND - into_second } else { 0 }
    }

    fn draw_reboot(&mut self) -> Course {
        let (within, takes_max) = self.times_of_commands();
        if self.occurs(Fault::CommandHangs) {
            let acts_after = self.rng.bool().then(|| self.rng.u64(..within));
            let detail = "killed because its time was up".to_owned();
            return Course {
                takes: within,
                acts_after,
                outcome: CommandOutcome::Unknown { detail, output: String::new() },
            };
        }
        let takes = self.rng.u64(..=takes_max);
        let acts_after = Some(self.rng.u64(..=takes));
        let failed =
            || CommandOutcome::Failed { detail: "exit status 255".to_owned(), output: String::new() };
        if self.occurs(Fault::CommandKilled) {
            let outcome = CommandOutcome::Unknown { detail: "signal 9".to_owned(), output: String::new() };
            return Course { takes, acts_after: acts_after.filter(|_| self.rng.bool()), outcome };
        }
        if self.occurs(Fault::CommandLies) {
            return Course { takes, acts_after, outcome: failed() };
        }
        if self.occurs(Fault::CommandFails) {
            let not_started =
                || CommandOutcome::NotStarted { detail: "Resource temporarily unavailable".to_owned() };
            let outcome = if self.rng.bool() { failed() } else { not_started() };
            return Course { takes, acts_after: None, outcome };
        }
        let acts_after = acts_after.filter(|_| !self.occurs(Fault::RebootFails));
        Course { takes, acts_after, outcome: CommandOutcome::Succeeded }
    }

    /// The course of a boot check; none if it hangs.
    fn draw_boot_check(&mut self, has_booted: bool) -> Option<Course> {
        let (within, takes_max) = self.times_of_commands();
        if self.occurs(Fault::BootCheckHangs) {
            return None;
        }
        let takes = if self.occurs(Fault::BootCheckLate) { within } else { self.rng.u64(..=takes_max) };
        let has_booted = has_booted && !self.occurs(Fault::BootCheckFails);
        let outcome = if has_booted { CommandOutcome::Booted } else { CommandOutcome::NotBooted };
        Some(Course { takes, acts_after: None, outcome })
    }

    fn times_of_commands(&self) -> (Micros, Micros) {
        self.plan.command.as_ref().map_or((0, 0), |plan| (plan.within(), plan.takes_max))
    }

    pub(super) fn host_named(&self, name: &HostName) -> Option<usize> {
        self.hosts.iter().position(|host| host.name == *name)
    }

    /// Whether a run goes on. One whose process is gone has ended with it, and one whose instance does not lead any more is ended
    /// by it.
    fn command_goes_on(&mut self, request: u64) -> bool {
        let Some(run) = self.commands.get(&request) else { return false };
        let instance = &self.instances[run.instance];
        let Some(logic) = instance.logic.as_ref().filter(|_| instance.boot == run.process) else {
            self.commands.remove(&request);
            return false;
        };
        let leads = || {
            let now = self.clock_of(run.instance).monotonic;
            logic.leads_until().is_some_and(|until| until > now)
        };
        if instance.paused.is_some() || leads() {
            return true;
        }
        let detail = "this instance does not lead any more".to_owned();
        // It may lead again before its lease is another's.
        self.checker.command_ended(
            &run.job,
            &CommandOutcome::Unknown { detail: detail.clone(), output: String::new() },
        );
        let report = Job::RebootCommand(run.job.clone()).unanswered(NoAnswer::Failed { detail }).into();
        self.report_command(request, report);
        false
    }

    /// A run has ended, and its instance hears of it.
    fn report_command(&mut self, request: u64, report: JobReport) {
        let Some(CommandRun { instance, process, id, .. }) = self.commands.remove(&request) else { return };
        let what = Process::Return { request, event: Event::JobDone { id, report } };
        self.at(0, Item::Process { instance, boot: process, what });
    }

    /// Ends the commands of an instance that does not lead any more.
    pub(super) fn end_commands_of_deposed(&mut self, index: usize) {
        if self.commands.is_empty() || self.instances[index].logic.as_ref().is_some_and(Logic::is_leading) {
            return;
        }
        let of_instance = self.commands.iter().filter(|(_, run)| run.instance == index);
        for request in of_instance.map(|(request, _)| *request).collect::<Vec<_>>() {
            self.command_goes_on(request);
        }
    }

    /// The run of `request` ends with the lease of its instance, unless that is renewed.
    pub(super) fn command_is_deposed(&mut self, request: u64) {
        if !self.command_goes_on(request) {
            return;
        }
        let Some(run) = self.commands.get(&request) else { return };
        let instance = &self.instances[run.instance];
        let now = self.clock_of(run.instance).monotonic;
        let until = instance.logic.as_ref().and_then(Logic::leads_until);
        let left = until.and_then(|until| until.checked_sub(now)).filter(|left| !left.is_zero());
        let left = left.and_then(|left| Micros::try_from(left.as_micros()).ok());
        self.at(left.unwrap_or(SECOND), Item::CommandDeposed { request });
    }

    /// The command reaches its host. One that hangs in its boot is reset.
    pub(super) fn command_acts(&mut self, request: u64) {
        if !self.command_goes_on(request) {
            return;
        }
        let Some(job) = self.commands.get(&request).map(|run| run.job.clone()) else { return };
        let Some(host) = self.host_named(&job.host) else { return };
        if self.hosts[host].is_up {
            let boot = self.hosts[host].boot;
            self.after(GOES_DOWN_WITHIN, Item::RebootByCommand { host, boot, job: Box::new(job) });
        } else if self.hosts[host].hangs {
            let boot_max = self.plan.boot_max;
            self.after(boot_max, Item::Booted { host });
        }
    }

    /// A host goes down because of a command.
    pub(super) fn reboot_by_command(&mut self, index: usize, boot: u32, job: &CommandJob) {
        let host = &self.hosts[index];
        if host.boot == boot && host.is_up {
            self.checker.rebooted_by_command(job);
            self.reboot(index, boot, None);
        }
    }

    /// A run ends by itself, or because its time is up.
    pub(super) fn command_ends(&mut self, request: u64) {
        if !self.command_goes_on(request) {
            return;
        }
        let Some(CommandRun { job, outcome, .. }) = self.commands.get(&request) else { return };
        self.checker.command_ended(job, outcome);
        let mistaken =
            self.bug == Some(Bug::NotBootedCountsAsBooted) && *outcome == CommandOutcome::NotBooted;
        let outcome = if mistaken { CommandOutcome::Booted } else { outcome.clone() };
        let report = JobDone::RebootCommand(job.clone(), outcome).into();
        self.report_command(request, report);
    }
}

/// How long an operator waits for a host before looking after it.
const LOOKED_AFTER: Micros = 2 * MINUTE;
/// How long an entry may take to end once nobody has to do anything: an attempt is repeated after half an hour and its time,
/// perhaps more than once.
const ENDS_WITHIN: Micros = 150 * MINUTE;

impl World {
    /// A host that hangs is given up, and one that the command has not rebooted is rebooted by hand. Everything else ends by itself.
    pub(super) fn await_command(
        &mut self,
        index: u64,
        entry: &Entry,
        silent_since: &mut BTreeMap<u64, Micros>,
    ) -> bool {
        let host = self.host_named(&entry.host).expect("every entry is of a host");
        let command = self.leader().and_then(|leader| leader.state().settings.reboot.command);
        let Some(command) = command else {
            self.restore_command();
            return true;
        };
        // What is said of a host is what its node says.
        self.cluster_back();
        if entry.is_at(AttemptStage::Running) {
            return self.await_end(index, entry, silent_since);
        }
        if self.hosts[host].hangs {
            return self.give_up_entry(index);
        }
        let booted = (beginning() + span(self.hosts[host].booted_at)).timestamp();
        // The check asks from the next whole second on.
        let since = (entry.last_transition + TimeDelta::nanoseconds(999_999_999)).timestamp();
        let has_left = entry.boot_id.as_ref().is_some_and(|left| *left != self.hosts[host].boot_id());
        let is_back = if command.checks_boot { booted >= since } else { has_left };
        let is_ahead = |at: DateTime<Utc>| at > self.time();
        // By the clock of that time it is never over.
        if command.checks_boot && is_ahead(entry.last_transition) {
            return self.give_up_entry(index);
        }
        let is_repeated = entry.is_at(AttemptStage::Unknown)
            && entry.boot_id.is_some()
            && !has_left
            && !entry.cancel_requested
            && !entry.attempt.as_ref().is_some_and(|attempt| is_ahead(attempt.since));
        let waited = self.now - *silent_since.entry(index).or_insert(self.now);
        if !is_back && !is_repeated && waited > LOOKED_AFTER && self.hosts[host].is_up {
            let boot = self.hosts[host].boot;
            self.reboot(host, boot, None);
            return true;
        }
        self.await_end(index, entry, silent_since)
    }

    fn await_end(&mut self, index: u64, entry: &Entry, silent_since: &mut BTreeMap<u64, Micros>) -> bool {
        let waited = self.now - *silent_since.entry(index).or_insert(self.now);
        if waited > ENDS_WITHIN {
            let what = "an entry ends whose host the operator's command reboots";
            self.checker.never_happened(what, &format!("{index}: {entry:#?}"));
        }
        true
    }

    /// An operator gives every instance the command again.
    pub(super) fn restore_command(&mut self) {
        let Some(plan) = self.plan.command.clone() else { return };
        for index in 0..self.instances.len() {
            let settings = &mut self.instances[index].settings;
            if settings.reboot.command.replace(plan.settings).is_none() {
                let settings = settings.clone();
                self.checker.settings_changed(&settings);
                self.kill(index);
            }
        }
    }

    /// An operator installs a worker that announces its boot.
    pub(super) fn announce_boot_of(&mut self, name: &HostName) {
        if let Some(host) = self.host_named(name) {
            self.hosts[host].announces_boot = true;
            self.announce(host);
        }
    }
}
