//! The figures of chaos, and a table of them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use super::asking::Answered;
use super::faults::{Fault, Faults, Struck};
use super::roles::Roles;

/// A take-over: another leads after a leader was hit.
#[derive(Debug, Clone, Copy)]
pub struct TakeOver {
    /// By what it was hit.
    pub fault: Fault,
    /// From the fault until another instance was seen to be ready as the leader.
    pub took: Duration,
    /// By how much the observer was late meanwhile.
    pub stall: Duration,
    /// Whether nothing else went wrong meanwhile, and no nats-server was down or just back.
    pub undisturbed: bool,
}

/// What came of runs in chaos.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Runs.
    pub runs: usize,
    /// How often each fault has struck.
    pub faults: BTreeMap<Fault, usize>,
    /// How often the leader was not replaced: it was back before its lease ran out.
    pub kept: usize,
    /// Take-overs.
    pub take_overs: Vec<TakeOver>,
    /// Configurations that were granted, and requests whose outcome was not told.
    pub granted: usize,
    /// Those that were answered with certainty that nothing was changed.
    pub unchanged: usize,
    /// Those whose outcome was not told.
    pub unknown: usize,
    /// Slots granted to programs from outside.
    pub locks: usize,
    /// Everything that was wrong.
    pub violations: Vec<String>,
}

/// After a nats-server is back, its streams may still be electing for so long.
const ELECTION: Duration = Duration::from_secs(10);

impl Report {
    /// Notes the faults of a run.
    pub(super) fn trouble(&mut self, faults: &Faults, roles: &Roles) {
        for (fault, count) in faults.counts() {
            *self.faults.entry(fault).or_default() += count;
        }
        for struck in faults.struck.iter().filter(|struck| struck.fault.is_the_leaders()) {
            // Once it was back, and had had time to go on leading, another's leadership has another reason.
            let latest = struck.mended.map(|mended| mended + Duration::from_secs(2));
            let next = roles.next_leader(struck.target, struck.at);
            match next.filter(|next| latest.is_none_or(|latest| next.at <= latest)) {
                Some(next) => self.take_overs.push(TakeOver {
                    fault: struck.fault,
                    took: next.at - struck.at,
                    stall: roles.stall(struck.at, next.at),
                    undisturbed: !faults.struck.iter().any(|other| disturbs(other, struck, next.at)),
                }),
                None => self.kept += 1,
            }
        }
    }

    pub(super) fn answered(&mut self, answered: &Answered) {
        self.granted += answered.granted.len();
        self.unchanged += answered.unchanged.len();
        self.unknown += answered.unknown;
        self.locks += answered.locks;
    }

    pub(super) fn run_ended(&mut self, violations: Vec<String>) {
        self.runs += 1;
        self.violations.extend(violations);
    }

    /// Both together.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
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

    /// How many faults have struck.
    pub fn faults_struck(&self) -> usize {
        self.faults.values().sum()
    }
}

/// Whether `other` may have kept another orchestrator from taking over between `struck` and `until`: it struck
/// meanwhile, or it hit a nats-server that was not back for long. An orchestrator that had been hit before is not there
/// to take over, but others are.
fn disturbs(other: &Struck, struck: &Struck, until: Instant) -> bool {
    if other.at == struck.at || other.fault == Fault::WorkerKilled || other.at > until {
        return false;
    }
    let over = other.mended.map_or(until, |mended| mended + ELECTION);
    other.at > struck.at || (other.fault.is_a_servers() && over >= struck.at)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, kept, granted, unchanged, unknown, locks, .. } = self;
        writeln!(f, "| fault | times |\n| --- | ---: |")?;
        for (fault, count) in &self.faults {
            writeln!(f, "| {fault} | {count} |")?;
        }
        writeln!(f, "| **all** | **{}** |\n", self.faults_struck())?;
        writeln!(f, "| take-over after | times | median | longest |\n| --- | ---: | ---: | ---: |")?;
        let kinds = [Fault::LeaderKilled, Fault::LeaderPaused, Fault::LeaderCutOff];
        for kind in kinds {
            let of_kind = |take_over: &&TakeOver| take_over.fault == kind && take_over.undisturbed;
            row(f, &kind.to_string(), self.take_overs.iter().filter(of_kind))?;
        }
        let disturbed = self.take_overs.iter().filter(|take_over| !take_over.undisturbed);
        row(f, "any of these while something else was wrong too", disturbed)?;
        writeln!(f, "\nleaders that were back before their lease had run out: {kept}")?;
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
