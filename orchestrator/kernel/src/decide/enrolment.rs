//! Hosts that are approved, and that are withdrawn.

use os_upgrade_protocol::HostName;

use super::give_up;
use super::request::Decided;
use crate::enrolment::Enrolled;
use crate::fact::Fact;
use crate::input::{Accepted, Refusal};
use crate::reason::Reason;
use crate::run::HostStatus;
use crate::state::State;
use crate::view::View;

/// A host that is withdrawn, as an operator asks for it.
pub(super) struct Withdrawn<'a> {
    pub(super) host: &'a HostName,
    pub(super) actor: &'a str,
    pub(super) reason: &'a str,
    /// Whether no note of it is kept.
    pub(super) forget: bool,
}

/// Hosts that take part from the next run on.
pub(super) fn approve(state: &State, hosts: &[HostName], actor: &str, validate: bool) -> Decided {
    let (facts, accepted) = state.enrolment.approve(hosts, actor)?;
    if validate { Ok((Vec::new(), Accepted::Valid)) } else { Ok((facts, accepted)) }
}

/// A host that takes no part any more. In the active run it is not started. Once it holds its slot there it is seen
/// to its end, its reboot too: one that is left in the middle of an upgrade would be neither the old nor the new
/// system, and would keep its slot.
pub(super) fn withdraw(state: &State, view: &View, asked: &Withdrawn<'_>, validate: bool) -> Decided {
    let Withdrawn { host, actor, reason, forget } = *asked;
    let is_announced = view.hosts.contains_key(host);
    let in_run = state.run.as_ref().is_some_and(|run| run.host(host).is_some());
    if !is_announced && !in_run && !view.left.contains(host) && !state.enrolment.knows(host) {
        return Err(Refusal::UnknownHost { host: host.clone() });
    }
    if forget && is_announced && state.settings.auto_approve {
        return Err(Refusal::ForgottenIsApproved { host: host.clone() });
    }
    if !forget && !state.enrolment.knows(host) {
        state.enrolment.has_place_for(1)?;
    }
    if validate {
        return Ok((Vec::new(), Accepted::Valid));
    }
    let is_so = match state.enrolled(host) {
        Enrolled::Withdrawn(present) => !forget && present.actor == actor && present.reason == reason,
        Enrolled::Pending | Enrolled::Auto => forget,
        Enrolled::Approved(_) => false,
    };
    let mut facts = Vec::new();
    if !is_so {
        let (actor, reason) = (actor.to_owned(), reason.to_owned());
        facts.push(Fact::HostWithdrawn { host: host.clone(), actor, reason, forgotten: forget });
    }
    // One that nothing is known of may be in a run all the same: it was approved by itself when that began.
    facts.extend(not_started(state, asked));
    Ok((facts, Accepted::Done))
}

/// What becomes of a withdrawn host in the active run, if it is in it and has not begun.
fn not_started(state: &State, asked: &Withdrawn<'_>) -> Vec<Fact> {
    let in_run = state.run.as_ref().and_then(|run| Some((run, run.host(asked.host)?.status)));
    let Some((run, status)) = in_run else { return Vec::new() };
    match status {
        HostStatus::Pending | HostStatus::Preparing | HostStatus::Prepared | HostStatus::Waiting => {
            let (actor, reason) = (asked.actor.to_owned(), asked.reason.to_owned());
            give_up::not_started(state, run, asked.host, Reason::HostWithdrawn { actor, reason })
        }
        HostStatus::Upgrading
        | HostStatus::Rebooting
        | HostStatus::Upgraded
        | HostStatus::Failed
        | HostStatus::TimedOut
        | HostStatus::Skipped
        | HostStatus::Cancelled => Vec::new(),
    }
}
