//! Planted bugs of providers of kind `hooks`. See [`crate::bug`].

use os_upgrade_kernel::Fact;
use os_upgrade_kernel::fact::DesiredFact;
use os_upgrade_provider_rules::hooks::{HookEvent, event_uuid};
use os_upgrade_shell::delivery::ProviderQuestion;
use os_upgrade_shell::instance::{Event, Instance as Logic};
use serde_json::{Value, json};

use super::World;
use super::hooks::{answered, hook, unchanged};
use super::sabotage::{each, with_facts};
use crate::agenda::{Item, Process};
use crate::bug::Bug;
use crate::time::MILLI;

impl World {
    /// What a provider is told instead of `questions`.
    pub(super) fn sabotage_hook_call(
        &mut self,
        index: usize,
        epoch: u64,
        mut questions: Vec<ProviderQuestion>,
    ) -> Vec<ProviderQuestion> {
        if self.bug == Some(Bug::PollRepeated) {
            for question in &mut questions {
                self.repeat_poll(index, question);
            }
        }
        if self.bug == Some(Bug::SpecToldAgain) {
            for question in &mut questions {
                self.tell_spec_again(index, question);
            }
        }
        if self.bug != Some(Bug::JoinOncePerLeadership) {
            return questions;
        }
        let (told, left): (Vec<_>, Vec<_>) =
            questions.into_iter().partition(|question| self.is_first_join(index, question));
        for question in left {
            let boot = self.instances[index].boot;
            let what = Process::Event(answered(epoch, question.ticket, unchanged()));
            self.at(MILLI, Item::Process { instance: index, boot, what });
        }
        told
    }

    /// The first poll of a process is the last one of another process.
    fn repeat_poll(&mut self, index: usize, question: &mut ProviderQuestion) {
        let process = (index, self.instances[index].boot);
        let pair = (question.provider.name.clone(), question.host.clone());
        let Some(hook) = question.hook.as_mut().filter(|hook| hook.event == HookEvent::DevicePoll) else {
            return;
        };
        let last = self.sabotaged_calls.polls.insert(pair, (process, hook.clone()));
        if let Some((of, last)) = last.filter(|(of, _)| *of != process) {
            self.trace.record(self.now, || format!("i{index} repeats the poll {} of i{}", last.uuid, of.0));
            (hook.cause, hook.uuid) = (last.cause, last.uuid);
        }
    }

    /// A poll is the last spec of its host once more.
    fn tell_spec_again(&self, index: usize, question: &mut ProviderQuestion) {
        let Some(state) = self.instances[index].logic.as_ref().map(Logic::state) else { return };
        let (provider, host) = (&question.provider.name, &question.host);
        let spec = state.hook_device(provider, host).map_or(0, |device| device.spec);
        let event = HookEvent::DeviceSpecUpdate;
        let uuid = event_uuid(provider, host, event, state.epoch(), spec);
        if let Some(hook) = question.hook.as_mut().filter(|hook| hook.event == HookEvent::DevicePoll) {
            (hook.event, hook.cause, hook.uuid) = (event, spec, uuid);
        }
    }

    /// Whether a question is not about another approval of a host that joined before, as far as this process knows.
    fn is_first_join(&mut self, index: usize, question: &ProviderQuestion) -> bool {
        let hook = hook(question);
        if hook.event != HookEvent::FleetJoin {
            return true;
        }
        let process = (index, self.instances[index].boot);
        let key = (process, question.provider.name.clone(), question.host.clone());
        *self.sabotaged_calls.joins.entry(key).or_insert(hook.cause) == hook.cause
    }

    /// What a provider answers, as a process reads it that counts the members.
    pub(super) fn sabotage_members(&self, questions: &[&ProviderQuestion], members: &mut [Value]) {
        if self.bug != Some(Bug::MembersByPosition) {
            return;
        }
        for (question, member) in questions.iter().zip(members) {
            let hook = hook(question);
            member["event"] = json!(hook.event);
            member["event_uuid"] = json!(hook.uuid);
            member["device_name"] = json!(question.host);
        }
    }

    /// Leaves out facts when the journal is read by an instance that does not lead.
    pub(super) fn sabotage_hook_journal(&self, index: usize, event: Event) -> Event {
        let leads = self.instances[index].logic.as_ref().is_some_and(Logic::is_leading);
        if self.bug != Some(Bug::CallBackForgotten) || leads {
            return event;
        }
        let Event::Journal { sequence, stored_at, message: Ok(message) } = event else { return event };
        let message = with_facts(message, |facts| each(facts, without_call_back));
        Event::Journal { sequence, stored_at, message: Ok(message) }
    }
}

fn without_call_back(fact: Fact) -> Vec<Fact> {
    if let Fact::Desired(DesiredFact::CallbackReceived { .. }) = fact { Vec::new() } else { vec![fact] }
}
