//! One simulation: the course that a seed decides, and what came of it.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::bug::Bug;
use crate::checker::Violation;
use crate::fault::Fault;
use crate::trace::Trace;
use crate::world::World;

/// What came of a seed.
#[derive(Debug)]
pub struct Outcome {
    /// How many things happened.
    pub steps: u64,
    /// How much time passed in the world.
    pub simulated: Duration,
    /// How often each fault happened.
    pub faults: BTreeMap<Fault, u64>,
    /// How many runs were begun.
    pub runs: u64,
    /// How many of them by themselves.
    pub scheduled: u64,
    /// How many hosts operators gave up after these had begun.
    pub given_up: u64,
    /// How many upgrades were begun by workers that keep the SDK's rules.
    pub upgrades: u64,
    /// How many calls were answered with yes.
    pub granted: u64,
    /// How many answers about slots of the embedded semaphores were looked at.
    pub slot_answers: u64,
    /// How many clients from outside waited for a slot beside runs, and had it in time.
    pub waits: u64,
    /// What was seen that must not be, if something was.
    pub violation: Option<Violation>,
    /// What happened, when that was wanted.
    pub trace: Vec<String>,
}

/// Lets a world come and go as `seed` decides, with a bug in it if one is to be planted.
pub fn simulate(seed: u64, bug: Option<Bug>, trace: bool) -> Outcome {
    let mut world = World::new(seed, bug, Trace::wanted(trace));
    let survived = catch_unwind(AssertUnwindSafe(|| {
        world.rough_time();
        world.heal();
        world.liveness();
    }));
    let panicked = survived.err().map(|panic| Violation { rule: "panic", text: text_of(panic.as_ref()) });
    Outcome {
        steps: world.steps,
        simulated: Duration::from_micros(world.now),
        faults: world.faults,
        runs: world.checker.runs(),
        scheduled: world.checker.scheduled(),
        given_up: world.checker.given_up(),
        upgrades: world.checker.upgrades(),
        granted: world.operators.granted,
        slot_answers: world.checker.slot_answers(),
        waits: world.checker.waits(),
        violation: panicked.or_else(|| world.checker.into_violation()),
        trace: world.trace.lines(),
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_owned())
}
