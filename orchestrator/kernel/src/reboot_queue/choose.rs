//! Which entry of the queue starts next, or what keeps every entry from starting.

use chrono::{DateTime, Utc};
use imbl::OrdSet;
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use super::entry::{Entry, EntryStatus};
use super::queue::RebootQueue;

/// Whether API servers reboot before other nodes or after them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApiServerOrder {
    /// Before them, as CKE's documentation says.
    #[default]
    First,
    /// After them, as CKE has learned: the API servers' role may move to a node that has not rebooted yet.
    Last,
}

/// How many entries may be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// How many at once.
    pub max_concurrent: usize,
    /// How many nodes that are not under way may be unreachable for an entry to start. A queued one counts, as in CKE.
    pub unreachable_max: usize,
    /// When API servers reboot.
    pub api_servers: ApiServerOrder,
}

/// What is known of the hosts that may reboot.
#[derive(Debug, Clone, Default)]
pub struct Nodes {
    /// Those that are API servers, whether or not one runs there now.
    pub api_servers: OrdSet<HostName>,
    /// Those that are unreachable.
    pub unreachable: OrdSet<HostName>,
    /// Those that cannot start now: something else holds their slot, or a run is not through with them.
    pub occupied: OrdSet<HostName>,
    /// Those under way for another reason, a run's for example. They count against the rules about API servers.
    pub draining_elsewhere: OrdSet<HostName>,
}

/// What keeps every entry from starting. `Display` gives the clause for operators.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueBlocker {
    /// No entry waits, or none but those of hosts whose earlier entry is not over.
    #[error("no further entry is queued")]
    NothingQueued,
    /// The queue is disabled.
    #[error("the queue is disabled")]
    Disabled,
    /// An API server is under way, and nothing else may be.
    #[error("the API server {0} is under way, and nothing starts beside it")]
    ApiServerUnderWay(HostName),
    /// An API server is the next, and waits until nothing is under way.
    #[error("the API server {0} is next, and starts once nothing else is under way")]
    ApiServerWaits(HostName),
    /// As many are under way as may be.
    #[error("{0} are under way, as many as may be at once")]
    Full(usize),
    /// Too many nodes that are not under way are unreachable, those that are queued included.
    #[error(
        "too many nodes that are not under way are unreachable: {count}, {first} for example, and {max} may be"
    )]
    Unreachable {
        /// How many.
        count: usize,
        /// How many may be.
        max: usize,
        /// One of them.
        first: HostName,
    },
    /// Every entry waits for the end of its backoff, the first of them until then.
    #[error("every entry that is queued has backed off, the first until {0}")]
    BackedOff(DateTime<Utc>),
    /// The hosts of all entries are occupied, the first one is this.
    #[error("{0} is at work for something else")]
    Occupied(HostName),
}

impl RebootQueue {
    /// The index of the entry that starts next at `now`.
    ///
    /// # Errors
    /// What keeps every entry from starting.
    pub fn choose(
        &self,
        limits: &QueueLimits,
        nodes: &Nodes,
        now: DateTime<Utc>,
    ) -> Result<u64, QueueBlocker> {
        if self.disabled {
            return Err(QueueBlocker::Disabled);
        }
        let candidates = self.candidates(nodes, now)?;
        let under_way = self.hosts_under_way(nodes);
        if let Some(server) = under_way.iter().find(|host| nodes.api_servers.contains(*host)) {
            return Err(QueueBlocker::ApiServerUnderWay(server.clone()));
        }
        let count = self.under_way().count();
        if count >= limits.max_concurrent {
            return Err(QueueBlocker::Full(count));
        }
        check_unreachable(limits, nodes, &under_way)?;
        let is_server = |entry: &Entry| nodes.api_servers.contains(&entry.host);
        let server = candidates.iter().find(|(_, entry)| is_server(entry));
        let other = candidates.iter().find(|(_, entry)| !is_server(entry));
        let (first, second) = match limits.api_servers {
            ApiServerOrder::First => (server, other),
            ApiServerOrder::Last => (other, server),
        };
        match first.or(second) {
            Some((_, entry)) if is_server(entry) && !under_way.is_empty() => {
                Err(QueueBlocker::ApiServerWaits(entry.host.clone()))
            }
            Some((index, _)) => Ok(*index),
            None => Err(QueueBlocker::NothingQueued),
        }
    }

    /// The entries that may start as far as they themselves are concerned, in order; never none.
    fn candidates(&self, nodes: &Nodes, now: DateTime<Utc>) -> Result<Vec<(u64, &Entry)>, QueueBlocker> {
        let mut seen = OrdSet::new();
        let firsts = self.entries.iter().filter(|(_, entry)| seen.insert(&entry.host).is_none());
        let queued: Vec<_> = firsts.filter(|(_, entry)| entry.status == EntryStatus::Queued).collect();
        let (backed_off, ready): (Vec<_>, Vec<_>) =
            queued.into_iter().partition(|(_, entry)| entry.is_backed_off(now));
        let (occupied, free): (Vec<_>, Vec<_>) =
            ready.into_iter().partition(|(_, entry)| nodes.occupied.contains(&entry.host));
        if !free.is_empty() {
            return Ok(free.into_iter().map(|(index, entry)| (*index, entry)).collect());
        }
        let until = backed_off.iter().filter_map(|(_, entry)| entry.backoff_expire).min();
        Err(match (occupied.first(), until) {
            (Some((_, entry)), _) => QueueBlocker::Occupied(entry.host.clone()),
            (None, Some(until)) => QueueBlocker::BackedOff(until),
            (None, None) => QueueBlocker::NothingQueued,
        })
    }

    fn hosts_under_way(&self, nodes: &Nodes) -> OrdSet<HostName> {
        let own = self.under_way().map(|(_, entry)| entry.host.clone()).collect::<OrdSet<_>>();
        own.union(nodes.draining_elsewhere.clone())
    }
}

/// Those under way are expected to be unreachable.
fn check_unreachable(
    limits: &QueueLimits,
    nodes: &Nodes,
    under_way: &OrdSet<HostName>,
) -> Result<(), QueueBlocker> {
    let others = nodes.unreachable.clone().relative_complement(under_way.clone());
    let first = others.get_min().filter(|_| others.len() > limits.unreachable_max);
    first.map_or(Ok(()), |first| {
        let (count, max) = (others.len(), limits.unreachable_max);
        Err(QueueBlocker::Unreachable { count, max, first: first.clone() })
    })
}
