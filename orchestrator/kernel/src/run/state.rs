//! A run: one pass through the hosts of a site, with the state of each host in it.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use imbl::{OrdMap, OrdSet};
use os_upgrade_calendar::Duration;
use os_upgrade_protocol::{Action, GroupName, HostName, RunId};
use serde::{Deserialize, Serialize};
use strum::VariantNames as _;

use super::event::{Enlisted, HostEvent};
use super::host::{CountedAs, HostStatus, IllegalTransition, LateAnswer, LateResult, RunHost};
use super::index::Index;
use super::place::Place;
use super::turns::Turns;
use crate::config::Rollout;
use crate::left_out::is_default;
use crate::reboot_queue::Backoff;

/// One pass through the hosts of a site. Cheap to clone: copies share the hosts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", from = "StoredRun", into = "StoredRun")]
pub struct Run {
    pub id: RunId,
    /// Its number among the runs of the site, from 1; 0 if it started before runs were counted.
    pub number: u64,
    /// What started it.
    pub trigger: Trigger,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// When it ends at the latest.
    pub not_after: DateTime<Utc>,
    /// How it proceeds through the hosts.
    pub rollout: Rollout,
    /// Whether hosts are being prepared or upgraded.
    pub phase: Phase,
    /// Why no further host is started; absent while hosts are started.
    pub stopping: Option<StopCause>,
    /// When and how it ended; absent while it is active.
    pub ended: Option<Ended>,
    hosts: OrdMap<HostName, RunHost>,
    index: Index,
}

/// A run as it is serialized; the index is rebuilt when it is read.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct StoredRun {
    id: RunId,
    #[serde(default, skip_serializing_if = "is_default")]
    number: u64,
    trigger: Trigger,
    started_at: DateTime<Utc>,
    not_after: DateTime<Utc>,
    rollout: Rollout,
    phase: Phase,
    stopping: Option<StopCause>,
    ended: Option<Ended>,
    hosts: OrdMap<HostName, RunHost>,
}

impl From<StoredRun> for Run {
    fn from(stored: StoredRun) -> Self {
        let StoredRun { id, number, trigger, started_at, not_after, rollout, phase, stopping, ended, hosts } =
            stored;
        let index = Index::of(&hosts);
        Self { id, number, trigger, started_at, not_after, rollout, phase, stopping, ended, hosts, index }
    }
}

impl From<Run> for StoredRun {
    fn from(run: Run) -> Self {
        let Run {
            id,
            number,
            trigger,
            started_at,
            not_after,
            rollout,
            phase,
            stopping,
            ended,
            hosts,
            index: _,
        } = run;
        Self { id, number, trigger, started_at, not_after, rollout, phase, stopping, ended, hosts }
    }
}

/// What started a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::EnumDiscriminants)]
#[strum_discriminants(
    name(TriggerKind),
    derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames),
    serde(rename_all = "kebab-case"),
    strum(serialize_all = "kebab-case")
)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Trigger {
    Operator {
        actor: String,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Whether the run is one of chosen hosts.
        #[serde(default, skip_serializing_if = "is_default")]
        targeted: bool,
    },
    /// A maintenance window.
    Window {
        /// When its occurrence starts.
        start: DateTime<Utc>,
        /// When the occurrence ends.
        end: DateTime<Utc>,
    },
}

impl Trigger {
    /// Every kind.
    pub const KINDS: &'static [&'static str] = TriggerKind::VARIANTS;

    /// The `kind` in its JSON, which the history shows.
    pub fn kind(&self) -> &'static str {
        TriggerKind::from(self).into()
    }

    /// The operator, if one started the run.
    pub fn actor(&self) -> Option<&str> {
        match self {
            Self::Operator { actor, .. } => Some(actor),
            Self::Window { .. } => None,
        }
    }

    /// Whether the run is one of chosen hosts.
    pub const fn is_targeted(&self) -> bool {
        matches!(self, Self::Operator { targeted: true, .. })
    }

    /// The operator's reason, if one is given.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Operator { reason, .. } => reason.as_deref(),
            Self::Window { .. } => None,
        }
    }
}

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Hosts are prepared.
    Preparing,
    /// Hosts are upgraded.
    Upgrading,
}

