//! The images of a site: those of `docker/Dockerfile` with the programs that cargo has built, on stand-ins for their base
//! images; a stand-in for that of nats-server; and a Debian host with systemd, the worker's package and an archive.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use os_upgrade_platform::nats_server;
use tempfile::TempDir;

use super::engine::{Engine, succeeded};
use super::package;
use crate::debian::{Archive, Package, Tree};
use crate::files::copy;
use crate::programs;

/// The upgradable packages of a Debian host, beside the one that requires a reboot.
pub const PACKAGES: [&str; 7] = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"];
/// The package whose upgrade requires a reboot.
pub const REBOOTS: &str = "kernel";
/// Creates a boot id at each boot. The kernel's is the machine's, which containers share.
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

/// The images of one site, made on demand.
#[derive(Debug)]
pub(super) struct Images {
    engine: Engine,
    site: String,
    /// Whether to tag the images that `make images` has built, and build none.
    built: bool,
}

impl Images {
    pub(super) fn new(engine: &Engine, site: &str) -> Self {
        let built = std::env::var_os("OS_UPGRADE_BUILT_IMAGES").is_some();
        Self { engine: engine.clone(), site: site.to_owned(), built }
    }

    fn name(&self, image: &str) -> String {
        format!("{}/{image}", self.site)
    }

    pub(super) fn make_orchestrator(&self) {
        let debian = || self.engine.import(&self.name("debian"), &Tree::new().root(), &[]);
        self.make("orchestrator", "os-upgrade", ("DEBIAN_IMAGE", "debian"), debian);
    }

    pub(super) fn make_demo_host(&self) {
        let alpine = || {
            let files = alpine();
            self.engine.import(&self.name("alpine"), files.path(), &["CMD [\"/bin/sh\"]"]);
        };
        self.make("demo-host", "os-upgrade-demo-host", ("ALPINE_IMAGE", "alpine"), alpine);
    }

    /// Builds a stage on the base image that `make_base` makes, or tags the image that `make images` has built.
    fn make(&self, stage: &str, built: &str, (argument, base): (&str, &str), make_base: impl FnOnce()) {
        if self.built {
            self.engine.must(&["tag", built, &self.name(stage)]);
            return;
        }
        self.make_programs();
        make_base();
        let arguments = [("PROGRAMS", self.name("programs")), (argument, self.name(base))];
        self.engine.build(&self.name(stage), stage, &arguments);
    }

    /// An image with the programs where the stage `build` leaves them. Made only once: another one would take over its name.
    fn make_programs(&self) {
        if !self.engine.must(&["images", "--quiet", &self.name("programs")]).is_empty() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        for name in [programs::ORCHESTRATOR, programs::WORKER] {
            copy(&programs::path(name), &directory.path().join("programs").join(name));
        }
        let authorities = "etc/ssl/certs/ca-certificates.crt";
        copy(&Path::new("/").join(authorities), &directory.path().join(authorities));
        self.engine.import(&self.name("programs"), directory.path(), &[]);
    }

    pub(super) async fn make_nats(&self) {
        let files = alpine();
        let server = nats_server::find().await.unwrap().path;
        copy(&server, &files.path().join("usr/local/bin/nats-server"));
        self.engine.import(&self.name("nats"), files.path(), &["ENTRYPOINT [\"nats-server\"]"]);
    }

    /// Makes a Debian host with packages of version 1.0, and an archive with 2.0 of each.
    pub(super) fn make_debian_host(&self) {
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
        self.engine.import(&self.name("debian-host"), &tree.root(), &["CMD [\"/sbin/init\"]"]);
    }
}

fn packages(version: &str) -> Vec<Package> {
    let asks = "[ -z \"$2\" ] || touch /run/reboot-required";
    let plain = PACKAGES.into_iter().map(|name| Package::new(name, version));
    plain.chain([Package::new(REBOOTS, version).script("postinst", asks)]).collect()
}

/// A busybox system like Alpine's, with the libraries that programs not built for musl need.
fn alpine() -> TempDir {
    let tree = Tree::with_systemd();
    let directory = tempfile::tempdir().unwrap();
    // As the root directory of an image it must be readable for every user.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let within = |name: &str| directory.path().join(name);
    for name in ["bin", "dev", "etc", "proc", "sys", "tmp", "usr/local/bin", "var/lib"] {
        fs::create_dir_all(within(name)).unwrap();
    }
    fs::set_permissions(within("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    copy(&tree.path("/bin/busybox"), &within("bin/busybox"));
    let applets = succeeded(Command::new(within("bin/busybox")).arg("--list"));
    for applet in applets.lines().filter(|applet| *applet != "busybox") {
        std::os::unix::fs::symlink("busybox", within("bin").join(applet)).unwrap();
    }
    // Each library at the path at which the loader finds it.
    let worker = programs::path(programs::WORKER);
    let libraries = succeeded(Command::new("ldd").arg(&worker));
    for path in libraries.split_whitespace().filter(|word| word.starts_with('/')) {
        let own = fs::canonicalize(tree.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        copy(&own, &within(path.trim_start_matches('/')));
    }
    directory
}
