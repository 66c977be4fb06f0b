//! Seeds of the simulator. `make sim SEEDS=N` runs any number of them.

use std::ops::Range;

use os_upgrade_simulation::{Bug, CORPUS, Fault, Recording, SEEDS_MAX, Tally, replay, simulate};

/// Seeds that had not been run when they were chosen. Change the range with each release, so that each release is
/// tested in new worlds, but always in the same ones.
const NEW: Range<u64> = 1_900_000..1_900_600;
/// How many of the last lines of the trace are shown for a seed that fails.
const TRACE_LINES: usize = 80;

fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `seeds`, none of which may break a rule.
fn run(seeds: impl Iterator<Item = u64> + Send) -> Tally {
    let tally = Tally::of(seeds, None, jobs(), |_| {});
    if let Some((seed, violation)) = tally.violations.first_key_value() {
        let trace = simulate(*seed, None, Recording::Trace).lines;
        let last = trace.len().saturating_sub(TRACE_LINES);
        let before = CORPUS.iter().find(|found| found.seed == *seed);
        let before = before.map(|found| format!("\non {} it found: {}", found.when, found.what));
        let trace = trace[last..].join("\n");
        panic!(
            "{trace}\nseed {seed}: {violation}\nreplay: {}{}",
            replay(*seed, None),
            before.unwrap_or_default()
        );
    }
    tally
}

#[test]
fn corpus_passes() {
    run(CORPUS.iter().map(|found| found.seed));
}

#[test]
fn new_seeds_pass_with_every_fault() {
    let tally = run(NEW);
    // Seeds without faults would prove nothing.
    for fault in Fault::ALL {
        let times = tally.faults.get(&fault).copied().unwrap_or(0);
        assert!(times > 0, "in {} seeds this fault never happened: {fault}", tally.seeds);
    }
    let seeds = tally.seeds;
    assert!(tally.runs > seeds, "{} runs", tally.runs);
    assert!(tally.slot_answers > 50 * seeds, "{} answers about slots", tally.slot_answers);
    assert!(tally.waits > seeds / 200, "{} clients waited", tally.waits);
    assert!(tally.given_up > seeds / 100, "{} hosts were given up", tally.given_up);
    assert!(tally.rebooted > seeds / 4, "{} reboots on request", tally.rebooted);
    assert!(tally.by_command > seeds / 10, "{} reboots by command", tally.by_command);
    assert!(tally.drained > seeds / 2, "{} drains", tally.drained);
    assert!(tally.configured > seeds / 2, "{} items were applied", tally.configured);
    let asked = |check: &str| tally.asked.get(check).copied().unwrap_or_default();
    let told = asked("hooks.called");
    assert!(told > seeds, "providers were told of {told} events");
    let (placed, begun, lost) = (asked("units.placed"), asked("units.begins"), asked("units.lost"));
    assert!(placed > seeds / 2, "units were placed {placed} times");
    assert!(begun > seeds / 2, "units began to run {begun} times");
    assert!(lost > seeds / 50, "{lost} machines were lost");
    assert!(tally.missed > seeds / 20, "{} missed runs were recorded", tally.missed);
    assert!(tally.scheduled > seeds / 4, "{} runs were started by a window", tally.scheduled);
}

#[test]
fn seeds_are_deterministic() {
    for (seed, recording) in [(3, Recording::Trace), (77, Recording::Outside)] {
        let lines = || simulate(seed, None, recording).lines;
        assert!(!lines().is_empty());
        assert_eq!(lines(), lines());
    }
}

#[test]
fn planted_bugs_are_found_by_their_seeds() {
    let stale = Bug::search_all(jobs(), |bug| {
        let seed = bug.seed();
        if bug.find_in(seed).is_some() {
            return None;
        }
        Some(match bug.find() {
            Some(found) => {
                format!("{bug}: seed {seed} no longer finds it: write `seed {}`", found.seed)
            }
            None => format!("{bug}: is not found within {SEEDS_MAX} seeds"),
        })
    });
    let stale: Vec<String> = stale.into_iter().filter_map(|(_, stale)| stale).collect();
    assert!(stale.is_empty(), "tests/simulation/src/bug.rs:\n{}", stale.join("\n"));
}
