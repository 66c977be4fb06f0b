//! Time as it is handed in.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// The present, by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Wall time: for deadlines and for what is recorded. It may step either way.
    pub wall: DateTime<Utc>,
    /// Time since some fixed moment, which never goes backwards: for leases, retries and timeouts.
    pub monotonic: Duration,
}
