//! An entry of the reboot queue: its statuses and the table of legal transitions.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use crate::config::is_false;

/// The status of an entry, with the words of CKE's reboot queue.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum EntryStatus {
    /// It waits for its turn, or for the end of its backoff.
    Queued,
    /// It holds its host's slot; its node is drained if there is one.
    Draining,
    /// Its host reboots.
    Rebooting,
    /// An operator cancelled it before its host rebooted; what it has begun is undone.
    Cancelled,
}

impl EntryStatus {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Draining, Self::Rebooting, Self::Cancelled];

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether its host is drained or reboots, so that it counts against the limits.
    pub const fn is_under_way(self) -> bool {
        matches!(self, Self::Draining | Self::Rebooting)
    }
}

/// A reboot that was requested.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Entry {
    /// The host that is to reboot.
    pub host: HostName,
    /// Its status.
    pub status: EntryStatus,
    /// When it entered this status.
    pub last_transition: DateTime<Utc>,
    /// How many drains in a row were given up.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub backoff_count: u32,
    /// Until when it does not start again; absent if it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_expire: Option<DateTime<Utc>>,
    /// Whether an operator cancelled it while its host rebooted: that cannot be undone, so it ends when the host is back.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cancel_requested: bool,
}

/// What happens to an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum EntryEvent {
    /// Its host's slot is held, and its drain begins.
    Started,
    /// Its drain was given up; it does not start again before `until`.
    BackedOff {
        /// When it may start again.
        until: DateTime<Utc>,
    },
    /// Its host is told to reboot.
    RebootBegan,
    /// An operator cancelled it.
    Cancelled,
    /// It is over: its host is back, an operator gave it up, or what it had begun before it was cancelled is undone.
    Ended,
}

/// An event that is illegal in an entry's status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event} cannot happen to an entry that is {}", from.as_str())]
pub struct IllegalEntryEvent {
    /// The entry's status.
    pub from: EntryStatus,
    /// The event's name.
    pub event: &'static str,
}

impl Entry {
    pub(super) fn queued(host: HostName, at: DateTime<Utc>) -> Self {
        Self {
            host,
            status: EntryStatus::Queued,
            last_transition: at,
            backoff_count: 0,
            backoff_expire: None,
            cancel_requested: false,
        }
    }

    /// Whether it waits for the end of its backoff at `now`.
    pub fn is_backed_off(&self, now: DateTime<Utc>) -> bool {
        self.backoff_expire.is_some_and(|expire| now < expire)
    }

    pub(super) fn without_backoff(&self) -> Self {
        Self { backoff_count: 0, backoff_expire: None, ..self.clone() }
    }

    /// The entry after `event`; `None` if that ends it.
    pub(super) fn after(
        &self,
        event: &EntryEvent,
        at: DateTime<Utc>,
    ) -> Result<Option<Self>, IllegalEntryEvent> {
        use EntryStatus as S;
        let to = |status| Self { status, last_transition: at, ..self.clone() };
        let next = match (self.status, event) {
            (S::Queued, EntryEvent::Started) => Self { backoff_expire: None, ..to(S::Draining) },
            (S::Draining, EntryEvent::BackedOff { until }) => Self {
                backoff_count: self.backoff_count.saturating_add(1),
                backoff_expire: Some(*until),
                ..to(S::Queued)
            },
            (S::Draining, EntryEvent::RebootBegan) => to(S::Rebooting),
            (S::Queued | S::Draining, EntryEvent::Cancelled) => to(S::Cancelled),
            (S::Rebooting, EntryEvent::Cancelled) => Self { cancel_requested: true, ..self.clone() },
            (S::Rebooting | S::Cancelled, EntryEvent::Ended) => return Ok(None),
            (from, event) => return Err(IllegalEntryEvent { from, event: event.into() }),
        };
        Ok(Some(next))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::minutes(minute)
    }

    fn entry(status: EntryStatus) -> Entry {
        Entry { status, ..Entry::queued(HostName::new("h01").unwrap(), at(0)) }
    }

    /// Every legal transition, with the status after it; all others are illegal.
    #[test]
    fn only_listed_transitions_are_legal() {
        use EntryStatus::*;
        let events = [
            EntryEvent::Started,
            EntryEvent::BackedOff { until: at(9) },
            EntryEvent::RebootBegan,
            EntryEvent::Cancelled,
            EntryEvent::Ended,
        ];
        let table = [
            (Queued, "started", Some(Draining)),
            (Queued, "cancelled", Some(Cancelled)),
            (Draining, "backed-off", Some(Queued)),
            (Draining, "reboot-began", Some(Rebooting)),
            (Draining, "cancelled", Some(Cancelled)),
            (Rebooting, "cancelled", Some(Rebooting)),
            (Rebooting, "ended", None),
            (Cancelled, "ended", None),
        ];
        for from in EntryStatus::ALL {
            for event in &events {
                let name: &'static str = event.into();
                let expected = table.iter().find(|(status, event, _)| (*status, *event) == (from, name));
                let after = entry(from).after(event, at(1)).map(|next| next.map(|next| next.status));
                let illegal = IllegalEntryEvent { from, event: name };
                assert_eq!(after, expected.map(|(_, _, to)| *to).ok_or(illegal), "{from:?} {name}");
            }
        }
    }

    #[test]
    fn backoff_is_counted_until_it_is_reset() {
        let drained = |entry: &Entry, minute| {
            let draining = entry.after(&EntryEvent::Started, at(minute)).unwrap().unwrap();
            assert!(!draining.is_backed_off(at(minute)));
            let backed_off = EntryEvent::BackedOff { until: at(minute + 5) };
            draining.after(&backed_off, at(minute + 1)).unwrap().unwrap()
        };
        let once = drained(&entry(EntryStatus::Queued), 0);
        let twice = drained(&once, 10);
        assert_eq!((once.backoff_count, twice.backoff_count), (1, 2));
        assert!(twice.is_backed_off(at(14)) && !twice.is_backed_off(at(15)));
        let countless = Entry { backoff_count: u32::MAX, ..entry(EntryStatus::Queued) };
        assert_eq!(drained(&countless, 0).backoff_count, u32::MAX);
        let reset = twice.without_backoff();
        assert_eq!((reset.backoff_count, reset.is_backed_off(at(11))), (0, false));
    }
}
