//! A host in a run: its statuses and the table of legal transitions.

use std::fmt;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, ApplicationName, GroupName, HostName, Outcome};
use serde::{Deserialize, Serialize};

use super::event::{Enlisted, HostEvent};
use super::place::Place;
use crate::left_out::is_default;
use crate::reason::Reason;
use crate::step::{Move, Stage};

/// The status of a host in a run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum HostStatus {
    /// Its `prepare` has not been seen in the control stream yet, or it is not its turn to be prepared.
    Pending,
    /// Its `prepare` has been sent.
    Preparing,
    /// It answered `done` to `prepare`.
    Prepared,
    /// It is its turn, and it waits for a slot.
    Waiting,
    /// It holds a slot; its node is drained, or uncordoned because the drain was given up.
    Draining,
    /// It holds a slot; its `upgrade` is sent, or about to be.
    Upgrading,
    /// It answered `reboot-required`; its `reboot` is sent, or about to be.
    Rebooting,
    /// It has answered `done`, and its node is being uncordoned.
    Recovering,
    Upgraded,
    Failed,
    /// It did not finish in time, or was given up.
    TimedOut,
    /// It was skipped, as the run started or once it turned out to be off.
    Skipped,
    /// An operator took it out of the run before its upgrade was sent.
    Cancelled,
    /// Its turn to be upgraded never came, or came to nothing.
    NotReached,
}

impl HostStatus {
    /// Every status.
    pub const ALL: [Self; 14] = [
        Self::Pending,
        Self::Preparing,
        Self::Prepared,
        Self::Waiting,
        Self::Draining,
        Self::Upgrading,
        Self::Rebooting,
        Self::Recovering,
        Self::Upgraded,
        Self::Failed,
        Self::TimedOut,
        Self::Skipped,
        Self::Cancelled,
        Self::NotReached,
    ];

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether nothing more happens to the host in this run.
    pub const fn is_final(self) -> bool {
        match self {
            Self::Upgraded
            | Self::Failed
            | Self::TimedOut
            | Self::Skipped
            | Self::Cancelled
            | Self::NotReached => true,
            Self::Pending
            | Self::Preparing
            | Self::Prepared
            | Self::Waiting
            | Self::Draining
            | Self::Upgrading
            | Self::Rebooting
            | Self::Recovering => false,
        }
    }

    /// Whether the host holds a slot and is being drained, upgraded, rebooted or uncordoned.
    pub const fn is_under_way(self) -> bool {
        self.stage().is_under_way()
    }

    /// Whether the host has part in the run and its upgrade has not been sent.
    pub const fn is_before_upgrade(self) -> bool {
        match self {
            Self::Pending | Self::Preparing | Self::Prepared | Self::Waiting | Self::Draining => true,
            Self::Upgrading
            | Self::Rebooting
            | Self::Recovering
            | Self::Upgraded
            | Self::Failed
            | Self::TimedOut
            | Self::Skipped
            | Self::Cancelled
            | Self::NotReached => false,
        }
    }

    /// Whether the host may be at work on a command of its step.
    pub const fn is_at_work(self) -> bool {
        matches!(self, Self::Upgrading | Self::Rebooting)
    }

    /// How far the host's step is.
    pub(crate) const fn stage(self) -> Stage {
        match self {
            Self::Pending | Self::Preparing => Stage::Before,
            Self::Prepared | Self::Waiting => Stage::Slot,
            Self::Draining => Stage::Drain,
            Self::Upgrading => Stage::Command,
            Self::Rebooting => Stage::Boot,
            Self::Recovering => Stage::Recover,
            Self::Upgraded
            | Self::Failed
            | Self::TimedOut
            | Self::Skipped
            | Self::Cancelled
            | Self::NotReached => Stage::Ended,
        }
    }

