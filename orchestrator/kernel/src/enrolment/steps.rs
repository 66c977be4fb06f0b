//! What follows for deferred hosts from time, and for the keys of hosts that nobody has to approve.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;

use super::state::{APPROVED_AT_ONCE_MAX, ENROLLED_MAX, Enrolled};
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

/// Pins the first key of each host that the settings approve. Another one waits for an operator.
pub(crate) fn pin_first(state: &State, view: &View) -> Vec<Fact> {
    if !state.settings.auto_approve {
        return Vec::new();
    }
    let is_auto = |host: &HostName| state.enrolled(host) == Enrolled::Auto;
    let first = view.hosts.keys().filter_map(|host| {
        let key = *view.announced_key(host).filter(|_| state.enrolment.pinned(host).is_none())?;
        is_auto(host).then(|| EnrolmentFact::KeyPinned { host: host.clone(), key, actor: None }.into())
    });
    let room = ENROLLED_MAX.saturating_sub(state.enrolment.keys.len()).min(APPROVED_AT_ONCE_MAX);
    first.take(room).collect()
}
