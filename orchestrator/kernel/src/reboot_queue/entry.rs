//! An entry of the reboot queue: its statuses and the table of legal transitions.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, GroupName, HostName};
use serde::{Deserialize, Serialize};

use super::attempt::{Attempt, AttemptStage};
use crate::about::AboutCommand;
use crate::config::LockProvider;
use crate::left_out::is_default;
use crate::owner::Owner;
use crate::reason::Reason;
use crate::run::Issued;
use crate::step::{Move, Stage};

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
    /// When it was added.
    pub added_at: DateTime<Utc>,
    /// Whether it was queued without an operator, because its host needs a reboot.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: bool,
    pub status: EntryStatus,
    /// When it entered this status.
    pub last_transition: DateTime<Utc>,
    /// How many drains in a row were given up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub backoff_count: u32,
    /// Until when it does not start again; absent if it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_expire: Option<DateTime<Utc>>,
    /// Whether an operator cancelled it while its host rebooted: that cannot be undone, so it ends when the host is back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cancel_requested: bool,
    /// Why its drain was given up, or why its host is not back. Absent if nothing is known to be wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The boot that its host is to leave, once it is told to reboot. Before that, the boot that it has left for an earlier
    /// entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Its `reboot`, once its host is told to reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Issued>,
    /// The operator's command that reboots its host, once that is due; absent if its worker does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
}

