//! What a seed decides about the Kubernetes cluster. It has a stream of random numbers of its own, so that worlds without a
//! cluster stay what they were before there was one.

use std::collections::BTreeSet;

use fastrand::Rng;
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::{ApiServerOrder, Backoff, KubernetesSettings};
use os_upgrade_protocol::HostName;

use crate::time::{Micros, SECOND};

/// Makes the stream of the cluster another one than those of the rest and of the queue.
const STREAM: u64 = 0x006e_6f64_6573;

/// The cluster of a world that has one.
#[derive(Debug, Clone)]
pub(crate) struct ClusterPlan {
    /// The mean time between two things that happen in the cluster by themselves.
    pub(crate) act_every: Micros,
    /// For each host, whether its node is an API server.
    pub(crate) api_servers: Vec<bool>,
    /// How many pods each node has at the beginning, at most.
    pub(crate) pods_max: usize,
    /// How many of a hundred pods stand in the way of a drain.
    pub(crate) stubborn: u32,
}

/// The random numbers that decide about the cluster.
pub(crate) fn stream(seed: u64) -> Rng {
    Rng::with_seed(seed ^ STREAM)
}

impl ClusterPlan {
    pub(crate) fn draw(rng: &mut Rng, hosts: usize) -> Self {
        let share = *rng.choice(&[0, 3, 6]).expect("not empty");
        Self {
            act_every: rng.u64(1..10) * SECOND,
            api_servers: (0..hosts).map(|_| rng.u32(..10) < share).collect(),
            pods_max: rng.usize(0..6),
            stubborn: *rng.choice(&[0, 10, 50]).expect("not empty"),
        }
    }
}

/// How the nodes of `hosts` are drained. Now and then some hosts are no nodes.
pub(crate) fn draw_settings(rng: &mut Rng, hosts: impl Iterator<Item = HostName>) -> KubernetesSettings {
    let hosts: BTreeSet<HostName> = hosts.filter(|_| rng.u32(..4) > 0).collect();
    KubernetesSettings {
        drain_timeout: Duration::from_secs(*rng.choice(&[15, 60, 300]).expect("not empty")),
        uncordon_failed: rng.u32(..3) == 0,
        hosts: (rng.u32(..5) == 0).then_some(hosts),
    }
}

/// Pauses that are short enough for many of them in one world.
pub(crate) fn draw_backoff(rng: &mut Rng) -> Backoff {
    Backoff {
        first: Duration::from_secs(rng.u64(2..20)),
        max: Duration::from_secs(rng.u64(20..90)),
        jitter: Duration::from_secs(*rng.choice(&[0, 10]).expect("not empty")),
    }
}

/// Whether API servers reboot before other nodes.
pub(crate) fn draw_order(rng: &mut Rng) -> ApiServerOrder {
    if rng.bool() { ApiServerOrder::First } else { ApiServerOrder::Last }
}
