//! Why a host is not moving, and when it could.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, HostName, time};

use crate::enrolment::Enrolled;
use crate::outlook::{KeptBackBy, Never, Outlook};
use crate::reason::Reason;
use crate::run::{HostStatus, Phase, Run, RunHost};
use crate::slot::Standing;
use crate::state::State;
use crate::view::{CLOCK_SKEW_SECS_MAX, Reachability, View};

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

/// When, at the latest, nothing more is waited for of a host.
fn ends(run: &Run, host: &RunHost) -> DateTime<Utc> {
    let reboot = host.unanswered().filter(|command| command.action == Action::Reboot);
    let booted = reboot.and_then(|command| Some(command.sent_at? + run.rollout.boot_timeout.to_delta()));
    booted.map_or(run.not_after, |booted| booted.min(run.not_after))
}

/// Why `host` is not moving, and when it could, where `outlook` is what is to be expected of the site.
pub fn explain(state: &State, view: &View, outlook: &Outlook, host: &HostName) -> Explanation {
    match state.run.as_ref().and_then(|run| Some((run, run.host(host)?))) {
        Some((run, in_run)) => Explanation {
            status: Some(in_run.status),
            since: Some(in_run.since),
            why: in_active_run(state, run, host, in_run)
                + &seen_of(view, host, in_run)
                + &withdrawn_since(state, host, in_run),
            reason: in_run.reason.clone(),
            until: (!in_run.status.is_final()).then(|| ends(run, in_run)),
        },
        None => Explanation {
            status: None,
            since: None,
            why: outside_of_runs(state, view, outlook, host),
            reason: view.hosts.get(host).and_then(|_| state.enrolled(host).left_out(host)),
            until: match &state.run {
                // It waits for somebody, and not for a time.
                _ if !state.enrolled(host).takes_part() => None,
                Some(run) => Some(run.not_after),
                // What keeps it back does not end by time.
                None => match outlook {
                    Outlook::Next(start) => Some(start.at),
                    Outlook::KeptBack { .. } | Outlook::Never(_) => None,
                },
            },
        },
    }
}

