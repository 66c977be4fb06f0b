//! Processes are killed during a run: it completes, and each host is upgraded exactly once.

use std::collections::BTreeMap;

use harness::host::{APPLICATION, Host};
use harness::lock_server::{LockServer, Mode};
use harness::orchestrator::Orchestrator;
use harness::rest::Rest;
use harness::site::{Site, assert_one_by_one};
use harness::wait::eventually;
use nix::sys::signal::Signal;
use os_upgrade_protocol::{Announcement, ApplicationName, HostName, subject};
use serde_json::Value;

/// A running site of three hosts, the second of which reboots.
async fn site() -> (Site, Rest, Vec<Host>) {
    let site = Site::start().await;
    let mut hosts = vec![site.host("h01"), site.host("h02").reboots(), site.host("h03")];
    site.run(&mut hosts).await;
    let rest = site.rest();
    (site, rest, hosts)
}

/// The run completes: every host is upgraded exactly once, one by one, by exactly one command of each kind.
async fn assert_completed(site: &Site, rest: &Rest, hosts: &[Host], id: &str) {
    let run = rest.await_end(id).await;
    assert_eq!(run.result(), Some("completed"), "{}", run.0);
    let upgraded: BTreeMap<_, _> = hosts.iter().map(|host| (host.name(), "upgraded")).collect();
    assert_eq!(run.statuses(), upgraded);
    let mut commands = Vec::new();
    for host in hosts {
        let lines = host.script_log();
        let count = |what: &str| lines.iter().filter(|line| *line == what).count();
        let reboots = usize::from(host.name() == "h02");
        let counts = ["prepare", "upgrade-begins", "upgrade-ends", "reboot"].map(count);
        assert_eq!(counts, [1, 1, 1, reboots], "{}: {lines:?}", host.name());
        commands.extend(["prepare", "upgrade"].map(|action| format!("{} {action}", host.name())));
    }
    commands.push("h02 reboot".to_owned());
    commands.sort();
    let mut stored = site.commands().await;
    stored.sort();
    assert_eq!(stored, commands);
    assert_one_by_one(&site.script_log());
}

#[tokio::test]
async fn acknowledged_trigger_survives_kill() {
    let (mut site, rest, hosts) = site().await;
    assert_eq!(rest.trigger("").await, (204, Value::Null));
    site.orchestrator.kill().await;
    site.orchestrator.start_ready().await;
    let id = rest.newest_run().await;
    assert_completed(&site, &rest, &hosts, &id).await;
}

#[tokio::test]
async fn bus_killed_in_each_phase() {
    let (mut site, rest, hosts) = site().await;
    hosts[0].hold("prepare");
    hosts[0].hold("upgrade");
    hosts[1].hold("reboot");
    let id = rest.start_run().await;
    hosts[0].await_script("prepare").await;
    restart_nats(&mut site, &hosts[0], "prepare").await;
    hosts[0].await_script("upgrade-begins").await;
    restart_nats(&mut site, &hosts[0], "upgrade").await;
    hosts[1].await_script("reboot").await;
    restart_nats(&mut site, &hosts[1], "reboot").await;
    assert_completed(&site, &rest, &hosts, &id).await;
}

/// Kills the bus, releases the held script while the bus is away, and starts the bus again.
async fn restart_nats(site: &mut Site, host: &Host, script: &str) {
    site.nats.kill();
    eventually("the loss to be noticed", async || {
        (site.orchestrator.readiness().await? == "NATS is unreachable").then_some(())
    })
    .await;
    host.release(script);
    site.nats.start_again().await;
}

#[tokio::test]
async fn run_survives_simultaneous_kill() {
    let (mut site, rest, hosts) = site().await;
    hosts[0].hold("upgrade");
    let id = rest.start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    site.nats.kill();
    site.orchestrator.kill().await;
    hosts[0].kill_worker();
    hosts[2].kill_worker();
    site.nats.start_again().await;
    site.orchestrator.start_ready().await;
    hosts[0].await_script("upgrade-resumed").await;
    hosts[0].release("upgrade");
    assert_completed(&site, &rest, &hosts, &id).await;
}

#[tokio::test]
async fn worker_killed_in_each_phase() {
    let (site, rest, hosts) = site().await;
    hosts[1].hold("upgrade");
    hosts[1].hold("reboot");
    let id = rest.start_run().await;
    hosts[1].await_script("upgrade-begins").await;
    hosts[1].kill_worker();
    hosts[1].await_script("upgrade-resumed").await;
    hosts[1].kill_worker();
    eventually("it to be resumed again", async || {
        let resumed = hosts[1].script_log().into_iter().filter(|line| line == "upgrade-resumed");
        (resumed.count() == 2).then_some(())
    })
    .await;
    hosts[1].release("upgrade");
    hosts[1].await_script("reboot").await;
    hosts[1].release("reboot");
    assert_completed(&site, &rest, &hosts, &id).await;
}

#[tokio::test]
async fn run_survives_graceful_shutdown() {
    let (mut site, rest, hosts) = site().await;
    hosts[0].hold("upgrade");
    let id = rest.start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    assert_eq!(site.orchestrator.terminate().await.code(), Some(0));
    hosts[0].release("upgrade");
    hosts[0].await_script("upgrade-ends").await;
    site.orchestrator.start();
    assert_completed(&site, &rest, &hosts, &id).await;
}

