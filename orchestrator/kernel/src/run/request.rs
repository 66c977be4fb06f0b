//! Operators' control of runs: start one, cancel it, or give a host up.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, SubsecRound, Utc};
use os_upgrade_calendar::Duration;
use os_upgrade_protocol::{HostName, RunId};
use serde::{Deserialize, Serialize};

use super::event::{Enlisted, HostEvent};
use super::host::{HostStatus, RunHost};
use super::place::Place;
use super::state::{Run, StopCause, Trigger};
use crate::answer::{Granted, RefusalClass};
use crate::enrolment::Enrolled;
use crate::fact::{Fact, RunFact};
use crate::left_out::is_default;
use crate::reason::Reason;
use crate::start::{StartBlocker, Startable, enlist, forecast, start, startable};
use crate::state::State;
use crate::view::View;

/// An operation on runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum RunOperation {
    /// Start a run now.
    Trigger {
        /// The id of the new run.
        run: RunId,
        /// How long the run may take. Absent, for a run of chosen hosts: [`TIMEOUT_DEFAULT`], or until the next one starts automatically.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout: Option<Duration>,
        /// Which hosts it is of.
        #[serde(default, skip_serializing_if = "Targets::is_all")]
        targets: Targets,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Start no further host in the active run.
    Cancel {
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Let the active run continue without a host.
    GiveUpHost {
        host: HostName,
        /// Why, as the operator says.
        reason: String,
    },
}

/// How long a run of the whole site may take by default, by the specification.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(4 * 3_600);
/// Most hosts that a request may name.
pub const TARGETS_MAX: usize = 10_000;
/// Most hosts that a refusal names.
const NAMED_MAX: usize = 10;

/// Which hosts a run is of: with neither, the whole site; with both, those of `hosts` that ended so.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Targets {
    /// These hosts: one that cannot take part is an error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostName>,
    /// The hosts whose part in their last run ended so: those that cannot take part are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
}

/// How the part of a host in the last run in which it took part ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Retry {
    /// It failed or timed out, and has not been upgraded since.
    Failed,
    /// Its turn never came.
    NotReached,
}

impl Targets {
    /// Whether they are the whole site.
    pub const fn is_all(&self) -> bool {
        self.hosts.is_empty() && self.retry.is_none()
    }
}

/// Why a host that is named takes no part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoTarget {
    /// No worker of a configured application has announced itself on it.
    Unknown,
    Unapproved,
    Withdrawn,
    Deferred,
}

/// What a run would be of that starts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// The hosts that take part, in the order of turns, then those that are skipped, by name.
    pub hosts: Vec<Enlisted>,
    /// When it ends at the latest.
    pub not_after: DateTime<Utc>,
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum RunRefusal {
    /// The timeout is zero.
    TimeoutTooShort,
    /// A host takes as long as the timeout, or longer.
    NothingFits {
        /// How long a host takes: the rollout's `expected-duration`.
        expected: Duration,
    },
    /// Hosts that are named cannot take part.
    NoTargets {
        /// The first of them.
        hosts: Vec<(HostName, NoTarget)>,
        /// How many more there are.
        #[serde(default, skip_serializing_if = "is_default")]
        more: usize,
    },
    /// Too many hosts are named.
    TooManyTargets,
    /// No host that can take part ended so.
    NobodyToRetry { retry: Retry },
    /// No run is active.
    NoRun,
    /// The host is not in the active run.
    NotInRun {
        /// That run.
        run: RunId,
        host: HostName,
    },
    /// The run no longer waits for the host.
    #[serde(rename = "host-through")]
    HostFinished {
        host: HostName,
        /// How it ended.
        status: HostStatus,
    },
    /// The host's command is on its way, or its reply may not have been read.
    HostUncertain { host: HostName },
    /// No run can start now.
    #[serde(untagged)]
    NotStartable(StartBlocker),
}

impl RunRefusal {
    /// What the caller can do about it.
    pub const fn class(&self) -> RefusalClass {
        match self {
            Self::TimeoutTooShort | Self::TooManyTargets => RefusalClass::Invalid,
            Self::NotInRun { .. } => RefusalClass::Missing,
            Self::NothingFits { .. }
            | Self::NoTargets { .. }
            | Self::NobodyToRetry { .. }
            | Self::NoRun
            | Self::HostFinished { .. }
            | Self::HostUncertain { .. } => RefusalClass::Conflict,
            Self::NotStartable(blocker) => match blocker {
                StartBlocker::NoConfiguration => RefusalClass::Missing,
                StartBlocker::Paused(_)
                | StartBlocker::NoHosts { .. }
                | StartBlocker::NoneApproved { .. }
                | StartBlocker::AllDeferred { .. }
                | StartBlocker::RunActive { .. } => RefusalClass::Conflict,
                StartBlocker::Clock(_) | StartBlocker::StrongboxSealed { .. } => RefusalClass::Unavailable,
            },
        }
    }
}

