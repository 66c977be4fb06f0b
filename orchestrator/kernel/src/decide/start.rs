//! The facts of a run's start, and runs that start automatically in maintenance windows.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{HostName, RunId};

use crate::config::UnreachablePolicy;
use crate::enrolment::{Enrolled, PENDING_NAMED_MAX};
use crate::fact::Fact;
use crate::overdue::{BlockedStart, missed};
use crate::reason::Reason;
use crate::run::{Enlisted, HostEvent, StopCause, Trigger};
use crate::start::{Startable, startable};
use crate::start_timer::{Due, StartTimer};
use crate::state::State;
use crate::view::{Reachability, View};

/// Starts the run of the open occurrence, if it is due. The run ends with the occurrence at the latest.
pub(super) fn due(state: &State, view: &View, run: &RunId, now: DateTime<Utc>) -> Vec<Fact> {
    let Some(Due { occurrence, startable }) = StartTimer::default().due(state, view, now) else {
        return Vec::new();
    };
    let trigger = Trigger::Window { start: occurrence.start, end: occurrence.end };
    // First those that were missed before: with the start, they count as settled. By now each host that sends its time has
    // done so.
    let mut facts = missed_runs(state, view, None, now);
    facts.extend(start(startable, run, trigger, occurrence.end));
    facts
}

/// Records the runs that were missed. Nothing is recorded while hosts could still contradict the clock, nor while the
/// windows are unclear, which the forecast says.
pub(super) fn record_missed(
    state: &State,
    view: &View,
    blocked: Option<&BlockedStart>,
    now: DateTime<Utc>,
) -> Vec<Fact> {
    if !view.may_judge_windows() {
        return Vec::new();
    }
    missed_runs(state, view, blocked, now)
}

fn missed_runs(state: &State, view: &View, blocked: Option<&BlockedStart>, now: DateTime<Utc>) -> Vec<Fact> {
    missed(state, view, blocked, now).unwrap_or_default().into_iter().map(Fact::RunMissed).collect()
}

/// Starts a run of all hosts that the configuration covers.
pub(super) fn start(
    startable: Startable<'_>,
    run: &RunId,
    trigger: Trigger,
    not_after: DateTime<Utc>,
) -> Vec<Fact> {
    let rollout = startable.config.rollout.clone();
    let hosts = enlist(startable);
    let unreachable = hosts.iter().find(|entry| entry.skipped == Some(Reason::Unreachable));
    let stopping = unreachable.filter(|_| rollout.unreachable == UnreachablePolicy::Fail).map(|entry| {
        Fact::RunStopping { run: run.clone(), cause: StopCause::Failed { host: entry.host.clone() } }
    });
    let started = Fact::RunStarted { run: run.clone(), trigger, not_after, rollout, hosts };
    [started].into_iter().chain(stopping).collect()
}

/// The hosts of a run that would start now, those that are skipped included; `None` if none can start.
pub(crate) fn enlisted_now(state: &State, view: &View) -> Option<Vec<Enlisted>> {
    startable(state, view).ok().map(enlist)
}

/// The hosts that take part, and those that are skipped. Any client of the bus can announce hosts, so at most
/// [`PENDING_NAMED_MAX`] unapproved hosts are listed.
fn enlist(Startable { state, view, config, .. }: Startable<'_>) -> Vec<Enlisted> {
    let mut pending = 0;
    let enlisted = view.serving(&config.worker_applications).filter_map(|(name, host, application)| {
        let enrolled = state.enrolled(name);
        if enrolled == Enrolled::Pending {
            pending += 1;
            if pending > PENDING_NAMED_MAX {
                return None;
            }
        }
        let unreachable = || (host.reachability == Reachability::Unreachable).then_some(Reason::Unreachable);
        let skipped = enrolled.left_out(name).or_else(unreachable);
        Some(Enlisted {
            host: name.clone(),
            application: application.clone(),
            group: host.group.clone().unwrap_or_else(|| state.settings.default_group.clone()),
            unheard: skipped.is_none() && host.reachability == Reachability::Awaited,
            skipped,
        })
    });
    enlisted.collect()
}

/// Leaves out the hosts that turn out to be off: an operator may have started the run before that was known.
pub(super) fn leave_out_unreachable(state: &State, view: &View) -> Vec<Fact> {
    // A host that has answered is not off, though its answer may not have been read yet.
    let Some(run) = state.run.as_ref().filter(|_| view.has_read_control) else { return Vec::new() };
    let is_off = |host: &&HostName| {
        view.hosts.get(*host).is_some_and(|seen| seen.reachability == Reachability::Unreachable)
    };
    let off: Vec<&HostName> = run.unheard().iter().filter(is_off).collect();
    let cancelled =
        |host: &HostName| Fact::of_host(&run.id, host, HostEvent::Cancelled { reason: Reason::Unreachable });
    let fails = run.stopping.is_none() && run.rollout.unreachable == UnreachablePolicy::Fail;
    let stopping = off.first().filter(|_| fails).map(|host| Fact::RunStopping {
        run: run.id.clone(),
        cause: StopCause::Failed { host: (*host).clone() },
    });
    off.iter().map(|host| cancelled(host)).chain(stopping).collect()
}
