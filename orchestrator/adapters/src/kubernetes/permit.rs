//! How long a piece of work may go on, asked right before each write.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::Error;

/// Why work stops before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The time is up.
    DeadlinePassed,
    /// It is not wanted any more.
    Cancelled,
    /// This instance does not lead any more, or its lease is about to end.
    NotLeading,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interrupted {
    /// The work was stopped.
    Stopped(Stop),
    /// A request failed.
    Failed(Error),
}

impl From<Stop> for Interrupted {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}

impl From<Error> for Interrupted {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The permission to write, until further notice. A request that has been sent is not cut off: it takes at most
/// [`super::client::REQUEST_TIMEOUT`] more.
pub struct Permit<'a> {
    deadline: Instant,
    cancellation: CancellationToken,
    may_write: &'a (dyn Fn() -> bool + Send + Sync),
}

impl std::fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permit").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

impl<'a> Permit<'a> {
    /// A permission up to `deadline`, unless it is cancelled before. `may_write` says whether this instance still leads,
    /// since the process may have been paused.
    pub fn new(
        deadline: Instant,
        cancellation: CancellationToken,
        may_write: &'a (dyn Fn() -> bool + Send + Sync),
    ) -> Self {
        Self { deadline, cancellation, may_write }
    }

    /// Whether a write may be sent now.
    ///
    /// # Errors
    /// It may not.
    pub fn check(&self) -> Result<(), Stop> {
        if self.cancellation.is_cancelled() {
            Err(Stop::Cancelled)
        } else if Instant::now() >= self.deadline {
            Err(Stop::DeadlinePassed)
        } else if !(self.may_write)() {
            Err(Stop::NotLeading)
        } else {
            Ok(())
        }
    }

    /// Waits for something that changes nothing, and gives it up when the work is to stop.
    ///
    /// # Errors
    /// The work is to stop.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            () = self.cancellation.cancelled() => Err(Stop::Cancelled),
            result = work => Ok(result),
            () = tokio::time::sleep_until(self.deadline) => Err(Stop::DeadlinePassed),
        }
    }

    /// Waits.
    ///
    /// # Errors
    /// The work is to stop.
    pub async fn pause(&self, pause: Duration) -> Result<(), Stop> {
        self.during(tokio::time::sleep(pause)).await
    }
}
