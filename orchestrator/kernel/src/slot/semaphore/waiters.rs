//! External FleetLock clients that were refused a slot. They are remembered for a while, so that hosts of runs, which
//! wait all the time, leave them their share.

use chrono::{DateTime, TimeDelta, Utc};
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::slot::ClientId;

/// How long a client that does not retry is remembered: if it comes back by then, it has its turn.
pub const REMEMBERED: TimeDelta = TimeDelta::minutes(7);
/// How long a client that has asked once is expected to retry. Zincati does after 300 to 330 s, and a request takes time.
const EXPECTED: TimeDelta = TimeDelta::minutes(6);
/// A client that has retried is expected for the interval that it has shown, a quarter of it, and this.
const EXPECTED_SLACK: TimeDelta = TimeDelta::seconds(30);
/// A retry of a client is recorded at most once in this time; recording each one would fill the journal.
pub const RECORD_INTERVAL: TimeDelta = TimeDelta::minutes(1);
/// Most waiters of a group. Further clients are refused and not remembered.
pub const WAITERS_MAX: usize = 20_000;

/// A client that was refused a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Waiter {
    /// When it was first refused.
    pub since: DateTime<Utc>,
    /// When a request of it was last recorded.
    pub asked: DateTime<Utc>,
    /// Its time of arrival in the queue. A client that is granted a slot uses up the earliest arrival of all; the waiter
    /// with that arrival gets the arrival of the granted client.
    pub turn: DateTime<Utc>,
    /// The time between its last two recorded requests, in seconds; absent until it has retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_secs: Option<u32>,
}

impl Waiter {
    /// Whether it is still remembered. Not if its last request is far in the future: the clock was ahead and has been set
    /// back.
    pub fn is_remembered(&self, now: DateTime<Utc>) -> bool {
        now < self.asked + REMEMBERED && self.asked < now + REMEMBERED
    }

    /// Until when it plausibly retries. A free slot is left to it no longer.
    pub fn expected_until(&self) -> DateTime<Utc> {
        let shown = self.interval_secs.map(|seconds| TimeDelta::seconds(seconds.into()));
        let expected = shown.map_or(EXPECTED, |shown| shown + shown / 4 + EXPECTED_SLACK);
        self.asked + expected.min(REMEMBERED)
    }

    /// This waiter after a further request.
    fn asked_again(self, at: DateTime<Utc>) -> Self {
        let Self { since, asked, turn, interval_secs } = self;
        // The clock may have been set back.
        let shown = u32::try_from((at - asked).num_seconds()).ok().filter(|seconds| *seconds > 0);
        Self { since: since.min(at), asked: at, turn: turn.min(at), interval_secs: shown.or(interval_secs) }
    }
}

/// The waiters of a group.
///
/// Among clients the first to ask when a slot is free gets it: clients retry at times of their own, and a slot reserved
/// for one of them would be idle for minutes. Their arrivals count only against the hosts of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "OrdMap<ClientId, Waiter>", into = "OrdMap<ClientId, Waiter>")]
pub struct Waiters {
    known: OrdMap<ClientId, Waiter>,
    by_turn: OrdSet<(DateTime<Utc>, ClientId)>,
    by_asked: OrdSet<(DateTime<Utc>, ClientId)>,
}

impl From<OrdMap<ClientId, Waiter>> for Waiters {
    fn from(known: OrdMap<ClientId, Waiter>) -> Self {
        let by_turn = known.iter().map(|(id, waiter)| (waiter.turn, id.clone())).collect();
        let by_asked = known.iter().map(|(id, waiter)| (waiter.asked, id.clone())).collect();
        Self { known, by_turn, by_asked }
    }
}

impl From<Waiters> for OrdMap<ClientId, Waiter> {
    fn from(waiters: Waiters) -> Self {
        waiters.known
    }
}

impl Waiters {
    /// Whether there are no waiters.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The number of waiters, including expired ones that have not been removed yet.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// The waiters that are remembered at `now`, by arrival.
    pub fn remembered(&self, now: DateTime<Utc>) -> impl Iterator<Item = (&ClientId, &Waiter)> {
        let waiters = self.by_turn.iter().filter_map(|(_, id)| Some((id, self.known.get(id)?)));
        waiters.filter(move |(_, waiter)| waiter.is_remembered(now))
    }

    /// Whether to record that `id` is refused at `now`.
    pub fn needs_record(&self, id: &ClientId, now: DateTime<Utc>) -> bool {
        match self.known.get(id) {
            // `asked` is in the future if the clock has been set back.
            Some(waiter) => waiter.asked + RECORD_INTERVAL <= now || now < waiter.asked,
            None => self.known.len() < WAITERS_MAX || self.has_expired(now),
        }
    }

    /// Whether `id` is recorded as waiting.
    pub fn contains(&self, id: &ClientId) -> bool {
        self.known.contains_key(id)
    }

    /// Records that `id` was refused.
    pub(super) fn refused(&mut self, id: &ClientId, at: DateTime<Utc>) {
        self.prune(at);
        let waiter = match self.remove(id) {
            Some(waiter) => waiter.asked_again(at),
            None => Waiter { since: at, asked: at, turn: at, interval_secs: None },
        };
        self.insert(id, waiter);
    }

    /// Records that `id` was granted a slot, which uses up the earliest arrival.
    pub(super) fn granted(&mut self, id: &ClientId, at: DateTime<Utc>) {
        self.prune(at);
        let turn = self.remove(id).map_or(at, |waiter| waiter.turn);
        let first = self.by_turn.get_min().filter(|(earliest, _)| *earliest < turn);
        if let Some((_, first)) = first.cloned()
            && let Some(waiter) = self.remove(&first)
        {
            self.insert(&first, Waiter { turn, ..waiter });
        }
    }

