//! After the trouble, in some worlds: clients from outside and runs contend for the same slots, for an hour or two, and
//! both must have their share.
//!
//! Either a few clients come once, as Zincati does: each asks again after 300 to 330 s until it is granted a slot, reboots
//! for a while, and gives the slot back. Meanwhile one run follows the other. Or clients come and go all the time, some
//! without a word, and one run must come to its end beside them.

use os_upgrade_kernel::{ClientId, LockOperation, LockProvider, Request, RunResult};

use super::World;
use crate::time::{MINUTE, Micros, SECOND};

/// After how long Zincati asks again, at most.
const ASKS_WITHIN: Micros = 330 * SECOND;
/// How long a client holds its slot, at most.
const HOLDS_WITHIN: Micros = 2 * MINUTE;
/// For how long a client that does not ask again is waited for.
const REMEMBERED: Micros = 7 * MINUTE;
/// What messages and looks take, all together.
const ON_THE_WAY: Micros = MINUTE;
/// How long all of it may take.
const WITHIN: Micros = 6 * 60 * MINUTE;

/// A client from outside.
#[derive(Debug)]
struct Visitor {
    id: ClientId,
    /// When it asks next.
    next: Micros,
    /// Since when it waits.
    refused: Option<Micros>,
    /// Until when it holds its slot.
    holds_until: Option<Micros>,
    /// Whether it has had its slot, and comes no more.
    is_through: bool,
}

impl World {
    /// Whether everything went well.
    pub(super) fn contend(&mut self) -> bool {
        if !self.plan.contended || self.plan.settings.provider == LockProvider::External {
            return true;
        }
        let count = self.rng.usize(1..=3);
        let restless = self.rng.bool();
        let mut visitors: Vec<Visitor> = (0..count).map(|number| self.visitor(number)).collect();
        let begun = self.now;
        let mut triggered = 0;
        self.checker.forget_longest_turn();
        while self.checker.is_content() {
            for visitor in &mut visitors {
                self.visit(visitor, restless, count);
            }
            let rests = self.is_at_rest();
            let enough = if restless { triggered > 0 } else { visitors.iter().all(|it| it.is_through) };
            if rests && enough {
                return self.run_was_completed() && (!restless || self.all_leave(&mut visitors));
            }
            if rests && self.sees_every_host() && (triggered == 0 || self.run_was_completed()) {
                triggered += 1;
                if !self.until_granted("a run is accepted beside clients", Self::last_trigger) {
                    return false;
                }
            }
            let hosts = self.hosts.len() as u64;
            let turn = self.checker.longest_turn() + count as u64 * (REMEMBERED + HOLDS_WITHIN);
            if restless && self.now - begun > hosts * (turn + ON_THE_WAY) || self.now - begun > WITHIN {
                let state = self.leader().map(|leader| format!("{:#?}", leader.state()));
                self.checker.never("clients and a run both have their share", &state.unwrap_or_default());
            }
            self.step();
        }
        false
    }

    fn visitor(&mut self, number: usize) -> Visitor {
        let id = ClientId::new(&format!("visitor{number}")).expect("a valid id");
        let next = self.now + self.rng.u64(..5 * MINUTE);
        Visitor { id, next, refused: None, holds_until: None, is_through: false }
    }

    /// What `visitor`, one of so many, does now, if anything.
    fn visit(&mut self, visitor: &mut Visitor, restless: bool, count: usize) {
        let group = self.plan.settings.default_group.clone();
        let Some(leader) = self.leader() else { return };
        let Some(semaphore) = leader.state().semaphores.get(&group) else { return };
        let holds = semaphore.holders.contains_key(visitor.id.as_str());
        if semaphore.waiters.contains(&visitor.id) {
            visitor.refused.get_or_insert(self.now);
        }
        match (holds, visitor.holds_until) {
            (true, None) => {
                if let Some(refused) = visitor.refused.take().filter(|_| !restless) {
                    let others = (count as u64 - 1) * (ASKS_WITHIN + HOLDS_WITHIN);
                    let within = 2 * self.checker.longest_turn() + ASKS_WITHIN + others + ON_THE_WAY;
                    self.checker.waited(&visitor.id, self.now - refused, within);
                }
                let until = self.now + self.rng.u64(..HOLDS_WITHIN);
                visitor.holds_until = Some(until);
                visitor.next = until;
            }
            (false, Some(until)) if until <= self.now => {
                visitor.holds_until = None;
                visitor.is_through = !restless;
            }
            (true | false, _) => {}
        }
        if visitor.next > self.now || visitor.is_through {
            return;
        }
        let id = visitor.id.clone();
        let operation =
            if holds { LockOperation::Unlock { group, id } } else { LockOperation::Lock { group, id } };
        let again = match (holds, restless) {
            (true, _) => 5 * SECOND,
            (false, false) => self.rng.u64(300 * SECOND..ASKS_WITHIN),
            // One in four has lost interest, for now.
            (false, true) if self.rng.u32(..4) == 0 => self.rng.u64(..2 * REMEMBERED),
            (false, true) => self.rng.u64(SECOND..MINUTE),
        };
        visitor.next = self.now + again;
        let index = self.rng.usize(..self.instances.len());
        self.request(index, Request::new("client", operation).into());
    }

    fn run_was_completed(&mut self) -> bool {
        let run = self.leader().and_then(|leader| leader.state().last_run.clone());
        let ended = run.as_ref().and_then(|run| run.ended);
        let well = ended.is_some_and(|ended| ended.result == RunResult::Completed);
        if !well {
            self.checker.never("a run beside clients is completed", &format!("{run:#?}"));
        }
        well
    }

    /// Those who come and go give back what they hold.
    fn all_leave(&mut self, visitors: &mut [Visitor]) -> bool {
        let group = self.plan.settings.default_group.clone();
        let settled = self.now + ON_THE_WAY;
        self.until("what was asked has come to somebody", move |world| world.now > settled)
            && visitors.iter().all(|visitor| {
                let (group, id) = (group.clone(), visitor.id.clone());
                let unlock = |_: &mut Self| {
                    let operation = LockOperation::Unlock { group: group.clone(), id: id.clone() };
                    Request::new("client", operation).into()
                };
                self.until_granted("a client gives its slot back", unlock)
            })
    }
}
