//! How what hosts are to have is asked of providers, and written to its stream.

use std::time::Duration;

use bytes::Bytes;
use os_upgrade_kernel::StoredItem;
use os_upgrade_protocol::{HostName, ItemId, UnitItem};
use os_upgrade_provider_rules::{Failure, Outcome, Reply, Validator};
use os_upgrade_shell::delivery::{
    Deliver, Delivered, DesiredFenced, DesiredStored, ProviderQuestion, ProviderReply,
};
use os_upgrade_shell::instance::Event;
use os_upgrade_shell::inventory::WorkerMessage;

use super::World;
use crate::agenda::{Item, Process, Worker};
use crate::bug::Bug;
use crate::desired_stream::SealedItem;
use crate::fault::Fault;
use crate::peer::Peer;
use crate::request::{Answer, DesiredRequest, Request, RequestKind};
use crate::time::{MILLI, SECOND};

impl World {
    /// An instance writes to the stream of what hosts are to have, or asks a provider.
    pub(super) fn carry_out_delivery(&mut self, index: usize, deliver: Deliver) {
        // Without providers there is only a fence, which worlds did not have before there were any.
        if self.plan.delivery.is_none() {
            return;
        }
        let (what, fallback) = match deliver {
            Deliver::Fence { epoch, fence } => {
                let outcome = DesiredFenced::Unknown;
                (DesiredRequest::Fence { epoch, fence }, Delivered::Fenced { epoch, outcome })
            }
            Deliver::Manifest { epoch, fence, since, order, manifest, units } => {
                let (outcome, of) = (DesiredStored::Unknown, order.clone());
                let what = DesiredRequest::Manifest { epoch, fence, since, order, manifest, units };
                (what, Delivered::ManifestPublished { epoch, order: of, outcome })
            }
            Deliver::Ask { epoch, fence, question } => {
                let (ticket, reply) = (question.ticket, Failure::TimedOut.into());
                let what = DesiredRequest::Ask { epoch, fence, question };
                (what, Delivered::ProviderAnswered { epoch, ticket, reply })
            }
            Deliver::DrawToken { provider } => return self.draw_token(index, provider),
            Deliver::Call { epoch, fence, questions } => {
                return self.call_provider(index, (epoch, fence), questions);
            }
        };
        self.send_request(index, RequestKind::Desired(what), Event::Delivered(fallback));
    }

    /// A request about what hosts are to have reaches the bus, or a provider.
    pub(super) fn desired_arrives(&mut self, request: &Request, desired: &DesiredRequest) {
        match desired {
            DesiredRequest::Fence { epoch, fence } => {
                let outcome = match self.bus.desired.fence() {
                    Some((_, last)) if last.site != fence.site => {
                        DesiredFenced::CrossedSite { site: last.site.clone() }
                    }
                    Some((_, last)) if last.revision > fence.revision => DesiredFenced::Superseded,
                    Some(_) | None => {
                        let (epoch, expected) = (*epoch, self.bus.desired.fence_sequence());
                        let over = DesiredRequest::FenceOver { epoch, expected, fence: fence.clone() };
                        return self.send(Request { what: RequestKind::Desired(over), ..request.clone() });
                    }
                };
                self.delivered_is(request, Delivered::Fenced { epoch: *epoch, outcome });
            }
            DesiredRequest::FenceOver { epoch, expected, fence } => {
                let outcome = match self.bus.desired.put_fence(*expected, fence.clone()) {
                    Some(sequence) => {
                        self.checker.desired_fenced((request.from, request.process), fence);
                        DesiredFenced::Stored(sequence)
                    }
                    None => DesiredFenced::Unknown,
                };
                self.delivered_is(request, Delivered::Fenced { epoch: *epoch, outcome });
            }
            DesiredRequest::Manifest { .. } => self.manifest_arrives(request, desired),
            DesiredRequest::Sweep { epoch, since, order, manifest } => {
                let host = &order.host;
                let (manifest, replaced) = self.sabotage_sweep(manifest, &order.replaced);
                for id in self.bus.desired.sweep(host, &manifest, &replaced, *since) {
                    self.checker.item_deleted(host, &id);
                }
                let outcome = DesiredStored::Stored(self.bus.desired.fence_sequence());
                let (epoch, order) = (*epoch, order.clone());
                self.delivered_is(request, Delivered::ManifestPublished { epoch, order, outcome });
            }
            DesiredRequest::Ask { epoch, fence, question } => {
                self.provider_is_asked(request, (*epoch, *fence), question);
            }
            DesiredRequest::Call { .. } => self.provider_is_called(request, desired),
            DesiredRequest::Item { .. } => self.item_arrives(request, desired),
        }
    }

    fn delivered_is(&mut self, request: &Request, delivered: Delivered) {
        self.answer(request, Answer::Instance(Event::Delivered(delivered)));
    }

