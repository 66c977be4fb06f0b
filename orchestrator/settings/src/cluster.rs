//! The cluster of `[kubernetes]`: what its adapter needs, and the rules between its keys.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use os_upgrade_protocol::HostName;

use super::merged::Merged;
use super::problem::Problem;
use super::schema::{Kubernetes, Settings};
use super::value::{Bounded, FailedNode, Interval, LabelSelector, NodeNames, NodeSource, SiteName, Text};

const SECTION: &str = "kubernetes";

/// A Kubernetes cluster, and how its nodes are drained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The way to it.
    pub access: ClusterAccess,
    /// The site's name, which marks its cordons.
    pub site: String,
    /// Which node a host is.
    pub node_from: NodeFrom,
    /// The namespaces whose pods are never deleted; all if absent.
    pub protected_namespaces: Option<LabelSelector>,
    /// The pods of jobs that are waited for; all if absent.
    pub job_pods: Option<LabelSelector>,
    /// The pods that are never evicted and always waited for; none if absent.
    pub wait_for_pods: Option<LabelSelector>,
    /// The nodes that are API servers.
    pub api_servers: LabelSelector,
    /// How often the dry run of evictions is repeated while a pod is refused.
    pub eviction_retries: u32,
    /// The time before it is tried again to evict a pod that was refused.
    pub eviction_interval: Duration,
    /// How long evicted pods have to end, in whole seconds; each pod's own time if absent.
    pub pod_grace: Option<Duration>,
    /// How long after its grace a pod is waited for whose kubelet is silent; for ever if absent.
    pub skip_wait_for_delete: Option<Duration>,
    /// How many requests a second it gets.
    pub requests_per_second: NonZeroU32,
}

/// The way to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterAccess {
    /// By a kubeconfig.
    Kubeconfig {
        file: PathBuf,
        /// The context; the file's current one if absent.
        context: Option<String>,
    },
    /// As the service account of the pod in which this process runs.
    InCluster,
}

/// How the node of a host is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeFrom {
    /// It has the host's name.
    Host,
    /// Its label with this key has the host's name as value.
    Label(String),
    /// By its name. Hosts that are not listed are no nodes.
    Mapping(BTreeMap<HostName, String>),
}

impl NodeFrom {
    /// The hosts that are nodes; `None` if every host is one.
    pub fn hosts(&self) -> Option<BTreeSet<HostName>> {
        match self {
            Self::Host | Self::Label(_) => None,
            Self::Mapping(nodes) => Some(nodes.keys().cloned().collect()),
        }
    }
}

impl Settings {
    /// The cluster whose nodes are drained; `None` if there is none.
    pub fn cluster(&self) -> Option<Cluster> {
        let Kubernetes {
            kubeconfig,
            context,
            in_cluster,
            node_from,
            // These two are the kernel's.
            drain_timeout: _,
            on_failure: _,
            protected_namespaces,
            job_pods,
            wait_for_pods,
            eviction_retries,
            eviction_interval,
            pod_grace,
            requests_per_second,
            nodes,
        } = &self.kubernetes;
        let access = match (kubeconfig, in_cluster) {
            (Some(file), _) => ClusterAccess::Kubeconfig {
                file: file.clone(),
                context: context.as_ref().map(|context| context.as_str().to_owned()),
            },
            (None, true) => ClusterAccess::InCluster,
            (None, false) => return None,
        };
        let node_from = match node_from {
            NodeSource::Host => NodeFrom::Host,
            NodeSource::Label(key) => NodeFrom::Label(key.clone()),
            NodeSource::Mapping => {
                let nodes = nodes.iter().flat_map(NodeNames::iter);
                NodeFrom::Mapping(nodes.map(|(host, node)| (host.clone(), node.to_owned())).collect())
            }
        };
        Some(Cluster {
            access,
            site: self.site.name.as_str().to_owned(),
            node_from,
            protected_namespaces: protected_namespaces.clone(),
            job_pods: job_pods.clone(),
            wait_for_pods: wait_for_pods.clone(),
            api_servers: self.reboot.api_server_selector.clone(),
            eviction_retries: eviction_retries.get(),
            eviction_interval: eviction_interval.get(),
            pod_grace: pod_grace.map(|grace| whole_seconds(grace.get())),
            skip_wait_for_delete: self.reboot.skip_wait_for_delete.map(Interval::get),
            requests_per_second: NonZeroU32::new(requests_per_second.get()).expect("it is 50 at least"),
        })
    }
}

