//! Reboots and the health checks after them, which are the same for every kind of host that is not upgraded by scripts.

use std::fmt::Write;
use std::time::Duration;

use futures::StreamExt;
use harness::nats_server::NatsServer;
use harness::wait::{PATIENCE, eventually};
use harness::worker::WorkerHost;
use os_upgrade_protocol::{Progress, subject};
use serde_json::json;

use super::image::{BOOTC, UNLOCKED, boot, bootc, bootc_status, entry, host, upgrade, write};

/// A unit in the list of those that have failed.
fn unit(name: &str) -> String {
    format!("{name}.service loaded failed failed {name}\n")
}

/// A host on which `old.service` has failed, and whose worker does not run yet.
async fn host_with_failed_unit(server: &NatsServer, more: &[&str]) -> WorkerHost {
    let more = [&["--health-wait", "1s"], more].concat();
    let host = host(server, &[("bootc", BOOTC)], &more).await;
    bootc(&host, true);
    write(&host, "failed", &unit("old"));
    host
}

/// A host whose upgrade has required a reboot.
async fn host_requiring_reboot(server: &NatsServer, more: &[&str]) -> WorkerHost {
    let mut host = host_with_failed_unit(server, more).await;
    host.start();
    host.prepared("run-1").await;
    assert_eq!(upgrade(&host, "run-1").await, "reboot-required");
    host
}

/// Lets another unit fail.
fn fail(host: &WorkerHost, name: &str) {
    let mut failed = std::fs::read_to_string(host.path("failed")).unwrap();
    write!(failed, "{}", unit(name)).unwrap();
    write(host, "failed", &failed);
}

/// Requests a reboot out of the boot `leave`, as the reboot queue does.
async fn request(host: &WorkerHost, entry: &str, leave: &str) -> u64 {
    let command = json!({ "action": "reboot", "host": host.host, "boot-id": leave }).to_string();
    host.send(entry, &command).await
}

/// Carries out the requested reboot, into the boot `to`.
async fn carry_out(host: &mut WorkerHost, to: &str) {
    host.await_file("rebooting").await;
    host.kill();
    std::fs::remove_file(host.path("rebooting")).unwrap();
    host.boot(to);
    host.start();
}

#[tokio::test]
async fn reboot_is_answered_when_healthy() {
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &[("bootc", BOOTC)], &[]).await;
    bootc(&host, true);
    host.start();
    host.prepared("run-1").await;
    assert_eq!(upgrade(&host, "run-1").await, "reboot-required");
    host.script("is-well", "test -e ../well || { echo 'the shop is closed' >&2; exit 1; }");
    let script = host.scripts().join("is-well");
    host = host.with_options(&["--health-script", script.to_str().unwrap()]);
    let reboot = host.send("run-1", &host.reboot()).await;
    host.await_file("rebooting").await;
    write(&host, "systemd", "starting\n");
    boot(&mut host, "booted.json");
    host.await_log("not healthy yet: systemd is still starting units").await;
    write(&host, "systemd", "");
    host.await_log("not healthy yet: systemd does not answer: ").await;
    write(&host, "systemd", "degraded\n");
    host.await_log("not healthy yet: the shop is closed").await;
    assert_eq!(host.replies_to(reboot).await, 0);
    host.touch("well");
    assert_eq!(host.result_of(reboot).await, "done");
}

#[tokio::test]
async fn upgrade_is_compared_with_what_stood_before_it() {
    let server = NatsServer::with_streams().await;
    let mut host = host_requiring_reboot(&server, &[]).await;
    fail(&host, "new");
    let reboot = host.send("run-1", &host.reboot()).await;
    host.await_file("rebooting").await;
    boot(&mut host, "booted.json");
    assert_eq!(
        host.result_of(reboot).await,
        "unhealthy: units have failed since the upgrade began: new.service; see systemctl status"
    );
}

