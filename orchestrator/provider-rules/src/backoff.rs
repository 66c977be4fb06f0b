//! How long a host waits after its provider failed.

use std::time::Duration;

use crate::failure::{Failure, Remedy};

/// The first pause after a failure that passes by itself.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The first pause after a failure that somebody has to end.
const FIRST_PAUSE_CHANGE: Duration = Duration::from_mins(1);
/// The longest pause, without jitter.
const PAUSE_MAX: Duration = Duration::from_hours(1);

/// The pause after so many failures in a row, at least one, the last of which was `failure`. It doubles each time, up to the poll
/// interval or an hour, whichever is shorter; up to a quarter is added, as `chance` says, so that those who fail together are not tried
/// together.
pub fn pause(failure: &Failure, failures: u32, poll_interval: Duration, chance: u64) -> Duration {
    let first = match failure.remedy() {
        Remedy::Time => FIRST_PAUSE,
        Remedy::Change => FIRST_PAUSE_CHANGE,
    };
    let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    let pause = first.saturating_mul(factor).min(poll_interval).min(PAUSE_MAX);
    let parts = u32::try_from(chance % 1024).unwrap_or_default();
    pause + pause / 4096 * parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_interval() {
        let (hour, day) = (Duration::from_hours(1), Duration::from_hours(24));
        for (failure, failures, interval, seconds) in [
            (Failure::TimedOut, 1, hour, 10),
            (Failure::TimedOut, 2, hour, 20),
            (Failure::TimedOut, 9, hour, 2560),
            (Failure::TimedOut, 10, hour, 3600),
            (Failure::TimedOut, 10, day, 3600),
            (Failure::TimedOut, u32::MAX, day, 3600),
            (Failure::TimedOut, 3, Duration::from_secs(30), 30),
            (Failure::Refused { status: 401 }, 1, hour, 60),
            (Failure::Refused { status: 401 }, 3, hour, 240),
        ] {
            let expected = Duration::from_secs(seconds);
            assert_eq!(pause(&failure, failures, interval, 0), expected, "{failure:?} {failures}");
            assert_eq!(pause(&failure, failures, interval, 1024), expected);
            let longest = pause(&failure, failures, interval, 1023);
            assert!(longest > expected && longest < expected + expected / 4, "{longest:?}");
        }
    }
}
