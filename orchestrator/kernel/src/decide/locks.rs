//! Answers of the lock server.

use os_upgrade_protocol::{GroupName, HostName};

use super::request::host_fact;
use super::{advance, release};
use crate::config::LockProvider;
use crate::fact::{Fact, HostEvent};
use crate::input::LockOutcome;
use crate::reason::Reason;
use crate::run::Run;
use crate::slot::{Slot, Standing};
use crate::state::State;

/// The lock server was asked for the slot of `host`.
pub(super) fn locked(state: &State, host: &HostName, outcome: &LockOutcome) -> Vec<Fact> {
    let Some(slot) = state.slots.get(host) else {
        return Vec::new();
    };
    let waiting = state.run.as_ref().filter(|run| run.waiting().contains(host) && run.stopping.is_none());
    match (waiting, outcome) {
        (Some(run), LockOutcome::Granted) => granted(state, run, host, slot),
        (Some(run), refused) => refuse(run, host, slot, refused),
        // Nobody waits for it any more. If it was only asked for, it has been or will be withdrawn.
        (None, _) => Vec::new(),
    }
}

fn granted(state: &State, run: &Run, host: &HostName, slot: &Slot) -> Vec<Fact> {
    if advance::has_room(run) {
        let event = HostEvent::SlotGranted { group: slot.group.clone(), provider: LockProvider::External };
        return vec![host_fact(&run.id, host, event)];
    }
    // Another host was faster: the slot would lie idle, and others may want it.
    let turn_lost = host_fact(&run.id, host, HostEvent::TurnLost);
    [turn_lost].into_iter().chain(release::withdraw(state, run, host)).collect()
}

fn refuse(run: &Run, host: &HostName, slot: &Slot, outcome: &LockOutcome) -> Vec<Fact> {
    let Some(reason) = reason(&slot.group, outcome) else {
        return Vec::new();
    };
    let known = run.host(host).is_some_and(|in_run| in_run.reason.as_ref() == Some(&reason));
    if known { Vec::new() } else { vec![host_fact(&run.id, host, HostEvent::Waiting { reason })] }
}

fn reason(group: &GroupName, outcome: &LockOutcome) -> Option<Reason> {
    let group = group.clone();
    match outcome.clone() {
        LockOutcome::Granted => None,
        LockOutcome::Denied { lock_kind, value } => Some(Reason::SlotDenied { group, lock_kind, value }),
        LockOutcome::Unreachable { detail } => Some(Reason::SlotUnreachable { group, detail }),
        LockOutcome::Protocol { detail } => Some(Reason::SlotProtocol { group, detail }),
    }
}

/// The lock server was asked to take the slot of `host` back. Until it says that it has, it is asked again.
pub(super) fn unlocked(state: &State, host: &HostName, outcome: &LockOutcome) -> Vec<Fact> {
    match (state.slots.get(host).map(|slot| slot.standing), outcome) {
        (Some(Standing::Releasing { why }), LockOutcome::Granted) => {
            vec![Fact::SlotReleased { host: host.clone(), why }]
        }
        (
            None | Some(Standing::Requested | Standing::Held | Standing::Releasing { .. }),
            LockOutcome::Granted
            | LockOutcome::Denied { .. }
            | LockOutcome::Unreachable { .. }
            | LockOutcome::Protocol { .. },
        ) => Vec::new(),
    }
}
