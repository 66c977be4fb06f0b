//! The worker for image-based hosts, with scripts that print what the real bootc, rpm-ostree and systemctl do; and
//! reboots, which are the same for every kind of host.

use std::fmt::Write;

use futures::StreamExt;
use harness::nats_server::NatsServer;
use harness::wait::{PATIENCE, eventually};
use harness::worker::WorkerHost;
use os_upgrade_protocol::{Progress, subject};

/// An entry of `bootc status`.
fn entry(digest: &str, version: &str, more: &str) -> String {
    format!(
        r#"{{"image": {{"image": {{"image": "registry.example/os:stable", "transport": "registry"}}, "version": "{version}",
        "timestamp": "2026-09-01T10:00:00Z", "imageDigest": "sha256:{digest}", "architecture": "amd64"}}, "cachedUpdate": null,
        "incompatible": false, "pinned": false, "softRebootCapable": false{more}, "store": "ostreeContainer",
        "ostree": {{"checksum": "{digest}", "deploySerial": 0, "stateroot": "default"}}, "composefs": null}}"#
    )
}

fn bootc_status(booted: &str, staged: &str) -> String {
    format!(
        r#"{{"apiVersion": "org.containers.bootc/v1", "kind": "BootcHost", "metadata": {{"name": "host"}},
        "spec": {{"bootOrder": "default", "image": {{"image": "registry.example/os:stable", "transport": "registry"}}}},
        "status": {{"staged": {staged}, "booted": {booted}, "rollback": null, "rollbackQueued": false, "type": "bootcHost",
        "usrOverlay": null, "readOnly": false}}}}"#
    )
}

/// An entry of `rpm-ostree status`.
fn deployment(checksum: &str, version: &str, booted: bool) -> String {
    format!(
        r#"{{"booted": {booted}, "checksum": "{checksum}", "version": "{version}", "id": "fedora-coreos-{checksum}.0",
        "container-image-reference": "ostree-image-signed:docker://registry.example/os:stable",
        "container-image-reference-digest": "sha256:{checksum}", "osname": "fedora-coreos", "serial": 0, "staged": {},
        "pinned": false, "unlocked": "none", "timestamp": 1788220800, "packages": [], "requested-packages": [],
        "base-commit-meta": {{"ostree.manifest-digest": "sha256:{checksum}", "ostree.manifest": "{{}}"}}}}"#,
        !booted
    )
}

fn rpm_ostree_status(deployments: &[&str]) -> String {
    format!(
        r#"{{"deployments": [{}], "transaction": null, "cached-update": null, "update-driver": null}}"#,
        deployments.join(",")
    )
}

const LOCKED: &str = r#", "downloadOnly": true"#;
const UNLOCKED: &str = r#", "downloadOnly": false"#;

/// The beginning of every script: it logs its call to `calls`.
const PLAYED: &str = r#"cd "$(dirname "$0")/.."; echo "${0##*/} $*" >>calls"#;

const SYSTEMCTL: &str = r#"
case $1 in
is-system-running) cat systemd ;;
list-units) cat failed 2>/dev/null; exit 0 ;;
reboot)
    if [ -e inhibited ] && [ "$2" != --check-inhibitors=no ]; then
        echo 'Operation inhibited by "borg" (PID 4711 "borg", user root), reason is "nightly backup".' >&2
        echo 'Please retry operation after closing inhibitors and logging out other users.' >&2
        exit 1
    fi
    touch rebooting ;;
esac"#;

/// A tool that prints `status.json`, which becomes `found.json` once an update is downloaded, and `next.json` once it is
/// staged.
const BOOTC: &str = r#"
case "$*" in
"status --format json") cat status.json ;;
"upgrade --download-only")
    if [ -e old-bootc ]; then echo "error: unexpected argument '--download-only' found" >&2; exit 2; fi
    if [ -e unreachable ]; then echo "error: Upgrading: Pulling: dial tcp: connection refused" >&2; exit 1; fi
    if [ -e found.json ]; then cp found.json status.json; fi ;;
"upgrade --check") printf 'Update available for: docker://registry.example/os:stable\n  Version: 41.2\n  Digest: sha256:bbbb\n' ;;
"upgrade --from-downloaded"|upgrade) cp next.json status.json ;;
*) exit 64 ;;
esac"#;

const RPM_OSTREE: &str = r#"
case "$*" in
"status --json") cat status.json ;;
"upgrade --download-only")
    if [ -e busy ]; then rm busy; echo "error: System transaction in progress" >&2; exit 1; fi ;;
"upgrade --cache-only --unchanged-exit-77")
    [ -e next.json ] || exit 77
    cp next.json status.json ;;