    /// The units that a manifest names are stored under its fence; then it is stored, and then what it does not name is deleted, each of which is
    /// another request.
    fn manifest_arrives(&mut self, request: &Request, desired: &DesiredRequest) {
        let DesiredRequest::Manifest { epoch, fence, since, order, manifest, units } = desired else {
            unreachable!("only manifests come here");
        };
        let (epoch, order, manifest) = (*epoch, order.clone(), manifest.clone());
        let expected = self.sabotage_desired_fence(*fence);
        let host = order.host.clone();
        if !units.is_empty() {
            if !self.units_arrive(request, &host, expected, units) {
                let outcome = DesiredStored::Fenced;
                return self.delivered_is(request, Delivered::ManifestPublished { epoch, order, outcome });
            }
            let (fence, since, units) = (*fence, *since, Vec::new());
            let what = DesiredRequest::Manifest { epoch, fence, since, order, manifest, units };
            return self.send(Request { what: RequestKind::Desired(what), ..request.clone() });
        }
        if self.bus.desired.put_manifest(expected, host.clone(), manifest.clone()).is_none() {
            let outcome = DesiredStored::Fenced;
            return self.delivered_is(request, Delivered::ManifestPublished { epoch, order, outcome });
        }
        self.checker.manifest_stored((request.from, request.process), &host, &manifest);
        self.hint_manifest(&host);
        self.sabotage_manifest(request);
        let sweep = DesiredRequest::Sweep { epoch, since: *since, order, manifest };
        self.send(Request { what: RequestKind::Desired(sweep), ..request.clone() });
    }

    /// Units of a host are stored under their fence. Returns whether they are.
    fn units_arrive(
        &mut self,
        request: &Request,
        host: &HostName,
        fence: u64,
        units: &[(ItemId, Bytes)],
    ) -> bool {
        if self.bug == Some(Bug::UnitsUnstored) {
            return true;
        }
        for (id, content) in units {
            let unit = UnitItem::parse(content).expect("a unit as the instance wrote it");
            let name = unit.name.clone();
            if self.bus.desired.put_unit(fence, host.clone(), id.clone(), unit).is_none() {
                return false;
            }
            self.checker.unit_stored((request.from, request.process), host, id, &name);
        }
        true
    }

    /// Tells a host that there may be something new, perhaps in vain.
    fn hint_manifest(&mut self, host: &HostName) {
        let Some(host) = self.hosts.iter().position(|it| it.name == *host) else { return };
        if self.is_linked(Peer::Host(host)) && !self.occurs(Fault::MessageLost) {
            let (latency, process) = (self.latency(), self.hosts[host].process_count);
            let what = Worker::ReadManifest { again: false };
            self.at(latency, Item::Worker { host, process, what });
        }
    }

    /// A provider is asked.
    fn provider_is_asked(
        &mut self,
        request: &Request,
        (epoch, fence): (u64, u64),
        question: &ProviderQuestion,
    ) {
        if self.occurs(Fault::ProviderSlow) {
            let late = self.rng.u64(..4 * SECOND);
            return self.at(late, Item::Arrive(Box::new(request.clone())));
        }
        let reply = self.provider_says(question);
        self.provider_replies(request, (epoch, fence), question, reply);
    }

    /// A provider's reply reaches the process that has asked. What it gives is sealed by that, and stored.
    pub(super) fn provider_replies(
        &mut self,
        request: &Request,
        (epoch, fence): (u64, u64),
        question: &ProviderQuestion,
        reply: ProviderReply,
    ) {
        if let Outcome::Content { content: Some(stored), .. } = &reply.outcome {
            let item = self.sealed(question, stored);
            let id = stored.id.clone();
            let question = Box::new(question.clone());
            let what = DesiredRequest::Item { epoch, fence, id, item, question, reply: Box::new(reply) };
            return self.item_departs(request, what);
        }
        let ticket = question.ticket;
        self.delivered_is(request, Delivered::ProviderAnswered { epoch, ticket, reply });
    }

    /// What a provider says, as a reply whose content is an item that is not stored yet.
    fn provider_says(&mut self, question: &ProviderQuestion) -> ProviderReply {
        if self.occurs(Fault::ProviderDown) {
            return Failure::Unreachable { why: "connection refused".to_owned() }.into();
        }
        if self.occurs(Fault::ProviderFails) {
            let failures = [
                Failure::Unavailable { status: 503 },
                Failure::Refused { status: 403 },
                Failure::Throttled,
                Failure::Html,
            ];
            let failure = self.rng.choice(failures).expect("not empty");
            let may_pause = matches!(failure, Failure::Unavailable { .. } | Failure::Throttled);
            let retry_after = (may_pause && self.rng.bool()).then(|| Duration::from_secs(self.rng.u64(..60)));
            return Reply { outcome: Outcome::Failed(failure), retry_after, poll_interval: None };
        }
        let (provider, host) = (question.provider.name.clone(), self.sabotage_question(&question.host));
        let outcome = match self.words.of(&provider, &host) {
            None if self.bug == Some(Bug::RevocationForgotten) => {
                Outcome::Failed(Failure::Refused { status: 404 })
            }
            None => Outcome::Removed,
            Some(content) => self.provider_gives(question, content),
        };
        Reply { outcome, retry_after: None, poll_interval: None }
    }

