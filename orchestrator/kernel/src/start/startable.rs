//! Whether a run can start now. This is the only place that decides it: for operators' triggers, for maintenance
//! windows, and for showing what blocks a start. The facts of a start are decided in `begin.rs`, from the
//! [`Startable`] that only [`startable`] returns.

use super::blocker::{StartBlocker, WindowBlocker};
use crate::config::Config;
use crate::enrolment::Enrolled;
use crate::state::State;
use crate::view::{Reachability, View};

/// How many applications a [`StartBlocker::NoHosts`] names; bounded because the leader's heartbeats carry it.
const APPLICATIONS_NAMED_MAX: usize = 3;

/// What a run is started with. Only [`startable`] returns it.
#[derive(Debug, Clone, Copy)]
pub struct Startable<'a> {
    pub(crate) state: &'a State,
    pub(crate) view: &'a View,
    pub(crate) config: &'a Config,
    hosts_awaited: usize,
    any_reachable: bool,
}

/// What a run can be started with now.
///
/// # Errors
/// The blocker, if no run can start.
pub fn startable<'a>(state: &'a State, view: &'a View) -> Result<Startable<'a>, StartBlocker> {
    let config = state.config.as_deref().ok_or(StartBlocker::NoConfiguration)?;
    if let Some(active) = &state.run {
        return Err(StartBlocker::RunActive { run: active.id.clone() });
    }
    if let Some(pause) = &state.pause {
        return Err(StartBlocker::Paused(pause.cause.clone()));
    }
    if let Some(doubt) = view.clock.doubt.as_ref().filter(|doubt| !doubt.is_of_windows()) {
        return Err(doubt.clone().into());
    }
    if let Some(why) = &view.sealed {
        return Err(StartBlocker::StrongboxSealed { why: why.clone() });
    }
    let mut startable = Startable { state, view, config, hosts_awaited: 0, any_reachable: false };
    let (mut hosts, mut approved, mut withdrawn, mut deferred) = (0, 0, 0, 0);
    for (name, host, _) in view.serving(&config.worker_applications) {
        hosts += 1;
        let enrolled = state.enrolled(name);
        if !enrolled.takes_part() {
            withdrawn += usize::from(matches!(enrolled, Enrolled::Withdrawn(_)));
            continue;
        }
        approved += 1;
        if state.enrolment.deferred.contains_key(name) {
            deferred += 1;
            continue;
        }
        match host.reachability {
            Reachability::Awaited => startable.hosts_awaited += 1,
            Reachability::Unreachable => {}
            Reachability::Unknown | Reachability::Reachable => startable.any_reachable = true,
        }
    }
    match (hosts, approved) {
        (0, _) => Err(no_hosts(config)),
        (hosts, 0) => Err(StartBlocker::NoneApproved { hosts, withdrawn }),
        (_, approved) if approved == deferred => Err(StartBlocker::AllDeferred { hosts: deferred }),
        _ => Ok(startable),
    }
}

fn no_hosts(config: &Config) -> StartBlocker {
    let names: Vec<&str> = config.worker_applications.iter().map(|entry| entry.name.as_str()).collect();
    let (first, others) = names.split_at(names.len().min(APPLICATIONS_NAMED_MAX));
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    let applications = first.join(", ") + &more;
    StartBlocker::NoHosts { applications }
}

impl Startable<'_> {
    /// Further conditions for a run that starts automatically: an operator may start one although hosts are off, a window
    /// does not.
    pub fn unattended(self) -> Result<Self, WindowBlocker> {
        if let Some(doubt) = &self.view.clock.doubt {
            return Err(StartBlocker::from(doubt.clone()).into());
        }
        match self.hosts_awaited {
            0 if self.any_reachable => Ok(self),
            0 => Err(no_hosts(self.config).into()),
            hosts => Err(WindowBlocker::HostsAwaited { hosts }),
        }
    }
}
