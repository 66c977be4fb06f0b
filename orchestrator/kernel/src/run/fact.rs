//! What becomes true of a run.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{HostName, RunId};
use serde::{Deserialize, Serialize};

use super::event::{Enlisted, HostEvent};
use super::host::CountedAs;
use super::state::{Run, RunResult, StopCause, Trigger};
use crate::about::{About, AuditList, OwnerRef, Part};
use crate::config::Rollout;
use crate::start::MissedRun;

/// Something that has become true of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum RunFact {
    /// A run started, with these hosts.
    #[serde(rename = "run-started")]
    #[strum(serialize = "run-started")]
    Started {
        /// Its id.
        run: RunId,
        /// What started it.
        trigger: Trigger,
        /// When it ends at the latest.
        not_after: DateTime<Utc>,
        /// How the run proceeds through the hosts.
        rollout: Rollout,
        /// The hosts that take part, and those that are skipped.
        hosts: Vec<Enlisted>,
    },
    /// Upgrades may begin: every host is prepared, or hosts are upgraded as they are prepared.
    UpgradesBegan { run: RunId },
    /// No further host is started.
    #[serde(rename = "run-stopping")]
    #[strum(serialize = "run-stopping")]
    Stopping {
        run: RunId,
        /// Why it stops.
        cause: StopCause,
    },
    /// The run is over.
    #[serde(rename = "run-ended")]
    #[strum(serialize = "run-ended")]
    Ended {
        run: RunId,
        /// How it ended.
        result: RunResult,
        /// How many of its hosts ended as what.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        counts: BTreeMap<CountedAs, usize>,
    },
    /// A run was due in an occurrence of the maintenance windows, and can no longer start in it.
    #[serde(rename = "run-missed")]
    #[strum(serialize = "run-missed")]
    Missed(MissedRun),
    /// Something happened to a host of the active run.
    Host {
        run: RunId,
        host: HostName,
        /// What happened.
        event: HostEvent,
    },
}

impl RunFact {
    /// That `run`, each of whose hosts has a final status, has ended with `result`.
    pub(crate) fn ended(run: &Run, result: RunResult) -> Self {
        Self::Ended { run: run.id.clone(), result, counts: run.counts() }
    }

    /// What it is about.
    pub(crate) fn about(&self) -> About<'_> {
        match self {
            Self::Started { run, trigger, .. } => About { actor: trigger.actor(), ..About::run(run) },
            Self::Stopping { run, cause } => About { actor: cause.actor(), ..About::run(run) },
            Self::UpgradesBegan { run } | Self::Ended { run, .. } => About::run(run),
            Self::Host { run, host, event } => {
                let (actor, command) = (event.actor(), event.command());
                About { actor, command, ..About::host(OwnerRef::Named(run), host) }
            }
            Self::Missed(_) => About::default().in_list(AuditList::MissedRuns),
        }
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        match self {
            Self::Started { .. } => &[Part::Run, Part::HostList, Part::Commands],
            Self::UpgradesBegan { .. } | Self::Stopping { .. } | Self::Ended { .. } => &[Part::Run],
            Self::Host {
                event:
                    HostEvent::PrepareBegan
                    | HostEvent::SlotGranted { .. }
                    | HostEvent::Drained
                    | HostEvent::RebootRequired,
                ..
            } => &[Part::Host, Part::Commands],
            Self::Host { .. } => &[Part::Host],
            Self::Missed(_) => &[],
        }
    }
}
