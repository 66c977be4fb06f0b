//! The Kubernetes node of a host: how far its drain is, and `os-upgrade hosts uncordon`.

use clap::Args;
use os_upgrade_api_types::body::HostWithReason;
use os_upgrade_api_types::routes::hosts as routes;
use os_upgrade_protocol::HostName;
use serde::Deserialize;

use crate::Failure;
use crate::remote::options::Remote;

#[derive(Debug, Args)]
pub(crate) struct Uncordon {
    /// The host
    #[arg(value_name = "NAME")]
    host: HostName,
    /// Why, for the history
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    remote: Remote,
}

/// The node of a host in the response of the API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Node {
    stage: String,
    since: String,
    kept: bool,
    waits: Option<Waits>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Waits {
    text: String,
    #[serde(rename = "kubelet-silent")]
    kubelet_silent: bool,
    count: u64,
    pods: Vec<Pod>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Pod {
    namespace: String,
    name: String,
    owner: Option<String>,
    text: String,
    since: String,
}

/// Has the node of a host that failed uncordoned.
pub(super) async fn uncordon(Uncordon { host, reason, remote }: Uncordon) -> Result<(), Failure> {
    let body = HostWithReason { host: host.clone(), reason };
    remote.client()?.call_with_body(&routes::UNCORDON, &body).await?;
    // The cluster may take its time, or not answer.
    remote.output.done("being uncordoned", &[host.as_str()])
}

impl Node {
    /// One word for a table.
    pub(super) fn word(&self) -> &str {
        if self.kept { "cordoned" } else { &self.stage }
    }

    /// The lines of `hosts show`, by their names: those after the first of a name have none.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let kept = if self.kept { "; it stays cordoned until `os-upgrade hosts uncordon`" } else { "" };
        let mut lines = vec![("node", format!("{} since {}{kept}", self.stage, self.since))];
        if let Some(waits) = &self.waits {
            let names = std::iter::once("waits for").chain(std::iter::repeat(""));
            lines.extend(names.zip(waits.lines()));
        }
        lines
    }
}

impl Waits {
    /// A line for a kubelet that is silent, for each pod that is named, and for how many more there are.
    fn lines(&self) -> Vec<String> {
        if self.pods.is_empty() {
            return vec![self.text.clone()];
        }
        let named = self.pods.len() as u64;
        let more = self.count.checked_sub(named).filter(|more| *more > 0);
        let silent = self.kubelet_silent.then(|| "the kubelet, which is silent, to end pods".to_owned());
        let more = more.map(|more| format!("{more} more pods"));
        silent.into_iter().chain(self.pods.iter().map(Pod::line)).chain(more).collect()
    }
}

impl Pod {
    fn line(&self) -> String {
        let Self { namespace, name, owner, text, since } = self;
        let owner = owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
        format!("pod {namespace}/{name}{owner} {text}, since {since}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn lines(node: &Value) -> Vec<(&'static str, String)> {
        Node::deserialize(node).unwrap().lines()
    }

    #[test]
    fn pods_are_listed() {
        let since = "2026-11-21T01:00:00Z";
        let pod = |name: &str| json!({ "namespace": "shop", "name": name, "owner": "StatefulSet/db", "text": "is kept by the budget db", "since": since });
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
        let node = Node::deserialize(&kept).unwrap();
        assert_eq!(node.word(), "cordoned");

        let waits =
            json!({ "kind": "not-ready", "text": "its node is not ready, or is still in its old boot" });
        let node = json!({ "stage": "uncordoning", "since": since, "waits": waits });
        assert_eq!(
            lines(&node)[1..],
            [("waits for", "its node is not ready, or is still in its old boot".to_owned())]
        );
        assert_eq!(Node::deserialize(&node).unwrap().word(), "uncordoning");
    }
}
