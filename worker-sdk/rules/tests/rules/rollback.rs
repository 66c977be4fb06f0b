//! Stream and orchestrator rolled back to an earlier moment, and the worker not: what was answered is answered again, and
//! what is new is carried out, whatever its sequence.

use os_upgrade_protocol::{Action, CommandId, RunId};
use os_upgrade_worker_rules::{Event, Received};

use crate::bench::*;

/// `command` as delivered over the second connection.
fn later(command: Event) -> Received {
    let Event::CommandReceived(received) = command else { unreachable!("it is a command") };
    Received { connection: 2, ..received }
}

/// `command` over the second connection, stored at second `published` as this attempt of its action in run r1.
fn identified(command: Event, published: i64, action: Action, attempt: u32) -> Event {
    let id = CommandId { run: RunId::new("r1").unwrap(), host: host(), action, attempt };
    let received = later(command);
    Event::CommandReceived(Received { published: at(published), id_header: Some(id.to_string()), ..received })
}

fn without_id(command: Event, published: i64) -> Event {
    Event::CommandReceived(Received { published: at(published), ..later(command) })
}

const ANSWERED: &[&str] =
    &["log upgrade (command 2) was answered before and is answered again: reboot-required", REQUIRED_SAVED];
const REQUIRED_SAVED: &str = "save answered reboot-required #1";
const REBOOT_REQUIRED: &str = r#"reply {"action":"upgrade","result":"reboot-required"}"#;

#[test]
fn each_connection_gets_one_answer_again() {
    check(then(
        upgraded_and_settled(),
        vec![
            On(upgrade(2), &["log command 2 is already settled and is acknowledged again", "ack a2"]),
            On(without_id(upgrade(2), -98), ANSWERED),
            On(SAVED, &[REBOOT_REQUIRED]),
            On(stored(2), &["ack a2"]),
            On(acked(2), &["save idle"]),
            On(SAVED, &[]),
            On(
                without_id(upgrade(2), -98),
                &["log command 2 is already settled and is acknowledged again", "ack a2"],
            ),
            // What follows builds on the upgrade as before.
            On(reboot(3), &["log reboot (command 3) begins", "save rebooting #1"]),
        ],
    ));
}

#[test]
fn command_sent_again_is_known_by_its_id() {
    let run_prepare = |sequence, published| identified(prepare(sequence), published, Action::Prepare, 1);
    check(vec![
        On(run_prepare(7, 0), &["log prepare (command 7) begins", "save preparing #1"]),
        On(SAVED, &["run prepare"]),
        // The orchestrator does not know that it has sent it.
        On(run_prepare(4, 10), &["log command 4 waits until command 7 is settled"]),
        On(
            finished(7, os_upgrade_worker_rules::HandlerResult::Prepare(Ok(()))),
            &["log prepare (command 7) is answered: done", "save answered done #1"],
        ),
        On(SAVED, &[r#"reply {"action":"prepare","result":"done"}"#]),
        On(stored(7), &["save idle"]),
        On(
            SAVED,
            &[
                "log prepare (command 4) was answered before and is answered again: done",
                "save answered done #1",
            ],
        ),
        // Also after a crash.
        Restart("boot-1", &[r#"reply {"action":"prepare","result":"done"}"#]),
        On(stored(4), &["save idle"]),
        On(SAVED, &[]),
        // A second attempt is another command.
        On(
            identified(prepare(5), 20, Action::Prepare, 2),
            &["log prepare (command 5) begins", "save preparing #1"],
        ),
    ]);
}

/// Of a controller that gives one id to several commands.
#[test]
fn id_of_another_action_identifies_nothing() {
    check(vec![
        On(
            identified(prepare(1), 0, Action::Prepare, 1),
            &["log prepare (command 1) begins", "save preparing #1"],
        ),
        On(SAVED, &["run prepare"]),
        On(
            finished(1, os_upgrade_worker_rules::HandlerResult::Prepare(Ok(()))),
            &["log prepare (command 1) is answered: done", "save answered done #1"],
        ),
        On(SAVED, &[r#"reply {"action":"prepare","result":"done"}"#]),
        On(stored(1), &["ack a1"]),
        On(acked(1), &["save idle"]),
        On(SAVED, &[]),
        On(
            identified(upgrade(2), 10, Action::Prepare, 1),
            &["log upgrade (command 2) begins", "save upgrading #1"],
        ),
    ]);
}

#[test]
fn new_command_at_old_sequence_is_executed() {
    check(then(
        upgraded_and_settled(),
        vec![
            On(without_id(prepare(2), 10), &["log prepare (command 2) begins", "save preparing #1"]),
            On(SAVED, &["run prepare"]),
        ],
    ));
}

/// The server knows acknowledgements by sequence: one for the lost command would settle the new one.
#[test]
fn lost_command_is_not_acknowledged() {
    let mut steps = prepared();
    steps.extend([
        On(upgrade(2), &["log upgrade (command 2) begins", "save upgrading #1"]),
        On(SAVED, &["run upgrade"]),
        On(without_id(prepare(2), 10), &["log command 2 waits until command 2 is settled"]),
        On(
            upgraded(2),
            &["log upgrade (command 2) is answered: reboot-required", "save answered reboot-required #1"],
        ),
        On(SAVED, &["save idle"]),
        On(SAVED, &["log prepare (command 2) begins", "save preparing #1"]),
    ]);
    check(steps);
}

/// An acknowledgement that is on its way counts for the command that the stream has in place of the lost one, which is
/// therefore begun with the next save.
#[test]
fn late_ack_does_not_lose_new_command() {
    let mut steps = upgraded_and_settled();
    steps.truncate(steps.len() - 2);
    steps.extend([
        On(without_id(prepare(2), 10), &["log prepare (command 2) begins", "save preparing #1"]),
        Restart(
            "boot-1",
            &["log prepare (command 2) was cut off and is resumed, attempt 2", "save preparing #2"],
        ),
    ]);
    check(steps);
}
