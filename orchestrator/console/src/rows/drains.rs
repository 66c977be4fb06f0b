//! What the drain of a node would do.

use os_upgrade_api_types::node::WaitingPod;
use os_upgrade_api_types::routes::drains::{PodName, Preview};

/// A pod: what would become of it, its name, and what else is to be said.
pub type Line = (&'static str, String, String);

/// The pods, by what would become of them: those that keep the node from being drained first.
pub fn lines(preview: &Preview<'_>) -> impl Iterator<Item = Line> {
    let Preview { evicted, deleted, awaited, blocked, own } = preview;
    let blocked = blocked.iter().map(|WaitingPod { namespace, name, owner, text, .. }| {
        ("blocked", format!("{namespace}/{name}"), format!("{} {text}", of(owner.as_deref())))
    });
    let others = [("evicted", evicted), ("deleted", deleted), ("awaited", awaited), ("stays", own)];
    blocked.chain(others.into_iter().flat_map(|(what, pods)| pods.iter().map(move |pod| line(what, pod))))
}

fn line(what: &'static str, pod: &PodName<'_>) -> Line {
    let PodName { namespace, name, owner, bare, empty_dir } = pod;
    let bare = if *bare { ", without a controller: nothing replaces it" } else { "" };
    let data = if *empty_dir { ", with an emptyDir, whose data are lost" } else { "" };
    (what, format!("{namespace}/{name}"), format!("{}{bare}{data}", of(owner.as_deref())))
}

fn of(owner: Option<&str>) -> String {
    owner.map(|owner| format!(" of {owner}")).unwrap_or_default()
}
