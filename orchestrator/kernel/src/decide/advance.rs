//! What follows from the state itself: an ordered list of steps, the first of which that has something to do is
//! taken, until none has.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{GroupName, HostName};

use super::request::host_fact;
use super::{locks, release};
use crate::config::{LockProvider, OnFailure};
use crate::fact::{Fact, HostEvent, ReleaseCause};
use crate::reason::Reason;
use crate::run::{HostStatus, Phase, Run, RunHost, RunResult, StopCause};
use crate::slot::{Slot, Standing};
use crate::state::State;
use crate::view::View;

/// The facts of the first step that has any.
pub(super) fn advance(state: &State, view: &View, now: DateTime<Utc>) -> Vec<Fact> {
    let of_run = state.run.as_ref().map(|run| {
        finish(run)
            .or_else(|| expire(state, run, now))
            .or_else(|| stop(state, run))
            .or_else(|| begin_upgrades(run))
            .or_else(|| admit(state, view, run))
    });
    of_run.flatten().or_else(|| forget_unsent(state)).unwrap_or_default()
}

/// Whether a further host may come under way.
pub(crate) fn has_room(run: &Run) -> bool {
    run.phase == Phase::Upgrading
        && run.stopping.is_none()
        && run.under_way().len() < run.rollout.max_concurrent as usize
}

fn some(facts: Vec<Fact>) -> Option<Vec<Fact>> {
    (!facts.is_empty()).then_some(facts)
}

/// The run's time is over.
fn expire(state: &State, run: &Run, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    if now < run.not_after {
        return None;
    }
    let mut facts = Vec::new();
    for (name, host) in run.hosts() {
        let Some(event) = expired(host) else { continue };
        facts.push(host_fact(&run.id, name, event));
        facts.extend(release::withdraw(state, run, name));
        let sent = host.command.is_some_and(|command| command.sequence.is_some());
        // One whose command may still be on its way keeps its slot until a fence shows that it is not.
        if host.status.is_under_way() && sent && state.settings.on_failure == OnFailure::Release {
            facts.extend(release::release(state, name, ReleaseCause::Failed));
        }
    }
    facts.push(Fact::RunEnded { run: run.id.clone(), result: RunResult::TimedOut });
    Some(facts)
}

fn expired(host: &RunHost) -> Option<HostEvent> {
    match host.status {
        HostStatus::Pending | HostStatus::Preparing | HostStatus::Upgrading | HostStatus::Rebooting => {
            let command = host.command?;
            let action = command.action;
            let reason = if command.sequence.is_some() {
                Reason::NoReply { action }
            } else {
                Reason::NotSent { action }
            };
            Some(HostEvent::TimedOut { reason })
        }
        HostStatus::Prepared | HostStatus::Waiting => {
            Some(HostEvent::Cancelled { reason: Reason::RunTimedOut })
        }
        HostStatus::Upgraded
        | HostStatus::Failed
        | HostStatus::TimedOut
        | HostStatus::Skipped
        | HostStatus::Cancelled => None,
    }
}

/// No further host is started; those under way are seen to their end.
fn stop(state: &State, run: &Run) -> Option<Vec<Fact>> {
    let reason = match run.stopping.as_ref()? {
        StopCause::Failed { host } => Reason::RunFailed { host: host.clone() },
        StopCause::Cancelled { actor } => Reason::RunCancelled { actor: actor.clone() },
    };
    let startable = [HostStatus::Pending, HostStatus::Preparing, HostStatus::Prepared, HostStatus::Waiting];
    if startable.iter().all(|status| run.count(*status) == 0) {
        return None;
    }
    let mut facts = Vec::new();
    for (name, _) in run.hosts().iter().filter(|(_, host)| startable.contains(&host.status)) {
        facts.push(host_fact(&run.id, name, HostEvent::Cancelled { reason: reason.clone() }));
        facts.extend(release::withdraw(state, run, name));
    }
    Some(facts)
}

/// Nothing is left to do for any host. That counts for more than the time: a run whose last answer is read after its
/// time is complete all the same.
fn finish(run: &Run) -> Option<Vec<Fact>> {
    if !run.is_through() {
        return None;
    }
    let result = match &run.stopping {
        Some(StopCause::Failed { .. }) => RunResult::Failed,
        Some(StopCause::Cancelled { .. }) => RunResult::Cancelled,
        None if run.count(HostStatus::Upgraded) == 0 => RunResult::Failed,
        None => RunResult::Completed,
    };
    Some(vec![Fact::RunEnded { run: run.id.clone(), result }])
}

/// Every host has answered `prepare`.
fn begin_upgrades(run: &Run) -> Option<Vec<Fact>> {
    (run.phase == Phase::Preparing && run.unprepared() == 0)
        .then(|| vec![Fact::UpgradesBegan { run: run.id.clone() }])
}

/// A slot for the next host.
fn admit(state: &State, view: &View, run: &Run) -> Option<Vec<Fact>> {
    if !has_room(run) || run.ready().is_empty() {
        return None;
    }
    let mut fronts: Vec<(&GroupName, &HostName, Option<&Slot>)> =
        run.ready().iter().filter_map(|(group, hosts)| front(state, run, group, hosts)).collect();
    // Were a host started anew while its earlier command may still appear, it could be told twice.
    fronts.retain(|(_, _, slot)| !slot.is_some_and(|slot| slot.may_see_late_command(state.fence.as_ref())));
    // A host that holds its slot already goes first.
    fronts.sort_by_key(|(_, _, slot)| slot.is_none_or(|slot| slot.standing != Standing::Held));
    if let Some(seconds) = view.excessive_skew() {
        let skewed = Reason::ClockSkew { seconds };
        return some(wait_each(run, &fronts, |_, host| {
            // A skew that changes by a second is no news.
            let known = run.host(host)?.reason.as_ref().is_some_and(|reason| reason.kind() == skewed.kind());
            (!known).then(|| skewed.clone())
        }));
    }
    let unfit = fronts.iter().filter(|(group, _, slot)| slot.is_some_and(|slot| !fits(state, group, slot)));
    if let Some(facts) = some(unfit.filter_map(|(_, host, _)| give_back_unfit(state, host)).collect()) {
        return Some(facts);
    }
    match state.settings.provider {
        LockProvider::Embedded => admit_embedded(state, run, &fronts),
        LockProvider::External => admit_external(state, run, &fronts),
    }
}

