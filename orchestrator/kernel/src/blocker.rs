//! What keeps a host from moving, and a run from starting: typed, and the sentence for each. What of it applies to a host is
//! found in `explain.rs`, and to a start in `start.rs` and `forecast.rs`.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, GroupName, HostName, RunId, time};
use serde::{Deserialize, Serialize, Serializer};
use strum::{IntoStaticStr, VariantNames};

use crate::reason::Reason;
use crate::strongbox::Sealed;
use crate::window::CalendarError;

/// One of the things that keep a host from moving. `Display` gives the sentence for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// What it is.
    pub cause: Cause,
    /// When time alone ends it, if nothing does before; absent where time does not, or nobody knows when.
    pub until: Option<DateTime<Utc>>,
}

/// What keeps a host from moving.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Cause {
    /// Something about the host as it is now.
    Host(HostBlocker),
    /// What a run noted of it, or that it takes no part.
    Noted(Reason),
    /// Why no run starts by itself.
    Window(WindowBlocker),
    /// What keeps a run from starting in a window that is open.
    #[serde(rename_all = "kebab-case")]
    OpenWindow {
        /// What it is.
        #[serde(flatten)]
        by: WindowBlocker,
        /// Until when the window is open.
        #[serde(serialize_with = "in_seconds")]
        open_until: DateTime<Utc>,
    },
}

/// What keeps a host from moving, as it follows from the present state and view.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum HostBlocker {
    /// Its command does not stand in the control stream yet.
    #[error("its {action} command is about to be sent")]
    CommandUnsent {
        /// What it asks.
        action: Action,
    },
    /// Its command has been sent.
    #[error("its worker has not answered {action} yet")]
    ReplyAwaited {
        /// What it asks.
        action: Action,
    },
    /// No upgrade begins before every host is prepared.
    #[error("waiting until {} prepared", more_hosts(*hosts))]
    HostsUnprepared {
        /// How many are not.
        hosts: usize,
    },
    /// Its turn has not come.
    #[error("waiting for its turn")]
    TurnAwaited,
    /// As many hosts are under way as may be.
    #[error("waiting for its turn: {host} is under way")]
    HostUnderWay {
        /// The first of them.
        host: HostName,
    },
    /// Another host of its group is to have the next slot.
    #[error("waiting for its turn: {host} is first: {by}")]
    HostFirst {
        /// That host.
        host: HostName,
        /// What keeps that one from moving.
        by: Box<Cause>,
    },
    /// A host that does not move by itself holds a slot of the group.
    #[error("{host}: {reason}")]
    SlotStuck {
        /// That host.
        host: HostName,
        /// How it came to that.
        reason: Reason,
    },
    /// A command of an earlier run may still appear.
    #[error("waiting until it is certain that its earlier command can no longer appear")]
    EarlierCommand,
    /// Its earlier slot is being given back.
    #[error("waiting until its earlier slot has been given back")]
    EarlierSlot,
    /// It was left out of the run for want of the approval that it has by now.
    #[error("it was approved after the run had started")]
    ApprovedLate,
    /// It was not there when the run started.
    #[error("it appeared after the run had started")]
    AppearedLate,
    /// An operator has withdrawn it while it is under way.
    #[error("it takes no part any more once it has come to its end here")]
    LeavesAfterRun,
    /// No heartbeat comes from it.
    #[error("it is unreachable, as no heartbeat comes from it")]
    Silent,
    /// It is not known yet whether its heartbeats still come.
    #[error("its heartbeat is awaited")]
    HeartbeatAwaited,
    /// Its worker may take a command for one whose time is over.
    #[error("its clock differs from the bus's by {seconds} s")]
    WorkerClockSkew {
        /// By how many seconds.
        seconds: i64,
    },
    /// No worker has announced itself on it.
    #[error("no worker has announced itself on it")]
    NotAnnounced,
    /// Its worker serves no configured application.
    #[error("its worker's application is not among the configured ones")]
    NotServed,
    /// No run is active. It ends when the next one starts by itself, if one does.
    #[error("no run is active")]
    NoRun,
    /// It holds a slot outside of runs.
    #[error("it holds a slot of group {group} since {since}{}", because(reason.as_ref()), since = time::format(*since))]
    SlotHeld {
        /// The slot's group.
        group: GroupName,
        /// Since when, in whole seconds.
        since: DateTime<Utc>,
        /// How it ended in the last run.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
    },
    /// The slot that it holds outside of runs is being given back.
    #[error("its slot of group {group} is being given back")]
    SlotReleasing {
        /// The slot's group.
        group: GroupName,
    },
}

/// As every time in the API.
fn in_seconds<S: Serializer>(time: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&time::format(*time))
}

fn more_hosts(count: usize) -> String {
    if count == 1 { "1 more host is".to_owned() } else { format!("{count} more hosts are") }
}

fn because(reason: Option<&Reason>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

impl Cause {
    /// The word of each kind.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        let kinds =
            HostBlocker::VARIANTS.iter().chain(Reason::kinds()).copied().chain(WindowBlocker::kinds());
        // A run and a window may be kept up by the same.
        kinds.collect::<BTreeSet<_>>().into_iter()
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(cause) => cause.fmt(f),
            Self::Noted(cause) => cause.fmt(f),
            Self::Window(cause) => cause.fmt(f),
            Self::OpenWindow { by, open_until } => {
                write!(f, "a maintenance window is open until {}, but {by}", time::format(*open_until))
            }
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, until } = self;
        match (cause, until.map(time::format)) {
            (Cause::Host(HostBlocker::NoRun), Some(until)) => {
                write!(f, "{cause}; the next starts by itself at {until}")
            }
            _ => cause.fmt(f),
        }
    }
}

impl From<HostBlocker> for Cause {
    fn from(cause: HostBlocker) -> Self {
        Self::Host(cause)
    }
}

impl From<Reason> for Cause {
    fn from(cause: Reason) -> Self {
        Self::Noted(cause)
    }
}

impl From<WindowBlocker> for Cause {
    fn from(cause: WindowBlocker) -> Self {
        Self::Window(cause)
    }
}

impl Blocker {
    /// `cause`, which time alone ends at `until`.
    pub(crate) fn until(cause: impl Into<Cause>, until: impl Into<Option<DateTime<Utc>>>) -> Self {
        Self { cause: cause.into(), until: until.into() }
    }
}

/// What time alone does not end.
impl<C: Into<Cause>> From<C> for Blocker {
    fn from(cause: C) -> Self {
        Self::until(cause, None)
    }
}

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
