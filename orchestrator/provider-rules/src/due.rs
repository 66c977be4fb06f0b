//! When polls are due: at `hash(host, provider)` modulo the interval. It follows from the names alone, so every leader finds the
//! same times, and hosts are spread over the interval.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_protocol::HostName;

use crate::digest::number_of;
use crate::name::ProviderName;

/// A poll by so small a part of the interval before it is due counts as that poll.
const EARLY_PARTS: u32 = 16;

/// When within each interval a host is due: a number that is as good as random, and always the same for the same host and provider.
///
/// It is the beginning of a SHA-256: unlike those of a fast hash, its bits differ for similar names too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phase(u64);

impl Phase {
    /// The phase of `host` with `provider`.
    pub fn new(host: &HostName, provider: &ProviderName) -> Self {
        // No name has a line feed.
        Self(number_of(format!("{host}\n{provider}").as_bytes()))
    }

    /// The number, for jitter.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }
}

/// The first time after `after` at which a poll is due. An interval has whole seconds, at least one.
pub fn next_due(phase: Phase, interval: Duration, after: DateTime<Utc>) -> DateTime<Utc> {
    let interval = interval.as_secs().clamp(1, u32::MAX.into());
    let offset = (phase.0 % interval).cast_signed();
    let interval = interval.cast_signed();
    let since = (after.timestamp() - offset).rem_euclid(interval);
    // Times have years, not milliseconds, of room at their end.
    let whole = DateTime::from_timestamp(after.timestamp(), 0).unwrap_or(after);
    whole.checked_add_signed(TimeDelta::seconds(interval - since)).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

/// When the poll that is made at `at` was due: it may be a little early, as clocks differ, or late. Whoever repeats it finds the same time.
pub(crate) fn due_time(phase: Phase, interval: Duration, at: DateTime<Utc>) -> DateTime<Utc> {
    let early = TimeDelta::from_std(interval / EARLY_PARTS).unwrap_or_default();
    let next = next_due(phase, interval, at.checked_add_signed(early).unwrap_or(at));
    let whole = TimeDelta::seconds(interval.as_secs().clamp(1, u32::MAX.into()).cast_signed());
    next.checked_sub_signed(whole).unwrap_or(next)
}

/// Whether a poll is due after `after`, and until `until` at the latest. Ranges that follow each other share no poll: who continues
/// from a later `after` may skip one, and repeats none.
pub fn is_due_between(phase: Phase, interval: Duration, after: DateTime<Utc>, until: DateTime<Utc>) -> bool {
    next_due(phase, interval, after) <= until
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn phase(host: &str, provider: &str) -> Phase {
        Phase::new(&HostName::new(host).unwrap(), &ProviderName::new(provider).unwrap())
    }

    fn time(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    /// These numbers must not change with a version: leaders of two versions would poll at different times.
    #[test]
    fn phases_are_stable() {
        assert_eq!(phase("h01", "app"), Phase(17_218_514_365_056_399_368));
        assert_ne!(phase("h01", "net"), phase("h01", "app"));
    }

    #[test]
    fn due_times_follow_the_phase() {
        for (seconds, interval, after, expected) in [
            (0, HOUR, "2026-03-01T12:00:00Z", "2026-03-01T13:00:00Z"),
            (0, HOUR, "2026-03-01T11:59:59Z", "2026-03-01T12:00:00Z"),
            (0, HOUR, "2026-03-01T11:59:59.9Z", "2026-03-01T12:00:00Z"),
            (90, HOUR, "2026-03-01T12:00:00Z", "2026-03-01T12:01:30Z"),
            (3690, HOUR, "2026-03-01T12:01:30Z", "2026-03-01T13:01:30Z"),
            (90, HOUR, "1969-12-31T23:30:00Z", "1970-01-01T00:01:30Z"),
            (7, Duration::from_secs(1), "2026-03-01T12:00:00.5Z", "2026-03-01T12:00:01Z"),
            (7, Duration::ZERO, "2026-03-01T12:00:00Z", "2026-03-01T12:00:01Z"),
        ] {
            assert_eq!(next_due(Phase(seconds), interval, time(after)), time(expected), "{seconds} {after}");
        }
        next_due(Phase(0), HOUR, DateTime::<Utc>::MAX_UTC);
    }

    #[test]
    fn polls_have_the_due_time_that_they_are_for() {
        for (at, expected) in [
            ("2026-03-01T12:01:30Z", "2026-03-01T12:01:30Z"),
            ("2026-03-01T12:58:00Z", "2026-03-01T13:01:30Z"),
            ("2026-03-01T12:57:00Z", "2026-03-01T12:01:30Z"),
        ] {
            assert_eq!(due_time(Phase(90), HOUR, time(at)), time(expected), "{at}");
        }
        due_time(Phase(0), HOUR, DateTime::<Utc>::MAX_UTC);
        due_time(Phase(0), Duration::ZERO, DateTime::<Utc>::MIN_UTC);
    }

    #[test]
    fn hosts_are_spread_over_the_interval() {
        let mut minutes = [0; 60];
        for number in 0..10_000 {
            let at = next_due(phase(&format!("h{number:05}"), "app"), HOUR, DateTime::UNIX_EPOCH);
            minutes[usize::try_from(at.timestamp() % 3600 / 60).unwrap()] += 1;
        }
        assert!(minutes.iter().all(|count| (100..=240).contains(count)), "{minutes:?}");
    }

    proptest! {
        /// However a day is cut into ranges, each poll is in one of them.
        #[test]
        fn no_poll_is_repeated(number: u64, secs in 1_u64..100_000, mut cuts in prop::collection::vec(0_i64..86_400, 0..20)) {
            let (phase, interval) = (Phase(number), Duration::from_secs(secs));
            cuts.extend([0, 86_400]);
            cuts.sort_unstable();
            let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
            let mut polls = Vec::new();
            for range in cuts.windows(2) {
                let mut last = at(range[0]);
                while is_due_between(phase, interval, last, at(range[1])) {
                    last = next_due(phase, interval, last);
                    polls.push(last);
                }
            }
            let expected: Vec<_> = (1..=86_400_u64)
                .filter(|second| second % secs == number % secs)
                .map(|second| at(second.cast_signed()))
                .collect();
            prop_assert_eq!(polls, expected);
        }
    }
}
