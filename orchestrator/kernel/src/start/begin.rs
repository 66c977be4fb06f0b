//! The facts of a run's start, and the hosts that are in it.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::RunId;

use super::startable::{Startable, startable};
use crate::config::UnreachablePolicy;
use crate::enrolment::{Enrolled, PENDING_NAMED_MAX};
use crate::fact::{Fact, RunFact};
use crate::reason::Reason;
use crate::run::{Enlisted, StopCause, Trigger};
use crate::state::State;
use crate::view::{Reachability, View};

/// Starts a run of these `hosts`, those that are skipped included.
pub(crate) fn start(
    startable: Startable<'_>,
    run: &RunId,
    trigger: Trigger,
    not_after: DateTime<Utc>,
    hosts: Vec<Enlisted>,
) -> Vec<Fact> {
    let rollout = startable.config.rollout_of_run();
    let unreachable = hosts.iter().find(|entry| entry.skipped == Some(Reason::Unreachable));
    let stopping = unreachable.filter(|_| rollout.unreachable == UnreachablePolicy::Fail).map(|entry| {
        Fact::Run(RunFact::Stopping {
            run: run.clone(),
            cause: StopCause::Failed { host: entry.host.clone() },
        })
    });
    let started = Fact::Run(RunFact::Started { run: run.clone(), trigger, not_after, rollout, hosts });
    [started].into_iter().chain(stopping).collect()
}

/// The hosts of a run that would start now, those that are skipped included; `None` if none can start.
pub(crate) fn enlisted_now(state: &State, view: &View) -> Option<Vec<Enlisted>> {
    startable(state, view).ok().map(enlist)
}

/// Every host that the configuration covers: those that take part, and those that are skipped. Any client of the bus can announce hosts, so at most
/// [`PENDING_NAMED_MAX`] unapproved hosts are listed.
pub(crate) fn enlist(Startable { state, view, config, .. }: Startable<'_>) -> Vec<Enlisted> {
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
        let skipped = state.left_out(name).or_else(unreachable);
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
