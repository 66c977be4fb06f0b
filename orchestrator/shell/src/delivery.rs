//! Delivery: what hosts are to have, from providers into the stream that hosts read.
//!
//! Providers are asked once this leader's fence in the stream of what hosts are to have is stored, because what they give is stored under
//! it. A host's manifest is published once the state says that it is not the stored one. When the outcome of a publish is unknown, a new
//! fence is stored: under the old one nothing can appear any more.

mod action;
mod fence;
mod hooks;
mod providers;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use os_upgrade_kernel::fact::{DesiredFact, EnrolmentFact, RunFact, SecretFact};
use os_upgrade_kernel::{Fact, Input, ManifestOrder, Poll, Record, State, View, manifests};
use os_upgrade_protocol::{DesiredFence, HostName, Revision};
use os_upgrade_provider_rules::{Failure, Outcome, ProviderName, Ticket};

pub use self::action::{
    AppliedHash, Deliver, Delivered, DesiredFenced, DesiredStored, HookQuestion, ProviderQuestion,
    ProviderReply,
};
use self::fence::Fence;
use self::providers::Providers;
use crate::clock::Now;
use crate::inventory::Inventory;

/// The most manifests on their way at once.
const MANIFESTS_MAX: usize = 16;
/// No further manifest begins while the units on their way with others take more memory, in bytes. Those of one host may.
const UNITS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The least time between two looks at which hosts announce which keys.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Everything about delivery that a leader has under way.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// The instance's name, for people.
    leader: String,
    fence: Fence,
    /// Hosts whose manifest is on its way under the present fence, each with the bytes of the units that go with it.
    publishing: BTreeMap<HostName, usize>,
    /// The manifests that this leader has stored, until the state knows it.
    published: BTreeMap<HostName, Revision>,
    /// Whether there may be manifests to publish.
    rescan: bool,
    providers: Providers,
    /// Whether what hosts announce has changed, and when that was last looked at.
    view_changed: bool,
    looked_at: Duration,
}

impl Delivery {
    /// Nothing is under way in the instance called `leader`.
    pub(crate) fn new(leader: &str) -> Self {
        Self {
            leader: leader.to_owned(),
            fence: Fence::default(),
            publishing: BTreeMap::new(),
            published: BTreeMap::new(),
            rescan: true,
            providers: Providers::default(),
            view_changed: true,
            looked_at: Duration::ZERO,
        }
    }

    /// A leadership begins. Outcomes of an earlier one no longer count.
    pub(crate) fn leadership_begins(&mut self, now: Now) {
        self.published.clear();
        self.fence.leadership_begins(now);
        self.outdate_publishes();
        self.providers.leadership_begins(now);
    }

    /// The leadership has ended. What providers said is for the next leader to find out itself.
    pub(crate) fn leadership_ends(&mut self, inventory: &mut Inventory) {
        self.providers.leadership_ends();
        inventory.polled(None);
    }

    /// The name of the site whose stream this is, if it is another's.
    pub(crate) fn crossed_site(&self) -> Option<&str> {
        self.fence.crossed_site()
    }

    /// What providers said of hosts.
    pub(crate) fn polls(&self) -> &imbl::OrdMap<ProviderName, imbl::OrdMap<HostName, Poll>> {
        self.providers.polls()
    }

    /// Hosts may announce other keys, or tell of other manifests.
    pub(crate) fn view_changed(&mut self) {
        self.view_changed = true;
    }

    /// A record has been committed, and `state` has it.
    pub(crate) fn committed(&mut self, record: &Record, now: Now) {
        for fact in &record.facts {
            match fact {
                Fact::Enrolment(
                    EnrolmentFact::KeyPinned { host, .. }
                    | EnrolmentFact::HostWithdrawn { host, .. }
                    | EnrolmentFact::HostRemoved { host, .. },
                ) => {
                    self.providers.forget(host);
                    self.rescan = true;
                }
                Fact::Config(_) | Fact::Enrolment(_) => {
                    self.providers.outdated();
                    self.rescan = true;
                }
                Fact::Desired(DesiredFact::PollRequested { provider, host, .. }) => {
                    self.providers.poll(now, provider, host.as_ref());
                }
                Fact::Desired(DesiredFact::ManifestStored { host, .. }) => {
                    self.published.remove(host);
                    self.rescan = true;
                }
                Fact::Desired(_) | Fact::Restoration(_) | Fact::Unit(_) => self.rescan = true,
                Fact::Secret(SecretFact::Stored { name, .. }) => self.providers.secret_stored(name, now),
                Fact::Run(RunFact::Started { hosts, rollout, .. }) if rollout.provider_wait.is_some() => {
                    let hosts = hosts.iter().filter(|entry| entry.skipped.is_none());
                    self.providers.hurry(hosts.map(|entry| &entry.host), now);
                }
                Fact::Secret(SecretFact::KeySet { .. } | SecretFact::Removed { .. })
                | Fact::Run(_)
                | Fact::Slot(_)
                | Fact::Lock(_)
                | Fact::Queue(_)
                | Fact::Node(_)
                | Fact::Pause(_)
                | Fact::Control(_) => {}
            }
        }
    }