#[tokio::test]
async fn requested_reboot_is_compared_with_what_stood_before_it() {
    let server = NatsServer::with_streams().await;
    let mut host = host_with_failed_unit(&server, &[]).await;
    host.start();
    let reboot = request(&host, "entry-1", "boot-1").await;
    carry_out(&mut host, "boot-2").await;
    assert_eq!(host.result_of(reboot).await, "done");

    // A run whose reboot is healthy, after which another unit fails.
    host.prepared("run-1").await;
    assert_eq!(upgrade(&host, "run-1").await, "reboot-required");
    let reboot = host.send("run-1", &host.reboot()).await;
    host.await_file("rebooting").await;
    std::fs::copy(host.path("booted.json"), host.path("status.json")).unwrap();
    carry_out(&mut host, "boot-3").await;
    assert_eq!(host.result_of(reboot).await, "done");
    fail(&host, "weeks-later");
    let reboot = request(&host, "entry-2", "boot-3").await;
    carry_out(&mut host, "boot-4").await;
    assert_eq!(host.result_of(reboot).await, "done");

    let reboot = request(&host, "entry-3", "boot-4").await;
    host.await_file("rebooting").await;
    fail(&host, "new");
    // It is tried again by the next worker. What failed while the host was going down has not failed before the reboot.
    host.kill();
    std::fs::remove_file(host.path("rebooting")).unwrap();
    host.start();
    carry_out(&mut host, "boot-5").await;
    assert_eq!(
        host.result_of(reboot).await,
        "unhealthy: units have failed since the reboot began: new.service; see systemctl status"
    );
}

