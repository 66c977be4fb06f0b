//! One check and its result.

use serde::Serialize;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// As it should be.
    Ok,
    /// It works but may stop soon, or it could not be checked.
    Warning,
    /// It does not work.
    Problem,
}

impl Verdict {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One check and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Check {
    /// What was checked.
    #[serde(rename = "check")]
    pub(super) name: String,
    pub(super) verdict: Verdict,
    /// What was found.
    pub(super) found: String,
    /// What to do about it; absent if it is ok.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
}

impl Check {
    pub(super) fn ok(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Ok, found: found.into(), advice: None }
    }

    pub(super) fn warning(
        name: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Warning, advice: Some(advice.into()), ..Self::ok(name, found) }
    }

    pub(super) fn problem(
        name: impl Into<String>,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Problem, ..Self::warning(name, found, advice) }
    }
}
