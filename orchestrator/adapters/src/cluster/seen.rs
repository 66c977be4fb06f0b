//! The nodes of a cluster, as the view needs them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use kube::core::{Selector, SelectorExt as _};
use os_upgrade_kernel::{SeenMark, SeenNode};
use os_upgrade_protocol::HostName;
use os_upgrade_settings::NodeFrom;

use crate::kubernetes::mark::Marking;
use crate::kubernetes::node::{NodeState, Readiness};
use crate::kubernetes::objects::Node;

/// All nodes of a cluster.
#[derive(Debug)]
pub(super) struct Nodes {
    all: Vec<(NodeState, SeenNode)>,
    /// The nodes whose marks cannot be read, with what is wrong.
    pub(super) unreadable: BTreeMap<String, String>,
}

impl Nodes {
    pub(super) fn new(
        nodes: Vec<Node>,
        site: &str,
        journal: Option<DateTime<Utc>>,
        api_servers: &Selector,
    ) -> Self {
        let mut unreadable = BTreeMap::new();
        let nodes = nodes.into_iter().map(NodeState::from);
        let all = nodes.map(|node| {
            let mark = match &node.cordon.marking {
                Marking::Marked { mark, .. } => (mark.site == site).then(|| SeenMark {
                    fence: mark.fence,
                    is_of_other_journal: mark.is_of_other_journal(journal),
                }),
                Marking::None => None,
                Marking::Unreadable { detail } => {
                    unreadable.insert(node.name.clone(), detail.clone());
                    None
                }
            };
            let seen = SeenNode {
                name: node.name.clone(),
                boot_id: node.boot_id.clone(),
                is_ready: node.readiness == Readiness::Ready,
                is_api_server: api_servers.matches(&node.labels),
                is_unschedulable: node.cordon.is_unschedulable,
                mark,
            };
            (node, seen)
        });
        let all = all.collect();
        Self { all, unreadable }
    }

    /// The nodes of hosts. What is no name of a host is skipped, and so are nodes of which several lay claim to one host.
    pub(super) fn by_host(self, node_from: &NodeFrom) -> OrdMap<HostName, SeenNode> {
        match node_from {
            NodeFrom::Host => self.named(|node| Some(&node.name)),
            NodeFrom::Label(key) => self.named(|node| node.labels.get(key)),
            NodeFrom::Mapping(names) => {
                let by_name: BTreeMap<&str, &SeenNode> =
                    self.all.iter().map(|(node, seen)| (node.name.as_str(), seen)).collect();
                let seen = |(host, name): (&HostName, &String)| {
                    Some((host.clone(), SeenNode::clone(by_name.get(name.as_str())?)))
                };
                names.iter().filter_map(seen).collect()
            }
        }
    }

    fn named(&self, host: impl Fn(&NodeState) -> Option<&String>) -> OrdMap<HostName, SeenNode> {
        let mut by_host: BTreeMap<HostName, Vec<&SeenNode>> = BTreeMap::new();
        for (node, seen) in &self.all {
            if let Some(Ok(host)) = host(node).map(|name| HostName::first_seen(name)) {
                by_host.entry(host).or_default().push(seen);
            }
        }
        let only = |(host, nodes): (HostName, Vec<&SeenNode>)| match nodes[..] {
            [node] => Some((host, node.clone())),
            _ => None,
        };
        by_host.into_iter().filter_map(only).collect()
    }
}