/// Waits until the worker has recorded the boot and the first of the units that failed in it.
async fn await_seen(host: &WorkerHost, boot: &str, unit: &str) {
    let begins = format!(r#"[{{"boot":"{boot}","failed-units":["{unit}""#);
    eventually("the record of this boot", async || {
        let seen = std::fs::read_to_string(host.path("state/i1.seen")).ok()?;
        seen.starts_with(&begins).then_some(())
    })
    .await;
}

#[tokio::test]
async fn unannounced_reboot_is_compared_with_the_boot_before() {
    let server = NatsServer::with_streams().await;
    let mut host = host_with_failed_unit(&server, &[]).await;
    host.start();
    await_seen(&host, "boot-1", "old.service").await;
    // Somebody else reboots the host before the requests arrive.
    host.kill();
    host.boot("boot-2");
    host.start();
    let reboot = request(&host, "entry-1", "boot-1").await;
    assert_eq!(host.result_of(reboot).await, "done");
    fail(&host, "new");
    let reboot = request(&host, "entry-2", "boot-1").await;
    assert_eq!(
        host.result_of(reboot).await,
        "unhealthy: units have failed that had not in the boot before: new.service; see systemctl status"
    );

    // Without a record of the boot before, every failure counts.
    host.kill();
    std::fs::remove_file(host.path("state/i1.seen")).unwrap();
    host.start();
    let reboot = request(&host, "entry-3", "boot-1").await;
    assert_eq!(
        host.result_of(reboot).await,
        "unhealthy: units have failed: new.service, old.service; nothing was recorded before this boot, so every failure \
         counts; repair them, or call systemctl reset-failed"
    );
    write(&host, "failed", "");
    let reboot = request(&host, "entry-4", "boot-1").await;
    assert_eq!(host.result_of(reboot).await, "done");
}

#[tokio::test]
async fn broken_units_count_after_unannounced_reboot() {
    let server = NatsServer::with_streams().await;
    let mut host = host_that_breaks(&server).await;
    assert_eq!(upgrade(&host, "run-1").await, "reboot-required");
    await_seen(&host, "boot-1", "broken.service").await;
    host.kill();
    host.boot("boot-2");
    host.start();
    let reboot = request(&host, "entry-1", "boot-1").await;
    assert_eq!(
        host.result_of(reboot).await,
        "unhealthy: units have failed since the upgrade before this reboot: broken.service; see systemctl status"
    );
}

/// A prepared host whose upgrade breaks `broken.service`.
async fn host_that_breaks(server: &NatsServer) -> WorkerHost {
    let stage =
        r#"case "$*" in *--from-downloaded) echo 'broken.service loaded failed failed x' >>failed ;; esac"#;
    let tools = [("bootc", &*format!("{stage}\n{BOOTC}"))];
    let mut host = host(server, &tools, &["--health-wait", "1s"]).await;
    bootc(&host, true);
    write(&host, "failed", &unit("old"));
    host.start();
    host.prepared("run-1").await;
    host
}

#[tokio::test]
async fn what_an_upgrade_broke_is_noticed_after_a_later_reboot() {
    let server = NatsServer::with_streams().await;
    let mut host = host_that_breaks(&server).await;
    assert_eq!(upgrade(&host, "run-1").await, "reboot-required");
    // The run ends before its reboot, and another unit fails.
    fail(&host, "later");
    let reboot = request(&host, "entry-1", "boot-1").await;
    std::fs::copy(host.path("booted.json"), host.path("status.json")).unwrap();
    carry_out(&mut host, "boot-2").await;
    assert_eq!(
        host.result_of(reboot).await,
        "unhealthy: units have failed since the upgrade before this reboot: broken.service; see systemctl status"
    );
    // It is known by now.
    let reboot = request(&host, "entry-2", "boot-2").await;
    carry_out(&mut host, "boot-3").await;
    assert_eq!(host.result_of(reboot).await, "done");

    // Another run breaks it again, and somebody else reboots the host: weeks later it is an old failure.
    write(&host, "failed", &unit("old"));
    bootc(&host, true);
    host.prepared("run-2").await;
    assert_eq!(upgrade(&host, "run-2").await, "reboot-required");
    host.kill();
    host.boot("boot-4");
    host.start();
    let reboot = request(&host, "entry-3", "boot-4").await;
    carry_out(&mut host, "boot-5").await;
    assert_eq!(host.result_of(reboot).await, "done");
}

#[tokio::test]
async fn image_of_an_earlier_run_does_not_count() {
    let server = NatsServer::with_streams().await;
    let mut host = host_requiring_reboot(&server, &[]).await;
    let reboot = host.send("run-1", &host.reboot()).await;
    std::fs::copy(host.path("booted.json"), host.path("status.json")).unwrap();
    carry_out(&mut host, "boot-2").await;
    assert_eq!(host.result_of(reboot).await, "done");
    // A timer of the host upgrades it further.
    write(&host, "status.json", &bootc_status(&entry("cccc", "41.3", UNLOCKED), "null"));
    let reboot = request(&host, "entry-1", "boot-2").await;
    carry_out(&mut host, "boot-3").await;
    assert_eq!(host.result_of(reboot).await, "done");
}

const BORG: &str =
    r#"a(ssssuu) 2 "shutdown:sleep" "borg" "nightly backup" "block" 0 4711 "shutdown" "apt" "" "delay" 0 9"#;

#[tokio::test]
async fn reboot_waits_for_inhibitors() {
    let server = NatsServer::with_streams().await;
    let mut host = host_requiring_reboot(&server, &[]).await;
    write(&host, "inhibitors", BORG);
    let mut progress = host.client().subscribe(subject::progress(&host.host)).await.unwrap();
    let reboot = host.send("run-1", &host.reboot()).await;
    let said = "the reboot is inhibited by borg (process 4711: nightly backup); waiting for at most 1m";
    host.await_log(said).await;
    let expected = Progress::new(reboot, None, said);
    while let Some(message) = tokio::time::timeout(PATIENCE, progress.next()).await.unwrap()
        && Progress::parse(&message.payload).unwrap() != expected
    {}
    assert!(!host.path("rebooting").exists());
    std::fs::remove_file(host.path("inhibitors")).unwrap();
    host.await_file("rebooting").await;
    boot(&mut host, "booted.json");
    assert_eq!(host.result_of(reboot).await, "done");
}

#[tokio::test]
async fn reboot_fails_while_it_is_inhibited() {
    let server = NatsServer::with_streams().await;
    let host = host_requiring_reboot(&server, &["--inhibitor-wait", "1s"]).await;
    write(&host, "inhibitors", BORG);
    let reboot = host.send("run-1", &host.reboot()).await;
    assert_eq!(
        host.result_of(reboot).await,
        "the reboot is inhibited by borg (process 4711: nightly backup), for longer than 1s; end that, wait longer with \
         --inhibitor-wait, or reboot despite it with --ignore-inhibitors"
    );
    assert!(!host.path("rebooting").exists());

    let server = NatsServer::with_streams().await;
    let ending = host_requiring_reboot(&server, &["--inhibitor-wait", "1h"]).await;
    write(&ending, "inhibitors", BORG);
    let not_after = chrono::Utc::now() + Duration::from_secs(2);
    let command = json!({ "action": "reboot", "host": ending.host, "not-after": not_after }).to_string();
    let reboot = ending.send("run-1", &command).await;
    assert_eq!(
        ending.result_of(reboot).await,
        "the reboot is inhibited by borg (process 4711: nightly backup), and the run has ended; the host was not rebooted"
    );

    let server = NatsServer::with_streams().await;
    let mut hasty = host_requiring_reboot(&server, &["--ignore-inhibitors"]).await;
    write(&hasty, "inhibitors", BORG);
    let reboot = hasty.send("run-1", &hasty.reboot()).await;
    hasty.await_file("rebooting").await;
    boot(&mut hasty, "booted.json");
    assert_eq!(hasty.result_of(reboot).await, "done");
}

#[tokio::test]
async fn reboot_is_not_begun_without_knowing_who_inhibits_it() {
    let server = NatsServer::with_streams().await;
    let mut host = host_requiring_reboot(&server, &["--inhibitor-wait", "1s"]).await;
    let answers = |owned: &str| {
        host.script(
            "busctl",
            &format!("case \"$*\" in *NameHasOwner*) echo 'b {owned}' ;; *) echo 'Call failed: timed out' >&2; exit 1 ;; esac"),
        );
    };
    answers("true");
    let reboot = host.send("run-1", &host.reboot()).await;
    let result = host.result_of(reboot).await;
    let unknown = "logind does not say what holds up the reboot: busctl failed (exit status: 1): Call failed: timed out, for longer";
    assert!(result.starts_with(unknown), "{result}");
    assert!(!host.path("rebooting").exists());

    // Without logind nothing can inhibit it.
    answers("false");
    let reboot = host.send("run-1", &host.reboot()).await;
    host.await_file("rebooting").await;
    boot(&mut host, "booted.json");
    assert_eq!(host.result_of(reboot).await, "done");
}

#[tokio::test]
async fn sessions_count_on_request_only() {
    let server = NatsServer::with_streams().await;
    let waiting = ["--inhibitor-wait", "1s", "--wait-for-sessions"];
    let host = host_requiring_reboot(&server, &waiting).await;
    write(&host, "sessions", r#"a(susso) 2 "2" 1000 "alice" "" "/o/_32" "3" 0 "root" "" "/o/_33""#);
    write(&host, "session", "s \"user\"\ns \"tty\"\ns \"active\"\n");
    let reboot = host.send("run-1", &host.reboot()).await;
    assert_eq!(
        host.result_of(reboot).await,
        "users are logged in: alice, root, for longer than 1s; end that, wait longer with --inhibitor-wait, or reboot despite \
         it without --wait-for-sessions"
    );
    // What she has left running after she logged out.
    write(&host, "session", "s \"user\"\ns \"tty\"\ns \"closing\"\n");
    host.send("run-1", &host.reboot()).await;
    host.await_file("rebooting").await;

    let server = NatsServer::with_streams().await;
    let mut host = host_requiring_reboot(&server, &[]).await;
    write(&host, "sessions", r#"a(susso) 1 "2" 1000 "alice" "" "/o/_32""#);
    write(&host, "session", "s \"user\"\ns \"tty\"\ns \"active\"\n");
    let reboot = host.send("run-1", &host.reboot()).await;
    host.await_file("rebooting").await;
    boot(&mut host, "booted.json");
    assert_eq!(host.result_of(reboot).await, "done");
}
