//! Seeds of the simulator. `make sim SEEDS=N` runs any number of them.

use os_upgrade_simulation::{Bug, Fault, Tally, replay, simulate};

const SEEDS: u64 = 2_000;
/// How much of what happened last is shown of a seed that fails, in lines.
const TRACE_LINES: usize = 80;

fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn what_must_always_hold_does_in_every_seed() {
    let tally = Tally::of(0..SEEDS, None, jobs(), |_| {});
    if let Some((seed, violation)) = tally.violations.first_key_value() {
        let trace = simulate(*seed, None, true).trace;
        let last = trace.len().saturating_sub(TRACE_LINES);
        panic!("{}\nseed {seed}: {violation}\nreplay: {}", trace[last..].join("\n"), replay(*seed, None));
    }
    // Seeds that know no trouble would prove nothing.
    for fault in Fault::ALL {
        let times = tally.faults.get(&fault).copied().unwrap_or(0);
        assert!(times > 0, "in {SEEDS} seeds there was never: {fault}");
    }
    assert!(tally.runs > SEEDS, "{} runs", tally.runs);
    assert!(tally.slot_answers > 50 * SEEDS, "{} answers about slots", tally.slot_answers);
    assert!(tally.waits > SEEDS / 100, "{} clients waited", tally.waits);
    assert!(tally.given_up > SEEDS / 100, "{} hosts were given up", tally.given_up);
    assert!(tally.scheduled > SEEDS / 4, "{} runs began by themselves", tally.scheduled);
}

#[test]
fn a_seed_decides_everything() {
    for seed in [3, 77] {
        assert_eq!(simulate(seed, None, true).trace, simulate(seed, None, true).trace);
    }
}

#[test]
fn every_planted_bug_is_found() {
    const WITHIN: u64 = 1_000;
    const AT_ONCE: u64 = 20;
    for bug in Bug::ALL {
        let mut seeds = (0..WITHIN).step_by(usize::try_from(AT_ONCE).unwrap_or(1));
        let found = seeds.find_map(|from| {
            let tally = Tally::of(from..from + AT_ONCE, Some(bug), jobs(), |_| {});
            tally.violations.into_iter().find(|(_, violation)| bug.is_found_by().contains(&violation.rule))
        });
        let Some((seed, violation)) = found else { panic!("{bug} is not found within {WITHIN} seeds") };
        println!("{bug}: seed {seed}, {}", violation.rule);
    }
}
