//! What the checker sees of what hosts are to have.

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{Fact, State, View};
use os_upgrade_protocol::{DesiredFence, HostName, ItemId, Manifest};
use os_upgrade_provider_rules::{ProviderName, Ticket};
use os_upgrade_shell::delivery::ProviderQuestion;

use super::Checker;
use super::desired::Writer;
use super::hooks::{HookCaller, Hooks};
use super::violation::Violation;
use crate::desired_stream::{DesiredStream, SealedItem};

impl Checker {
    /// A fact was added to the journal, which folds to `state`.
    pub(super) fn delivery_fact(&mut self, fact: &Fact, state: &State) {
        self.violations.record("desired.fact", self.desired.fact(fact, state));
        let sequence = self.journal.last_record();
        self.violations.record("hooks.fact", self.hooks.fact(sequence, fact, state));
        self.unit_fact(fact, state);
    }

    /// A process begins to lead, and has the journal up to `position`.
    pub(crate) fn hooks_led(&mut self, writer: Writer, position: u64) {
        self.hooks.led(self.now, writer, position);
    }

    /// The clock of some process is changed.
    pub(crate) fn clock_changed(&mut self) {
        self.hooks.clock_changed();
    }

    /// A process, which knows `state`, tells a provider of events in one request, and awaits the answers to its calls before that with the tickets
    /// `awaited`.
    pub(crate) fn hooks_called(
        &mut self,
        caller: HookCaller,
        questions: &[ProviderQuestion],
        state: &State,
        awaited: &[Ticket],
    ) {
        self.hooks.awaits(caller.writer, awaited);
        for question in questions {
            let checked = self.hooks.called(caller, question, state);
            self.violations.record("hooks.called", checked);
        }
    }

    /// A call reaches its provider.
    pub(crate) fn hook_arrived(&mut self, question: &ProviderQuestion) {
        self.hooks.arrived(question);
    }

    /// A process learns what a provider has answered.
    pub(crate) fn hook_answered(&mut self, writer: Writer, ticket: Ticket, is_failure: bool) {
        self.hooks.answered(writer, ticket, is_failure);
    }

    /// A provider that was not told that a host has joined it.
    pub(crate) fn untold_join(&self) -> Option<String> {
        self.hooks.untold_join()
    }

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

    /// A unit of this name that a host is to run is stored there.
    pub(crate) fn unit_stored(&mut self, writer: Writer, host: &HostName, id: &ItemId, unit: &str) {
        self.violations.record("desired.unit_stored", self.desired.unit_stored(writer, host, id, unit));
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
        self.hooks.rolled_back();
        self.units.rolled_back(names);
    }

    /// Long after the faults, hosts do not have what they should have by this `rule`.
    pub(crate) fn never_delivered(&mut self, rule: &'static str, what: &str, state: &str) {
        self.violations.add(Violation::new(rule, format!("{what}\n{state}")));
    }

    /// Checks, long after the faults, that providers were told everything that `state` has of the hosts in `view` at `now`.
    pub(crate) fn check_told(&mut self, state: &State, view: &View, now: DateTime<Utc>) {
        let untold = Hooks::untold(state, view, now);
        self.violations
            .record("hooks.untold", untold.map_or(Ok(()), |text| Err(Violation::new("told", text))));
    }

    /// Whether providers were told everything that `state` has of the hosts in `view` at `now`.
    pub(crate) fn is_told(state: &State, view: &View, now: DateTime<Utc>) -> bool {
        Hooks::untold(state, view, now).is_none()
    }

    /// How many items hosts have applied.
    pub(crate) fn configurations(&self) -> u64 {
        self.desired.count()
    }
}
