//! What decisions about hosts change in the state.

use chrono::{DateTime, Utc};

use super::fact::EnrolmentFact;
use super::state::{Deferral, PinnedKey, Withdrawal};
use crate::state::State;

impl State {
    pub(crate) fn apply_enrolment(&mut self, fact: &EnrolmentFact, at: DateTime<Utc>) {
        match fact {
            EnrolmentFact::HostsApproved { hosts, actor } => self.enrolment.approve(hosts, actor, at),
            EnrolmentFact::KeyPinned { host, key, actor } => {
                let pinned = PinnedKey { key: *key, actor: actor.clone(), since: at };
                self.enrolment.keys.insert(host.clone(), pinned);
                self.join_providers(host);
            }
            EnrolmentFact::HostWithdrawn { host, forgotten: true, .. } => {
                self.enrolment.forget(host);
                self.host_withdrawn(host);
            }
            EnrolmentFact::HostWithdrawn { host, actor, reason, forgotten: false } => {
                let (actor, reason) = (actor.clone(), reason.clone());
                self.enrolment.withdraw(host, Withdrawal { actor, reason, since: at });
                self.host_withdrawn(host);
            }
            EnrolmentFact::HostRemoved { host, actor: _, reason: _, announced } => {
                self.enrolment.remove(host, *announced, at);
                self.last_upgrades.remove(host);
                self.turns.remove(host);
                self.host_withdrawn(host);
                self.host_removed(host);
            }
            EnrolmentFact::HostDeferred { host, actor, reason, until } => {
                let since = self.enrolment.deferred.get(host).map_or(at, |before| before.since);
                let (actor, reason, until) = (actor.clone(), reason.clone(), *until);
                self.enrolment.defer(host, Deferral { actor, reason, since, until });
            }
            EnrolmentFact::DeferralEnded { host, .. } => self.enrolment.end_deferral(host),
            EnrolmentFact::HostPurged { host } => {
                self.enrolment.purged(host, self.settings.auto_approve);
                self.desired.purged(host);
            }
        }
    }
}
