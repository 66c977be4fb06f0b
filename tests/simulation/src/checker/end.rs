//! What must hold at the end, after the faults.

use os_upgrade_kernel::State;
use os_upgrade_kernel::slot::Semaphore;

use super::steps::Steps;
use super::violation::Violation;
use crate::locks::LockServer;

/// After the last run has succeeded: nothing is left of it, and the leader's state is the fold of the journal.
pub(super) fn check(
    leader: &State,
    journal: &State,
    locks: &LockServer,
    steps: &Steps,
) -> Result<(), Violation> {
    let left = |text| Err(Violation::new("live", text));
    if !leader.slots.is_empty() {
        return left(format!("slots are left: {:?}", leader.slots));
    }
    let in_semaphores = |(_, semaphore): (_, &Semaphore)| !semaphore.holders.is_empty();
    if leader.semaphores.iter().any(in_semaphores) {
        return left(format!("holders are left: {:?}", leader.semaphores));
    }
    let holders: Vec<_> = locks.holders().collect();
    if !holders.is_empty() {
        return left(format!("the lock server still has holders: {holders:?}"));
    }
    let folded = State { control: leader.control, ..journal.clone() };
    if folded != *leader {
        let text = format!("the leader's state is not the fold of the journal:\n{leader:#?}\n{folded:#?}");
        return Err(Violation::new("S5", text));
    }
    let open: Vec<_> = steps.open().collect();
    if !open.is_empty() {
        return left(format!("{open:?} are still under upgrade"));
    }
    Ok(())
}
