//! What hosts are to have: nobody gets another's, nobody goes back, and only the last leader writes.
//!
//! The checker keeps its own account of what providers say, of the stream, and of what hosts apply.

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_kernel::fact::DesiredFact;
use os_upgrade_kernel::{Fact, State};
use os_upgrade_protocol::{DesiredFence, HostName, Item, ItemId, ItemKind, Manifest, Revision};
use os_upgrade_provider_rules::ProviderName;

use super::violation::Violation;
use crate::desired_stream::{DesiredStream, SealedItem};
use crate::peer::Peer;

/// A process of an instance: the instance, and the number of its process.
pub(crate) type Writer = (Peer, u32);

/// A provider's name, and a host.
type Pair = (String, HostName);

/// What was last applied of a provider on a host.
#[derive(Debug, Clone, Copy)]
struct AppliedWord {
    epoch: u64,
    /// The place of the word among all that the provider said of the host.
    word: usize,
}

#[derive(Debug, Default)]
pub(super) struct Desired {
    /// The last fence: how new it is, and whose it is.
    fence: Option<(Revision, Writer)>,
    items: BTreeMap<(HostName, ItemId), SealedItem>,
    /// The names of the units among them, which are not sealed.
    units: BTreeMap<(HostName, ItemId), String>,
    manifests: BTreeMap<HostName, Manifest>,
    /// What each provider has had for each host, in order; `None` while it had nothing.
    words: BTreeMap<Pair, Vec<Option<u64>>>,
    applied: BTreeMap<Pair, AppliedWord>,
    /// Whether the bus was put back to an earlier moment, and the site may not know of it.
    is_rolled_back: bool,
    /// How many items hosts have applied.
    count: u64,
}

impl Desired {
    /// A provider changes its mind about a host.
    pub(super) fn said(&mut self, provider: &ProviderName, host: &HostName, word: Option<u64>) {
        self.words.entry((provider.to_string(), host.clone())).or_default().push(word);
    }

    /// A fence is stored in the stream.
    pub(super) fn fenced(&mut self, writer: Writer, fence: &DesiredFence) -> Result<(), Violation> {
        if let Some((last, _)) = self.fence.filter(|(last, _)| *last > fence.revision) {
            let text = format!("{} puts its fence in place of {last:?}: {:?}", writer.0, fence.revision);
            return Err(Violation::new("succession", text));
        }
        self.fence = Some((fence.revision, writer));
        Ok(())
    }

    fn check_writer(&self, writer: Writer, what: &str) -> Result<(), Violation> {
        if self.fence.is_some_and(|(_, last)| last == writer) {
            return Ok(());
        }
        let text = format!("{} stores {what} under the fence of another: {:?}", writer.0, self.fence);
        Err(Violation::new("succession", text))
    }

    /// An item is stored in the stream.
    pub(super) fn item_stored(
        &mut self,
        writer: Writer,
        id: &ItemId,
        item: &SealedItem,
    ) -> Result<(), Violation> {
        self.items.insert((item.host.clone(), id.clone()), item.clone());
        self.check_writer(writer, "an item")
    }

    /// A manifest is stored in the stream, while the journal folds to `state`.
    pub(super) fn manifest_stored(
        &mut self,
        writer: Writer,
        host: &HostName,
        manifest: &Manifest,
        state: &State,
    ) -> Result<(), Violation> {
        let before = self.manifests.insert(host.clone(), manifest.clone());
        self.check_writer(writer, "a manifest")?;
        if let Some(newer) = before.filter(|before| before.revision > manifest.revision) {
            let text = format!("{host}: {:?} follows {:?}", manifest.revision, newer.revision);
            return Err(Violation::new("older", text));
        }
        if !state.is_delivered(host) {
            let text = format!("{host} is told something after a restoration, and nobody has said so");
            return Err(Violation::new("resumed", text));
        }
        for item in &manifest.items {
            self.check_named(host, item, state)?;
        }
        Ok(())
    }