*) exit 64 ;;
esac"#;

/// A host with only these tools, whose worker does not run yet.
async fn host(server: &NatsServer, tools: &[(&str, &str)], more: &[&str]) -> WorkerHost {
    let host = WorkerHost::new(server, "i1").await.with_kind(&["image"]).with_options(more);
    for (name, body) in [("systemctl", SYSTEMCTL)].iter().chain(tools) {
        host.script(name, &format!("{PLAYED}\n{body}"));
    }
    std::fs::write(host.path("systemd"), "running\n").unwrap();
    // Before this machine's own tools: its systemctl must not be called.
    let path = format!("{}:{}", host.scripts().display(), std::env::var("PATH").unwrap());
    host.with_environment("PATH", &path)
}

fn write(host: &WorkerHost, name: &str, text: &str) {
    std::fs::write(host.path(name), text).unwrap();
}

fn bootc(host: &WorkerHost, newer: bool) {
    let (first, second) = (entry("aaaa", "41.1", UNLOCKED), |more| entry("bbbb", "41.2", more));
    write(host, "status.json", &bootc_status(&first, "null"));
    if newer {
        write(host, "found.json", &bootc_status(&first, &second(LOCKED)));
        write(host, "next.json", &bootc_status(&first, &second(UNLOCKED)));
        write(host, "booted.json", &bootc_status(&second(UNLOCKED), "null"));
    }
}

async fn upgrade(host: &WorkerHost, run: &str) -> String {
    let upgrade = host.send(run, &host.upgrade()).await;
    host.result_of(upgrade).await
}

/// Reboots the host, which then reports the status in this file.
fn boot(host: &mut WorkerHost, status: &str) {
    host.kill();
    std::fs::copy(host.path(status), host.path("status.json")).unwrap();
    host.boot("boot-2");
    host.start();
}

/// The calls that change something.
fn calls(host: &WorkerHost) -> Vec<String> {
    let reading = ["bootc status", "rpm-ostree status", "systemctl is-system", "systemctl list"];
    let calls = host.lines("calls").into_iter();
    calls.filter(|call| !reading.iter().any(|start| call.starts_with(start))).collect()
}

#[tokio::test]
async fn bootc_boots_the_downloaded_image() {
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &[("bootc", BOOTC)], &[]).await;
    bootc(&host, true);
    host.start();
    host.prepared("run-1").await;
    assert_eq!(upgrade(&host, "run-1").await, "reboot-required");
    let reboot = host.send("run-1", &host.reboot()).await;
    host.await_file("rebooting").await;
    boot(&mut host, "booted.json");
    assert_eq!(host.result_of(reboot).await, "done");
    let expected = [
        "bootc upgrade --download-only",
        "bootc upgrade --from-downloaded",
        "systemctl reboot --check-inhibitors=yes",
    ];
    assert_eq!(calls(&host), expected);
    eventually("versions", async || {
        let versions = host.versions().await;
        let last = &versions.last()?.0;
        let image = [last.get("image")?.as_str(), last.get("image-version")?, last.get("image-id")?];
        (image == ["registry.example/os:stable", "41.2", "sha256:bbbb"]).then_some(())
    })
    .await;

    // Afterwards there is no further update.
    std::fs::remove_file(host.path("found.json")).unwrap();
    host.prepared("run-2").await;
    assert_eq!(upgrade(&host, "run-2").await, "done");
}

/// Prints bootc's messages, and waits for a file before each step.
const VERBOSE: &str = r#"
case "$*" in
*--download-only)
    echo 'layers already present: 63; layers needed: 2 (150.3 MB)'
    echo 'Fetching layers: 40% (1/2)' >&2
    while [ ! -e downloaded ]; do sleep 0.02; done ;;
*--from-downloaded)
    echo 'Deploying'
    while [ ! -e deployed ]; do sleep 0.02; done ;;
esac"#;

#[tokio::test]
async fn tool_output_reaches_operators() {
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &[("bootc", &format!("{VERBOSE}\n{BOOTC}"))], &[]).await;
    bootc(&host, true);
    let mut progress = host.client().subscribe(subject::progress(&host.host)).await.unwrap();
    host.client().flush().await.unwrap();
    let mut await_progress = async |expected: Progress| {
        while tokio::time::timeout(PATIENCE, progress.next())
            .await
            .unwrap()
            .is_some_and(|message| Progress::parse(&message.payload).unwrap() != expected)
        {}
    };
    host.start();
    let prepare = host.send("run-1", &host.prepare("")).await;
    await_progress(Progress::new(prepare, 40, "Fetching layers: 40% (1/2)")).await;
    host.touch("downloaded");
    assert_eq!(host.result_of(prepare).await, "done");
    let upgrade = host.send("run-1", &host.upgrade()).await;
    await_progress(Progress::new(upgrade, None, "Deploying")).await;
    host.touch("deployed");
    assert_eq!(host.result_of(upgrade).await, "reboot-required");
}

