//! Which entry of the queue starts next, or what keeps every entry from starting.

use chrono::{DateTime, Utc};
use imbl::OrdSet;
use os_upgrade_calendar::{CalendarError, Duration};
use os_upgrade_protocol::{GroupName, HostName, RunId};
use serde::{Serialize, Serializer};
use strum::{IntoStaticStr, VariantNames};

use super::api_server_order::ApiServerOrder;
use super::entry::{Entry, EntryStatus};
use super::settings::RebootSettings;
use super::state::RebootQueue;
use crate::clock::ClockDoubt;
use crate::node::{ApiServerRule, api_server_rule, server_under_way};
use crate::owner::Owner;
use crate::pause::PauseCause;
use crate::reason::Denial;
use crate::slot::HostDenied;

/// What is known of the hosts, as far as it is asked for: most decisions need little of it.
#[derive(Clone, Copy)]
pub struct Nodes<'a> {
    /// Those that are API servers, whether or not one runs there now.
    pub api_servers: &'a OrdSet<HostName>,
    /// Those under way for another reason, a run's for example. They count against the rules about API servers.
    pub draining_elsewhere: &'a OrdSet<HostName>,
    /// Those that are unreachable, or not heard yet.
    pub unreachable: &'a dyn Fn() -> OrdSet<HostName>,
    /// Why an entry cannot start, ignoring the rest of the queue.
    pub not_ready: &'a dyn Fn(u64, &Entry) -> Option<NotReady>,
}

/// Why an entry cannot start, ignoring the rest of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NotReady {
    /// Its host is not approved, or was withdrawn.
    TakesNoPart,
    /// Its host is deferred.
    HostDeferred {
        actor: String,
        /// Why, as the operator says.
        reason: String,
        #[serde(skip)]
        until: Option<DateTime<Utc>>,
    },
    /// No worker that reboots its host on request has announced itself there.
    NoWorker,
    /// The cluster shows no node for its host.
    NoNode,
    /// The mark of its node is of a journal that this site does not have.
    ForeignMark {
        #[serde(skip)]
        host: HostName,
    },
    /// The reboot command could reboot it, and nothing would tell when it is back.
    NoBoot,
    /// Its host has rebooted for an earlier entry, and the new boot has not been seen yet.
    BootUnknown,
    /// A run is not through with its host.
    InRun { run: RunId },
    /// Its host's slot is held for something else, and may be for long.
    SlotHeld {
        /// For whom.
        owner: Owner,
        /// When it was granted, in whole seconds.
        #[serde(skip)]
        since: DateTime<Utc>,
    },
    /// Its host's earlier slot is being released.
    EarlierSlot,
    /// Its group has no slot for it.
    SlotDenied {
        group: GroupName,
        /// Why it is denied.
        #[serde(rename = "denial", serialize_with = "as_denial")]
        denied: HostDenied,
    },
}

/// As the denial of a host in a run.
fn as_denial<S: Serializer>(denied: &HostDenied, serializer: S) -> Result<S::Ok, S::Error> {
    Denial::Embedded(denied.clone()).serialize(serializer)
}

/// What keeps every entry from starting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum QueueBlocker {
    /// No entry waits, or none but those of hosts whose earlier entry is not over.
    NothingQueued,
    /// The queue is disabled.
    Disabled,
    /// An API server is under way, and nothing else may be.
    ApiServerUnderWay { host: HostName },
    /// An API server is the next, and waits until nothing is under way.
    ApiServerWaits { host: HostName },
    /// As many are under way as may be.
    Full {
        /// How many that are.
        under_way: usize,
    },
    /// Too many nodes that are not under way are unreachable, those that are queued included.
    Unreachable {
        /// How many.
        count: usize,
        /// How many may be.
        max: usize,
        /// One of them.
        first: HostName,
    },
    /// Every entry waits for the end of its backoff, the first of them until then.
    BackedOff {
        #[serde(skip)]
        until: DateTime<Utc>,
    },
    /// The site is paused.
    Paused(PauseCause),
    /// The nodes of the cluster are not known.
    ClusterUnseen,
    /// The queue is bound to the maintenance windows, and none is open.
    NoWindow,
    /// The queue is bound to the maintenance windows, and less is left of the one that is open than a host takes.
    NoTimeLeft {
        /// How long a host takes: the rollout's `expected-duration`.
        expected: Duration,
    },
    /// The queue is bound to the maintenance windows, which cannot be worked out.
    UnclearWindows {
        /// What is wrong with the windows.
        why: CalendarError,
    },
    /// No entry that is queued is ready, the first is this.
    #[serde(untagged)]
    NotReady {
        host: HostName,
        /// Why not.
        #[serde(flatten)]
        why: NotReady,
    },
    /// The leader's clock cannot be relied on.
    #[serde(untagged)]
    #[strum(transparent)]
    Clock(ClockDoubt),
}

impl QueueBlocker {
    /// Whether it keeps every entry from starting, present and future.
    pub const fn is_of_queue(&self) -> bool {
        match self {
            Self::Disabled
            | Self::Paused(_)
            | Self::ApiServerUnderWay { .. }
            | Self::Full { .. }
            | Self::Unreachable { .. }
            | Self::Clock(_)
            | Self::ClusterUnseen
            | Self::NoWindow
            | Self::NoTimeLeft { .. }
            | Self::UnclearWindows { .. } => true,
            Self::NothingQueued
            | Self::ApiServerWaits { .. }
            | Self::BackedOff { .. }
            | Self::NotReady { .. } => false,
        }
    }

    /// Whether it passes when others are through, so that an entry's own backoff says more.
    pub(crate) const fn passes_with_others(&self) -> bool {
        matches!(self, Self::ApiServerUnderWay { .. } | Self::Full { .. })
    }

