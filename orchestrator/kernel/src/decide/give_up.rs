//! Hosts that the active run goes on without.

use os_upgrade_protocol::HostName;

use crate::fact::Fact;
use crate::input::Refusal;
use crate::reason::Reason;
use crate::run::{HostEvent, HostStatus, Run, RunHost};
use crate::state::State;
use crate::view::View;

/// A host that is given up, as an operator asks for it.
pub(super) struct GivenUp<'a> {
    pub(super) host: &'a HostName,
    pub(super) actor: &'a str,
    pub(super) reason: &'a str,
}

/// The run waits for the host no longer. One that has not begun is not started. Of one under way nobody knows where it
/// is, and the run goes on beside it: its command is taken back, and its slot stays held whatever the settings say of
/// hosts that fail, until it says that it is through or an operator releases it.
///
/// It does not stop the run, as a failure would: whoever wants that cancels it.
pub(super) fn give_up(state: &State, view: &View, asked: &GivenUp<'_>) -> Result<Vec<Fact>, Refusal> {
    let host = asked.host;
    let was_given_up = |run: &Run| run.host(host).is_some_and(RunHost::is_given_up);
    let run = match &state.run {
        Some(run) => run,
        // Whoever was given up may have been the last one that was waited for.
        None if state.last_run.as_ref().is_some_and(was_given_up) => return Ok(Vec::new()),
        None => return Err(Refusal::NoRun),
    };
    let not_in_run = || Refusal::NotInRun { run: run.id.clone(), host: host.clone() };
    let in_run = run.host(host).ok_or_else(not_in_run)?;
    let reason = Reason::GivenUp { actor: asked.actor.to_owned(), reason: asked.reason.to_owned() };
    match in_run.status {
        HostStatus::Pending | HostStatus::Preparing | HostStatus::Prepared | HostStatus::Waiting => {
            Ok(not_started(state, run, host, reason))
        }
        // A command that may yet appear would be executed under a slot that could be released; and an answer that a new
        // leader has not read yet is none that was not given.
        HostStatus::Upgrading | HostStatus::Rebooting
            if in_run.unanswered().is_none() || !view.has_read_control =>
        {
            Err(Refusal::HostUncertain { host: host.clone() })
        }
        HostStatus::Upgrading | HostStatus::Rebooting => {
            Ok(vec![Fact::of_host(&run.id, host, HostEvent::TimedOut { reason })])
        }
        HostStatus::Upgraded
        | HostStatus::Failed
        | HostStatus::TimedOut
        | HostStatus::Skipped
        | HostStatus::Cancelled => {
            let refusal = || Refusal::HostThrough { host: host.clone(), status: in_run.status };
            if in_run.is_given_up() { Ok(Vec::new()) } else { Err(refusal()) }
        }
    }
}

/// A host that has not begun is not going to.
pub(super) fn not_started(state: &State, run: &Run, host: &HostName, reason: Reason) -> Vec<Fact> {
    let cancelled = Fact::of_host(&run.id, host, HostEvent::Cancelled { reason });
    [cancelled].into_iter().chain(state.cancel_slot_request(run, host)).collect()
}
