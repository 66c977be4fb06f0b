//! Operators and other users of the API: the numbers of their calls, and the outcomes.

use std::collections::BTreeMap;

use os_upgrade_shell::forward::Outcome;
use os_upgrade_shell::instance::CallId;

use crate::request::Request;

#[derive(Debug, Default)]
pub(crate) struct Operators {
    /// Counts calls.
    pub(crate) calls: CallId,
    /// Counts the triggered runs.
    pub(crate) runs: u32,
    /// Calls that a follower has passed on, by the leader's number for them.
    pub(crate) forwarded: BTreeMap<CallId, Request>,
    /// Accepted calls.
    pub(crate) granted: u64,
    /// Refused calls.
    pub(crate) refused: u64,
    /// Calls that were not carried out, or whose outcome is unknown.
    pub(crate) unavailable: u64,
    /// The last call that was accepted.
    pub(crate) last_granted: CallId,
}

impl Operators {
    /// The number of the next call.
    pub(crate) fn next_call(&mut self) -> CallId {
        self.calls += 1;
        self.calls
    }

    pub(crate) fn answered(&mut self, call: CallId, outcome: &Outcome) {
        match outcome.as_ref().map(|answered| &answered.answer) {
            Ok(Ok(_)) => {
                self.granted += 1;
                self.last_granted = self.last_granted.max(call);
            }
            Ok(Err(_)) => self.refused += 1,
            Err(_) => self.unavailable += 1,
        }
    }
}