    /// The status after `event`: what is a run's own of the table of legal transitions. The rest is in [`Stage::after`].
    pub fn after(self, event: &HostEvent) -> Result<Self, IllegalTransition> {
        use HostStatus as S;
        let next = match (self, event) {
            (S::Pending, HostEvent::CommandSent { action: Action::Prepare, .. }) => Some(S::Preparing),
            (S::Pending, HostEvent::PrepareBegan) | (S::Preparing, HostEvent::PrepareFailed { .. }) => {
                Some(S::Pending)
            }
            (S::Preparing, HostEvent::Prepared) | (S::Waiting, HostEvent::TurnLost) => Some(S::Prepared),
            (
                S::Preparing | S::Prepared | S::Waiting | S::Draining | S::Upgrading | S::Rebooting,
                HostEvent::Failed { .. },
            ) => Some(S::Failed),
            (S::Pending | S::Preparing | S::Upgrading | S::Rebooting, HostEvent::TimedOut { .. }) => {
                Some(S::TimedOut)
            }
            (S::Upgrading, HostEvent::Overdue { .. }) => Some(S::Upgrading),
            (S::Pending | S::Preparing, HostEvent::Skipped { .. }) => Some(S::Skipped),
            (from, HostEvent::Cancelled { .. }) if from.is_before_upgrade() => Some(S::Cancelled),
            (from, HostEvent::NotReached { .. }) if from.is_before_upgrade() => Some(S::NotReached),
            (from, event) => moved_by(event).and_then(|by| from.moved(by)),
        };
        next.ok_or(IllegalTransition { from: self, event: event.name() })
    }

    /// The status after a move of the host's step.
    fn moved(self, by: Move) -> Option<Self> {
        Some(match self.stage().after(by)? {
            Stage::Before => return None,
            Stage::Slot if by == Move::Waits => Self::Waiting,
            Stage::Slot => Self::Prepared,
            Stage::Drain => Self::Draining,
            Stage::Command => Self::Upgrading,
            Stage::Boot => Self::Rebooting,
            Stage::Recover => Self::Recovering,
            Stage::Ended => Self::Upgraded,
        })
    }
}

/// What `event` does to the host's step; `None` if it is the run's own.
const fn moved_by(event: &HostEvent) -> Option<Move> {
    Some(match event {
        HostEvent::CommandSent { action, .. } => Move::Sent(*action),
        HostEvent::Waiting { .. } => Move::Waits,
        HostEvent::SlotGranted { drain, .. } => Move::Granted { drain: *drain },
        HostEvent::Drained => Move::Drained(Action::Upgrade),
        HostEvent::BackedOff { .. } => Move::BacksOff,
        HostEvent::RebootRequired => Move::NeedsReboot,
        HostEvent::Recovering => Move::Returns,
        HostEvent::Upgraded => Move::Done,
        HostEvent::PrepareBegan
        | HostEvent::PrepareFailed { .. }
        | HostEvent::Prepared
        | HostEvent::TurnLost
        | HostEvent::Overdue { .. }
        | HostEvent::Failed { .. }
        | HostEvent::TimedOut { .. }
        | HostEvent::Skipped { .. }
        | HostEvent::Cancelled { .. }
        | HostEvent::NotReached { .. } => return None,
    })
}

/// What a host is counted as beside the result of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedAs {
    /// An operator deferred it.
    Deferred,
    /// An operator gave it up.
    GivenUp,
    #[serde(untagged)]
    Status(HostStatus),
}

impl CountedAs {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deferred => "deferred",
            Self::GivenUp => "given-up",
            Self::Status(status) => status.as_str(),
        }
    }
}

impl fmt::Display for HostStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// An event that is illegal in a host's status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event} cannot happen to a host that is {from}")]
pub struct IllegalTransition {
    /// The host's status.
    pub from: HostStatus,
    /// The event's name.
    pub event: &'static str,
}

/// A host in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunHost {
    /// The worker application that serves it.
    pub application: ApplicationName,
    /// The group whose slot it needs.
    pub group: GroupName,
    pub status: HostStatus,
    /// When it entered this status.
    pub since: DateTime<Utc>,
    /// Why its drain was given up, why it was skipped, or why it did not succeed. What it waits for is not stored.
    pub reason: Option<Reason>,
    /// Whether its heartbeat was awaited when the run started, so that it may be off.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unheard: bool,
    /// The number of the run in which it had its last turn; 0 if it never had one. Its own run counts once it has had its turn there.
    #[serde(default, skip_serializing_if = "is_default")]
    pub last_turn: u64,
    /// Its attempts to prepare after which it is prepared again; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<HostBackoff>,
    /// The drains of its node that were given up in this run; absent if there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff: Option<HostBackoff>,
    /// Since when it has not answered `upgrade` in time: the run goes on without it while its step goes on. Absent if it has, or is
    /// through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overdue_since: Option<DateTime<Utc>>,
    /// Its current or last command; absent for a skipped host, and while it is not its turn to be prepared.
    pub command: Option<Issued>,
    /// What its worker answered to `upgrade` or `reboot` after its part in the run had ended; absent if it answered nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_answer: Option<LateAnswer>,
}

