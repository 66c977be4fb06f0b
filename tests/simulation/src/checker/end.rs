//! What must be so in the end, when nothing goes wrong any more.

use os_upgrade_kernel::State;
use os_upgrade_kernel::semaphore::Semaphore;

use super::steps::Steps;
use super::violation::Violation;
use crate::locks::LockServer;

/// The last run has gone well: nothing is left of it, and the leader knows what the journal says.
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
        let text = format!("the leader's state is not what the journal says:\n{leader:#?}\n{folded:#?}");
        return Err(Violation::new("S5", text));
    }
    let open: Vec<_> = steps.open().collect();
    if !open.is_empty() {
        return left(format!("{open:?} are still under upgrade"));
    }
    Ok(())
}
