//! Previews of drains for the API, by the cluster that carries the drains out.

use os_upgrade_adapters::cluster::{Cluster, Failure, NamedPod, Preview};
use os_upgrade_protocol::HostName;
use os_upgrade_site::drain_previews::{
    DrainPreview, DrainPreviews, NoPreview, PodName, PreviewRead, PreviewsDrains,
};

#[derive(Debug)]
struct OfCluster(Cluster);

/// The previews of `cluster`.
pub(super) fn of(cluster: Option<&Cluster>) -> DrainPreviews {
    cluster.cloned().map(|cluster| DrainPreviews::new(OfCluster(cluster))).unwrap_or_default()
}

impl PreviewsDrains for OfCluster {
    fn preview<'a>(&'a self, host: &'a HostName) -> PreviewRead<'a> {
        Box::pin(async move { self.0.preview(host).await.map(shown).map_err(no_preview) })
    }
}

fn shown(Preview { evicted, deleted, awaited, blocked, own }: Preview) -> DrainPreview {
    let names = |pods: Vec<NamedPod>| pods.into_iter().map(name).collect();
    DrainPreview {
        evicted: names(evicted),
        deleted: names(deleted),
        awaited: names(awaited),
        blocked,
        own: names(own),
    }
}

fn name(NamedPod { namespace, name, owner, is_bare, has_empty_dir }: NamedPod) -> PodName {
    PodName { namespace, name, owner, is_bare, has_empty_dir }
}

fn no_preview(failure: Failure) -> NoPreview {
    match failure {
        Failure::NoNode { detail } => NoPreview::NoNode(detail),
        Failure::NoClient(_) | Failure::Request(_) => NoPreview::Unavailable(failure.to_string()),
    }
}
