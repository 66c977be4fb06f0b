//! What a seed decides about the reboot queue. It has a stream of random numbers of its own, so that worlds without a queue
//! stay what they were before there was one.

use fastrand::Rng;

use crate::time::{Micros, SECOND};

/// Makes the stream of the queue another one than that of the rest.
const STREAM: u64 = 0x7265_626f_6f74;

/// The reboot queue of a world that has one.
#[derive(Debug, Clone)]
pub(crate) struct QueuePlan {
    /// The mean time between two acts of operators on it.
    pub(crate) act_every: Micros,
}

/// The random numbers that decide about the queue.
pub(crate) fn stream(seed: u64) -> Rng {
    Rng::with_seed(seed ^ STREAM)
}

impl QueuePlan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        Self { act_every: rng.u64(3..30) * SECOND }
    }
}
