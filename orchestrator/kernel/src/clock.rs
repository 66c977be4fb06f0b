//! Whether wall time can be relied on. Windows and deadlines are about wall time, and a clock that is wrong must neither
//! start nor end anything.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

/// The largest clock difference at which anything is started or ended, in seconds.
pub const CLOCK_SKEW_SECS_MAX: i64 = 30;

/// What is known of the orchestrator's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clock {
    /// Why wall time cannot be relied on; absent if it can.
    pub doubt: Option<ClockDoubt>,
    /// When the clock was last seen to step, by the time that it showed afterwards; absent if it never was.
    pub steady_since: Option<DateTime<Utc>>,
}

/// Why wall time cannot be relied on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ClockDoubt {
    /// The clock has not been compared with the bus's lately.
    ClockUnmeasured,
    /// The clocks of orchestrator and bus differ too much to keep to deadlines.
    ClockSkew {
        /// The orchestrator's clock minus the bus's, in seconds.
        seconds: i64,
    },
    /// Most hosts say that it is another time.
    ClockDisputed {
        /// How many hosts have another time.
        differ: usize,
        /// How many hosts send their time.
        hosts: usize,
    },
    /// The bus's clock has stepped, and no host says which time is right.
    ClockStepped,
    /// The clock is behind the newest record, so it was set back, or lost the time while the machine was off.
    ClockBehind {
        /// The time of the newest record, in whole seconds.
        newest: DateTime<Utc>,
    },
}

impl ClockDoubt {
    /// Whether this doubt concerns windows only. Deadlines and time-outs hold all the same, and operators may start
    /// runs: they vouch for the clock by that, and what was recorded before no longer counts.
    pub const fn is_of_windows(&self) -> bool {
        match self {
            Self::ClockBehind { .. } => true,
            Self::ClockUnmeasured
            | Self::ClockSkew { .. }
            | Self::ClockDisputed { .. }
            | Self::ClockStepped => false,
        }
    }

    /// The `kind` in its JSON.
    pub fn kind(&self) -> &'static str {
        self.into()
    }
}

impl Default for Clock {
    /// Nothing is known yet.
    fn default() -> Self {
        Self { doubt: Some(ClockDoubt::ClockUnmeasured), steady_since: None }
    }
}

impl Clock {
    /// A clock that can be relied on, and that never stepped.
    pub const TRUSTED: Self = Self { doubt: None, steady_since: None };

    /// Whether wall time can be relied on for deadlines and time-outs.
    pub fn is_trusted(&self) -> bool {
        self.doubt.as_ref().is_none_or(ClockDoubt::is_of_windows)
    }

    /// Whether wall time can be relied on for windows too, and so for whatever starts without an operator.
    pub const fn is_beyond_doubt(&self) -> bool {
        self.doubt.is_none()
    }

    /// Whether `span` has certainly passed between `since` and `now`: only time after the last step counts, so each step
    /// makes a timeout later, at most by `span`, and never earlier.
    pub fn has_passed(&self, span: TimeDelta, since: DateTime<Utc>, now: DateTime<Utc>) -> bool {
        let since = match self.steady_since {
            // It was before a step back if it is still to come.
            Some(step) if since > now => step,
            Some(step) => since.max(step),
            None => since,
        };
        self.is_trusted() && now - since >= span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds: when the clock stepped (by what it showed then), since when, and how many have passed at 1000.
    #[test]
    fn steps_delay_timeouts() {
        let at = |secs: i64| DateTime::UNIX_EPOCH + TimeDelta::seconds(secs);
        for (step, since, passed) in [
            (None, 400, 600),
            (None, 1_200, -200),
            (Some(300), 400, 600),
            (Some(990), 400, 10),
            // Set back after 1200.
            (Some(900), 1_200, 100),
        ] {
            let clock = Clock { steady_since: step.map(at), ..Clock::TRUSTED };
            let has_passed = |secs| clock.has_passed(TimeDelta::seconds(secs), at(since), at(1_000));
            assert!(has_passed(passed) && !has_passed(passed + 1), "{step:?} {since}");
            let doubted = Clock { doubt: Some(ClockDoubt::ClockStepped), ..clock };
            assert!(!doubted.has_passed(TimeDelta::seconds(passed), at(since), at(1_000)));
        }
    }
}
