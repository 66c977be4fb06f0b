//! Hosts that the active run goes on without.

use os_upgrade_protocol::HostName;

use super::release;
use super::request::Decided;
use crate::fact::Fact;
use crate::input::{Accepted, Refusal};
use crate::reason::Reason;
use crate::run::{HostEvent, HostStatus, Run};
use crate::state::State;

/// A host that is given up, as an operator asks for it.
pub(super) struct GivenUp<'a> {
    pub(super) host: &'a HostName,
    pub(super) actor: &'a str,
    pub(super) reason: &'a str,
}

/// The run waits for the host no longer. One that has not begun is not started. Of one under way nobody knows where it
/// is: as at the end of the run's time, its command is taken back and its slot stays held, until it says that it is
/// through or an operator releases it.
///
/// It does not stop the run, as a failure would: whoever wants that cancels it.
pub(super) fn give_up(state: &State, asked: &GivenUp<'_>, validate: bool) -> Decided {
    let host = asked.host;
    let run = state.run.as_ref().ok_or(Refusal::NoRun)?;
    let not_in_run = || Refusal::NotInRun { run: run.id.clone(), host: host.clone() };
    let in_run = run.host(host).ok_or_else(not_in_run)?;
    let reason = Reason::GivenUp { actor: asked.actor.to_owned(), reason: asked.reason.to_owned() };
    let facts = match in_run.status {
        HostStatus::Pending | HostStatus::Preparing | HostStatus::Prepared | HostStatus::Waiting => {
            not_started(state, run, host, reason)
        }
        HostStatus::Upgrading | HostStatus::Rebooting => {
            // A command that may yet appear would be executed under a slot that could be released; and an answer that a
            // new leader has not read yet is none that was not given.
            let is_read = state.fence.as_ref().is_some_and(|fence| fence.passed);
            if in_run.unanswered().is_none() || !is_read {
                return Err(Refusal::HostUncertain { host: host.clone() });
            }
            vec![Fact::of_host(&run.id, host, HostEvent::TimedOut { reason })]
        }
        HostStatus::Upgraded
        | HostStatus::Failed
        | HostStatus::TimedOut
        | HostStatus::Skipped
        | HostStatus::Cancelled => match in_run.reason {
            Some(Reason::GivenUp { .. }) => Vec::new(),
            _ => return Err(Refusal::HostThrough { host: host.clone(), status: in_run.status }),
        },
    };
    if validate { Ok((Vec::new(), Accepted::Valid)) } else { Ok((facts, Accepted::Done)) }
}

/// A host that has not begun is not going to.
pub(super) fn not_started(state: &State, run: &Run, host: &HostName, reason: Reason) -> Vec<Fact> {
    let cancelled = Fact::of_host(&run.id, host, HostEvent::Cancelled { reason });
    [cancelled].into_iter().chain(release::withdraw(state, run, host)).collect()
}
