//! Faults of the Debian worker with real APT and dpkg: each ends in a message with the cause, and the host can be retried.

use std::fs::{self, File};
use std::net::TcpListener;

use futures::StreamExt;
use harness::debian::{Archive, CACHE, Mount, Package, Tree, host, run, system};
use harness::nats_server::NatsServer;
use harness::wait::{PATIENCE, eventually};
use harness::worker::WorkerHost;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{F_WRLCK, flock};
use os_upgrade_protocol::{Progress, subject};

/// A system with `foo` 1.0 installed, whose archive has another version of it.
fn with_newer(newer: Package) -> (Tree, Archive) {
    let (tree, mut archive) = system(&[Package::new("foo", "1.0")], &["foo"]);
    archive.publish(&[newer]);
    (tree, archive)
}

async fn prepare(host: &WorkerHost, run: &str) -> String {
    let prepare = host.send(run, &host.prepare("")).await;
    host.result_of(prepare).await
}

#[tokio::test]
async fn failing_sources_are_named() {
    let (tree, mut archive) = with_newer(Package::new("foo", "2.0"));
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();

    // Nothing listens at the first; the second is a directory without a package list.
    Archive::add_source(&tree, "http://127.0.0.1:1/debian");
    Archive::add_source(&tree, "copy:/srv/nothing");
    let result = prepare(&host, "run-1").await;
    let unreachable = "http://127.0.0.1:1/debian cannot be reached; check the network, the proxy and the source's address: ";
    assert!(result.contains(unreachable), "{result}");
    assert!(result.contains("copy:/srv/nothing"), "{result}");
    assert!(!result.contains("copy:/srv/archive"), "{result}");

    archive.set_as_source(&tree);
    archive.change_key();
    archive.publish(&[Package::new("foo", "2.0")]);
    let result = prepare(&host, "run-2").await;
    let unsigned = "copy:/srv/archive is not signed by its key; do not trust it, or renew the key that the source names: ";
    assert!(result.starts_with(unsigned), "{result}");
    assert_eq!(tree.package("foo"), "ii 1.0");

    archive.trust_key(&tree);
    assert_eq!(run(&host, "run-3").await, "done");
    assert_eq!(tree.package("foo"), "ii 2.0");
}

#[tokio::test]
async fn full_disk_is_found_before_changes() {
    let (tree, _archive) = with_newer(Package::new("foo", "2.0"));
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    // The package lists do not fit.
    let disk = tree.disk(CACHE, "64k");
    host.start();
    let result = prepare(&host, "run-1").await;
    assert!(result.contains("because the disk is full; make room: "), "{result}");

    // The packages fit, but not with the space that must stay free.
    disk.resize("16m");
    drop(host);
    let server = NatsServer::with_streams().await;
    let mut careful = harness::debian::host(&server, &tree, &[]).await.with_kind(&[
        "debian",
        "--root",
        tree.root().to_str().unwrap(),
        "--free-space",
        "20",
    ]);
    careful.start();
    let result = prepare(&careful, "run-2").await;
    assert!(result.starts_with("the disk is too full: the upgrade needs "), "{result}");
    assert!(result.contains(CACHE) && result.ends_with("are free; make room"), "{result}");
    assert_eq!(tree.package("foo"), "ii 1.0");

    disk.resize("64m");
    assert_eq!(run(&careful, "run-3").await, "done");
    assert_eq!(tree.package("foo"), "ii 2.0");
}

