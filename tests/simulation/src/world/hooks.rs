//! Providers of kind `hooks`: how they are told of events, what their answers become, and how they call back.

use std::iter;

use os_upgrade_kernel::{ConfigProvider, DesiredOperation, Request as Call, State};
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::hooks::{
    AskedMember, Given, HookAnswer, HookEvent, HookOutcome, HookReply, MemberReply,
};
use os_upgrade_provider_rules::{ContentBytes, Failure, Outcome, ProviderName, Reply, Ticket, Validator};
use os_upgrade_shell::delivery::{Delivered, HookQuestion, ProviderQuestion, ProviderReply};
use os_upgrade_shell::instance::{Event, Instance as Logic};

use super::World;
use super::instances::TIMEOUT;
use crate::agenda::{Item, Process};
use crate::checker::HookCaller;
use crate::fault::Fault;
use crate::hook_provider::{self, Answer, Changes, Device, HookProviders};
use crate::peer::Peer;
use crate::request::{DesiredRequest, Request, RequestKind};
use crate::time::{MILLI, SECOND};

/// The reply of a provider for which nothing has changed.
pub(super) fn unchanged() -> ProviderReply {
    let validator = Validator::new(b"", None, None, None);
    Reply { outcome: Outcome::Unchanged { validator }, retry_after: None, poll_interval: None }
}

pub(super) fn answered(epoch: u64, ticket: Ticket, reply: ProviderReply) -> Event {
    Event::Delivered(Delivered::ProviderAnswered { epoch, ticket, reply })
}

/// What a provider is told with a question; only questions to providers of kind `hooks` come here.
pub(super) fn hook(question: &ProviderQuestion) -> &HookQuestion {
    question.hook.as_ref().expect("a question to a provider of kind hooks")
}

fn may_call_back(state: &State, provider: &ProviderName, token: &str) -> bool {
    state.desired.hooks.get(provider).is_some_and(|known| known.has_token(token))
}

impl World {
    /// A process draws a token, which it has a moment later.
    pub(super) fn draw_token(&mut self, index: usize, provider: ProviderName) {
        let digest = HookProviders::draw(&mut self.rng);
        let boot = self.instances[index].boot;
        let what = Process::Event(Event::Delivered(Delivered::TokenDrawn { provider, digest }));
        self.after(MILLI, Item::Process { instance: index, boot, what });
    }

    /// An instance tells a provider of events, all in one request.
    pub(super) fn call_provider(
        &mut self,
        index: usize,
        (epoch, fence): (u64, u64),
        questions: Vec<ProviderQuestion>,
    ) {
        let questions = self.sabotage_hook_call(index, epoch, questions);
        self.check_call(index, &questions);
        let mut questions = questions.into_iter();
        let Some(question) = questions.next() else { return };
        let more =
            questions.map(|question| (self.await_answer(index, epoch, question.ticket), question)).collect();
        let fallback = answered(epoch, question.ticket, Failure::TimedOut.into());
        let what = DesiredRequest::Call { epoch, fence, question: Box::new(question), more };
        self.send_request(index, RequestKind::Desired(what), fallback);
    }

    /// The number of a request of which the answer is a part of another one's.
    fn await_answer(&mut self, index: usize, epoch: u64, ticket: Ticket) -> u64 {
        self.requests += 1;
        let request = self.requests;
        let instance = &mut self.instances[index];
        instance.waiting.insert(request, answered(epoch, ticket, Failure::TimedOut.into()));
        let (boot, what) = (instance.boot, Process::TimeOut { request });
        self.at(TIMEOUT, Item::Process { instance: index, boot, what });
        request
    }

    /// The checker looks at what an instance tells a provider.
    fn check_call(&mut self, index: usize, questions: &[ProviderQuestion]) {
        let instance = &self.instances[index];
        let Some(logic) = &instance.logic else { return };
        let mut awaited = Vec::new();
        for event in instance.waiting.values() {
            if let Event::Delivered(Delivered::ProviderAnswered { ticket, .. }) = event {
                awaited.push(*ticket);
            }
        }
        let caller = HookCaller {
            writer: (Peer::Instance(index), instance.boot),
            wall: self.clock_of(index).wall,
            is_right: instance.clock.is_zero(),
            position: logic.position(),
        };
        self.checker.hooks_called(caller, questions, logic.state(), &awaited);
    }

    /// A process learns what a provider has answered.
    pub(super) fn provider_answered(&mut self, index: usize, event: &Event) {
        let Event::Delivered(Delivered::ProviderAnswered { ticket, reply, .. }) = event else { return };
        let writer = (Peer::Instance(index), self.instances[index].boot);
        let is_failure = matches!(reply.outcome, Outcome::Failed(_));
        self.checker.hook_answered(writer, *ticket, is_failure);
    }

