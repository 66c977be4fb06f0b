//! What must hold at the end, after the faults.

use os_upgrade_kernel::State;
use os_upgrade_kernel::slot::Semaphore;
use os_upgrade_protocol::HostName;

use super::Checker;
use super::steps::Steps;
use super::violation::Violation;
use crate::locks::LockServer;

impl Checker {
    /// `what` must happen eventually and has not.
    pub(crate) fn never_happened(&mut self, what: &str, state: &str) {
        self.violations.add(Violation::new("live", format!("never: {what}\n{state}")));
    }

    /// Of the hosts that are well and to which a slot was open, `starved` were upgraded in none of so many `runs`.
    pub(crate) fn check_starved(&mut self, starved: &[&HostName], runs: usize, state: &State) {
        let names: Vec<&str> = starved.iter().map(|host| host.as_str()).collect();
        let violation =
            || Violation::new("starved", format!("not in {runs} runs: {}\n{state:#?}", names.join(", ")));
        let checked = if starved.is_empty() { Ok(()) } else { Err(violation()) };
        self.violations.record("nights.check_starved", checked);
    }

    /// The last run has succeeded.
    pub(crate) fn check_end(&mut self, leader: &State, locks: &LockServer) {
        self.violations.record("end.check", check(leader, self.journal.state(), locks, &self.steps));
    }
}

/// After the last run has succeeded: nothing is left of it, and the leader's state is the fold of the journal.
fn check(leader: &State, journal: &State, locks: &LockServer, steps: &Steps) -> Result<(), Violation> {
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