    /// The word for it. What keeps the first entry from starting has the word of its own cause.
    pub fn kind(&self) -> &'static str {
        if let Self::NotReady { why, .. } = self { why.into() } else { self.into() }
    }

    /// Every kind.
    pub(crate) fn kinds() -> impl Iterator<Item = &'static str> {
        let own = Self::VARIANTS.iter().filter(|kind| !["not-ready", "clock"].contains(kind));
        own.chain(NotReady::VARIANTS).chain(ClockDoubt::VARIANTS).copied()
    }
}

impl RebootQueue {
    /// The index of the entry that starts next at `now`.
    ///
    /// # Errors
    /// What keeps every entry from starting.
    pub fn choose(
        &self,
        limits: &RebootSettings,
        nodes: Nodes<'_>,
        now: DateTime<Utc>,
    ) -> Result<u64, QueueBlocker> {
        if self.disabled {
            return Err(QueueBlocker::Disabled);
        }
        let under_way = self.hosts_under_way(nodes);
        let is_server = |host: &HostName| nodes.api_servers.contains(host);
        if let Some(server) = server_under_way(is_server, &under_way) {
            return Err(QueueBlocker::ApiServerUnderWay { host: server.clone() });
        }
        let count = self.under_way().count();
        if count >= limits.max_concurrent as usize {
            return Err(QueueBlocker::Full { under_way: count });
        }
        let first = self.first(limits, nodes, now)?;
        // Those under way are expected to be unreachable.
        let unreachable = (nodes.unreachable)().relative_complement(under_way.clone());
        let (index, entry) = if is_reachable_enough(limits, &unreachable, &first.1.host) {
            first
        } else {
            self.unreachable_first(limits, nodes, &unreachable, now).ok_or_else(|| {
                let (count, max) = (unreachable.len(), limits.unreachable_max as usize);
                let first = unreachable.get_min().unwrap_or(&first.1.host).clone();
                QueueBlocker::Unreachable { count, max, first }
            })?
        };
        match api_server_rule(is_server, &under_way, &entry.host) {
            None => Ok(index),
            Some(ApiServerRule::UnderWay(server)) => {
                Err(QueueBlocker::ApiServerUnderWay { host: server.clone() })
            }
            Some(ApiServerRule::Waits(_)) => Err(QueueBlocker::ApiServerWaits { host: entry.host.clone() }),
        }
    }

    /// The first entry that may start as far as it itself is concerned.
    fn first(
        &self,
        limits: &RebootSettings,
        nodes: Nodes<'_>,
        now: DateTime<Utc>,
    ) -> Result<(u64, &Entry), QueueBlocker> {
        let (mut backed_off_until, mut not_ready) = (None, None);
        for (index, entry) in self.in_order(limits, nodes) {
            if let Some(until) = entry.backoff_expire.filter(|_| entry.is_backed_off(now)) {
                backed_off_until =
                    Some(backed_off_until.map_or(until, |first: DateTime<Utc>| first.min(until)));
            } else if let Some(why) = (nodes.not_ready)(index, entry) {
                not_ready.get_or_insert((entry.host.clone(), why));
            } else {
                return Ok((index, entry));
            }
        }
        Err(match (not_ready, backed_off_until) {
            (Some((host, why)), _) => QueueBlocker::NotReady { host, why },
            (None, Some(until)) => QueueBlocker::BackedOff { until },
            (None, None) => QueueBlocker::NothingQueued,
        })
    }

    /// The first entry of each host, if it is queued, in the order in which they start.
    fn in_order(&self, limits: &RebootSettings, nodes: Nodes<'_>) -> impl Iterator<Item = (u64, &Entry)> {
        let mut seen = OrdSet::new();
        let firsts = self.entries.iter().filter(|(_, entry)| seen.insert(&entry.host).is_none());
        let queued: Vec<(u64, &Entry)> = firsts
            .filter(|(_, entry)| entry.status == EntryStatus::Queued)
            .map(|(index, entry)| (*index, entry))
            .collect();
        let is_server = |entry: &Entry| nodes.api_servers.contains(&entry.host);
        let (servers, others): (Vec<_>, Vec<_>) = queued.into_iter().partition(|(_, entry)| is_server(entry));
        match limits.api_servers {
            ApiServerOrder::First => servers.into_iter().chain(others),
            ApiServerOrder::Last => others.into_iter().chain(servers),
        }
    }

    /// The first entry of a host that is itself unreachable and may start, although too many are: to reboot it is what helps.
    fn unreachable_first(
        &self,
        limits: &RebootSettings,
        nodes: Nodes<'_>,
        unreachable: &OrdSet<HostName>,
        now: DateTime<Utc>,
    ) -> Option<(u64, &Entry)> {
        self.in_order(limits, nodes).find(|(index, entry)| {
            is_reachable_enough(limits, unreachable, &entry.host)
                && !entry.is_backed_off(now)
                && (nodes.not_ready)(*index, entry).is_none()
        })
    }

    fn hosts_under_way(&self, nodes: Nodes<'_>) -> OrdSet<HostName> {
        let own = self.under_way().map(|(_, entry)| entry.host.clone()).collect::<OrdSet<_>>();
        own.union(nodes.draining_elsewhere.clone())
    }
}

/// Whether few enough hosts are `unreachable` for `host` to start. It does not count itself where the operator's command reboots it; a
/// worker could not.
fn is_reachable_enough(limits: &RebootSettings, unreachable: &OrdSet<HostName>, host: &HostName) -> bool {
    let is_itself = limits.command.is_some() && unreachable.contains(host);
    unreachable.len() - usize::from(is_itself) <= limits.unreachable_max as usize
}
