//! What a refused caller can do about it, whatever was requested.

/// The class of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalClass {
    /// The request itself is wrong.
    Invalid,
    /// It names something that does not exist.
    Missing,
    /// The state of the site does not allow it now.
    Conflict,
    /// What it changes is not what the caller has read.
    Changed,
    /// Something has to be repaired first.
    Unavailable,
}