/// An answer that came after a host's part in a run had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LateAnswer {
    /// When it was seen.
    pub at: DateTime<Utc>,
    /// What it was.
    pub result: LateResult,
}

/// What a worker answered too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum LateResult {
    /// `done`: the host is upgraded after all.
    Done,
    /// `reboot-required`: nobody has told it to reboot.
    RebootRequired,
    Error,
}

impl LateResult {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl From<&Outcome> for LateResult {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::Done,
            Outcome::RebootRequired => Self::RebootRequired,
            Outcome::Error(_) => Self::Error,
        }
    }
}

/// What failed in a run and is tried again: a drain of its node, or `prepare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HostBackoff {
    /// How often.
    pub count: u32,
    /// When it may be tried again.
    pub until: DateTime<Utc>,
}

impl HostBackoff {
    /// After one more failure.
    fn after(before: Option<Self>, until: DateTime<Utc>) -> Self {
        Self { count: before.map_or(0, |before| before.count).saturating_add(1), until }
    }
}

/// A command that has been decided, whether or not it has been seen in the control stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Issued {
    pub action: Action,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Its sequence in the control stream; absent until it has been seen there.
    pub sequence: Option<u64>,
    /// When it was seen there; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<DateTime<Utc>>,
    /// Whether a reply has ended the host's step.
    pub answered: bool,
}

impl Issued {
    pub(crate) const fn first(action: Action) -> Self {
        Self { action, attempt: 1, sequence: None, sent_at: None, answered: false }
    }

    /// A command that was seen in the control stream at `at`.
    pub(crate) const fn sent(action: Action, attempt: u32, sequence: u64, at: DateTime<Utc>) -> Self {
        Self { action, attempt, sequence: Some(sequence), sent_at: Some(at), answered: false }
    }
}

impl RunHost {
    /// The host as it is enlisted; `is_told` if it is prepared at once.
    pub(super) fn enlist(entry: &Enlisted, last_turn: u64, at: DateTime<Utc>, is_told: bool) -> Self {
        let skipped = entry.skipped.is_some();
        Self {
            application: entry.application.clone(),
            group: entry.group.clone(),
            status: if skipped { HostStatus::Skipped } else { HostStatus::Pending },
            since: at,
            reason: entry.skipped.clone(),
            unheard: entry.unheard,
            last_turn,
            retry: None,
            backoff: None,
            overdue_since: None,
            command: (is_told && !skipped).then_some(Issued::first(Action::Prepare)),
            late_answer: None,
        }
    }

    /// Its place in the order of turns, as the host `name`.
    pub(crate) fn place(&self, name: &HostName) -> Place {
        Place { last_turn: self.last_turn, host: name.clone() }
    }

    /// Whether its current command has not been seen in the control stream yet.
    pub fn is_unsent(&self) -> bool {
        !self.status.is_final() && self.command.is_some_and(|command| command.sequence.is_none())
    }

    /// Whether it is to be prepared, and it is not its turn yet.
    pub fn is_untold(&self) -> bool {
        self.status == HostStatus::Pending && self.command.is_none()
    }

    /// Whether an operator gave it up.
    pub const fn is_given_up(&self) -> bool {
        matches!(self.reason, Some(Reason::GivenUp { .. }))
    }

    /// Whether it must wait at `now`, because the drain of its node was given up.
    pub fn is_backed_off(&self, now: DateTime<Utc>) -> bool {
        self.backoff.is_some_and(|backoff| now < backoff.until)
    }

    /// Whether it is being prepared, or is prepared and has not begun. One whose drain was given up is not until it may be drained again: it
    /// keeps nobody from being prepared.
    pub(super) fn is_preparing(&self, now: DateTime<Utc>) -> bool {
        match self.status {
            HostStatus::Pending | HostStatus::Preparing => !self.is_untold(),
            HostStatus::Prepared | HostStatus::Waiting => !self.is_backed_off(now),
            HostStatus::Draining
            | HostStatus::Upgrading
            | HostStatus::Rebooting
            | HostStatus::Recovering
            | HostStatus::Upgraded
            | HostStatus::Failed
            | HostStatus::TimedOut
            | HostStatus::Skipped
            | HostStatus::Cancelled
            | HostStatus::NotReached => false,
        }
    }

