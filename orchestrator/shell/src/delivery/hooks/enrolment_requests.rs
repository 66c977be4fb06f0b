//! Tells providers of hosts that wait for approval and would be theirs. That is an early notice, on a best-effort basis: nothing is kept of
//! what has been told, and nothing follows from the answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use os_upgrade_kernel::{ConfigProvider, Enrolled, State, View};
use os_upgrade_protocol::{HostKey, HostName};
use os_upgrade_provider_rules::hooks::HookEvent;
use os_upgrade_provider_rules::{Outcome, ProviderName, Schedule, Ticket, pause};

use super::question::hook_question;
use crate::clock::Now;
use crate::delivery::action::{ProviderQuestion, ProviderReply};

/// The most hosts of which a provider is told while they wait: whoever can announce hosts must not fill its server, nor this memory.
const HOSTS_MAX: usize = 100;
/// How often it is tried again to tell of a host.
const RETRIES_MAX: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct EnrolmentRequests {
    hosts: BTreeMap<ProviderName, BTreeMap<HostName, Request>>,
    /// The questions under way.
    under_way: BTreeMap<Ticket, (ProviderName, HostName)>,
}

/// A host that waits for approval.
#[derive(Debug)]
struct Request {
    /// When the provider is told of it, in monotonic time; absent while it is told, and once it has been, or was given up.
    due: Option<Duration>,
    failures: u32,
}

impl EnrolmentRequests {
    /// Nothing has been told in this leadership.
    pub(super) fn forget(&mut self) {
        self.hosts.clear();
    }

    /// `providers` are to be told of the hosts that wait in `state` and `view`.
    pub(super) fn follow(&mut self, providers: &[&ConfigProvider], (state, view): (&State, &View), now: Now) {
        let told = || providers.iter().filter(|provider| provider.hears(HookEvent::EnrollmentRequest));
        let is_told = |name: &ProviderName| told().any(|provider| provider.name == *name);
        self.hosts.retain(|name, _| is_told(name));
        for provider in told() {
            let hosts = self.hosts.entry(provider.name.clone()).or_default();
            let waits = |host: &HostName| {
                let is_pending = match state.enrolled(host) {
                    Enrolled::Pending => true,
                    Enrolled::Approved(_) | Enrolled::Auto | Enrolled::Withdrawn(_) => false,
                };
                is_pending && provider.selects(host) && view.hosts.contains_key(host)
            };
            hosts.retain(|host, _| waits(host));
            let room = HOSTS_MAX.saturating_sub(hosts.len());
            let others = view.hosts.keys().filter(|host| !hosts.contains_key(*host) && waits(host));
            let others: Vec<HostName> = others.take(room).cloned().collect();
            let request = || Request { due: Some(now.monotonic), failures: 0 };
            hosts.extend(others.into_iter().map(|host| (host, request())));
        }
    }

    /// The questions of the next request to `provider`, if `schedule` lets one begin; empty if not, or if there is nothing to tell. It may call
    /// back with the token that has the digest `token`.
    pub(super) fn ask(
        &mut self,
        schedule: &mut Schedule,
        provider: &Arc<ConfigProvider>,
        token: &str,
        (state, view): (&State, &View),
        now: Now,
    ) -> Vec<ProviderQuestion> {
        let name = &provider.name;
        // There is none of a provider that does not hear the event.
        let Some(hosts) = self.hosts.get_mut(name) else { return Vec::new() };
        let due = hosts.iter_mut().filter(|(_, request)| request.due.is_some_and(|due| due <= now.monotonic));
        let due: Vec<(&HostName, &mut Request)> = due.collect();
        let tickets = schedule.begin(now, name, due.len());
        let mut questions = Vec::new();
        for (ticket, (host, request)) in tickets.into_iter().zip(due) {
            request.due = None;
            self.under_way.insert(ticket, (name.clone(), host.clone()));
            let announced = view.hosts.get(host).map_or(0, |seen| seen.announced);
            let about = (HookEvent::EnrollmentRequest, announced);
            questions.push(ProviderQuestion {
                ticket,
                provider: Arc::clone(provider),
                host: host.clone(),
                key: view.announced_key(host).copied().unwrap_or(HostKey::new([0; 32])),
                sealed: state.next_sealed(host),
                validator: None,
                fingerprint: None,
                hook: Some(hook_question((state, view), provider, host, about, token)),
            });
        }
        questions
    }

    /// Whether `provider` is being told that `host` waits.
    pub(super) fn is_under_way(&self, provider: &ProviderName, host: &HostName) -> bool {
        self.under_way.values().any(|(of, about)| of == provider && about == host)
    }

    /// Notes the reply to the question with `ticket`. Returns whether that is one of these questions.
    pub(super) fn answered(&mut self, now: Now, ticket: Ticket, reply: &ProviderReply) -> bool {
        let Some((provider, host)) = self.under_way.remove(&ticket) else { return false };
        let request = self.hosts.get_mut(&provider).and_then(|hosts| hosts.get_mut(&host));
        match (&reply.outcome, request) {
            (Outcome::Failed(failure), Some(request)) if request.failures < RETRIES_MAX => {
                request.failures += 1;
                let wait = pause(failure, request.failures, Duration::MAX, 0);
                request.due = Some(now.monotonic + wait);
            }
            (
                Outcome::Failed(_) | Outcome::Unchanged { .. } | Outcome::Content { .. } | Outcome::Removed,
                _,
            ) => {}
        }
        true
    }
}