    /// An instance begins to lead.
    pub(super) fn leadership_began(&mut self, index: usize) {
        let instance = &self.instances[index];
        let writer = (Peer::Instance(index), instance.boot);
        let position = instance.logic.as_ref().map_or(0, Logic::position);
        self.checker.leadership_began();
        self.checker.hooks_led(writer, position);
        self.checker.agents_awaited(writer);
    }

    /// A call reaches its provider.
    pub(super) fn provider_is_called(&mut self, request: &Request, desired: &DesiredRequest) {
        let DesiredRequest::Call { epoch, fence, question, more } = desired else {
            unreachable!("only calls come here");
        };
        if self.occurs(Fault::ProviderSlow) {
            let late = self.rng.u64(..4 * SECOND);
            return self.at(late, Item::Arrive(Box::new(request.clone())));
        }
        let rest = more.iter().map(|(id, question)| (*id, question));
        let (ids, questions): (Vec<u64>, Vec<&ProviderQuestion>) =
            iter::once((request.id, &**question)).chain(rest).unzip();
        let replies = self.provider_answers(&questions);
        for ((id, question), reply) in ids.into_iter().zip(questions).zip(replies) {
            let request = Request { id, ..request.clone() };
            self.provider_replies(&request, (*epoch, *fence), question, reply);
        }
    }

    /// What a provider answers to a call, as a reply for each device.
    fn provider_answers(&mut self, questions: &[&ProviderQuestion]) -> Vec<ProviderReply> {
        if self.occurs(Fault::ProviderDown) {
            let down = || Failure::Unreachable { why: "connection refused".to_owned() };
            return questions.iter().map(|_| down().into()).collect();
        }
        let Answer { status, retry_after, body } = self.hook_answer(questions);
        let member = |question: &&ProviderQuestion| {
            let HookQuestion { event, uuid, .. } = hook(question);
            AskedMember { event: *event, uuid: *uuid, host: question.host.clone() }
        };
        let asked: Vec<AskedMember> = questions.iter().map(member).collect();
        let answer = HookAnswer {
            status,
            date: None,
            retry_after: retry_after.as_deref().map(str::as_bytes),
            content_encoding: None,
            body: Ok(ContentBytes::new(body)),
        };
        let provider = &questions[0].provider.name;
        let HookReply { members, retry_after, .. } = answer.interpret(provider, &asked, self.time());
        let mut replies = Vec::new();
        for (member, question) in members.into_iter().zip(questions) {
            replies.push(ProviderReply { retry_after, ..self.hook_reply(question, member) });
        }
        replies
    }

    /// What a provider answers to a call.
    fn hook_answer(&mut self, questions: &[&ProviderQuestion]) -> Answer {
        let provider = &questions[0].provider;
        for question in questions {
            self.hook_providers.gets(&provider.name, &hook(question).token);
            self.checker.hook_arrived(question);
        }
        let words: Vec<Option<u64>> =
            questions.iter().map(|question| self.words.of(&provider.name, &question.host)).collect();
        let devices: Vec<Device<'_>> = questions
            .iter()
            .zip(words)
            .map(|(question, word)| Device { host: &question.host, hook: hook(question), word })
            .collect();
        let has_intervals = self.plan.delivery.as_ref().is_some_and(|delivery| delivery.has_intervals);
        let mut members = hook_provider::members(&mut self.rng, provider, &devices, has_intervals);
        self.sabotage_members(questions, &mut members);
        if self.occurs(Fault::ProviderFails) {
            let hosts: Vec<HostName> = self.plan.names().collect();
            return hook_provider::lie(&mut self.rng, members, &hosts);
        }
        let body = serde_json::to_vec(&members).expect("it is JSON");
        Answer { status: 200, retry_after: None, body }
    }

    fn hook_reply(&mut self, question: &ProviderQuestion, member: MemberReply) -> ProviderReply {
        let MemberReply { outcome, poll_interval } = member;
        let is_early = hook(question).event == HookEvent::EnrollmentRequest;
        let outcome = match outcome {
            HookOutcome::Failed(failure) => return failure.into(),
            // A host that waits for approval gets nothing.
            HookOutcome::Content(_) | HookOutcome::Revoked if is_early => unchanged().outcome,
            HookOutcome::Unchanged => unchanged().outcome,
            HookOutcome::Revoked => Outcome::Removed,
            HookOutcome::Content(given) => {
                let content = content_of(&given);
                let mut outcome = self.provider_gives(question, content);
                // Without the key of the strongbox it would be in the memory of a process; here that forgets it.
                let has_key = self.plan.delivery.as_ref().is_some_and(|delivery| delivery.has_fingerprints);
                if let Outcome::Content { content: Some(item), .. } = &mut outcome {
                    item.hash = has_key.then(|| hook_provider::hash(content));
                }
                outcome
            }
        };
        Reply { outcome, retry_after: None, poll_interval }
    }