    /// Until when it must wait at `now` before it is prepared again; absent if it need not.
    pub(crate) fn retry_at(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.retry.map(|retry| retry.until).filter(|until| self.is_untold() && now < *until)
    }

    /// What it is counted as beside the result of the run.
    pub const fn counted_as(&self) -> CountedAs {
        match self.reason {
            Some(Reason::GivenUp { .. }) => CountedAs::GivenUp,
            Some(Reason::HostDeferred { .. }) => CountedAs::Deferred,
            Some(_) | None => CountedAs::Status(self.status),
        }
    }

    fn answered(&self) -> Option<Issued> {
        self.command.map(|command| Issued { answered: true, ..command })
    }

    /// The command that its worker has left unanswered at the end of its step, and may still answer.
    pub(crate) fn left_unanswered(&self) -> Option<Issued> {
        let is_of_step = |command: &Issued| command.action != Action::Prepare;
        self.unanswered().filter(is_of_step).filter(|_| self.status == HostStatus::TimedOut)
    }

    /// Its command, if that was seen in the control stream and no reply has ended the host's step.
    pub fn unanswered(&self) -> Option<Issued> {
        self.command.filter(|command| command.sequence.is_some() && !command.answered)
    }

    /// Its command, if that was seen in the control stream and may still be answered in time.
    pub(crate) fn pending_reply(&self) -> Option<Issued> {
        let is_late = |command: &Issued| self.overdue_since.is_some() && command.action == Action::Upgrade;
        self.unanswered().filter(|command| !is_late(command))
    }

