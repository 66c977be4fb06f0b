//! Why a host is not moving, and when it could.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;

use crate::reason::Reason;
use crate::run::{HostStatus, Phase, Run, RunHost};
use crate::state::State;
use crate::view::{Reachability, View};

/// Why a host is where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Where it is, if a run is active and it is in it.
    pub status: Option<HostStatus>,
    /// Since when.
    pub since: Option<DateTime<Utc>>,
    /// Why it is not moving, in a sentence.
    pub why: String,
    /// What it waits for, typed, when a reason was recorded.
    pub reason: Option<Reason>,
    /// When, at the latest, that changes by time alone.
    pub until: Option<DateTime<Utc>>,
}

/// Why `host` is not moving, and when it could.
pub fn explain(state: &State, view: &View, host: &HostName) -> Explanation {
    match state.run.as_ref().and_then(|run| Some((run, run.host(host)?))) {
        Some((run, in_run)) => Explanation {
            status: Some(in_run.status),
            since: Some(in_run.since),
            why: in_active_run(run, in_run),
            reason: in_run.reason.clone(),
            until: (!in_run.status.is_final()).then_some(run.not_after),
        },
        None => Explanation {
            status: None,
            since: None,
            why: outside_of_runs(state, view, host),
            reason: None,
            until: state.run.as_ref().map(|run| run.not_after),
        },
    }
}

fn in_active_run(run: &Run, host: &RunHost) -> String {
    match host.status {
        HostStatus::Pending => "its prepare command is about to be sent".to_owned(),
        HostStatus::Preparing => "its worker has not answered prepare yet".to_owned(),
        HostStatus::Prepared => match run.phase {
            Phase::Preparing => format!("waiting until {} more hosts are prepared", run.unprepared()),
            Phase::Upgrading => format!("waiting for its turn{}", who_is_under_way(run)),
        },
        HostStatus::Waiting if !run.under_way().is_empty() => {
            format!("waiting for its turn{}", who_is_under_way(run))
        }
        HostStatus::Waiting
        | HostStatus::Failed
        | HostStatus::TimedOut
        | HostStatus::Skipped
        | HostStatus::Cancelled => {
            host.reason.as_ref().map_or_else(|| host.status.to_string(), ToString::to_string)
        }
        HostStatus::Upgrading | HostStatus::Rebooting => match host.command {
            Some(command) if command.sequence.is_none() => {
                format!("its {} command is about to be sent", command.action)
            }
            Some(command) => format!("its worker has not answered {} yet", command.action),
            None => host.status.to_string(),
        },
        HostStatus::Upgraded => "upgraded in this run".to_owned(),
    }
}

fn who_is_under_way(run: &Run) -> String {
    run.under_way().get_min().map(|host| format!(": {host} is under way")).unwrap_or_default()
}

fn outside_of_runs(state: &State, view: &View, host: &HostName) -> String {
    let Some(seen) = view.hosts.get(host) else {
        return "no worker has announced itself on it".to_owned();
    };
    let Some(config) = &state.config else {
        return "nothing is configured".to_owned();
    };
    let serves = config.worker_applications.iter().any(|entry| seen.applications.contains(&entry.name));
    if !serves {
        return "its worker's application is not among the configured ones".to_owned();
    }
    if state.run.is_some() {
        return "it appeared after the run had started".to_owned();
    }
    match seen.reachability {
        Reachability::Unreachable => "unreachable, and no run is active".to_owned(),
        Reachability::Reachable | Reachability::Unknown => "no run is active".to_owned(),
    }
}
