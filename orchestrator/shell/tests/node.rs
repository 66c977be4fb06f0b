//! Nodes in a small world: runs are carried out whatever goes wrong, and never wrongly.

#![allow(clippy::unwrap_used, reason = "a test may panic, also in what its tests share")]

mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use os_upgrade_kernel::{Accepted, RunResult};
use os_upgrade_shell::lease::LEASE_TTL;
use world::{Faults, World, put_config};

const ROUGH: Faults = Faults {
    crash: 150,
    stop: 80,
    lost_answer: 40,
    lost_message: 40,
    late_message: 30,
    lease_trouble: 100,
    stale_look: 200,
};

fn answered(world: &World, call: u64) -> bool {
    world.answers.iter().any(|(answered, answer)| *answered == call && matches!(answer, Ok(Ok(_))))
}

/// A world with a leader and a configuration.
fn configured(seed: u64, instances: usize, hosts: usize, faults: Faults) -> World {
    let mut world = World::new(seed, instances, hosts, Faults::NONE);
    world.heal_until("somebody leads", World::leads);
    let call = world.configure();
    world.heal_until("it is configured", |world| answered(world, call));
    world.faults = faults;
    world
}

fn check_executions(world: &World) {
    for ((run, host), count) in &world.bus.executions {
        assert_eq!(*count, 1, "S3: {host} was upgraded {count} times in {run}");
    }
}

#[test]
fn a_quiet_world_completes_its_run() {
    for seed in 0..20 {
        let mut world = configured(seed, 1, 5, Faults::NONE);
        let call = world.trigger(3600);
        world.heal_until("the run has ended", |world| world.state().last_run.is_some());
        assert!(world.answers.contains(&(call, Ok(Ok(Accepted::Done)))), "seed {seed}");
        let run = world.state().last_run.clone().unwrap();
        let result = run.ended.unwrap().result;
        let failed = world.state().slots.len();
        assert_eq!(result == RunResult::Completed, failed == 0, "seed {seed}: {result:?}");
        check_executions(&world);
    }
}

#[test]
fn a_rough_world_never_does_wrong_and_ends_its_runs() {
    let (mut steps, mut results) = (0, Vec::new());
    for seed in 0..60 {
        let instances = 1 + usize::try_from(seed % 3).unwrap();
        let mut world = configured(seed, instances, 4, ROUGH);
        for round in 1..=3 {
            let call = world.trigger(if seed % 5 == 0 { 20 } else { 3600 });
            world.run(6_000);
            world.heal_until("somebody leads", World::leads);
            let begun = answered(&world, call) || world.state().run.is_some();
            if begun {
                world.heal_until("the run has ended", |world| world.state().run.is_none());
            }
            world.faults = ROUGH;
            check_executions(&world);
            results
                .extend(world.state().last_run.as_ref().and_then(|run| run.ended).map(|ended| ended.result));
            assert!(world.steps > 0, "seed {seed}, round {round}");
        }
        world.heal_until("nothing is left of unsent commands", |world| {
            world.state().withdrawals.is_empty() && {
                let fence = world.state().fence.as_ref();
                world.state().slots.values().all(|slot| !slot.may_see_late_command(fence))
            }
        });
        steps += world.steps;
    }
    assert!(steps > 500_000, "{steps}");
    for result in [RunResult::Completed, RunResult::Failed, RunResult::TimedOut] {
        assert!(results.contains(&result), "no run was {result:?}: the world is not rough enough");
    }
}

#[test]
fn a_request_to_any_instance_is_carried_out_once_or_not_at_all_and_its_asker_is_told_the_truth() {
    let (mut granted, mut untouched, mut unknown, mut told) = (0, 0, 0, 0);
    for seed in 0..30 {
        let mut world = configured(seed, 3, 2, ROUGH);
        let mut asked = BTreeMap::new();
        for number in 1..=200 {
            let actor = format!("actor-{number}");
            if let Some(call) = world.ask_one(&put_config(&actor, number)) {
                asked.insert(call, actor);
            }
            world.run(60);
        }
        world.heal_until("somebody leads", World::leads);
        world.run(2_000);
        let mut answered = BTreeMap::new();
        for (call, answer) in &world.answers {
            let twice = asked.contains_key(call) && answered.insert(*call, answer.clone()).is_some();
            assert!(!twice, "seed {seed}: {call} is answered twice");
        }
        for (call, actor) in asked {
            let times = world.bus.configured.get(&actor).copied().unwrap_or_default();
            assert!(times <= 1, "seed {seed}: the request of {actor} was carried out {times} times");
            match answered.get(&call) {
                Some(Ok(Ok(_))) => {
                    assert_eq!(times, 1, "seed {seed}: the request of {actor} was granted");
                    granted += 1;
                }
                Some(Err(reason)) if reason.contains("nothing was changed") => {
                    assert_eq!(times, 0, "seed {seed}: {actor} was told: {reason}");
                    untouched += 1;
                }
                Some(Err(_) | Ok(Err(_))) | None => unknown += 1,
            }
        }
        told += world.told;
    }
    assert!(granted > 1_000 && untouched > 100 && unknown > 50, "{granted} {untouched} {unknown}");
    assert!(told > 500, "{told} answers of leaders have reached followers");
}

/// Its successor does not wait until the lease runs out, and nobody who has asked is left without an answer, which the
/// world asserts of every instance that ends.
#[test]
fn a_leader_that_is_asked_to_end_hands_over() {
    let mut longest = Duration::ZERO;
    for seed in 0..40 {
        let mut world = configured(seed, 2, 4, Faults::NONE);
        world.run(500);
        world.trigger(3600);
        world.run(usize::try_from(seed).unwrap() * 20);
        for number in 1..=3 {
            world.ask_one(&put_config(&format!("actor-{number}"), number));
        }
        world.stop_leader();
        world.heal_until("another process has the lease", World::is_handed_over);
        longest = longest.max(world.since_stop());
        world.heal_until("the run has ended", |world| world.state().last_run.is_some());
        check_executions(&world);
    }
    assert!(longest < LEASE_TTL / 2, "{longest:?}");
}