/// The host of `group` whose turn it is, with its slot.
fn front<'a>(
    state: &'a State,
    run: &'a Run,
    group: &'a GroupName,
    hosts: &'a imbl::OrdSet<HostName>,
) -> Option<(&'a GroupName, &'a HostName, Option<&'a Slot>)> {
    let holder =
        state.slots.iter().find(|(host, slot)| slot.standing == Standing::Held && hosts.contains(*host));
    let front = match holder {
        Some((host, _)) => host,
        None => run.waiting().iter().find(|host| hosts.contains(*host)).or_else(|| hosts.get_min())?,
    };
    Some((group, front, state.slots.get(front)))
}

/// Whether `slot` is one that a host of `group` can use now.
pub(super) fn fits(state: &State, group: &GroupName, slot: &Slot) -> bool {
    slot.provider == state.settings.provider && slot.group == *group
}

/// A slot of another group, or granted by another than is asked now, is given back before a fitting one is asked for.
fn give_back_unfit(state: &State, host: &HostName) -> Option<Fact> {
    release::release(state, host, ReleaseCause::NotNeeded)
}

type Front<'a> = (&'a GroupName, &'a HostName, Option<&'a Slot>);

fn admit_embedded(state: &State, run: &Run, fronts: &[Front<'_>]) -> Option<Vec<Fact>> {
    let admitted = |(group, host, slot): &&Front<'_>| {
        !is_given_back(*slot) && state.semaphores.admits(group, host.as_str()).is_ok()
    };
    if let Some((group, host, _)) = fronts.iter().find(admitted) {
        let event = HostEvent::SlotGranted { group: (*group).clone(), provider: LockProvider::Embedded };
        return Some(vec![host_fact(&run.id, host, event)]);
    }
    some(wait_each(run, fronts, |group, host| {
        let denied = state.semaphores.admits(group, host.as_str()).err()?;
        let value = format!("{}{}", denied.value, why_held(state, group));
        Some(Reason::SlotDenied { group: group.clone(), lock_kind: denied.kind.to_owned(), value })
    }))
}

/// Why the first of our own hosts in `group` still holds its slot, when that is not because it is under way.
fn why_held(state: &State, group: &GroupName) -> String {
    let unhappy = |host: &HostName| {
        let ended = state.run.iter().chain(&state.last_run).filter_map(|run| run.host(host));
        ended.filter(|in_run| !in_run.status.is_under_way()).find_map(|in_run| in_run.reason.clone())
    };
    let mut held =
        state.slots.iter().filter(|(_, slot)| slot.group == *group && slot.standing == Standing::Held);
    held.find_map(|(host, _)| unhappy(host).map(|reason| format!("; {host}: {reason}"))).unwrap_or_default()
}

/// One that is being given back has to be gone before another can be had.
fn is_given_back(slot: Option<&Slot>) -> bool {
    slot.is_some_and(|slot| matches!(slot.standing, Standing::Releasing { .. }))
}

fn admit_external(state: &State, run: &Run, fronts: &[Front<'_>]) -> Option<Vec<Fact>> {
    let mut facts = Vec::new();
    for (group, host, slot) in fronts {
        if is_given_back(*slot) || locks::is_asked_for(state, run, host) {
            continue;
        }
        if slot.is_none() {
            let (host, group, run) = ((*host).clone(), (*group).clone(), run.id.clone());
            facts.push(Fact::SlotRequested { host, group, run });
        }
        let reason = Reason::AskingForSlot { group: (*group).clone() };
        facts.push(host_fact(&run.id, host, HostEvent::Waiting { reason }));
    }
    some(facts)
}

/// Lets every front host wait for its reason, where that is news.
fn wait_each(
    run: &Run,
    fronts: &[Front<'_>],
    reason: impl Fn(&GroupName, &HostName) -> Option<Reason>,
) -> Vec<Fact> {
    let wait = |(group, host, _): &Front<'_>| {
        let reason = reason(group, host)?;
        let known = run.host(host)?.reason.as_ref() == Some(&reason);
        (!known).then(|| host_fact(&run.id, host, HostEvent::Waiting { reason }))
    };
    fronts.iter().filter_map(wait).collect()
}

/// Slots whose last command was never sent, as a fence read past has shown.
fn forget_unsent(state: &State) -> Option<Vec<Fact>> {
    let fence = state.fence.as_ref();
    let gone = |slot: &Slot| slot.unsent_at_fence.is_some() && !slot.may_see_late_command(fence);
    let cause = |slot: &Slot| match (slot.begun, state.settings.on_failure) {
        (false, OnFailure::Hold | OnFailure::Release) => Some(ReleaseCause::NeverSent),
        (true, OnFailure::Release) => Some(ReleaseCause::Failed),
        // An earlier command of its step was seen: the host may be at work on that.
        (true, OnFailure::Hold) => None,
    };
    let unsent = state.slots.iter().filter(|(_, slot)| gone(slot) && slot.standing == Standing::Held);
    some(unsent.filter_map(|(host, slot)| release::release(state, host, cause(slot)?)).collect())
}
