//! The Debian worker upgrading the machine it runs on, here a small system: it checks the kernel and systemd, and reboots
//! it. systemctl is a script.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use harness::debian::{Package, Tree, run, system};
use harness::nats_server::NatsServer;
use harness::wait::eventually;
use harness::worker::{WorkerHost, worker_binary};
use os_upgrade_protocol::{Announcement, subject};
use serde_json::json;

const SYSTEMCTL: &str = "#!/bin/sh
echo \"$*\" >>/calls
case $1 in
is-system-running) echo degraded ;;
list-units) cat /failed ;;
reboot) touch /rebooting ;;
esac
";

/// The system of `tree` as the machine on which the worker runs. A unit of it has failed long ago.
async fn this_machine(server: &NatsServer, tree: &mut Tree) -> WorkerHost {
    tree.mount_proc();
    tree.write("/usr/local/bin/systemctl", SYSTEMCTL);
    fs::set_permissions(tree.path("/usr/local/bin/systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    tree.write("/failed", "old.service loaded failed failed It failed long ago\n");
    fs::copy(worker_binary(), tree.path("/worker")).unwrap();
    let host = WorkerHost::new(server, "d1").await.with_kind(&["debian", "--free-space", "1"]);
    let mut host = host.with_options(&["--health-wait", "1s"]).within(&tree.root(), Path::new("/worker"));
    tree.bind(&host.path(""));
    host.start();
    host
}

/// Waits until systemd is asked to reboot.
async fn await_request(tree: &Tree) {
    eventually("a request to systemd", async || fs::remove_file(tree.path("/rebooting")).ok()).await;
}

#[tokio::test]
async fn earlier_unfinished_package_does_not_count() {
    let broken = |name: &str| Package::new(name, "1.0").script("postinst", "exit 1");
    let (mut tree, _archive) = system(&[Package::new("foo", "1.0"), broken("bar"), broken("baz")], &["foo"]);
    let break_package = |tree: &Tree, name: &str| {
        assert!(!tree.run(&["apt-get", "--quiet=2", "--assume-yes", "install", name]).status.success());
        assert!(tree.package(name).starts_with("iF"), "{}", tree.package(name));
    };
    break_package(&tree, "bar");
    let server = NatsServer::with_streams().await;
    let mut host = this_machine(&server, &mut tree).await;
    let request = |leave: &str| json!({ "action": "reboot", "host": "d1", "boot-id": leave }).to_string();

    let reboot = host.send("entry-1", &request("boot-1")).await;
    await_request(&tree).await;
    host.kill();
    host.boot("boot-2");
    host.start();
    assert_eq!(host.result_of(reboot).await, "done");

    let reboot = host.send("entry-2", &request("boot-2")).await;
    await_request(&tree).await;
    host.kill();
    break_package(&tree, "baz");
    host.boot("boot-3");
    host.start();
    let unfinished = "unhealthy: packages are not fully installed: baz; see dpkg --audit";
    assert_eq!(host.result_of(reboot).await, unfinished);
}

#[tokio::test]
async fn damaged_dpkg_database_does_not_prevent_reboot() {
    let (mut tree, _archive) = system(&[Package::new("foo", "1.0")], &["foo"]);
    let server = NatsServer::with_streams().await;
    let mut host = this_machine(&server, &mut tree).await;
    tree.write("/var/lib/dpkg/status", "Package: foo\nStatus: no such\n\n");
    let request = json!({ "action": "reboot", "host": "d1", "boot-id": "boot-1" }).to_string();
    let reboot = host.send("entry-1", &request).await;
    await_request(&tree).await;
    host.await_log("unfinished packages cannot be recorded: dpkg-query failed").await;
    host.kill();
    host.boot("boot-2");
    host.start();
    assert_eq!(host.result_of(reboot).await, "done");
    host.await_log("unfinished packages are unknown, as before the reboot: dpkg-query failed").await;
}

#[tokio::test]
async fn newer_kernel_boots_without_failed_units() {
    let (mut tree, mut archive) = system(&[Package::new("foo", "1.0")], &["foo"]);
    // A newer version of the running kernel.
    let runs = nix::sys::utsname::uname().unwrap().release().to_str().unwrap().to_owned();
    let (number, flavour) = runs
        .split_once('-')
        .map_or((runs.as_str(), String::new()), |(number, rest)| (number, format!("-{rest}")));
    let newer = format!("{number}.1{flavour}");
    archive.publish(&[Package::new("foo", "2.0").file(&format!("boot/vmlinuz-{newer}"), Vec::new())]);
    let server = NatsServer::with_streams().await;
    let mut host = this_machine(&server, &mut tree).await;
    assert_eq!(run(&host, "run-1").await, "reboot-required");
    host.await_log(&format!("a reboot is required: kernel {newer} is installed, and {runs} runs")).await;
    assert_eq!(tree.package("foo"), "ii 2.0");

    let rebooted = async |host: &mut WorkerHost, run: &str, boot: &str| {
        let reboot = host.send(run, &host.reboot()).await;
        await_request(&tree).await;
        host.kill();
        fs::remove_file(tree.path("/run/reboot-required")).unwrap_or_default();
        host.boot(boot);
        host.start();
        host.result_of(reboot).await
    };
    assert_eq!(rebooted(&mut host, "run-1", "boot-2").await, "done");
    assert!(tree.read("/calls").contains("reboot -i\n"));

    // Another kernel than the newest was booted, which another reboot would not change.
    let in_vain = format!(
        "kernel {newer} is installed, and {runs} runs even after a reboot; check which kernel the boot loader starts, then \
         reboot the host"
    );
    host.await_log(&in_vain).await;
    assert_eq!(run(&host, "run-2").await, "done");
    host.kill();
    host.start();
    assert_eq!(run(&host, "run-3").await, "done");
    await_ineffective(&host, &in_vain).await;

    // One that is newer still may boot.
    let newest = format!("{number}.2{flavour}");
    let newer = Package::new("foo", "3.0").file(&format!("boot/vmlinuz-{newest}"), Vec::new());
    archive.publish(&[newer.script("postinst", "touch /run/reboot-required")]);
    assert_eq!(run(&host, "run-4").await, "reboot-required");
    host.await_log("a reboot is required: /run/reboot-required was created").await;
    let failed = tree.read("/failed");
    tree.write("/failed", &format!("{failed}new.service loaded failed failed It worked before\n"));
    assert_eq!(
        rebooted(&mut host, "run-4", "boot-3").await,
        "unhealthy: units have failed since the upgrade began: new.service; see systemctl status"
    );
    await_ineffective(&host, &format!("kernel {newest} is installed, and {runs} runs even after a reboot; "))
        .await;
}

/// Waits until the worker announces that no reboot is required, and that the last one was ineffective because of this.
async fn await_ineffective(host: &WorkerHost, missed: &str) {
    eventually("the announcement to say so", async || {
        let announced = host.messages(subject::WORKERS_STREAM, &subject::workers_of(&host.host)).await;
        let announced = Announcement::parse(&announced.last()?.payload).unwrap();
        let says_so = announced.reboot_ineffective?.starts_with(missed);
        (says_so && announced.reboot_required.is_none()).then_some(())
    })
    .await;
}