#[tokio::test]
async fn booting_old_image_is_failure() {
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &[("bootc", BOOTC)], &[]).await;
    bootc(&host, true);
    std::fs::copy(host.path("status.json"), host.path("before.json")).unwrap();
    host.start();
    host.prepared("run-1").await;
    assert_eq!(upgrade(&host, "run-1").await, "reboot-required");
    let reboot = host.send("run-1", &host.reboot()).await;
    host.await_file("rebooting").await;
    boot(&mut host, "before.json");
    assert_eq!(
        host.result_of(reboot).await,
        "unhealthy: the host runs 41.1 (sha256:aaaa) and not sha256:bbbb, which it was upgraded to: it did not boot, or \
         was rolled back"
    );
}

#[tokio::test]
async fn vanished_download_is_failure() {
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &[("bootc", BOOTC)], &[]).await;
    bootc(&host, true);
    std::fs::copy(host.path("status.json"), host.path("before.json")).unwrap();
    host.start();
    host.touch("unreachable");
    let prepare = host.send("run-1", &host.prepare("")).await;
    let failed = "bootc upgrade failed: Upgrading: Pulling: dial tcp: connection refused";
    assert_eq!(host.result_of(prepare).await, failed);
    std::fs::remove_file(host.path("unreachable")).unwrap();
    host.prepared("run-2").await;
    boot(&mut host, "before.json");
    let gone = "the prepared image no longer exists, because the host was rebooted since; start another run";
    assert_eq!(upgrade(&host, "run-2").await, gone);
    host.prepared("run-3").await;
    assert_eq!(upgrade(&host, "run-3").await, "reboot-required");
}

#[tokio::test]
async fn old_bootc_downloads_during_upgrade() {
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &[("bootc", BOOTC)], &[]).await;
    bootc(&host, true);
    host.touch("old-bootc");
    host.start();
    host.prepared("run-1").await;
    assert_eq!(upgrade(&host, "run-1").await, "reboot-required");
    assert_eq!(calls(&host), ["bootc upgrade --download-only", "bootc upgrade --check", "bootc upgrade"]);
}

#[tokio::test]
async fn rpm_ostree_waits_and_uses_cache() {
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &[("rpm-ostree", RPM_OSTREE)], &["--tool", "rpm-ostree"]).await;
    let old = deployment("aaaa", "41.1", true);
    write(&host, "status.json", &rpm_ostree_status(&[&old]));
    host.touch("busy");
    host.start();
    host.prepared("run-1").await;
    host.await_log("waiting for another transaction").await;
    assert_eq!(upgrade(&host, "run-1").await, "done");

    write(&host, "next.json", &rpm_ostree_status(&[&deployment("bbbb", "41.2", false), &old]));
    host.prepared("run-2").await;
    assert_eq!(upgrade(&host, "run-2").await, "reboot-required");
    let (new, old) = (deployment("bbbb", "41.2", true), deployment("aaaa", "41.1", false));
    write(&host, "booted.json", &rpm_ostree_status(&[&new, &old]));
    let reboot = host.send("run-2", &host.reboot()).await;
    host.await_file("rebooting").await;
    boot(&mut host, "booted.json");
    assert_eq!(host.result_of(reboot).await, "done");
}

#[tokio::test]
async fn rpm_ostree_ignores_earlier_staged_deployment() {
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &[("rpm-ostree", RPM_OSTREE)], &["--tool", "rpm-ostree"]).await;
    let (runs, waits) = (deployment("bbbb", "41.2", true), deployment("aaaa", "41.1", false));
    // After `rpm-ostree rollback`, or with a deployment that was never booted.
    write(&host, "status.json", &rpm_ostree_status(&[&waits, &runs]));
    write(&host, "next.json", &rpm_ostree_status(&[&deployment("cccc", "41.3", false), &runs]));
    host.start();
    host.prepared("run-1").await;
    assert_eq!(upgrade(&host, "run-1").await, "reboot-required");
    assert_eq!(
        calls(&host),
        ["rpm-ostree upgrade --download-only", "rpm-ostree upgrade --cache-only --unchanged-exit-77"]
    );
    host.await_log("a reboot is required: from 41.2 (bbbb) to 41.3 (cccc)").await;
}

