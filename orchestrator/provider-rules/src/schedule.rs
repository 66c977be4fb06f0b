//! Which provider is asked about which host now: what the leader remembers of each, in its memory only.
//!
//! A host is due when nothing is known of it ([`Limits::asks_at_once`]), when its poll is ([`crate::next_due`]), when somebody polls, and
//! when the pause after a failure ends. Hosts for which a run waits go first. So many requests to a provider are under way at once, each about up
//! to a batch of hosts, and no more begin than its token bucket allows, so that 10 000 hosts that are due together are spread over a quarter of
//! the poll interval.
//!
//! A host is never asked about twice at once: not even when its provider was changed or a new leadership began, after which the
//! outcome of what is still under way does not count.

mod pair;
mod provider;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;

pub use self::pair::{BatchId, PairStatus, Ticket};
pub use self::provider::Limits;
use self::provider::{Provider, Started};
use crate::answer::Reply;
use crate::name::ProviderName;
use crate::now::Now;
use crate::validator::Validator;

/// A question for the caller to ask. It calls [`Schedule::finish`] with the reply, whatever that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub ticket: Ticket,
    /// The same for questions that go into one request, which are all to one provider.
    pub batch: BatchId,
    pub provider: ProviderName,
    pub host: HostName,
    /// That of the content received last.
    pub validator: Option<Validator>,
    /// When the poll was due, which is the same for whoever repeats it; absent if it is no poll, but somebody or a run wants it.
    pub poll: Option<DateTime<Utc>>,
}

/// A question of a request that is about none of the provider's hosts.
#[derive(Debug, Clone)]
struct Begun {
    provider: ProviderName,
    batch: BatchId,
    /// The definition of the provider for which it was begun.
    generation: u64,
}

/// All providers with their hosts.
#[derive(Debug, Default)]
pub struct Schedule {
    providers: BTreeMap<ProviderName, Provider>,
    /// The questions under way.
    asked: BTreeMap<Ticket, (ProviderName, HostName)>,
    /// The questions under way in requests that [`Schedule::begin`] has begun.
    begun: BTreeMap<Ticket, Begun>,
    last_ticket: Ticket,
}

impl Schedule {
    /// A leadership begins: nothing is known, and what is under way no longer counts.
    pub fn leadership_begins(&mut self, now: Now) {
        self.providers.values_mut().for_each(|provider| provider.forget(now));
    }

    /// A provider was configured, or its limits or its definition have changed.
    pub fn set_provider(&mut self, now: Now, name: &ProviderName, limits: Limits) {
        match self.providers.get_mut(name) {
            Some(provider) => provider.set_limits(limits, now),
            None => {
                self.providers.insert(name.clone(), Provider::new(name.clone(), limits, now));
            }
        }
    }

    /// A provider is no longer configured.
    pub fn remove_provider(&mut self, name: &ProviderName) {
        if let Some(provider) = self.providers.get_mut(name) {
            provider.retire();
            self.drop_if_over(name);
        }
    }

    /// A provider is to be asked about a host from now on. Nothing happens if it is already, or if there is no such provider.
    pub fn add_host(&mut self, now: Now, provider: &ProviderName, host: &HostName) {
        if let Some(provider) = self.providers.get_mut(provider) {
            provider.add(host.clone(), now);
        }
    }

    /// A provider is no longer to be asked about a host.
    pub fn remove_host(&mut self, provider: &ProviderName, host: &HostName) {
        if let Some(provider) = self.providers.get_mut(provider) {
            provider.remove(host);
        }
    }

    /// `host` is polled each `interval`; without one, as often as the provider's other hosts.
    pub fn set_interval(
        &mut self,
        now: Now,
        provider: &ProviderName,
        host: &HostName,
        interval: Option<Duration>,
    ) {
        if let Some(provider) = self.providers.get_mut(provider) {
            provider.set_interval(host, interval, now);
        }
    }

    /// A provider is not to be asked for now, or may be asked again. What is known of it stays.
    pub fn hold(&mut self, provider: &ProviderName, is_held: bool) {
        if let Some(provider) = self.providers.get_mut(provider) {
            provider.hold(is_held);
        }
    }

    /// There is something that a provider is to be asked, or told, of `host` now. It is as with [`Self::poll`], but nobody in particular
    /// wants it.
    pub fn bring_forward(&mut self, now: Now, provider: &ProviderName, host: &HostName) {
        if let Some(provider) = self.providers.get_mut(provider) {
            provider.bring_forward(host, now);
        }
    }

