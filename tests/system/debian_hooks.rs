//! Hooks of APT and scripts of packages that leave processes behind.

use std::process::Command;

use harness::debian::{Package, host, run, system};
use harness::nats_server::NatsServer;

#[tokio::test]
async fn processes_left_behind_are_not_waited_for() {
    let (tree, mut archive) = system(&[Package::new("foo", "1.0")], &["foo"]);
    // As a daemon does that a script starts without detaching it.
    let daemon = "sleep 600 & echo $! >>/left";
    archive.publish(&[Package::new("foo", "2.0").script("postinst", daemon)]);
    tree.write("/etc/apt/apt.conf.d/99hook", &format!("APT::Update::Post-Invoke {{ \"{daemon}\"; }};\n"));
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    assert_eq!(run(&host, "run-1").await, "done");
    assert_eq!(tree.package("foo"), "ii 2.0");
    let left = tree.read("/left");
    assert_eq!(left.lines().count(), 2, "{left}");
    for process in left.lines() {
        assert!(Command::new("kill").arg(process).status().unwrap().success(), "{process} was ended");
    }
}
