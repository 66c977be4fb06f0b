//! The images of a site: those of `docker/Dockerfile` with the programs that cargo has built, on stand-ins for what they are
//! based on, a stand-in for that of nats-server, and a Debian host with systemd, the worker's package and an archive.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use os_upgrade_orchestrator::managed_nats;
use tempfile::TempDir;

use super::engine::{Engine, succeeded};
use super::package;
use crate::debian::{Archive, Package, Tree};
use crate::programs;

/// Packages of a Debian host that its upgrade replaces, beside the one whose upgrade asks for a reboot.
pub const PACKAGES: [&str; 7] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"];
/// The package whose upgrade asks for a reboot.
pub const REBOOTS: &str = "kernel";
/// A new one at each boot. The kernel's is that of the machine, which containers share.
const BOOT_ID: &str = "[Service]
Type=oneshot
ExecStart=cp /proc/sys/kernel/random/uuid /run/boot-id

[Unit]
Before=os-upgrade-worker.service

[Install]
WantedBy=multi-user.target
";
const WORKER_ENV: &str = "OS_UPGRADE_NATS_URL=tls://nats1:4222,tls://nats2:4222,tls://nats3:4222
OS_UPGRADE_NATS_CREDENTIALS=/etc/os-upgrade-worker/site/nats.creds
OS_UPGRADE_NATS_CA=/etc/os-upgrade-worker/site/ca.pem
APPLICATION=os-upgrade-debian
OPTIONS=--boot-id-file /run/boot-id --free-space 1
";

/// Makes what all sites have: orchestrators and nats-servers.
pub(super) async fn make_common(engine: &Engine, site: &str) {
    programs(engine, site);
    engine.import(site, "debian", &Tree::new().root(), &[]);
    engine.build(site, "orchestrator", &[("PROGRAMS", "programs"), ("DEBIAN_IMAGE", "debian")]);

    let alpine = alpine();
    engine.import(site, "alpine", alpine.path(), &["CMD [\"/bin/sh\"]"]);
    let server = managed_nats::find().await.unwrap().path;
    put(&server, alpine.path(), "usr/local/bin/nats-server");
    engine.import(site, "nats", alpine.path(), &["ENTRYPOINT [\"nats-server\"]"]);
}

/// Makes a host that is a directory.
pub(super) fn make_demo_host(engine: &Engine, site: &str) {
    engine.build(site, "demo-host", &[("PROGRAMS", "programs"), ("ALPINE_IMAGE", "alpine")]);
}

/// Makes a Debian host. Its packages are of version 1.0, and its archive has 2.0 of each.
pub(super) fn make_debian_host(engine: &Engine, site: &str) {
    let tree = Tree::with_systemd();
    let mut archive = Archive::new(&tree);
    archive.publish(&packages("1.0"));
    tree.must(&["apt-get", "--quiet=2", "update"]);
    tree.must(&[&["apt-get", "--quiet=2", "--assume-yes", "install", REBOOTS], &PACKAGES[..]].concat());
    archive.publish(&packages("2.0"));

    package::build_worker(&tree.path("/worker.deb"));
    tree.must(&["dpkg", "--install", "/worker.deb"]);
    tree.write("/etc/os-upgrade-worker/worker.env", WORKER_ENV);
    tree.write("/etc/systemd/system/boot-id.service", BOOT_ID);
    tree.must(&["systemctl", "enable", "--quiet", "boot-id", "os-upgrade-worker"]);
    engine.import(site, "debian-host", &tree.root(), &["CMD [\"/sbin/init\"]"]);
}

fn packages(version: &str) -> Vec<Package> {
    let asks = "[ -z \"$2\" ] || touch /run/reboot-required";
    let plain = PACKAGES.into_iter().map(|name| Package::new(name, version));
    plain.chain([Package::new(REBOOTS, version).script("postinst", asks)]).collect()
}

/// An image that has the programs where the stage `build` leaves them.
fn programs(engine: &Engine, site: &str) {
    let directory = tempfile::tempdir().unwrap();
    for name in [programs::ORCHESTRATOR, programs::WORKER] {
        put(&programs::path(name), directory.path(), &format!("programs/{name}"));
    }
    let authorities = "etc/ssl/certs/ca-certificates.crt";
    put(&Path::new("/").join(authorities), directory.path(), authorities);
    engine.import(site, "programs", directory.path(), &[]);
}

/// A system of busybox, as Alpine's is, with the libraries that programs need which were not built for musl.
fn alpine() -> TempDir {
    let tree = Tree::with_systemd();
    let directory = tempfile::tempdir().unwrap();
    // As root of an image it has to be open to every user.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let within = |name: &str| directory.path().join(name);
    for name in ["bin", "dev", "etc", "proc", "sys", "tmp", "usr/local/bin", "var/lib"] {
        fs::create_dir_all(within(name)).unwrap();
    }
    fs::set_permissions(within("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    put(&tree.path("/bin/busybox"), directory.path(), "bin/busybox");
    let applets = succeeded(Command::new(within("bin/busybox")).arg("--list"));
    for applet in applets.lines().filter(|applet| *applet != "busybox") {
        std::os::unix::fs::symlink("busybox", within("bin").join(applet)).unwrap();
    }
    // Each library at the path at which the loader finds it.
    let worker = programs::path(programs::WORKER);
    let libraries = succeeded(Command::new("ldd").arg(&worker));
    for path in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
        let own = fs::canonicalize(tree.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        put(&own, directory.path(), path.trim_start_matches('/'));
    }
    directory
}

/// Copies a program or another file to its place below `root`.
fn put(file: &Path, root: &Path, name: &str) {
    let to = root.join(name);
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(file, to).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}
