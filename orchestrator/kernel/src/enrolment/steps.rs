//! What follows for deferred hosts from time.

use chrono::{DateTime, Utc};

use crate::fact::{EnrolmentFact, Fact, non_empty};
use crate::state::State;
use crate::view::View;

/// Ends the deferrals whose end has come. While the time is in doubt, or hosts could still contradict it, their hosts stay deferred.
pub(crate) fn end_deferrals(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let deferred = state.enrolment.deferred.iter().filter(|_| view.may_judge_windows());
    let over = deferred.filter(|(_, deferral)| deferral.until.is_some_and(|until| until <= now));
    let ended = |host| Fact::Enrolment(EnrolmentFact::DeferralEnded { host, actor: None, reason: None });
    non_empty(over.map(|(host, _)| ended(host.clone())).collect())
}
