//! How an instance stops: it begins nothing new, waits for what is under way, and releases the lease.

use super::stopping::{STOP_WITHIN, STOPPING, Stopping};
use super::{Action, Instance, Role};
use crate::clock::Now;
use crate::not_done::NotDone;

impl Instance {
    /// Begins to stop.
    pub(super) fn stop(&mut self, now: Now) {
        if !self.stopping.is_requested() {
            self.stopping = Stopping::Draining { until: now.monotonic + STOP_WITHIN };
        }
    }

    /// Continues to stop, as far as what is under way allows.
    pub(super) fn continue_stopping(&mut self, now: Now) {
        match self.stopping {
            Stopping::No | Stopping::Stopped => return,
            Stopping::Draining { until } => {
                if !self.is_drained() && now.monotonic < until {
                    return;
                }
                self.abandon_all();
                if let Role::Halted { .. } = self.role {
                    // A halted instance does not track the lease. If it still holds it, the lease expires.
                    self.stopping = Stopping::Stopped;
                    self.out.push(Action::Stopped);
                    return;
                }
                self.stopping = Stopping::Leaving { until };
                let release = self.lease.leave(now);
                self.out.extend(release.map(Action::Lease));
            }
            Stopping::Leaving { .. } => {}
        }
        if let Stopping::Leaving { until } = self.stopping
            && (self.lease.is_left() || until <= now.monotonic)
        {
            self.stopping = Stopping::Stopped;
            self.out.push(Action::Stopped);
        }
    }

    /// Whether nothing is under way and every call has been answered.
    fn is_drained(&self) -> bool {
        let own_work_done = match &self.role {
            Role::Leading(leading) => {
                !self.appender.is_busy() && self.dispatcher.is_at_rest() && !leading.has_calls()
            }
            Role::Claiming => !self.appender.is_busy(),
            // What an earlier leadership has begun no longer matters.
            Role::Starting | Role::Following { .. } | Role::Halted { .. } => true,
        };
        own_work_done && self.forwards.is_empty()
    }

    fn abandon_all(&mut self) {
        self.appender.abandon();
        if let Role::Leading(leading) = &mut self.role {
            leading.fail_calls(STOPPING, &mut self.out);
        }
        let unknown = || Err(NotDone::unknown(STOPPING));
        let forwarded = self.forwards.abandon().into_iter();
        self.out.extend(forwarded.map(|call| Action::Answer { call, outcome: unknown() }));
        self.out.extend([Action::StopControl, Action::StopJournal]);
        match self.role {
            Role::Halted { .. } => {}
            Role::Starting | Role::Following { .. } | Role::Claiming | Role::Leading(_) => {
                self.role = Role::Following { at_end: false };
            }
        }
    }
}
