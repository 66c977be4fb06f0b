//! The hosts of one provider: who is asked next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use os_upgrade_protocol::HostName;

use super::pair::{Pair, Ticket, UnderWay};
use crate::answer::{Outcome, Reply};
use crate::backoff::pause;
use crate::bucket::Bucket;
use crate::due::{Phase, next_due};
use crate::name::ProviderName;
use crate::now::Now;

/// All hosts are asked once within a quarter of the poll interval at the earliest.
const SPREAD_PARTS: u32 = 4;
/// A poll by so small a part of the interval before it is due counts as that poll.
const EARLY_PARTS: u32 = 16;

/// How a provider is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time between two polls of a host, in whole seconds, at least one.
    pub poll_interval: Duration,
    /// How many hosts may be asked about at once, at least one.
    pub max_in_flight: u32,
    /// The provider's definition, as a number that is another one for each: what was said under another definition does not count.
    pub generation: u64,
}

/// A provider with its hosts.
#[derive(Debug)]
pub(super) struct Provider {
    name: ProviderName,
    limits: Limits,
    pairs: BTreeMap<HostName, Pair>,
    /// The pairs that are not under way, in the order in which they are asked: those that are urgent, and the others.
    urgent: BTreeSet<(Duration, HostName)>,
    others: BTreeSet<(Duration, HostName)>,
    /// Hosts that have left while they were asked about: they count as under way, and come back no sooner.
    leaving: BTreeMap<HostName, Ticket>,
    in_flight: u32,
    bucket: Bucket,
    /// Until when the server wants no requests.
    paused_until: Duration,
    /// Whether it is no longer configured, and there only until nothing is under way.
    is_retired: bool,
}

impl Provider {
    pub(super) fn new(name: ProviderName, limits: Limits, now: Now) -> Self {
        Self {
            name,
            limits,
            pairs: BTreeMap::new(),
            urgent: BTreeSet::new(),
            others: BTreeSet::new(),
            leaving: BTreeMap::new(),
            in_flight: 0,
            bucket: Bucket::empty(now.monotonic),
            paused_until: Duration::ZERO,
            is_retired: false,
        }
    }

    /// Uses `limits` from now on.
    pub(super) fn set_limits(&mut self, limits: Limits, now: Now) {
        let before = std::mem::replace(&mut self.limits, limits);
        self.is_retired = false;
        if before.generation != limits.generation {
            // Another server may be asked now.
            self.paused_until = Duration::ZERO;
            self.forget(now);
        } else if before.poll_interval != limits.poll_interval {
            for host in self.hosts() {
                self.change(&host, |pair| {
                    // A failed pair keeps its pause.
                    if pair.confirmed_at.is_some() && pair.failed.is_none() {
                        pair.due = poll_due(pair.phase, limits.poll_interval, now);
                    }
                });
            }
        }
    }

    /// Forgets what was said about every host, so that all are asked anew. What is under way no longer counts.
    pub(super) fn forget(&mut self, now: Now) {
        self.bucket = Bucket::empty(now.monotonic);
        for host in self.hosts() {
            self.change(&host, |pair| pair.forget(now.monotonic));
        }
    }

    fn hosts(&self) -> Vec<HostName> {
        self.pairs.keys().cloned().collect()
    }

    pub(super) fn add(&mut self, host: HostName, now: Now) {
        if self.is_retired || self.pairs.contains_key(&host) {
            return;
        }
        let mut pair = Pair::new(Phase::new(&host, &self.name), now.monotonic);
        let leaving = self.leaving.remove(&host);
        pair.under_way = leaving.map(|ticket| UnderWay { ticket, counts: false, again: false });
        if pair.under_way.is_none() {
            self.others.insert((pair.due, host.clone()));
        }
        self.pairs.insert(host, pair);
    }

    pub(super) fn remove(&mut self, host: &HostName) {
        let Some(pair) = self.pairs.remove(host) else { return };
        match pair.under_way {
            Some(UnderWay { ticket, .. }) => {
                self.leaving.insert(host.clone(), ticket);
            }
            None => {
                self.queue(pair.urgent).remove(&(pair.due, host.clone()));
            }
        }
    }

    /// It is no longer configured.
    pub(super) fn retire(&mut self) {
        self.is_retired = true;
        for host in self.hosts() {
            self.remove(&host);
        }
    }

    /// Whether it is no longer configured, and nothing is under way.
    pub(super) fn is_over(&self) -> bool {
        self.is_retired && self.leaving.is_empty()
    }

    pub(super) fn pair(&self, host: &HostName) -> Option<&Pair> {
        self.pairs.get(host)
    }

    /// Asks about `host` as soon as possible, whatever its provider said last.
    pub(super) fn poll(&mut self, host: &HostName, now: Now) {
        self.change(host, |pair| {
            pair.due = pair.due.min(now.monotonic);
            // The answer under way may be from before the change for which somebody polls.
            if let Some(under_way) = &mut pair.under_way {
                under_way.again = true;
            }
        });
    }

    pub(super) fn poll_all(&mut self, now: Now) {
        for host in self.hosts() {
            self.poll(&host, now);
        }
    }

