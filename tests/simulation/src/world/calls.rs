//! Calls on their way: to an instance, from there to the leader, and back.

use os_upgrade_shell::forward::{Forwarded, Outcome, decode, decode_outcome, encode_outcome, not_forwarded};
use os_upgrade_shell::instance::{CallId, Event, Instance as Logic};

use super::World;
use crate::agenda::{Item, Process};
use crate::bug::Bug;
use crate::outside;
use crate::peer::Peer;
use crate::request::{Answer as Back, Request, RequestKind};

impl World {
    /// An instance answers a call, to its caller or to the follower that passed it on.
    pub(super) fn answered(&mut self, index: usize, call: CallId, outcome: &Outcome) {
        let sabotaged = self.sabotage_outcome(outcome);
        let outcome = sabotaged.as_ref().unwrap_or(outcome);
        let Some(request) = self.operators.forwarded.remove(&call) else {
            let instance = &self.instances[index];
            if instance.logic.as_ref().is_some_and(Logic::is_leading) {
                self.checker.leader_answered(outcome, instance.shown);
            }
            self.checker.answered(call, outcome);
            self.outside.record(self.now, || outside::answer(call, outcome));
            self.operators.answered(call, outcome);
            self.hook_providers.answered(call, outcome);
            return;
        };
        if !self.is_linked(Peer::Instance(index)) {
            return;
        }
        let payload = encode_outcome(outcome).expect("an outcome serialises");
        if let RequestKind::Forward { call, .. } = request.what {
            let event = Event::ForwardAnswered { call, outcome: decode_outcome(&payload) };
            self.answer(&request, Back::Instance(event));
        }
    }

    /// A call that was passed on reaches the process that it is meant for, if that still runs.
    pub(super) fn forward_arrives(&mut self, request: Request) {
        let RequestKind::Forward { call, to, payload } = &request.what else { return };
        let call = *call;
        let is_addressee = |instance: usize| {
            let it = &self.instances[instance];
            it.logic.is_some() && it.nonce() == to.nonce && self.is_linked(Peer::Instance(instance))
        };
        let leader = (0..self.instances.len()).find(|instance| is_addressee(*instance));
        let (Some(instance), Ok(Forwarded { lease, request: forwarded })) = (leader, decode(payload)) else {
            let outcome = Err(not_forwarded("nobody listens"));
            return self.answer(&request, Back::Instance(Event::ForwardAnswered { call, outcome }));
        };
        let id = self.operators.next_call();
        self.operators.forwarded.insert(id, request);
        let boot = self.instances[instance].boot;
        let event = Event::Call { call: id, request: forwarded, forwarded_at: Some(lease) };
        let what = Process::Event(event);
        let latency = self.latency();
        self.at(latency, Item::Process { instance, boot, what });
        if self.bug == Some(Bug::CarriedOutTwice) {
            self.carry_out_again(instance, id);
        }
    }
}