/// What happens to an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::EnumDiscriminants)]
#[strum_discriminants(
    name(EntryStep),
    derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames),
    serde(rename_all = "kebab-case"),
    strum(serialize_all = "kebab-case")
)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum EntryEvent {
    /// It waits for its slot, which is requested.
    Waiting {
        /// What it waited for at first.
        reason: Reason,
    },
    /// Its host's slot is held, and its drain begins.
    Started {
        group: GroupName,
        /// Who granted the slot.
        provider: LockProvider,
        /// Whether its node is drained before it reboots.
        #[serde(default, skip_serializing_if = "is_default")]
        drain: bool,
    },
    /// Its drain was given up; it does not start again before `until`.
    BackedOff {
        /// When it may start again.
        until: DateTime<Utc>,
        /// Why its drain was given up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
    },
    /// Its host is told to reboot.
    RebootBegan {
        /// The boot that the host is to leave: it does not reboot a second time.
        boot_id: String,
    },
    /// Its host is to be rebooted by the operator's command.
    AttemptDue {
        /// What is rebooted: the name of the Kubernetes node, or of the host if it is none.
        node: String,
        /// The boot that it is to leave, if that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_id: Option<String>,
    },
    /// The operator's command is about to be run.
    AttemptBegan,
    /// The operator's command says that the reboot has begun.
    AttemptSucceeded,
    /// Whether the operator's command has begun the reboot is not known.
    AttemptUnknown {
        /// Why not.
        reason: Reason,
    },
    /// Its command was seen in the control stream.
    CommandSent {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The command's sequence in the control stream.
        sequence: u64,
    },
    /// Its host's worker answered with an error, or the operator's command failed. Whether the host has rebooted is not known.
    Failed {
        /// The reason, as it is journaled.
        reason: Reason,
    },
    /// An operator cancelled it.
    Cancelled {
        actor: String,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It was cancelled while its host was to reboot, and the host has not: what it has begun is undone.
    NotRebooted,
    /// What it had begun before it was cancelled is undone, so it is removed.
    Removed,
    /// Its host has rebooted and is healthy. Its node is uncordoned once that is ready.
    Booted {
        /// Whether the operator's command says so. If it does, the boot that the node reports means nothing.
        #[serde(default, skip_serializing_if = "is_default")]
        checked: bool,
    },
    /// Its host has rebooted and is healthy, so it is removed.
    Rebooted,
    /// An operator gave it up, so it is removed. Its host's slot stays held.
    GivenUp {
        actor: String,
        /// Why, as the operator says.
        reason: String,
    },
}

impl EntryEvent {
    /// The event's name, as in its JSON.
    pub fn name(&self) -> &'static str {
        EntryStep::from(self).into()
    }

    /// The command that was seen in the control stream.
    pub(super) const fn command(&self) -> Option<AboutCommand> {
        match self {
            Self::CommandSent { sequence, .. } => {
                Some(AboutCommand { sequence: *sequence, seen: Some(Action::Reboot) })
            }
            Self::Waiting { .. }
            | Self::Started { .. }
            | Self::BackedOff { .. }
            | Self::RebootBegan { .. }
            | Self::AttemptDue { .. }
            | Self::AttemptBegan
            | Self::AttemptSucceeded
            | Self::AttemptUnknown { .. }
            | Self::Failed { .. }
            | Self::Cancelled { .. }
            | Self::NotRebooted
            | Self::Removed
            | Self::Booted { .. }
            | Self::Rebooted
            | Self::GivenUp { .. } => None,
        }
    }

    /// The reason that it holds.
    pub const fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Waiting { reason } | Self::Failed { reason } | Self::AttemptUnknown { reason } => {
                Some(reason)
            }
            Self::BackedOff { reason, .. } => reason.as_ref(),
            Self::Cancelled { .. }
            | Self::GivenUp { .. }
            | Self::Started { .. }
            | Self::RebootBegan { .. }
            | Self::AttemptDue { .. }
            | Self::AttemptBegan
            | Self::AttemptSucceeded
            | Self::CommandSent { .. }
            | Self::NotRebooted
            | Self::Removed
            | Self::Booted { .. }
            | Self::Rebooted => None,
        }
    }

    /// The operator who caused it, if one did, and why, as that operator says.
    fn operator(&self) -> Option<(&str, Option<&str>)> {
        match self {
            Self::Cancelled { actor, reason } => Some((actor, reason.as_deref())),
            Self::GivenUp { actor, reason } => Some((actor, Some(reason))),
            Self::Waiting { .. }
            | Self::Started { .. }
            | Self::BackedOff { .. }
            | Self::RebootBegan { .. }
            | Self::AttemptDue { .. }
            | Self::AttemptBegan
            | Self::AttemptSucceeded
            | Self::AttemptUnknown { .. }
            | Self::CommandSent { .. }
            | Self::Failed { .. }
            | Self::NotRebooted
            | Self::Removed
            | Self::Booted { .. }
            | Self::Rebooted => None,
        }
    }

    /// The operator, if one caused it.
    pub fn actor(&self) -> Option<&str> {
        self.operator().map(|(actor, _)| actor)
    }

    /// Why an operator caused it, as that operator says.
    pub fn operators_reason(&self) -> Option<&str> {
        self.operator().and_then(|(_, reason)| reason)
    }
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
    pub(super) const fn queued(host: HostName, at: DateTime<Utc>) -> Self {
        Self {
            host,
            added_at: at,
            required: false,
            status: EntryStatus::Queued,
            last_transition: at,
            backoff_count: 0,
            backoff_expire: None,
            cancel_requested: false,
            reason: None,
            boot_id: None,
            command: None,
            attempt: None,
        }
    }

    /// What it is as an owner, at `index`.
    pub const fn owner(&self, index: u64) -> Owner {
        Owner::Entry { index, added_at: self.added_at.timestamp() }
    }

    /// How far its step is. One that has failed stays where it is until somebody looks.
    pub(crate) fn stage(&self) -> Stage {
        match self.status {
            EntryStatus::Queued => Stage::Slot,
            EntryStatus::Draining => Stage::Drain,
            EntryStatus::Rebooting if self.has_booted() => Stage::Recover,
            EntryStatus::Rebooting => Stage::Boot,
            EntryStatus::Cancelled => Stage::Ended,
        }
    }

    /// Whether it waits for the end of its backoff at `now`.
    pub fn is_backed_off(&self, now: DateTime<Utc>) -> bool {
        self.backoff_expire.is_some_and(|expire| now < expire)
    }

    /// Its command, if that has not been seen in the control stream yet.
    pub fn unsent(&self) -> Option<Issued> {
        self.command.filter(|command| command.sequence.is_none())
    }

    /// Whether its host is about to be told to reboot.
    pub fn is_unsent(&self) -> bool {
        self.unsent().is_some() || self.is_at(AttemptStage::Due)
    }

    /// Whether the operator's command is at this stage.
    pub fn is_at(&self, stage: AttemptStage) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.stage == stage)
    }

    /// Its command, if that was seen in the control stream and has not been answered.
    pub fn unanswered(&self) -> Option<Issued> {
        self.command.filter(|command| command.sequence.is_some() && !command.answered)
    }

    /// Whether its host's worker answered with an error, or the operator's command failed: nothing more is tried by itself.
    pub fn has_failed(&self) -> bool {
        (self.is_answered() && self.reason.is_some()) || self.is_at(AttemptStage::Failed)
    }

    /// Whether its host has rebooted, and its node is not uncordoned yet.
    pub fn has_booted(&self) -> bool {
        (self.is_answered() && self.reason.is_none()) || self.is_at(AttemptStage::Booted)
    }

    fn is_answered(&self) -> bool {
        self.command.is_some_and(|command| command.answered)
    }

    fn answered(&self) -> Option<Issued> {
        self.command.map(|command| Issued { answered: true, ..command })
    }

    pub(super) fn without_backoff(&self) -> Self {
        Self { backoff_count: 0, backoff_expire: None, ..self.clone() }
    }

    /// The entry after a restoration at `at`. A command to a worker is sent once more: one that has left the boot does nothing again.
    pub(super) fn restored(&self, at: DateTime<Utc>) -> Self {
        let again =
            |command: Issued| Issued { attempt: command.attempt + 1, ..Issued::first(Action::Reboot) };
        let attempt = self.attempt.as_ref().map(|attempt| attempt.restored(at));
        let reason = self.reason.clone().filter(|_| attempt.is_some());
        Self { command: self.command.map(again), attempt, reason, ..self.clone() }
    }

    /// The entry, whose host reboots by the operator's command, after `event` about that.
    fn attempted(&self, event: &EntryEvent, at: DateTime<Utc>) -> Result<Self, IllegalEntryEvent> {
        use AttemptStage as A;
        let illegal = || IllegalEntryEvent { from: self.status, event: event.name() };
        let attempt = self.attempt.as_ref().ok_or_else(illegal)?;
        let stage = match (attempt.stage, event) {
            (A::Unknown, EntryEvent::AttemptDue { node, .. }) => {
                return Ok(Self { attempt: Some(attempt.again(node, at)), reason: None, ..self.clone() });
            }
            (A::Due, EntryEvent::AttemptBegan) => A::Running,
            (A::Running, EntryEvent::AttemptSucceeded) => A::Succeeded,
            (A::Running, EntryEvent::AttemptUnknown { .. }) => A::Unknown,
            (A::Running, EntryEvent::Failed { .. }) => A::Failed,
            (A::Due | A::Succeeded | A::Unknown | A::Failed, EntryEvent::Booted { .. }) => A::Booted,
            _ => return Err(illegal()),
        };
        let reason = event.reason().cloned();
        Ok(Self { attempt: Some(attempt.to(stage, at)), reason, ..self.clone() })
    }

    /// What `event` does to its step; `None` if it is the entry's own.
    const fn moved_by(&self, event: &EntryEvent) -> Option<Move> {
        Some(match event {
            EntryEvent::Waiting { .. } => Move::Waits,
            // Where nothing is drained, its host is told to reboot at once.
            EntryEvent::Started { .. } => Move::Granted { drain: true },
            EntryEvent::BackedOff { .. } => Move::BacksOff,
            EntryEvent::RebootBegan { .. } => Move::Drained(Action::Reboot),
            EntryEvent::AttemptDue { .. } if self.attempt.is_none() => Move::Drained(Action::Reboot),
            EntryEvent::CommandSent { .. } => Move::Sent(Action::Reboot),
            EntryEvent::Booted { .. } => Move::Returns,
            EntryEvent::Rebooted => Move::Done,
            EntryEvent::AttemptDue { .. }
            | EntryEvent::AttemptBegan
            | EntryEvent::AttemptSucceeded
            | EntryEvent::AttemptUnknown { .. }
            | EntryEvent::Failed { .. }
            | EntryEvent::Cancelled { .. }
            | EntryEvent::NotRebooted
            | EntryEvent::Removed
            | EntryEvent::GivenUp { .. } => return None,
        })
    }

    /// The entry after `event`; `None` if that ends it. Which moves of its step are legal is in [`Stage::after`].
    pub(super) fn after(
        &self,
        event: &EntryEvent,
        at: DateTime<Utc>,
    ) -> Result<Option<Self>, IllegalEntryEvent> {
        use EntryStatus as S;
        let illegal = || IllegalEntryEvent { from: self.status, event: event.name() };
        if let Some(by) = self.moved_by(event) {
            self.stage().after(by).ok_or_else(illegal)?;
        }
        let to = |status| Self { status, last_transition: at, reason: None, ..self.clone() };
        let next = match (self.status, event) {
            (S::Queued, EntryEvent::Waiting { .. }) => Self { reason: None, ..self.clone() },
            (S::Queued, EntryEvent::Started { .. }) => Self { backoff_expire: None, ..to(S::Draining) },
            (S::Draining, EntryEvent::BackedOff { until, reason }) => Self {
                backoff_count: self.backoff_count.saturating_add(1),
                backoff_expire: Some(*until),
                reason: reason.clone(),
                ..to(S::Queued)
            },
            (S::Draining, EntryEvent::RebootBegan { boot_id }) => Self {
                boot_id: Some(boot_id.clone()),
                command: Some(Issued::first(Action::Reboot)),
                ..to(S::Rebooting)
            },
            (S::Draining, EntryEvent::AttemptDue { node, boot_id }) => {
                Self { boot_id: boot_id.clone(), attempt: Some(Attempt::first(node, at)), ..to(S::Rebooting) }
            }
            (S::Rebooting, EntryEvent::CommandSent { attempt, sequence }) => {
                Self { command: Some(Issued::sent(Action::Reboot, *attempt, *sequence, at)), ..self.clone() }
            }
            (
                S::Rebooting,
                EntryEvent::AttemptDue { .. }
                | EntryEvent::AttemptBegan
                | EntryEvent::AttemptSucceeded
                | EntryEvent::AttemptUnknown { .. },
            ) => self.attempted(event, at)?,
            (S::Rebooting, EntryEvent::Failed { .. } | EntryEvent::Booted { .. })
                if self.attempt.is_some() =>
            {
                self.attempted(event, at)?
            }
            (S::Rebooting, EntryEvent::Failed { reason }) => {
                Self { command: self.answered(), reason: Some(reason.clone()), ..self.clone() }
            }
            (S::Rebooting, EntryEvent::Booted { .. }) => {
                Self { command: self.answered(), reason: None, ..self.clone() }
            }
            (S::Queued | S::Draining, EntryEvent::Cancelled { .. }) => to(S::Cancelled),
            // Its host has not been told anything yet.
            (S::Rebooting, EntryEvent::Cancelled { .. }) if self.is_at(AttemptStage::Due) => {
                Self { attempt: None, ..to(S::Cancelled) }
            }
            (S::Rebooting, EntryEvent::Cancelled { .. }) => Self { cancel_requested: true, ..self.clone() },
            (S::Rebooting, EntryEvent::NotRebooted) if self.cancel_requested && self.attempt.is_some() => {
                Self { attempt: None, ..to(S::Cancelled) }
            }
            (S::Draining | S::Rebooting, EntryEvent::GivenUp { .. })
            | (S::Rebooting, EntryEvent::Rebooted)
            | (S::Cancelled, EntryEvent::Removed) => return Ok(None),
            _ => return Err(illegal()),
        };
        Ok(Some(next))
    }
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

    fn started() -> EntryEvent {
        let group = GroupName::new("default").unwrap();
        EntryEvent::Started { group, provider: LockProvider::Embedded, drain: false }
    }

    /// Every legal transition, with the status after it; all others are illegal.
    #[test]
    fn only_listed_transitions_are_legal() {
        use EntryStatus::*;
        let actor = || "eve".to_owned();
        let events = [
            EntryEvent::Waiting { reason: Reason::RunTimedOut { waited_for: None } },
            started(),
            EntryEvent::BackedOff { until: at(9), reason: None },
            EntryEvent::RebootBegan { boot_id: "one".to_owned() },
            EntryEvent::CommandSent { attempt: 1, sequence: 7 },
            EntryEvent::Failed { reason: Reason::RunTimedOut { waited_for: None } },
            EntryEvent::Cancelled { actor: actor(), reason: None },
            EntryEvent::NotRebooted,
            EntryEvent::Removed,
            EntryEvent::Booted { checked: false },
            EntryEvent::Rebooted,
            EntryEvent::GivenUp { actor: actor(), reason: "burnt".to_owned() },
        ];
        let table = [
            (Queued, "waiting", Some(Queued)),
            (Queued, "started", Some(Draining)),
            (Queued, "cancelled", Some(Cancelled)),
            (Draining, "backed-off", Some(Queued)),
            (Draining, "reboot-began", Some(Rebooting)),
            (Draining, "cancelled", Some(Cancelled)),
            (Draining, "given-up", None),
            (Rebooting, "command-sent", Some(Rebooting)),
            (Rebooting, "failed", Some(Rebooting)),
            (Rebooting, "cancelled", Some(Rebooting)),
            (Rebooting, "booted", Some(Rebooting)),
            (Rebooting, "rebooted", None),
            (Rebooting, "given-up", None),
            (Cancelled, "removed", None),
        ];
        for from in EntryStatus::ALL {
            for event in &events {
                let name = event.name();
                let expected = table.iter().find(|(status, event, _)| (*status, *event) == (from, name));
                let after = entry(from).after(event, at(1)).map(|next| next.map(|next| next.status));
                let illegal = IllegalEntryEvent { from, event: name };
                assert_eq!(after, expected.map(|(_, _, to)| *to).ok_or(illegal), "{from:?} {name}");
            }
        }
    }

    /// The stages of a step are in one table, and an entry moves as that says: once its host is back, nothing is sent any more.
    #[test]
    fn an_entry_moves_with_its_step() {
        let after = |entry: &Entry, event: EntryEvent| entry.after(&event, at(1));
        let by_worker =
            after(&entry(EntryStatus::Draining), EntryEvent::RebootBegan { boot_id: "one".to_owned() });
        let due = EntryEvent::AttemptDue { node: "n1".to_owned(), boot_id: None };
        let by_command = after(&entry(EntryStatus::Draining), due.clone());
        let sent = EntryEvent::CommandSent { attempt: 1, sequence: 7 };
        let booted = EntryEvent::Booted { checked: false };
        for rebooting in [by_worker.unwrap().unwrap(), by_command.unwrap().unwrap()] {
            assert_eq!(rebooting.stage(), Stage::Boot);
            let back = after(&rebooting, booted.clone()).unwrap().unwrap();
            assert_eq!((back.status, back.stage()), (EntryStatus::Rebooting, Stage::Recover));
            for event in [&sent, &booted, &due] {
                let illegal = IllegalEntryEvent { from: EntryStatus::Rebooting, event: event.name() };
                assert_eq!(after(&back, event.clone()), Err(illegal));
            }
            assert_eq!(after(&back, EntryEvent::Rebooted), Ok(None));
        }
        let group = GroupName::new("default").unwrap();
        for drain in [false, true] {
            let started =
                EntryEvent::Started { group: group.clone(), provider: LockProvider::Embedded, drain };
            let draining = after(&entry(EntryStatus::Queued), started).unwrap().unwrap();
            assert_eq!(draining.stage(), Stage::Drain);
        }
    }

    #[test]
    fn an_entry_is_known_by_its_id() {
        let owner = entry(EntryStatus::Queued).owner(12);
        assert_eq!((owner.id().as_str(), owner.entry()), ("rq-12-1728000000", Some(12)));
    }

    #[test]
    fn backoff_is_counted_until_it_is_reset() {
        let drained = |entry: &Entry, minute| {
            let draining = entry.after(&started(), at(minute)).unwrap().unwrap();
            assert!(!draining.is_backed_off(at(minute)));
            let backed_off = EntryEvent::BackedOff { until: at(minute + 5), reason: None };
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
