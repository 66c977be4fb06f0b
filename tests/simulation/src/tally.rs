//! The outcomes of many seeds, run on several threads, added up.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use crate::bug::Bug;
use crate::checker::Violation;
use crate::fault::Fault;
use crate::outside::Digest;
use crate::simulation::{Outcome, simulate};
use crate::trace::Recording;

/// How many violations are kept; further ones are only counted.
const VIOLATIONS_MAX: usize = 10;

/// The outcomes of many seeds, added up; see [`Outcome`] for the counts.
#[derive(Debug, Default)]
pub struct Tally {
    /// The number of seeds.
    pub seeds: u64,
    /// The number of items that were taken off the agendas.
    pub steps: u64,
    /// The simulated time.
    pub simulated: Duration,
    /// The runs that started.
    pub runs: u64,
    /// Of these, the runs that a window started.
    pub scheduled: u64,
    /// The missed runs that were recorded.
    pub missed: u64,
    /// The hosts that operators gave up after these had begun.
    pub given_up: u64,
    /// The upgrades that workers with the SDK's rules began.
    pub upgrades: u64,
    /// The entries of the reboot queue that ended because their hosts have rebooted.
    pub rebooted: u64,
    /// How often hosts went down for the operator's command.
    pub by_command: u64,
    /// How often a node was drained before its host was told to upgrade or reboot.
    pub drained: u64,
    /// The items of providers that hosts applied.
    pub configured: u64,
    /// The accepted calls.
    pub granted: u64,
    /// The checked answers about slots of the embedded semaphores.
    pub slot_answers: u64,
    /// The FleetLock clients that waited for a slot beside runs, and got it in time.
    pub waits: u64,
    /// How often each fault happened.
    pub faults: BTreeMap<Fault, u64>,
    /// How often each check of a rule was made.
    pub asked: BTreeMap<&'static str, u64>,
    /// What an outsider has seen of each seed, if that was recorded.
    pub outside: BTreeMap<u64, Digest>,
    /// The number of seeds that broke a rule.
    pub violated: u64,
    /// The lowest seeds that broke a rule, each with its first violation.
    pub violations: BTreeMap<u64, Violation>,
}

impl Tally {
    /// Runs `seeds` on `jobs` threads. `progress` receives the number of finished seeds after each.
    pub fn of<S>(seeds: S, bug: Option<Bug>, jobs: usize, progress: impl Fn(u64) + Sync) -> Self
    where
        S: Iterator<Item = u64> + Send,
    {
        Self::of_recorded(seeds, bug, Recording::Nothing, jobs, progress)
    }

    /// Like [`Self::of`]; of what is recorded it keeps a digest for each seed.
    pub fn of_recorded<S>(
        seeds: S,
        bug: Option<Bug>,
        recording: Recording,
        jobs: usize,
        progress: impl Fn(u64) + Sync,
    ) -> Self
    where
        S: Iterator<Item = u64> + Send,
    {
        let tally = Mutex::new(Self::default());
        let seeds = Mutex::new(seeds);
        let next = || seeds.lock().expect("no thread panics with it").next();
        let work = || {
            while let Some(seed) = next() {
                let outcome = simulate(seed, bug, recording);
                let done = {
                    let mut tally = tally.lock().expect("no thread panics with it");
                    tally.add(seed, outcome);
                    tally.seeds
                };
                progress(done);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                scope.spawn(work);
            }
        });
        tally.into_inner().expect("no thread panics with it")
    }

    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.seeds += 1;
        self.steps += outcome.steps;
        self.simulated += outcome.simulated;
        self.runs += outcome.runs;
        self.upgrades += outcome.upgrades;
        self.rebooted += outcome.rebooted;
        self.by_command += outcome.by_command;
        self.drained += outcome.drained;
        self.configured += outcome.configured;
        self.granted += outcome.granted;
        self.slot_answers += outcome.slot_answers;
        self.scheduled += outcome.scheduled;
        self.missed += outcome.missed;
        self.given_up += outcome.given_up;
        self.waits += outcome.waits;
        if !outcome.lines.is_empty() {
            self.outside.insert(seed, Digest::of(&outcome.lines, &outcome.asked));
        }
        for (check, times) in outcome.asked {
            *self.asked.entry(check).or_default() += times;
        }
        for (fault, times) in outcome.faults {
            *self.faults.entry(fault).or_default() += times;
        }
        if let Some(violation) = outcome.violation {
            self.violated += 1;
            self.violations.insert(seed, violation);
            if self.violations.len() > VIOLATIONS_MAX {
                self.violations.pop_last();
            }
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<40} {:>14}", "seeds", self.seeds)?;
        writeln!(f, "{:<40} {:>14}", "steps", self.steps)?;
        writeln!(f, "{:<40} {:>14}", "simulated hours", self.simulated.as_secs() / 3_600)?;
        writeln!(f, "{:<40} {:>14}", "runs", self.runs)?;
        writeln!(f, "{:<40} {:>14}", "upgrades", self.upgrades)?;
        writeln!(f, "{:<40} {:>14}", "reboots on request", self.rebooted)?;
        writeln!(f, "{:<40} {:>14}", "reboots by command", self.by_command)?;
        writeln!(f, "{:<40} {:>14}", "drains", self.drained)?;
        writeln!(f, "{:<40} {:>14}", "items applied by hosts", self.configured)?;
        writeln!(f, "{:<40} {:>14}", "calls accepted", self.granted)?;
        writeln!(f, "{:<40} {:>14}", "answers about slots", self.slot_answers)?;
        writeln!(f, "{:<40} {:>14}", "runs started by a window", self.scheduled)?;
        writeln!(f, "{:<40} {:>14}", "missed runs recorded", self.missed)?;
        writeln!(f, "{:<40} {:>14}", "hosts given up by operators", self.given_up)?;
        writeln!(f, "{:<40} {:>14}", "clients that waited beside runs", self.waits)?;
        for (fault, times) in &self.faults {
            writeln!(f, "{fault:<40} {times:>14}")?;
        }
        write!(f, "{:<40} {:>14}", "seeds with a violation", self.violated)
    }
}

/// The command that prints the trace of `seed`.
pub fn replay(seed: u64, bug: Option<Bug>) -> String {
    let bug = bug.map(|bug| format!(" --bug {bug}")).unwrap_or_default();
    format!("target/debug/sim --seed {seed}{bug}")
}
