//! The Kubernetes nodes of hosts, and how far their drains are.

use os_upgrade_api_types::node::{HostNode, NodeWaits, WaitingPod};

use crate::row::Detail;

/// One word for a table.
pub(super) fn word<'a>(node: &'a HostNode<'_>) -> &'a str {
    if node.kept { "cordoned" } else { node.stage.as_str() }
}

/// The lines of `hosts show`, by their names: those after the first of a name have none.
pub(super) fn details(node: &HostNode<'_>) -> Vec<Detail> {
    let kept = if node.kept { "; it stays cordoned until `os-upgrade hosts uncordon`" } else { "" };
    let mut lines = vec![("node", format!("{} since {}{kept}", node.stage, node.since))];
    if let Some(waits) = &node.waits {
        let names = std::iter::once("waits for").chain(std::iter::repeat(""));
        lines.extend(names.zip(wait_lines(waits)));
    }
    lines
}

/// A line for a kubelet that is silent, for each pod that is named, and for how many more there are.
fn wait_lines(waits: &NodeWaits<'_>) -> Vec<String> {
    if waits.pods.is_empty() {
        return vec![waits.text.clone()];
    }
    let more = waits.count.unwrap_or(0).saturating_sub(waits.pods.len());
    let silent = waits.kubelet_silent.then(|| "the kubelet, which is silent, to end pods".to_owned());
    let more = (more > 0).then(|| format!("{more} more pods"));
    silent.into_iter().chain(waits.pods.iter().map(pod_line)).chain(more).collect()
}

fn pod_line(pod: &WaitingPod<'_>) -> String {
    let WaitingPod { namespace, name, owner, text, since, obstacle: _ } = pod;
    let owner = owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
    format!("pod {namespace}/{name}{owner} {text}, since {since}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize as _;
    use serde_json::{Value, json};

    use super::*;

    fn lines(node: &Value) -> Vec<(&'static str, String)> {
        details(&HostNode::deserialize(node).unwrap())
    }

    #[test]
    fn pods_are_listed() {
        let since = "2026-11-21T01:00:00Z";
        let pod = |name: &str| json!({ "namespace": "shop", "name": name, "owner": "StatefulSet/db", "obstacle": "budget", "text": "is kept by the budget db", "since": since });
        let waits = json!({ "kind": "pods", "text": "x", "count": 4, "pods": [pod("db-0"), pod("db-1")] });
        let node = json!({ "stage": "evicting", "since": since, "waits": waits });
        let line = |name: &str| {
            format!("pod shop/{name} of StatefulSet/db is kept by the budget db, since 2026-11-21T01:00:00Z")
        };
        let expected = [
            ("node", "evicting since 2026-11-21T01:00:00Z".to_owned()),
            ("waits for", line("db-0")),
            ("", line("db-1")),
            ("", "2 more pods".to_owned()),
        ];
        assert_eq!(lines(&node), expected);
        let waits =
            json!({ "kind": "pods", "text": "x", "kubelet-silent": true, "count": 1, "pods": [pod("db-0")] });
        let silent = lines(&json!({ "stage": "evicting", "since": since, "waits": waits }));
        assert_eq!(
            silent[1..],
            [("waits for", "the kubelet, which is silent, to end pods".to_owned()), ("", line("db-0"))]
        );
    }

    #[test]
    fn kept_cordons_and_other_waits() {
        let since = "2026-11-21T01:00:00Z";
        let kept = json!({ "stage": "drained", "since": since, "kept": true });
        let text = "drained since 2026-11-21T01:00:00Z; it stays cordoned until `os-upgrade hosts uncordon`";
        assert_eq!(lines(&kept), [("node", text.to_owned())]);
        assert_eq!(word(&HostNode::deserialize(&kept).unwrap()), "cordoned");

        let waits =
            json!({ "kind": "not-ready", "text": "its node is not ready, or is still in its old boot" });
        let node = json!({ "stage": "uncordoning", "since": since, "waits": waits });
        assert_eq!(
            lines(&node)[1..],
            [("waits for", "its node is not ready, or is still in its old boot".to_owned())]
        );
        assert_eq!(word(&HostNode::deserialize(&node).unwrap()), "uncordoning");
    }
}
