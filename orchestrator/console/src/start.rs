//! Why no run starts, or did not.

use std::fmt::{self, Formatter};

use os_upgrade_api_types::body::Stamp;
use os_upgrade_kernel::{MissedReason, StartBlocker, UsedWindow, WindowBlocker, WindowUse};
use os_upgrade_protocol::time;

use crate::describe::{Describe, describe};
use crate::tense::Tense;
use crate::{clock, pause, secrets};

impl Describe for WindowUse {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run { run } => write!(f, "starts none, because it has had its run, {run}"),
            Self::Cancel { run } => write!(f, "starts none, because run {run} was cancelled in it"),
            Self::Earlier => f.write_str(
                "starts none, because it has had a run or a cancel, or the site was restored in it",
            ),
        }
    }
}

impl Describe for StartBlocker {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&start_clause(self, Tense::Present))
    }
}

impl Describe for WindowBlocker {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&clause(self, Tense::Present))
    }
}

/// The clause for operators.
fn start_clause(blocker: &StartBlocker, tense: Tense) -> String {
    match blocker {
        StartBlocker::NoConfiguration => format!("nothing {} configured", tense.is()),
        StartBlocker::RunActive { run } => format!("run {run} {} active", tense.is()),
        StartBlocker::Paused(cause) => pause::clause(cause, tense),
        StartBlocker::StrongboxSealed { why } => secrets::clause(why, tense),
        StartBlocker::NoHosts { applications: _ } => {
            format!("no reachable host {} a configured application", tense.of("runs", "ran"))
        }
        StartBlocker::NoneApproved { hosts, withdrawn } => none_approved(*hosts, *withdrawn, tense),
        StartBlocker::AllDeferred { hosts: 1 } => {
            format!("the only host that is approved {} deferred", tense.is())
        }
        StartBlocker::AllDeferred { hosts } => {
            format!("all {hosts} hosts that are approved {} deferred", tense.are())
        }
        StartBlocker::Clock(doubt) => clock::clause(doubt, tense),
    }
}

fn none_approved(hosts: usize, withdrawn: usize, tense: Tense) -> String {
    let (is, are) = (tense.is(), tense.are());
    match (hosts, withdrawn) {
        (1, 0) => format!("the only host of the configured applications {is} not approved"),
        (1, _) => format!("the only host of the configured applications {is} withdrawn"),
        (_, 0) => format!("none of the {hosts} hosts of the configured applications {is} approved"),
        _ if hosts == withdrawn => {
            format!("all {hosts} hosts of the configured applications {are} withdrawn")
        }
        _ => format!(
            "none of the {hosts} hosts of the configured applications {is} approved ({withdrawn} of them withdrawn)"
        ),
    }
}

/// The clause for operators.
fn clause(blocker: &WindowBlocker, tense: Tense) -> String {
    let (is, are) = (tense.is(), tense.are());
    let why = match blocker {
        WindowBlocker::NoWindows => format!("no maintenance windows {are} configured"),
        WindowBlocker::NoOccurrence { are_denied: false } => {
            format!("no upcoming maintenance window {is} long enough")
        }
        WindowBlocker::NoOccurrence { are_denied: true } => {
            format!("deny windows {} no upcoming maintenance window long enough", tense.of("leave", "left"))
        }
        WindowBlocker::UnclearWindows { why } => why.to_string(),
        WindowBlocker::HostsAwaited { hosts: 1 } => return format!("the heartbeat of a host {is} awaited"),
        WindowBlocker::HostsAwaited { hosts } => {
            return format!("the heartbeats of {hosts} hosts {are} awaited");
        }
        WindowBlocker::Any(by) => return start_clause(by, tense),
    };
    format!("no run {} automatically: {why}", tense.of("starts", "started"))
}

/// The whole sentence for operators: that no run starts automatically, and why.
pub fn sentence(blocker: &WindowBlocker) -> String {
    match blocker {
        WindowBlocker::NoWindows
        | WindowBlocker::NoOccurrence { .. }
        | WindowBlocker::UnclearWindows { .. } => describe(blocker).to_string(),
        WindowBlocker::HostsAwaited { .. } | WindowBlocker::Any(_) => {
            format!("no run starts automatically: {}", describe(blocker))
        }
    }
}

impl Describe for MissedReason {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLeader => f.write_str("no orchestrator led"),
            Self::Blocked(it) => write!(f, "{}", clause(it, Tense::Past)),
        }
    }
}

/// That the end of the window was of no use to a run that could start until `latest`.
pub(crate) fn too_little_left(latest: Stamp, window_end: Stamp) -> &'static str {
    if latest.0 < window_end.0 { "; after that too little of the window was left" } else { "" }
}

impl Describe for UsedWindow {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { by, open_until } = self;
        write!(f, "the maintenance window that is open until {} {}", time::format(*open_until), describe(by))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_take_no_part_are_counted() {
        for (hosts, withdrawn, text) in [
            (1, 0, "the only host of the configured applications is not approved"),
            (1, 1, "the only host of the configured applications is withdrawn"),
            (3, 0, "none of the 3 hosts of the configured applications is approved"),
            (3, 1, "none of the 3 hosts of the configured applications is approved (1 of them withdrawn)"),
            (3, 3, "all 3 hosts of the configured applications are withdrawn"),
        ] {
            assert_eq!(describe(&StartBlocker::NoneApproved { hosts, withdrawn }).to_string(), text);
        }
    }
}