    /// Records that `id` no longer waits.
    pub(super) fn forget(&mut self, id: &ClientId) {
        self.remove(id);
    }

    fn has_expired(&self, now: DateTime<Utc>) -> bool {
        self.expired(now).is_some()
    }

    /// A waiter that is no longer remembered, if any. Such waiters are at either end of `by_asked`.
    fn expired(&self, now: DateTime<Utc>) -> Option<&ClientId> {
        let ends = [self.by_asked.get_min(), self.by_asked.get_max()];
        let ids = ends.into_iter().flatten().map(|(_, id)| id);
        ids.into_iter().find(|id| self.known.get(*id).is_some_and(|waiter| !waiter.is_remembered(now)))
    }

    /// Removes the waiters that are no longer remembered.
    fn prune(&mut self, at: DateTime<Utc>) {
        while let Some(id) = self.expired(at).cloned() {
            self.remove(&id);
        }
    }

    fn insert(&mut self, id: &ClientId, waiter: Waiter) {
        self.by_turn.insert((waiter.turn, id.clone()));
        self.by_asked.insert((waiter.asked, id.clone()));
        self.known.insert(id.clone(), waiter);
    }

    fn remove(&mut self, id: &ClientId) -> Option<Waiter> {
        let waiter = self.known.remove(id)?;
        self.by_turn.remove(&(waiter.turn, id.clone()));
        self.by_asked.remove(&(waiter.asked, id.clone()));
        Some(waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn id(id: &str) -> ClientId {
        ClientId::new(id).unwrap()
    }

    fn turns(waiters: &Waiters, now: i64) -> Vec<(&str, i64)> {
        let remembered = waiters.remembered(at(now));
        remembered.map(|(id, waiter)| (id.as_str(), waiter.turn.timestamp())).collect()
    }

    #[test]
    fn grants_use_up_the_earliest_arrival() {
        let mut waiters = Waiters::default();
        for (client, time) in [("a", 1), ("b", 2), ("c", 3)] {
            waiters.refused(&id(client), at(time));
        }
        waiters.granted(&id("c"), at(4));
        assert_eq!(turns(&waiters, 4), [("b", 2), ("a", 3)]);
        waiters.granted(&id("new"), at(5));
        assert_eq!(turns(&waiters, 5), [("a", 3), ("b", 5)]);
        waiters.granted(&id("a"), at(6));
        assert_eq!(turns(&waiters, 6), [("b", 5)]);
        waiters.forget(&id("b"));
        assert!(waiters.is_empty());
        assert_eq!(waiters, Waiters::default());
    }

    #[test]
    fn clients_that_stop_asking_are_forgotten() {
        let mut waiters = Waiters::default();
        let remembered = REMEMBERED.num_seconds();
        waiters.refused(&id("a"), at(0));
        waiters.refused(&id("b"), at(10));
        assert!(!waiters.needs_record(&id("a"), at(RECORD_INTERVAL.num_seconds() - 1)));
        assert!(waiters.needs_record(&id("a"), at(RECORD_INTERVAL.num_seconds())));
        assert_eq!(turns(&waiters, remembered - 1).len(), 2);
        assert_eq!(turns(&waiters, remembered), [("b", 10)]);
        waiters.refused(&id("a"), at(remembered));
        assert_eq!(
            turns(&waiters, remembered),
            [("b", 10), ("a", remembered)],
            "with a new arrival, behind the other"
        );
        let json = serde_json::to_string(&waiters).unwrap();
        assert_eq!(serde_json::from_str::<Waiters>(&json).unwrap(), waiters);
    }

    #[test]
    fn clients_are_expected_at_the_interval_they_show() {
        let expected = |asked: &[i64]| {
            let mut waiters = Waiters::default();
            for time in asked {
                waiters.refused(&id("a"), at(*time));
            }
            let last = asked.last().copied().unwrap_or_default();
            waiters.known.get(&id("a")).map(|waiter| waiter.expected_until().timestamp() - last)
        };
        for (asked, seconds) in [
            (&[0][..], 360),
            (&[0, 60], 105),
            (&[0, 60, 180], 180),
            // Zincati's.
            (&[0, 315], 420),
            (&[0, 419], 420),
            // It was forgotten.
            (&[0, 60, 480], 360),
            // The clock was set back.
            (&[0, 100, 90], 155),
        ] {
            assert_eq!(expected(asked), Some(seconds), "{asked:?}");
        }
    }

    #[test]
    fn waiters_survive_a_clock_set_back() {
        let mut waiters = Waiters::default();
        let hour = 3_600;
        waiters.refused(&id("a"), at(hour));
        waiters.refused(&id("b"), at(hour));
        assert_eq!(turns(&waiters, 0), []);
        assert!(waiters.needs_record(&id("a"), at(0)));
        waiters.refused(&id("a"), at(0));
        assert_eq!(turns(&waiters, 0), [("a", 0)]);
        assert!(!waiters.contains(&id("b")), "forgotten");
        let mut waiters = Waiters::default();
        waiters.refused(&id("a"), at(100));
        waiters.refused(&id("a"), at(90));
        assert_eq!(turns(&waiters, 95), [("a", 90)]);
    }

    #[test]
    fn waiters_are_bounded() {
        let mut waiters = Waiters::default();
        for number in 0..WAITERS_MAX {
            waiters.refused(&id(&format!("n{number}")), at(0));
        }
        assert!(!waiters.needs_record(&id("more"), at(1)));
        assert!(waiters.needs_record(&id("more"), at(0) + REMEMBERED));
        assert!(waiters.needs_record(&id("n7"), at(0) + RECORD_INTERVAL));
    }
}
