//! The stream of what hosts are to have, in memory: the fence, items and manifests. Whoever writes names the fence that must still be the last.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_protocol::{DesiredFence, HostKey, HostName, ItemId, Manifest, Revision, UnitItem};
use os_upgrade_provider_rules::ProviderName;

/// An item as the stream has it. It is not encrypted: what must be true to open it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedItem {
    pub(crate) host: HostName,
    pub(crate) provider: ProviderName,
    pub(crate) sealed: Revision,
    pub(crate) key: HostKey,
    /// The number of the content.
    pub(crate) content: u64,
}

/// What an item contains.
#[derive(Debug, Clone)]
enum Content {
    Sealed(SealedItem),
    Unit(UnitItem),
}

/// The messages of the stream, and the last report of each host beside it.
#[derive(Debug, Clone, Default)]
pub(crate) struct DesiredStream {
    last: u64,
    fence: Option<(u64, DesiredFence)>,
    manifests: BTreeMap<HostName, (u64, Manifest)>,
    items: BTreeMap<(HostName, ItemId), (u64, Content)>,
    /// What each host has reported last of what it has.
    reports: BTreeMap<HostName, Vec<u8>>,
}

impl DesiredStream {
    /// The last fence and its sequence.
    pub(crate) fn fence(&self) -> Option<&(u64, DesiredFence)> {
        self.fence.as_ref()
    }

    /// The sequence of the last fence; 0 without one.
    pub(crate) fn fence_sequence(&self) -> u64 {
        self.fence.as_ref().map_or(0, |(sequence, _)| *sequence)
    }

    /// Stores `fence` if the last one has the sequence `expected`. Returns its sequence.
    pub(crate) fn put_fence(&mut self, expected: u64, fence: DesiredFence) -> Option<u64> {
        let sequence = self.next_under(expected)?;
        self.fence = Some((sequence, fence));
        Some(sequence)
    }

    /// Stores an item under the fence at this sequence.
    pub(crate) fn put_item(&mut self, fence: u64, id: ItemId, item: SealedItem) -> Option<u64> {
        let sequence = self.next_under(fence)?;
        self.items.insert((item.host.clone(), id), (sequence, Content::Sealed(item)));
        Some(sequence)
    }

    /// Stores a unit of `host` under the fence at this sequence.
    pub(crate) fn put_unit(&mut self, fence: u64, host: HostName, id: ItemId, unit: UnitItem) -> Option<u64> {
        let sequence = self.next_under(fence)?;
        self.items.insert((host, id), (sequence, Content::Unit(unit)));
        Some(sequence)
    }

    /// Stores what `host` is to have under the fence at this sequence.
    pub(crate) fn put_manifest(&mut self, fence: u64, host: HostName, manifest: Manifest) -> Option<u64> {
        let sequence = self.next_under(fence)?;
        self.manifests.insert(host, (sequence, manifest));
        Some(sequence)
    }

    fn next_under(&mut self, fence: u64) -> Option<u64> {
        if fence != self.fence_sequence() {
            return None;
        }
        self.last += 1;
        Some(self.last)
    }

    /// Deletes what `manifest` of `host` does not name: the `replaced` items, and those that are older than `before`. Returns them.
    pub(crate) fn sweep(
        &mut self,
        host: &HostName,
        manifest: &Manifest,
        replaced: &[ItemId],
        before: u64,
    ) -> Vec<ItemId> {
        let named: BTreeSet<&ItemId> = manifest.items.iter().map(|item| &item.id).collect();
        let is_over =
            |id: &ItemId, sequence: u64| !named.contains(id) && (replaced.contains(id) || sequence < before);
        let of_host = self.items.iter().filter(|((of, _), _)| of == host);
        let over = of_host.filter(|((_, id), (sequence, _))| is_over(id, *sequence));
        let over: Vec<ItemId> = over.map(|((_, id), _)| id.clone()).collect();
        for id in &over {
            self.items.remove(&(host.clone(), id.clone()));
        }
        over
    }

    /// Deletes the items that were stored before `host` was told that it is to have nothing, and returns them.
    pub(crate) fn purge(&mut self, host: &HostName) -> Vec<ItemId> {
        let told = self.manifests.get(host).filter(|(_, manifest)| manifest.items.is_empty());
        let Some((told, _)) = told else { return Vec::new() };
        let is_over = |of: &HostName, sequence: u64| of == host && sequence < *told;
        let over = self.items.iter().filter(|((of, _), (sequence, _))| is_over(of, *sequence));
        let over: Vec<ItemId> = over.map(|((_, id), _)| id.clone()).collect();
        for id in &over {
            self.items.remove(&(host.clone(), id.clone()));
        }
        over
    }

    /// Deletes what says what `host` is to have.
    pub(crate) fn delete_manifest(&mut self, host: &HostName) {
        self.manifests.remove(host);
    }

    /// What `host` is to have.
    pub(crate) fn manifest(&self, host: &HostName) -> Option<&Manifest> {
        self.manifests.get(host).map(|(_, manifest)| manifest)
    }

    /// A sealed item of `host`.
    pub(crate) fn item(&self, host: &HostName, id: &ItemId) -> Option<&SealedItem> {
        match self.items.get(&(host.clone(), id.clone())) {
            Some((_, Content::Sealed(item))) => Some(item),
            Some((_, Content::Unit(_))) | None => None,
        }
    }

    /// A unit of `host`.
    pub(crate) fn unit(&self, host: &HostName, id: &ItemId) -> Option<&UnitItem> {
        match self.items.get(&(host.clone(), id.clone())) {
            Some((_, Content::Unit(unit))) => Some(unit),
            Some((_, Content::Sealed(_))) | None => None,
        }
    }

    /// All sealed items, with their ids.
    pub(crate) fn items(&self) -> impl Iterator<Item = (&ItemId, &SealedItem)> {
        self.items.iter().filter_map(|((_, id), (_, content))| match content {
            Content::Sealed(item) => Some((id, item)),
            Content::Unit(_) => None,
        })
    }

    /// All units, with their hosts and ids.
    pub(crate) fn units(&self) -> impl Iterator<Item = (&HostName, &ItemId, &UnitItem)> {
        self.items.iter().filter_map(|((host, id), (_, content))| match content {
            Content::Unit(unit) => Some((host, id, unit)),
            Content::Sealed(_) => None,
        })
    }

    /// A host reports what it has.
    pub(crate) fn report(&mut self, host: HostName, payload: Vec<u8>) {
        self.reports.insert(host, payload);
    }

    /// The last report of each host.
    pub(crate) fn reports(&self) -> impl Iterator<Item = (&HostName, &Vec<u8>)> {
        self.reports.iter()
    }
}
