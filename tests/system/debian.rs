//! The Debian worker with real APT and dpkg in a small system: ordinary upgrades, and what it refuses.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use harness::debian::{CACHE, Package, host, run, system};
use harness::nats_server::NatsServer;
use harness::random::Random;
use harness::wait::eventually;
use os_upgrade_protocol::{Announcement, Versions, subject};
use os_upgrade_systems::debian::version::compare;

#[tokio::test]
async fn upgrade_installs_exactly_what_was_prepared() {
    let (tree, mut archive) = system(&[Package::new("foo", "1.0")], &["foo"]);
    tree.write("/etc/foo.conf", "what the operator wrote\n");
    archive.publish(&[Package::new("foo", "2.0").field("Depends: bar"), Package::new("bar", "1.0")]);

    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &["--package", "foo", "--package", "ba[r]"]).await;
    host.start();
    let versions = |text: &str| Versions::parse(text.as_bytes()).unwrap();
    let release = tree.read("/etc/debian_version").trim().to_owned();
    let first = versions(&format!(r#"{{"os-release":"{release}","foo":"1.0"}}"#));
    eventually("versions", async || Some(host.versions().await).filter(|all| *all == [first.clone()])).await;

    // The worker has its own package lists and packages; nothing else has changed, above all not dpkg's database.
    let before = tree.changes(CACHE);
    host.prepared("run-1").await;
    let after = tree.changes(CACHE);
    let changed: Vec<_> = after.keys().filter(|path| before.get(*path) != after.get(*path)).collect();
    let missing: Vec<_> = before.keys().filter(|path| !after.contains_key(*path)).collect();
    assert!(changed.is_empty() && missing.is_empty(), "prepare changes the system: {changed:?} {missing:?}");
    assert!(tree.path(CACHE).join("archives/foo_2.0_all.deb").is_file());
    host.await_log("1 package to upgrade; new: bar").await;

    // In the meantime others use APT, and a newer version appears.
    archive.publish(&[Package::new("foo", "3.0").field("Depends: bar"), Package::new("bar", "1.0")]);
    tree.must(&["apt-get", "--quiet=2", "update"]);
    tree.must(&["apt-get", "clean"]);
    let upgrade = host.send("run-1", &host.upgrade()).await;
    assert_eq!(host.result_of(upgrade).await, "done");
    assert_eq!((tree.package("foo"), tree.package("bar")), ("ii 2.0".to_owned(), "ii 1.0".to_owned()));
    assert_eq!(tree.read("/etc/foo.conf"), "what the operator wrote\n");
    assert_eq!(tree.read("/etc/bar.conf"), "1.0\n");
    let second = versions(&format!(r#"{{"os-release":"{release}","foo":"2.0","bar":"1.0"}}"#));
    let both = [first, second];
    eventually("new versions", async || Some(host.versions().await).filter(|all| *all == both)).await;
    // Installed packages are deleted from the worker's directory.
    let kept = fs::read_dir(tree.path(CACHE).join("archives")).unwrap();
    assert!(
        !kept.map(|entry| entry.unwrap().file_name()).any(|name| name.to_string_lossy().ends_with(".deb"))
    );
    // The log has APT's output.
    host.await_log("Setting up foo (2.0)").await;

    assert_eq!(run(&host, "run-2").await, "done");
    assert_eq!(tree.package("foo"), "ii 3.0");
    assert_eq!(run(&host, "run-3").await, "done");
    host.await_log("nothing to upgrade").await;
}

/// A package with another configuration file, `/etc/NAME.d/always`, that is the same in every version.
fn with_two_files(name: &str, version: &str) -> Package {
    let file = format!("etc/{name}.d/always");
    Package::new(name, version).file(&file, b"as shipped\n".to_vec()).configuration(&file)
}

#[tokio::test]
async fn only_changed_configuration_files_are_kept() {
    let names = ["changed", "untouched", "removed"];
    let (tree, mut archive) = system(&names.map(|name| with_two_files(name, "1.0")), &names);
    tree.write("/etc/changed.conf", "what the operator wrote\n");
    tree.write("/etc/changed.d/always", "this, too\n");
    fs::remove_file(tree.path("/etc/removed.conf")).unwrap();
    archive.publish(&names.map(|name| with_two_files(name, "2.0")));

    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    assert_eq!(run(&host, "run-1").await, "done");
    assert_eq!(names.map(|name| tree.package(name)), ["ii 2.0", "ii 2.0", "ii 2.0"]);

    // The new file lies beside the operator's, and only where it has changed.
    assert_eq!(tree.read("/etc/changed.conf"), "what the operator wrote\n");
    assert_eq!(tree.read("/etc/changed.conf.dpkg-dist"), "2.0\n");
    assert_eq!(tree.read("/etc/changed.d/always"), "this, too\n");
    assert!(!tree.path("/etc/changed.d/always.dpkg-dist").exists());
    // The same where the operator has deleted the file.
    assert!(!tree.path("/etc/removed.conf").exists());
    assert_eq!(tree.read("/etc/removed.conf.dpkg-dist"), "2.0\n");
    assert_eq!(tree.read("/etc/untouched.conf"), "2.0\n");
    assert_eq!(tree.read("/etc/untouched.d/always"), "as shipped\n");
    let beside =
        ["dpkg-dist", "dpkg-old", "dpkg-new"].map(|end| tree.path(&format!("/etc/untouched.conf.{end}")));
    assert!(!beside.iter().any(|path| path.exists()), "{beside:?}");
}

#[tokio::test]
async fn packages_can_request_reboot() {
    let (tree, mut archive) = system(&[Package::new("foo", "1.0")], &["foo"]);
    let postinst = "touch /run/reboot-required; echo foo >>/run/reboot-required.pkgs";
    archive.publish(&[Package::new("foo", "2.0").script("postinst", postinst)]);
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    assert_eq!(run(&host, "run-1").await, "reboot-required");
    host.await_log("a reboot is required: /run/reboot-required was created by foo").await;
    eventually("the announcement to say so", async || {
        let announced = host.messages(subject::WORKERS_STREAM, &subject::workers_of(&host.host)).await;
        let says = Announcement::parse(&announced.last()?.payload).unwrap().reboot_required;
        (says.as_deref() == Some("/run/reboot-required was created by foo")).then_some(())
    })
    .await;
    // A system that this machine does not run cannot be rebooted, which is reported.
    let reboot = host.send("run-1", &host.reboot()).await;
    let result = host.result_of(reboot).await;
    assert!(result.ends_with("is not the root of this machine, so there is nothing to reboot"), "{result}");
}

#[tokio::test]
async fn removals_and_holds_need_permission() {
    let all = ["foo", "bar", "baz"].map(|name| Package::new(name, "1.0"));
    let (tree, mut archive) = system(&all, &["foo", "bar", "baz"]);
    let conflicting = Package::new("foo", "2.0").field("Conflicts: bar, baz").field("Replaces: bar, baz");
    let newer = Package::new("qux", "1.0");
    archive.publish(&[conflicting.field("Depends: qux"), newer, all[1].clone(), all[2].clone()]);
    let server = NatsServer::with_streams().await;

    let mut careful = host(&server, &tree, &["--removals-max", "1"]).await;
    careful.start();
    let prepare = careful.send("run-1", &careful.prepare("")).await;
    assert_eq!(
        careful.result_of(prepare).await,
        "the upgrade would remove 2 packages, and 1 may be removed: bar, baz; see why with apt-get --simulate \
         dist-upgrade, or allow it with --removals-max 2"
    );
    drop(careful);

    tree.must(&["apt-mark", "hold", "foo"]);
    let server = NatsServer::with_streams().await;
    let mut strict = host(&server, &tree, &["--refuse-held"]).await;
    strict.start();
    let prepare = strict.send("run-2", &strict.prepare("")).await;
    assert_eq!(
        strict.result_of(prepare).await,
        "packages are on hold: foo; release them with apt-mark unhold, or leave out --refuse-held"
    );
    drop(strict);

    let server = NatsServer::with_streams().await;
    let mut usual = host(&server, &tree, &[]).await;
    usual.start();
    assert_eq!(run(&usual, "run-3").await, "done");
    assert_eq!(tree.package("foo"), "hi 1.0");
    usual.await_log("packages on hold stay as they are: foo").await;

    tree.must(&["apt-mark", "unhold", "foo"]);
    assert_eq!(run(&usual, "run-4").await, "done");
    assert_eq!((tree.package("foo"), tree.package("bar")), ("ii 2.0".to_owned(), "rc 1.0".to_owned()));
}

#[tokio::test]
async fn essential_removals_need_permission() {
    let vital = Package::new("vital", "1.0").field("Essential: yes");
    let (tree, mut archive) = system(&[Package::new("foo", "1.0"), vital], &["foo", "vital"]);
    archive.publish(&[Package::new("foo", "2.0").field("Conflicts: vital").field("Replaces: vital")]);
    let server = NatsServer::with_streams().await;
    let mut usual = host(&server, &tree, &[]).await;
    usual.start();
    // APT itself keeps the essential package.
    assert_eq!(run(&usual, "run-1").await, "done");
    usual.await_log("kept back: foo").await;
    assert_eq!((tree.package("foo"), tree.package("vital")), ("ii 1.0".to_owned(), "ii 1.0".to_owned()));

    // Unless no package is configured as essential.
    tree.write("/etc/apt/apt.conf.d/essential", "pkgCacheGen::Essential \"none\";\n");
    let prepare = usual.send("run-2", &usual.prepare("")).await;
    assert_eq!(
        usual.result_of(prepare).await,
        "the upgrade would remove essential packages: vital; see why with apt-get --simulate dist-upgrade, or allow it \
         with --allow-essential-removals"
    );
    assert_eq!((tree.package("foo"), tree.package("vital")), ("ii 1.0".to_owned(), "ii 1.0".to_owned()));
    drop(usual);

    let server = NatsServer::with_streams().await;
    let mut allowing = host(&server, &tree, &["--allow-essential-removals"]).await;
    allowing.start();
    assert_eq!(run(&allowing, "run-3").await, "done");
    assert_eq!((tree.package("foo"), tree.package("vital")), ("ii 2.0".to_owned(), "rc 1.0".to_owned()));
}

#[tokio::test]
async fn health_script_decides() {
    let (tree, mut archive) = system(&[Package::new("foo", "1.0")], &["foo"]);
    archive.publish(&[Package::new("foo", "2.0")]);
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.script(
        "is-well",
        "test -e ../well || { echo \"the shop of $OS_UPGRADE_HOST is closed\" >&2; exit 1; }",
    );
    let script = host.scripts().join("is-well");
    host = host.with_options(&["--health-script", script.to_str().unwrap(), "--health-wait", "1s"]);
    host.start();
    assert_eq!(run(&host, "run-1").await, "the shop of d1 is closed");
    assert_eq!(tree.package("foo"), "ii 2.0");
    host.touch("well");
    assert_eq!(run(&host, "run-2").await, "done");
}

#[tokio::test]
async fn upgrade_without_prepared_data_fails() {
    let (tree, mut archive) = system(&[Package::new("foo", "1.0")], &["foo"]);
    archive.publish(&[Package::new("foo", "2.0")]);
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    host.prepared("run-1").await;
    fs::remove_dir_all(tree.path(CACHE)).unwrap();
    let upgrade = host.send("run-1", &host.upgrade()).await;
    let result = host.result_of(upgrade).await;
    assert!(result.starts_with("nothing is prepared in "), "{result}");

    // Only the packages are missing: none is installed from elsewhere.
    host.prepared("run-2").await;
    fs::remove_file(tree.path(CACHE).join("archives/foo_2.0_all.deb")).unwrap();
    let upgrade = host.send("run-2", &host.upgrade()).await;
    let result = host.result_of(upgrade).await;
    assert!(result.starts_with("the upgrade failed: Unable to fetch some archives"), "{result}");
    assert_eq!(tree.package("foo"), "ii 1.0");
    assert_eq!(run(&host, "run-3").await, "done");
}

/// A random version that dpkg accepts; two of them often differ only slightly.
fn version(random: &mut Random) -> String {
    let mut part = |characters: &[u8]| -> String {
        let length = random.below(6);
        (0..length).map(|_| char::from(*random.pick(characters))).collect()
    };
    let (upstream, revision) = (part(b"0019a.+~Z"), part(b"019a.+~"));
    if revision.is_empty() { format!("1{upstream}") } else { format!("1{upstream}-{revision}") }
}

#[test]
fn versions_order_as_in_dpkg() {
    let mut random = Random::from_environment();
    for _ in 0..300 {
        let (a, b) = (version(&mut random), version(&mut random));
        let relation = match compare(&a, &b) {
            std::cmp::Ordering::Less => "lt",
            std::cmp::Ordering::Equal => "eq",
            std::cmp::Ordering::Greater => "gt",
        };
        let status = Command::new("dpkg").args(["--compare-versions", &a, relation, &b]).status().unwrap();
        assert!(status.success(), "{a} {relation} {b}");
    }
}

#[test]
fn removing_tree_spares_mounts() {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    let other = directory.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("file"), "").unwrap();
    let remove = || {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.ci/systems");
        let mut command = Command::new("sh");
        command.args(["-euc", ". \"$0\"; remove \"$1\""]).arg(script).arg(&tree);
        command.stderr(Stdio::null()).status().unwrap().success()
    };
    assert!(remove(), "there is none");
    let mount = |words: &[&str], at: &str| {
        fs::create_dir_all(tree.join(at)).unwrap();
        assert!(
            Command::new("mount").args(words).arg(tree.join(at)).status().unwrap().success(),
            "{words:?}"
        );
    };
    mount(&["-t", "proc", "proc"], "proc");
    mount(&["-t", "tmpfs", "tmpfs"], "srv");
    mount(&["--bind", other.to_str().unwrap()], "srv/other");

    let used = fs::File::open(tree.join("srv/other/file")).unwrap();
    assert!(!remove(), "it is in use");
    drop(used);
    assert!(remove());
    assert!(!tree.exists());
    assert!(other.join("file").exists());
}