    /// Begins everything that can begin now. `control_fence` is the sequence of this leader's open fence in the control stream.
    pub(crate) fn begin_due(
        &mut self,
        state: &State,
        view: &View,
        control_fence: u64,
        now: Now,
    ) -> Vec<Deliver> {
        if self.view_changed && now.monotonic.saturating_sub(self.looked_at) >= LOOK_INTERVAL {
            self.view_changed = false;
            self.looked_at = now.monotonic;
            self.providers.outdated();
            self.rescan = true;
        }
        self.providers.follow(state, view, now);
        if let Some(epoch) = self.fence.begin(now) {
            let revision = Revision { epoch: state.epoch(), sequence: control_fence };
            let (site, leader) = (state.settings.site.clone(), self.leader.clone());
            return vec![Deliver::Fence { epoch, fence: DesiredFence { site, revision, leader } }];
        }
        let Some((epoch, fence)) = self.fence.stored() else { return Vec::new() };
        let mut begun = self.begin_manifests(state, view, (epoch, fence));
        begun.extend(self.providers.ask(state, view, (epoch, fence), now));
        begun
    }

    fn begin_manifests(&mut self, state: &State, view: &View, (epoch, fence): (u64, u64)) -> Vec<Deliver> {
        let mut begun = Vec::new();
        if !self.rescan || self.is_busy() {
            return begun;
        }
        for order in manifests(state) {
            if self.is_busy() {
                return begun;
            }
            // What it has may be right, and this site's state be the old one.
            let is_published = self.published.get(&order.host) == Some(&order.revision);
            let is_under_way = self.publishing.contains_key(&order.host);
            if is_published || is_under_way || state.is_ahead(view, &order.host) {
                continue;
            }
            let Some(manifest) = order.manifest(state) else { continue };
            let units = order.new_units(state).into_iter();
            let units: Vec<_> = units.map(|(id, unit)| (id, Bytes::from(unit.to_payload()))).collect();
            let bytes = units.iter().map(|(_, content)| content.len()).sum();
            self.publishing.insert(order.host.clone(), bytes);
            let since = self.fence.first();
            begun.push(Deliver::Manifest { epoch, fence, since, order, manifest, units });
        }
        self.rescan = false;
        begun
    }

    /// Whether no further manifest may begin.
    fn is_busy(&self) -> bool {
        let bytes: usize = self.publishing.values().sum();
        self.publishing.len() >= MANIFESTS_MAX || bytes > UNITS_BYTES_MAX
    }

    /// A fence was answered. Returns the other site's name when it is found that the stream is another's.
    pub(crate) fn fenced(&mut self, now: Now, epoch: u64, outcome: DesiredFenced) -> Option<String> {
        self.rescan = true;
        self.fence.answered(now, epoch, outcome)
    }

    /// The publish of a manifest was answered. Returns what is to be decided.
    pub(crate) fn manifest_published(
        &mut self,
        now: Now,
        epoch: u64,
        order: ManifestOrder,
        outcome: DesiredStored,
    ) -> Option<Input> {
        if !self.fence.is_current(epoch) {
            return None;
        }
        self.publishing.remove(&order.host);
        self.rescan = true;
        match outcome {
            DesiredStored::Stored(_) => {
                self.published.insert(order.host.clone(), order.revision);
                Some(Input::ManifestStored { host: order.host, revision: order.revision })
            }
            DesiredStored::Fenced | DesiredStored::Unknown => {
                self.refence(now, fence::RETRY);
                None
            }
        }
    }

    /// A provider was asked, with this outcome. Returns what is to be decided; [`Self::replies_decided`] is called after that.
    pub(crate) fn answered(
        &mut self,
        now: Now,
        epoch: u64,
        (ticket, reply): (Ticket, ProviderReply),
        state: &State,
    ) -> Vec<Input> {
        if reply.outcome == Outcome::Failed(Failure::NotStored) && self.fence.is_current(epoch) {
            self.refence(now, fence::RETRY);
        }
        self.providers.answered(now, ticket, reply, state)
    }

    /// A token with which `provider` may call back was drawn. Returns what is to be decided.
    pub(crate) fn token_drawn(&mut self, now: Now, provider: &ProviderName, digest: String) -> Option<Input> {
        self.providers.token_drawn(now, provider, digest)
    }

    /// The committed state has what follows from the replies to the questions with `tickets`.
    pub(crate) fn replies_decided(&mut self, now: Now, tickets: &[Ticket]) {
        for ticket in tickets {
            self.providers.decided(now, *ticket);
        }
    }

    /// Requires a new fence. What is on its way under the present one no longer counts.
    fn refence(&mut self, now: Now, pause: Duration) {
        self.fence.renew(now, pause);
        self.outdate_publishes();
    }

    fn outdate_publishes(&mut self) {
        self.publishing.clear();
        self.rescan = true;
    }
}

#[cfg(test)]
mod tests;