    /// What a provider lacked to answer is there: the pauses after its failures end.
    pub fn retry_failed(&mut self, now: Now, provider: &ProviderName) {
        if let Some(provider) = self.providers.get_mut(provider) {
            provider.retry_failed(now);
        }
    }

    /// Somebody wants a provider to be asked now, about `host` or about all. After a failure its pause ends; a server's `Retry-After`
    /// still holds. What is under way is asked again afterwards, since its answer may be older than the reason for this.
    pub fn poll(&mut self, now: Now, provider: &ProviderName, host: Option<&HostName>) {
        let Some(provider) = self.providers.get_mut(provider) else { return };
        match host {
            Some(host) => provider.poll(host, now),
            None => provider.poll_all(now),
        }
    }

    /// A run waits for the provider to confirm what `host` has: it goes first until the provider has answered.
    pub fn hurry(&mut self, now: Now, provider: &ProviderName, host: &HostName) {
        if let Some(provider) = self.providers.get_mut(provider) {
            provider.hurry(host, now);
        }
    }

    /// What to ask now.
    pub fn tick(&mut self, now: Now) -> Vec<Question> {
        let mut questions = Vec::new();
        for (name, provider) in &mut self.providers {
            loop {
                let batch = self.last_ticket + 1;
                let started = provider.start(now, batch);
                if started.is_empty() {
                    break;
                }
                for Started { host, validator, poll } in started {
                    self.last_ticket += 1;
                    self.asked.insert(self.last_ticket, (name.clone(), host.clone()));
                    let (ticket, provider) = (self.last_ticket, name.clone());
                    questions.push(Question { ticket, batch, provider, host, validator, poll });
                }
            }
        }
        questions
    }

    /// Begins a request to a provider that is not about its hosts, under the same limits as all others, with up to a batch of `wanted` questions.
    /// Returns their tickets; there are none if no request may begin now.
    pub fn begin(&mut self, now: Now, name: &ProviderName, wanted: usize) -> Vec<Ticket> {
        let batch = self.last_ticket + 1;
        let Some(provider) = self.providers.get_mut(name) else { return Vec::new() };
        let questions = wanted.min(provider.batch_size());
        if questions == 0 || !provider.take_request(now) {
            return Vec::new();
        }
        provider.open_request(batch, questions);
        let begun = Begun { provider: name.clone(), batch, generation: provider.generation() };
        let tickets: Vec<Ticket> = (batch..).take(questions).collect();
        self.begun.extend(tickets.iter().map(|ticket| (*ticket, begun.clone())));
        self.last_ticket = tickets.last().copied().unwrap_or(self.last_ticket);
        tickets
    }

    /// What the question with `ticket` is about, while it is under way and its outcome counts.
    pub fn asked(&self, ticket: Ticket) -> Option<&(ProviderName, HostName)> {
        let about @ (provider, host) = self.asked.get(&ticket)?;
        let under_way = self.providers.get(provider)?.pair(host)?.under_way?;
        (under_way.ticket == ticket && under_way.counts).then_some(about)
    }

    /// When [`Self::tick`] has something to ask at the earliest, in monotonic time, unless something happens before.
    pub fn next_at(&self) -> Option<Duration> {
        self.providers.values().filter_map(Provider::next_at).min()
    }

    /// The question with `ticket` was answered or has failed.
    pub fn finish<C>(&mut self, now: Now, ticket: Ticket, reply: &Reply<C>) {
        let name = if let Some((name, host)) = self.asked.remove(&ticket) {
            if let Some(provider) = self.providers.get_mut(&name) {
                provider.finish(&host, ticket, now, reply);
            }
            name
        } else if let Some(Begun { provider: name, batch, generation }) = self.begun.remove(&ticket) {
            if let Some(provider) = self.providers.get_mut(&name) {
                provider.finish_begun(batch, generation, now, reply);
            }
            name
        } else {
            return;
        };
        self.drop_if_over(&name);
    }

    /// What is known of a host with a provider; `None` if it is not asked about it.
    pub fn status(&self, now: Now, provider: &ProviderName, host: &HostName) -> Option<PairStatus<'_>> {
        Some(self.providers.get(provider)?.pair(host)?.status(now))
    }

    fn drop_if_over(&mut self, name: &ProviderName) {
        if self.providers.get(name).is_some_and(Provider::is_over) {
            self.providers.remove(name);
        }
    }
}

#[cfg(test)]
mod tests;
