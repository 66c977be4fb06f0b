//! Enrolment: which hosts may take part in runs. A host that announces itself and has not been approved is pending: no
//! command is sent to it. A withdrawn host is in no further run, even with `auto-approve`. A removed host is gone; one that
//! announces itself by its name is pending, even with `auto-approve`. Pending hosts are not recorded, so a client that can
//! announce hosts cannot fill the journal.

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_protocol::{HostKey, HostName};
use serde::{Deserialize, Serialize};

use crate::reason::Reason;
use crate::remembered::HOSTS_MAX;

/// Most hosts with a decision: approved, withdrawn and removed hosts together; removed ones as long as anything is stored of
/// them. Of names that must not be approved automatically, because their hosts were removed, as many are kept.
pub const ENROLLED_MAX: usize = HOSTS_MAX;
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
    /// Hosts that are gone.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub removed: OrdMap<HostName, Removal>,
    /// Hosts that begin nothing for now. Whether they take part otherwise is decided apart from that.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub deferred: OrdMap<HostName, Deferral>,
    /// The keys to which what is for hosts is sealed, of hosts that take part.
    #[serde(default, skip_serializing_if = "OrdMap::is_empty")]
    pub keys: OrdMap<HostName, PinnedKey>,
}

/// The key to which what is for a host is sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PinnedKey {
    pub key: HostKey,
    /// Who approved it; absent if it was the first one of a host that the settings approve.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Since when it counts.
    pub since: DateTime<Utc>,
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

/// An operator's decision that a host begins nothing for now: no part in a run, and no reboot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Deferral {
    /// Who deferred it.
    pub actor: String,
    /// Why, as the operator says.
    pub reason: String,
    /// Since when it is deferred.
    pub since: DateTime<Utc>,
    /// When that ends by itself; absent if it lasts until an operator ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<DateTime<Utc>>,
}

/// An operator's decision that a host is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Removal {
    /// The sequence of its last announcement, up to which what it has announced is to be deleted; 0 if it had announced
    /// nothing.
    pub announced: u64,
    /// When it was removed.
    pub since: DateTime<Utc>,
    /// Whether what is stored of it has been deleted.
    pub purged: bool,
}

/// Whether something can be sealed for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum KeyState {
    /// Its key is approved.
    Pinned,
    /// Its key waits for approval.
    Waiting,
    /// It announces another key than the approved one, which waits for approval: nothing is sealed to either.
    Changed,
}

