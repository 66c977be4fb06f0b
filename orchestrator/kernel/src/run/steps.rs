//! What follows for the active run from its state, and from time: it ends, stops, or goes on to the upgrades.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, HostName};

use super::event::HostEvent;
use super::host::{HostStatus, RunHost};
use super::state::{Phase, Run, StopCause};
use crate::fact::{Fact, RunFact, non_empty};
use crate::reason::{LastWait, Reason};
use crate::state::State;
use crate::view::{Reachability, View};
use crate::why::LastWaits;

/// Ends a run whose deadline has passed. A new leader waits for answers first; meanwhile hosts say what time it is.
pub(crate) fn expire(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let run = state.run.as_ref().filter(|run| now >= run.not_after && view.may_time_out())?;
    Some(end(state, view, run, true, now))
}

/// Ends `run`, whose deadline has passed or which has nothing more to wait for, and with it the part of each host that is not through.
fn end(state: &State, view: &View, run: &Run, has_expired: bool, now: DateTime<Utc>) -> Vec<Fact> {
    let (mut facts, mut ended) = (Vec::new(), run.clone());
    let waits = LastWaits::of(state, view, run, now);
    for (name, host) in run.hosts() {
        let timed_out = || Reason::RunTimedOut { waited_for: last_wait(state, &waits, name, host) };
        let Some(event) = end_of_host(view, run, name, host, timed_out) else { continue };
        ended.apply(name, &event, now).expect("each status has the event that ends it");
        facts.extend(state.no_longer_waits(run, name, event));
        let sent = host.command.is_some_and(|command| command.sequence.is_some());
        // A host whose command may still be on its way keeps its slot until a fence shows that it is not.
        if host.status.is_at_work() && sent {
            facts.extend(state.after_failure(name));
        }
    }
    facts.push(Fact::Run(RunFact::ended(&ended, ended.result(has_expired))));
    facts
}

/// Ends the part of the hosts that have not been told to upgrade, once less is left of the run than a host takes; those at work are finished.
/// As at the deadline, a new leader waits for answers first.
pub(crate) fn leave_out_late(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let run = state.run.as_ref().filter(|run| run.stopping.is_none() && !run.fits(now))?;
    let expected = run.rollout.expected_duration.filter(|_| view.may_time_out())?;
    let mut late = run.hosts().iter().filter(|(_, host)| host.status.is_before_upgrade()).peekable();
    late.peek()?;
    let waits = LastWaits::of(state, view, run, now);
    let left_out = late.filter_map(|(name, host)| {
        let no_time = || Reason::NoTimeLeft { expected, waited_for: last_wait(state, &waits, name, host) };
        Some(state.no_longer_waits(run, name, end_of_host(view, run, name, host, no_time)?))
    });
    Some(left_out.flatten().collect())
}

/// What a host of the run that has not been told to upgrade waits for.
fn last_wait(state: &State, waits: &LastWaits<'_>, name: &HostName, host: &RunHost) -> Option<LastWait> {
    if host.status == HostStatus::Draining {
        let waits = state.nodes.get(name).and_then(|node| node.waits.clone());
        return Some(LastWait::NodeUndrained { waits });
    }
    waits.of_host(name, host)
}

/// That the turn of `host` never came, or came to nothing. One that has had its turn, and was not drained, says why.
fn not_reached(host: &RunHost, why: impl FnOnce() -> Reason) -> HostEvent {
    let why_not_drained = host.reason.clone().filter(Reason::is_of_drain);
    HostEvent::NotReached { reason: why_not_drained.unwrap_or_else(why) }
}

/// How the part of a host ends for which there is no time left; `why_not_reached` is why one was not reached.
fn end_of_host(
    view: &View,
    run: &Run,
    name: &HostName,
    host: &RunHost,
    why_not_reached: impl FnOnce() -> Reason,
) -> Option<HostEvent> {
    if let Some(after) = run.rollout.upgrade_timeout.filter(|_| host.overdue_since.is_some()) {
        return Some(HostEvent::TimedOut { reason: Reason::UpgradeTimeout { after } });
    }
    match host.status {
        HostStatus::Pending if host.is_untold() => Some(not_reached(host, why_not_reached)),
        HostStatus::Pending | HostStatus::Preparing | HostStatus::Upgrading | HostStatus::Rebooting => {
            let command = host.command?;
            let action = command.action;
            let reason = if command.sequence.is_some() {
                let seen = view.hosts.get(name).map(|seen| seen.reachability);
                Reason::NoReply { action, unreachable: seen == Some(Reachability::Unreachable) }
            } else {
                Reason::NotSent { action }
            };
            Some(HostEvent::TimedOut { reason })
        }
        HostStatus::Prepared | HostStatus::Waiting | HostStatus::Draining => {
            Some(not_reached(host, why_not_reached))
        }
        // It has answered `done`; the end of its cordon goes on without the run.
        HostStatus::Recovering => Some(HostEvent::Upgraded),
        HostStatus::Upgraded
        | HostStatus::Failed
        | HostStatus::TimedOut
        | HostStatus::Skipped
        | HostStatus::Cancelled
        | HostStatus::NotReached => None,
    }
}

