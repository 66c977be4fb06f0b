//! The sources of the Debian worker with real APT: of every kind that APT upgrades from.

use std::fs;

use harness::debian::{Archive, Package, host, system};
use harness::nats_server::NatsServer;

#[tokio::test]
async fn local_sources_are_installed_as_prepared() {
    let (tree, mut archive) = system(&[Package::new("foo", "1.0")], &["foo"]);
    // A mirror that is gone comes before the one that is there.
    tree.write("/etc/apt/mirrors", "file:/srv/nothing/\tpriority:1\nfile:/srv/archive/\tpriority:2\n");
    tree.write("/etc/apt/apt.conf.d/elsewhere", "Dir::Cache::archives \"/var/cache/elsewhere\";\n");
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    let sources = ["file:/srv/archive", "file:///srv/archive", "mirror+file:/etc/apt/mirrors"];
    let one_line = sources.map(|url| (url, false));
    for (number, (url, is_deb822)) in one_line.into_iter().chain([(sources[0], true)]).enumerate() {
        if is_deb822 {
            Archive::set_deb822_source(&tree, url);
        } else {
            Archive::set_source(&tree, url);
        }
        let run = format!("run-{number}");
        let prepared = format!("{}.0", number + 2);
        archive.publish(&[Package::new("foo", &prepared)]);
        host.prepared(&run).await;
        // A newer version replaces it, and the file of the older one is no longer there.
        fs::remove_file(archive.directory().join(format!("foo_{prepared}_all.deb"))).unwrap();
        archive.publish(&[Package::new("foo", &format!("{prepared}.1"))]);
        let upgrade = host.send(&run, &host.upgrade()).await;
        assert_eq!(host.result_of(upgrade).await, "done", "{url}");
        assert_eq!(tree.package("foo"), format!("ii {prepared}"), "{url}");
    }
    assert!(!tree.path("/var/cache/elsewhere").exists());
}
