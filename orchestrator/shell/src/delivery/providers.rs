//! Which providers are asked about which hosts: the schedule, kept as the configuration and the hosts are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use imbl::OrdMap;
use os_upgrade_kernel::{ConfigProvider, Input, Poll, SecretName, State, View};
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::hooks::HookEvent;
use os_upgrade_provider_rules::{BatchId, Failure, Limits, Outcome, ProviderName, Schedule, Ticket};

use super::action::{Deliver, ProviderQuestion, ProviderReply};
use super::hooks::{self, Hooks};
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
    hooks: Hooks,
    /// Whether the schedule may not be as the configuration and the hosts are.
    is_outdated: bool,
    /// Whether the leadership has just begun, so that of no host it is known what was said.
    is_beginning: bool,
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
        self.hooks.leadership_begins();
        self.polls = OrdMap::new();
        self.is_outdated = true;
        self.is_beginning = true;
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

    /// Providers that need the secret `name` may answer now. One of kind `hooks` is asked again only where it has failed.
    pub(super) fn secret_stored(&mut self, name: &SecretName, now: Now) {
        let using = self.configured.values().filter(|configured| configured.provider.uses_secret(name));
        for Configured { provider, .. } in using {
            if provider.is_hooks() {
                self.schedule.retry_failed(now, &provider.name);
            } else {
                self.schedule.poll(now, &provider.name, None);
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
        if std::mem::take(&mut self.is_outdated) {
            self.follow_configuration(state, view, now);
        }
        let Self { schedule, configured, hooks, .. } = self;
        let providers = configured.values().map(|configured| &*configured.provider);
        hooks.follow(schedule, providers.filter(|provider| provider.is_hooks()), state, now);
    }

    fn follow_configuration(&mut self, state: &State, view: &View, now: Now) {
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
            self.select(provider, (state, view), now);
        }
        self.is_beginning = false;
        let hooks: Vec<&ConfigProvider> = providers.iter().filter(|provider| provider.is_hooks()).collect();
        self.hooks.configured(&hooks, (state, view), now);
    }

    fn configure(&mut self, provider: &ConfigProvider, now: Now) {
        let name = &provider.name;
        if self.configured.get(name).is_some_and(|known| *known.provider == *provider) {
            return;
        }
        let known = self.configured.remove(name);
        if known.as_ref().is_none_or(|known| !known.provider.is_same_question(provider)) {
            self.generation += 1;
            self.polls.remove(name);
            // The schedule forgets its hosts, so those with something pending have to be brought forward again.
            self.hooks.forget_provider(name);
        }
        let is_hooks = provider.is_hooks();
        let limits = Limits {
            poll_interval: Duration::from_secs(provider.poll_interval.as_secs()),
            max_in_flight: provider.max_in_flight,
            batch_size: provider.batch_size,
            generation: self.generation,
            asks_at_once: !is_hooks,
            polls: !is_hooks || provider.hears(HookEvent::DevicePoll),
        };
        self.schedule.set_provider(now, name, limits);
        // Until it can call back.
        self.schedule.hold(name, is_hooks);
        let hosts = known.map(|known| known.hosts).unwrap_or_default();
        self.configured.insert(name.clone(), Configured { provider: Arc::new(provider.clone()), hosts });
    }

    fn select(&mut self, provider: &ConfigProvider, (state, view): (&State, &View), now: Now) {
        let name = &provider.name;
        let Self { schedule, polls, configured, is_beginning, .. } = self;
        let Some(configured) = configured.get_mut(name) else { return };
        let selected: BTreeSet<HostName> = state.hosts_of(view, provider).cloned().collect();
        for host in configured.hosts.difference(&selected) {
            drop_host(schedule, polls, name, host);
        }
        for host in selected.difference(&configured.hosts) {
            schedule.add_host(now, name, host);
            if provider.is_hooks() {
                hooks::add_device(schedule, name, host, state.hook_device(name, host), now);
            }
        }
        // What was said to an earlier leader is not known, and such a provider is not asked about every host at once.
        let run = state.run.as_ref().filter(|run| run.rollout.provider_wait.is_some());
        if let Some(run) = run.filter(|_| provider.is_hooks() && provider.required) {
            let is_new = |host: &&HostName| *is_beginning || !configured.hosts.contains(*host);
            for host in selected.iter().filter(is_new).filter(|host| run.unprepared().contains(*host)) {
                schedule.hurry(now, name, host);
            }
        }
        configured.hosts = selected;
    }

    /// What to ask now under the fence with this epoch and sequence.
    pub(super) fn ask(&mut self, state: &State, view: &View, fence: (u64, u64), now: Now) -> Vec<Deliver> {
        let mut begun = self.hooks.draw_tokens(now);
        let mut calls: BTreeMap<BatchId, Vec<ProviderQuestion>> = BTreeMap::new();
        let (epoch, sequence) = fence;
        for (batch, question) in self.questions(state, view, now) {
            if question.hook.is_some() {
                calls.entry(batch).or_default().push(question);
            } else {
                begun.push(Deliver::Ask { epoch, fence: sequence, question: Box::new(question) });
            }
        }
        let calls = calls.into_values();
        begun.extend(calls.map(|questions| Deliver::Call { epoch, fence: sequence, questions }));
        let Self { schedule, configured, hooks, .. } = self;
        let providers = configured.values().map(|configured| &configured.provider);
        let providers = providers.filter(|provider| provider.is_hooks());
        begun.extend(hooks.request_enrolments(schedule, providers, (state, view), fence, now));
        begun
    }

    /// The questions to ask now, each with its request. One is conditional only while the host is to have something: it may have lost that and
    /// be selected again, and nobody saw it leave.
    fn questions(&mut self, state: &State, view: &View, now: Now) -> Vec<(BatchId, ProviderQuestion)> {
        let mut questions = Vec::new();
        for asked in self.schedule.tick(now) {
            let known = self.configured.get(&asked.provider).zip(state.enrolment.pinned(&asked.host));
            let known = known.and_then(|(Configured { provider, .. }, key)| {
                if provider.is_hooks() {
                    Some((provider, key, Some(self.hooks.ask(&asked, provider, (state, view))?)))
                } else {
                    Some((provider, key, None))
                }
            });
            let Some((provider, key, hook)) = known else {
                self.schedule.finish(now, asked.ticket, &ProviderReply::from(Failure::NotStored));
                continue;
            };
            let item = state.desired.item(&asked.host, &asked.provider);
            let question = ProviderQuestion {
                ticket: asked.ticket,
                provider: Arc::clone(provider),
                key: *key,
                sealed: state.next_sealed(&asked.host),
                validator: asked.validator.filter(|_| item.is_some()),
                fingerprint: item.and_then(|item| item.fingerprint.clone()),
                host: asked.host,
                hook,
            };
            questions.push((asked.batch, question));
        }
        questions
    }

    /// A token with which `provider` may call back was drawn. Returns what is to be decided.
    pub(super) fn token_drawn(&mut self, now: Now, provider: &ProviderName, digest: String) -> Option<Input> {
        self.hooks.token_drawn(now, provider, digest)
    }

    /// A question was answered. Returns what is to be decided, in this order. If that is something, the reply counts once it is [`Self::decided`].
    pub(super) fn answered(
        &mut self,
        now: Now,
        ticket: Ticket,
        reply: ProviderReply,
        state: &State,
    ) -> Vec<Input> {
        if self.hooks.enrolment_answered(now, ticket, &reply) {
            self.schedule.finish(now, ticket, &reply);
            return Vec::new();
        }
        let event = self.hooks.take_asked(ticket);
        let mut inputs = Vec::new();
        if let Some((provider, host)) = self.schedule.asked(ticket).cloned() {
            match &reply.outcome {
                Outcome::Content { content: Some(item), .. } => {
                    let (provider, host, item) = (provider.clone(), host.clone(), item.clone());
                    inputs.push(Input::ItemStored { host, provider, item });
                }
                Outcome::Removed => {
                    inputs.push(Input::ItemRevoked { host: host.clone(), provider: provider.clone() });
                }
                // As before, it says; but what the host was to have may have been revoked meanwhile.
                Outcome::Content { content: None, .. } | Outcome::Unchanged { .. } => match event {
                    Some(event) if event.has_lost_item(&provider, &host, state) => {
                        self.schedule.poll(now, &provider, Some(&host));
                    }
                    Some(_) => {}
                    None if state.desired.item(&host, &provider).is_none() => self.forget(&host),
                    None => {}
                },
                Outcome::Failed(_) => {}
            }
            // What it has given is decided first: until then, it is still to be told of the event.
            inputs.extend(event.and_then(|event| event.answered(&provider, &host, &reply, state)));
        }
        if inputs.is_empty() {
            self.finish(now, ticket, &reply);
        } else {
            self.deciding.insert(ticket, reply);
        }
        inputs
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