#[tokio::test]
async fn bootc_detects_rpm_ostree_deployments() {
    let server = NatsServer::with_streams().await;
    let tools = [("bootc", "cat bootc.json"), ("rpm-ostree", RPM_OSTREE)];
    let mut host = host(&server, &tools, &[]).await;
    let foreign = r#"{"image": null, "cachedUpdate": null, "incompatible": true, "pinned": false, "store": null,
        "ostree": {"checksum": "bbbb", "deploySerial": 0, "stateroot": "default"}}"#;
    write(&host, "bootc.json", &bootc_status(&entry("aaaa", "41.1", UNLOCKED), foreign));
    let (waits, runs) = (deployment("bbbb", "41.1", false), deployment("aaaa", "41.1", true));
    write(&host, "status.json", &rpm_ostree_status(&[&waits, &runs]));
    host.start();
    host.prepared("run-1").await;
    // There is no update, but a deployment that waits for a reboot.
    assert_eq!(upgrade(&host, "run-1").await, "reboot-required");
    let called = calls(&host);
    assert!(called.iter().all(|call| call.starts_with("rpm-ostree upgrade ")), "{called:?}");
}

#[tokio::test]
async fn wrong_host_kind_is_reported() {
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &[("bootc", "echo 'error: not booted via bootc' >&2; exit 1")], &[]).await;
    host.start();
    let prepare = host.send("run-1", &host.prepare("")).await;
    assert_eq!(
        host.result_of(prepare).await,
        "neither bootc nor rpm-ostree upgrades this host: bootc status failed: not booted via bootc; cannot run \
         rpm-ostree: No such file or directory (os error 2)"
    );
}

/// A host whose upgrade has required a reboot.
async fn host_requiring_reboot(server: &NatsServer, more: &[&str]) -> WorkerHost {
    let mut host = host(server, &[("bootc", BOOTC)], more).await;
    bootc(&host, true);
    write(&host, "failed", "old.service loaded failed failed It failed long ago\n");
    host.start();
    host.prepared("run-1").await;
    assert_eq!(upgrade(&host, "run-1").await, "reboot-required");
    host
}

#[tokio::test]
async fn reboot_waits_for_inhibitors() {
    let server = NatsServer::with_streams().await;
    let host = host_requiring_reboot(&server, &["--inhibitor-wait", "1s"]).await;
    host.touch("inhibited");
    let reboot = host.send("run-1", &host.reboot()).await;
    assert_eq!(
        host.result_of(reboot).await,
        "systemctl reboot failed: Operation inhibited by \"borg\" (PID 4711 \"borg\", user root), reason is \"nightly \
         backup\".; Please retry operation after closing inhibitors and logging out other users."
    );
    assert!(!host.path("rebooting").exists());

    let server = NatsServer::with_streams().await;
    let mut hasty = host_requiring_reboot(&server, &["--ignore-inhibitors"]).await;
    hasty.touch("inhibited");
    let reboot = hasty.send("run-1", &hasty.reboot()).await;
    hasty.await_file("rebooting").await;
    boot(&mut hasty, "booted.json");
    assert_eq!(hasty.result_of(reboot).await, "done");
}

#[tokio::test]
async fn reboot_is_answered_when_healthy() {
    let server = NatsServer::with_streams().await;
    let mut host = host_requiring_reboot(&server, &[]).await;
    host.script("is-well", "test -e ../well || { echo 'the shop is closed' >&2; exit 1; }");
    let script = host.scripts().join("is-well");
    host = host.with_options(&["--health-script", script.to_str().unwrap()]);
    let reboot = host.send("run-1", &host.reboot()).await;
    host.await_file("rebooting").await;
    write(&host, "systemd", "starting\n");
    boot(&mut host, "booted.json");
    host.await_log("not healthy yet: systemd is still starting units").await;
    write(&host, "systemd", "degraded\n");
    host.await_log("not healthy yet: the shop is closed").await;
    assert_eq!(host.replies_to(reboot).await, 0);
    host.touch("well");
    assert_eq!(host.result_of(reboot).await, "done");
}

#[tokio::test]
async fn only_newly_failed_units_count() {
    let server = NatsServer::with_streams().await;
    let mut host = host_requiring_reboot(&server, &["--health-wait", "1s"]).await;
    let reboot = host.send("run-1", &host.reboot()).await;
    host.await_file("rebooting").await;
    let mut failed = std::fs::read_to_string(host.path("failed")).unwrap();
    writeln!(failed, "new.service loaded failed failed It worked before").unwrap();
    write(&host, "failed", &failed);
    boot(&mut host, "booted.json");
    assert_eq!(
        host.result_of(reboot).await,
        "unhealthy: units have failed since the upgrade began: new.service; see systemctl status"
    );
}
