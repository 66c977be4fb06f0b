//! The machine of nats-server and orchestrator is rolled back to an earlier moment, as by a snapshot of its disks, and the
//! hosts are not: the run goes on, and no host does anything twice.

use harness::host::Host;
use harness::site::Site;

/// What a host does in a run: the script, and the line that it logs when it begins.
type Step = (&'static str, &'static str);

const PREPARE: Step = ("prepare", "prepare");
const UPGRADE: Step = ("upgrade", "upgrade-begins");
const REBOOT: Step = ("reboot", "reboot");

fn times(host: &Host, (_, line): Step) -> usize {
    host.script_log().iter().filter(|logged| *logged == line).count()
}

/// The machine is saved while h01 is in step `saved`, and rolled back while it is in step `until`, or after the run.
async fn run_goes_on(saved: Step, until: Option<Step>) {
    let mut site = Site::start().await;
    let mut hosts = vec![site.host("h01").reboots(), site.host("h02")];
    site.run(&mut hosts).await;
    hosts[0].hold(saved.0);
    let id = site.rest().start_run().await;
    hosts[0].await_script(saved.1).await;
    let machine = site.save_machine().await;
    if let Some(until) = until {
        hosts[0].hold(until.0);
        hosts[0].release(saved.0);
        hosts[0].await_script(until.1).await;
        site.put_machine_back(&machine).await;
        hosts[0].release(until.0);
    } else {
        hosts[0].release(saved.0);
        site.rest().await_end(&id).await;
        site.put_machine_back(&machine).await;
    }
    let run = site.rest().await_end(&id).await;
    assert_eq!(run.result(), Some("completed"), "{:?}", run.reasons());
    assert!(hosts[0].log().contains("was answered before and is answered again"));
    for host in &hosts {
        let reboots = usize::from(host.name() == "h01");
        assert_eq!(
            [PREPARE, UPGRADE, REBOOT].map(|step| times(host, step)),
            [1, 1, reboots],
            "{}",
            host.name()
        );
    }
}

#[tokio::test]
async fn lost_answers_are_given_again() {
    for saved in [PREPARE, UPGRADE, REBOOT] {
        run_goes_on(saved, None).await;
    }
}

/// The orchestrator sends again what the host is already at work on.
#[tokio::test]
async fn lost_commands_are_not_repeated() {
    for (saved, until) in [(PREPARE, UPGRADE), (PREPARE, REBOOT), (UPGRADE, REBOOT)] {
        run_goes_on(saved, Some(until)).await;
    }
}

/// The commands of the second run have sequences at which the hosts have seen those of the first.
#[tokio::test]
async fn new_run_follows_rolled_back_machine() {
    let mut site = Site::start().await;
    let mut hosts = vec![site.host("h01").reboots(), site.host("h02")];
    site.run(&mut hosts).await;
    let machine = site.save_machine().await;
    let lost = site.rest().start_run().await;
    site.rest().await_end(&lost).await;
    site.put_machine_back(&machine).await;
    site.rest().await_scheduled(&["h01", "h02"]).await;
    assert_eq!(site.rest().newest_run_or_none().await, None, "nobody remembers the run");
    let id = site.rest().start_run().await;
    let run = site.rest().await_end(&id).await;
    assert_eq!(run.result(), Some("completed"), "{:?}", run.reasons());
    for host in &hosts {
        assert_eq!([PREPARE, UPGRADE].map(|step| times(host, step)), [2, 2], "{}", host.name());
    }
}
