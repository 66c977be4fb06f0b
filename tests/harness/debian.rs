//! A small Debian system of one test, an overlay on the one that `make debian-tree` makes, and an archive with test
//! packages. Real APT and dpkg work in it.

mod archive;
mod tree;

pub use archive::{Archive, Package, dpkg_deb};
pub use tree::{Disk, Mount, Tree};

use crate::nats_server::NatsServer;
use crate::worker::WorkerHost;

/// The worker's directory of package lists and packages.
pub const CACHE: &str = "/var/cache/os-upgrade-worker";

/// A system with an archive of these packages, of which `installed` are installed.
pub fn system(packages: &[Package], installed: &[&str]) -> (Tree, Archive) {
    let tree = Tree::new();
    let mut archive = Archive::new(&tree);
    archive.publish(packages);
    tree.must(&["apt-get", "--quiet=2", "update"]);
    let mut install = vec!["apt-get", "--quiet=2", "--assume-yes", "install"];
    install.extend(installed);
    tree.must(&install);
    (tree, archive)
}

/// A host whose worker upgrades the system of `tree`, with more options for it. It does not run yet.
pub async fn host(server: &NatsServer, tree: &Tree, more: &[&str]) -> WorkerHost {
    let root = tree.root();
    // These systems need little disk space.
    let kind = ["debian", "--root", root.to_str().unwrap(), "--free-space", "1"];
    WorkerHost::new(server, "d1").await.with_kind(&kind).with_options(more)
}

/// Prepares and upgrades the host, which must succeed. Returns the result of `upgrade`.
pub async fn run(host: &WorkerHost, run: &str) -> String {
    host.prepared(run).await;
    let upgrade = host.send(run, &host.upgrade()).await;
    host.result_of(upgrade).await
}
