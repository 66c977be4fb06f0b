//! Simulated time.

use chrono::{DateTime, TimeDelta, Utc};

/// Simulated time since the beginning, in microseconds.
pub(crate) type Micros = u64;

pub(crate) const MILLI: Micros = 1_000;
pub(crate) const SECOND: Micros = 1_000_000;
pub(crate) const MINUTE: Micros = 60 * SECOND;

/// The wall-clock time at which simulated time begins.
pub(crate) fn beginning() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).expect("a valid time")
}

/// A span of simulated time.
pub(crate) fn span(micros: Micros) -> TimeDelta {
    TimeDelta::microseconds(i64::try_from(micros).expect("a simulation is short"))
}
