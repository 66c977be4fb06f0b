//! Operators' decisions about hosts: approval and withdrawal.

use imbl::OrdSet;
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use super::granted::Granted;
use super::refusal_class::RefusalClass;
use super::run_control;
use crate::enrolment::{APPROVED_AT_ONCE_MAX, Enrolled, Enrolment};
use crate::fact::Fact;
use crate::reason::Reason;
use crate::run::HostStatus;
use crate::state::State;
use crate::view::View;

/// An operation on hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum EnrolmentOperation {
    /// Let hosts take part in runs from now on: all of them or none.
    Approve {
        /// The hosts, 1 to 1000; they need not have announced themselves yet.
        hosts: Vec<HostName>,
    },
    /// Let a host no longer take part.
    Withdraw {
        /// The host.
        host: HostName,
        /// Why, as the operator says.
        reason: String,
        /// Record no withdrawal: if the host announces itself again, it is treated as new.
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
    /// The maximum number of approved and withdrawn hosts is reached.
    #[error(
        "decisions are kept for at most 100000 hosts: forget hosts that no longer exist, with `os-upgrade hosts withdraw \
         NAME --reason TEXT --forget`"
    )]
    EnrolmentFull,
    /// There is no host of that name.
    #[error(
        "there is no host {host}: none of that name has announced itself, been approved or been withdrawn"
    )]
    UnknownHost {
        /// That name.
        host: HostName,
    },
    /// Without a recorded withdrawal the host would take part again.
    #[error(
        "{host} announces itself, and with [site] auto-approve = true it would take part again at once: withdraw it without \
         forgetting it"
    )]
    ForgottenIsApproved {
        /// The host.
        host: HostName,
    },
}

impl EnrolmentRefusal {
    /// What the caller can do about it.
    pub const fn class(&self) -> RefusalClass {
        match self {
            Self::ApprovalSize => RefusalClass::Invalid,
            Self::UnknownHost { .. } => RefusalClass::Missing,
            Self::EnrolmentFull | Self::ForgottenIsApproved { .. } => RefusalClass::Conflict,
        }
    }
}

pub(super) fn decide(
    state: &State,
    view: &View,
    operation: &EnrolmentOperation,
    actor: &str,
) -> Result<Granted, EnrolmentRefusal> {
    match operation {
        EnrolmentOperation::Approve { hosts } => approve(&state.enrolment, hosts, actor),
        EnrolmentOperation::Withdraw { host, reason, forget } => {
            withdraw(state, view, host, actor, reason, *forget)
        }
    }
}

/// Approves hosts for runs that start from now on. Hosts that are already approved keep their approval.
fn approve(enrolment: &Enrolment, hosts: &[HostName], actor: &str) -> Result<Granted, EnrolmentRefusal> {
    if !(1..=APPROVED_AT_ONCE_MAX).contains(&hosts.len()) {
        return Err(EnrolmentRefusal::ApprovalSize);
    }
    let new: OrdSet<&HostName> =
        hosts.iter().filter(|host| !enrolment.approved.contains_key(*host)).collect();
    let unknown = new.iter().filter(|host| !enrolment.knows(host)).count();
    if !enrolment.has_room_for(unknown) {
        return Err(EnrolmentRefusal::EnrolmentFull);
    }
    if new.is_empty() {
        return Ok(Granted::done(Vec::new()));
    }
    let (hosts, actor) = (new.into_iter().cloned().collect(), actor.to_owned());
    Ok(Granted::done(vec![Fact::HostsApproved { hosts, actor }]))
}

/// Withdraws a host. In the active run it is cancelled if it has no slot yet. Once it holds its slot, its upgrade is
/// finished, including the reboot: a host left in the middle of an upgrade would be neither the old nor the new system,
/// and would keep its slot.
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
    if !forget && !state.enrolment.knows(host) && !state.enrolment.has_room_for(1) {
        return Err(EnrolmentRefusal::EnrolmentFull);
    }
    let is_unchanged = match state.enrolled(host) {
        Enrolled::Withdrawn(current) => !forget && current.actor == actor && current.reason == reason,
        Enrolled::Pending | Enrolled::Auto => forget,
        Enrolled::Approved(_) => false,
    };
    let mut facts = Vec::new();
    if !is_unchanged {
        let (actor, reason) = (actor.to_owned(), reason.to_owned());
        facts.push(Fact::HostWithdrawn { host: host.clone(), actor, reason, forgotten: forget });
    }
    // A host without a decision may be in the active run: it was auto-approved when the run started.
    facts.extend(cancel_in_run(state, host, actor, reason));
    Ok(Granted::done(facts))
}

/// Cancels a withdrawn host in the active run, unless it has begun or is not in it.
fn cancel_in_run(state: &State, host: &HostName, actor: &str, reason: &str) -> Vec<Fact> {
    let in_run = state.run.as_ref().and_then(|run| Some((run, run.host(host)?.status)));
    let Some((run, status)) = in_run else { return Vec::new() };
    match status {
        HostStatus::Pending | HostStatus::Preparing | HostStatus::Prepared | HostStatus::Waiting => {
            let (actor, reason) = (actor.to_owned(), reason.to_owned());
            run_control::cancel_host(state, run, host, Reason::HostWithdrawn { actor, reason })
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
    fn decisions_are_bounded() {
        let mut state = State::default();
        let all = hosts(0..ENROLLED_MAX);
        for some in all.chunks(APPROVED_AT_ONCE_MAX) {
            let approved = approve(&state.enrolment, some, "eve");
            apply(&mut state, approved);
        }
        let one_more = hosts(ENROLLED_MAX..=ENROLLED_MAX);
        let approval_of = |state: &State, hosts: &[HostName]| approve(&state.enrolment, hosts, "eve");
        let withdrawal_of =
            |state: &State, forget| withdraw(state, &View::default(), &all[7], "eve", "stolen", forget);
        assert_eq!(approval_of(&state, &one_more), Err(EnrolmentRefusal::EnrolmentFull));
        assert_eq!(approval_of(&state, &all[..1]), Ok(Granted::done(Vec::new())));
        // Withdrawing an approved host takes no further room.
        let withdrawn = withdrawal_of(&state, false);
        apply(&mut state, withdrawn);
        assert!(approval_of(&state, &all[7..8]).is_ok());
        assert_eq!(approval_of(&state, &one_more), Err(EnrolmentRefusal::EnrolmentFull));
        let forgotten = withdrawal_of(&state, true);
        apply(&mut state, forgotten);
        assert!(approval_of(&state, &one_more).is_ok());
    }

    #[test]
    fn approvals_per_request_are_bounded() {
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
