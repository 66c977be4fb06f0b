//! Which providers are asked about which hosts: the schedule, kept as the configuration and the hosts are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use imbl::OrdMap;
use os_upgrade_kernel::{ConfigProvider, Input, Poll, SecretName, State, View};
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::{Failure, Limits, Outcome, ProviderName, Schedule, Ticket};

use super::action::{ProviderQuestion, ProviderReply};
use crate::clock::Now;

type Polls = OrdMap<ProviderName, OrdMap<HostName, Poll>>;

/// The schedule and what it was made of.
#[derive(Debug, Default)]
pub(super) struct Providers {
    schedule: Schedule,
    configured: BTreeMap<ProviderName, Configured>,
    /// Counts definitions of providers.
    generation: u64,
    /// What each provider said of each host.
    polls: Polls,
    /// Replies from which something follows that the state does not have yet. They count once it has: until then, it does not show what the host
    /// is to have, so nothing can be compared with it, and no host is prepared by it.
    deciding: BTreeMap<Ticket, ProviderReply>,
    /// Whether the schedule may not be as the configuration and the hosts are.
    is_outdated: bool,
}

#[derive(Debug)]
struct Configured {
    provider: Arc<ConfigProvider>,
    hosts: BTreeSet<HostName>,
}

impl Providers {
    pub(super) fn leadership_begins(&mut self, now: Now) {
        self.schedule.leadership_begins(now);
        for (ticket, reply) in std::mem::take(&mut self.deciding) {
            self.schedule.finish(now, ticket, &reply);
        }
        self.polls = OrdMap::new();
        self.is_outdated = true;
    }

    pub(super) fn leadership_ends(&mut self) {
        self.polls = OrdMap::new();
    }

    pub(super) fn outdated(&mut self) {
        self.is_outdated = true;
    }

    pub(super) fn polls(&self) -> &Polls {
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
            if configured.provider.uses_secret(name) {
                self.schedule.poll(now, provider, None);
            }
        }
    }

    /// What was said of `host` no longer counts: what it had was revoked, or is sealed to another key.
    pub(super) fn forget(&mut self, host: &HostName) {
        for (name, configured) in &mut self.configured {
            if configured.hosts.remove(host) {
                drop_host(&mut self.schedule, &mut self.polls, name, host);
            }
        }
        self.is_outdated = true;
    }

    /// Makes the schedule as `state` and `view` are.
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
            self.schedule.remove_provider(&name);
        }
        for provider in providers {
            self.configure(provider, now);
            self.select(&provider.name, state.hosts_of(view, provider).cloned().collect(), now);
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
            drop_host(&mut self.schedule, &mut self.polls, name, host);
        }
        for host in selected.difference(&configured.hosts) {
            self.schedule.add_host(now, name, host);
        }
        configured.hosts = selected;
    }

    /// What to ask now. A question is conditional only while the host is to have something: it may have lost that and be selected again, and nobody
    /// saw it leave.
    pub(super) fn ask(&mut self, state: &State, now: Now) -> Vec<ProviderQuestion> {
        let mut questions = Vec::new();
        for question in self.schedule.tick(now) {
            let known = self.configured.get(&question.provider).zip(state.enrolment.pinned(&question.host));
            let Some((configured, key)) = known else {
                self.schedule.finish(now, question.ticket, &ProviderReply::from(Failure::NotStored));
                continue;
            };
            let item = state.desired.item(&question.host, &question.provider);
            questions.push(ProviderQuestion {
                ticket: question.ticket,
                provider: Arc::clone(&configured.provider),
                key: *key,
                sealed: state.next_sealed(&question.host),
                validator: question.validator.filter(|_| item.is_some()),
                fingerprint: item.and_then(|item| item.fingerprint.clone()),
                host: question.host,
            });
        }
        questions
    }

    /// A question was answered. Returns what is to be decided. If that is something, the reply counts once it is [`Self::decided`].
    pub(super) fn answered(
        &mut self,
        now: Now,
        ticket: Ticket,
        reply: ProviderReply,
        state: &State,
    ) -> Option<Input> {
        let input = self.schedule.asked(ticket).cloned().and_then(|(provider, host)| match &reply.outcome {
            Outcome::Content { content: Some(item), .. } => {
                Some(Input::ItemStored { host, provider, item: item.clone() })
            }
            Outcome::Removed => Some(Input::ItemRevoked { host, provider }),
            Outcome::Content { content: None, .. } | Outcome::Unchanged { .. } => {
                // As before, it says; but what the host was to have was revoked meanwhile.
                if state.desired.item(&host, &provider).is_none() {
                    self.forget(&host);
                }
                None
            }
            Outcome::Failed(_) => None,
        });
        if input.is_some() {
            self.deciding.insert(ticket, reply);
        } else {
            self.finish(now, ticket, &reply);
        }
        input
    }

    /// The state has what follows from the reply to the question with `ticket`.
    pub(super) fn decided(&mut self, now: Now, ticket: Ticket) {
        if let Some(reply) = self.deciding.remove(&ticket) {
            self.finish(now, ticket, &reply);
        }
    }

    fn finish(&mut self, now: Now, ticket: Ticket, reply: &ProviderReply) {
        let about = self.schedule.asked(ticket).cloned();
        self.schedule.finish(now, ticket, reply);
        let Some((provider, host)) = about else { return };
        let Some(status) = self.schedule.status(now, &provider, &host) else { return };
        let poll = Poll {
            confirmed_at: status.confirmed_at,
            failures: status.failures,
            failure: status.failure.cloned(),
        };
        self.polls.entry(provider).or_default().insert(host, poll);
    }
}

/// `provider` is no longer asked about `host`, and what it said no longer counts.
fn drop_host(schedule: &mut Schedule, polls: &mut Polls, provider: &ProviderName, host: &HostName) {
    schedule.remove_host(provider, host);
    if let Some(polls) = polls.get_mut(provider) {
        polls.remove(host);
    }
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
