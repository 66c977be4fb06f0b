//! Ten thousand clients that wait for one slot: what is remembered of them is bounded, and so is the growth of the
//! journal.

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_kernel::slot::{RECORD_INTERVAL, REMEMBERED};
use os_upgrade_kernel::{Batch, ClientId, Fact, Input, LockOperation, Request, Settings, State, View};
use os_upgrade_protocol::GroupName;

const CLIENTS: usize = 10_000;
/// How often Zincati retries.
const RETRY_INTERVAL: TimeDelta = TimeDelta::minutes(5);
const ROUNDS: usize = 12;

fn group() -> GroupName {
    GroupName::new("default").unwrap()
}

fn lock(id: &str) -> Input {
    let lock = LockOperation::Lock { group: group(), id: ClientId::new(id).unwrap() };
    Input::Request(Request::new("token", lock).into())
}

/// A state whose only slot has been held since `at`.
fn held(at: DateTime<Utc>) -> State {
    let mut batch = Batch::new(&State::default(), at);
    batch.decide(&View::default(), &Input::Settings(Settings::default()));
    batch.decide(&View::default(), &lock("holder"));
    batch.finish().1
}

/// Every client requests the slot at `at`: the facts, and the state after them.
fn all_request(state: &State, at: DateTime<Utc>) -> (Vec<Fact>, State) {
    let mut batch = Batch::new(state, at);
    for number in 0..CLIENTS {
        let answer = batch.decide(&View::default(), &lock(&format!("node-{number}")));
        assert!(answer.unwrap().is_err(), "there is one slot");
    }
    let (record, state) = batch.finish();
    (record.facts, state)
}

fn waiters(state: &State, at: DateTime<Utc>) -> usize {
    state.semaphores.get(&group()).unwrap().waiters.remembered(at).count()
}

fn bytes(state: &State) -> usize {
    serde_json::to_vec(state).unwrap().len()
}

#[test]
fn waiters_take_bounded_room() {
    let mut at = DateTime::UNIX_EPOCH;
    let empty = held(at);
    let (facts, mut state) = all_request(&empty, at);
    assert_eq!(facts.len(), CLIENTS);
    let mut room = bytes(&state);
    for round in 0..ROUNDS {
        // Twice in a minute, of which one is recorded.
        let (facts, asked) = all_request(&state, at + RECORD_INTERVAL / 2);
        assert_eq!((facts, bytes(&asked)), (Vec::new(), room));
        at += RETRY_INTERVAL;
        let (facts, asked) = all_request(&asked, at);
        if round == 0 {
            // Each has shown its interval.
            room = bytes(&asked);
        }
        assert_eq!((facts.len(), waiters(&asked, at), bytes(&asked)), (CLIENTS, CLIENTS, room));
        state = asked;
    }
    // Once they stop retrying, the next client's request removes them.
    let mut batch = Batch::new(&state, at + REMEMBERED);
    batch.decide(&View::default(), &lock("late"));
    let (record, state) = batch.finish();
    assert_eq!((record.facts.len(), waiters(&state, at + REMEMBERED)), (1, 1));
    assert!(bytes(&state) < bytes(&empty) + 200, "{} bytes", bytes(&state));
}
