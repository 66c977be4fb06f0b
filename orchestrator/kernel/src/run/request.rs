//! Operators' control of runs: start one, cancel it, or give a host up.

use chrono::{DateTime, SubsecRound, Utc};
use os_upgrade_calendar::Duration;
use os_upgrade_protocol::{HostName, RunId};
use serde::{Deserialize, Serialize};

use super::event::HostEvent;
use super::host::{HostStatus, RunHost};
use super::state::{Run, StopCause, Trigger};
use crate::answer::{Granted, RefusalClass};
use crate::fact::{Fact, RunFact};
use crate::reason::Reason;
use crate::start::{StartBlocker, start, startable};
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
        /// How long the run may take.
        timeout: Duration,
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
            Self::TimeoutTooShort => RefusalClass::Invalid,
            Self::NotInRun { .. } => RefusalClass::Missing,
            Self::NothingFits { .. }
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
        RunOperation::Trigger { run, timeout, reason } => {
            let trigger = Trigger::Operator { actor: actor.to_owned(), reason: reason.clone() };
            start_now(state, view, run, *timeout, trigger, now)
        }
        RunOperation::Cancel { reason } => cancel(state, actor, reason.as_deref()),
        RunOperation::GiveUpHost { host, reason } => {
            let reason = Reason::GivenUp { actor: actor.to_owned(), reason: reason.clone() };
            give_up(state, view, host, reason)
        }
    };
    facts.map(Granted::done)
}

/// Starts a run on an operator's request.
fn start_now(
    state: &State,
    view: &View,
    run: &RunId,
    timeout: Duration,
    trigger: Trigger,
    now: DateTime<Utc>,
) -> Result<Vec<Fact>, RunRefusal> {
    match startable(state, view) {
        Err(by @ (StartBlocker::NoConfiguration | StartBlocker::RunActive { .. })) => {
            Err(RunRefusal::NotStartable(by))
        }
        // Other blockers may pass, and the timeout would still be too short.
        Ok(_) | Err(_) if timeout.as_secs() == 0 => Err(RunRefusal::TimeoutTooShort),
        Err(by) => Err(RunRefusal::NotStartable(by)),
        Ok(startable)
            if let Some(expected) =
                startable.config.rollout.expected_duration.filter(|expected| timeout <= *expected) =>
        {
            Err(RunRefusal::NothingFits { expected })
        }
        Ok(startable) => {
            // In whole seconds, as messages carry it: both sides must mean the same instant.
            let not_after = now.trunc_subsecs(0) + timeout.to_delta();
            Ok(start(startable, run, trigger, not_after))
        }
    }
}

fn cancel(state: &State, actor: &str, reason: Option<&str>) -> Result<Vec<Fact>, RunRefusal> {
    let run = state.run.as_ref().ok_or(RunRefusal::NoRun)?;
    // A failed run is stopping already and stays failed; the cancel still keeps the occurrence from starting another run.
    let is_recorded = state.watermark.is_after(run.started_at);
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
