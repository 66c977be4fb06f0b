//! What follows from the state itself: an ordered list of steps. The first step with something to do is taken, and this
//! repeats until no step has anything to do.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, HostName};

use super::admission::{self, non_empty};
use super::{nodes, reboots};
use crate::config::OnFailure;
use crate::explain::LastWaits;
use crate::fact::Fact;
use crate::reason::{LastWait, Reason};
use crate::run::{HostEvent, HostStatus, Phase, Run, RunHost, RunResult, StopCause};
use crate::slot::ReleaseCause;
use crate::slot::{LATE_REQUEST_MAX, Slot, SlotState};
use crate::state::State;
use crate::view::{Reachability, View};

/// The facts of the first step that has any; empty when no step has.
pub(super) fn advance(state: &State, view: &View, now: DateTime<Utc>) -> Vec<Fact> {
    let of_run = state.run.as_ref().map(|run| {
        finish(run)
            .or_else(|| expire(state, view, run, now))
            .or_else(|| time_out_boots(view, run, now))
            .or_else(|| stop(state, run))
            .or_else(|| begin_upgrades(run))
    });
    of_run
        .flatten()
        .or_else(|| nodes::time_out_drains(state, view, now))
        .or_else(|| reboots::cancel_unneeded(state, view))
        .or_else(|| reboots::remove_cancelled(state))
        .or_else(|| reboots::begin(state, view, now))
        .or_else(|| reboots::advance_attempts(state, view, now))
        .or_else(|| admission::admit(state, view, now))
        .or_else(|| release_unsent(state))
        .or_else(|| release_again(state, view, now))
        .unwrap_or_default()
}

/// Ends a run whose deadline has passed. A new leader waits for answers first; meanwhile hosts say what time it is.
fn expire(state: &State, view: &View, run: &Run, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    if now < run.not_after || !view.may_time_out() {
        return None;
    }
    let mut facts = Vec::new();
    let waits = LastWaits::of(run);
    for (name, host) in run.hosts() {
        let seen = view.hosts.get(name).map(|seen| seen.reachability);
        let is_unreachable = seen == Some(Reachability::Unreachable);
        let waits_for = || last_wait(state, &waits, name, host);
        let Some(event) = expiry_event(waits_for, host, is_unreachable) else { continue };
        facts.push(Fact::of_host(&run.id, name, event));
        facts.extend(state.cancel_slot_request(run, name));
        let sent = host.command.is_some_and(|command| command.sequence.is_some());
        // A host whose command may still be on its way keeps its slot until a fence shows that it is not.
        if host.status.is_at_work() && sent {
            facts.extend(state.after_failure(name));
        }
    }
    facts.push(Fact::RunEnded { run: run.id.clone(), result: RunResult::TimedOut });
    Some(facts)
}

/// What a host of the run that has not been told to upgrade waits for.
fn last_wait(state: &State, waits: &LastWaits<'_>, name: &HostName, host: &RunHost) -> Option<LastWait> {
    if host.status == HostStatus::Draining {
        let waits = state.nodes.get(name).and_then(|node| node.waits.clone());
        return Some(LastWait::NodeUndrained { waits });
    }
    waits.of_host(host)
}

fn expiry_event(
    waits_for: impl FnOnce() -> Option<LastWait>,
    host: &RunHost,
    is_unreachable: bool,
) -> Option<HostEvent> {
    match host.status {
        HostStatus::Pending | HostStatus::Preparing | HostStatus::Upgrading | HostStatus::Rebooting => {
            let command = host.command?;
            let action = command.action;
            let reason = if command.sequence.is_some() {
                Reason::NoReply { action, unreachable: is_unreachable }
            } else {
                Reason::NotSent { action }
            };
            Some(HostEvent::TimedOut { reason })
        }
        HostStatus::Prepared | HostStatus::Waiting | HostStatus::Draining => {
            // One that has had its turn, and was not drained, says why.
            let why_not_drained = host.reason.clone().filter(Reason::is_of_drain);
            let timed_out = || Reason::RunTimedOut { waited_for: waits_for() };
            Some(HostEvent::Cancelled { reason: why_not_drained.unwrap_or_else(timed_out) })
        }
        // It has answered `done`; the end of its cordon goes on without the run.
        HostStatus::Recovering => Some(HostEvent::Upgraded),
        HostStatus::Upgraded
        | HostStatus::Failed
        | HostStatus::TimedOut
        | HostStatus::Skipped
        | HostStatus::Cancelled => None,
    }
}

