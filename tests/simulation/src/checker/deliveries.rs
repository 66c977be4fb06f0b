//! What the checker sees of what hosts are to have.

use os_upgrade_protocol::{DesiredFence, HostName, ItemId, Manifest};
use os_upgrade_provider_rules::ProviderName;

use super::Checker;
use super::desired::Writer;
use super::violation::Violation;
use crate::desired_stream::{DesiredStream, SealedItem};

impl Checker {
    /// A provider changes its mind about a host.
    pub(crate) fn provider_said(&mut self, provider: &ProviderName, host: &HostName, word: Option<u64>) {
        self.desired.said(provider, host, word);
    }

    /// A fence is stored in the stream of what hosts are to have.
    pub(crate) fn desired_fenced(&mut self, writer: Writer, fence: &DesiredFence) {
        self.violations.record("desired.fenced", self.desired.fenced(writer, fence));
    }

    /// An item is stored there.
    pub(crate) fn item_stored(&mut self, writer: Writer, id: &ItemId, item: &SealedItem) {
        self.violations.record("desired.item_stored", self.desired.item_stored(writer, id, item));
    }

    /// A manifest is stored there.
    pub(crate) fn manifest_stored(&mut self, writer: Writer, host: &HostName, manifest: &Manifest) {
        let state = self.journal.state();
        let checked = self.desired.manifest_stored(writer, host, manifest, state);
        self.violations.record("desired.manifest_stored", checked);
    }

    /// An item is deleted there.
    pub(crate) fn item_deleted(&mut self, host: &HostName, id: &ItemId) {
        self.violations.record("desired.deleted", self.desired.deleted(host, id));
    }

    /// A host applies a content of the provider `name`, by a manifest of `epoch`.
    pub(crate) fn configured(&mut self, host: &HostName, name: &str, content: u64, epoch: u64) {
        self.violations.record("desired.configured", self.desired.configured(host, name, content, epoch));
    }

    /// The stream was put back to an earlier moment, or everything around it was.
    pub(crate) fn desired_rolled_back(&mut self, stream: &DesiredStream, names: &[HostName]) {
        self.desired.rolled_back(stream, names);
    }

    /// Long after the faults, hosts do not have what providers say.
    pub(crate) fn never_delivered(&mut self, what: &str, state: &str) {
        self.violations.add(Violation::new("delivered", format!("{what}\n{state}")));
    }

    /// How many items hosts have applied.
    pub(crate) fn configurations(&self) -> u64 {
        self.desired.count()
    }
}
