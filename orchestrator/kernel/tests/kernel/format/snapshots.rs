//! Parts of a snapshot, and the format that each needs.

use os_upgrade_kernel::fact::IgnoreCause;
use os_upgrade_kernel::format::Stored as _;
use os_upgrade_kernel::reason::ReleaseRefusal;
use os_upgrade_kernel::slot::{ReleaseCause, Semaphore, Waiter};
use os_upgrade_kernel::{Fact, LockProvider, NoAnswer, Slot, SlotState, State};
use serde_json::json;

use super::check;
use super::words::check_words;
use crate::common::{client, group, host, run, start};

#[test]
fn parts() {
    // Waiters: one that has asked once, and one that has retried.
    let waiting = |interval_secs| {
        let waiter = Waiter { since: start(), asked: start(), turn: start(), interval_secs };
        let waiters = [(client("n1"), waiter)].into_iter().collect::<imbl::OrdMap<_, _>>().into();
        Semaphore { slots: 1, waiters, ..Semaphore::default() }
    };
    let table = [
        (
            waiting(None),
            concat!(
                r#"{"slots":1,"holders":{},"waiters":{"n1":{"since":"2026-11-21T01:00:00Z","#,
                r#""asked":"2026-11-21T01:00:00Z","turn":"2026-11-21T01:00:00Z"}}}"#,
            ),
        ),
        (
            waiting(Some(300)),
            concat!(
                r#"{"slots":1,"holders":{},"waiters":{"n1":{"since":"2026-11-21T01:00:00Z","#,
                r#""asked":"2026-11-21T01:00:00Z","turn":"2026-11-21T01:00:00Z","interval-secs":300}}}"#,
            ),
        ),
    ];
    check(&table, |_| 0, 1);

    // A slot that its lock server does not take back.
    let slot = |refusal| Slot {
        group: group("edge"),
        provider: LockProvider::External,
        state: SlotState::Releasing { why: ReleaseCause::Upgraded },
        since: start(),
        held_since: Some(start()),
        refusal,
        in_doubt: false,
        unlocked_at: None,
        owner: run("r1").into(),
        command: None,
        begun: false,
        unsent_at_fence: None,
    };
    let refused = || slot(Some(ReleaseRefusal::Unreachable { why: NoAnswer::TimedOut }));
    let json = concat!(
        r#"{"group":"edge","provider":"external","standing":{"releasing":{"why":"upgraded"}},"#,
        r#""since":"2026-11-21T01:00:00Z","held-since":"2026-11-21T01:00:00Z","#,
        r#""refusal":{"kind":"unreachable","why":{"kind":"timed-out"}},"#,
        r#""run":"r1","command":null,"begun":false,"unsent-at-fence":null}"#,
    );
    check(&[(refused(), json)], |_| 0, 1);

    // A snapshot has the format of the newest thing in it.
    let state_of = |change: &dyn Fn(&mut State)| {
        let mut state = State::default();
        change(&mut state);
        state.format()
    };
    let semaphores = |interval: &str| {
        let waiter = format!(
            r#"{{"since":"2026-11-21T01:00:00Z","asked":"2026-11-21T01:00:00Z","turn":"2026-11-21T01:00:00Z"{interval}}}"#
        );
        serde_json::from_str(&format!(
            r#"{{"default":{{"slots":1,"holders":{{}},"waiters":{{"n1":{waiter}}}}}}}"#
        ))
        .unwrap()
    };
    assert_eq!(state_of(&|_| ()), 2);
    let upgraded = |state: &mut State| {
        state.last_upgrades = serde_json::from_str(r#"{"h1":"2026-11-21T01:00:00Z"}"#).unwrap();
        check_words("State", &serde_json::to_value(&*state).unwrap(), 5);
    };
    assert_eq!(state_of(&upgraded), 5);
    let removed = |state: &mut State| {
        let (host, actor, reason) = (host("h1"), "eve".to_owned(), "scrapped".to_owned());
        state.apply(start(), &Fact::HostRemoved { host, actor, reason, announced: 7 }).unwrap();
        check_words("State", &serde_json::to_value(&*state).unwrap(), 5);
    };
    assert_eq!(state_of(&removed), 5);
    let turns = |state: &mut State| {
        state.turns = serde_json::from_str(r#"{"runs":2,"last":{"h1":1}}"#).unwrap();
        check_words("State", &serde_json::to_value(&*state).unwrap(), 9);
    };
    assert_eq!(state_of(&turns), 9);
    assert_eq!(state_of(&|state| state.semaphores = semaphores("")), 2);
    assert_eq!(state_of(&|state| state.semaphores = semaphores(r#","interval-secs":300"#)), 3);
    assert_eq!(state_of(&|state| drop(state.slots.insert(host("h1"), slot(None)))), 2);
    assert_eq!(state_of(&|state| drop(state.slots.insert(host("h1"), refused()))), 3);
    let mut ignoring = State::default();
    let ignored = Fact::Ignored {
        sequence: 3,
        host: Some(host("h1")),
        reply: None,
        why: IgnoreCause::NothingOutstanding,
    };
    ignoring.apply(start(), &ignored).unwrap();
    assert_eq!((ignored.format(), ignoring.format()), (2, 3));
    let written = serde_json::to_value(&ignoring.ignored_replies).unwrap();
    let minute = start().timestamp() / 60;
    assert_eq!(written, json!({ "minute": minute, "hosts": ["h1"] }));
    let snapshot = serde_json::to_value(&ignoring).unwrap();
    assert_eq!(snapshot["ignored-replies"], written);
    check_words("State", &snapshot, 3);
}