/// Times out a host that has not answered `reboot` in time. Its slot stays held. If the settings release such slots,
/// that happens once its command has been deleted or found to be delivered.
fn time_out_boots(view: &View, run: &Run, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    if !view.may_time_out() {
        return None;
    }
    let after = run.rollout.boot_timeout;
    let is_late = |host: &RunHost| {
        let sent_at = host.unanswered().filter(|command| command.action == Action::Reboot)?.sent_at?;
        view.clock.has_passed(after.to_delta(), sent_at, now).then_some(())
    };
    let name = run.under_way().iter().find(|name| run.host(name).and_then(is_late).is_some())?;
    let event = HostEvent::TimedOut { reason: Reason::BootTimeout { after } };
    let mut facts = vec![Fact::of_host(&run.id, name, event)];
    facts.extend(run.stop_after(name).map(|cause| Fact::RunStopping { run: run.id.clone(), cause }));
    Some(facts)
}

/// Cancels the hosts of a stopping run that have not started; hosts in progress are finished.
fn stop(state: &State, run: &Run) -> Option<Vec<Fact>> {
    let reason = match run.stopping.as_ref()? {
        StopCause::Failed { host } => Reason::RunFailed { host: host.clone() },
        StopCause::Cancelled { actor, .. } => Reason::RunCancelled { actor: actor.clone() },
        StopCause::Restored { actor } => Reason::Restored { actor: actor.clone() },
    };
    let startable = [
        HostStatus::Pending,
        HostStatus::Preparing,
        HostStatus::Prepared,
        HostStatus::Waiting,
        HostStatus::Draining,
    ];
    if startable.iter().all(|status| run.count(*status) == 0) {
        return None;
    }
    let mut facts = Vec::new();
    for (name, _) in run.hosts().iter().filter(|(_, host)| startable.contains(&host.status)) {
        facts.push(Fact::of_host(&run.id, name, HostEvent::Cancelled { reason: reason.clone() }));
        facts.extend(state.cancel_slot_request(run, name));
    }
    Some(facts)
}

/// Ends a run with nothing left to do for any host. This precedes the deadline: a run whose last reply is read after
/// the deadline is still complete.
fn finish(run: &Run) -> Option<Vec<Fact>> {
    if !run.is_finished() {
        return None;
    }
    let result = match &run.stopping {
        Some(StopCause::Failed { .. } | StopCause::Restored { .. }) => RunResult::Failed,
        Some(StopCause::Cancelled { .. }) => RunResult::Cancelled,
        None if run.count(HostStatus::Upgraded) == 0 => RunResult::Failed,
        None => RunResult::Completed,
    };
    Some(vec![Fact::RunEnded { run: run.id.clone(), result }])
}

/// Begins the upgrades once every host has answered `prepare`.
fn begin_upgrades(run: &Run) -> Option<Vec<Fact>> {
    (run.phase == Phase::Preparing && run.unprepared().is_empty())
        .then(|| vec![Fact::UpgradesBegan { run: run.id.clone() }])
}

/// Releases slots whose last command was never sent, as a passed fence shows.
fn release_unsent(state: &State) -> Option<Vec<Fact>> {
    let fence = state.fence.as_ref();
    let was_never_sent = |slot: &Slot| slot.unsent_at_fence.is_some() && !slot.may_see_late_command(fence);
    let cause = |slot: &Slot| match (slot.begun, state.settings.on_failure) {
        (false, OnFailure::Hold | OnFailure::Release) => Some(ReleaseCause::NeverSent),
        (true, OnFailure::Release) => Some(ReleaseCause::Failed),
        // An earlier command of the same step was seen: the host may be working on it.
        (true, OnFailure::Hold) => None,
    };
    let unsent = state.slots.iter().filter(|(_, slot)| was_never_sent(slot) && slot.state == SlotState::Held);
    non_empty(unsent.filter_map(|(host, slot)| state.release_slot(host, cause(slot)?)).collect())
}

/// Releases slots once more that were in doubt: a request whose outcome is not known may have been carried out after the
/// release.
fn release_again(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let due = state.slots.iter().filter_map(|(host, slot)| {
        let SlotState::Releasing { why } = slot.state else { return None };
        let is_due = view.clock.has_passed(LATE_REQUEST_MAX, slot.unlocked_at?, now);
        is_due.then(|| Fact::SlotReleaseDue { host: host.clone(), why })
    });
    non_empty(due.collect())
}
