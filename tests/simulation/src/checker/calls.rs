//! Calls under way, and what FleetLock clients can know of their slots.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_kernel::fact::LockFact;
use os_upgrade_kernel::{ClientId, Fact, LockOperation, Operation, Request};
use os_upgrade_protocol::GroupName;
use os_upgrade_shell::forward::Outcome;
use os_upgrade_shell::instance::CallId;
use os_upgrade_shell::not_done::NotDone;

use crate::time::{Micros, SECOND};

/// How long after the answer "unknown outcome" a call may still have its effect: an append arrives at most a minute
/// after it left, one of a paused process after that goes on, and one that a client kept while it was disconnected after
/// it is connected again.
pub(super) const LATE_EFFECT_MAX: Micros = 70 * SECOND;

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Each with the time of the call.
    under_way: BTreeMap<CallId, (Request, Micros)>,
    /// Until when a slot of each client may have been given back at the client's own request.
    unlocks: BTreeMap<ClientId, Micros>,
    /// Clients that were granted a slot and have not asked to give it back since.
    holders: BTreeSet<(GroupName, ClientId)>,
}

impl Calls {
    /// A call is made.
    pub(super) fn called(&mut self, now: Micros, call: CallId, request: &Request) {
        if let Operation::Lock(LockOperation::Unlock { group, id }) = &request.operation {
            self.holders.remove(&(group.clone(), id.clone()));
            self.may_be_unlocked(id, now);
        }
        self.under_way.insert(call, (request.clone(), now));
    }

    /// A call is answered; returns its request and its time, or none if it was answered before.
    pub(super) fn answered(
        &mut self,
        now: Micros,
        call: CallId,
        outcome: &Outcome,
    ) -> Option<(Request, Micros)> {
        let (request, called) = self.under_way.remove(&call)?;
        if let Operation::Lock(LockOperation::Unlock { id, .. }) = &request.operation {
            // Until now it may have taken effect after a lock that was requested later.
            self.may_be_unlocked(id, now);
            if let Err(NotDone::Unknown { .. }) = outcome {
                self.unlocks.insert(id.clone(), now + LATE_EFFECT_MAX);
            }
        }
        Some((request, called))
    }

    /// A client is granted the slot that it requested at `called`; returns whether it can know that it still holds the
    /// slot.
    pub(super) fn granted(&mut self, group: &GroupName, id: &ClientId, called: Micros) -> bool {
        let can_know = !self.has_unlocked(id, called);
        if can_know {
            self.holders.insert((group.clone(), id.clone()));
        }
        can_know
    }

    /// A fact was added to the journal.
    pub(super) fn fact(&mut self, now: Micros, fact: &Fact) {
        if let Fact::Lock(LockFact::HolderReleased { group, id, .. }) = fact {
            // The holder is not asked.
            self.holders.remove(&(group.clone(), id.clone()));
            self.may_be_unlocked(id, now);
        }
    }

    /// The clients that know that they hold a slot of `group`.
    pub(super) fn holders(&self, group: &GroupName) -> impl Iterator<Item = &ClientId> {
        self.holders.iter().filter(move |(of, _)| of == group).map(|(_, id)| id)
    }

    fn may_be_unlocked(&mut self, client: &ClientId, now: Micros) {
        let until = self.unlocks.entry(client.clone()).or_default();
        *until = now.max(*until);
    }

    /// Whether the client has tried to give its slot back since `since`, or such a call is unanswered or has an
    /// unknown outcome: then it cannot know that it holds one.
    fn has_unlocked(&self, client: &ClientId, since: Micros) -> bool {
        let of_client = |request: &Request| matches!(&request.operation, Operation::Lock(LockOperation::Unlock { id, .. }) if id == client);
        self.unlocks.get(client).is_some_and(|until| *until >= since)
            || self.under_way.values().any(|(request, _)| of_client(request))
    }
}
