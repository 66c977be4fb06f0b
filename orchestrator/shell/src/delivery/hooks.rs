//! Providers of kind `hooks`: which event of a host one is told of, when, and in which requests.
//!
//! What they are still to be told is in the state, so that every leader tells it, under the same UUID, until it is answered. Polls are not:
//! they follow from the time.

mod enrolment_requests;
mod question;
mod tokens;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use os_upgrade_kernel::{ConfigProvider, HookDevice, HookProvider, Input, State, View};
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::hooks::HookEvent;
use os_upgrade_provider_rules::{Outcome, ProviderName, Question, Schedule, Ticket};

use self::enrolment_requests::EnrolmentRequests;
use self::question::hook_question;
use self::tokens::Tokens;
use super::action::{Deliver, HookQuestion, ProviderReply};
use crate::clock::Now;

type Devices = OrdMap<HostName, HookDevice>;

/// What a leader remembers of providers of kind `hooks`.
#[derive(Debug, Default)]
pub(super) struct Hooks {
    tokens: Tokens,
    /// What they were to be told when the schedule was last made to follow that.
    known: OrdMap<ProviderName, HookProvider>,
    /// What the questions under way are about.
    asked: BTreeMap<Ticket, AskedEvent>,
    enrolment_requests: EnrolmentRequests,
}

/// The event that a question is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedEvent {
    event: HookEvent,
    cause: u64,
    /// The digest of the metadata that the provider is told.
    metadata: u64,
    /// Whether the host was to have something of the provider.
    had_item: bool,
}

impl Hooks {
    /// A leadership begins: it draws tokens of its own, and sees to everything that is to be told.
    pub(super) fn leadership_begins(&mut self) {
        self.tokens.forget();
        self.known = OrdMap::new();
        self.enrolment_requests.forget();
    }

    /// `provider` was defined anew: the next [`Self::follow`] brings every device with something pending forward.
    pub(super) fn forget_provider(&mut self, provider: &ProviderName) {
        self.known.remove(provider);
    }

    /// `providers` are those of kind `hooks` from now on.
    pub(super) fn configured(
        &mut self,
        providers: &[&ConfigProvider],
        (state, view): (&State, &View),
        now: Now,
    ) {
        self.tokens.retain(|name| providers.iter().any(|provider| provider.name == *name));
        self.enrolment_requests.follow(providers, (state, view), now);
    }

    /// Makes `schedule` as what `state` has of `providers`. One that cannot call back yet is not asked.
    pub(super) fn follow<'a>(
        &mut self,
        schedule: &mut Schedule,
        providers: impl Iterator<Item = &'a ConfigProvider>,
        state: &State,
        now: Now,
    ) {
        let before = std::mem::replace(&mut self.known, state.desired.hooks.clone());
        for change in before.diff(&self.known) {
            match change {
                DiffItem::Add(name, known) => {
                    follow_devices(schedule, name, &OrdMap::new(), &known.devices, now);
                }
                DiffItem::Update { old: (_, old), new: (name, new) } => {
                    follow_devices(schedule, name, &old.devices, &new.devices, now);
                }
                DiffItem::Remove(..) => {}
            }
        }
        for ConfigProvider { name, .. } in providers {
            let may_call_back = self.tokens.follow(name, state.desired.hooks.get(name), now);
            schedule.hold(name, !may_call_back);
        }
    }

    /// The tokens to draw.
    pub(super) fn draw_tokens(&mut self, now: Now) -> Vec<Deliver> {
        self.tokens.draw(now)
    }

    /// A token was drawn. Returns what is to be decided.
    pub(super) fn token_drawn(&mut self, now: Now, provider: &ProviderName, digest: String) -> Option<Input> {
        self.tokens.drawn(now, provider, digest)
    }

    /// What `provider` is told with the question `asked`; `None` if it cannot call back, or is still being told that the host waits for approval.
    pub(super) fn ask(
        &mut self,
        asked: &Question,
        provider: &ConfigProvider,
        (state, view): (&State, &View),
    ) -> Option<HookQuestion> {
        let token = self.tokens.in_force(&provider.name)?;
        if self.enrolment_requests.is_under_way(&provider.name, &asked.host) {
            return None;
        }
        let poll = asked.poll.filter(|_| provider.hears(HookEvent::DevicePoll));
        let (event, cause) = choose(state.hook_device(&provider.name, &asked.host), poll);
        let question = hook_question((state, view), provider, &asked.host, (event, cause), token);
        let had_item = state.desired.item(&asked.host, &provider.name).is_some();
        let about = AskedEvent { event, cause, metadata: question.digest, had_item };
        self.asked.insert(asked.ticket, about);
        Some(question)
    }

    /// The next request to each of `providers` about hosts that wait for approval, as `schedule` allows.
    pub(super) fn request_enrolments<'a>(
        &mut self,
        schedule: &mut Schedule,
        providers: impl Iterator<Item = &'a Arc<ConfigProvider>>,
        (state, view): (&State, &View),
        (epoch, fence): (u64, u64),
        now: Now,
    ) -> Vec<Deliver> {
        let mut begun = Vec::new();
        for provider in providers {
            let Some(token) = self.tokens.in_force(&provider.name) else { continue };
            let questions = self.enrolment_requests.ask(schedule, provider, token, (state, view), now);
            if !questions.is_empty() {
                begun.push(Deliver::Call { epoch, fence, questions });
            }
        }
        begun
    }

    /// Whether the reply to the question with `ticket` is one about a host that waits for approval, from which nothing follows.
    pub(super) fn enrolment_answered(&mut self, now: Now, ticket: Ticket, reply: &ProviderReply) -> bool {
        self.enrolment_requests.answered(now, ticket, reply)
    }

    /// What the question with `ticket` was about. It is no longer under way.
    pub(super) fn take_asked(&mut self, ticket: Ticket) -> Option<AskedEvent> {
        self.asked.remove(&ticket)
    }
}

