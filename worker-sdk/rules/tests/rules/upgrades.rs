//! Prepare and upgrade: what is executed, what is resumed, and what is dropped.

use os_upgrade_worker_rules::{Event, HandlerResult, Loaded, Received, Upgraded};

use crate::bench::*;

#[test]
fn interrupted_upgrade_resumes_with_boot_information() {
    let mut steps = prepared();
    steps.extend([
        On(upgrade(2), &["log upgrade (command 2) begins", "save upgrading #1"]),
        On(SAVED, &["run upgrade"]),
        Restart(
            "boot-1",
            &["log upgrade (command 2) was cut off and is resumed, attempt 2", "save upgrading #2"],
        ),
        On(SAVED, &["run upgrade resume"]),
        // The stream redelivers it in the meantime; nothing is executed twice.
        On(upgrade(2), &["log command 2 is under way and was delivered again, 1 times so far"]),
        // It is finished even after not-after.
        After(601, &["in-progress a2"]),
        Restart(
            "boot-2",
            &["log upgrade (command 2) was cut off and is resumed, attempt 3", "save upgrading #3"],
        ),
        On(SAVED, &["run upgrade resume rebooted"]),
        On(
            finished(2, HandlerResult::Upgrade(Ok(Upgraded::Done))),
            &["log upgrade (command 2) is answered: done", "save answered done #3"],
        ),
        // The process dies after the save: the same reply is sent, and no handler runs.
        Restart("boot-2", &[r#"reply {"action":"upgrade","result":"done"}"#]),
        Restart("boot-2", &[r#"reply {"action":"upgrade","result":"done"}"#]),
        // The acknowledgement waits until the command is delivered to this process.
        On(stored(2), &["save idle"]),
        On(SAVED, &[]),
        On(upgrade(2), &["log command 2 is already settled and is acknowledged again", "ack a2"]),
    ]);
    check(steps);
}

#[test]
fn interrupted_upgrade_starts_are_bounded() {
    let mut bench = Bench::new();
    bench.take(started(Loaded::Nothing, "boot-1"));
    check_on(&mut bench, prepared());
    bench.take(upgrade(2));
    for _ in 1..10 {
        bench.restart("boot-1");
        assert_eq!(bench.take(SAVED), ["run upgrade resume"]);
    }
    assert_eq!(
        bench.restart("boot-1"),
        [
            "log upgrade (command 2) is answered: upgrade was cut off 10 times",
            "save answered upgrade was cut off 10 times #10"
        ]
    );
}

#[test]
fn interrupted_prepare_resumes_until_not_after() {
    let begin = || {
        vec![
            On(prepare(1), &["log prepare (command 1) begins", "save preparing #1"]),
            On(SAVED, &["run prepare"]),
            Restart(
                "boot-1",
                &["log prepare (command 1) was cut off and is resumed, attempt 2", "save preparing #2"],
            ),
        ]
    };
    check(then(begin(), vec![On(SAVED, &["run prepare resume"])]));
    check(then(
        begin(),
        vec![
            After(601, &[]),
            On(
                SAVED,
                &[
                    "log command 1 is acknowledged and not executed: its not-after, 2027-01-15 08:10:00 UTC, \
                     has passed",
                    "save idle",
                ],
            ),
        ],
    ));
}

#[test]
fn dropped_commands_have_a_reason() {
    let expired = r#"{"action":"prepare","hosts":["h1"],"not-after":"2027-01-15T07:59:59Z"}"#;
    let other = r#"{"action":"prepare","hosts":["h2"],"not-after":""}"#;
    let reason = |event: Event| {
        let mut bench = Bench::new();
        bench.take(started(Loaded::Nothing, "boot-1"));
        let mut lines = bench.take(event);
        assert_eq!(lines.pop().as_deref(), Some("ack a1"));
        assert_eq!(lines.len(), 1);
        lines[0].split_once("not executed: ").unwrap().1.to_owned()
    };
    assert_eq!(reason(command(1, "", expired)), "its not-after, 2027-01-15 07:59:59 UTC, has passed");
    assert_eq!(reason(command(1, "", other)), "it does not name h1");
    let upgrade_without_run = command(1, "", r#"{"action":"upgrade","host":"h1"}"#);
    assert_eq!(reason(upgrade_without_run), "no prepare was executed since the last upgrade");
    assert_eq!(reason(command(1, "", r#"{"action":"reboot","host":"h2"}"#)), "it does not name h1");
    assert!(reason(command(1, "", "nonsense")).starts_with("it is not a command: payload is not"));
    assert!(reason(command(1, "", r#"{"action":"explode"}"#)).contains("unknown variant `explode`"));
    let large = " ".repeat(2 << 20);
    assert!(reason(command(1, "", &large)).contains("exceeds the limit"));
}

#[test]
fn upgrade_needs_a_current_prepare_of_its_run() {
    check(then(
        upgraded_and_settled(),
        vec![On(
            upgrade(3),
            &[
                "log upgrade (command 3) is answered: no prepare was executed since the last upgrade; this worker has done \
                 nothing: its state was lost since, or another worker serves this host as well",
                "save answered no prepare was executed since the last upgrade; this worker has done \
                 nothing: its state was lost since, or another worker serves this host as well #1",
            ],
        )],
    ));
    check(then(
        prepared(),
        vec![On(
            command(2, "r2", r#"{"action":"upgrade","host":"h1"}"#),
            &[
                "log upgrade (command 2) is answered: the last prepare belongs to run r1; this worker has done nothing: \
                 its state was lost since, or another worker serves this host as well",
                "save answered the last prepare belongs to run r1; this worker has done nothing: \
                 its state was lost since, or another worker serves this host as well #1",
            ],
        )],
    ));
    check(then(
        prepared(),
        vec![
            After(601, &[]),
            On(
                upgrade(2),
                &[
                    "log command 2 is acknowledged and not executed: the not-after of its prepare, \
                     2027-01-15 08:10:00 UTC, has passed",
                    "ack a2",
                ],
            ),
        ],
    ));
}

/// An answer could contradict another worker that may have begun the upgrade.
#[test]
fn possibly_begun_unprepared_upgrade_gets_no_answer() {
    let answers = |loaded: Loaded, change: fn(&mut Received)| {
        let mut bench = Bench::new();
        bench.take(started(loaded, "boot-1"));
        bench.take(SAVED);
        let Event::CommandReceived(mut received) = upgrade(7) else { unreachable!() };
        change(&mut received);
        let lines = bench.take(Event::CommandReceived(received));
        lines.iter().any(|line| line.starts_with("save answered"))
    };
    assert!(answers(Loaded::Nothing, |_| {}));
    assert!(answers(Loaded::Nothing, |received| received.last_sequence_at_open = 6));
    assert!(
        !answers(Loaded::Nothing, |received| received.delivered = 2),
        "this consumer may have delivered it to another worker"
    );
    assert!(
        !answers(Loaded::Nothing, |received| received.last_sequence_at_open = 7),
        "an earlier consumer may have delivered it"
    );
    assert!(!answers(Loaded::Nothing, |received| received.run_header = None), "another controller sent it");
    assert!(
        !answers(Loaded::Corrupt { error: "cut off".to_owned() }, |_| {}),
        "this worker may have begun it"
    );
}

#[test]
fn commands_without_run_match_any_run() {
    check(then(
        prepared(),
        vec![
            On(
                command(2, "", r#"{"action":"upgrade","host":"h1"}"#),
                &["log upgrade (command 2) begins", "save upgrading #1"],
            ),
            On(SAVED, &["run upgrade"]),
        ],
    ));
}

#[test]
fn not_after_is_checked_again_after_saving() {
    check(then(
        prepared(),
        vec![
            On(upgrade(2), &["log upgrade (command 2) begins", "save upgrading #1"]),
            After(601, &["in-progress a2"]),
            On(
                SAVED,
                &[
                    "log command 2 is acknowledged and not executed: its not-after, 2027-01-15 08:10:00 UTC, \
                     has passed",
                    "ack a2",
                    "save idle",
                ],
            ),
        ],
    ));
}
