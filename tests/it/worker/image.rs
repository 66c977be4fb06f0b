//! The worker for image-based hosts, with scripts that print what the real bootc, rpm-ostree and systemctl do.

use futures::StreamExt;
use harness::nats_server::NatsServer;
use harness::wait::{PATIENCE, eventually};
use harness::worker::WorkerHost;
use os_upgrade_protocol::{Progress, subject};

/// An entry of `bootc status`.
pub(super) fn entry(digest: &str, version: &str, more: &str) -> String {
    format!(
        r#"{{"image": {{"image": {{"image": "registry.example/os:stable", "transport": "registry"}}, "version": "{version}",
        "timestamp": "2026-09-01T10:00:00Z", "imageDigest": "sha256:{digest}", "architecture": "amd64"}}, "cachedUpdate": null,
        "incompatible": false, "pinned": false, "softRebootCapable": false{more}, "store": "ostreeContainer",
        "ostree": {{"checksum": "{digest}", "deploySerial": 0, "stateroot": "default"}}, "composefs": null}}"#
    )
}

pub(super) fn bootc_status(booted: &str, staged: &str) -> String {
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
pub(super) const UNLOCKED: &str = r#", "downloadOnly": false"#;

/// The beginning of every script: it logs its call to `calls`.
const PLAYED: &str = r#"cd "$(dirname "$0")/.."; echo "${0##*/} $*" >>calls"#;

const SYSTEMCTL: &str = r#"
case $1 in
is-system-running) cat systemd ;;
list-units) cat failed 2>/dev/null; exit 0 ;;
reboot)
    if [ "$2" != -i ]; then echo 'User alice is logged in on pts/0.' >&2; exit 1; fi
    touch rebooting ;;
esac"#;

/// logind without inhibitors, unless files say otherwise.
const BUSCTL: &str = r#"
case "$*" in
*" ListInhibitors") cat inhibitors 2>/dev/null || echo 'a(ssssuu) 0' ;;
*" ListSessions") cat sessions ;;
*" Class Type State") cat session ;;
*) exit 64 ;;
esac"#;

/// A tool that prints `status.json`, which becomes `found.json` once an update is downloaded, and `next.json` once it is
/// staged.
pub(super) const BOOTC: &str = r#"
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
pub(super) async fn host(server: &NatsServer, tools: &[(&str, &str)], more: &[&str]) -> WorkerHost {
    let host = WorkerHost::new(server, "i1").await.with_kind(&["image"]).with_options(more);
    for (name, body) in [("systemctl", SYSTEMCTL), ("busctl", BUSCTL)].iter().chain(tools) {
        host.script(name, &format!("{PLAYED}\n{body}"));
    }
    std::fs::write(host.path("systemd"), "running\n").unwrap();
    // Before this machine's own tools, which must not be called.
    let path = format!("{}:{}", host.scripts().display(), std::env::var("PATH").unwrap());
    host.with_environment("PATH", &path)
}

pub(super) fn write(host: &WorkerHost, name: &str, text: &str) {
    std::fs::write(host.path(name), text).unwrap();
}

pub(super) fn bootc(host: &WorkerHost, newer: bool) {
    let (first, second) = (entry("aaaa", "41.1", UNLOCKED), |more| entry("bbbb", "41.2", more));
    write(host, "status.json", &bootc_status(&first, "null"));
    if newer {
        write(host, "found.json", &bootc_status(&first, &second(LOCKED)));
        write(host, "next.json", &bootc_status(&first, &second(UNLOCKED)));
        write(host, "booted.json", &bootc_status(&second(UNLOCKED), "null"));
    }
}

pub(super) async fn upgrade(host: &WorkerHost, run: &str) -> String {
    let upgrade = host.send(run, &host.upgrade()).await;
    host.result_of(upgrade).await
}

/// Reboots the host, which then reports the status in this file.
pub(super) fn boot(host: &mut WorkerHost, status: &str) {
    host.kill();
    std::fs::copy(host.path(status), host.path("status.json")).unwrap();
    host.boot("boot-2");
    host.start();
}

/// The calls that change something.
fn calls(host: &WorkerHost) -> Vec<String> {
    let reading = ["bootc status", "rpm-ostree status", "systemctl is-system", "systemctl list", "busctl"];
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
    let expected =
        ["bootc upgrade --download-only", "bootc upgrade --from-downloaded", "systemctl reboot -i"];
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
    # Of two pipes, either may be read first.
    echo 'layers already present: 63; layers needed: 2 (150.3 MB)' >&2
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
        "unhealthy: the host runs 41.1 (sha256:aaaa) and not sha256:bbbb, which it was upgraded to: it did not boot, was \
         rolled back, or was upgraded by somebody else meanwhile"
    );
    // A later reboot is not compared with what stood before this upgrade.
    let before = std::fs::read_to_string(host.path("state/i1.before")).unwrap();
    assert!(before.contains(r#""is-judged":true"#), "{before}");
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
    let gone = "the prepared image no longer exists, because the host was rebooted since, and runs 41.1 (sha256:aaaa); \
                start another run";
    assert_eq!(upgrade(&host, "run-2").await, gone);
    host.prepared("run-3").await;
    assert_eq!(upgrade(&host, "run-3").await, "reboot-required");
}

#[tokio::test]
async fn host_upgraded_by_somebody_else_is_done() {
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &[("bootc", BOOTC)], &[]).await;
    bootc(&host, true);
    host.start();
    host.prepared("run-1").await;
    // Its timer finds a still newer image, and reboots.
    write(&host, "timer.json", &bootc_status(&entry("cccc", "41.3", UNLOCKED), "null"));
    boot(&mut host, "timer.json");
    assert_eq!(upgrade(&host, "run-1").await, "done");
    host.await_log("somebody else changed the host meanwhile, and it runs 41.3 (sha256:cccc)").await;
}

#[tokio::test]
async fn host_that_was_rolled_back_is_not_done() {
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &[("bootc", BOOTC)], &[]).await;
    bootc(&host, true);
    let old = entry("0000", "41.0", UNLOCKED);
    for file in ["status.json", "found.json"] {
        let status = std::fs::read_to_string(host.path(file)).unwrap();
        let status = status.replace(r#""rollback": null"#, &format!(r#""rollback": {old}"#));
        write(&host, file, &status);
    }
    host.start();
    host.prepared("run-1").await;
    write(&host, "old.json", &bootc_status(&old, "null"));
    boot(&mut host, "old.json");
    let expected =
        "the host was rolled back since it was prepared, and runs 41.0 (sha256:0000); start another run";
    assert_eq!(upgrade(&host, "run-1").await, expected);
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

#[tokio::test]
async fn processes_that_a_tool_leaves_behind_are_not_waited_for() {
    let server = NatsServer::with_streams().await;
    // As a hook does that starts a daemon, which keeps the tool's output open.
    let leaves = r#"case "$*" in *--download-only) sleep 600 & echo $! >left ;; esac"#;
    let mut host = host(&server, &[("bootc", &format!("{leaves}\n{BOOTC}"))], &[]).await;
    bootc(&host, true);
    host.start();
    host.prepared("run-1").await;
    let left = host.lines("left").remove(0);
    assert!(std::process::Command::new("kill").arg(&left).status().unwrap().success(), "it was ended");
}