#[tokio::test]
async fn disk_full_during_upgrade_is_recoverable() {
    let noise: Vec<u8> = (0..1_000_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let (tree, _archive) = with_newer(Package::new("foo", "2.0").file("usr/share/foo/noise", noise));
    let disk = tree.disk("/usr/share/foo", "64k");
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    host.prepared("run-1").await;
    let upgrade = host.send("run-1", &host.upgrade()).await;
    let result = host.result_of(upgrade).await;
    assert!(
        result.starts_with("the upgrade failed: the disk is full; make room and try again: package foo: "),
        "{result}"
    );
    disk.resize("4m");
    assert_eq!(run(&host, "run-2").await, "done");
    assert_eq!((tree.package("foo"), tree.audit()), ("ii 2.0".to_owned(), String::new()));
}

/// A separate disk at `/boot`, with a kernel of 600 kB and its files.
fn boot_disk(tree: &Tree, size: &str) -> Mount {
    let disk = tree.disk("/boot", size);
    for (name, length) in [("vmlinuz-6.1.0-1-amd64", 200_000), ("initrd.img-6.1.0-1-amd64", 400_000)] {
        tree.write(&format!("/boot/{name}"), &"x".repeat(length));
    }
    disk
}

#[tokio::test]
async fn full_boot_disk_is_found_before_changes() {
    let newer = Package::new("foo", "2.0").field("Depends: linux-image-6.1.0-2-amd64");
    let (tree, mut archive) = with_newer(newer.clone());
    let kernel = Package::new("linux-image-6.1.0-2-amd64", "6.1.2");
    archive.publish(&[newer, kernel.file("boot/vmlinuz-6.1.0-2-amd64", vec![b'x'; 200_000])]);
    // Another kernel, a second initial RAM disk while it is written, and 1 MB that stays free: 2 MB, and some pages.
    let disk = boot_disk(&tree, "2400k");
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    let result = prepare(&host, "run-1").await;
    assert!(result.starts_with("the disk is too full: the upgrade needs 1.0 MB in "), "{result}");
    assert!(
        result.contains("/boot, --free-space requires 1.0 MB free afterwards, and 1.8 MB are free"),
        "{result}"
    );
    assert_eq!(tree.package("foo"), "ii 1.0");

    disk.resize("3m");
    assert_eq!(run(&host, "run-2").await, "done");
    assert_eq!((tree.package("foo"), tree.audit()), ("ii 2.0".to_owned(), String::new()));
    assert!(tree.path("/boot/vmlinuz-6.1.0-2-amd64").is_file());
}

#[tokio::test]
async fn boot_disk_full_during_upgrade_is_recoverable() {
    // No package lists the files that are written there after a kernel is installed.
    let postinst = "head --bytes=1500000 /dev/zero >/boot/initrd.img-6.1.0-1-amd64.new\n\
                    mv /boot/initrd.img-6.1.0-1-amd64.new /boot/initrd.img-6.1.0-1-amd64";
    let (tree, _archive) = with_newer(Package::new("foo", "2.0").script("postinst", postinst));
    let disk = boot_disk(&tree, "2m");
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    host.prepared("run-1").await;
    let upgrade = host.send("run-1", &host.upgrade()).await;
    let result = host.result_of(upgrade).await;
    assert!(
        result.starts_with("the upgrade failed: the disk is full; make room and try again: package foo: "),
        "{result}"
    );
    assert_eq!(tree.package("foo"), "iF 2.0");
    disk.resize("4m");
    assert_eq!(run(&host, "run-2").await, "done");
    assert_eq!((tree.package("foo"), tree.audit()), ("ii 2.0".to_owned(), String::new()));
    assert_eq!(tree.read("/boot/initrd.img-6.1.0-1-amd64").len(), 1_500_000);
}

#[tokio::test]
async fn unconfigurable_package_is_named_with_output() {
    let postinst = "test -e /etc/gizmo || { echo 'no gizmo here' >&2; exit 3; }";
    let (tree, mut archive) = with_newer(Package::new("foo", "2.0").script("postinst", postinst));
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    let failed = "the upgrade failed: package foo: installed foo package post-installation script subprocess returned \
                  error exit status 3; it printed: no gizmo here";
    assert_eq!(run(&host, "run-1").await, failed);
    assert_eq!(tree.package("foo"), "iF 2.0");

    // Nothing is repaired, and the next run reports it again.
    assert_eq!(run(&host, "run-2").await, failed);

    // The operator repairs it.
    tree.write("/etc/gizmo", "");
    assert_eq!(run(&host, "run-3").await, "done");
    assert_eq!((tree.package("foo"), tree.audit()), ("ii 2.0".to_owned(), String::new()));

    // Or the package's maintainer does, with a new version.
    let broken = Package::new("foo", "3.0").script("postinst", "exit 1");
    archive.publish(&[broken]);
    assert!(run(&host, "run-4").await.starts_with("the upgrade failed: package foo: "));
    archive.publish(&[Package::new("foo", "3.1")]);
    assert_eq!(run(&host, "run-5").await, "done");
    assert_eq!((tree.package("foo"), tree.audit()), ("ii 3.1".to_owned(), String::new()));
}

#[tokio::test]
async fn damaged_dpkg_database_is_found_before_changes() {
    let (tree, mut archive) = system(&["foo", "bar"].map(|name| Package::new(name, "1.0")), &["foo", "bar"]);
    archive.publish(&[Package::new("foo", "2.0")]);
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    let list = "/var/lib/dpkg/info/bar.list";
    let good = tree.read(list);
    let damaged = |what: &str| {
        format!(
            "dpkg-query failed: dpkg's database is damaged: files list file for package 'bar' {what}; remove \
             /var/lib/dpkg/info/bar.list, then reinstall bar"
        )
    };
    for (run, content, what) in [
        ("run-1", good.trim_end(), "is missing final newline"),
        ("run-2", "/.\n\n", "contains empty filename"),
    ] {
        tree.write(list, content);
        assert_eq!(prepare(&host, run).await, damaged(what));
    }
    // It breaks after it was prepared.
    tree.write(list, &good);
    assert_eq!(prepare(&host, "run-3").await, "done");
    tree.write(list, good.trim_end());
    let upgrade = host.send("run-3", &host.upgrade()).await;
    assert_eq!(host.result_of(upgrade).await, damaged("is missing final newline"));
    tree.write(list, &good);

    let status = "/var/lib/dpkg/status";
    let good = tree.read(status);
    tree.write(status, &good.replacen("Status: install ok installed", "Status: install", 1));
    let result = prepare(&host, "run-4").await;
    let parsing = "dpkg-query failed: dpkg's database is damaged: parsing file '/var/lib/dpkg/status' near line 2 package '";
    assert!(result.starts_with(parsing), "{result}");
    tree.write(status, "");
    let result = prepare(&host, "run-5").await;
    assert!(result.starts_with("dpkg knows no packages; restore "), "{result}");

    tree.write(status, &good);
    // dpkg goes on without a list.
    fs::remove_file(tree.path(list)).unwrap();
    assert_eq!(run(&host, "run-6").await, "done");
    host.await_log("dpkg has lost the lists of files of packages; reinstall them: bar").await;
    assert_eq!(tree.package("foo"), "ii 2.0");
}

#[tokio::test]
async fn read_only_usr_is_found_before_changes() {
    let (tree, _archive) = with_newer(Package::new("foo", "2.0"));
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    let mount = tree.read_only("/usr");
    let result = prepare(&host, "run-1").await;
    assert!(
        result.starts_with("/usr cannot be written to: Read-only file system; dpkg must write there"),
        "{result}"
    );
    drop(mount);
    assert_eq!(tree.package("foo"), "ii 1.0");
    assert_eq!(prepare(&host, "run-2").await, "done");
    // It becomes read-only after it was prepared.
    let mount = tree.read_only("/usr");
    let upgrade = host.send("run-2", &host.upgrade()).await;
    let result = host.result_of(upgrade).await;
    assert!(result.starts_with("/usr cannot be written to: Read-only file system; "), "{result}");
    drop(mount);
    assert_eq!((tree.package("foo"), tree.audit()), ("ii 1.0".to_owned(), String::new()));

    // APT mounts it writable itself.
    let hooks = "DPkg::Pre-Invoke { \"mount -o remount,rw,bind /usr /usr\"; };\n\
                 DPkg::Post-Invoke { \"mount -o remount,ro,bind /usr /usr\"; };\n";
    tree.write("/etc/apt/apt.conf.d/read-only-usr", hooks);
    let mount = tree.read_only("/usr");
    assert_eq!(run(&host, "run-3").await, "done");
    assert_eq!((tree.package("foo"), tree.audit()), ("ii 2.0".to_owned(), String::new()));
    drop(mount);
}

/// Takes dpkg's lock in this process, until the file is closed.
fn lock(tree: &Tree) -> File {
    let file = File::options().write(true).open(tree.path("/var/lib/dpkg/lock-frontend")).unwrap();
    let whole = flock { l_type: F_WRLCK.try_into().unwrap(), l_whence: 0, l_start: 0, l_len: 0, l_pid: 0 };
    fcntl(&file, FcntlArg::F_SETLK(&whole)).unwrap();
    file
}

#[tokio::test]
async fn dpkg_lock_is_awaited_and_holder_named() {
    let (tree, _archive) = with_newer(Package::new("foo", "2.0"));
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &["--lock-wait", "1s"]).await;
    host.start();
    let held = lock(&tree);
    // A prepare changes nothing, so it needs no lock.
    host.prepared("run-1").await;
    let upgrade = host.send("run-1", &host.upgrade()).await;
    let result = host.result_of(upgrade).await;
    let named = format!("/var/lib/dpkg/lock-frontend is held by process {} (", std::process::id());
    assert!(result.starts_with(&named), "{result}");
    assert!(result.ends_with("for longer than 1s; end that, or wait longer with --lock-wait"), "{result}");
    assert_eq!(tree.package("foo"), "ii 1.0");
    drop(host);

    let server = NatsServer::with_streams().await;
    let mut patient = harness::debian::host(&server, &tree, &[]).await;
    patient.start();
    patient.prepared("run-2").await;
    let upgrade = patient.send("run-2", &patient.upgrade()).await;
    patient.await_log("waiting for /var/lib/dpkg/lock-frontend, held by process ").await;
    drop(held);
    assert_eq!(patient.result_of(upgrade).await, "done");
    assert_eq!(tree.package("foo"), "ii 2.0");
}