    /// The host after `event`.
    pub(super) fn after(&self, event: &HostEvent, at: DateTime<Utc>) -> Result<Self, IllegalTransition> {
        let status = self.status.after(event)?;
        let (command, reason) = match event {
            HostEvent::CommandSent { action, attempt, sequence } => {
                (Some(Issued::sent(*action, *attempt, *sequence, at)), None)
            }
            HostEvent::PrepareBegan => {
                let attempt = self.retry.map_or(0, |retry| retry.count).saturating_add(1);
                (Some(Issued { attempt, ..Issued::first(Action::Prepare) }), None)
            }
            HostEvent::PrepareFailed { reason, .. } => (None, Some(reason.clone())),
            HostEvent::SlotGranted { drain: false, .. } | HostEvent::Drained => {
                (Some(Issued::first(Action::Upgrade)), None)
            }
            HostEvent::SlotGranted { drain: true, .. } => (self.command, None),
            HostEvent::BackedOff { reason, .. } => (self.command, Some(reason.clone())),
            HostEvent::RebootRequired => (Some(Issued::first(Action::Reboot)), None),
            HostEvent::Prepared | HostEvent::Recovering | HostEvent::Upgraded => (self.answered(), None),
            HostEvent::Failed { reason } => (self.answered(), Some(reason.clone())),
            HostEvent::Waiting { .. } | HostEvent::TurnLost | HostEvent::Overdue { .. } => {
                (self.command, None)
            }
            HostEvent::TimedOut { reason }
            | HostEvent::Skipped { reason }
            | HostEvent::Cancelled { reason }
            | HostEvent::NotReached { reason } => (self.command, Some(reason.clone())),
        };
        let since = if status == self.status { self.since } else { at };
        let overdue_since = self.overdue_since.filter(|_| status.is_at_work());
        let mut next = Self { status, since, reason, overdue_since, command, ..self.clone() };
        if let HostEvent::PrepareFailed { until, .. } = event {
            next.retry = Some(HostBackoff::after(self.retry, *until));
            // It has answered, so that it is not off.
            next.unheard = false;
        } else if let HostEvent::BackedOff { until, .. } = event {
            next.backoff = Some(HostBackoff::after(self.backoff, *until));
        } else if let HostEvent::Overdue { .. } = event {
            next.overdue_since = Some(at);
        }
        Ok(next)
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_calendar::Duration;
    use os_upgrade_protocol::GroupName;

    use super::*;
    use crate::config::LockProvider;

    /// One event of every kind, by its name in the table below.
    fn events() -> Vec<(&'static str, HostEvent)> {
        let sent = |action| HostEvent::CommandSent { action, attempt: 1, sequence: 7 };
        let reason = Reason::RunTimedOut { waited_for: None };
        let granted = |drain| HostEvent::SlotGranted {
            group: GroupName::new("default").unwrap(),
            provider: LockProvider::Embedded,
            drain,
        };
        vec![
            ("prepare sent", sent(Action::Prepare)),
            ("upgrade sent", sent(Action::Upgrade)),
            ("reboot sent", sent(Action::Reboot)),
            ("prepare began", HostEvent::PrepareBegan),
            (
                "prepare failed",
                HostEvent::PrepareFailed { until: DateTime::UNIX_EPOCH, reason: reason.clone() },
            ),
            ("prepared", HostEvent::Prepared),
            ("waiting", HostEvent::Waiting { reason: reason.clone() }),
            ("turn lost", HostEvent::TurnLost),
            ("granted", granted(false)),
            ("granted for a drain", granted(true)),
            ("drained", HostEvent::Drained),
            ("backed off", HostEvent::BackedOff { until: DateTime::UNIX_EPOCH, reason: reason.clone() }),
            ("overdue", HostEvent::Overdue { after: Duration::from_secs(60) }),
            ("recovering", HostEvent::Recovering),
            ("reboot required", HostEvent::RebootRequired),
            ("upgraded", HostEvent::Upgraded),
            ("failed", HostEvent::Failed { reason: reason.clone() }),
            ("timed out", HostEvent::TimedOut { reason: reason.clone() }),
            ("skipped", HostEvent::Skipped { reason: reason.clone() }),
            ("cancelled", HostEvent::Cancelled { reason: reason.clone() }),
            ("not reached", HostEvent::NotReached { reason }),
        ]
    }

    /// Every legal transition; all others are illegal.
    const TABLE: &[(HostStatus, &str, HostStatus)] = {
        use HostStatus::*;
        &[
            (Pending, "prepare began", Pending),
            (Pending, "prepare sent", Preparing),
            (Pending, "timed out", TimedOut),
            (Pending, "cancelled", Cancelled),
            (Pending, "not reached", NotReached),
            (Pending, "skipped", Skipped),
            (Preparing, "prepared", Prepared),
            (Preparing, "prepare failed", Pending),
            (Preparing, "failed", Failed),
            (Preparing, "timed out", TimedOut),
            (Preparing, "cancelled", Cancelled),
            (Preparing, "not reached", NotReached),
            (Preparing, "skipped", Skipped),
            (Prepared, "waiting", Waiting),
            (Prepared, "granted", Upgrading),
            (Prepared, "granted for a drain", Draining),
            (Prepared, "failed", Failed),
            (Prepared, "cancelled", Cancelled),
            (Prepared, "not reached", NotReached),
            (Waiting, "waiting", Waiting),
            (Waiting, "turn lost", Prepared),
            (Waiting, "granted", Upgrading),
            (Waiting, "granted for a drain", Draining),
            (Waiting, "failed", Failed),
            (Waiting, "cancelled", Cancelled),
            (Waiting, "not reached", NotReached),
            (Draining, "drained", Upgrading),
            (Draining, "backed off", Prepared),
            (Draining, "failed", Failed),
            (Draining, "cancelled", Cancelled),
            (Draining, "not reached", NotReached),
            (Upgrading, "upgrade sent", Upgrading),
            (Upgrading, "overdue", Upgrading),
            (Upgrading, "recovering", Recovering),
            (Upgrading, "reboot required", Rebooting),
            (Upgrading, "upgraded", Upgraded),
            (Upgrading, "failed", Failed),
            (Upgrading, "timed out", TimedOut),
            (Rebooting, "reboot sent", Rebooting),
            (Rebooting, "recovering", Recovering),
            (Rebooting, "upgraded", Upgraded),
            (Recovering, "upgraded", Upgraded),
            (Rebooting, "failed", Failed),
            (Rebooting, "timed out", TimedOut),
        ]
    };

    #[test]
    fn only_listed_transitions_are_legal() {
        for from in HostStatus::ALL {
            for (name, event) in events() {
                let expected = TABLE
                    .iter()
                    .find(|(f, e, _)| *f == from && *e == name)
                    .map(|(_, _, to)| *to)
                    .ok_or(IllegalTransition { from, event: event.name() });
                assert_eq!(from.after(&event), expected, "{from} + {name}");
            }
        }
    }

    #[test]
    fn final_statuses_accept_no_event() {
        for (index, status) in HostStatus::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, index);
            assert_eq!(serde_json::to_string(&status).unwrap(), format!("\"{status}\""));
            let ends = events().iter().all(|(_, event)| status.after(event).is_err());
            assert_eq!(ends, status.is_final(), "{status}");
        }
    }
}
