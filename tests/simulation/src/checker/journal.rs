//! What stands in the journal.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use os_upgrade_kernel::slot::ReleaseCause;
use os_upgrade_kernel::window::{Calendar, Occurrence};
use os_upgrade_kernel::{Fact, HostEvent, Reason, StopCause, Trigger};
use os_upgrade_shell::journal::Committed;
use os_upgrade_shell::journal::codec::Message;
use os_upgrade_shell::node::Halt;

use super::{Checker, RunSeen};

impl Checker {
    /// A message has been appended.
    pub(crate) fn appended(&mut self, sequence: u64, message: &Message) {
        match self.follower.read(sequence, message) {
            Ok(None) => {}
            Ok(Some(committed)) => {
                if !committed.record.facts.is_empty() {
                    self.records.push(sequence);
                }
                // Where failed hosts are released, those that fall silent are so by the very end of their run.
                for fact in &committed.record.facts {
                    if let Fact::RunEnded { run, .. } = fact {
                        self.run_ended(run);
                    }
                    if let Fact::CommandRetracted { host, sequence, .. } = fact {
                        self.silent_retracted(host, *sequence);
                    }
                }
                for fact in &committed.record.facts {
                    self.fact(committed.record.at, fact);
                }
            }
            Err(error) => self.violated("journal", format!("it cannot be followed: {error}")),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    fn fact(&mut self, at: DateTime<Utc>, fact: &Fact) {
        if let Some(actor) = fact.subject().actor {
            self.acted.insert(actor.to_owned());
            self.check_unchanged(actor);
        }
        match fact {
            Fact::ConfigReplaced { config, .. } => self.configs.push((self.now, config.clone())),
            Fact::RunStarted { run, trigger, not_after, .. } => {
                let not_after = *not_after;
                if let Trigger::Window { start, end } = trigger {
                    self.started_by_itself(at, Occurrence { start: *start, end: *end }, not_after);
                }
                let seen =
                    RunSeen { started: self.now, stopped: None, ended: None, end_shown: None, not_after };
                self.runs.insert(run.clone(), seen);
            }
            Fact::RunStopping { run, cause } => {
                if let StopCause::Cancelled { .. } = cause {
                    self.occurrence_spent = self.occurrence_spent.max(Some(at));
                }
                let now = self.now;
                if let Some(run) = self.runs.get_mut(run) {
                    run.stopped.get_or_insert(now);
                }
            }
            Fact::RunEnded { run, .. } => {
                let now = self.now;
                if let Some(run) = self.runs.get_mut(run) {
                    run.ended = Some(now);
                }
            }
            Fact::Host { host, event: HostEvent::SlotGranted { .. }, .. } => {
                self.granted.insert(host.clone());
                self.turn_changes(host, true);
            }
            Fact::Host { run, host, event: HostEvent::Upgraded } => self.said_upgraded(run, host),
            Fact::Host { run, host, event: HostEvent::TimedOut { reason } } if is_given_up(reason) => {
                self.given_up += u64::from(matches!(reason, Reason::GivenUp { .. }));
                self.said_silent(run, host);
            }
            Fact::SlotReleaseDue { host, why: ReleaseCause::Operator }
            | Fact::SlotReleased { host, why: ReleaseCause::Operator } => {
                self.granted.remove(host);
                self.turn_changes(host, false);
                self.slot_taken_back(host);
            }
            Fact::SlotReleaseDue { host, .. } | Fact::SlotReleased { host, .. } => {
                let held = self.granted.remove(host);
                self.turn_changes(host, false);
                self.slot_freed(host, held);
            }
            // The other facts are looked at by no rule here.
            _ => {}
        }
        self.enrolment_fact(fact);
        self.secret_fact(fact);
        self.semaphore_fact(at, fact);
    }

    /// A run starts by itself in an occurrence of what is configured, of which enough is left, and as the only one.
    fn started_by_itself(&mut self, at: DateTime<Utc>, occurrence: Occurrence, not_after: DateTime<Utc>) {
        let Some(config) = self.configs.last().and_then(|(_, config)| config.as_ref()) else {
            return self.violated("window", "a run starts by itself without a configuration".to_owned());
        };
        let calendar = Calendar::new(&config.maintenance_windows, &config.deny_windows, Tz::UTC);
        if calendar.containing(at) != Ok(Some(occurrence)) || not_after != occurrence.end {
            let text = format!("a run starts by itself at {at} in {occurrence:?}, until {not_after}");
            return self.violated("window", text);
        }
        if occurrence.end - at < config.minimum_remaining.to_delta() {
            return self
                .violated("window", format!("a run starts by itself at {at} in the end of {occurrence:?}"));
        }
        if self.occurrence_spent.is_some_and(|spent| occurrence.start <= spent) {
            self.violated("window", format!("a second run starts by itself at {at} in {occurrence:?}"));
        }
        self.occurrence_spent = self.occurrence_spent.max(Some(at));
        self.scheduled += 1;
    }

    /// An instance shows a record as committed.
    pub(crate) fn shown(&mut self, committed: &Committed) {
        for fact in &committed.record.facts {
            if let Fact::RunEnded { run, .. } = fact
                && let Some(run) = self.runs.get_mut(run)
            {
                run.end_shown.get_or_insert(self.now);
            }
            if let Fact::HostWithdrawn { host, .. } = fact {
                self.withdrawal_shown(host);
            }
        }
    }

    /// An instance shows the state of `shown`, and has given its store the records up to `given`.
    pub(crate) fn shown_when_given(&mut self, instance: usize, shown: u64, given: u64) {
        let records = &self.records[..self.records.partition_point(|record| *record <= shown)];
        if let Some(newest) = records.last().filter(|newest| **newest > given) {
            let text =
                format!("i{instance} shows the state of {newest}, and gave its store what is up to {given}");
            self.violated("shown", text);
        }
    }

    /// An instance logs what it has decided, which is the record at `sequence`.
    pub(crate) fn logged(&mut self, instance: usize, sequence: u64) {
        if !self.logged.insert(sequence) {
            self.violated("log", format!("i{instance} logs {sequence}, which another has decided"));
        }
    }

    /// The store of an instance takes in a record.
    pub(crate) fn projected(&mut self, instance: usize, committed: &Committed) {
        let reached = self.stores.insert(instance, committed.sequence).unwrap_or(0);
        let next = self.records.partition_point(|record| *record <= reached);
        if self.records.get(next).is_some_and(|next| *next < committed.sequence) {
            let text = format!("i{instance} goes on from {reached} with {}", committed.sequence);
            self.violated("store", text);
        }
    }

    /// The store of an instance is another one now.
    pub(crate) fn store_replaced(&mut self, instance: usize, reached: Option<u64>) {
        self.stores.insert(instance, reached.unwrap_or(0));
    }

    /// An instance has stopped for good, though nothing was lost.
    pub(crate) fn halted(&mut self, instance: usize, halt: &Halt) {
        self.violated("journal", format!("i{instance} has stopped: {halt}"));
    }
}

/// Whether nothing but that it has not answered is known of a host that is given up for this, before its run's end.
fn is_given_up(reason: &Reason) -> bool {
    matches!(reason, Reason::BootTimeout { .. } | Reason::GivenUp { .. })
}
