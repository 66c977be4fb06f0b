//! Requests of operators and of FleetLock clients.

use chrono::{DateTime, SubsecRound, Utc};
use os_upgrade_protocol::RunId;

use super::enrolment::{self, Withdrawn};
use super::give_up::{self, GivenUp};
use super::{Decision, configuration, slots};
use crate::config::{Config, UnreachablePolicy};
use crate::duration::Duration;
use crate::enrolment::{Enrolled, PENDING_NAMED_MAX};
use crate::fact::Fact;
use crate::input::{Accepted, Refusal, Request};
use crate::reason::Reason;
use crate::run::{Enlisted, StopCause, Trigger};
use crate::state::State;
use crate::view::{Reachability, View};

pub(super) type Decided = Result<(Vec<Fact>, Accepted), Refusal>;

pub(super) fn decide(state: &State, view: &View, request: &Request, now: DateTime<Utc>) -> Decision {
    let decided = match request {
        Request::PutConfig { config, expected, actor, validate } => {
            configuration::put(state, config, expected, actor, *validate, now)
        }
        Request::DeleteConfig { expected, actor, validate } => {
            configuration::delete(state, expected, actor, *validate)
        }
        Request::Trigger { run, timeout, actor, validate } => {
            trigger(state, view, run, *timeout, actor, now).map(|facts| perform(facts, *validate))
        }
        Request::Cancel { actor } => cancel(state, actor),
        Request::Lock { group, id, actor } => return slots::lock(state, group, id, actor.as_ref(), now),
        Request::Unlock { group, id, actor } => slots::unlock(state, group, id, actor.as_ref()),
        Request::Hold { group, id, actor, reason } => slots::hold(state, group, id, actor, reason),
        Request::Release { group, id, actor, reason } => slots::release(state, group, id, actor, reason),
        Request::Reclaim { group, id, actor } => slots::reclaim(state, view, group, id, actor),
        Request::KeepSecret { name, sealed, check, actor } => {
            state.strongbox.keep(name, sealed, check, actor)
        }
        Request::RemoveSecret { name, actor } => state.strongbox.remove(name, actor),
        Request::ApproveHosts { hosts, actor, validate } => {
            enrolment::approve(state, hosts, actor, *validate)
        }
        Request::WithdrawHost { host, actor, reason, forget, validate } => {
            let asked = Withdrawn { host, actor, reason, forget: *forget };
            enrolment::withdraw(state, view, &asked, *validate)
        }
        Request::GiveUpHost { host, actor, reason, validate } => {
            let asked = GivenUp { host, actor, reason };
            give_up::give_up(state, view, &asked).map(|facts| perform(facts, *validate))
        }
    };
    match decided {
        Ok((facts, accepted)) => Decision { facts, answer: Some(Ok(accepted)) },
        Err(refusal) => Decision { facts: Vec::new(), answer: Some(Err(refusal)) },
    }
}

fn perform(facts: Vec<Fact>, validate: bool) -> (Vec<Fact>, Accepted) {
    if validate { (Vec::new(), Accepted::Valid) } else { (facts, Accepted::Done) }
}

fn trigger(
    state: &State,
    view: &View,
    run: &RunId,
    timeout: Duration,
    actor: &str,
    now: DateTime<Utc>,
) -> Result<Vec<Fact>, Refusal> {
    startable(state)?;
    if timeout.as_secs() == 0 {
        return Err(Refusal::TimeoutTooShort);
    }
    // Whole seconds, as it travels: both sides must mean the same instant.
    let not_after = now.trunc_subsecs(0) + timeout.to_delta();
    start(state, view, run, Trigger::Operator { actor: actor.to_owned() }, not_after)
}

/// The configuration that a run would be started with, while none is active.
fn startable(state: &State) -> Result<&Config, Refusal> {
    let config = state.config.as_deref().ok_or(Refusal::NoConfiguration)?;
    match &state.run {
        Some(active) => Err(Refusal::RunActive { run: active.id.clone() }),
        None => Ok(config),
    }
}

/// A run of every host that the configuration takes in.
pub(super) fn start(
    state: &State,
    view: &View,
    run: &RunId,
    trigger: Trigger,
    not_after: DateTime<Utc>,
) -> Result<Vec<Fact>, Refusal> {
    let config = startable(state)?;
    if let Some(seconds) = view.excessive_skew() {
        return Err(Refusal::ClockSkew { seconds });
    }
    if let Some(why) = &view.sealed {
        return Err(Refusal::Sealed { why: why.clone() });
    }
    let hosts = enlist(state, view, config);
    if hosts.is_empty() {
        let names: Vec<&str> =
            config.worker_applications.iter().map(|application| application.name.as_str()).collect();
        return Err(Refusal::NoHosts { applications: names.join(", ") });
    }
    if !hosts.iter().any(|entry| state.enrolled(&entry.host).takes_part()) {
        let hosts = view.serving(&config.worker_applications).count();
        return Err(Refusal::NoneApproved { hosts });
    }
    let unreachable = hosts.iter().find(|entry| entry.skipped == Some(Reason::Unreachable));
    let stopping =
        unreachable.filter(|_| config.rollout.unreachable == UnreachablePolicy::Fail).map(|entry| {
            Fact::RunStopping { run: run.clone(), cause: StopCause::Failed { host: entry.host.clone() } }
        });
    let rollout = config.rollout.clone();
    let started = Fact::RunStarted { run: run.clone(), trigger, not_after, rollout, hosts };
    Ok([started].into_iter().chain(stopping).collect())
}

/// Who takes part, and who would but does not. Of those whom nobody has approved there may be any number, since whoever
/// reaches the bus can announce them: only so many are named.
fn enlist(state: &State, view: &View, config: &Config) -> Vec<Enlisted> {
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
        Some(Enlisted {
            host: name.clone(),
            application: application.clone(),
            group: host.group.clone().unwrap_or_else(|| state.settings.default_group.clone()),
            skipped: enrolled.left_out(name).or_else(unreachable),
        })
    });
    enlisted.collect()
}

fn cancel(state: &State, actor: &str) -> Decided {
    let run = state.run.as_ref().ok_or(Refusal::NoRun)?;
    // After a failure there is nothing left to stop, and it stays failed; but no other run starts by itself any more.
    let known = state.spent.is_after(run.started_at);
    if matches!(run.stopping, Some(StopCause::Cancelled { .. })) || run.stopping.is_some() && known {
        return Ok((Vec::new(), Accepted::Done));
    }
    let cause = StopCause::Cancelled { actor: actor.to_owned() };
    Ok((vec![Fact::RunStopping { run: run.id.clone(), cause }], Accepted::Done))
}