fn in_active_run(state: &State, run: &Run, name: &HostName, host: &RunHost) -> String {
    match host.status {
        HostStatus::Pending => "its prepare command is about to be sent".to_owned(),
        HostStatus::Preparing => "its worker has not answered prepare yet".to_owned(),
        HostStatus::Prepared => match run.phase {
            Phase::Preparing => format!("waiting until {} prepared", more_hosts(run.unprepared())),
            Phase::Upgrading => its_turn(state, run, name, host),
        },
        HostStatus::Skipped if approved_since(state, name, host) => {
            "it was approved after the run had started".to_owned()
        }
        HostStatus::Waiting if !run.has_room() || its_old_slot(state, name).is_some() => {
            its_turn(state, run, name, host)
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

/// What keeps a host from its turn: its own earlier slot, those under way, or the first of its group, which waits.
fn its_turn(state: &State, run: &Run, name: &HostName, host: &RunHost) -> String {
    if let Some(why) = its_old_slot(state, name) {
        return why.to_owned();
    }
    let under_way = || run.under_way().get_min().map(|first| format!(": {first} is under way"));
    let first = || {
        let group = run.ready().get(&host.group)?;
        let ahead = |other: &&HostName| *other != name && group.contains(*other);
        let first = run.waiting().iter().find(ahead).or_else(|| state.slots.keys().find(ahead))?;
        let why = its_old_slot(state, first).map(ToOwned::to_owned);
        let why = why.or_else(|| run.host(first)?.reason.as_ref().map(ToString::to_string))?;
        Some(format!(": {first} is first: {why}"))
    };
    let who = if run.has_room() { first().or_else(under_way) } else { under_way() };
    format!("waiting for its turn{}", who.unwrap_or_default())
}

/// Why the slot that a host already has keeps it from starting.
fn its_old_slot(state: &State, name: &HostName) -> Option<&'static str> {
    let slot = state.slots.get(name)?;
    if slot.may_see_late_command(state.fence.as_ref()) {
        Some("waiting until it is certain that its earlier command can no longer appear")
    } else if matches!(slot.standing, Standing::Releasing { .. }) {
        Some("waiting until its earlier slot has been given back")
    } else {
        None
    }
}

/// What is wrong with a host that has not come to its end in the run: that it may be off, and that a worker whose clock is
/// wrong may take a command for one whose time is over.
fn seen_of(view: &View, name: &HostName, host: &RunHost) -> String {
    let Some(seen) = view.hosts.get(name).filter(|_| !host.status.is_final()) else { return String::new() };
    let unreachable = (seen.reachability == Reachability::Unreachable)
        .then(|| "; it is unreachable, as no heartbeat comes from it".to_owned());
    let skew = seen.clock_skew_secs.filter(|seconds| seconds.saturating_abs() > CLOCK_SKEW_SECS_MAX);
    let skew = skew.map(|seconds| format!("; its clock differs from the bus's by {seconds} s"));
    unreachable.unwrap_or_default() + &skew.unwrap_or_default()
}

/// Whether a host that was left out of the run for want of an approval has it by now.
fn approved_since(state: &State, name: &HostName, host: &RunHost) -> bool {
    let left_out = matches!(host.reason, Some(Reason::AwaitsApproval { .. } | Reason::HostWithdrawn { .. }));
    left_out && state.enrolled(name).takes_part()
}

/// What an operator decided about a host that had begun.
fn withdrawn_since(state: &State, name: &HostName, host: &RunHost) -> String {
    match state.enrolled(name) {
        Enrolled::Withdrawn(_) | Enrolled::Pending if host.status.is_under_way() => {
            "; it takes no part any more once it has come to its end here".to_owned()
        }
        Enrolled::Withdrawn(_) | Enrolled::Pending | Enrolled::Approved(_) | Enrolled::Auto => String::new(),
    }
}

/// The slot that a host still holds outside of runs, and what it is held for.
fn its_slot(state: &State, name: &HostName) -> String {
    let Some(slot) = state.slots.get(name) else {
        return String::new();
    };
    let (group, since) = (&slot.group, time::format(slot.since));
    match slot.standing {
        Standing::Releasing { .. } => format!("; its slot of group {group} is being given back"),
        Standing::Requested | Standing::Held => {
            let ended = state.last_run.as_ref().and_then(|run| run.host(name)?.reason.as_ref());
            let why = ended.map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("; it holds a slot of group {group} since {since}{why}")
        }
    }
}

fn more_hosts(count: usize) -> String {
    if count == 1 { "1 more host is".to_owned() } else { format!("{count} more hosts are") }
}

fn outside_of_runs(state: &State, view: &View, outlook: &Outlook, host: &HostName) -> String {
    let Some(seen) = view.hosts.get(host) else {
        return "no worker has announced itself on it".to_owned();
    };
    if let Some(reason) = state.enrolled(host).left_out(host) {
        return format!("{reason}{}", its_slot(state, host));
    }
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
    let (next, slot) = (next_run(outlook), its_slot(state, host));
    match seen.reachability {
        Reachability::Unreachable => format!("unreachable, and no run is active{next}{slot}"),
        Reachability::Awaited => format!("its heartbeat is awaited, and no run is active{next}{slot}"),
        Reachability::Reachable | Reachability::Unknown => format!("no run is active{next}{slot}"),
    }
}

/// What is to be expected of the site's maintenance windows.
fn next_run(outlook: &Outlook) -> String {
    match outlook {
        Outlook::Next(start) => format!("; the next starts by itself at {}", time::format(start.at)),
        Outlook::KeptBack { start, by } => {
            let why = match by {
                KeptBackBy::ClockSkew { seconds } => {
                    format!("the clocks of orchestrator and bus differ by {seconds} s")
                }
                KeptBackBy::Sealed(sealed) => sealed.of_leader(),
                KeptBackBy::HostsAwaited { hosts: 1 } => "the heartbeat of a host is awaited".to_owned(),
                KeptBackBy::HostsAwaited { hosts } => {
                    format!("the heartbeats of {hosts} hosts are awaited")
                }
                KeptBackBy::NoHosts => "no host of the configured applications can be reached".to_owned(),
                KeptBackBy::NoneApproved { hosts } => {
                    format!("of {hosts} hosts of the configured applications none is approved")
                }
            };
            format!("; a maintenance window is open until {}, but {why}", time::format(start.occurrence.end))
        }
        Outlook::Never(Never::NoConfiguration | Never::NoWindows) => {
            "; none starts by itself, as there are no maintenance windows".to_owned()
        }
        Outlook::Never(Never::Windows(error)) => format!("; none starts by itself: {error}"),
        Outlook::Never(Never::NoOccurrence) => {
            "; none starts by itself, as no maintenance window opens again for long enough".to_owned()
        }
    }
}
