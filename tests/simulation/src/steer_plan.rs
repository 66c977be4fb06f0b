//! What a seed decides about operators who steer runs: who pause the site. It has a stream of random numbers of its own, so that worlds in
//! which nobody steers stay what they were before anybody could.

use fastrand::Rng;
use os_upgrade_protocol::Action;

use crate::time::{Micros, SECOND};

/// Makes the stream of steering another one than that of the rest.
const STREAM: u64 = 0x73_7465_6572;

/// How a world is steered.
#[derive(Debug, Clone)]
pub(crate) struct SteerPlan {
    /// The mean time between two acts.
    pub(crate) act_every: Micros,
    /// After the faults, what goes wrong on which host in each run of some nights; `None` if there are no such nights.
    pub(crate) bad_host: Option<BadHost>,
}

/// A host on which a command goes wrong each time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BadHost {
    pub(crate) index: usize,
    pub(crate) action: Action,
    pub(crate) ailment: Ailment,
}

/// How a command goes wrong on a host, each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ailment {
    /// The worker answers an error.
    Fails,
    /// It never ends.
    Hangs,
}

/// The random numbers that decide about steering.
pub(crate) fn stream(seed: u64) -> Rng {
    Rng::with_seed(seed ^ STREAM)
}

impl SteerPlan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        Self { act_every: rng.u64(3..40) * SECOND, bad_host: None }
    }
}

impl BadHost {
    pub(crate) fn draw(rng: &mut Rng, hosts: usize) -> Self {
        let action = *rng.choice(&Action::ALL).expect("not empty");
        let ailment = *rng.choice(&[Ailment::Fails, Ailment::Hangs]).expect("not empty");
        Self { index: rng.usize(..hosts), action, ailment }
    }
}
