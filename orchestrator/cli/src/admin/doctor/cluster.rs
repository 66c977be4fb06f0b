//! Whether the Kubernetes cluster of the settings can be asked, and which hosts are nodes there.

use os_upgrade_adapters::cluster::Cluster;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_settings::{NodeFrom, Settings};

use super::check::Check;

const NAME: &str = "Kubernetes cluster";
/// How many hosts are named.
const NAMED_MAX: usize = 3;

/// Asks the cluster of `[kubernetes]`, if there is one, for its nodes, as the orchestrator does all the time, and for its rights.
pub(super) async fn examine(settings: &Settings) -> Option<Check> {
    let cluster = match Cluster::from_settings(settings).await {
        Ok(cluster) => cluster?,
        Err(error) => {
            let advice = "correct the kubeconfig, or the setting that names it";
            return Some(Check::problem(NAME, with_causes(&error), advice));
        }
    };
    let nodes = match cluster.nodes().await {
        Ok(nodes) => nodes,
        Err(failure) => {
            let advice = "until its nodes can be seen, nothing starts: check the way to its API server, and the rights there";
            return Some(Check::problem(NAME, failure.to_string(), advice));
        }
    };
    let missing = match cluster.missing_rights().await {
        Ok(missing) => missing,
        Err(failure) => {
            let advice = "its nodes are seen, and whether they can be drained is not known";
            return Some(Check::warning(NAME, failure.to_string(), advice));
        }
    };
    if !missing.is_empty() {
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let advice = "grant them as config/kubernetes/rbac.yaml does: without them drains may wait until they are given up";
        return Some(Check::problem(NAME, format!("missing rights: {}", missing.join(", ")), advice));
    }
    let advice = "[kubernetes] node-from says which node a host is";
    if nodes.is_empty() {
        return Some(Check::warning(NAME, "none of its nodes is that of a host", advice));
    }
    if let Some(NodeFrom::Mapping(names)) = settings.cluster().map(|cluster| cluster.node_from) {
        let missing: Vec<String> = names
            .iter()
            .filter(|(host, _)| !nodes.contains_key(*host))
            .map(|(host, node)| format!("{node} ({host})"))
            .collect();
        if !missing.is_empty() {
            let (count, shown) = (missing.len(), missing[..missing.len().min(NAMED_MAX)].join(", "));
            let more = if count > NAMED_MAX { ", ..." } else { "" };
            let found = format!("it lacks {count} nodes that [kubernetes.nodes] names: {shown}{more}");
            return Some(Check::warning(NAME, found, advice));
        }
    }
    let named: Vec<&str> = nodes.keys().take(NAMED_MAX).map(HostName::as_str).collect();
    let more = if nodes.len() > named.len() { ", ..." } else { "" };
    let ready = nodes.values().filter(|node| node.is_ready).count();
    let api_servers = nodes.values().filter(|node| node.is_api_server).count();
    let found = format!(
        "nodes of hosts: {} ({}{more}), {ready} ready, {api_servers} API servers",
        nodes.len(),
        named.join(", ")
    );
    Some(Check::ok(NAME, found))
}
