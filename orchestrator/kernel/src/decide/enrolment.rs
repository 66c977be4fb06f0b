//! What operators ask about hosts: to let them take part in runs, and to let them take part no more.

use imbl::OrdSet;
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use super::granted::Granted;
use super::run_control;
use crate::enrolment::{APPROVED_AT_ONCE_MAX, Enrolled, Enrolment};
use crate::fact::Fact;
use crate::reason::Reason;
use crate::run::HostStatus;
use crate::state::State;
use crate::view::View;

/// What may be asked about hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum EnrolmentOperation {
    /// Let hosts take part in runs from now on, all of them or none.
    Approve {
        /// Which, 1 to 1000; also such as have not announced themselves yet.
        hosts: Vec<HostName>,
    },
    /// Let a host take part no more.
    Withdraw {
        /// The host.
        host: HostName,
        /// Why, as the operator says.
        reason: String,
        /// Keep no note of it: should it announce itself again, it is one that nobody knows.
        forget: bool,
    },
}

/// Why an operation is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum EnrolmentRefusal {
    /// Too few or too many hosts at once.
    #[error("hosts: 1 to 1000 are approved at once")]
    ApprovalSize,
    /// There is no place for a decision about another host.
    #[error(
        "decisions are kept of at most 20000 hosts: forget those that are gone, with `os-upgrade hosts withdraw NAME \
         --reason TEXT --forget`"
    )]
    EnrolmentFull,
    /// Nothing is known of a host of that name.
    #[error(
        "there is no host {host}: none of that name has announced itself, been approved or been withdrawn"
    )]
    UnknownHost {
        /// That name.
        host: HostName,
    },
    /// Without a note of its withdrawal the host would take part again.
    #[error(
        "{host} announces itself, and with [site] auto-approve = true it would take part again at once: withdraw it without \
         forgetting it"
    )]
    ForgottenIsApproved {
        /// The host.
        host: HostName,
    },
}

pub(super) fn decide(
    state: &State,
    view: &View,
    asked: &EnrolmentOperation,
    actor: &str,
) -> Result<Granted, EnrolmentRefusal> {
    match asked {
        EnrolmentOperation::Approve { hosts } => approve(&state.enrolment, hosts, actor),
        EnrolmentOperation::Withdraw { host, reason, forget } => {
            withdraw(state, view, host, actor, reason, *forget)
        }
    }
}

/// Hosts that take part from the next run on, in one step. Those that do already stay as they are.
fn approve(enrolment: &Enrolment, hosts: &[HostName], actor: &str) -> Result<Granted, EnrolmentRefusal> {
    if !(1..=APPROVED_AT_ONCE_MAX).contains(&hosts.len()) {
        return Err(EnrolmentRefusal::ApprovalSize);
    }
    let new: OrdSet<&HostName> =
        hosts.iter().filter(|host| !enrolment.approved.contains_key(*host)).collect();
    let unknown = new.iter().filter(|host| !enrolment.knows(host)).count();
    if !enrolment.has_place_for(unknown) {
        return Err(EnrolmentRefusal::EnrolmentFull);
    }
    if new.is_empty() {
        return Ok(Granted::done(Vec::new()));
    }
    let (hosts, actor) = (new.into_iter().cloned().collect(), actor.to_owned());
    Ok(Granted::done(vec![Fact::HostsApproved { hosts, actor }]))
}

/// A host that takes no part any more. In the active run it is not started. Once it holds its slot there it is seen
/// to its end, its reboot too: one that is left in the middle of an upgrade would be neither the old nor the new
/// system, and would keep its slot.
fn withdraw(
    state: &State,
    view: &View,
    host: &HostName,
    actor: &str,
    reason: &str,
    forget: bool,
) -> Result<Granted, EnrolmentRefusal> {
    let is_announced = view.hosts.contains_key(host);
    let in_run = state.run.as_ref().is_some_and(|run| run.host(host).is_some());
    if !is_announced && !in_run && !view.left.contains(host) && !state.enrolment.knows(host) {
        return Err(EnrolmentRefusal::UnknownHost { host: host.clone() });
    }
    if forget && is_announced && state.settings.auto_approve {
        return Err(EnrolmentRefusal::ForgottenIsApproved { host: host.clone() });
    }
    if !forget && !state.enrolment.knows(host) && !state.enrolment.has_place_for(1) {
        return Err(EnrolmentRefusal::EnrolmentFull);
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
    facts.extend(not_started(state, host, actor, reason));
    Ok(Granted::done(facts))
}

/// What becomes of a withdrawn host in the active run, if it is in it and has not begun.
fn not_started(state: &State, host: &HostName, actor: &str, reason: &str) -> Vec<Fact> {
    let in_run = state.run.as_ref().and_then(|run| Some((run, run.host(host)?.status)));
    let Some((run, status)) = in_run else { return Vec::new() };
    match status {
        HostStatus::Pending | HostStatus::Preparing | HostStatus::Prepared | HostStatus::Waiting => {
            let (actor, reason) = (actor.to_owned(), reason.to_owned());
            run_control::not_started(state, run, host, Reason::HostWithdrawn { actor, reason })
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

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::enrolment::ENROLLED_MAX;

    fn hosts(numbers: impl Iterator<Item = usize>) -> Vec<HostName> {
        numbers.map(|number| HostName::new(&format!("h{number}")).unwrap()).collect()
    }

    fn apply(state: &mut State, granted: Result<Granted, EnrolmentRefusal>) {
        for fact in granted.unwrap().facts {
            state.apply(DateTime::UNIX_EPOCH, &fact).unwrap();
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut state = State::default();
        let all = hosts(0..ENROLLED_MAX);
        for some in all.chunks(APPROVED_AT_ONCE_MAX) {
            let approved = approve(&state.enrolment, some, "eve");
            apply(&mut state, approved);
        }
        let one_more = hosts(ENROLLED_MAX..=ENROLLED_MAX);
        let approves = |state: &State, hosts: &[HostName]| approve(&state.enrolment, hosts, "eve");
        let withdraws =
            |state: &State, forget| withdraw(state, &View::default(), &all[7], "eve", "stolen", forget);
        assert_eq!(approves(&state, &one_more), Err(EnrolmentRefusal::EnrolmentFull));
        assert_eq!(approves(&state, &all[..1]), Ok(Granted::done(Vec::new())));
        // One that was withdrawn has its place already.
        let gone = withdraws(&state, false);
        apply(&mut state, gone);
        assert!(approves(&state, &all[7..8]).is_ok());
        assert_eq!(approves(&state, &one_more), Err(EnrolmentRefusal::EnrolmentFull));
        let forgotten = withdraws(&state, true);
        apply(&mut state, forgotten);
        assert!(approves(&state, &one_more).is_ok());
    }

    #[test]
    fn as_many_as_one_record_takes_are_approved_at_once() {
        let enrolment = Enrolment::default();
        assert_eq!(approve(&enrolment, &[], "eve"), Err(EnrolmentRefusal::ApprovalSize));
        let many = hosts(0..=APPROVED_AT_ONCE_MAX);
        assert_eq!(approve(&enrolment, &many, "eve"), Err(EnrolmentRefusal::ApprovalSize));
        let [first, ..] = &many[..] else { panic!("there are many") };
        let twice = [first.clone(), first.clone()];
        let approved = Fact::HostsApproved { hosts: vec![first.clone()], actor: "eve".to_owned() };
        assert_eq!(approve(&enrolment, &twice, "eve"), Ok(Granted::done(vec![approved])));
    }
}