/// Counts a host as failed that has not answered its command in time. One that was told to upgrade is overdue; the part of others is
/// over. The slot stays held: if the settings release such slots, that happens once the command has been deleted or found to be delivered.
pub(crate) fn time_out_replies(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let run = state.run.as_ref().filter(|_| view.may_time_out())?;
    let late = |name: &HostName| {
        let command = run.host(name)?.pending_reply()?;
        let after = run.rollout.timeout(command.action)?;
        view.clock.has_passed(after.to_delta(), command.sent_at?, now).then_some((command.action, after))
    };
    let unprepared = run.rollout.prepare_timeout.map(|_| run.unprepared().iter()).into_iter().flatten();
    let (name, (action, after)) =
        run.under_way().iter().chain(unprepared).find_map(|name| Some((name, late(name)?)))?;
    let event = match action {
        Action::Prepare => HostEvent::TimedOut { reason: Reason::PrepareTimeout { after } },
        Action::Upgrade => HostEvent::Overdue { after },
        Action::Reboot => HostEvent::TimedOut { reason: Reason::BootTimeout { after } },
    };
    let stopping = run.stop_after(name).map(|cause| RunFact::Stopping { run: run.id.clone(), cause });
    Some([Fact::of_host(&run.id, name, event)].into_iter().chain(stopping.map(Fact::Run)).collect())
}

/// Ends the part of the hosts of a stopping run that have not begun; hosts in progress are finished.
pub(crate) fn stop(state: &State, _: &View, _: DateTime<Utc>) -> Option<Vec<Fact>> {
    let run = state.run.as_ref()?;
    let event = match run.stopping.clone()? {
        StopCause::Failed { host } => HostEvent::NotReached { reason: Reason::RunFailed { host } },
        StopCause::Cancelled { actor, reason } => {
            HostEvent::Cancelled { reason: Reason::RunCancelled { actor, reason } }
        }
        StopCause::Restored { actor } => HostEvent::Cancelled { reason: Reason::Restored { actor } },
    };
    if HostStatus::ALL.iter().all(|status| !status.is_before_upgrade() || run.count(*status) == 0) {
        return None;
    }
    let hosts = run.hosts().iter().filter(|(_, host)| host.status.is_before_upgrade());
    Some(hosts.flat_map(|(name, _)| state.no_longer_waits(run, name, event.clone())).collect())
}

/// Ends a run with nothing left to do for any host that it waits for. This precedes the deadline: a run whose last reply is read after
/// the deadline is still complete. For a host that is overdue a new leader waits first, as its answer may not have been read.
pub(crate) fn finish(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let run = state.run.as_ref().filter(|run| run.unfinished() == run.overdue().len())?;
    (run.overdue().is_empty() || view.may_time_out()).then(|| end(state, view, run, false, now))
}

/// Begins the upgrades once every host has answered `prepare`, or at once if hosts are upgraded as they are prepared.
pub(crate) fn begin_upgrades(state: &State, _: &View, _: DateTime<Utc>) -> Option<Vec<Fact>> {
    let run = state.run.as_ref().filter(|run| run.phase == Phase::Preparing)?;
    (run.rollout.is_rolling() || run.unprepared().is_empty())
        .then(|| vec![Fact::Run(RunFact::UpgradesBegan { run: run.id.clone() })])
}

/// Leaves out the hosts that lack required configuration, once the run has waited for nothing else for `provider-wait`: a provider that is away
/// stops no upgrade for longer.
pub(crate) fn leave_out_unconfigured(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let run = state.run.as_ref().filter(|run| run.stopping.is_none() && run.has_untold())?;
    let wait = run.rollout.provider_wait.filter(|_| view.may_time_out())?;
    let is_at_work = |host: &RunHost| {
        host.status == HostStatus::Preparing
            || (host.status == HostStatus::Pending && !host.is_untold())
            || (host.status.is_under_way() && host.overdue_since.is_none())
    };
    let hosts = || run.hosts().values();
    let last_change = hosts().map(|host| host.since).max().unwrap_or(run.started_at);
    if hosts().any(is_at_work) || !view.clock.has_passed(wait.to_delta(), last_change, now) {
        return None;
    }
    let untold = run.hosts().iter().filter(|(_, host)| host.is_untold());
    let left_out = untold.filter_map(|(name, _)| {
        let (provider, wait) = state.unconfigured(view, name, now)?;
        let reason = Reason::ConfigurationMissing { provider: provider.clone(), wait };
        Some(Fact::of_host(&run.id, name, HostEvent::Skipped { reason }))
    });
    non_empty(left_out.collect())
}

/// Begins to prepare the next host, if one may be prepared.
pub(crate) fn prepare_next(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let may_begin = |run: &&Run| run.stopping.is_none() && state.pause.is_none() && run.fits(now);
    let run = state.run.as_ref().filter(may_begin).filter(|_| view.clock.is_beyond_doubt())?;
    let host = state.next_to_prepare(view, run, now)?;
    Some(vec![Fact::of_host(&run.id, host, HostEvent::PrepareBegan)])
}
