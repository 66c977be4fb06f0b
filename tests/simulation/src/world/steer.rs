//! What operators who steer runs do, at good moments and bad ones.

use chrono::TimeDelta;
use os_upgrade_kernel::{PauseOperation, Request};

use super::World;
use crate::agenda::Item;

impl World {
    /// An operator pauses the site, often for a while only, or resumes it.
    pub(super) fn steer(&mut self) {
        let Some(plan) = self.plan.steer.as_ref().filter(|_| self.faults_enabled) else { return };
        let every = 2 * plan.act_every * self.slowdown();
        self.after(every, Item::Steer);
        let operation = if self.rng.bool() {
            // An end that has passed is refused.
            let seconds = self.rng.i64(-5..90);
            let until = self.rng.bool().then(|| self.time() + TimeDelta::seconds(seconds));
            PauseOperation::Pause { reason: "the fair is on".to_owned(), until }
        } else {
            PauseOperation::Resume { reason: None }
        };
        let (actor, validate) = ("operator".to_owned(), self.rng.u32(..10) == 0);
        let index = self.rng.usize(..self.instances.len());
        self.request(index, Request { actor, validate, operation }.into());
    }

    /// The site is resumed, if anybody could have paused it. Returns whether that succeeded.
    pub(super) fn is_resumed(&mut self) -> bool {
        let resume = |_: &mut Self| Request::new("operator", PauseOperation::Resume { reason: None }).into();
        self.plan.steer.is_none() || self.until_granted("the site is resumed", resume)
    }
}
