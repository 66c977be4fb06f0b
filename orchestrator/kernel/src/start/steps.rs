//! Runs that start automatically in maintenance windows, those that were missed, and hosts that turn out to be off.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{HostName, RunId};

use super::begin::{enlist, start};
use super::overdue::{BlockedStart, missed};
use super::timer::{Due, StartTimer};
use crate::config::UnreachablePolicy;
use crate::fact::{Fact, RunFact};
use crate::reason::Reason;
use crate::run::{HostEvent, StopCause, Trigger};
use crate::state::State;
use crate::view::{Reachability, View};

/// Starts the run of the open occurrence, if it is due. The run ends with the occurrence at the latest.
pub(crate) fn due(state: &State, view: &View, run: &RunId, now: DateTime<Utc>) -> Vec<Fact> {
    let Some(Due { occurrence, startable }) = StartTimer::default().due(state, view, now) else {
        return Vec::new();
    };
    let trigger = Trigger::Window { start: occurrence.start, end: occurrence.end };
    // First those that were missed before: with the start, they count as settled. By now each host that sends its time has
    // done so.
    let mut facts = missed_runs(state, view, None, now);
    facts.extend(start(startable, run, trigger, occurrence.end, enlist(startable)));
    facts
}

/// Records the runs that were missed. Nothing is recorded while hosts could still contradict the clock, nor while the
/// windows are unclear, which the forecast says.
pub(crate) fn record_missed(
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
    missed(state, view, blocked, now)
        .unwrap_or_default()
        .into_iter()
        .map(|run| RunFact::Missed(run).into())
        .collect()
}

/// Leaves out the hosts that turn out to be off: an operator may have started the run before that was known.
pub(crate) fn leave_out_unreachable(state: &State, view: &View) -> Vec<Fact> {
    // A host that has answered is not off, though its answer may not have been read yet.
    let Some(run) = state.run.as_ref().filter(|_| view.has_read_control) else { return Vec::new() };
    let is_off = |host: &&HostName| {
        view.hosts.get(*host).is_some_and(|seen| seen.reachability == Reachability::Unreachable)
    };
    let off: Vec<&HostName> = run.unheard().iter().filter(is_off).collect();
    let skipped =
        |host: &HostName| Fact::of_host(&run.id, host, HostEvent::Skipped { reason: Reason::Unreachable });
    let fails = run.stopping.is_none() && run.rollout.unreachable == UnreachablePolicy::Fail;
    let stopping = off.first().filter(|_| fails).map(|host| {
        Fact::Run(RunFact::Stopping {
            run: run.id.clone(),
            cause: StopCause::Failed { host: (*host).clone() },
        })
    });
    off.iter().map(|host| skipped(host)).chain(stopping).collect()
}