/// A version whose configuration creates `/begun` and waits for `/go`.
fn slow() -> Package {
    let postinst = "echo one more >>/begun; while ! test -e /go; do sleep 0.05; done";
    Package::new("foo", "2.0").script("postinst", postinst)
}

async fn await_begun(tree: &Tree, times: usize) {
    let lines = async || (tree.read("/begun").lines().count() == times).then_some(());
    eventually("dpkg to begin", lines).await;
}

#[tokio::test]
async fn interrupted_upgrade_finishes_at_next_start() {
    let (tree, _archive) = with_newer(slow());
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    let mut progress = host.client().subscribe(subject::progress(&host.host)).await.unwrap();
    host.client().flush().await.unwrap();
    host.start();
    host.prepared("run-1").await;
    let upgrade = host.send("run-1", &host.upgrade()).await;
    await_begun(&tree, 1).await;
    // Operators see APT's progress.
    let configuring = async {
        loop {
            let report = Progress::parse(&progress.next().await.unwrap().payload).unwrap();
            if report.command == upgrade && report.text.starts_with("Configuring foo") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, configuring).await.unwrap();
    host.kill();
    tree.kill_all();
    assert_eq!(tree.package("foo"), "iF 2.0");
    tree.write("/go", "");
    host.start();
    assert_eq!(host.result_of(upgrade).await, "done");
    host.await_log("an earlier installation did not finish").await;
    assert_eq!((tree.package("foo"), tree.audit()), ("ii 2.0".to_owned(), String::new()));
    assert_eq!(host.replies_to(upgrade).await, 1);
}

#[tokio::test]
async fn boot_menu_is_synced_during_dpkg() {
    // As update-grub writes it.
    let postinst = "yes 'new menu' | head --lines=3000 >/boot/grub/grub.cfg.new\n\
                    cat /boot/grub/grub.cfg.new >/boot/grub/grub.cfg; rm /boot/grub/grub.cfg.new\n\
                    echo one more >>/begun; while ! test -e /go; do sleep 0.05; done";
    let (tree, _archive) = with_newer(Package::new("foo", "2.0").script("postinst", postinst));
    let disk = tree.ext4_disk("/boot");
    tree.write("/boot/grub/grub.cfg", "old menu\n");
    tree.must(&["sync", "--file-system", "/boot"]);
    assert_eq!(disk.read_as_boot_loader("/grub/grub.cfg"), "old menu\n");

    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    host.prepared("run-1").await;
    let upgrade = host.send("run-1", &host.upgrade()).await;
    await_begun(&tree, 1).await;
    let menu = tree.read("/boot/grub/grub.cfg");
    assert_eq!(menu.lines().count(), 3000);
    eventually("the new menu to be in its place", async || {
        (disk.read_as_boot_loader("/grub/grub.cfg") == menu).then_some(())
    })
    .await;
    tree.write("/go", "");
    assert_eq!(host.result_of(upgrade).await, "done");
}

#[tokio::test]
async fn recommended_packages_survive_interruption() {
    let preinst = "echo one more >>/begun; while ! test -e /go; do sleep 0.05; done";
    let recommended =
        Package::new("extra", "1.0").field("Pre-Depends: foo (>= 2.0)").script("preinst", preinst);
    let newer = Package::new("foo", "2.0").field("Recommends: extra");
    let (tree, mut archive) = with_newer(newer.clone());
    archive.publish(&[newer, recommended]);
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    host.prepared("run-1").await;
    let upgrade = host.send("run-1", &host.upgrade()).await;
    await_begun(&tree, 1).await;
    host.kill();
    tree.kill_all();
    assert_eq!(tree.package("foo"), "ii 2.0");
    // As if it had been interrupted a moment earlier.
    tree.must(&["dpkg", "--force-all", "--purge", "extra"]);
    tree.write("/go", "");
    host.start();
    assert_eq!(host.result_of(upgrade).await, "done");
    host.await_log("installing prepared packages that are still missing: extra").await;
    assert_eq!(tree.package("extra"), "ii 1.0");
    assert!(tree.must(&["apt-mark", "showauto"]).contains("extra"));
}

#[tokio::test]
async fn upgrade_outlives_worker_and_runs_once() {
    let (tree, _archive) = with_newer(slow());
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    host.prepared("run-1").await;
    let upgrade = host.send("run-1", &host.upgrade()).await;
    await_begun(&tree, 1).await;
    host.kill();
    host.start();
    host.await_log("waiting for what an earlier worker began").await;
    // Stopped with SIGTERM, as when its own package is upgraded.
    host.terminate().await;
    host.start();
    tree.write("/go", "");
    assert_eq!(host.result_of(upgrade).await, "done");
    await_begun(&tree, 1).await;
    assert_eq!((tree.package("foo"), tree.audit()), ("ii 2.0".to_owned(), String::new()));

    // The next worker finds no trace of it.
    assert_eq!(run(&host, "run-2").await, "done");
}

#[tokio::test]
async fn stopping_worker_leaves_dpkg_running() {
    let (tree, _archive) = with_newer(slow());
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    host.prepared("run-1").await;
    let upgrade = host.send("run-1", &host.upgrade()).await;
    await_begun(&tree, 1).await;
    assert!(host.terminate().await.success());
    tree.write("/go", "");
    let installed = async || (tree.package("foo") == "ii 2.0").then_some(());
    eventually("dpkg to finish", installed).await;
    host.start();
    assert_eq!(host.result_of(upgrade).await, "done");
    await_begun(&tree, 1).await;
}

#[tokio::test]
async fn hung_prepare_stops_on_hint_or_kill() {
    let (tree, archive) = with_newer(Package::new("foo", "2.0"));
    // A listener that accepts connections and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    Archive::add_source(&tree, &format!("http://{address}"));
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    let prepare = host.send("run-1", &host.prepare("")).await;
    let connected = silent.accept().unwrap();
    host.kill();
    host.start();
    host.await_log("an earlier worker left behind is ended").await;
    silent.accept().unwrap();
    host.client().publish(subject::hint(&host.host), "".into()).await.unwrap();
    assert_eq!(host.result_of(prepare).await, "the preparation was stopped");
    drop(connected);

    archive.set_as_source(&tree);
    assert_eq!(run(&host, "run-2").await, "done");
}
