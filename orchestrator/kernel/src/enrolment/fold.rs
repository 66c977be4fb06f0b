//! What decisions about hosts change in the state.

use chrono::{DateTime, Utc};

use super::state::Withdrawal;
use crate::fact::Fact;
use crate::state::State;

impl State {
    pub(crate) fn apply_enrolment(&mut self, at: DateTime<Utc>, fact: &Fact) {
        if let Fact::HostsApproved { hosts, actor } = fact {
            self.enrolment.approve(hosts, actor, at);
        } else if let Fact::HostWithdrawn { host, forgotten: true, .. } = fact {
            self.enrolment.forget(host);
        } else if let Fact::HostWithdrawn { host, actor, reason, forgotten: false } = fact {
            let (actor, reason) = (actor.clone(), reason.clone());
            self.enrolment.withdraw(host, Withdrawal { actor, reason, since: at });
        } else if let Fact::HostRemoved { host, actor: _, reason: _, announced } = fact {
            self.enrolment.remove(host, *announced, at);
            self.last_upgrades.remove(host);
            self.turns.remove(host);
        } else if let Fact::HostPurged { host } = fact {
            self.enrolment.purged(host, self.settings.auto_approve);
        }
    }
}
