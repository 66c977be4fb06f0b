//! The manifests to publish.

use os_upgrade_protocol::{HostName, Item, ItemId, ItemKind, Manifest, Revision};

use crate::state::State;

/// A manifest to publish, and what to delete after that.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ManifestOrder {
    pub host: HostName,
    pub revision: Revision,
    /// Items that it no longer names.
    pub replaced: Vec<ItemId>,
}

impl ManifestOrder {
    /// The manifest itself, if it still follows from `state`. Items are in the order of their providers' names.
    pub fn manifest(&self, state: &State) -> Option<Manifest> {
        let desired = state.desired.hosts.get(&self.host)?;
        let items = desired.items.iter().map(|(name, item)| Item {
            kind: ItemKind::Configuration,
            name: name.to_string(),
            id: item.id.clone(),
            sealed: item.sealed,
        });
        let is_current = state.is_manifest_due(&self.host, self.revision);
        is_current.then(|| Manifest {
            site: state.settings.site.clone(),
            revision: self.revision,
            items: items.collect(),
        })
    }
}

/// The manifests that are to be published and are not known to be stored.
pub(crate) fn due(state: &State) -> impl Iterator<Item = ManifestOrder> + '_ {
    let delivered = state.desired.outdated.iter().filter(|host| state.is_delivered(host));
    delivered.filter_map(|host| {
        let replaced = state.desired.hosts.get(host)?.replaced.clone();
        Some(ManifestOrder { host: host.clone(), revision: state.desired_revision(host), replaced })
    })
}
