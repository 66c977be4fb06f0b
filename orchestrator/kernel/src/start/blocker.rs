//! Why no run can start, and why no maintenance window starts one.

use chrono::{DateTime, Utc};
use os_upgrade_calendar::CalendarError;
use os_upgrade_protocol::RunId;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use crate::clock::ClockDoubt;
use crate::in_seconds::in_seconds;
use crate::left_out::is_default;
use crate::pause::PauseCause;
use crate::secrets::Sealed;

/// An open maintenance window that starts no further run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct UsedWindow {
    /// What used it.
    #[serde(rename = "window-used-by")]
    pub by: WindowUse,
    /// When the window closes.
    #[serde(serialize_with = "in_seconds")]
    pub open_until: DateTime<Utc>,
}

/// Why a window starts no further run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WindowUse {
    /// It has started this run.
    Run {
        /// The run that it started.
        run: RunId,
    },
    /// An operator cancelled this run in it.
    Cancel {
        /// The cancelled run.
        run: RunId,
    },
    /// An earlier run than the last was started or cancelled in it, or the site was restored in it.
    Earlier,
}

/// Why no run can start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum StartBlocker {
    /// Nothing is configured.
    NoConfiguration,
    RunActive {
        /// The active run.
        run: RunId,
    },
    /// The site is paused.
    Paused(PauseCause),
    /// Slots cannot be requested because of a secret.
    StrongboxSealed {
        /// Why the secret cannot be used.
        why: Sealed,
    },
    /// No host of a configured application has announced itself, or none of them is reachable.
    NoHosts {
        /// The configured applications, joined by commas; after the first few only their number.
        applications: String,
    },
    /// No host of the configured applications is approved.
    NoneApproved {
        /// How many hosts of the configured applications there are, at least 1.
        hosts: usize,
        /// How many of them an operator has withdrawn.
        #[serde(default, skip_serializing_if = "is_default")]
        withdrawn: usize,
    },
    /// Every host of the configured applications that is approved is deferred.
    AllDeferred {
        /// How many there are, at least 1.
        hosts: usize,
    },
    /// The orchestrator's clock cannot be relied on.
    #[serde(untagged)]
    #[strum(transparent)]
    Clock(ClockDoubt),
}

impl From<ClockDoubt> for StartBlocker {
    fn from(doubt: ClockDoubt) -> Self {
        Self::Clock(doubt)
    }
}

/// Why no maintenance window starts a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum WindowBlocker {
    /// No maintenance windows are configured.
    NoWindows,
    /// No upcoming window is long enough.
    NoOccurrence {
        /// Whether one would be without the deny windows. It follows from the windows each time and is not stored.
        #[serde(skip)]
        are_denied: bool,
    },
    /// The occurrences of the windows cannot be determined.
    UnclearWindows {
        /// What is wrong with the windows.
        why: CalendarError,
    },
    /// It is not known yet whether some hosts are off; a run would wait for those.
    HostsAwaited {
        /// How many hosts.
        hosts: usize,
    },
    /// A blocker of any run.
    #[serde(untagged)]
    #[strum(transparent)]
    Any(StartBlocker),
}

impl WindowBlocker {
    /// The `kind` in its JSON.
    pub fn kind(&self) -> &'static str {
        self.into()
    }
}

impl WindowBlocker {
    /// Every kind that a run may be blocked by in an open window, but for an active run.
    pub(crate) fn kinds_in_window() -> impl Iterator<Item = &'static str> {
        const WITHOUT_WINDOW: [&str; 4] =
            ["no-windows", "no-occurrence", "unclear-windows", "no-configuration"];
        Self::kinds().filter(|kind| !WITHOUT_WINDOW.contains(kind))
    }

    /// Every kind that a forecast may contain: waiting for the active run to end is not a blocker.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        let words = Self::VARIANTS.iter().chain(StartBlocker::VARIANTS).chain(ClockDoubt::VARIANTS).copied();
        words.filter(|word| !["any", "clock", "run-active"].contains(word))
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
            "paused",
            "strongbox-sealed",
            "no-hosts",
            "none-approved",
            "all-deferred",
            "clock-unmeasured",
            "clock-skew",
            "clock-disputed",
            "clock-stepped",
            "clock-behind",
        ];
        assert_eq!(kinds, expected);
        let no_hosts = StartBlocker::NoHosts { applications: String::new() };
        assert_eq!(WindowBlocker::from(no_hosts).kind(), "no-hosts");
    }
}
