//! Reboots: detected by the boot id, limited in number, followed by a health check.

use os_upgrade_worker_rules::{BootId, Event, HandlerResult, Loaded};

use crate::bench::*;

#[test]
fn reboot_is_detected_by_boot_id() {
    check(then(
        rebooting(),
        vec![
            Restart("boot-2", &["log reboot (command 3): the host has rebooted", "save checking #1"]),
            On(SAVED, &["run health"]),
            On(
                finished(3, HandlerResult::Health(Ok(()))),
                &["log reboot (command 3) is answered: done", "save answered done #1"],
            ),
            On(SAVED, &[r#"reply {"action":"reboot","result":"done"}"#]),
            On(stored(3), &["save idle"]),
            On(SAVED, &[]),
            On(reboot(3), &["log command 3 is already settled and is acknowledged again", "ack a3"]),
            // For the run's second reboot command no reboot is due.
            On(
                reboot(4),
                &[
                    "log reboot (command 4): no reboot is due, so it counts as done if the host is healthy",
                    "log reboot (command 4) begins",
                    "save checking #1",
                ],
            ),
        ],
    ));
}

#[test]
fn remote_worker_sees_boot_id_change() {
    check(then(
        rebooting(),
        vec![
            On(Event::BootIdRead(BootId("boot-1".to_owned())), &[]),
            On(
                Event::BootIdRead(BootId("boot-2".to_owned())),
                &["log reboot (command 3): the host has rebooted", "save checking #1"],
            ),
        ],
    ));
}

#[test]
fn failed_health_check_is_an_error() {
    check(then(
        rebooting(),
        vec![
            Restart("boot-2", &["log reboot (command 3): the host has rebooted", "save checking #1"]),
            On(SAVED, &["run health"]),
            On(
                finished(3, HandlerResult::Health(Err("done".to_owned()))),
                &[
                    "log health failed: done",
                    "log reboot (command 3) is answered: unhealthy: error: done",
                    "save answered unhealthy: error: done #1",
                ],
            ),
            On(SAVED, &[r#"reply {"action":"reboot","result":"unhealthy: error: done"}"#]),
        ],
    ));
}

#[test]
fn missing_reboot_is_tried_three_times() {
    check(then(
        rebooting(),
        vec![
            After(59, &["in-progress a3"]),
            After(1, &["log reboot (command 3): the host has not rebooted, attempt 1", "save rebooting #2"]),
            On(SAVED, &["reboot resume"]),
            Restart(
                "boot-1",
                &["log reboot (command 3): the host has not rebooted, attempt 2", "save rebooting #3"],
            ),
            On(SAVED, &["reboot resume"]),
            Restart(
                "boot-1",
                &[
                    "log reboot (command 3): the host has not rebooted, attempt 3",
                    "log reboot (command 3) is answered: the host did not reboot: its boot id is \
                     unchanged after 3 attempts",
                    "save answered the host did not reboot: its boot id is unchanged after 3 attempts #3",
                ],
            ),
        ],
    ));
}

#[test]
fn step_of_the_clock_is_no_missing_reboot() {
    check(then(
        rebooting(),
        vec![ClockSteps(500, &[]), ClockSteps(-100_000, &[]), After(10, &["in-progress a3"])],
    ));
}

#[test]
fn reboot_is_not_retried_after_not_after() {
    check(then(
        rebooting(),
        vec![
            After(
                601,
                &[
                    "in-progress a3",
                    "log reboot (command 3): the host has not rebooted, attempt 1",
                    "save rebooting #2",
                ],
            ),
            On(
                SAVED,
                &[
                    "log reboot (command 3) is answered: the host did not reboot before not-after",
                    "save answered the host did not reboot before not-after #2",
                ],
            ),
        ],
    ));
}

#[test]
fn failure_to_start_reboot_is_an_error() {
    let mut steps = rebooting();
    steps.pop();
    let failed = Event::RebootReturned { sequence: 3, result: Err("no".to_owned()) };
    steps.push(On(failed, &["log reboot (command 3) is answered: no", "save answered no #1"]));
    check(steps);
}

/// A reboot of h1 that names the boot to leave, without an upgrade before it.
fn requested(leave: &str) -> Event {
    command(1, "", &format!(r#"{{"action":"reboot","host":"h1","boot-id":"{leave}"}}"#))
}

#[test]
fn requested_reboot_leaves_the_named_boot() {
    check(vec![
        On(requested("boot-1"), &["log reboot (command 1) begins", "save rebooting #1"]),
        On(SAVED, &["reboot"]),
        Restart("boot-2", &["log reboot (command 1): the host has rebooted", "save checking #1"]),
        On(SAVED, &["run health"]),
        On(
            finished(1, HandlerResult::Health(Ok(()))),
            &["log reboot (command 1) is answered: done", "save answered done #1"],
        ),
    ]);
}

#[test]
fn requested_reboot_of_another_boot_is_done() {
    check(vec![
        On(
            requested("boot-0"),
            &[
                "log reboot (command 1): no reboot is due, so it counts as done if the host is healthy",
                "log reboot (command 1) begins",
                "save checking #1",
            ],
        ),
        On(SAVED, &["run health"]),
    ]);
    check(vec![On(
        requested(""),
        &[
            "log reboot (command 1) is answered: the command names an empty boot id",
            "save answered the command names an empty boot id #1",
        ],
    )]);
}

/// The state file could not be saved at first, and meanwhile the host has left the boot.
#[test]
fn host_that_rebooted_meanwhile_is_not_rebooted_again() {
    check(vec![
        On(requested("boot-1"), &["log reboot (command 1) begins", "save rebooting #1"]),
        On(
            Event::StateSaveFailed { error: "full".to_owned() },
            &["log the state file cannot be saved, attempt 1: full"],
        ),
        On(Event::BootIdRead(BootId("boot-2".to_owned())), &[]),
        After(1, &["save rebooting #1"]),
        On(SAVED, &["log reboot (command 1): the host has rebooted", "save checking #1"]),
        On(SAVED, &["run health"]),
    ]);
}

/// The boot id tells what a lost state file cannot.
#[test]
fn requested_reboot_needs_no_state_file() {
    let mut bench = Bench::new();
    bench.take(started(Loaded::Corrupt { error: "it is empty".to_owned() }, "boot-1"));
    check_on(
        &mut bench,
        vec![
            On(SAVED, &[]),
            On(requested("boot-1"), &["log reboot (command 1) begins", "save rebooting #1"]),
            On(SAVED, &["reboot"]),
        ],
    );
}
