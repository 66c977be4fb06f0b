//! FleetLock clients from outside that were refused a slot, remembered for a while, so that hosts of runs, which are
//! there all the time, leave them their share.

use chrono::{DateTime, TimeDelta, Utc};
use imbl::{OrdMap, OrdSet};
use serde::{Deserialize, Serialize};

use crate::client_id::ClientId;

/// How long a client that does not ask again is remembered. Zincati asks again after 300 to 330 s.
pub const REMEMBERED: TimeDelta = TimeDelta::minutes(7);
/// That a client has asked again is noted when it was noted last so long ago: noting each time would fill the journal.
pub const NOTED_AGAIN: TimeDelta = TimeDelta::minutes(1);
/// Most waiters of a group. Further ones are refused like these, and not remembered.
pub const WAITERS_MAX: usize = 20_000;

/// A client that was refused a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Waiter {
    /// When it was refused first.
    pub since: DateTime<Utc>,
    /// When it was noted last that it asked.
    pub asked: DateTime<Utc>,
    /// The arrival that counts for it. A client from outside that is granted a slot uses up the earliest arrival of them
    /// all, and the one whose that was has the granted one's from then on.
    pub turn: DateTime<Utc>,
}

impl Waiter {
    /// Whether it is still remembered. Not one that asked by a clock that was far ahead and has been set back.
    pub fn is_remembered(&self, now: DateTime<Utc>) -> bool {
        now < self.asked + REMEMBERED && self.asked < now + REMEMBERED
    }
}

/// The waiters of a group.
///
/// Among themselves it is the first to ask when a slot is free that gets it: each asks when it likes, and a slot kept
/// for one of them would lie idle for minutes. Their arrivals are what counts against the hosts of runs.
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
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// How many there are, with those that need not be remembered any more and have not been forgotten yet.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Those that are remembered at `now`, whose turn is the earliest first.
    pub fn remembered(&self, now: DateTime<Utc>) -> impl Iterator<Item = (&ClientId, &Waiter)> {
        let waiters = self.by_turn.iter().filter_map(|(_, id)| Some((id, self.known.get(id)?)));
        waiters.filter(move |(_, waiter)| waiter.is_remembered(now))
    }

    /// Whether it is to be noted that `id` asks at `now` and is refused.
    pub fn is_news(&self, id: &ClientId, now: DateTime<Utc>) -> bool {
        match self.known.get(id) {
            // In the future, where the clock has been set back.
            Some(waiter) => waiter.asked + NOTED_AGAIN <= now || now < waiter.asked,
            None => self.known.len() < WAITERS_MAX || self.has_forgettable(now),
        }
    }

    /// Whether `id` waits, as far as has been noted.
    pub fn contains(&self, id: &ClientId) -> bool {
        self.known.contains_key(id)
    }

    /// Notes that `id` was refused.
    pub(super) fn refused(&mut self, id: &ClientId, at: DateTime<Utc>) {
        self.forget(at);
        let waiter = match self.remove(id) {
            Some(Waiter { since, asked: _, turn }) => {
                Waiter { since: since.min(at), asked: at, turn: turn.min(at) }
            }
            None => Waiter { since: at, asked: at, turn: at },
        };
        self.insert(id, waiter);
    }

    /// Notes that `id` was granted a slot, which uses up the earliest arrival.
    pub(super) fn granted(&mut self, id: &ClientId, at: DateTime<Utc>) {
        self.forget(at);
        let turn = self.remove(id).map_or(at, |waiter| waiter.turn);
        let first = self.by_turn.get_min().filter(|(earliest, _)| *earliest < turn);
        if let Some((_, first)) = first.cloned()
            && let Some(waiter) = self.remove(&first)
        {
            self.insert(&first, Waiter { turn, ..waiter });
        }
    }

    /// Notes that `id` does not wait any more.
    pub(super) fn left(&mut self, id: &ClientId) {
        self.remove(id);
    }

    fn has_forgettable(&self, now: DateTime<Utc>) -> bool {
        self.forgettable(now).is_some()
    }

    /// Of those that need not be remembered one, if there are any: they are at either end.
    fn forgettable(&self, now: DateTime<Utc>) -> Option<&ClientId> {
        let ends = [self.by_asked.get_min(), self.by_asked.get_max()];
        let ids = ends.into_iter().flatten().map(|(_, id)| id);
        ids.into_iter().find(|id| self.known.get(*id).is_some_and(|waiter| !waiter.is_remembered(now)))
    }

    fn forget(&mut self, at: DateTime<Utc>) {
        while let Some(id) = self.forgettable(at).cloned() {
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
    fn whoever_is_granted_uses_up_the_earliest_arrival() {
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
        waiters.left(&id("b"));
        assert!(waiters.is_empty());
        assert_eq!(waiters, Waiters::default());
    }

    #[test]
    fn who_does_not_ask_again_is_forgotten() {
        let mut waiters = Waiters::default();
        let remembered = REMEMBERED.num_seconds();
        waiters.refused(&id("a"), at(0));
        waiters.refused(&id("b"), at(10));
        assert!(!waiters.is_news(&id("a"), at(NOTED_AGAIN.num_seconds() - 1)));
        assert!(waiters.is_news(&id("a"), at(NOTED_AGAIN.num_seconds())));
        assert_eq!(turns(&waiters, remembered - 1).len(), 2);
        assert_eq!(turns(&waiters, remembered), [("b", 10)]);
        waiters.refused(&id("a"), at(remembered));
        assert_eq!(turns(&waiters, remembered), [("b", 10), ("a", remembered)], "anew, behind the other");
        let json = serde_json::to_string(&waiters).unwrap();
        assert_eq!(serde_json::from_str::<Waiters>(&json).unwrap(), waiters);
    }

    #[test]
    fn a_clock_that_is_set_back_neither_keeps_one_for_long_nor_costs_it_its_turn() {
        let mut waiters = Waiters::default();
        let hour = 3_600;
        waiters.refused(&id("a"), at(hour));
        waiters.refused(&id("b"), at(hour));
        assert_eq!(turns(&waiters, 0), []);
        assert!(waiters.is_news(&id("a"), at(0)));
        waiters.refused(&id("a"), at(0));
        assert_eq!(turns(&waiters, 0), [("a", 0)]);
        assert!(!waiters.contains(&id("b")), "forgotten");
        let mut waiters = Waiters::default();
        waiters.refused(&id("a"), at(100));
        waiters.refused(&id("a"), at(90));
        assert_eq!(turns(&waiters, 95), [("a", 90)]);
    }

    #[test]
    fn there_is_a_most_of_them() {
        let mut waiters = Waiters::default();
        for number in 0..WAITERS_MAX {
            waiters.refused(&id(&format!("n{number}")), at(0));
        }
        assert!(!waiters.is_news(&id("more"), at(1)));
        assert!(waiters.is_news(&id("more"), at(0) + REMEMBERED));
        assert!(waiters.is_news(&id("n7"), at(0) + NOTED_AGAIN));
    }
}
