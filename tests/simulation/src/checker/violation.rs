//! Violations of the rules.

use std::fmt;

/// A broken rule.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The rule's short name.
    pub rule: &'static str,
    /// What was seen.
    pub text: String,
}

impl Violation {
    pub(super) fn new(rule: &'static str, text: String) -> Self {
        Self { rule, text }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.text)
    }
}

/// The first of all violations.
#[derive(Debug, Default)]
pub(super) struct Violations {
    first: Option<Violation>,
    /// The rules that count; `None` for all.
    only: Option<&'static [&'static str]>,
}

impl Violations {
    /// From now on only these rules count.
    pub(super) fn only(&mut self, rules: &'static [&'static str]) {
        self.only = Some(rules);
    }

    pub(super) fn record(&mut self, checked: Result<(), Violation>) {
        if let Err(violation) = checked
            && self.only.is_none_or(|rules| rules.contains(&violation.rule))
        {
            self.first.get_or_insert(violation);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(super) fn into_first(self) -> Option<Violation> {
        self.first
    }
}
