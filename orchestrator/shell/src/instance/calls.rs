//! Requests: the leader queues them, a follower forwards them to the leader, and every other instance refuses them.

use std::time::Duration;

use os_upgrade_kernel::{Batch, Input, LockOperation, Operation, Request, State, View};

use super::leading::Caller;
use super::{Action, CallId, Instance, NotReady, Role};
use crate::clock::Now;
use crate::forward::{Forwarded, Outcome};
use crate::not_done::NotDone;

/// A call that has waited this long in the queue is dropped. Callers wait longer, so nothing is begun for a caller that
/// has given up.
const CALL_TTL: Duration = Duration::from_millis(3_500);
/// The same for calls that a follower has forwarded.
const FORWARDED_TTL: Duration = Duration::from_millis(2_500);
/// How much less FleetLock requests may wait: their clients soon retry, perhaps with the opposite request.
const LOCK_TTL_REDUCTION: Duration = Duration::from_millis(1_500);

/// While an append takes longer than this, the instance is not ready.
const APPEND_SLOW: Duration = Duration::from_secs(2);

/// How long `request` may wait in the queue.
const fn ttl(request: &Request, is_forwarded: bool) -> Duration {
    let ttl = if is_forwarded { FORWARDED_TTL } else { CALL_TTL };
    match request.operation {
        Operation::Lock(_) => ttl.saturating_sub(LOCK_TTL_REDUCTION),
        Operation::Run(_)
        | Operation::Pause(_)
        | Operation::Config(_)
        | Operation::Enrolment(_)
        | Operation::Slot(_)
        | Operation::Desired(_)
        | Operation::Reboot(_)
        | Operation::Node(_)
        | Operation::Secret(_)
        | Operation::Unit(_) => ttl,
    }
}

/// Whether `request` is one for a slot that is refused, as things are.
fn is_refused_slot(state: &State, view: &View, request: &Request, now: Now) -> bool {
    let Operation::Lock(LockOperation::Lock { .. }) = request.operation else { return false };
    let answer = Batch::new(state, now.wall).decide(view, &Input::Request(request.clone()));
    matches!(answer, Some(Err(_)))
}

impl Instance {
    /// Why this instance can neither accept nor forward a write now; `None` if it can.
    pub fn not_ready(&self, now: Now) -> Option<NotReady> {
        if let Role::Halted { halt, account } = &self.role {
            return Some(NotReady::Halted(halt.with_account(account.as_deref())));
        }
        if let Some(why) = self.stopping.reason_not_ready() {
            return Some(NotReady::Stopping(why));
        }
        if let Some(why) = self.inspection.reason_not_ready() {
            return Some(NotReady::NotInspected(why));
        }
        if !self.inventory.is_read() {
            return Some(NotReady::HostsUnread);
        }
        match &self.role {
            Role::Leading(_) if self.appender.busy_for(now) > APPEND_SLOW => {
                Some(self.storage.map_or(NotReady::NoAnswer, NotReady::StorageFull))
            }
            Role::Leading(_) => None,
            Role::Following { at_end: true } if self.lease.leader().is_some() => None,
            // One that has led reads on where it stopped. That nobody leads is what keeps it then.
            Role::Following { at_end: false } if !self.has_read || self.lease.leader().is_some() => {
                Some(NotReady::JournalUnread)
            }
            Role::Following { .. } | Role::Claiming | Role::Starting | Role::Halted { .. } => {
                Some(self.why_no_leader())
            }
        }
    }

    /// Why no instance leads.
    fn why_no_leader(&self) -> NotReady {
        let otherwise = if self.lease.is_restoring() { NotReady::Restoring } else { NotReady::NoLeader };
        self.storage.map_or(otherwise, NotReady::StorageFull)
    }

    /// Queues a request, forwards it, or answers why not. `forwarded_at` is the lease revision of a forwarded request.
    pub(super) fn call(&mut self, now: Now, call: CallId, request: Request, forwarded_at: Option<u64>) {
        if let Some(why) = self.stopping.reason_not_ready() {
            self.answer_unchanged(call, why);
            return;
        }
        // The caller of an outdated request has given up.
        let is_outdated = forwarded_at.is_some_and(|lease| !self.lease.is_recent(lease));
        match &mut self.role {
            Role::Leading(_) if is_outdated => {
                self.answer_unchanged(call, "the request was under way for too long");
            }
            Role::Leading(_) if !self.inventory.is_read() => {
                self.answer_unchanged(call, NotReady::HostsUnread.to_string());
            }
            Role::Leading(leading) if !leading.is_full() => {
                let until = now.monotonic + ttl(&request, forwarded_at.is_some());
                let is_refused = is_refused_slot(&self.follower.state, self.inventory.view(), &request, now);
                leading.push_call(request, Caller { call, until }, is_refused);
            }
            Role::Leading(_) => {
                self.answer_unchanged(call, "too many requests wait for the journal");
            }
            Role::Starting | Role::Following { .. } | Role::Claiming if forwarded_at.is_none() => {
                self.forward(call, request);
            }
            Role::Starting | Role::Following { .. } | Role::Claiming | Role::Halted { .. } => {
                self.refuse(call);
            }
        }
    }

    /// Forwards a request to the leader, unless the bus is away: the client library would keep it, and deliver it long
    /// after the caller was told otherwise.
    fn forward(&mut self, call: CallId, request: Request) {
        match self.lease.seen() {
            Some((to, lease)) if self.may_publish() && !self.forwards.is_full() => {
                self.forwards.begin(call);
                let forwarded = Forwarded { lease, request };
                self.out.push(Action::Forward { call, to: to.clone(), forwarded });
            }
            Some(_) if self.may_publish() => {
                self.answer_unchanged(call, "too many requests are being passed on to the leader");
            }
            Some(_) | None => self.refuse(call),
        }
    }

    pub(super) fn forward_answered(&mut self, now: Now, call: CallId, outcome: Outcome) {
        if let Some(not_done) = self.forwards.answered(now, call, outcome) {
            self.out.push(Action::Answer { call, outcome: Err(not_done) });
        }
    }

    pub(super) fn refuse(&mut self, call: CallId) {
        match (&self.role, self.lease.leader()) {
            (Role::Halted { halt, account }, _) => {
                let why = halt.with_account(account.as_deref());
                self.answer_unchanged(call, why);
            }
            _ if !self.may_publish() => {
                let why = self.inspection.reason_not_ready().unwrap_or_default();
                self.answer_unchanged(call, format!("not leading: {why}"));
            }
            (_, Some(other)) => {
                let why = format!("not leading: instance {} does", other.instance);
                self.answer_unchanged(call, why);
            }
            (_, None) => self.answer_unchanged(call, self.why_no_leader().to_string()),
        }
    }

    /// Answers that a request was not begun, and why.
    fn answer_unchanged(&mut self, call: CallId, why: impl Into<String>) {
        self.out.push(Action::Answer { call, outcome: Err(NotDone::unchanged(why)) });
    }
}
