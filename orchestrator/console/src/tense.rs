//! Forms of verbs. What blocks a run is said of now while it does, and of then once the run was missed.

/// When something is the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tense {
    /// Now.
    Present,
    /// At an earlier time, and perhaps no longer.
    Past,
}

impl Tense {
    /// The form of a verb.
    pub(crate) const fn of(self, present: &'static str, past: &'static str) -> &'static str {
        match self {
            Self::Present => present,
            Self::Past => past,
        }
    }

    pub(crate) const fn is(self) -> &'static str {
        self.of("is", "was")
    }

    pub(crate) const fn are(self) -> &'static str {
        self.of("are", "were")
    }

    pub(crate) const fn has(self) -> &'static str {
        self.of("has", "had")
    }
}

/// The verb for this many.
pub(crate) const fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}
