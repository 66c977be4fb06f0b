//! The current time, as the caller passes it in.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// The current time on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Wall time, for deadlines, records, and what every leader derives alike. It may jump forwards or backwards.
    pub wall: DateTime<Utc>,
    /// Time since a fixed moment, for leases, pauses, ages and timeouts. It never goes backwards.
    pub monotonic: Duration,
}
