//! Reboots: detected by the boot id, limited in number, followed by a health check.

use os_upgrade_worker_rules::{BootId, Event, HandlerResult};

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
            On(stored(3), &["ack a3"]),
            On(acked(3), &["save idle"]),
            On(SAVED, &[]),
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
                    "log reboot (command 3) is answered: error: done",
                    "save answered error: done #1",
                ],
            ),
            On(SAVED, &[r#"reply {"action":"reboot","result":"error: done"}"#]),
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
