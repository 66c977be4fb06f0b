//! What must be so in the end, when nothing goes wrong any more.

use os_upgrade_kernel::State;
use os_upgrade_kernel::semaphore::Semaphore;

use super::Checker;
use crate::locks::LockServer;

impl Checker {
    /// Something that must come never came.
    pub(crate) fn never(&mut self, what: &str, state: &str) {
        self.violated("live", format!("never: {what}\n{state}"));
    }

    /// The last run has gone well: nothing is left of it, and the leader knows what the journal says.
    pub(crate) fn at_the_end(&mut self, leader: &State, locks: &LockServer) {
        if !leader.slots.is_empty() {
            self.violated("live", format!("slots are left: {:?}", leader.slots));
        }
        let in_semaphores = |(_, semaphore): (_, &Semaphore)| !semaphore.holders.is_empty();
        if leader.semaphores.iter().any(in_semaphores) {
            self.violated("live", format!("holders are left: {:?}", leader.semaphores));
        }
        let holders: Vec<_> = locks.holders().collect();
        if !holders.is_empty() {
            self.violated("live", format!("the lock server still has holders: {holders:?}"));
        }
        let folded = State { control: leader.control, ..self.follower.state.clone() };
        if folded != *leader {
            let text = format!("the leader's state is not what the journal says:\n{leader:#?}\n{folded:#?}");
            self.violated("S5", text);
        }
        let open: Vec<_> =
            self.steps.iter().filter(|(_, step)| step.is_open()).map(|(host, _)| host).collect();
        if !open.is_empty() {
            self.violated("live", format!("{open:?} are still under upgrade"));
        }
    }
}
