//! The outcome of a case while it is tried.

use super::Verdict;
use super::answer::Answer;

/// A group whose slots are all held.
#[derive(Debug)]
pub(crate) struct Filled {
    /// How many of them are held by our ids.
    pub(crate) count: usize,
    /// The answer to the next lock.
    pub(crate) refusal: Answer,
}

/// The outcome of a case.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    pub(crate) expected: String,
    pub(crate) got: String,
}

impl Outcome {
    pub(crate) fn new(verdict: Verdict, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self { verdict, expected: expected.into(), got: got.into() }
    }

    pub(crate) fn skip(got: impl Into<String>) -> Self {
        Self::new(Verdict::Skip, "", got)
    }
}
