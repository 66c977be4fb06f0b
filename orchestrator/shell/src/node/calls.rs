//! What becomes of a request: the leader takes it in, a follower passes it on, and nobody else touches it.

use std::time::Duration;

use os_upgrade_kernel::Request;

use super::leading::Queued;
use super::{Action, CallId, HOSTS_UNREAD, NO_LEADER, Node, Role, halted};
use crate::clock::Now;
use crate::forward::{Outcome, Passed};

/// Calls that have waited so long without having been begun are dropped. It is less than their askers wait, so that
/// nothing is begun for one that has given up.
const CALL_TTL: Duration = Duration::from_millis(3_500);
/// The same of calls that a follower has passed on.
const FORWARDED_TTL: Duration = Duration::from_millis(2_500);
/// By how much less FleetLock clients wait, who ask again soon, and for the contrary.
const CLIENTS_LESS: Duration = Duration::from_millis(1_500);

/// Who waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asker {
    /// Somebody who asked this instance.
    Here,
    /// Another instance, which was asked, and had seen the lease at this revision.
    Follower { lease: u64 },
}

impl Asker {
    /// How long `request` of theirs is worth being begun.
    const fn patience(self, request: &Request) -> Duration {
        let patience = match self {
            Self::Here => CALL_TTL,
            Self::Follower { .. } => FORWARDED_TTL,
        };
        match request {
            Request::Lock { .. } | Request::Unlock { .. } => patience.saturating_sub(CLIENTS_LESS),
            Request::PutConfig { .. }
            | Request::DeleteConfig { .. }
            | Request::Trigger { .. }
            | Request::Cancel { .. }
            | Request::Hold { .. }
            | Request::Release { .. }
            | Request::Reclaim { .. }
            | Request::KeepSecret { .. }
            | Request::RemoveSecret { .. }
            | Request::ApproveHosts { .. }
            | Request::WithdrawHost { .. }
            | Request::GiveUpHost { .. } => patience,
        }
    }
}

impl Node {
    pub(super) fn call(&mut self, now: Now, call: CallId, request: Request, asker: Asker) {
        if let Some(why) = self.stopping.why_not_ready() {
            self.untouched(call, &why);
            return;
        }
        let outdated = self.is_outdated(asker);
        match &mut self.role {
            Role::Leading(_) if outdated => {
                let why = "the request was under way for too long; nothing was changed";
                self.out.push(Action::Answer { call, answer: Err(why.to_owned()) });
            }
            Role::Leading(_) if !self.inventory.is_read() => {
                self.untouched(call, HOSTS_UNREAD);
            }
            Role::Leading(leading) if !leading.is_full() => {
                let until = now.monotonic + asker.patience(&request);
                leading.queue.push_back(Queued::Call { call, request, until });
            }
            Role::Leading(_) => {
                self.untouched(call, "too many requests wait for the journal");
            }
            Role::Starting | Role::Following { .. } | Role::Claiming => match asker {
                Asker::Here => self.forward(call, request),
                Asker::Follower { .. } => self.refuse(call),
            },
            Role::Halted { .. } => self.refuse(call),
        }
    }

    /// Whether a request that was passed on has been under way for so long that its asker has given up.
    fn is_outdated(&self, asker: Asker) -> bool {
        match asker {
            Asker::Here => false,
            Asker::Follower { lease } => !self.lease.is_recent(lease),
        }
    }

    /// Passes a request on to whoever leads. Not while the bus is away: the client library would keep it, and the
    /// leader would be asked long after the asker was told otherwise.
    fn forward(&mut self, call: CallId, request: Request) {
        match self.lease.seen() {
            Some((to, lease)) if self.may_publish() && !self.forwards.is_full() => {
                self.forwards.begin(call);
                let passed = Passed { lease, request };
                self.out.push(Action::Forward { call, to: to.clone(), passed });
            }
            Some(_) if self.may_publish() => {
                self.untouched(call, "too many requests are being passed on to the leader");
            }
            Some(_) | None => self.refuse(call),
        }
    }

    pub(super) fn forward_answered(&mut self, now: Now, call: CallId, outcome: Outcome) {
        if let Some(answer) = self.forwards.heard(now, call, outcome) {
            self.out.push(Action::Answer { call, answer });
        }
    }

    pub(super) fn refuse(&mut self, call: CallId) {
        match (&self.role, self.lease.other()) {
            (Role::Halted { halt, account }, _) => {
                // The very text by which it is not ready.
                let answer = Err(halted(halt, account.as_deref()));
                self.out.push(Action::Answer { call, answer });
            }
            _ if !self.may_publish() => self.untouched(call, "not leading: the bus is away"),
            (_, Some(other)) => {
                let why = format!("not leading: instance {} does", other.instance);
                self.untouched(call, &why);
            }
            (_, None) => self.untouched(call, NO_LEADER),
        }
    }

    /// Says why a request was not even begun.
    fn untouched(&mut self, call: CallId, why: &str) {
        let answer = Err(format!("{why}; nothing was changed"));
        self.out.push(Action::Answer { call, answer });
    }
}
