//! Looks at everything a site needs and says what is wrong with it and what to do. It changes nothing, makes nothing, and
//! needs nothing to run.

mod access;
mod bus;
mod command;
mod files;
mod hosts;

use serde::Serialize;

pub(crate) use self::command::{Doctor, run};

use os_upgrade_settings::{self as settings, Settings};

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// As it should be.
    Ok,
    /// It works, and will not for long, or could not be looked at.
    Warning,
    /// It does not work.
    Problem,
}

impl Verdict {
    /// The word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Check {
    /// What.
    #[serde(rename = "check")]
    pub(crate) name: String,
    /// How it came out.
    pub(crate) verdict: Verdict,
    /// What was found.
    pub(crate) found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<String>,
}

impl Check {
    fn ok(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Ok, found: found.into(), advice: None }
    }

    fn warning(name: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, advice: Some(advice.into()), ..Self::ok(name, found) }
    }

    fn problem(name: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Problem, ..Self::warning(name, found, advice) }
    }
}

/// Every check, in the order in which one builds on the other.
pub(crate) async fn examine(settings: Result<Settings, settings::Error>) -> Vec<Check> {
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => {
            let problem =
                |line: &str| Check::problem("configuration", line, "correct it; nothing else was looked at");
            return error.to_string().lines().map(problem).collect();
        }
    };
    let mut checks = vec![Check::ok("configuration", format!("site {}", settings.site.name.as_str()))];
    checks.extend(files::data_directory(&settings));
    let (folded, store) = files::store(&settings).await;
    checks.extend(store);
    checks.extend(access::examine(
        &settings,
        folded.as_ref().map(|folded| &folded.state),
        chrono::Utc::now(),
    ));
    checks.extend(files::lock_server(&settings));
    checks.extend(files::nats_server(&settings).await);
    checks.extend(bus::examine(&settings, folded.as_ref()).await);
    checks
}