impl KeyState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Pinned, Self::Waiting, Self::Changed];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Whether a host takes part in runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Enrolled<'a> {
    /// It takes part: an operator approved it.
    Approved(&'a Approval),
    /// It takes part: the settings approve every host.
    Auto,
    /// It does not take part: it has not been approved, or not since it was removed.
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

impl Deferral {
    pub(crate) fn as_reason(&self) -> Reason {
        Reason::HostDeferred { actor: self.actor.clone(), reason: self.reason.clone() }
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
            None if auto_approve && !self.removed.contains_key(host) => Enrolled::Auto,
            None => Enrolled::Pending,
        }
    }

    /// Whether `host` takes part or does not take part because an operator decided so.
    pub fn knows(&self, host: &HostName) -> bool {
        self.approved.contains_key(host) || self.withdrawn.contains_key(host)
    }

    /// The key to which what is for `host` is sealed, if there is one.
    pub fn pinned(&self, host: &HostName) -> Option<&HostKey> {
        self.keys.get(host).map(|pinned| &pinned.key)
    }

    /// What follows for what is for `host` from the key that it announces, if any.
    pub fn key_state(&self, host: &HostName, announced: Option<&HostKey>) -> Option<KeyState> {
        match (self.pinned(host), announced) {
            (None, None) => None,
            (None, Some(_)) => Some(KeyState::Waiting),
            (Some(pinned), Some(announced)) if pinned != announced => Some(KeyState::Changed),
            (Some(_), Some(_) | None) => Some(KeyState::Pinned),
        }
    }

    /// Whether nothing has been decided about any host.
    pub fn is_empty(&self) -> bool {
        self.approved.is_empty()
            && self.withdrawn.is_empty()
            && self.removed.is_empty()
            && self.deferred.is_empty()
            && self.keys.is_empty()
    }

    /// Whether decisions about `hosts` more hosts fit.
    pub(crate) fn has_room_for(&self, hosts: usize) -> bool {
        let unpurged = self.removed.values().filter(|removal| !removal.purged).count();
        self.approved.len() + self.withdrawn.len() + unpurged + hosts <= ENROLLED_MAX
    }

    /// Whether a decision about `host` takes no further room.
    pub(crate) fn has_place_of(&self, host: &HostName) -> bool {
        self.knows(host) || self.removed.get(host).is_some_and(|removal| !removal.purged)
    }

    /// `hosts` take part, as an operator says.
    pub(crate) fn approve(&mut self, hosts: &[HostName], actor: &str, at: DateTime<Utc>) {
        for host in hosts {
            self.withdrawn.remove(host);
            self.removed.remove(host);
            self.approved.insert(host.clone(), Approval { actor: actor.to_owned(), since: at });
        }
    }

    /// `host` no longer takes part.
    pub(crate) fn withdraw(&mut self, host: &HostName, withdrawal: Withdrawal) {
        self.forget(host);
        self.withdrawn.insert(host.clone(), withdrawal);
    }

    /// `host` begins nothing for now.
    pub(crate) fn defer(&mut self, host: &HostName, deferral: Deferral) {
        self.deferred.insert(host.clone(), deferral);
    }

    /// `host` is no longer deferred.
    pub(crate) fn end_deferral(&mut self, host: &HostName) {
        self.deferred.remove(host);
    }

    /// Whatever was decided about `host` does not count any more.
    pub(crate) fn forget(&mut self, host: &HostName) {
        self.deferred.remove(host);
        self.keys.remove(host);
        self.approved.remove(host);
        self.withdrawn.remove(host);
        self.removed.remove(host);
    }

    /// `host` is gone; `announced` is the sequence of its last announcement.
    pub(crate) fn remove(&mut self, host: &HostName, announced: u64, at: DateTime<Utc>) {
        self.forget(host);
        self.removed.insert(host.clone(), Removal { announced, since: at, purged: false });
    }

    /// Where no host is approved automatically, nothing more needs to be known of one that was removed. Else its name is kept;
    /// of too many the oldest is forgotten.
    pub(crate) fn purged(&mut self, host: &HostName, auto_approve: bool) {
        if !auto_approve {
            self.removed.remove(host);
        } else if let Some(removal) = self.removed.get_mut(host) {
            removal.purged = true;
        }
        if self.removed.len() > ENROLLED_MAX {
            let purged = self.removed.iter().filter(|(_, removal)| removal.purged);
            let oldest = purged.min_by_key(|(_, removal)| removal.since).map(|(host, _)| host.clone());
            oldest.map(|oldest| self.removed.remove(&oldest));
        }
    }

    /// The setting that approves every host is off now.
    pub(crate) fn auto_approve_ended(&mut self) {
        let unpurged = self.removed.iter().filter(|(_, removal)| !removal.purged);
        self.removed = unpurged.map(|(host, removal)| (host.clone(), removal.clone())).collect();
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
        enrolment.approve(&hosts(0..1), "eve", DateTime::UNIX_EPOCH);
        assert_eq!(word(&enrolment), ["approved", "approved"]);
        enrolment.withdraw(host, withdrawal());
        assert_eq!(word(&enrolment), ["withdrawn", "withdrawn"]);
        let (actor, reason) = ("eve".to_owned(), "stolen".to_owned());
        assert_eq!(enrolment.of(host, true).left_out(host), Some(Reason::HostWithdrawn { actor, reason }));
        enrolment.approve(&hosts(0..1), "eve", DateTime::UNIX_EPOCH);
        assert_eq!(word(&enrolment), ["approved", "approved"]);
        enrolment.forget(host);
        assert_eq!(word(&enrolment), ["pending", "auto"]);
        assert!(enrolment.is_empty());
        enrolment.remove(host, 7, DateTime::UNIX_EPOCH);
        assert_eq!(word(&enrolment), ["pending", "pending"], "its name is not approved by itself");
        enrolment.approve(&hosts(0..1), "eve", DateTime::UNIX_EPOCH);
        assert_eq!(word(&enrolment), ["approved", "approved"]);
    }
}
