//! The cluster of `[kubernetes]`: what its adapter needs, and the rules between its keys.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use os_upgrade_protocol::HostName;

use super::merged::Setting;
use super::problem::Problem;
use super::schema::{Kubernetes, Settings, read};
use super::value::{Interval, LabelSelector, NodeNames, NodeSource, SiteName};

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
pub(super) fn cluster_rules(cluster: &read::Kubernetes<'_>, site: &Setting<'_, SiteName>) -> Vec<Problem> {
    let read::Kubernetes { kubeconfig, in_cluster, context, .. } = cluster;
    let needs_site = "needs a site.name other than \"site\", as sites that share a cluster must differ";
    let is_default_site = site.value.is_some() && !site.is_changed;
    let mut found = match (kubeconfig.given, in_cluster.value == Some(true)) {
        (Some(raw), true) => {
            let message =
                format!("true contradicts {} ({}); set only one of them", kubeconfig.key, raw.origin);
            vec![in_cluster.problem(&message)]
        }
        (Some(_), false) if is_default_site => vec![kubeconfig.problem(needs_site)],
        (Some(_), false) => Vec::new(),
        (None, true) => {
            let context = context.needs(kubeconfig, "whose contexts it chooses from");
            vec![context, in_cluster.problem(needs_site).filter(|_| is_default_site)]
        }
        (None, false) => without_access(cluster).into(),
    };
    found.push(node_rules(cluster));
    found.into_iter().flatten().collect()
}

/// `mapping` and the table need each other.
fn node_rules(read::Kubernetes { node_from, nodes, .. }: &read::Kubernetes<'_>) -> Option<Problem> {
    let has_nodes = nodes.value.as_ref()?.as_ref().is_some_and(|nodes| !nodes.is_empty());
    match node_from.value.as_ref()? {
        NodeSource::Mapping if has_nodes => None,
        NodeSource::Mapping => {
            node_from.problem("\"mapping\" needs [kubernetes.nodes] with the node of each host")
        }
        NodeSource::Host | NodeSource::Label(_) => nodes.problem("needs kubernetes.node-from = \"mapping\""),
    }
}

/// A problem for each key, other than the ways to the cluster, that has another value than its default.
fn without_access(cluster: &read::Kubernetes<'_>) -> [Option<Problem>; 12] {
    fn changed<T>(key: &Setting<'_, T>) -> Option<Problem> {
        let message = "has no effect without kubernetes.kubeconfig or kubernetes.in-cluster = true";
        key.problem(message).filter(|_| key.is_changed)
    }
    [
        changed(&cluster.context),
        changed(&cluster.node_from),
        changed(&cluster.drain_timeout),
        changed(&cluster.protected_namespaces),
        changed(&cluster.job_pods),
        changed(&cluster.wait_for_pods),
        changed(&cluster.eviction_retries),
        changed(&cluster.eviction_interval),
        changed(&cluster.pod_grace),
        changed(&cluster.requests_per_second),
        changed(&cluster.on_failure),
        changed(&cluster.nodes),
    ]
}
