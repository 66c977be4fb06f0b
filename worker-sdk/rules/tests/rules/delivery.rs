//! The state file, replies, acknowledgements, versions, and events out of place.

use os_upgrade_protocol::Versions;
use os_upgrade_worker_rules::{Action, Event, HandlerResult, Loaded};

use crate::bench::*;

#[test]
fn full_disk_starts_nothing_and_is_reported() {
    let fail = || Event::StateSaveFailed { error: "disk full".to_owned() };
    check(then(
        prepared(),
        vec![
            On(upgrade(2), &["log upgrade (command 2) begins", "save upgrading #1"]),
            On(fail(), &["log the state file cannot be saved, attempt 1: disk full"]),
            After(1, &["save upgrading #1"]),
            On(fail(), &["log the state file cannot be saved, attempt 2: disk full"]),
            After(2, &["save upgrading #1"]),
            On(fail(), &["log the state file cannot be saved, attempt 3: disk full"]),
            After(4, &["save upgrading #1"]),
            On(fail(), &["log the state file cannot be saved, attempt 4: disk full"]),
            After(8, &["in-progress a2", "save upgrading #1"]),
            On(
                fail(),
                &[
                    "log the state file cannot be saved, attempt 5, giving up: disk full",
                    "log upgrade (command 2) is answered: the worker cannot save its state file: disk full",
                    r#"reply {"action":"upgrade","result":"the worker cannot save its state file: disk full"}"#,
                ],
            ),
        ],
    ));
}