impl Phase {
    /// The wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Why a run starts no further host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::EnumDiscriminants)]
#[strum_discriminants(
    name(StopKind),
    derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames),
    serde(rename_all = "kebab-case"),
    strum(serialize_all = "kebab-case")
)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum StopCause {
    /// More hosts failed than `max-failures` allows.
    Failed {
        /// The host whose failure was one too many.
        host: HostName,
    },
    /// An operator cancelled it.
    Cancelled {
        actor: String,
        /// Why, as the operator says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The site was restored while the run was active, so the state of its hosts is not known.
    Restored {
        /// Who restored it.
        actor: String,
    },
}

impl StopCause {
    /// The operator, if one stopped the run.
    pub fn actor(&self) -> Option<&str> {
        match self {
            Self::Failed { .. } => None,
            Self::Cancelled { actor, .. } | Self::Restored { actor } => Some(actor),
        }
    }

    /// The operator's reason, if one is given.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Cancelled { reason, .. } => reason.as_deref(),
            Self::Failed { .. } | Self::Restored { .. } => None,
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum RunResult {
    /// Every host that took part is upgraded, except for allowed failures and for hosts that operators took out.
    Completed,
    /// More hosts failed than allowed, or none was upgraded.
    Failed,
    /// Its `not-after` passed first, or what is left of its time is too short for a host that has not had its turn.
    TimedOut,
    /// An operator cancelled it.
    Cancelled,
}

impl RunResult {
    /// Every result.
    pub const ALL: [Self; 4] = [Self::Completed, Self::Failed, Self::TimedOut, Self::Cancelled];

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Ended {
    /// When it ended.
    pub at: DateTime<Utc>,
    /// How it ended.
    pub result: RunResult,
}

impl Run {
    /// A run that starts at `at`, with the enlisted hosts, and is counted in `turns`.
    pub(crate) fn start(
        id: RunId,
        trigger: Trigger,
        at: DateTime<Utc>,
        not_after: DateTime<Utc>,
        rollout: Rollout,
        enlisted: &[Enlisted],
        turns: &mut Turns,
    ) -> Self {
        let number = turns.run_started();
        let is_told = rollout.max_preparing.is_none() && rollout.provider_wait.is_none();
        let enlist = |entry: &Enlisted| {
            (entry.host.clone(), RunHost::enlist(entry, turns.last(&entry.host), at, is_told))
        };
        let hosts: OrdMap<_, _> = enlisted.iter().map(enlist).collect();
        let index = Index::of(&hosts);
        let phase = Phase::Preparing;
        Self {
            id,
            number,
            trigger,
            started_at: at,
            not_after,
            rollout,
            phase,
            stopping: None,
            ended: None,
            hosts,
            index,
        }
    }

    /// Every host, by name.
    pub fn hosts(&self) -> &OrdMap<HostName, RunHost> {
        &self.hosts
    }

    /// The host of that name, if it is in the run.
    pub fn host(&self, name: &HostName) -> Option<&RunHost> {
        self.hosts.get(name)
    }

    /// Hosts whose current command has not been seen in the control stream yet.
    pub fn unsent(&self) -> &OrdSet<HostName> {
        &self.index.unsent
    }

    /// Hosts that hold a slot and are being drained, upgraded, rebooted or uncordoned.
    pub fn under_way(&self) -> &OrdSet<HostName> {
        &self.index.under_way
    }

    /// Hosts under way that have not answered `upgrade` in time: the run goes on without them.
    pub fn overdue(&self) -> &OrdSet<HostName> {
        &self.index.overdue
    }

    /// Hosts under way that count against `max-concurrent`: those that are not overdue.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &HostName> {
        self.under_way().iter().filter(|host| !self.overdue().contains(*host))
    }

    /// Prepared hosts that have not started, by group, in the order of turns.
    pub fn ready(&self) -> &OrdMap<GroupName, OrdSet<Place>> {
        &self.index.ready
    }

    /// Hosts whose turn it is and which wait for a slot.
    pub fn waiting(&self) -> &OrdSet<HostName> {
        &self.index.waiting
    }

    /// Hosts that have not answered `prepare`.
    pub fn unprepared(&self) -> &OrdSet<HostName> {
        &self.index.unprepared
    }

    /// How many hosts of each group are being prepared, or are prepared and have not begun.
    pub(super) fn preparing(&self, now: DateTime<Utc>) -> BTreeMap<&GroupName, usize> {
        let mut preparing: BTreeMap<_, _> =
            self.index.told.iter().map(|(group, told)| (group, *told)).collect();
        for (group, ready) in self.ready() {
            let is_counted =
                |place: &&Place| self.host(&place.host).is_some_and(|host| host.is_preparing(now));
            *preparing.entry(group).or_default() += ready.iter().filter(is_counted).count();
        }
        preparing
    }

    /// The host that is to be prepared next, in the order of turns, if one may be that is not busy otherwise, while so many are `preparing`.
    /// Of each group one may, so that a group without free slots does not keep the others from their turn.
    pub(super) fn next_to_prepare(
        &self,
        now: DateTime<Utc>,
        preparing: &BTreeMap<&GroupName, usize>,
        is_busy: impl Fn(&HostName) -> bool,
    ) -> Option<&HostName> {
        let max = self.rollout.max_preparing.map_or(usize::MAX, |max| max as usize);
        let has_room = preparing.values().sum::<usize>() < max;
        let is_due = |name: &HostName| self.host(name).is_some_and(|host| host.retry_at(now).is_none());
        let may_go = |place: &&Place| is_due(&place.host) && !is_busy(&place.host);
        let groups = self.index.untold.iter();
        let groups =
            groups.filter(|(group, _)| has_room || preparing.get(*group).is_none_or(|count| *count == 0));
        let firsts = groups.filter_map(|(_, places)| places.iter().find(may_go));
        firsts.min().map(|place| &place.host)
    }

    /// Whether a host waits to be prepared.
    pub(super) fn has_untold(&self) -> bool {
        !self.index.untold.is_empty()
    }

    /// When `host`, whose `prepare` has failed at `now`, is prepared again; `None` if it is not.
    pub(crate) fn prepared_again(
        &self,
        name: &HostName,
        host: &RunHost,
        now: DateTime<Utc>,
    ) -> Option<DateTime<Utc>> {
        let failed = host.retry.map_or(0, |retry| retry.count).saturating_add(1);
        let retries = self.rollout.retries.filter(|retries| failed <= retries.prepare)?;
        let (first, max, jitter) = (retries.backoff, retries.max_backoff, retries.backoff);
        let pause = Backoff { first, max, jitter }.pause(&format!("{} {name}", self.id), failed, None);
        Some(now + pause).filter(|until| self.stopping.is_none() && self.fits(*until))
    }

    /// Hosts that have not answered `prepare` and whose heartbeat was awaited when the run started.
    pub(crate) fn unheard(&self) -> &OrdSet<HostName> {
        &self.index.unheard
    }

    /// How many hosts are in `status`.
    pub fn count(&self, status: HostStatus) -> usize {
        self.index.count(status)
    }

    /// How many hosts are counted as what.
    pub fn counts(&self) -> BTreeMap<CountedAs, usize> {
        self.index.counted()
    }

    /// Whether every host has a final status.
    pub fn is_finished(&self) -> bool {
        self.unfinished() == 0
    }

    /// How many hosts have no final status.
    pub(super) fn unfinished(&self) -> usize {
        let unfinished = HostStatus::ALL.into_iter().filter(|status| !status.is_final());
        unfinished.map(|status| self.count(status)).sum()
    }

    /// Until when a host may begin, so that it is expected to be through before the run ends.
    pub(crate) fn begins_until(&self) -> DateTime<Utc> {
        self.not_after - self.rollout.expected_duration.map_or(TimeDelta::zero(), Duration::to_delta)
    }

    /// Whether a host may still begin at `now`.
    pub(crate) fn fits(&self, now: DateTime<Utc>) -> bool {
        now < self.not_after && now <= self.begins_until()
    }

    /// How it ends, now that every host has a final status.
    pub(super) fn result(&self, has_expired: bool) -> RunResult {
        let has_failed = |host: &&RunHost| {
            matches!(host.status, HostStatus::Failed | HostStatus::TimedOut) && !host.is_given_up()
        };
        let failures = || self.hosts.values().filter(has_failed).count();
        let is_nobody_upgraded = self.count(HostStatus::Upgraded) == 0;
        match &self.stopping {
            Some(_) if has_expired => RunResult::TimedOut,
            Some(StopCause::Failed { .. } | StopCause::Restored { .. }) => RunResult::Failed,
            Some(StopCause::Cancelled { .. }) => RunResult::Cancelled,
            None if self.count(HostStatus::NotReached) > 0 => RunResult::TimedOut,
            None if has_expired && (is_nobody_upgraded || failures() > self.max_failures()) => {
                RunResult::TimedOut
            }
            // Those that take part may have become fewer.
            None if is_nobody_upgraded || failures() > self.max_failures() => RunResult::Failed,
            None => RunResult::Completed,
        }
    }

    /// How many hosts may fail: a percentage is one of those that take part.
    fn max_failures(&self) -> usize {
        self.rollout.max_failures.of(self.hosts.len() - self.count(HostStatus::Skipped))
    }

    /// Whether the rollout allows a further host to start.
    pub(crate) fn has_room(&self) -> bool {
        self.phase == Phase::Upgrading
            && self.stopping.is_none()
            && self.counted().count() < self.rollout.max_concurrent as usize
    }

    /// Why the run stops once `host` fails, times out or is overdue, if that is one failure too many.
    pub(crate) fn stop_after(&self, host: &HostName) -> Option<StopCause> {
        let before = self.count(HostStatus::Failed) + self.count(HostStatus::TimedOut) + self.overdue().len();
        // One that is overdue has been counted.
        let is_new = !self.overdue().contains(host);
        let is_enough = is_new && self.stopping.is_none() && before >= self.max_failures();
        is_enough.then(|| StopCause::Failed { host: host.clone() })
    }

    /// Records what the worker of `name` answered after the host's part in the run had ended. Nothing overrides `done`.
    pub(crate) fn answered_late(&mut self, name: &HostName, answer: LateAnswer) {
        let is_news = |host: &&mut RunHost| {
            let earlier = host.late_answer.map(|earlier| earlier.result);
            matches!(host.status, HostStatus::Failed | HostStatus::TimedOut)
                && earlier != Some(LateResult::Done)
        };
        if let Some(host) = self.hosts.get_mut(name).filter(is_news) {
            host.late_answer = Some(answer);
        }
    }

    /// Whether `event`, after which the host is `next`, is its turn: a slot, or with `max-preparing` that it was told to prepare and came no
    /// further, as it kept others from being prepared.
    fn is_turn(&self, event: &HostEvent, next: &RunHost) -> bool {
        let is_over = matches!(event, HostEvent::Failed { .. } | HostEvent::TimedOut { .. });
        let in_prepare = || {
            next.command
                .is_some_and(|command| command.action == Action::Prepare && command.sequence.is_some())
        };
        let is_granted = matches!(event, HostEvent::SlotGranted { .. });
        is_granted || (self.rollout.max_preparing.is_some() && is_over && in_prepare())
    }

    /// Folds `event` into the state of a host.
    pub(crate) fn apply(
        &mut self,
        name: &HostName,
        event: &HostEvent,
        at: DateTime<Utc>,
    ) -> Result<(), HostError> {
        let host = self.hosts.get(name).ok_or_else(|| HostError::Unknown(name.clone()))?;
        let mut next = host.after(event, at).map_err(|source| HostError::Illegal(name.clone(), source))?;
        if self.is_turn(event, &next) {
            next.last_turn = self.number;
        }
        self.index.remove(name, host);
        self.index.insert(name, &next);
        self.hosts.insert(name.clone(), next);
        Ok(())
    }
}

/// An event does not apply to a host of the run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The run has no such host.
    #[error("the run has no host {0}")]
    Unknown(HostName),
    /// The event is illegal in the host's status.
    #[error("host {0}")]
    Illegal(HostName, #[source] IllegalTransition),
}
