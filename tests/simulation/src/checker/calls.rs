//! Calls under way, and what clients from outside can know of their slots.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_kernel::{ClientId, Fact, LockOperation, Operation, Request};
use os_upgrade_protocol::GroupName;
use os_upgrade_shell::forward::Outcome;
use os_upgrade_shell::node::CallId;
use os_upgrade_shell::not_done::NotDone;

use crate::time::{Micros, SECOND};

/// For how long a call may have its effect after its asker has been told that the outcome is not known: an append that
/// is on its way comes at the latest a minute after it left, and that of a process that stands still after it goes on.
pub(super) const MAY_YET_COME: Micros = 70 * SECOND;

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// With when they were asked.
    under_way: BTreeMap<CallId, (Request, Micros)>,
    /// Until when a slot of each client may have been given back at its own wish.
    unlocks: BTreeMap<ClientId, Micros>,
    /// Clients that have been told that they hold a slot and have not asked to give it back since.
    holders: BTreeSet<(GroupName, ClientId)>,
}

impl Calls {
    /// Somebody asks.
    pub(super) fn asked(&mut self, now: Micros, call: CallId, request: &Request) {
        if let Operation::Lock(LockOperation::Unlock { group, id }) = &request.operation {
            self.holders.remove(&(group.clone(), id.clone()));
            self.may_be_unlocked(id, now);
        }
        self.under_way.insert(call, (request.clone(), now));
    }

    /// Somebody is answered: what they had asked, and when; nothing, if they have been answered before.
    pub(super) fn answered(
        &mut self,
        now: Micros,
        call: CallId,
        outcome: &Outcome,
    ) -> Option<(Request, Micros)> {
        let (request, asked) = self.under_way.remove(&call)?;
        if let Operation::Lock(LockOperation::Unlock { id, .. }) = &request.operation {
            // Until now it may have come after a lock that was asked for later.
            self.may_be_unlocked(id, now);
            if let Err(NotDone::Unknown { .. }) = outcome {
                self.unlocks.insert(id.clone(), now + MAY_YET_COME);
            }
        }
        Some((request, asked))
    }

    /// A client is told that it holds the slot that it asked for then; whether it can know that it does.
    pub(super) fn granted(&mut self, group: &GroupName, id: &ClientId, asked: Micros) -> bool {
        let can_know = !self.has_unlocked(id, asked);
        if can_know {
            self.holders.insert((group.clone(), id.clone()));
        }
        can_know
    }

    /// A fact stands in the journal.
    pub(super) fn fact(&mut self, now: Micros, fact: &Fact) {
        if let Fact::HolderReleased { group, id, .. } = fact {
            // Whoever held it is not asked.
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

    /// Whether the client has asked to give its slot back since it asked for one, or not heard of that yet, or heard
    /// that it may still come to be: it cannot know that it holds one.
    fn has_unlocked(&self, client: &ClientId, since: Micros) -> bool {
        let of_client = |request: &Request| matches!(&request.operation, Operation::Lock(LockOperation::Unlock { id, .. }) if id == client);
        self.unlocks.get(client).is_some_and(|until| *until >= since)
            || self.under_way.values().any(|(request, _)| of_client(request))
    }
}
