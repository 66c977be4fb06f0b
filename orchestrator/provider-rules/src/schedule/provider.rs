//! The hosts of one provider: who is asked next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;

use super::pair::{BatchId, NEVER, Pair, Ticket, UnderWay};
use crate::answer::{Outcome, Reply};
use crate::backoff::pause;
use crate::bucket::Bucket;
use crate::due::{Phase, due_time, next_due};
use crate::name::ProviderName;
use crate::now::Now;
use crate::validator::Validator;

/// All hosts are asked once within a quarter of the poll interval at the earliest.
const SPREAD_PARTS: u32 = 4;

/// How a provider is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time between two polls of a host, in whole seconds, at least one.
    pub poll_interval: Duration,
    /// How many requests may be under way at once, at least one.
    pub max_in_flight: u32,
    /// About how many hosts a request may be, at least one.
    pub batch_size: u32,
    /// The provider's definition, as a number that is another one for each: what was said under another definition does not count.
    pub generation: u64,
    /// Whether a host of which nothing is known is asked about at once. If not, it waits for its poll, so that a new leader repeats none.
    pub asks_at_once: bool,
    /// Whether hosts are polled. If not, a host is asked about only when something calls for it.
    pub polls: bool,
}

impl Limits {
    /// The time between two polls of a host that may have an interval of its `own`.
    fn interval(self, own: Option<Duration>) -> Duration {
        own.unwrap_or(self.poll_interval)
    }

    /// When a host of which nothing is known is asked about, in monotonic time.
    fn first_due(self, phase: Phase, own: Option<Duration>, now: Now) -> Duration {
        if self.asks_at_once {
            now.monotonic
        } else if self.polls {
            monotonic_at(next_due(phase, self.interval(own), now.wall), now)
        } else {
            NEVER
        }
    }

    /// When the poll after that of `now` is due, in monotonic time: a step of the wall clock in between neither delays nor repeats it.
    /// What comes a little before a poll counts as that poll.
    fn next_due(self, phase: Phase, own: Option<Duration>, now: Now) -> Duration {
        if !self.polls {
            return NEVER;
        }
        let interval = self.interval(own);
        monotonic_at(next_due(phase, interval, due_time(phase, interval, now.wall)), now)
    }
}

