//! What a seed decides about the operator's command that reboots hosts. It has a stream of random numbers of its own, so that
//! worlds without a command stay what they were before there was one.

use fastrand::Rng;
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::RebootCommandSettings;

use crate::time::{Micros, SECOND};

/// Makes the stream of the command another one than those of the rest, of the queue and of the cluster.
const STREAM: u64 = 0x0062_6d63;

/// The operator's commands of a world that has them.
#[derive(Debug, Clone)]
pub(crate) struct CommandPlan {
    /// What decisions know of them.
    pub(crate) settings: RebootCommandSettings,
    /// How long a run of one takes, unless it hangs.
    pub(crate) takes_max: Micros,
}

/// The random numbers that decide about the command.
pub(crate) fn stream(seed: u64) -> Rng {
    Rng::with_seed(seed ^ STREAM)
}

impl CommandPlan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let within: u64 = *rng.choice(&[10, 60, 180]).expect("not empty");
        let settings =
            RebootCommandSettings { within: Duration::from_secs(within), checks_boot: rng.u32(..5) < 2 };
        Self { settings, takes_max: *rng.choice(&[SECOND, within * SECOND / 2]).expect("not empty") }
    }

    /// How long a run takes at most.
    pub(crate) const fn within(&self) -> Micros {
        self.settings.within.as_secs() * SECOND
    }
}