/// The shortest time of whole seconds that is no shorter.
fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs() + u64::from(time.subsec_nanos() > 0))
}

/// One way to the cluster, which everything else needs; a site that can be told from others; and a mapping only where it is
/// used.
pub(super) fn cluster_rules(merged: &Merged) -> Vec<Problem> {
    let at = |key: &str, message: String| {
        Some(merged.given(SECTION, key)?.problem(format!("{SECTION}.{key}: {message}")))
    };
    let kubeconfig = merged.given(SECTION, "kubeconfig");
    let in_cluster = merged.read::<bool>(SECTION, "in-cluster", &mut Vec::new()) == Some(true);
    let access = match (kubeconfig, in_cluster) {
        (Some(raw), true) => {
            let message =
                format!("true contradicts kubernetes.kubeconfig ({}); set only one of them", raw.origin);
            return at("in-cluster", message).into_iter().chain(node_rules(merged)).collect();
        }
        (Some(_), false) => "kubeconfig",
        (None, true) => "in-cluster",
        (None, false) => {
            let without = changed(merged).into_iter().filter_map(|key| {
                at(
                    key,
                    "has no effect without kubernetes.kubeconfig or kubernetes.in-cluster = true".to_owned(),
                )
            });
            return without.chain(node_rules(merged)).collect();
        }
    };
    let context = at("context", "needs kubernetes.kubeconfig, whose contexts it chooses from".to_owned())
        .filter(|_| kubeconfig.is_none());
    let site = at(
        access,
        "needs a site.name other than \"site\", as sites that share a cluster must differ".to_owned(),
    )
    .filter(|_| is_default_site(merged));
    context.into_iter().chain(site).chain(node_rules(merged)).collect()
}

fn is_default_site(merged: &Merged) -> bool {
    let name = merged.read::<SiteName>("site", "name", &mut Vec::new());
    name.is_some() && !merged.is_changed::<SiteName>("site", "name")
}

/// `mapping` and the table need each other.
fn node_rules(merged: &Merged) -> Option<Problem> {
    let mut ignored = Vec::new();
    let source = merged.read::<NodeSource>(SECTION, "node-from", &mut ignored)?;
    let nodes = merged.read::<Option<NodeNames>>(SECTION, "nodes", &mut ignored)?;
    let has_nodes = nodes.is_some_and(|nodes| !nodes.is_empty());
    match source {
        NodeSource::Mapping if has_nodes => None,
        NodeSource::Mapping => {
            let message =
                "kubernetes.node-from: \"mapping\" needs [kubernetes.nodes] with the node of each host";
            Some(merged.given(SECTION, "node-from")?.problem(message.to_owned()))
        }
        NodeSource::Host | NodeSource::Label(_) => {
            let message = "kubernetes.nodes: needs kubernetes.node-from = \"mapping\"";
            Some(merged.given(SECTION, "nodes")?.problem(message.to_owned()))
        }
    }
}

/// The keys, other than the ways to the cluster, that have another value than their default.
fn changed(merged: &Merged) -> Vec<&'static str> {
    let keys = [
        ("context", merged.is_changed::<Option<Text>>(SECTION, "context")),
        ("node-from", merged.is_changed::<NodeSource>(SECTION, "node-from")),
        ("drain-timeout", merged.is_changed::<Interval<1_000, 86_400_000>>(SECTION, "drain-timeout")),
        ("protected-namespaces", merged.is_changed::<Option<LabelSelector>>(SECTION, "protected-namespaces")),
        ("job-pods", merged.is_changed::<Option<LabelSelector>>(SECTION, "job-pods")),
        ("wait-for-pods", merged.is_changed::<Option<LabelSelector>>(SECTION, "wait-for-pods")),
        ("eviction-retries", merged.is_changed::<Bounded<0, 1_000>>(SECTION, "eviction-retries")),
        ("eviction-interval", merged.is_changed::<Interval<100, 3_600_000>>(SECTION, "eviction-interval")),
        ("pod-grace", merged.is_changed::<Option<Interval<1_000, 86_400_000>>>(SECTION, "pod-grace")),
        ("requests-per-second", merged.is_changed::<Bounded<50, 10_000>>(SECTION, "requests-per-second")),
        ("on-failure", merged.is_changed::<FailedNode>(SECTION, "on-failure")),
        ("nodes", merged.is_changed::<Option<NodeNames>>(SECTION, "nodes")),
    ];
    keys.into_iter().filter(|(_, is_changed)| *is_changed).map(|(key, _)| key).collect()
}
