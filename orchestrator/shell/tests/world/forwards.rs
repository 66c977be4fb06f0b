//! Requests that followers pass on: delivered once, late, or not at all, and their answers likewise.

use os_upgrade_kernel::{Answer, Request};
use os_upgrade_shell::forward::{ANSWER_WITHIN, Outcome, Told, decode, encode};
use os_upgrade_shell::lease::LeaseHolder;
use os_upgrade_shell::node::{CallId, Event};

use super::World;

/// A request on its way to the leader and back.
pub(super) struct Forwarded {
    /// The follower, and which of its processes.
    from: (usize, u32),
    /// The call there.
    call: CallId,
    /// The call at the leader.
    id: CallId,
    at: std::time::Duration,
}

impl World {
    /// Hands a request to one instance that is up.
    pub(crate) fn ask_one(&mut self, request: &Request) -> Option<CallId> {
        let up: Vec<usize> =
            (0..self.instances.len()).filter(|index| self.instances[*index].node.is_some()).collect();
        if up.is_empty() {
            return None;
        }
        let index = *self.rng.pick(&up);
        self.calls += 1;
        let call = self.calls;
        self.hand_in(index, Event::Call { call, request: request.clone() });
        Some(call)
    }

    pub(super) fn pass_on(&mut self, from: (usize, u32), call: CallId, to: &LeaseHolder, request: &Request) {
        let is_meant = |index: &usize| {
            let instance = &self.instances[*index];
            instance.node.is_some() && format!("{}-{}", instance.name, instance.boots) == to.nonce
        };
        let leader = (0..self.instances.len()).find(is_meant);
        let unknown = || Outcome::Unknown { why: "lost".to_owned() };
        let Some(leader) = leader else {
            let why = "gone".to_owned();
            return self.forward_answered(from, call, Outcome::NotDelivered { why });
        };
        if self.rng.happens(self.faults.lost_message) {
            return self.forward_answered(from, call, unknown());
        }
        self.calls += 1;
        let id = self.calls;
        self.forwards.push(Forwarded { from, call, id, at: self.monotonic });
        let request = decode(&encode(request).unwrap()).unwrap();
        self.hand_in(leader, Event::Forwarded { call: id, request });
    }

    /// The leader's answer, if `call` was passed to it.
    pub(super) fn told(&mut self, call: CallId, answer: &Result<Answer, String>, sequence: u64) -> bool {
        let Some(place) = self.forwards.iter().position(|forwarded| forwarded.id == call) else {
            return false;
        };
        let forwarded = self.forwards.swap_remove(place);
        let told = match answer.clone() {
            Ok(answer) => Told::Answered { answer, sequence },
            Err(reason) => Told::Unavailable { reason },
        };
        let outcome = if self.rng.happens(self.faults.lost_answer) {
            Outcome::Unknown { why: "lost".to_owned() }
        } else {
            self.told += 1;
            Outcome::read(&serde_json::to_vec(&told).unwrap())
        };
        self.forward_answered(forwarded.from, forwarded.call, outcome);
        true
    }

    /// Followers wait for a while only; what their leader does later is not heard.
    pub(super) fn forwards_time_out(&mut self) {
        let now = self.monotonic;
        let late = self.forwards.iter().filter(|forwarded| forwarded.at + ANSWER_WITHIN <= now);
        let late: Vec<_> = late.map(|forwarded| (forwarded.id, forwarded.from, forwarded.call)).collect();
        for (id, from, call) in late {
            self.forwards.retain(|forwarded| forwarded.id != id);
            self.late_ids.insert(id);
            self.forward_answered(from, call, Outcome::Unknown { why: "late".to_owned() });
        }
    }

    fn forward_answered(&mut self, (index, boot): (usize, u32), call: CallId, outcome: Outcome) {
        if self.instances[index].boots == boot {
            self.hand_in(index, Event::ForwardAnswered { call, outcome });
        }
    }
}
