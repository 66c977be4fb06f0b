//! How a node leaves: nothing new is begun, what is under way comes back, the lease is given back.

use super::stopping::{STOP_WITHIN, STOPPING, Stopping};
use super::{Action, Node, Role};
use crate::clock::Now;
use crate::not_done::NotDone;

impl Node {
    /// Begins to leave.
    pub(super) fn stop(&mut self, now: Now) {
        if !self.stopping.is_asked_for() {
            self.stopping = Stopping::Draining { until: now.monotonic + STOP_WITHIN };
        }
    }

    /// Goes on leaving, as far as what is under way allows.
    pub(super) fn go_on_stopping(&mut self, now: Now) {
        match self.stopping {
            Stopping::No | Stopping::Stopped => return,
            Stopping::Draining { until } => {
                if !self.is_drained() && now.monotonic < until {
                    return;
                }
                self.give_everything_up();
                if let Role::Halted { .. } = self.role {
                    // It has not looked at the lease since; if it holds it still, it runs out.
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

    /// Whether everything that has been begun has come back, and everybody who asked has been answered.
    fn is_drained(&self) -> bool {
        let on_this_side = match &self.role {
            Role::Leading(leading) => {
                !self.appender.is_busy() && self.dispatcher.is_at_rest() && !leading.has_calls()
            }
            Role::Claiming => !self.appender.is_busy(),
            // What an earlier leadership has begun does not count any more.
            Role::Starting | Role::Following { .. } | Role::Halted { .. } => true,
        };
        on_this_side && self.forwards.is_empty()
    }

    fn give_everything_up(&mut self) {
        self.appender.abandon();
        if let Role::Leading(leading) = &mut self.role {
            leading.give_up(STOPPING, &mut self.out);
        }
        let unknown = || Err(NotDone::unknown(STOPPING));
        let forwarded = self.forwards.give_up().into_iter();
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
