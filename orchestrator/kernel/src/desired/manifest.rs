//! The manifests to publish.

use os_upgrade_protocol::{HostName, Item, ItemId, ItemKind, Manifest, Revision, UnitItem, WantedState};
use os_upgrade_scheduler::UnitState;

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
    /// The manifest itself, if it still follows from `state`: configurations in the order of their providers' names, then units in that of
    /// theirs.
    pub fn manifest(&self, state: &State) -> Option<Manifest> {
        let desired = state.desired.hosts.get(&self.host)?;
        let configurations = desired.items.iter().map(|(name, item)| Item {
            kind: ItemKind::Configuration,
            name: name.to_string(),
            id: item.id.clone(),
            sealed: item.sealed,
        });
        let epoch = self.revision.epoch;
        let units = desired.units.iter().map(|(name, unit)| Item {
            kind: ItemKind::Unit,
            name: name.to_string(),
            id: unit.id(epoch),
            sealed: unit.sealed(epoch),
        });
        let is_current = state.is_manifest_due(&self.host, self.revision);
        is_current.then(|| Manifest {
            site: state.settings.site.clone(),
            revision: self.revision,
            items: configurations.chain(units).collect(),
        })
    }

    /// The items of units that are to be stored before this manifest: those that are newer than the last one that is known to be stored. Empty
    /// if it no longer follows from `state`.
    pub fn new_units(&self, state: &State) -> Vec<(ItemId, UnitItem)> {
        let is_current = state.is_manifest_due(&self.host, self.revision);
        let desired = state.desired.hosts.get(&self.host).filter(|_| is_current);
        let (epoch, stored) = (self.revision.epoch, desired.and_then(|desired| desired.manifest));
        let units = desired.into_iter().flat_map(|desired| &desired.units);
        let new = units.filter(|(_, unit)| stored.is_none_or(|stored| unit.sealed(epoch) > stored));
        let item = new.filter_map(|(name, desired)| {
            let unit = state.units.units.get(name)?;
            let state = match desired.state {
                UnitState::Inactive | UnitState::Loaded => WantedState::Loaded,
                UnitState::Launched => WantedState::Launched,
            };
            let (name, contents) = (name.to_string(), unit.file.text().to_owned());
            let item = UnitItem { name, contents, state, placement: desired.placement };
            Some((desired.id(epoch), item))
        });
        item.collect()
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