impl AskedEvent {
    /// Whether the host has lost what it was to have since `provider` was asked, so that the answer says too little.
    pub(super) fn has_lost_item(self, provider: &ProviderName, host: &HostName, state: &State) -> bool {
        self.had_item && state.desired.item(host, provider).is_none()
    }

    /// What is to be decided because `provider` has answered, if that changes what it is to be told.
    pub(super) fn answered(
        self,
        provider: &ProviderName,
        host: &HostName,
        reply: &ProviderReply,
        state: &State,
    ) -> Option<Input> {
        if matches!(reply.outcome, Outcome::Failed(_)) {
            return None;
        }
        let device = state.hook_device(provider, host)?;
        let Self { event, cause, metadata, had_item: _ } = self;
        let poll_interval = reply.poll_interval.as_ref().map(Duration::as_secs);
        let was_pending = device.pending.get(&event) == Some(&cause);
        let is_other_interval = poll_interval.is_some() && poll_interval != device.poll_interval;
        let (provider, host) = (provider.clone(), host.clone());
        let answered = Input::HookAnswered { provider, host, event, cause, metadata, poll_interval };
        (was_pending || is_other_interval).then_some(answered)
    }
}

/// `provider` is asked about `host` from now on, of which `device` is known.
pub(super) fn add_device(
    schedule: &mut Schedule,
    provider: &ProviderName,
    host: &HostName,
    device: Option<&HookDevice>,
    now: Now,
) {
    let Some(device) = device else { return };
    schedule.set_interval(now, provider, host, interval_of(device));
    if !device.pending.is_empty() {
        schedule.bring_forward(now, provider, host);
    }
}

/// Makes `schedule` as what is known of `provider` now, and was not `before`. A failed question keeps its pause unless there is something new.
fn follow_devices(
    schedule: &mut Schedule,
    provider: &ProviderName,
    before: &Devices,
    devices: &Devices,
    now: Now,
) {
    for change in before.diff(devices) {
        match change {
            DiffItem::Add(host, device) => add_device(schedule, provider, host, Some(device), now),
            DiffItem::Update { old: (_, old), new: (host, new) } => {
                schedule.set_interval(now, provider, host, interval_of(new));
                if new.pending != old.pending && !new.pending.is_empty() {
                    schedule.bring_forward(now, provider, host);
                }
            }
            DiffItem::Remove(..) => {}
        }
    }
}

fn interval_of(device: &HookDevice) -> Option<Duration> {
    device.poll_interval.map(Duration::from_secs)
}

/// The event that a provider is told of, with its cause: the first one that it is still to be told of. Else it is polled, if that was due at
/// `poll`, or asked what the host is to have now. `poll` is absent for a provider that does not hear polls.
fn choose(device: Option<&HookDevice>, poll: Option<DateTime<Utc>>) -> (HookEvent, u64) {
    if let Some((event, cause)) = device.and_then(|device| device.pending.iter().next()) {
        return (*event, *cause);
    }
    match poll {
        Some(due) => (HookEvent::DevicePoll, u64::try_from(due.timestamp()).unwrap_or_default()),
        None => (HookEvent::DeviceSpecUpdate, device.map_or(0, |device| device.spec)),
    }
}
