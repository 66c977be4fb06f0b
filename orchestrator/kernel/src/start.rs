//! Whether a run can start now: decided here alone, for operators who trigger one and for maintenance windows, and for
//! whoever shows what keeps one from starting. Which facts a start consists of is decided in `decide/start.rs`, of what
//! only [`startable`] gives.

use os_upgrade_protocol::RunId;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::config::Config;
use crate::state::State;
use crate::strongbox::Sealed;
use crate::view::{Reachability, View};
use crate::window::CalendarError;

/// How many applications are named where no host serves any. The leader's heartbeats carry them.
const APPLICATIONS_NAMED_MAX: usize = 3;

/// What keeps any run from starting. `Display` gives the clause for operators.
#[derive(
    Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, IntoStaticStr, VariantNames,
)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum StartBlocker {
    /// Nothing is configured.
    #[error("nothing is configured")]
    NoConfiguration,
    /// A run is active.
    #[error("run {run} is active")]
    RunActive {
        /// That run.
        run: RunId,
    },
    /// The clocks of orchestrator and bus differ too much to keep to deadlines.
    #[error("the clocks of orchestrator and bus differ by {seconds} s")]
    ClockSkew {
        /// Their difference, in seconds.
        seconds: i64,
    },
    /// Slots cannot be asked for, because of a secret.
    #[error("{}", why.of_leader())]
    StrongboxSealed {
        /// Why the secret cannot be used.
        why: Sealed,
    },
    /// There is no host that could be upgraded.
    #[error("no host of the configured applications can be reached")]
    NoHosts {
        /// The first of the applications' names, joined by commas.
        applications: String,
    },
    /// There are hosts that could be upgraded, and nobody has approved any of them.
    #[error("of {hosts} hosts of the configured applications none is approved")]
    NoneApproved {
        /// How many hosts there are.
        hosts: usize,
    },
}

/// What keeps a maintenance window from starting a run by itself. `Display` gives the clause for operators.
#[derive(
    Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize, IntoStaticStr, VariantNames,
)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum WindowBlocker {
    /// No maintenance windows are configured.
    #[error("none starts by itself, as there are no maintenance windows")]
    NoWindows,
    /// No window opens again for long enough.
    #[error("none starts by itself, as no maintenance window opens again for long enough")]
    NoOccurrence,
    /// When the windows open cannot be worked out.
    #[error("none starts by itself: {why}")]
    UnclearWindows {
        /// Why it cannot.
        why: CalendarError,
    },
    /// It is not known yet whether some hosts are off: a run would wait for those.
    #[error("{}", awaited(*hosts))]
    HostsAwaited {
        /// How many.
        hosts: usize,
    },
    /// What keeps any run from starting.
    #[error("{0}")]
    #[serde(untagged)]
    #[strum(transparent)]
    Any(StartBlocker),
}

fn awaited(hosts: usize) -> String {
    match hosts {
        1 => "the heartbeat of a host is awaited".to_owned(),
        hosts => format!("the heartbeats of {hosts} hosts are awaited"),
    }
}

impl WindowBlocker {
    /// The word that tells this kind from the others.
    pub fn kind(&self) -> &'static str {
        self.into()
    }
}

impl WindowBlocker {
    /// The word of each kind that a forecast may name: one that waits for the end of a run is not blocked.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        let words = Self::VARIANTS.iter().chain(StartBlocker::VARIANTS).copied();
        words.filter(|word| !["any", "run-active"].contains(word))
    }
}

impl From<StartBlocker> for WindowBlocker {
    fn from(blocker: StartBlocker) -> Self {
        Self::Any(blocker)
    }
}

/// What a run that can start now is started with. Only [`startable`] gives it.
#[derive(Debug, Clone, Copy)]
pub struct Startable<'a> {
    pub(crate) state: &'a State,
    pub(crate) view: &'a View,
    pub(crate) config: &'a Config,
    hosts_awaited: usize,
    any_within_reach: bool,
}

/// Whether a run can start now, or what keeps it from that.
pub fn startable<'a>(state: &'a State, view: &'a View) -> Result<Startable<'a>, StartBlocker> {
    let config = state.config.as_deref().ok_or(StartBlocker::NoConfiguration)?;
    if let Some(active) = &state.run {
        return Err(StartBlocker::RunActive { run: active.id.clone() });
    }
    if let Some(seconds) = view.excessive_skew() {
        return Err(StartBlocker::ClockSkew { seconds });
    }
    if let Some(why) = &view.sealed {
        return Err(StartBlocker::StrongboxSealed { why: why.clone() });
    }
    let mut startable = Startable { state, view, config, hosts_awaited: 0, any_within_reach: false };
    let (mut hosts, mut approved) = (0, 0);
    for (name, host, _) in view.serving(&config.worker_applications) {
        hosts += 1;
        if !state.enrolled(name).takes_part() {
            continue;
        }
        approved += 1;
        match host.reachability {
            Reachability::Awaited => startable.hosts_awaited += 1,
            Reachability::Unreachable => {}
            Reachability::Unknown | Reachability::Reachable => startable.any_within_reach = true,
        }
    }
    match (hosts, approved) {
        (0, _) => Err(no_hosts(config)),
        (hosts, 0) => Err(StartBlocker::NoneApproved { hosts }),
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
    /// The same for a run that nobody asked for: an operator may start one although hosts are off, a window does not.
    pub fn unattended(self) -> Result<Self, WindowBlocker> {
        match self.hosts_awaited {
            0 if self.any_within_reach => Ok(self),
            0 => Err(no_hosts(self.config).into()),
            hosts => Err(WindowBlocker::HostsAwaited { hosts }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecasts_name_these_kinds() {
        let kinds: Vec<_> = WindowBlocker::kinds().collect();
        let expected = [
            "no-windows",
            "no-occurrence",
            "unclear-windows",
            "hosts-awaited",
            "no-configuration",
            "clock-skew",
            "strongbox-sealed",
            "no-hosts",
            "none-approved",
        ];
        assert_eq!(kinds, expected);
        let no_hosts = StartBlocker::NoHosts { applications: String::new() };
        assert_eq!(WindowBlocker::from(no_hosts).kind(), "no-hosts");
    }
}