#[test]
fn reply_attempts_are_unlimited_and_acks_limited() {
    let mut bench = Bench::new();
    bench.take(started(Loaded::Nothing, "boot-1"));
    let mut steps = prepared();
    steps.truncate(4);
    check_on(&mut bench, steps);
    for attempt in 1..=40 {
        let failed = Event::ReplyFailed { sequence: 1, error: "away".to_owned() };
        let expected = format!("log the reply to command 1 is not stored yet, attempt {attempt}: away");
        assert_eq!(bench.take(failed), [expected]);
        bench.pass(30);
        let lines = bench.take(Event::Tick);
        assert_eq!(lines, ["in-progress a1", r#"reply {"action":"prepare","result":"done"}"#]);
    }
    // The connection is restored, which ends the pause.
    bench.take(Event::ReplyFailed { sequence: 1, error: "away".to_owned() });
    let mut reconnected = bench.clone();
    assert_eq!(reconnected.take(Event::Reconnected), [r#"reply {"action":"prepare","result":"done"}"#]);
    // An acknowledgement of before could count for another command now. The server delivers this one again, if it has it.
    assert_eq!(reconnected.take(stored(1)), ["save idle"]);
    bench.pass(30);
    bench.take(Event::Tick);
    assert_eq!(bench.take(stored(1)), ["ack a1"]);
    let failed = || Event::AckFailed { sequence: 1, error: "away".to_owned() };
    // The stream may have lost the reply until the server is back, so both are sent again.
    for attempt in 1..5 {
        let expected = format!("log command 1 is not acknowledged yet, attempt {attempt}: away");
        assert_eq!(bench.take(failed()), [expected]);
        bench.pass(30);
        let lines = bench.take(Event::Tick);
        assert_eq!(lines, ["in-progress a1", r#"reply {"action":"prepare","result":"done"}"#]);
        assert_eq!(bench.take(stored(1)), ["ack a1"]);
    }
    // It is redelivered with another ack subject, which is used from now on.
    let Event::CommandReceived(mut received) = prepare(1) else {
        unreachable!("prepare() makes commands");
    };
    received.ack_subject = "again".to_owned();
    let redelivered = Event::CommandReceived(received);
    assert_eq!(
        bench.take(redelivered),
        ["log command 1 is under way and was delivered again, 1 times so far", "ack again"]
    );
    for _ in 1..5 {
        bench.take(failed());
        bench.pass(30);
        bench.take(Event::Tick);
        assert_eq!(bench.take(stored(1)), ["ack again"]);
    }
    assert_eq!(
        bench.take(failed()),
        ["log command 1 is not acknowledged yet, attempt 5, left to redelivery: away", "save idle"]
    );
}

#[test]
fn corrupt_state_file_fails_closed_until_prepare() {
    let mut bench = Bench::new();
    let loaded = Loaded::Corrupt { error: "torn".to_owned() };
    assert_eq!(
        bench.take(started(loaded, "boot-1")),
        [
            "log the state file cannot be used, a copy is kept (torn); no upgrade or reboot before the \
             next prepare",
            "save idle"
        ]
    );
    bench.take(SAVED);
    let unknown = "the worker's state file could not be read, so it is unknown whether the host has rebooted";
    // Also after a restart.
    assert_eq!(bench.restart("boot-1"), [""; 0]);
    let lines = bench.take(reboot(1));
    assert_eq!(
        lines,
        [format!("log reboot (command 1) is answered: {unknown}"), format!("save answered {unknown} #1")]
    );
    for event in [SAVED, stored(1), acked(1), SAVED] {
        bench.take(event);
    }
    assert_eq!(
        bench.take(upgrade(2)),
        [
            "log command 2 is acknowledged and not executed: no prepare was executed since the last upgrade",
            "ack a2"
        ]
    );
    for event in
        [prepare(3), SAVED, finished(3, HandlerResult::Prepare(Ok(()))), SAVED, stored(3), acked(3), SAVED]
    {
        bench.take(event);
    }
    assert!(!bench.logic.state().distrusted);
    assert_eq!(bench.take(upgrade(4)), ["log upgrade (command 4) begins", "save upgrading #1"]);
}

#[test]
fn second_command_waits_for_the_first() {
    let mut steps = prepared();
    steps.truncate(2);
    steps.extend([
        On(upgrade(2), &["log command 2 waits until command 1 is settled"]),
        After(10, &["in-progress a1", "in-progress a2"]),
        On(
            finished(1, HandlerResult::Prepare(Ok(()))),
            &["log prepare (command 1) is answered: done", "save answered done #1"],
        ),
        On(SAVED, &[r#"reply {"action":"prepare","result":"done"}"#]),
        // The server no longer waits for the first acknowledgement.
        On(stored(1), &["save idle"]),
        On(SAVED, &["log upgrade (command 2) begins", "save upgrading #1"]),
    ]);
    check(steps);
}

#[test]
fn recreated_stream_is_recognized_as_new() {
    let mut bench = Bench::new();
    bench.take(started(Loaded::Nothing, "boot-1"));
    check_on(&mut bench, upgraded_and_settled());
    // Sequence 1 again, stored later than anything settled: another command.
    let Event::CommandReceived(mut received) = prepare(1) else {
        unreachable!("prepare() makes commands");
    };
    received.published = at(50);
    assert_eq!(
        bench.take(Event::CommandReceived(received)),
        ["log prepare (command 1) begins", "save preparing #1"]
    );
}

#[test]
fn unexpected_events_change_nothing() {
    check(vec![
        On(SAVED, &["log nothing to do: StateSaved answers no pending action"]),
        On(stored(7), &["log nothing to do: ReplyStored answers no pending action"]),
        On(acked(7), &[]),
        On(upgraded(7), &["log nothing to do: HandlerFinished answers no pending action"]),
        On(started(Loaded::Nothing, "boot-1"), &["log nothing to do: the worker has already started"]),
    ]);
    let mut logic = Bench::logic();
    let lines: Vec<String> = logic.handle(now(0), prepare(1)).iter().filter_map(line).collect();
    assert_eq!(lines, ["log nothing to do: the worker has not started"]);
}

#[test]
fn versions_are_published_when_they_differ() {
    let versions = |text: &str| Versions::parse(text.as_bytes()).unwrap();
    let mut bench = Bench::new();
    let mut take = |event| bench.logic.handle(bench.now, event);
    let read = |running, published| Event::VersionsRead { running, published };

    assert_eq!(take(started(Loaded::Nothing, "boot-1")), [Action::ReadVersions]);
    // Versions change during the comparison: another comparison follows.
    assert_eq!(take(Event::VersionsChanged), []);
    let publish = Action::PublishVersions {
        subject: "os-upgrade:versions.h1".to_owned(),
        payload: br#"{"linux":"6.1"}"#.to_vec(),
    };
    let new = versions(r#"{"linux":"6.1"}"#);
    assert_eq!(take(read(Ok(new.clone()), Ok(None))), std::slice::from_ref(&publish));
    assert_eq!(take(Event::VersionsPublished), [Action::ReadVersions]);
    let lines: Vec<String> =
        take(read(Ok(new.clone()), Ok(Some(new.clone())))).iter().filter_map(line).collect();
    assert_eq!(lines, ["log versions are as last published"]);

    // A failure is retried.
    assert_eq!(take(Event::VersionsChanged), [Action::ReadVersions]);
    assert_eq!(take(read(Err("no script".to_owned()), Ok(None))).len(), 1);
    bench.pass(1);
    assert_eq!(bench.logic.handle(bench.now, Event::Tick), [Action::ReadVersions]);
    // A worker that knows no versions publishes none.
    let nothing = read(Ok(Versions::default()), Ok(None));
    assert_eq!(bench.logic.handle(bench.now, nothing).len(), 1);
    // The published versions may have been lost while disconnected.
    let mut take = |event| bench.logic.handle(bench.now, event);
    assert_eq!(take(Event::Reconnected), [Action::ReadVersions]);
    // Also when the connection is restored during a comparison or a publish.
    assert_eq!(take(Event::Reconnected), []);
    let published = versions(r#"{"linux":"6.1"}"#);
    let actions = take(read(Ok(published.clone()), Ok(Some(published.clone()))));
    assert_eq!(actions.last(), Some(&Action::ReadVersions));
    assert_eq!(take(read(Ok(published), Ok(None))), [publish]);
    assert_eq!(take(Event::Reconnected), []);
    assert_eq!(take(Event::VersionsPublished), [Action::ReadVersions]);
}
