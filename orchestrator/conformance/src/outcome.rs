//! What came of a case while it was tried.

use super::Verdict;
use super::answer::Answer;

/// A group whose slots are all held.
#[derive(Debug)]
pub(crate) struct Filled {
    /// How many of them are held by ours.
    pub(crate) count: usize,
    /// What the next one was answered.
    pub(crate) refusal: Answer,
}

/// What came of a case.
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