    /// A provider of kind `hooks` calls back, an operator changes its tokens, or a host changes its labels.
    pub(super) fn act_on_hooks(&mut self) {
        let Some(delivery) = self.plan.delivery.clone().filter(|_| self.faults_enabled) else { return };
        let every = 2 * delivery.act_every * self.slowdown();
        self.after(every, Item::ActOnHooks);
        let providers: Vec<&ConfigProvider> = delivery.hooks().collect();
        let Some(provider) = self.rng.choice(&providers).copied() else { return };
        let name = &provider.name;
        let index = self.rng.usize(..self.instances.len());
        let host = self.rng.usize(..self.hosts.len());
        match self.rng.u32(..20) {
            // What has changed is usually told with the newest token, and once more if nobody has answered.
            0..=9 => {
                let token = self.hook_providers.tokens(name).last().cloned();
                let changes = self.hook_providers.untold(name);
                self.call_back(index, name, token.as_deref(), changes);
            }
            // Or it is told late, with one that was given long ago, or by whoever has seen none.
            10..=12 => {
                let token = self.any_token(name);
                let changes = self.hook_providers.untold(name);
                self.call_back(index, name, token.as_deref(), changes);
            }
            // About a host for which nothing has changed, or that is not its own.
            13..=14 => {
                let token = self.any_token(name);
                let host = self.hosts[host].name.clone();
                let change = self.hook_providers.untold(name).get(&host).copied().unwrap_or_default();
                self.call_back(index, name, token.as_deref(), Changes::from([(host, change)]));
            }
            15 => {
                let rotate = DesiredOperation::RotateToken { provider: name.clone() };
                self.request(index, Call::new("operator", rotate).into());
            }
            16..=17 => {
                self.hosts[host].hall = self.rng.u32(1..4);
                self.announce_again(host);
            }
            _ => self.change_word(provider, host),
        }
    }

    /// Any token that `provider` has, or none.
    fn any_token(&mut self, provider: &ProviderName) -> Option<String> {
        let tokens = self.hook_providers.tokens(provider).to_vec();
        self.rng.choice(tokens)
    }

    /// A provider calls back at an instance about what has changed. As its API does, that refuses tokens that do not count, and hosts that are not
    /// the provider's.
    fn call_back(
        &mut self,
        index: usize,
        provider: &ProviderName,
        token: Option<&str>,
        mut changes: Changes,
    ) {
        let Some(state) = self.instances[index].logic.as_ref().map(Logic::state) else { return };
        let is_its_own = |host: &HostName| {
            state.provider_for(provider, host).is_some() && state.hook_device(provider, host).is_some()
        };
        changes.retain(|host, _| is_its_own(host));
        let is_accepted = token.is_some_and(|token| may_call_back(state, provider, token));
        self.trace
            .record(self.now, || format!("{provider} calls back at i{index}: {changes:?}, {is_accepted}"));
        if !is_accepted || changes.is_empty() {
            return;
        }
        let operation = DesiredOperation::CallBack {
            provider: provider.clone(),
            hosts: changes.keys().cloned().collect(),
        };
        let call = self.operators.calls + 1;
        self.hook_providers.calls_back(call, provider, changes);
        self.request(index, Call::new("provider", operation).into());
    }

    /// Providers call back about everything that has changed, until that is accepted. Where one cannot, as none of its tokens counts any more, or
    /// the site may have lost an accepted call-back, an operator polls it.
    pub(super) fn is_called_back(&mut self) -> bool {
        let hooks = self.plan.config.hook_providers();
        let providers: Vec<ProviderName> = hooks.map(|provider| provider.name.clone()).collect();
        for provider in providers {
            let untold = self.hook_providers.untold(&provider);
            let token = self.hook_providers.tokens(&provider).last();
            let state = self.leader().map(Logic::state);
            let counts =
                token.zip(state).is_some_and(|(token, state)| may_call_back(state, &provider, token));
            let (actor, operation) = if self.is_rolled_back || (!counts && !untold.is_empty()) {
                ("operator", DesiredOperation::Poll { provider, host: None })
            } else if untold.is_empty() {
                continue;
            } else {
                ("provider", DesiredOperation::CallBack { provider, hosts: untold.into_keys().collect() })
            };
            let request = move |_: &mut Self| Call::new(actor, operation.clone()).into();
            if !self.until_granted("what has changed is told", request) {
                return false;
            }
        }
        true
    }
}

/// The number of the content that was given.
fn content_of(given: &Given) -> u64 {
    let text = str::from_utf8(given.bytes.as_slice()).ok();
    let number = text.and_then(|text| text.strip_prefix("content ")?.parse().ok());
    number.expect("all contents are numbers")
}
