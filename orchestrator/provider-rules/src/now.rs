//! The current time, as the caller passes it in.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// The current time on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Wall time, from which every leader derives the same due times. It may jump.
    pub wall: DateTime<Utc>,
    /// Time since a fixed moment, for pauses and ages. It never goes backwards.
    pub monotonic: Duration,
}