    /// What a manifest names is there.
    fn check_named(&self, host: &HostName, item: &Item, state: &State) -> Result<(), Violation> {
        let key = (host.clone(), item.id.clone());
        let (stored, unit) = (self.items.get(&key), self.units.get(&key));
        let is_meant = match item.kind {
            ItemKind::Unit => unit.is_some_and(|name| *name == item.name),
            ItemKind::Configuration | ItemKind::Other => stored
                .is_some_and(|stored| stored.provider.as_str() == item.name && stored.sealed == item.sealed),
        };
        // A restored site names what it had; it may have been deleted since, and is given anew.
        let may_be_gone = item.sealed.epoch < state.epoch() && stored.is_none() && unit.is_none();
        if may_be_gone || is_meant {
            return Ok(());
        }
        let text = format!("the manifest of {host} names {item:?}, and there is {stored:?} or {unit:?}");
        Err(Violation::new("named", text))
    }

    /// A unit of this name is stored in the stream.
    pub(super) fn unit_stored(
        &mut self,
        writer: Writer,
        host: &HostName,
        id: &ItemId,
        unit: &str,
    ) -> Result<(), Violation> {
        self.units.insert((host.clone(), id.clone()), unit.to_owned());
        self.check_writer(writer, "a unit")
    }

    /// An item is deleted from the stream.
    pub(super) fn deleted(&mut self, host: &HostName, id: &ItemId) -> Result<(), Violation> {
        self.items.remove(&(host.clone(), id.clone()));
        self.units.remove(&(host.clone(), id.clone()));
        let manifest = self.manifests.get(host);
        if manifest.is_some_and(|manifest| manifest.items.iter().any(|item| item.id == *id)) {
            let text = format!("{id} of {host} is deleted, and the manifest names it");
            return Err(Violation::new("named", text));
        }
        Ok(())
    }

    /// A fact was added to the journal, which folds to `state`.
    pub(super) fn fact(&self, fact: &Fact, state: &State) -> Result<(), Violation> {
        let Fact::Desired(DesiredFact::ItemStored { host, provider, item, sealed, .. }) = fact else {
            return Ok(());
        };
        let stored = self.items.get(&(host.clone(), item.clone()));
        let Some(stored) = stored.filter(|it| it.provider == *provider && it.sealed == *sealed) else {
            let text = format!("{host} is to have {item} of {provider}, and there is {stored:?}");
            return Err(Violation::new("named", text));
        };
        if state.enrolment.pinned(host) != Some(&stored.key) {
            let text = format!("{host} is to have {item}, which is sealed to {}", stored.key);
            return Err(Violation::new("sealed", text));
        }
        Ok(())
    }

    /// A host applies a content of the provider `name`, by a manifest of `epoch`.
    pub(super) fn configured(
        &mut self,
        host: &HostName,
        name: &str,
        content: u64,
        epoch: u64,
    ) -> Result<(), Violation> {
        self.count += 1;
        let pair = (name.to_owned(), host.clone());
        let words = self.words.get(&pair).map(Vec::as_slice).unwrap_or_default();
        let given: BTreeSet<usize> = (0..words.len()).filter(|word| words[*word] == Some(content)).collect();
        if given.is_empty() {
            let text = format!("{host} applies content {content}, which {name} never had for it");
            return Err(Violation::new("given", text));
        }
        let last = self.applied.get(&pair).filter(|last| last.epoch == epoch).map_or(0, |last| last.word);
        let Some(word) = given.range(last..).next().copied() else {
            if self.is_rolled_back && epoch == 0 {
                return Ok(());
            }
            let text = format!("{host} applies content {content} of {name} after {:?}", words[last]);
            return Err(Violation::new("older", text));
        };
        self.applied.insert(pair, AppliedWord { epoch, word });
        Ok(())
    }

    /// The bus was put back to an earlier moment, and the stream is `stream` now.
    pub(super) fn rolled_back(&mut self, stream: &DesiredStream, names: &[HostName]) {
        self.is_rolled_back = true;
        self.fence = None;
        let items = stream.items().map(|(id, item)| ((item.host.clone(), id.clone()), item.clone()));
        self.items = items.collect();
        let units = stream.units().map(|(host, id, unit)| ((host.clone(), id.clone()), unit.name.clone()));
        self.units = units.collect();
        let manifest = |host: &HostName| Some((host.clone(), stream.manifest(host)?.clone()));
        self.manifests = names.iter().filter_map(manifest).collect();
        self.applied.clear();
    }

    /// How many items hosts have applied.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}
