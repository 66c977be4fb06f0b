//! Answers of the lock server.

use os_upgrade_protocol::{GroupName, HostName};

use crate::config::LockProvider;
use crate::fact::Fact;
use crate::job::{LockOutcome, SlotJob, SlotOrder};
use crate::reason::{Denial, Reason};
use crate::run::{HostEvent, Run};
use crate::slot::{Slot, Standing};
use crate::state::State;
use crate::view::View;

/// The lock server has been asked.
pub(super) fn done(state: &State, view: &View, job: &SlotJob, outcome: &LockOutcome) -> Vec<Fact> {
    match job.order {
        SlotOrder::Lock => locked(state, view, &job.host, outcome),
        SlotOrder::Unlock => unlocked(state, &job.host, outcome),
    }
}

/// The lock server was asked for the slot of `host`. Once nobody waits for the answer it says nothing any more: what
/// had been asked for has been taken back, and is not held until it has been asked for again.
fn locked(state: &State, view: &View, host: &HostName, outcome: &LockOutcome) -> Vec<Fact> {
    let waiting =
        state.run.as_ref().filter(|run| run.stopping.is_none() && state.needs_external_lock(run, host));
    let Some((run, slot)) = waiting.zip(state.slots.get(host)) else {
        return Vec::new();
    };
    match outcome {
        LockOutcome::Granted => granted(state, view, run, host, slot),
        refused @ (LockOutcome::Denied { .. }
        | LockOutcome::Unreachable { .. }
        | LockOutcome::Protocol { .. }) => refuse(run, host, slot, refused),
    }
}

fn granted(state: &State, view: &View, run: &Run, host: &HostName, slot: &Slot) -> Vec<Fact> {
    if run.has_room() {
        // Asked for again once the clocks agree; until then it may be held.
        if view.excessive_skew().is_some() {
            return Vec::new();
        }
        let event = HostEvent::SlotGranted { group: slot.group.clone(), provider: LockProvider::External };
        return vec![Fact::of_host(&run.id, host, event)];
    }
    // Another host was faster: the slot would lie idle, and others may want it.
    let turn_lost = Fact::of_host(&run.id, host, HostEvent::TurnLost);
    [turn_lost].into_iter().chain(state.cancel_slot_request(run, host)).collect()
}

fn refuse(run: &Run, host: &HostName, slot: &Slot, outcome: &LockOutcome) -> Vec<Fact> {
    let Some(reason) = reason(&slot.group, outcome) else {
        return Vec::new();
    };
    let known = run.host(host).is_some_and(|in_run| in_run.reason.as_ref() == Some(&reason));
    if known { Vec::new() } else { vec![Fact::of_host(&run.id, host, HostEvent::Waiting { reason })] }
}

fn reason(group: &GroupName, outcome: &LockOutcome) -> Option<Reason> {
    let group = group.clone();
    match outcome.clone() {
        LockOutcome::Granted => None,
        LockOutcome::Denied { lock_kind, value } => {
            Some(Reason::SlotDenied { group, denial: Denial::External { lock_kind, value } })
        }
        LockOutcome::Unreachable { detail } => Some(Reason::SlotUnreachable { group, detail }),
        LockOutcome::Protocol { detail } => Some(Reason::SlotProtocol { group, detail }),
    }
}

/// The lock server was asked to take the slot of `host` back. Until it says that it has, it is asked again.
fn unlocked(state: &State, host: &HostName, outcome: &LockOutcome) -> Vec<Fact> {
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
