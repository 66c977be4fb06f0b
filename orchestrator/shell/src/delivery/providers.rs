//! Which providers are asked about which hosts: the schedule, kept as the configuration and the hosts are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use imbl::OrdMap;
use os_upgrade_kernel::{ConfigProvider, OnRemoval, Poll, SecretName, State, View};
use os_upgrade_protocol::{HostName, ItemId};
use os_upgrade_provider_rules::{Limits, Noted, Outcome, ProviderName, Schedule, Ticket};

use super::action::{ProviderQuestion, ProviderReply};
use crate::clock::Now;

/// The schedule and what it was made of.
#[derive(Debug, Default)]
pub(super) struct Providers {
    schedule: Schedule,
    configured: BTreeMap<ProviderName, Configured>,
    /// Counts definitions of providers.
    generation: u64,
    /// What each provider said of each host.
    polls: OrdMap<ProviderName, OrdMap<HostName, Poll>>,
    asked: BTreeMap<Ticket, Asked>,
    /// The item that each host is to have by what each provider said last to this leader; `None` if it said nothing.
    said: BTreeMap<(ProviderName, HostName), Option<ItemId>>,
    /// Whether the schedule may not be as the configuration and the hosts are.
    is_outdated: bool,
}

/// A question that is under way.
#[derive(Debug)]
struct Asked {
    provider: ProviderName,
    host: HostName,
    /// The item that the host was to have by then.
    item: Option<ItemId>,
}

#[derive(Debug)]
struct Configured {
    provider: Arc<ConfigProvider>,
    hosts: BTreeSet<HostName>,
}

impl Providers {
    pub(super) fn leadership_begins(&mut self, now: Now) {
        self.schedule.leadership_begins(now);
        self.said.clear();
        self.polls = OrdMap::new();
        self.is_outdated = true;
    }

    pub(super) fn leadership_ends(&mut self) {
        self.polls = OrdMap::new();
    }

    pub(super) fn outdated(&mut self) {
        self.is_outdated = true;
    }

    pub(super) fn polls(&self) -> &OrdMap<ProviderName, OrdMap<HostName, Poll>> {
        &self.polls
    }

    pub(super) fn poll(&mut self, now: Now, provider: &ProviderName, host: Option<&HostName>) {
        self.schedule.poll(now, provider, host);
    }

