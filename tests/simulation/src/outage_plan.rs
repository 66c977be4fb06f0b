//! What a seed decides about a power cut of the whole site, after which no clock knows the time. It has a stream of random numbers
//! of its own, so that worlds without one stay what they were.

use chrono::TimeDelta;
use fastrand::Rng;

use crate::time::{MINUTE, Micros, SECOND};

/// Makes the stream of the power cut another one than those of the rest.
const STREAM: u64 = 0x7274_6300;

/// A power cut of the whole site.
#[derive(Debug, Clone)]
pub(crate) struct OutagePlan {
    /// When it happens.
    pub(crate) at: Micros,
    /// By how much the clocks are behind afterwards.
    pub(crate) behind: TimeDelta,
    /// How long they are.
    pub(crate) wrong_for: Micros,
}

/// The random numbers that decide about the power cut.
pub(crate) fn stream(seed: u64) -> Rng {
    Rng::with_seed(seed ^ STREAM)
}

impl OutagePlan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let behind = *rng.choice(&[10 * 60, 20 * 3_600, 30 * 24 * 3_600]).expect("not empty");
        Self {
            at: rng.u64(30..200) * SECOND,
            behind: TimeDelta::seconds(rng.i64(behind / 2..=behind)),
            wrong_for: rng.u64(2..20) * MINUTE,
        }
    }
}
