//! Ten thousand clients that wait for one slot: what is remembered of them is bounded, and so is what the journal grows
//! by.

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_kernel::semaphore::{NOTED_AGAIN, REMEMBERED};
use os_upgrade_kernel::{Batch, ClientId, Fact, Input, LockOperation, Request, Settings, State, View};
use os_upgrade_protocol::GroupName;

const CLIENTS: usize = 10_000;
/// Zincati asks again after so long.
const ASKS_EVERY: TimeDelta = TimeDelta::minutes(5);
const ROUNDS: usize = 12;

fn group() -> GroupName {
    GroupName::new("default").unwrap()
}

fn lock(id: &str) -> Input {
    let lock = LockOperation::Lock { group: group(), id: ClientId::new(id).unwrap() };
    Input::Request(Request::new("token", lock).into())
}

/// A state whose only slot is held, at that time.
fn held(at: DateTime<Utc>) -> State {
    let mut batch = Batch::new(&State::default(), at);
    batch.decide(&View::default(), &Input::Settings(Settings::default()));
    batch.decide(&View::default(), &lock("holder"));
    batch.finish().1
}

/// The facts of everybody's asking at `at`, and the state after.
fn all_ask(state: &State, at: DateTime<Utc>) -> (Vec<Fact>, State) {
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
fn who_waits_for_an_hour_takes_no_more_room_than_who_has_begun_to() {
    let mut at = DateTime::UNIX_EPOCH;
    let empty = held(at);
    let (facts, mut state) = all_ask(&empty, at);
    assert_eq!(facts.len(), CLIENTS);
    let room = bytes(&state);
    for _ in 0..ROUNDS {
        // Twice in a minute, of which one is noted.
        let (facts, asked) = all_ask(&state, at + NOTED_AGAIN / 2);
        assert_eq!((facts, bytes(&asked)), (Vec::new(), room));
        at += ASKS_EVERY;
        let (facts, asked) = all_ask(&asked, at);
        assert_eq!((facts.len(), waiters(&asked, at), bytes(&asked)), (CLIENTS, CLIENTS, room));
        state = asked;
    }
    // Once they ask no more, the next who does makes room.
    let mut batch = Batch::new(&state, at + REMEMBERED);
    batch.decide(&View::default(), &lock("late"));
    let (record, state) = batch.finish();
    assert_eq!((record.facts.len(), waiters(&state, at + REMEMBERED)), (1, 1));
    assert!(bytes(&state) < bytes(&empty) + 200, "{} bytes", bytes(&state));
}