    /// A run waits for what required providers say of `hosts`.
    pub(super) fn hurry<'a>(&mut self, hosts: impl Iterator<Item = &'a HostName>, now: Now) {
        let Self { schedule, configured, .. } = self;
        for host in hosts {
            for Configured { provider, .. } in configured.values().filter(|it| it.provider.required) {
                schedule.hurry(now, &provider.name, host);
            }
        }
    }

    /// Providers that need the secret `name` may answer now.
    pub(super) fn secret_stored(&mut self, name: &SecretName, now: Now) {
        for (provider, configured) in &self.configured {
            if configured.provider.credentials.as_ref() == Some(name) {
                self.schedule.poll(now, provider, None);
            }
        }
    }

    /// Another key of `host` was approved. What is sealed to the earlier one is of no use.
    pub(super) fn key_changed(&mut self, host: &HostName) {
        self.said.retain(|(_, of), _| of != host);
    }

    /// Makes the schedule as `state` and `view` are. It is called after each commit, so that a host which is to have nothing for a moment is
    /// asked about anew.
    pub(super) fn follow(&mut self, state: &State, view: &View, now: Now) {
        if !std::mem::take(&mut self.is_outdated) {
            return;
        }
        let providers = state.config.as_ref().map_or(&[][..], |config| &config.config_providers);
        let gone: Vec<ProviderName> = self
            .configured
            .keys()
            .filter(|name| !providers.iter().any(|provider| provider.name == **name))
            .cloned()
            .collect();
        for name in gone {
            self.configured.remove(&name);
            self.polls.remove(&name);
            self.said.retain(|(of, _), _| *of != name);
            self.schedule.remove_provider(&name);
        }
        let hosts = if providers.is_empty() { Vec::new() } else { hosts(state, view) };
        for provider in providers {
            self.configure(provider, now);
            let selected = hosts.iter().filter(|host| provider.selects(host));
            self.select(&provider.name, selected.map(|host| (*host).clone()).collect(), now);
        }
    }

    fn configure(&mut self, provider: &ConfigProvider, now: Now) {
        let name = &provider.name;
        if self.configured.get(name).is_some_and(|known| *known.provider == *provider) {
            return;
        }
        let known = self.configured.remove(name);
        if known.as_ref().is_none_or(|known| !is_same_question(&known.provider, provider)) {
            self.generation += 1;
            self.polls.remove(name);
        }
        let limits = Limits {
            poll_interval: Duration::from_secs(provider.poll_interval.as_secs()),
            max_in_flight: provider.max_in_flight,
            generation: self.generation,
        };
        self.schedule.set_provider(now, name, limits);
        let hosts = known.map(|known| known.hosts).unwrap_or_default();
        self.configured.insert(name.clone(), Configured { provider: Arc::new(provider.clone()), hosts });
    }

    fn select(&mut self, name: &ProviderName, selected: BTreeSet<HostName>, now: Now) {
        let Some(configured) = self.configured.get_mut(name) else { return };
        for host in configured.hosts.difference(&selected) {
            self.schedule.remove_host(name, host);
            self.said.remove(&(name.clone(), host.clone()));
            if let Some(polls) = self.polls.get_mut(name) {
                polls.remove(host);
            }
        }
        for host in selected.difference(&configured.hosts) {
            self.schedule.add_host(now, name, host);
        }
        configured.hosts = selected;
    }

    /// What to ask now. A question is conditional only while the host is to have what the provider said last. That may be on its way to the state.
    /// Or it came to nothing: a host that was withdrawn and approved in one record has lost its items, and nobody saw it leave.
    pub(super) fn ask(&mut self, state: &State, now: Now) -> Vec<ProviderQuestion> {
        let mut questions = Vec::new();
        for question in self.schedule.tick(now) {
            let known = self.configured.get(&question.provider).zip(state.enrolment.pinned(&question.host));
            let Some((configured, key)) = known else { continue };
            let item = state.desired.item(&question.host, &question.provider);
            let said = self.said.get(&(question.provider.clone(), question.host.clone()));
            let is_in_force = said.is_some_and(|said| said.as_ref() == item.map(|item| &item.id));
            let is_comparable = is_in_force || said.is_none();
            let id = item.map(|item| item.id.clone());
            questions.push(ProviderQuestion {
                ticket: question.ticket,
                provider: Arc::clone(&configured.provider),
                key: *key,
                sealed: state.next_sealed(&question.host),
                validator: question.validator.filter(|_| is_in_force),
                fingerprint: item.filter(|_| is_comparable).and_then(|item| item.fingerprint.clone()),
                host: question.host.clone(),
            });
            let asked = Asked { provider: question.provider, host: question.host, item: id };
            self.asked.insert(question.ticket, asked);
        }
        questions
    }

    /// A question was answered. Returns what it was about, and what became of the reply.
    pub(super) fn answered(
        &mut self,
        now: Now,
        ticket: Ticket,
        reply: &ProviderReply,
    ) -> Option<(ProviderName, HostName, Noted)> {
        let noted = self.schedule.finish(now, ticket, reply);
        let Asked { provider, host, item } = self.asked.remove(&ticket)?;
        if noted != Noted::Stale {
            self.note(&provider, &host, item, reply);
        }
        if noted != Noted::Stale
            && let Some(status) = self.schedule.status(now, &provider, &host)
        {
            let poll = Poll {
                confirmed_at: status.confirmed_at,
                failures: status.failures,
                failure: status.failure.cloned(),
            };
            self.polls.entry(provider.clone()).or_default().insert(host.clone(), poll);
        }
        Some((provider, host, noted))
    }

    /// Notes which item the host is to have by `reply`, if that says so; when the provider was asked, it was `item`.
    fn note(
        &mut self,
        provider: &ProviderName,
        host: &HostName,
        item: Option<ItemId>,
        reply: &ProviderReply,
    ) {
        let said = match &reply.outcome {
            Outcome::Content { content: Some(stored), .. } => Some(stored.id.clone()),
            Outcome::Content { content: None, .. } => item,
            Outcome::Removed => {
                let keeps = |it: &Configured| it.provider.on_removal == OnRemoval::Keep;
                // Nothing follows from it.
                if self.configured.get(provider).is_some_and(keeps) {
                    return;
                }
                None
            }
            Outcome::Unchanged { .. } | Outcome::Failed(_) => return,
        };
        self.said.insert((provider.clone(), host.clone()), said);
    }
}

/// The hosts to which something can be sealed: they take part, and announce the key that was approved.
fn hosts<'a>(state: &'a State, view: &View) -> Vec<&'a HostName> {
    let keys = state.enrolment.keys.iter();
    let usable = keys.filter(|(host, pinned)| {
        state.enrolled(host).takes_part() && view.announced_key(host) == Some(&pinned.key)
    });
    usable.map(|(host, _)| host).collect()
}

/// Whether what was said to the one question counts for the other. What hosts do with it, and how often it is asked, may differ.
fn is_same_question(one: &ConfigProvider, other: &ConfigProvider) -> bool {
    let asked = |provider: &ConfigProvider| ConfigProvider {
        selector: None,
        poll_interval: other.poll_interval,
        max_in_flight: other.max_in_flight,
        required: other.required,
        max_age: other.max_age,
        ..provider.clone()
    };
    asked(one) == asked(other)
}
