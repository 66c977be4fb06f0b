//! `os-upgrade drain --dry-run`: what the drain of a host's Kubernetes node would do.

use clap::Args;
use os_upgrade_api_types::routes::drains::{PREVIEW, Preview};
use os_upgrade_console::rows::drains;
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::text::sanitized;

use super::completion;
use super::options::Remote;
use crate::Failure;
use crate::output::{Canvas, View};

#[derive(Debug, Args)]
pub(crate) struct Drain {
    /// The host
    #[arg(value_name = "NAME", add = completion::hosts())]
    host: HostName,
    /// Only show what would become of the pods: nodes are drained by runs and by the reboot queue
    #[arg(long, required = true)]
    dry_run: bool,
    #[command(flatten)]
    remote: Remote,
}

/// Shows the preview.
pub(super) async fn run(Drain { host, dry_run: _, remote }: Drain) -> Result<(), Failure> {
    let preview = remote.client()?.call(PREVIEW.named([host.as_str()])).await?;
    remote.output.show::<Preview<'_>>(&preview)
}

impl View for Preview<'static> {
    fn text(&self, _canvas: &Canvas) -> String {
        let line =
            |(what, name, more): drains::Line| format!("{what:<9}{}", sanitized(&format!("{name}{more}")));
        drains::lines(self).map(line).collect::<Vec<_>>().join("\n")
    }

    fn names(&self) -> Option<Vec<String>> {
        Some(drains::lines(self).map(|(_, name, _)| name).collect())
    }

    fn none(&self) -> Option<String> {
        drains::lines(self).next().is_none().then(|| "no pod would have to go".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use os_upgrade_console::Zone;
    use serde::Deserialize as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_blocks_comes_first() {
        let canvas = Canvas { is_wide: false, columns: None, zone: Zone::Utc };
        let preview = json!({
            "evicted": [
                { "namespace": "shop", "name": "web\u{1b}1", "owner": "ReplicaSet/web", "empty-dir": true },
                { "namespace": "shop", "name": "shell", "bare": true },
            ],
            "deleted": [], "awaited": [{ "namespace": "shop", "name": "old" }],
            "blocked": [{ "namespace": "shop", "name": "db-0", "obstacle": "budget", "text": "is kept by the budget db",
                "since": "2026-11-21T01:00:00Z" }],
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
        let empty = json!({ "evicted": [], "deleted": [], "awaited": [], "blocked": [], "own": [] });
        let empty = Preview::deserialize(empty).unwrap();
        assert_eq!((preview.none(), empty.none().is_some()), (None, true));
    }
}