/// A question that begins.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) host: HostName,
    pub(super) validator: Option<Validator>,
    pub(super) poll: Option<DateTime<Utc>>,
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
    leaving: BTreeMap<HostName, UnderWay>,
    /// The requests under way, with how many of their questions have not ended.
    in_flight: BTreeMap<BatchId, usize>,
    bucket: Bucket,
    /// Until when the server wants no requests.
    paused_until: Duration,
    /// Whether it is no longer configured, and there only until nothing is under way.
    is_retired: bool,
    /// Whether it is not to be asked for now.
    is_held: bool,
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
            in_flight: BTreeMap::new(),
            bucket: Bucket::empty(now.monotonic),
            paused_until: Duration::ZERO,
            is_retired: false,
            is_held: false,
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
        } else if (before.poll_interval, before.polls) != (limits.poll_interval, limits.polls) {
            for host in self.hosts() {
                self.change(&host, |pair| reschedule(pair, limits, now));
            }
        }
    }

    /// `host` is polled each `interval` from now on, or as the others are.
    pub(super) fn set_interval(&mut self, host: &HostName, interval: Option<Duration>, now: Now) {
        let limits = self.limits;
        self.change(host, |pair| {
            if pair.interval != interval {
                pair.interval = interval;
                reschedule(pair, limits, now);
            }
        });
    }

    /// It is not to be asked for now, or may be asked again.
    pub(super) fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// Forgets what was said about every host, so that all are asked anew. What is under way no longer counts.
    pub(super) fn forget(&mut self, now: Now) {
        self.bucket = Bucket::empty(now.monotonic);
        let limits = self.limits;
        for host in self.hosts() {
            self.change(&host, |pair| pair.forget(limits.first_due(pair.phase, pair.interval, now)));
        }
    }

    fn hosts(&self) -> Vec<HostName> {
        self.pairs.keys().cloned().collect()
    }

    pub(super) fn add(&mut self, host: HostName, now: Now) {
        if self.is_retired || self.pairs.contains_key(&host) {
            return;
        }
        let phase = Phase::new(&host, &self.name);
        let mut pair = Pair::new(phase, self.limits.first_due(phase, None, now));
        pair.under_way = self.leaving.remove(&host).map(UnderWay::discounted);
        if pair.under_way.is_none() {
            self.others.insert((pair.due, host.clone()));
        }
        self.pairs.insert(host, pair);
    }

    pub(super) fn remove(&mut self, host: &HostName) {
        let Some(pair) = self.pairs.remove(host) else { return };
        match pair.under_way {
            Some(under_way) => {
                self.leaving.insert(host.clone(), under_way);
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
        self.is_retired && self.in_flight.is_empty()
    }

    pub(super) fn pair(&self, host: &HostName) -> Option<&Pair> {
        self.pairs.get(host)
    }

    /// Asks about `host` as soon as possible, whatever its provider said last.
    pub(super) fn bring_forward(&mut self, host: &HostName, now: Now) {
        self.change(host, |pair| {
            pair.due = pair.due.min(now.monotonic);
            // The answer under way may be from before the reason for this.
            if let Some(under_way) = &mut pair.under_way {
                under_way.again = true;
            }
        });
    }

    /// Like [`Self::bring_forward`], for somebody who wants it.
    pub(super) fn poll(&mut self, host: &HostName, now: Now) {
        self.bring_forward(host, now);
        self.change(host, |pair| {
            pair.wanted = true;
            if let Some(under_way) = &mut pair.under_way {
                under_way.wanted_again = true;
            }
        });
    }

    /// Ends the pauses after failures.
    pub(super) fn retry_failed(&mut self, now: Now) {
        let failed = self.pairs.iter().filter(|(_, pair)| pair.failed.is_some());
        let failed: Vec<HostName> = failed.map(|(host, _)| host.clone()).collect();
        for host in failed {
            self.bring_forward(&host, now);
        }
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
            pair.wanted = true;
            if pair.failed.is_none() {
                pair.due = pair.due.min(now.monotonic);
            }
        });
    }

    /// Begins the next request, if one may begin now: it takes one token, and as many of the hosts that are due as it may be about. Its
    /// questions have the tickets from `first` on; there are none if nothing begins.
    pub(super) fn start(&mut self, now: Now, first: Ticket) -> Vec<Started> {
        if self.is_next_urgent(now).is_none() || !self.take_request(now) {
            return Vec::new();
        }
        let tickets = first..first + u64::from(self.limits.batch_size.max(1));
        let started: Vec<Started> =
            tickets.map_while(|ticket| self.start_question(now, UnderWay::new(ticket, first))).collect();
        if !started.is_empty() {
            self.open_request(first, started.len());
        }
        started
    }

    /// Takes one token for a request; `false` if none may begin now.
    pub(super) fn take_request(&mut self, now: Now) -> bool {
        if self.is_retired || self.is_held || self.is_busy() || self.paused_until > now.monotonic {
            return false;
        }
        let (interval, burst) = (self.token_interval(), self.limits.max_in_flight.max(1));
        self.bucket.take(now.monotonic, interval, burst)
    }

    /// The request `batch` with so many questions is under way.
    pub(super) fn open_request(&mut self, batch: BatchId, questions: usize) {
        self.in_flight.insert(batch, questions);
    }

    pub(super) fn batch_size(&self) -> usize {
        usize::try_from(self.limits.batch_size.max(1)).unwrap_or(usize::MAX)
    }

    pub(super) fn generation(&self) -> u64 {
        self.limits.generation
    }

    /// Whether the next host that is due is urgent; `None` if none is due.
    fn is_next_urgent(&self, now: Now) -> Option<bool> {
        let is_due = |queue: &BTreeSet<(Duration, HostName)>| {
            queue.first().is_some_and(|(due, _)| *due <= now.monotonic)
        };
        if is_due(&self.urgent) { Some(true) } else { is_due(&self.others).then_some(false) }
    }

    /// Begins the question `under_way` about the next host that is due.
    fn start_question(&mut self, now: Now, under_way: UnderWay) -> Option<Started> {
        let is_urgent = self.is_next_urgent(now)?;
        let (_, host) = self.queue(is_urgent).pop_first()?;
        let pair = self.pairs.get_mut(&host)?;
        pair.under_way = Some(under_way);
        let interval = self.limits.interval(pair.interval);
        let poll = (!pair.wanted).then(|| due_time(pair.phase, interval, now.wall));
        Some(Started { validator: pair.validator.clone(), poll, host })
    }

    /// Whether as many requests as allowed are under way.
    fn is_busy(&self) -> bool {
        let max = usize::try_from(self.limits.max_in_flight).unwrap_or(usize::MAX);
        self.in_flight.len() >= max.max(1)
    }

    /// When the next pair may be asked at the earliest, in monotonic time; `None` while as many as allowed are under way, or if nothing is due.
    pub(super) fn next_at(&self) -> Option<Duration> {
        if self.is_held || self.is_busy() {
            return None;
        }
        let queues = [&self.urgent, &self.others].into_iter();
        let first = queues.filter_map(|queue| Some(queue.first()?.0)).min().filter(|due| *due != NEVER)?;
        Some(first.max(self.paused_until).max(self.bucket.next_at(self.token_interval())))
    }

    /// A question of the request `batch` has ended; the request has once all have.
    fn end_question(&mut self, batch: BatchId) {
        let Some(questions) = self.in_flight.get_mut(&batch) else { return };
        *questions -= 1;
        if *questions == 0 {
            self.in_flight.remove(&batch);
        }
    }

    /// The question with `ticket` about `host` has ended.
    pub(super) fn finish<C>(&mut self, host: &HostName, ticket: Ticket, now: Now, reply: &Reply<C>) {
        let left = self.leaving.get(host).copied();
        if let Some(left) = left.filter(|left| left.ticket == ticket) {
            self.leaving.remove(host);
            self.end_question(left.batch);
            return;
        }
        let is_of = |pair: &&mut Pair| pair.under_way.is_some_and(|it| it.ticket == ticket);
        let Some(pair) = self.pairs.get_mut(host).filter(is_of) else { return };
        let Some(under_way) = pair.under_way.take() else { return };
        if under_way.counts {
            pause_all(&mut self.paused_until, now, reply);
            note(pair, self.limits, now, reply);
        }
        if under_way.again {
            pair.due = now.monotonic;
            pair.wanted |= under_way.wanted_again;
        }
        let (urgent, due) = (pair.urgent, pair.due);
        self.queue(urgent).insert((due, host.clone()));
        self.end_question(under_way.batch);
    }

    /// A question of the request `batch`, which is about none of its hosts and was begun under the definition `generation`, has ended.
    pub(super) fn finish_begun<C>(&mut self, batch: BatchId, generation: u64, now: Now, reply: &Reply<C>) {
        if generation == self.limits.generation {
            pause_all(&mut self.paused_until, now, reply);
        }
        self.end_question(batch);
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

    /// The time in which one request is allowed: those about all hosts within a quarter of the poll interval, and as many as may be under way
    /// each second.
    fn token_interval(&self) -> Duration {
        let hosts = u32::try_from(self.pairs.len()).unwrap_or(u32::MAX);
        let requests = hosts.div_ceil(self.limits.batch_size.max(1)).max(1);
        let spread = self.limits.poll_interval / SPREAD_PARTS / requests;
        spread.min(Duration::from_secs(1) / self.limits.max_in_flight.max(1))
    }
}

