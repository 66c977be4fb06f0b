//! What happened, in lines. Recorded only on request.

use crate::time::{Micros, SECOND};

/// Which lines are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    /// None.
    Nothing,
    /// What people need to understand a violation.
    Trace,
    /// What an outsider sees.
    Outside,
}

/// The lines so far; none if no trace is wanted.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    lines: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn wanted(wanted: bool) -> Self {
        Self { lines: wanted.then(Vec::new) }
    }

    pub(crate) fn record(&mut self, now: Micros, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>5}.{:06}  {}", now / SECOND, now % SECOND, line()));
        }
    }

    /// Records a line about `whom`, unless `what` returns none.
    pub(crate) fn record_of(
        &mut self,
        now: Micros,
        whom: impl std::fmt::Display,
        sign: char,
        what: impl FnOnce() -> Option<String>,
    ) {
        if self.lines.is_some()
            && let Some(what) = what()
        {
            self.record(now, || format!("{whom} {sign} {what}"));
        }
    }

    pub(crate) fn lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}
