//! Enrolment: which hosts may take part in runs. A host that announces itself and has not been approved is pending: no
//! command is sent to it. A withdrawn host is in no further run, even with `auto-approve`. Pending hosts are not
//! recorded, so a client that can announce hosts cannot fill the journal.

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::reason::Reason;

/// Most hosts with a decision: approved and withdrawn hosts together.
pub const ENROLLED_MAX: usize = 100_000;
/// Most hosts approved by one request.
pub const APPROVED_AT_ONCE_MAX: usize = 1_000;
/// Most pending hosts in the list of a run: the first ones by name.
pub const PENDING_NAMED_MAX: usize = 100;

/// The operators' decisions about hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Enrolment {
    /// Hosts that take part.
    pub approved: OrdMap<HostName, Approval>,
    /// Hosts that do not take part, whatever the settings.
    pub withdrawn: OrdMap<HostName, Withdrawal>,
}

/// An operator's decision that a host takes part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Approval {
    /// Who approved it.
    pub actor: String,
    /// When it was approved.
    pub since: DateTime<Utc>,
}

/// An operator's decision that a host no longer takes part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Withdrawal {
    /// Who withdrew it.
    pub actor: String,
    /// Why, as the operator says.
    pub reason: String,
    /// When it was withdrawn.
    pub since: DateTime<Utc>,
}

/// Whether a host takes part in runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Enrolled<'a> {
    /// It takes part: an operator approved it.
    Approved(&'a Approval),
    /// It takes part: the settings approve every host.
    Auto,
    /// It does not take part: it has not been approved.
    Pending,
    /// It does not take part: an operator withdrew it.
    Withdrawn(&'a Withdrawal),
}

impl Enrolled<'_> {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the host takes part.
    pub const fn takes_part(self) -> bool {
        match self {
            Self::Approved(_) | Self::Auto => true,
            Self::Pending | Self::Withdrawn(_) => false,
        }
    }

    /// Why `host`, whose enrolment this is, takes no part; absent if it does.
    pub fn left_out(self, host: &HostName) -> Option<Reason> {
        match self {
            Self::Approved(_) | Self::Auto => None,
            Self::Pending => Some(Reason::AwaitsApproval { host: host.clone() }),
            Self::Withdrawn(withdrawal) => Some(withdrawal.as_reason()),
        }
    }
}

impl Withdrawal {
    fn as_reason(&self) -> Reason {
        Reason::HostWithdrawn { actor: self.actor.clone(), reason: self.reason.clone() }
    }
}

impl Enrolment {
    /// Whether `host` takes part in runs. `auto_approve` is the setting that approves every host.
    pub fn of(&self, host: &HostName, auto_approve: bool) -> Enrolled<'_> {
        if let Some(withdrawal) = self.withdrawn.get(host) {
            return Enrolled::Withdrawn(withdrawal);
        }
        match self.approved.get(host) {
            Some(approval) => Enrolled::Approved(approval),
            None if auto_approve => Enrolled::Auto,
            None => Enrolled::Pending,
        }
    }

    /// Whether anything has been decided about `host`.
    pub fn knows(&self, host: &HostName) -> bool {
        self.approved.contains_key(host) || self.withdrawn.contains_key(host)
    }

    /// Whether nothing has been decided about any host.
    pub fn is_empty(&self) -> bool {
        self.approved.is_empty() && self.withdrawn.is_empty()
    }

    /// Whether decisions about `hosts` more hosts fit.
    pub(crate) fn has_room_for(&self, hosts: usize) -> bool {
        self.approved.len() + self.withdrawn.len() + hosts <= ENROLLED_MAX
    }

    /// Folds `fact`, if it is about enrolment.
    pub(crate) fn apply(&mut self, at: DateTime<Utc>, fact: &Fact) {
        if let Fact::HostsApproved { hosts, actor } = fact {
            self.apply_approved(hosts, actor, at);
        } else if let Fact::HostWithdrawn { host, actor, reason, forgotten } = fact {
            let (actor, reason) = (actor.clone(), reason.clone());
            let withdrawal = (!forgotten).then_some(Withdrawal { actor, reason, since: at });
            self.apply_withdrawn(host, withdrawal);
        }
    }

    fn apply_approved(&mut self, hosts: &[HostName], actor: &str, at: DateTime<Utc>) {
        for host in hosts {
            self.withdrawn.remove(host);
            self.approved.insert(host.clone(), Approval { actor: actor.to_owned(), since: at });
        }
    }

    fn apply_withdrawn(&mut self, host: &HostName, withdrawal: Option<Withdrawal>) {
        self.approved.remove(host);
        match withdrawal {
            Some(withdrawal) => self.withdrawn.insert(host.clone(), withdrawal),
            None => self.withdrawn.remove(host),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(numbers: impl Iterator<Item = usize>) -> Vec<HostName> {
        numbers.map(|number| HostName::new(&format!("h{number}")).unwrap()).collect()
    }

    fn withdrawal() -> Withdrawal {
        let (actor, reason) = ("eve".to_owned(), "stolen".to_owned());
        Withdrawal { actor, reason, since: DateTime::UNIX_EPOCH }
    }

    #[test]
    fn decisions_and_setting_determine_enrolment() {
        let host = &hosts(0..1)[0];
        let word = |enrolment: &Enrolment| [false, true].map(|auto| enrolment.of(host, auto).as_str());
        let mut enrolment = Enrolment::default();
        assert_eq!(word(&enrolment), ["pending", "auto"]);
        enrolment.apply_approved(&hosts(0..1), "eve", DateTime::UNIX_EPOCH);
        assert_eq!(word(&enrolment), ["approved", "approved"]);
        enrolment.apply_withdrawn(host, Some(withdrawal()));
        assert_eq!(word(&enrolment), ["withdrawn", "withdrawn"]);
        assert_eq!(enrolment.of(host, true).left_out(host).unwrap().to_string(), "withdrawn by eve: stolen");
        enrolment.apply_approved(&hosts(0..1), "eve", DateTime::UNIX_EPOCH);
        assert_eq!(word(&enrolment), ["approved", "approved"]);
        enrolment.apply_withdrawn(host, None);
        assert_eq!(word(&enrolment), ["pending", "auto"]);
        assert!(enrolment.is_empty());
    }
}