/// The wall time `at` in monotonic time.
fn monotonic_at(at: DateTime<Utc>, now: Now) -> Duration {
    now.monotonic + (at - now.wall).to_std().unwrap_or_default()
}

/// The time between the polls of `pair` has changed.
fn reschedule(pair: &mut Pair, limits: Limits, now: Now) {
    // A failed pair keeps its pause, and one that is due stays so.
    if pair.failed.is_some() || pair.due <= now.monotonic {
        return;
    }
    if pair.confirmed_at.is_some() {
        pair.due = limits.next_due(pair.phase, pair.interval, now);
    } else {
        pair.due = limits.first_due(pair.phase, pair.interval, now);
    }
}

/// A server that says how long it wants no requests gets none until then.
fn pause_all<C>(paused_until: &mut Duration, now: Now, reply: &Reply<C>) {
    if let Some(wait) = reply.retry_after {
        *paused_until = (*paused_until).max(now.monotonic + wait);
    }
}

/// Records what was said, and when to ask next.
fn note<C>(pair: &mut Pair, limits: Limits, now: Now, reply: &Reply<C>) {
    match &reply.outcome {
        Outcome::Failed(failure) => {
            let failures = pair.failed.as_ref().map_or(0, |(failures, _)| *failures).saturating_add(1);
            // The chance differs between hosts and between attempts.
            let chance = pair.phase.number().rotate_left(failures);
            let interval = limits.interval(pair.interval);
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
    pair.wanted = false;
    pair.confirmed_at = Some(now.wall);
    pair.due = limits.next_due(pair.phase, pair.interval, now);
}
