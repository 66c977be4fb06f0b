//! Whether a write may still be sent, asked right before each one.

use super::error::Error;

/// This instance does not lead any more, or its lease is about to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotLeading;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interrupted {
    /// Nothing more may be written.
    NotLeading,
    /// A request failed.
    Failed(Error),
}

impl From<NotLeading> for Interrupted {
    fn from(_: NotLeading) -> Self {
        Self::NotLeading
    }
}

impl From<Error> for Interrupted {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The permission to write, until further notice. A request that has been sent is not cut off: it takes at most
/// [`super::client::REQUEST_TIMEOUT`] more.
#[derive(Clone, Copy)]
pub struct Permit<'a> {
    may_write: &'a (dyn Fn() -> bool + Send + Sync),
}

impl std::fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

impl<'a> Permit<'a> {
    /// A permission for as long as `may_write` says that this instance leads, since the process may have been paused.
    pub fn new(may_write: &'a (dyn Fn() -> bool + Send + Sync)) -> Self {
        Self { may_write }
    }

    /// Whether a write may be sent now.
    ///
    /// # Errors
    /// It may not.
    pub fn check(&self) -> Result<(), NotLeading> {
        if (self.may_write)() { Ok(()) } else { Err(NotLeading) }
    }
}
