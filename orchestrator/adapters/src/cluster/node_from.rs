//! Which node belongs to a host.

use os_upgrade_protocol::HostName;
use os_upgrade_settings::NodeFrom;

use super::failure::Failure;
use crate::kubernetes::client::Client;
use crate::kubernetes::mark::Marking;
use crate::kubernetes::node::NodeState;

/// The name of the host's node. It may not be there.
pub(super) async fn node_of(from: &NodeFrom, client: &Client, host: &HostName) -> Result<String, Failure> {
    let no_node = |detail: String| Failure::NoNode { detail };
    match from {
        NodeFrom::Host => Ok(host.to_string()),
        NodeFrom::Mapping(names) => names
            .get(host)
            .cloned()
            .ok_or_else(|| no_node(format!("the settings name no node for the host {host}"))),
        NodeFrom::Label(key) => {
            let nodes = client.nodes_labelled(key, host.as_str()).await?.into_iter().map(NodeState::from);
            // A host's name may have a meaning in selectors.
            let has_label =
                |node: &NodeState| node.labels.get(key).is_some_and(|value| value == host.as_str());
            let names: Vec<String> = nodes.filter(has_label).map(|node| node.name).collect();
            match &names[..] {
                [name] => Ok(name.clone()),
                [] => Err(no_node(format!("no node has the label {key}={host}, by which it is found"))),
                [first, second, ..] => Err(no_node(format!(
                    "{} nodes have the label {key}={host}, among them {first} and {second}: one has to lose it",
                    names.len()
                ))),
            }
        }
    }
}

/// The name of the node that is cordoned for a host of the site, or may be. Where nothing says any more which one that is,
/// the marks do.
pub(super) async fn cordoned_node_of(
    from: &NodeFrom,
    client: &Client,
    site: &str,
    host: &HostName,
) -> Result<Option<String>, Failure> {
    match node_of(from, client, host).await {
        Ok(name) => Ok(Some(name)),
        Err(Failure::NoNode { .. }) => {
            let mut nodes = client.nodes().await?.into_iter().map(NodeState::from);
            let is_marked = |node: &NodeState| match &node.cordon.marking {
                Marking::Marked { mark, .. } => mark.site == site && mark.host == *host,
                Marking::None | Marking::Unreadable { .. } => false,
            };
            Ok(nodes.find(is_marked).map(|node| node.name))
        }
        Err(failure @ (Failure::NoClient(_) | Failure::Request(_))) => Err(failure),
    }
}