    /// Asks about `host` before those that are not urgent; after a failure no sooner than its pause ends.
    pub(super) fn hurry(&mut self, host: &HostName, now: Now) {
        self.change(host, |pair| {
            pair.urgent = true;
            if pair.failed.is_none() {
                pair.due = pair.due.min(now.monotonic);
            }
        });
    }

    /// The next host to ask about, if one may be asked about now.
    pub(super) fn start(&mut self, now: Now, ticket: Ticket) -> Option<(HostName, &Pair)> {
        if self.in_flight >= self.limits.max_in_flight.max(1) || now.monotonic < self.paused_until {
            return None;
        }
        let is_due = |first: &(Duration, HostName)| first.0 <= now.monotonic;
        let is_urgent = self.urgent.first().is_some_and(is_due);
        if !is_urgent && !self.others.first().is_some_and(is_due) {
            return None;
        }
        let (interval, burst) = (self.token_interval(), self.limits.max_in_flight.max(1));
        if !self.bucket.take(now.monotonic, interval, burst) {
            return None;
        }
        let (_, host) = self.queue(is_urgent).pop_first()?;
        let pair = self.pairs.get_mut(&host)?;
        self.in_flight += 1;
        pair.under_way = Some(UnderWay { ticket, counts: true, again: false });
        Some((host, pair))
    }

    /// When the next pair may be asked at the earliest, in monotonic time; `None` while as many as allowed are under way.
    pub(super) fn next_at(&self) -> Option<Duration> {
        if self.in_flight >= self.limits.max_in_flight.max(1) {
            return None;
        }
        let first =
            [&self.urgent, &self.others].into_iter().filter_map(|queue| Some(queue.first()?.0)).min()?;
        Some(first.max(self.paused_until).max(self.bucket.next_at(self.token_interval())))
    }

    /// The question with `ticket` about `host` has ended.
    pub(super) fn finish<C>(&mut self, host: &HostName, ticket: Ticket, now: Now, reply: &Reply<C>) {
        if self.leaving.get(host) == Some(&ticket) {
            self.leaving.remove(host);
            self.in_flight -= 1;
            return;
        }
        let is_of = |pair: &&mut Pair| pair.under_way.is_some_and(|it| it.ticket == ticket);
        let Some(pair) = self.pairs.get_mut(host).filter(is_of) else { return };
        let Some(under_way) = pair.under_way.take() else { return };
        self.in_flight -= 1;
        if under_way.counts {
            note(pair, self.limits.poll_interval, now, reply);
            if let Some(wait) = reply.retry_after {
                self.paused_until = self.paused_until.max(now.monotonic + wait);
            }
        }
        if under_way.again {
            pair.due = now.monotonic;
        }
        let (urgent, due) = (pair.urgent, pair.due);
        self.queue(urgent).insert((due, host.clone()));
    }

    /// Changes a pair, and its place.
    fn change(&mut self, host: &HostName, change: impl FnOnce(&mut Pair)) {
        let Some(pair) = self.pairs.get_mut(host) else { return };
        let before = (pair.urgent, pair.due);
        change(pair);
        let after = (pair.urgent, pair.due);
        if pair.under_way.is_none() && before != after {
            self.queue(before.0).remove(&(before.1, host.clone()));
            self.queue(after.0).insert((after.1, host.clone()));
        }
    }

    fn queue(&mut self, urgent: bool) -> &mut BTreeSet<(Duration, HostName)> {
        if urgent { &mut self.urgent } else { &mut self.others }
    }

    /// The time in which one request is allowed: all hosts within a quarter of the poll interval, and as many as may be under way each
    /// second.
    fn token_interval(&self) -> Duration {
        let hosts = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX).max(1);
        let spread = self.limits.poll_interval / SPREAD_PARTS / hosts;
        spread.min(Duration::from_secs(1) / self.limits.max_in_flight.max(1))
    }
}

/// When the poll after that of `now` is due, in monotonic time: a step of the wall clock in between neither delays nor repeats it. A poll
/// that comes a little early, as clocks differ, is that of the due time after it.
fn poll_due(phase: Phase, interval: Duration, now: Now) -> Duration {
    let early = TimeDelta::from_std(interval / EARLY_PARTS).unwrap_or_default();
    let after = now.wall.checked_add_signed(early).unwrap_or(now.wall);
    now.monotonic + (next_due(phase, interval, after) - now.wall).to_std().unwrap_or_default()
}

/// Records what was said, and when to ask next.
fn note<C>(pair: &mut Pair, interval: Duration, now: Now, reply: &Reply<C>) {
    match &reply.outcome {
        Outcome::Failed(failure) => {
            let failures = pair.failed.as_ref().map_or(0, |(failures, _)| *failures).saturating_add(1);
            // The chance differs between hosts and between attempts.
            let chance = pair.phase.number().rotate_left(failures);
            pair.due = now.monotonic + pause(failure, failures, interval, chance);
            pair.failed = Some((failures, failure.clone()));
            return;
        }
        Outcome::Unchanged { validator } | Outcome::Content { validator, .. } => {
            pair.validator = Some(validator.clone());
        }
        Outcome::Removed => pair.validator = None,
    }
    pair.failed = None;
    pair.urgent = false;
    pair.confirmed_at = Some(now.wall);
    pair.due = poll_due(pair.phase, interval, now);
}
