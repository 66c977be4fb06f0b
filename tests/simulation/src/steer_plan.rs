//! What a seed decides about operators who steer runs: who pause the site. It has a stream of random numbers of its own, so that worlds in
//! which nobody steers stay what they were before anybody could.

use fastrand::Rng;

use crate::time::{Micros, SECOND};

/// Makes the stream of steering another one than that of the rest.
const STREAM: u64 = 0x73_7465_6572;

/// How a world is steered.
#[derive(Debug, Clone)]
pub(crate) struct SteerPlan {
    /// The mean time between two acts.
    pub(crate) act_every: Micros,
}

/// The random numbers that decide about steering.
pub(crate) fn stream(seed: u64) -> Rng {
    Rng::with_seed(seed ^ STREAM)
}

impl SteerPlan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        Self { act_every: rng.u64(3..40) * SECOND }
    }
}
