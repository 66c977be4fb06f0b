//! After the faults, in some worlds: FleetLock clients and runs contend for the same slots, for an hour or two, and
//! both must get their share.
//!
//! Either a few clients come once, as Zincati does: each asks again after 300 to 330 s until it is granted a slot,
//! reboots for a while, and gives the slot back, while run follows run. Or clients come and go all the time (`churn`),
//! some without asking again, and one run must complete beside them.

use os_upgrade_kernel::{ClientId, LockOperation, LockProvider, Request, RunResult};

use super::World;
use crate::time::{MINUTE, Micros, SECOND};

/// The longest pause after which Zincati asks again.
const RETRY_MAX: Micros = 330 * SECOND;
/// The longest time for which a client holds its slot.
const HOLD_MAX: Micros = 2 * MINUTE;
/// How long a client that does not ask again is remembered.
const REMEMBERED: Micros = 7 * MINUTE;
/// The time for messages and checks, added up.
const DELAY_MAX: Micros = MINUTE;
/// The limit for all of it.
const CONTENTION_MAX: Micros = 6 * 60 * MINUTE;

/// A FleetLock client.
#[derive(Debug)]
struct Client {
    id: ClientId,
    /// When it asks next.
    next: Micros,
    /// Since when it waits.
    refused: Option<Micros>,
    /// Until when it holds its slot, once it has noticed that it has one.
    holds_until: Option<Micros>,
    /// Whether it has had its slot, and does not return.
    is_finished: bool,
}

impl World {
    /// Returns whether everything succeeded.
    pub(super) fn contend(&mut self) -> bool {
        if !self.plan.contended || self.plan.settings.provider == LockProvider::External {
            return true;
        }
        let count = self.rng.usize(1..=3);
        let churn = self.rng.bool();
        let mut clients: Vec<Client> = (0..count).map(|number| self.client(number)).collect();
        let begun = self.now;
        let mut triggered = 0;
        self.checker.forget_longest_turn();
        while self.checker.is_clean() {
            for client in &mut clients {
                self.client_step(client, churn, count);
            }
            let rests = self.is_at_rest();
            let enough = if churn { triggered > 0 } else { clients.iter().all(|it| it.is_finished) };
            if rests && enough {
                return self.run_completed() && (!churn || self.release_all(&mut clients));
            }
            if rests && self.sees_every_host() && (triggered == 0 || self.run_completed()) {
                triggered += 1;
                if !self.until_granted("a run is accepted beside clients", Self::last_trigger) {
                    return false;
                }
            }
            let hosts = self.hosts.len() as u64;
            let turn = self.checker.longest_turn() + count as u64 * (REMEMBERED + HOLD_MAX);
            if churn && self.now - begun > hosts * (turn + DELAY_MAX) || self.now - begun > CONTENTION_MAX {
                let state = self.leader().map(|leader| format!("{:#?}", leader.state()));
                self.checker
                    .never_happened("clients and a run both get their share", &state.unwrap_or_default());
            }
            self.step();
        }
        false
    }

    fn client(&mut self, number: usize) -> Client {
        let id = ClientId::new(&format!("visitor{number}")).expect("a valid id");
        let next = self.now + self.rng.u64(..5 * MINUTE);
        Client { id, next, refused: None, holds_until: None, is_finished: false }
    }

    /// Lets `client`, one of `count`, do what is due now.
    fn client_step(&mut self, client: &mut Client, churn: bool, count: usize) {
        let group = self.plan.settings.default_group.clone();
        let Some(leader) = self.leader() else { return };
        let Some(semaphore) = leader.state().semaphores.get(&group) else { return };
        let holds = semaphore.holders.contains_key(client.id.as_str());
        if semaphore.waiters.contains(&client.id) {
            client.refused.get_or_insert(self.now);
        }
        match (holds, client.holds_until) {
            (true, None) => {
                if let Some(refused) = client.refused.take().filter(|_| !churn) {
                    let others = (count as u64 - 1) * (RETRY_MAX + HOLD_MAX);
                    let within = 2 * self.checker.longest_turn() + RETRY_MAX + others + DELAY_MAX;
                    self.checker.waited(&client.id, self.now - refused, within);
                }
                let until = self.now + self.rng.u64(..HOLD_MAX);
                client.holds_until = Some(until);
                client.next = until;
            }
            (false, Some(until)) if until <= self.now => {
                client.holds_until = None;
                client.is_finished = !churn;
            }
            (true | false, _) => {}
        }
        if client.next > self.now || client.is_finished {
            return;
        }
        let id = client.id.clone();
        let operation =
            if holds { LockOperation::Unlock { group, id } } else { LockOperation::Lock { group, id } };
        let again = match (holds, churn) {
            (true, _) => 5 * SECOND,
            (false, false) => self.rng.u64(300 * SECOND..RETRY_MAX),
            // One in four has lost interest, for now.
            (false, true) if self.rng.u32(..4) == 0 => self.rng.u64(..2 * REMEMBERED),
            (false, true) => self.rng.u64(SECOND..MINUTE),
        };
        client.next = self.now + again;
        let index = self.rng.usize(..self.instances.len());
        self.request(index, Request::new("client", operation).into());
    }

    fn run_completed(&mut self) -> bool {
        let run = self.leader().and_then(|leader| leader.state().last_run.clone());
        let ended = run.as_ref().and_then(|run| run.ended);
        let well = ended.is_some_and(|ended| ended.result == RunResult::Completed);
        if !well {
            self.checker.never_happened("a run beside clients is completed", &format!("{run:#?}"));
        }
        well
    }

    /// Clients that come and go give back their slots.
    fn release_all(&mut self, clients: &mut [Client]) -> bool {
        let group = self.plan.settings.default_group.clone();
        let settled = self.now + DELAY_MAX;
        self.until("calls under way have arrived", move |world| world.now > settled)
            && clients.iter().all(|client| {
                let (group, id) = (group.clone(), client.id.clone());
                let unlock = |_: &mut Self| {
                    let operation = LockOperation::Unlock { group: group.clone(), id: id.clone() };
                    Request::new("client", operation).into()
                };
                self.until_granted("a client gives its slot back", unlock)
            })
    }
}
