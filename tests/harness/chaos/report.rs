//! The results of a chaos test, printed as tables.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use super::clients::Outcomes;
use super::faults::{Fault, Faults, InjectedFault};
use super::roles::Roles;

/// A take-over: another instance leads after a fault of the leader.
#[derive(Debug, Clone, Copy)]
pub struct TakeOver {
    /// The fault of the former leader.
    pub fault: Fault,
    /// Time from the fault until another instance was seen leading and ready.
    pub took: Duration,
    /// The observer's own delay during that time.
    pub stall: Duration,
    /// Whether no other fault was active, and no nats-server was down or just restarted.
    pub undisturbed: bool,
}

/// The results of all runs.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Number of runs.
    pub runs: usize,
    /// How often each fault was injected.
    pub faults: BTreeMap<Fault, usize>,
    /// How often the leader stayed leader, because it was back before its lease expired.
    pub kept: usize,
    /// Take-overs.
    pub take_overs: Vec<TakeOver>,
    /// Number of accepted configurations.
    pub granted: usize,
    /// Number of configurations whose answer was that nothing changed.
    pub unchanged: usize,
    /// Number of requests without a certain outcome.
    pub unknown: usize,
    /// Slots granted to external clients.
    pub locks: usize,
    /// All violations.
    pub violations: Vec<String>,
}

/// How long streams may still be electing a leader after a nats-server is back.
const ELECTION: Duration = Duration::from_secs(10);

impl Report {
    /// Records the faults of a run, and the take-overs after them.
    pub(super) fn record_faults(&mut self, faults: &Faults, roles: &Roles) {
        for (fault, count) in faults.counts() {
            *self.faults.entry(fault).or_default() += count;
        }
        for injected in faults.injected.iter().filter(|injected| injected.fault.hits_leader()) {
            // A leadership that begins later than this, once the former leader was back, has another cause.
            let latest = injected.repaired.map(|repaired| repaired + Duration::from_secs(2));
            let next = roles.next_leader(injected.target, injected.at);
            match next.filter(|next| latest.is_none_or(|latest| next.at <= latest)) {
                Some(next) => self.take_overs.push(TakeOver {
                    fault: injected.fault,
                    took: next.at - injected.at,
                    stall: roles.stall(injected.at, next.at),
                    undisturbed: !faults.injected.iter().any(|other| disturbs(other, injected, next.at)),
                }),
                None => self.kept += 1,
            }
        }
    }

    pub(super) fn record_outcomes(&mut self, outcomes: &Outcomes) {
        self.granted += outcomes.granted.len();
        self.unchanged += outcomes.unchanged.len();
        self.unknown += outcomes.unknown;
        self.locks += outcomes.locks;
    }

    pub(super) fn record_run(&mut self, violations: Vec<String>) {
        self.runs += 1;
        self.violations.extend(violations);
    }

    /// The sum of both.
    #[must_use]
    pub fn merge(mut self, other: Self) -> Self {
        for (fault, count) in other.faults {
            *self.faults.entry(fault).or_default() += count;
        }
        self.runs += other.runs;
        self.kept += other.kept;
        self.granted += other.granted;
        self.unchanged += other.unchanged;
        self.unknown += other.unknown;
        self.locks += other.locks;
        self.take_overs.extend(other.take_overs);
        self.violations.extend(other.violations);
        self
    }

    /// How many faults were injected.
    pub fn faults_injected(&self) -> usize {
        self.faults.values().sum()
    }
}

/// Whether `other` may have delayed the take-over between `injected` and `until`: it was injected in that time, or its
/// nats-server had only just come back. An earlier fault of another orchestrator does not count: there are more to take
/// over.
fn disturbs(other: &InjectedFault, injected: &InjectedFault, until: Instant) -> bool {
    if other.at == injected.at || other.fault == Fault::WorkerKilled || other.at > until {
        return false;
    }
    let over = other.repaired.map_or(until, |repaired| repaired + ELECTION);
    other.at > injected.at || (other.fault.hits_server() && over >= injected.at)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, kept, granted, unchanged, unknown, locks, .. } = self;
        writeln!(f, "| fault | times |\n| --- | ---: |")?;
        for (fault, count) in &self.faults {
            writeln!(f, "| {fault} | {count} |")?;
        }
        writeln!(f, "| **all** | **{}** |\n", self.faults_injected())?;
        writeln!(f, "| take-over after | times | median | longest |\n| --- | ---: | ---: | ---: |")?;
        let kinds = [Fault::LeaderKilled, Fault::LeaderPaused, Fault::LeaderCutOff];
        for kind in kinds {
            let of_kind = |take_over: &&TakeOver| take_over.fault == kind && take_over.undisturbed;
            row(f, &kind.to_string(), self.take_overs.iter().filter(of_kind))?;
        }
        let disturbed = self.take_overs.iter().filter(|take_over| !take_over.undisturbed);
        row(f, "any of these during another fault", disturbed)?;
        writeln!(f, "\nleaders that were back before their lease expired: {kept}")?;
        writeln!(
            f,
            "configurations: {granted} granted, {unchanged} refused with nothing changed, {unknown} with an outcome \
             not told; slots granted to programs from outside: {locks}"
        )?;
        writeln!(f, "runs: {runs}, violations: {}", self.violations.len())?;
        self.violations.iter().try_for_each(|violation| writeln!(f, "VIOLATION {violation}"))
    }
}

fn row<'a>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    take_overs: impl Iterator<Item = &'a TakeOver>,
) -> fmt::Result {
    let mut took: Vec<Duration> = take_overs.map(|take_over| take_over.took).collect();
    took.sort_unstable();
    let (Some(median), Some(longest)) = (took.get(took.len() / 2), took.last()) else {
        return writeln!(f, "| {name} | 0 | - | - |");
    };
    let (median, longest) = (median.as_secs_f64(), longest.as_secs_f64());
    writeln!(f, "| {name} | {} | {median:.1} s | {longest:.1} s |", took.len())
}