pub(crate) fn decide(
    state: &State,
    view: &View,
    operation: &RunOperation,
    actor: &str,
    now: DateTime<Utc>,
) -> Result<Granted, RunRefusal> {
    let facts = match operation {
        RunOperation::Trigger { run, timeout, targets, reason } => {
            let (actor, reason, targeted) = (actor.to_owned(), reason.clone(), !targets.is_all());
            let trigger = Trigger::Operator { actor, reason, targeted };
            planned(state, view, *timeout, targets, now).map(|(startable, Preview { hosts, not_after })| {
                start(startable, run, trigger, not_after, hosts)
            })
        }
        RunOperation::Cancel { reason } => cancel(state, actor, reason.as_deref()),
        RunOperation::GiveUpHost { host, reason } => {
            let reason = Reason::GivenUp { actor: actor.to_owned(), reason: reason.clone() };
            give_up(state, view, host, reason)
        }
    };
    facts.map(Granted::done)
}

/// What a run would be of that an operator starts at `now`.
///
/// # Errors
/// None can start so.
pub fn preview(
    state: &State,
    view: &View,
    timeout: Option<Duration>,
    targets: &Targets,
    now: DateTime<Utc>,
) -> Result<Preview, RunRefusal> {
    let (_, mut preview) = planned(state, view, timeout, targets, now)?;
    // Where its group has no free slot, the host that holds one goes first.
    let is_ahead = |Enlisted { host, group, .. }: &Enlisted| {
        let is_full = state.semaphores.get(group).is_some_and(|semaphore| semaphore.free() == 0);
        is_full && state.slots.contains_key(host) && state.uncounted(view, group, host).others == 0
    };
    preview.hosts.sort_by_cached_key(|entry| {
        let last_turn = state.turns.last(&entry.host);
        (entry.skipped.is_some(), !is_ahead(entry), Place { last_turn, host: entry.host.clone() })
    });
    Ok(preview)
}

/// What a run is started with on an operator's request.
fn planned<'a>(
    state: &'a State,
    view: &'a View,
    timeout: Option<Duration>,
    targets: &Targets,
    now: DateTime<Utc>,
) -> Result<(Startable<'a>, Preview), RunRefusal> {
    let startable = match startable(state, view) {
        Err(by @ (StartBlocker::NoConfiguration | StartBlocker::RunActive { .. })) => {
            return Err(RunRefusal::NotStartable(by));
        }
        // Other blockers may pass, and the timeout would still be too short.
        Ok(_) | Err(_) if timeout.is_some_and(|timeout| timeout.as_secs() == 0) => {
            return Err(RunRefusal::TimeoutTooShort);
        }
        Err(by) => return Err(RunRefusal::NotStartable(by)),
        Ok(startable) => startable,
    };
    // In whole seconds, as messages carry it: both sides must mean the same instant.
    let begins = now.trunc_subsecs(0);
    let latest = begins + timeout.unwrap_or(TIMEOUT_DEFAULT).to_delta();
    let makes_way = timeout.is_none() && !targets.is_all();
    let next = || forecast(state, view, now).start().map(|start| start.at);
    let next = makes_way.then(next).flatten().filter(|next| *next > begins);
    let not_after = next.map_or(latest, |next| next.min(latest));
    let expected = startable.config.rollout.expected_duration;
    if let Some(expected) = expected.filter(|expected| not_after - begins <= expected.to_delta()) {
        return Err(RunRefusal::NothingFits { expected });
    }
    let hosts = enlist(startable);
    let hosts = if targets.is_all() { hosts } else { targeted(state, view, &hosts, targets)? };
    Ok((startable, Preview { hosts, not_after }))
}

/// Those of the hosts that `targets` mean.
fn targeted(
    state: &State,
    view: &View,
    enlisted: &[Enlisted],
    targets: &Targets,
) -> Result<Vec<Enlisted>, RunRefusal> {
    if targets.hosts.len() > TARGETS_MAX {
        return Err(RunRefusal::TooManyTargets);
    }
    let by_name: BTreeMap<&HostName, &Enlisted> = enlisted.iter().map(|entry| (&entry.host, entry)).collect();
    let named: BTreeSet<&HostName> = targets.hosts.iter().collect();
    // Not every host that waits for approval is enlisted.
    let no_target = |host: &HostName| match by_name.get(host).map(|entry| &entry.skipped) {
        Some(None | Some(Reason::Unreachable)) => None,
        Some(Some(Reason::HostWithdrawn { .. })) => Some(NoTarget::Withdrawn),
        Some(Some(Reason::HostDeferred { .. })) => Some(NoTarget::Deferred),
        Some(Some(_)) => Some(NoTarget::Unapproved),
        None => match state.enrolled(host) {
            Enrolled::Withdrawn(_) => Some(NoTarget::Withdrawn),
            Enrolled::Pending if view.hosts.contains_key(host) => Some(NoTarget::Unapproved),
            Enrolled::Pending | Enrolled::Approved(_) | Enrolled::Auto => Some(NoTarget::Unknown),
        },
    };
    let mut refused = named.iter().filter_map(|host| Some(((*host).clone(), no_target(host)?)));
    let hosts: Vec<_> = refused.by_ref().take(NAMED_MAX).collect();
    if !hosts.is_empty() {
        return Err(RunRefusal::NoTargets { hosts, more: refused.count() });
    }
    let is_retried = |entry: &Enlisted| {
        let can = no_target(&entry.host).is_none();
        targets.retry.is_some_and(|retry| can && is_to_retry(state, &entry.host, retry))
    };
    let is_meant = |entry: &Enlisted| {
        let is_named = named.is_empty() || named.contains(&entry.host);
        is_named && (targets.retry.is_none() || is_retried(entry))
    };
    let meant: Vec<Enlisted> = enlisted.iter().filter(|entry| is_meant(entry)).cloned().collect();
    match targets.retry {
        Some(retry) if meant.is_empty() => Err(RunRefusal::NobodyToRetry { retry }),
        Some(_) | None => Ok(meant),
    }
}

