//! One simulation: what a seed decides, and its outcome.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::bug::Bug;
use crate::checker::Violation;
use crate::fault::Fault;
use crate::trace::Recording;
use crate::world::World;

/// The outcome of one seed.
#[derive(Debug)]
pub struct Outcome {
    /// The number of items that were taken off the agenda.
    pub steps: u64,
    /// The simulated time.
    pub simulated: Duration,
    /// How often each fault happened.
    pub faults: BTreeMap<Fault, u64>,
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
    /// The first broken rule, if any.
    pub violation: Option<Violation>,
    /// How often each check of a rule was made.
    pub asked: BTreeMap<&'static str, u64>,
    /// What was recorded.
    pub lines: Vec<String>,
}

/// Simulates the world of `seed`, with `bug` planted in it if one is given.
pub fn simulate(seed: u64, bug: Option<Bug>, recording: Recording) -> Outcome {
    let mut world = World::new(seed, bug, recording);
    let survived = catch_unwind(AssertUnwindSafe(|| {
        world.run_with_faults();
        world.heal();
        world.liveness();
    }));
    let panicked =
        survived.err().map(|panic| Violation { rule: "panic", text: panic_message(panic.as_ref()) });
    Outcome {
        steps: world.steps,
        simulated: Duration::from_micros(world.now),
        faults: world.faults,
        runs: world.checker.runs(),
        scheduled: world.checker.scheduled(),
        missed: world.checker.missed(),
        given_up: world.checker.given_up(),
        upgrades: world.checker.upgrades(),
        rebooted: world.checker.rebooted(),
        by_command: world.checker.rebooted_by_commands(),
        drained: world.checker.drained(),
        configured: world.checker.configurations(),
        granted: world.operators.granted,
        slot_answers: world.checker.slot_answers(),
        waits: world.checker.waits(),
        asked: world.checker.asked().clone(),
        violation: panicked.or_else(|| world.checker.into_violation()),
        lines: if recording == Recording::Outside { world.outside.lines() } else { world.trace.lines() },
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}
