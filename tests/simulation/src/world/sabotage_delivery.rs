//! Planted bugs of the delivery of what hosts are to have. See [`crate::bug`].

use os_upgrade_kernel::Fact;
use os_upgrade_kernel::fact::{DesiredFact, RestorationFact};
use os_upgrade_protocol::{HostKey, HostName, ItemId, Manifest};
use os_upgrade_shell::delivery::ProviderQuestion;
use os_upgrade_shell::instance::Event;

use super::World;
use super::sabotage::{each, with_facts};
use crate::agenda::Item;
use crate::bug::Bug;
use crate::desired_worker;
use crate::request::Request;
use crate::time::SECOND;

impl World {
    /// The fence that is compared instead of the request's.
    pub(super) fn sabotage_desired_fence(&self, fence: u64) -> u64 {
        match self.bug {
            Some(Bug::DesiredUnfenced | Bug::ManifestRepeated) => self.bus.desired.fence_sequence(),
            _ => fence,
        }
    }

    /// The manifest is stored once more some time later, under the fence of then.
    pub(super) fn sabotage_manifest(&mut self, request: &Request) {
        if self.bug == Some(Bug::ManifestRepeated) && self.rng.u32(..3) == 0 {
            let later = self.rng.u64(..20 * SECOND);
            self.at(later, Item::Arrive(Box::new(request.clone())));
        }
    }

    /// What counts as named, and as replaced, when items are deleted.
    pub(super) fn sabotage_sweep(&self, manifest: &Manifest, replaced: &[ItemId]) -> (Manifest, Vec<ItemId>) {
        let mut manifest = manifest.clone();
        if self.bug == Some(Bug::NamedSwept) {
            manifest.items.clear();
        }
        (manifest, replaced.to_vec())
    }

    /// What else is deleted with the items of a removed host.
    pub(super) fn sabotage_purge(&mut self, host: &HostName) {
        if self.bug == Some(Bug::EmptyManifestPurged) {
            self.bus.desired.delete_manifest(host);
        }
    }

    /// Whether the worker of `host` reports what it has.
    pub(super) fn sabotage_report(&self, host: &HostName) -> bool {
        self.bug != Some(Bug::AbsenceUnreported) || self.bus.desired.manifest(host).is_some()
    }

    /// The host about which a provider is asked.
    pub(super) fn sabotage_question(&mut self, host: &HostName) -> HostName {
        if self.bug == Some(Bug::GivenToAnother) && self.rng.u32(..4) == 0 {
            return self.hosts[self.rng.usize(..self.hosts.len())].name.clone();
        }
        host.clone()
    }

    /// The key to which what a provider gave is sealed.
    pub(super) fn sabotage_key(&self, question: &ProviderQuestion) -> HostKey {
        let host = self.hosts.iter().position(|host| host.name == question.host);
        let first = host.map(|host| desired_worker::key(host, 0));
        first.filter(|_| self.bug == Some(Bug::SealedToFirstKey)).unwrap_or(question.key)
    }

    /// Adds facts when the journal is read.
    pub(super) fn sabotage_desired_journal(&self, event: Event) -> Event {
        if self.bug != Some(Bug::ResumedByItself) {
            return event;
        }
        let Event::Journal { sequence, stored_at, message: Ok(message) } = event else { return event };
        Event::Journal { sequence, stored_at, message: Ok(with_facts(message, |facts| each(facts, resumed))) }
    }
}

/// After a restoration, delivery goes on at once.
fn resumed(fact: Fact) -> Vec<Fact> {
    let Fact::Restoration(RestorationFact::Restored { .. }) = fact else { return vec![fact] };
    let resumed = DesiredFact::DeliveryResumed { host: None, epoch: u64::MAX, actor: "nobody".to_owned() };
    vec![fact, resumed.into()]
}
