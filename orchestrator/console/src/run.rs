//! Why a request about a run is refused.

use std::fmt::{self, Formatter};

use os_upgrade_kernel::{NoTarget, Retry, RunRefusal, StartBlocker, TARGETS_MAX};

use crate::describe::{Describe, describe};

impl Describe for RunRefusal {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimeoutTooShort => f.write_str("timeout: must be at least 1s"),
            Self::NothingFits { expected } => write!(
                f,
                "timeout: a host takes {expected} (rollout.expected-duration), so that none would be begun: write more than that"
            ),
            Self::NoTargets { hosts, more } => {
                let each = hosts.iter().map(|(host, why)| format!("{host} {}", no_target(*why)));
                let more = (*more > 0).then(|| format!("and {more} more"));
                let all: Vec<String> = each.chain(more).collect();
                write!(f, "hosts: {}; nothing is started", all.join(", "))
            }
            Self::TooManyTargets => write!(f, "hosts: at most {TARGETS_MAX} are named at once"),
            Self::NobodyToRetry { retry: Retry::Failed } => f.write_str(
                "no host that can take part has failed or timed out since it was upgraded last: \
                 `os-upgrade hosts list` shows how each ended",
            ),
            Self::NobodyToRetry { retry: Retry::NotReached } => f.write_str(
                "no host that can take part was not reached in its last run: `os-upgrade hosts list` shows how each ended",
            ),
            Self::NoRun => f.write_str("no run is active"),
            Self::NotInRun { run, host } => write!(f, "{host} is not in the active run {run}"),
            Self::HostFinished { host, status } => {
                write!(f, "{host} is {status}: the run does not wait for it")
            }
            Self::HostUncertain { host } => write!(
                f,
                "the last command to {host}, or the reply to it, is not known yet: try again in a moment"
            ),
            Self::NotStartable(it) => f.write_str(&not_startable(it)),
        }
    }
}

/// Why a host that was named takes no part.
const fn no_target(why: NoTarget) -> &'static str {
    match why {
        NoTarget::Unknown => "has no worker of a configured application",
        NoTarget::Unapproved => "is not approved",
        NoTarget::Withdrawn => "is withdrawn",
        NoTarget::Deferred => "is deferred",
    }
}

/// What blocks the start of a run, and what an operator can do about it.
fn not_startable(by: &StartBlocker) -> String {
    match by {
        StartBlocker::NoConfiguration => {
            "there is no configuration yet: `os-upgrade config apply -f FILE` makes one".to_owned()
        }
        StartBlocker::Clock(_) => format!("{}; no run starts until the time is certain", describe(by)),
        StartBlocker::NoneApproved { hosts, withdrawn } if hosts == withdrawn => format!(
            "{}: `os-upgrade hosts history` says why, and `os-upgrade hosts approve NAME...` lets one take part again",
            describe(by)
        ),
        StartBlocker::NoneApproved { .. } => format!(
            "{}: list them with `os-upgrade hosts list`, then `os-upgrade hosts approve NAME...` or `--all`, or set \
             [site] auto-approve = true",
            describe(by)
        ),
        StartBlocker::NoHosts { applications } if applications.is_empty() => {
            "no application is configured, so no host takes part in runs: list them as worker-applications"
                .to_owned()
        }
        StartBlocker::NoHosts { applications } => {
            format!("no host has announced a worker of the configured applications ({applications})")
        }
        StartBlocker::RunActive { .. } => format!("{}: `os-upgrade run watch` shows it", describe(by)),
        StartBlocker::AllDeferred { .. } => {
            format!("{}: `os-upgrade hosts defer --end NAME...` lets one begin again", describe(by))
        }
        StartBlocker::Paused(_) => format!("{}; `os-upgrade resume` ends that", describe(by)),
        StartBlocker::StrongboxSealed { .. } => describe(by).to_string(),
    }
}
