//! `os-upgrade drain --dry-run`: what the drain of a host's Kubernetes node would do.

use clap::Args;
use os_upgrade_api_types::routes::drains::PREVIEW;
use os_upgrade_protocol::HostName;
use os_upgrade_shell::text::sanitized;
use serde::Deserialize;

use super::options::Remote;
use crate::Failure;
use crate::output::{Canvas, View};

#[derive(Debug, Args)]
pub(crate) struct Drain {
    /// The host
    #[arg(value_name = "NAME")]
    host: HostName,
    /// Only show what would become of the pods: nodes are drained by runs and by the reboot queue
    #[arg(long, required = true)]
    dry_run: bool,
    #[command(flatten)]
    remote: Remote,
}

/// What would become of the pods of a node.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Preview {
    evicted: Vec<Pod>,
    deleted: Vec<Pod>,
    awaited: Vec<Pod>,
    blocked: Vec<Pod>,
    own: Vec<Pod>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Pod {
    namespace: String,
    name: String,
    owner: Option<String>,
    bare: bool,
    empty_dir: bool,
    /// What keeps it, if something does.
    text: Option<String>,
}

/// Shows the preview.
pub(super) async fn run(Drain { host, dry_run: _, remote }: Drain) -> Result<(), Failure> {
    let preview = remote.client()?.call(PREVIEW.named([host.as_str()])).await?;
    remote.output.show::<Preview>(&preview)
}

impl Preview {
    /// The pods, by what would become of them: those that keep the node from being drained first.
    fn parts(&self) -> [(&'static str, &[Pod]); 5] {
        [
            ("blocked", &self.blocked),
            ("evicted", &self.evicted),
            ("deleted", &self.deleted),
            ("awaited", &self.awaited),
            ("stays", &self.own),
        ]
    }
}

impl View for Preview {
    fn text(&self, _canvas: &Canvas) -> String {
        let line = |what: &str, pod: &Pod| format!("{what:<9}{}", sanitized(&pod.line()));
        let of_part = |(what, pods): (&'static str, &[Pod])| -> Vec<String> {
            pods.iter().map(|pod| line(what, pod)).collect()
        };
        self.parts().into_iter().flat_map(of_part).collect::<Vec<_>>().join("\n")
    }

    fn names(&self) -> Option<Vec<String>> {
        let pods = self.parts().into_iter().flat_map(|(_, pods)| pods);
        Some(pods.map(|pod| format!("{}/{}", pod.namespace, pod.name)).collect())
    }

    fn none(&self) -> Option<String> {
        let is_empty = self.parts().iter().all(|(_, pods)| pods.is_empty());
        is_empty.then(|| "no pod would have to go".to_owned())
    }
}

impl Pod {
    fn line(&self) -> String {
        let Self { namespace, name, owner, text, bare, empty_dir } = self;
        let owner = owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
        let text = text.as_ref().map(|text| format!(" {text}")).unwrap_or_default();
        let bare = if *bare { ", without a controller: nothing replaces it" } else { "" };
        let data = if *empty_dir { ", with an emptyDir, whose data are lost" } else { "" };
        format!("{namespace}/{name}{owner}{text}{bare}{data}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::Zone;

    #[test]
    fn what_blocks_comes_first() {
        let canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };
        let preview = json!({
            "evicted": [
                { "namespace": "shop", "name": "web\u{1b}1", "owner": "ReplicaSet/web", "empty-dir": true },
                { "namespace": "shop", "name": "shell", "bare": true },
            ],
            "deleted": [], "awaited": [{ "namespace": "shop", "name": "old" }],
            "blocked": [{ "namespace": "shop", "name": "db-0", "obstacle": "budget", "text": "is kept by the budget db" }],
            "own": [{ "namespace": "os-upgrade", "name": "os-upgrade-0" }],
        });
        let preview = Preview::deserialize(preview).unwrap();
        let expected = "\
blocked  shop/db-0 is kept by the budget db
evicted  shop/web\u{fffd}1 of ReplicaSet/web, with an emptyDir, whose data are lost
evicted  shop/shell, without a controller: nothing replaces it
awaited  shop/old
stays    os-upgrade/os-upgrade-0";
        assert_eq!(preview.text(&canvas), expected);
        assert_eq!(preview.names().unwrap()[0], "shop/db-0");
        assert_eq!((preview.none(), Preview::default().none().is_some()), (None, true));
    }
}
