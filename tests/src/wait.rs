//! Waiting until something is so, never for a fixed time.

use std::time::{Duration, Instant};

/// How long anything may take before the test has failed; far more than it should.
pub const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks until `look` returns something; panics with `what` when that takes longer than [`PATIENCE`].
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "in vain waited for: {what}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
