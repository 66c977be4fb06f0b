//! What becomes of a request: the leader takes it in, a follower passes it on, and nobody else touches it.

use std::time::Duration;

use os_upgrade_kernel::{Input, Operation, Request};

use super::leading::Caller;
use super::{Action, CallId, HOSTS_UNREAD, NO_LEADER, Node, Role, halted};
use crate::clock::Now;
use crate::forward::{Forwarded, Outcome};
use crate::not_done::NotDone;

/// Calls that have waited so long without having been begun are dropped. It is less than their askers wait, so that
/// nothing is begun for one that has given up.
const CALL_TTL: Duration = Duration::from_millis(3_500);
/// The same of calls that a follower has passed on.
const FORWARDED_TTL: Duration = Duration::from_millis(2_500);
/// By how much less FleetLock clients wait, who ask again soon, and for the contrary.
const CLIENTS_LESS: Duration = Duration::from_millis(1_500);

/// How long `request` is worth being begun, where it came from a follower or not.
const fn patience(request: &Request, is_forwarded: bool) -> Duration {
    let patience = if is_forwarded { FORWARDED_TTL } else { CALL_TTL };
    match request.operation {
        Operation::Lock(_) => patience.saturating_sub(CLIENTS_LESS),
        Operation::Run(_)
        | Operation::Config(_)
        | Operation::Enrolment(_)
        | Operation::Slot(_)
        | Operation::Secret(_) => patience,
    }
}

impl Node {
    /// Takes a request in, passes it on, or says why not. One that a follower has passed on says at which revision of
    /// the lease.
    pub(super) fn call(&mut self, now: Now, call: CallId, request: Request, forwarded_at: Option<u64>) {
        if let Some(why) = self.stopping.why_not_ready() {
            self.unchanged(call, why);
            return;
        }
        // Its asker has given up by then.
        let is_outdated = forwarded_at.is_some_and(|lease| !self.lease.is_recent(lease));
        match &mut self.role {
            Role::Leading(_) if is_outdated => {
                self.unchanged(call, "the request was under way for too long");
            }
            Role::Leading(_) if !self.inventory.is_read() => {
                self.unchanged(call, HOSTS_UNREAD);
            }
            Role::Leading(leading) if !leading.is_full() => {
                let until = now.monotonic + patience(&request, forwarded_at.is_some());
                leading.queue.push_back((Input::Request(request), Some(Caller { call, until })));
            }
            Role::Leading(_) => {
                self.unchanged(call, "too many requests wait for the journal");
            }
            Role::Starting | Role::Following { .. } | Role::Claiming if forwarded_at.is_none() => {
                self.forward(call, request);
            }
            Role::Starting | Role::Following { .. } | Role::Claiming | Role::Halted { .. } => {
                self.refuse(call);
            }
        }
    }

    /// Passes a request on to whoever leads. Not while the bus is away: the client library would keep it, and the
    /// leader would be asked long after the asker was told otherwise.
    fn forward(&mut self, call: CallId, request: Request) {
        match self.lease.seen() {
            Some((to, lease)) if self.may_publish() && !self.forwards.is_full() => {
                self.forwards.begin(call);
                let forwarded = Forwarded { lease, request };
                self.out.push(Action::Forward { call, to: to.clone(), forwarded });
            }
            Some(_) if self.may_publish() => {
                self.unchanged(call, "too many requests are being passed on to the leader");
            }
            Some(_) | None => self.refuse(call),
        }
    }

    pub(super) fn forward_answered(&mut self, now: Now, call: CallId, outcome: Outcome) {
        if let Some(not_done) = self.forwards.heard(now, call, outcome) {
            self.out.push(Action::Answer { call, outcome: Err(not_done) });
        }
    }

    pub(super) fn refuse(&mut self, call: CallId) {
        match (&self.role, self.lease.other()) {
            (Role::Halted { halt, account }, _) => {
                let why = halted(halt, account.as_deref());
                self.unchanged(call, why);
            }
            _ if !self.may_publish() => {
                let why = self.inspection.why_not().unwrap_or_default();
                self.unchanged(call, format!("not leading: {why}"));
            }
            (_, Some(other)) => {
                let why = format!("not leading: instance {} does", other.instance);
                self.unchanged(call, why);
            }
            (_, None) => self.unchanged(call, NO_LEADER),
        }
    }

    /// Says why a request was not even begun.
    fn unchanged(&mut self, call: CallId, why: impl Into<String>) {
        self.out.push(Action::Answer { call, outcome: Err(NotDone::unchanged(why)) });
    }
}
