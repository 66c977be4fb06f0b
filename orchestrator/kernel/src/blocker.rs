//! What keeps a host from moving, typed, and the sentence for each. Which of it applies is found in `explain.rs`.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{Action, GroupName, HostName, time};
use serde::{Serialize, Serializer};
use strum::{IntoStaticStr, VariantNames};

use crate::reason::Reason;
use crate::start::WindowBlocker;

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