/// Whether the part of `host` ended so: in its last run, or as a failure after which it came to nothing else in a run.
fn is_to_retry(state: &State, host: &HostName, retry: Retry) -> bool {
    let Some(end) = state.turns.last_end(host) else { return false };
    match retry {
        Retry::Failed => {
            let is_upgraded = |failed| state.last_upgrades.of(host).is_some_and(|at| *at >= failed);
            end.failed_at.is_some_and(|failed| !is_upgraded(failed))
        }
        Retry::NotReached => end.status == HostStatus::NotReached,
    }
}

fn cancel(state: &State, actor: &str, reason: Option<&str>) -> Result<Vec<Fact>, RunRefusal> {
    let run = state.run.as_ref().ok_or(RunRefusal::NoRun)?;
    // A failed run is stopping already and stays failed; the cancel still keeps the occurrence from starting another run.
    let is_recorded = run.trigger.is_targeted() || state.watermark.is_after(run.started_at);
    if matches!(run.stopping, Some(StopCause::Cancelled { .. })) || run.stopping.is_some() && is_recorded {
        return Ok(Vec::new());
    }
    let cause = StopCause::Cancelled { actor: actor.to_owned(), reason: reason.map(ToOwned::to_owned) };
    Ok(vec![Fact::Run(RunFact::Stopping { run: run.id.clone(), cause })])
}

/// Gives a host up: the run no longer waits for it. A host that has not begun is cancelled. A host in progress is in an
/// unknown state, and the run continues beside it: its command is retracted, and its slot stays held, whatever
/// `on-failure` says, until the host answers `done` or an operator releases the slot.
///
/// Unlike a failure this does not stop the run; an operator who wants that cancels the run.
fn give_up(state: &State, view: &View, host: &HostName, reason: Reason) -> Result<Vec<Fact>, RunRefusal> {
    let was_given_up = |run: &Run| run.host(host).is_some_and(RunHost::is_given_up);
    let run = match &state.run {
        Some(run) => run,
        // The host may have been the last that the run waited for: the request is repeated.
        None if state.last_run.as_ref().is_some_and(was_given_up) => return Ok(Vec::new()),
        None => return Err(RunRefusal::NoRun),
    };
    let not_in_run = || RunRefusal::NotInRun { run: run.id.clone(), host: host.clone() };
    let in_run = run.host(host).ok_or_else(not_in_run)?;
    match in_run.status {
        HostStatus::Pending
        | HostStatus::Preparing
        | HostStatus::Prepared
        | HostStatus::Waiting
        | HostStatus::Draining => Ok(state.no_longer_waits(run, host, HostEvent::Cancelled { reason })),
        // A command that may still appear would be executed under a slot that could be released; and a new leader may not
        // have read the host's reply yet.
        HostStatus::Upgrading | HostStatus::Rebooting
            if in_run.unanswered().is_none() || !view.has_read_control =>
        {
            Err(RunRefusal::HostUncertain { host: host.clone() })
        }
        HostStatus::Upgrading | HostStatus::Rebooting => {
            Ok(vec![Fact::of_host(&run.id, host, HostEvent::TimedOut { reason })])
        }
        // The end of its cordon goes on without the run.
        HostStatus::Recovering => Ok(vec![Fact::of_host(&run.id, host, HostEvent::Upgraded)]),
        HostStatus::Upgraded
        | HostStatus::Failed
        | HostStatus::TimedOut
        | HostStatus::Skipped
        | HostStatus::Cancelled
        | HostStatus::NotReached => {
            let refusal = || RunRefusal::HostFinished { host: host.clone(), status: in_run.status };
            if in_run.is_given_up() { Ok(Vec::new()) } else { Err(refusal()) }
        }
    }
}