    pub(super) fn provider_gives(
        &mut self,
        question: &ProviderQuestion,
        content: u64,
    ) -> Outcome<Option<StoredItem>> {
        let Some(delivery) = &self.plan.delivery else { return Outcome::Removed };
        let text = format!("content {content}");
        let etag = delivery.has_etags.then(|| format!("\"{content}\""));
        let validator = Validator::new(text.as_bytes(), etag.as_deref().map(str::as_bytes), None, None);
        if question.validator.as_ref() == Some(&validator) {
            return Outcome::Unchanged { validator };
        }
        let name = &question.provider.name;
        let fingerprint =
            delivery.has_fingerprints.then(|| format!("{} {name} {} {text}", question.host, question.key));
        if fingerprint.is_some() && fingerprint == question.fingerprint {
            return Outcome::Content { content: None, validator };
        }
        let id = ItemId::new(&format!("item-{}-{content}", self.words.next_item())).expect("a valid id");
        let (key, sealed, bytes) = (question.key, question.sealed, text.len() as u64);
        let content = Some(StoredItem { id, bytes, key, sealed, fingerprint, hash: None });
        Outcome::Content { content, validator }
    }

    /// What the process seals of what a provider gave.
    fn sealed(&self, question: &ProviderQuestion, stored: &StoredItem) -> SealedItem {
        let number = stored.id.to_string();
        let content = number.rsplit('-').next().and_then(|text| text.parse().ok()).expect("its last part");
        SealedItem {
            host: question.host.clone(),
            provider: question.provider.name.clone(),
            sealed: stored.sealed,
            key: self.sabotage_key(question),
            content,
        }
    }

    /// The answer of the provider reaches the process, if that still runs, which then stores the item.
    fn item_departs(&mut self, request: &Request, what: DesiredRequest) {
        let Peer::Instance(instance) = request.from else { return };
        if self.instances[instance].boot != request.process || self.occurs(Fault::AnswerLost) {
            return;
        }
        let fallback = self.item_unanswered(&what);
        if let Some(waiting) = self.instances[instance].waiting.get_mut(&request.id) {
            *waiting = Event::Delivered(fallback);
        }
        if self.occurs(Fault::PausedBeforeWrite) {
            self.pause(instance);
        }
        let latency = self.latency();
        let departing = Request { what: RequestKind::Desired(what), ..request.clone() };
        let what = Process::Depart(Box::new(departing));
        self.at(latency, Item::Process { instance, boot: request.process, what });
    }

    /// What the process makes of an item that was not stored, or perhaps not.
    fn item_unanswered(&self, desired: &DesiredRequest) -> Delivered {
        let DesiredRequest::Item { epoch, question, reply, .. } = desired else {
            unreachable!("only items come here");
        };
        let reply = match self.bug {
            Some(Bug::LostItemIsStored) => (**reply).clone(),
            _ => Failure::NotStored.into(),
        };
        Delivered::ProviderAnswered { epoch: *epoch, ticket: question.ticket, reply }
    }

    fn item_arrives(&mut self, request: &Request, desired: &DesiredRequest) {
        let DesiredRequest::Item { epoch, fence, id, item, question, reply } = desired else {
            unreachable!("only items come here");
        };
        let expected = self.sabotage_desired_fence(*fence);
        let delivered = match self.bus.desired.put_item(expected, id.clone(), item.clone()) {
            Some(_) => {
                self.checker.item_stored((request.from, request.process), id, item);
                let (epoch, ticket) = (*epoch, question.ticket);
                Delivered::ProviderAnswered { epoch, ticket, reply: (**reply).clone() }
            }
            None => self.item_unanswered(desired),
        };
        self.delivered_is(request, delivered);
    }

    /// The items of a removed host are deleted. That it is to have nothing stays, since it may come back.
    pub(super) fn purge_items(&mut self, host: &HostName) {
        for id in self.bus.desired.purge(host) {
            self.checker.item_deleted(host, &id);
        }
        self.sabotage_purge(host);
    }

    /// An instance reads the last report of every host.
    pub(super) fn read_reports(&mut self, index: usize) {
        let reports: Vec<_> =
            self.bus.desired.reports().map(|(host, payload)| (host.clone(), payload.clone())).collect();
        for (host, payload) in reports {
            let message = WorkerMessage::Applied { host, payload: payload.into() };
            self.deliver_event(index, Event::Worker(message));
        }
    }

    /// The report of a host reaches the bus, and from there every instance that is connected.
    pub(super) fn report_arrives(&mut self, host: &HostName, payload: &[u8]) {
        self.bus.desired.report(host.clone(), payload.to_vec());
        // What is said of units follows from the last report, so these must not overtake each other.
        let is_agents = self.agents().any(|(index, _)| self.hosts[index].name == *host);
        for instance in 0..self.instances.len() {
            if self.is_linked(Peer::Instance(instance)) {
                let boot = self.instances[instance].boot;
                let message = WorkerMessage::Applied { host: host.clone(), payload: payload.to_vec().into() };
                let what = Process::Event(Event::Worker(message));
                let item = Item::Process { instance, boot, what };
                if is_agents {
                    self.at(20 * MILLI, item);
                } else {
                    self.after(20 * MILLI, item);
                }
            }
        }
    }
}
