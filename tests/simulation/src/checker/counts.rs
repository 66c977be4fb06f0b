//! What the checker has counted. Seeds in which nothing happens would prove nothing.

use std::collections::BTreeMap;

use super::Checker;

impl Checker {
    /// How often each check of a rule was made.
    pub(crate) fn asked(&self) -> &BTreeMap<&'static str, u64> {
        self.violations.asked()
    }

    /// The runs that started.
    pub(crate) fn runs(&self) -> u64 {
        self.runs.count()
    }

    /// Of these, the runs that a window started.
    pub(crate) fn scheduled(&self) -> u64 {
        self.runs.scheduled()
    }

    /// The missed runs that were recorded.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.count()
    }

    /// The hosts that operators gave up after these had begun.
    pub(crate) fn given_up(&self) -> u64 {
        self.steps.given_up()
    }

    /// The entries of the reboot queue that ended because their hosts have rebooted.
    pub(crate) fn rebooted(&self) -> u64 {
        self.queue.rebooted()
    }

    /// How often hosts went down for the operator's command.
    pub(crate) fn rebooted_by_commands(&self) -> u64 {
        self.attempts.reboots()
    }

    /// How often a node was drained before its host was told to upgrade or reboot.
    pub(crate) fn drained(&self) -> u64 {
        self.nodes.drained()
    }

    /// The upgrades that workers with the SDK's rules began.
    pub(crate) fn upgrades(&self) -> u64 {
        self.workers.upgrades()
    }

    /// The answers about slots that were found right.
    pub(crate) fn slot_answers(&self) -> u64 {
        self.semaphores.answers()
    }

    /// The clients that waited for their slot beside runs.
    pub(crate) fn waits(&self) -> u64 {
        self.turns.waits()
    }
}