#[tokio::test]
async fn managed_bus_survives_kill_with_orchestrator() {
    let mut orchestrator = Orchestrator::managed();
    orchestrator.start_ready().await;
    let url = orchestrator.managed_nats();
    let rest = orchestrator.rest.clone();
    rest.configure(APPLICATION).await;
    let log = orchestrator.directory().join("said");
    let mut hosts = [Host::new(&url, &log, "h01").reboots(), Host::new(&url, &log, "h02")];
    hosts[0].hold("upgrade");
    for host in &mut hosts {
        host.start();
    }
    rest.await_scheduled(&["h01", "h02"]).await;
    let id = rest.start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    orchestrator.kill().await;
    hosts[0].release("upgrade");
    hosts[0].await_script("upgrade-ends").await;
    orchestrator.start_ready().await;
    assert_eq!(orchestrator.managed_nats(), url);
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(hosts[0].script_log(), ["prepare", "upgrade-begins", "upgrade-ends", "reboot"]);
    assert_eq!(hosts[1].script_log(), ["prepare", "upgrade-begins", "upgrade-ends"]);
    assert_eq!(orchestrator.terminate().await.code(), Some(0));
}

/// A host whose announcement has not been read when a run starts would be silently left out.
#[tokio::test]
async fn run_after_restart_includes_all_hosts() {
    // Enough that leadership begins before all are read.
    const HOSTS: usize = 10_000;
    let mut site = Site::start().await;
    let rest = site.rest();
    let application = ApplicationName::new(APPLICATION).unwrap();
    for number in 0..HOSTS {
        let host = HostName::new(&format!("h{number:05}")).unwrap();
        let announcement = Announcement::new(host.clone(), application.clone());
        let subject = subject::worker(&application, &host);
        let acked = site.jetstream().publish(subject, announcement.to_payload().into()).await.unwrap();
        if number % 500 == 499 {
            acked.await.unwrap();
        }
    }
    site.orchestrator.kill().await;
    site.orchestrator.start_ready().await;
    rest.start_run().await;
    let state = rest.state().await;
    assert_eq!(state["current-upgrade-info"]["hosts"].as_array().unwrap().len(), HOSTS);
}

/// Too slow for `make test`: `make test-at-length` runs these, and so does `make soak`.
mod at_length {
    use super::*;

    #[tokio::test]
    async fn orchestrator_killed_during_prepare() {
        let (mut site, rest, hosts) = site().await;
        for host in &hosts {
            host.hold("prepare");
        }
        let id = rest.start_run().await;
        for host in &hosts {
            host.await_script("prepare").await;
        }
        site.orchestrator.kill().await;
        // Two answers while no orchestrator runs, and one later.
        hosts[0].release("prepare");
        hosts[1].release("prepare");
        site.orchestrator.start_ready().await;
        hosts[2].release("prepare");
        assert_completed(&site, &rest, &hosts, &id).await;
    }

    #[tokio::test]
    async fn orchestrator_killed_during_upgrade() {
        let (mut site, rest, hosts) = site().await;
        hosts[0].hold("upgrade");
        let id = rest.start_run().await;
        hosts[0].await_script("upgrade-begins").await;
        site.orchestrator.kill_and_start().await;
        site.orchestrator.ready().await;
        hosts[0].release("upgrade");
        assert_completed(&site, &rest, &hosts, &id).await;
    }

    #[tokio::test]
    async fn orchestrator_killed_during_reboot() {
        let (mut site, rest, hosts) = site().await;
        hosts[1].hold("reboot");
        let id = rest.start_run().await;
        hosts[1].await_script("reboot").await;
        site.orchestrator.kill().await;
        hosts[1].release("reboot");
        site.orchestrator.start();
        assert_completed(&site, &rest, &hosts, &id).await;
    }

    #[tokio::test]
    async fn orchestrator_killed_around_the_grant() {
        let locks = LockServer::start(Mode::Full).await;
        let mut site = Site::start_with(&locks.config()).await;
        let rest = site.rest();
        let mut hosts = vec![site.host("h01"), site.host("h02").reboots(), site.host("h03")];
        site.run(&mut hosts).await;
        let id = rest.start_run().await;
        rest.await_reason("h01", "slot-denied").await;
        site.orchestrator.kill_and_start().await;
        site.orchestrator.ready().await;
        rest.await_reason("h01", "slot-denied").await;
        // Killed whenever a slot is granted: neither the slot nor the command is lost or duplicated.
        locks.set_mode(Mode::Granted);
        for host in ["h01", "h02", "h03"] {
            let granted = format!("lock default/{host}");
            eventually(&granted, async || locks.calls().contains(&granted).then_some(())).await;
            site.orchestrator.kill_and_start().await;
            site.orchestrator.ready().await;
        }
        assert_completed(&site, &rest, &hosts, &id).await;
        eventually("the last slot to be released", async || {
            (locks.calls().last()? == "unlock default/h03").then_some(())
        })
        .await;
        for host in ["h01", "h02", "h03"] {
            let unlocked = format!("unlock default/{host}");
            assert!(locks.calls().contains(&unlocked), "{:?}", locks.calls());
        }
    }

    #[tokio::test]
    async fn bus_hangs_longer_than_the_lease() {
        let (site, rest, hosts) = site().await;
        hosts[0].hold("upgrade");
        let id = rest.start_run().await;
        hosts[0].await_script("upgrade-begins").await;
        site.nats.signal(Signal::SIGSTOP);
        eventually("the leadership to end", async || {
            site.orchestrator.log().contains("no longer leading").then_some(())
        })
        .await;
        hosts[0].release("upgrade");
        hosts[0].await_script("upgrade-ends").await;
        site.nats.signal(Signal::SIGCONT);
        assert_completed(&site, &rest, &hosts, &id).await;
    }
}
