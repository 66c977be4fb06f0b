//! The sources of the Debian worker with real APT: of every kind that APT upgrades from, and what operators read of those
//! that fail.

use std::fs;

use axum::Router;
use axum::response::Html;
use harness::debian::{Archive, CACHE, Package, host, run, system};
use harness::nats_server::NatsServer;
use harness::worker::WorkerHost;
use tokio::net::TcpListener;

async fn prepare(host: &WorkerHost, run: &str) -> String {
    let prepare = host.send(run, &host.prepare("")).await;
    host.result_of(prepare).await
}

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

#[tokio::test]
async fn local_source_with_host_is_refused_as_by_apt() {
    let (tree, mut archive) = system(&[Package::new("foo", "1.0")], &["foo"]);
    archive.publish(&[Package::new("foo", "2.0")]);
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    for (run, url) in [("run-1", "file://srv/archive"), ("run-2", "file:srv/archive")] {
        Archive::set_source(&tree, url);
        let by_apt = tree.run(&["apt-get", "update"]);
        assert!(!by_apt.status.success());
        let refusal = "Invalid URI, local URIS must not start with //";
        assert!(String::from_utf8_lossy(&by_apt.stdout).contains(refusal), "{by_apt:?}");
        assert_eq!(
            prepare(&host, run).await,
            format!(
                "file://srv/archive does not have what the source names; correct the source's address or suite: {refusal}"
            )
        );
    }
}

#[tokio::test]
async fn changed_release_is_accepted_as_the_reason_says() {
    let (tree, mut archive) = system(&[Package::new("foo", "1.0")], &["foo"]);
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    assert_eq!(prepare(&host, "run-1").await, "done");

    // APT accepts another suite by itself.
    archive.set_release("Suite: oldstable\nCodename: test\nLabel: vendor");
    archive.publish(&[Package::new("foo", "2.0")]);
    let result = prepare(&host, "run-2").await;
    let lists = tree.path(CACHE).join("lists");
    let command = format!("rm -r {}", lists.display());
    let expected = format!(
        "copy:/srv/archive changed its 'Label' value from '' to 'vendor'; packages may be pinned by that; check \
         /etc/apt/preferences.d, and accept the change with: {command}"
    );
    assert_eq!(result, expected);
    // What APT advises does not help.
    tree.must(&["apt-get", "--quiet=2", "update", "--allow-releaseinfo-change"]);
    assert_eq!(prepare(&host, "run-3").await, expected);
    fs::remove_dir_all(&lists).unwrap();
    assert_eq!(run(&host, "run-4").await, "done");
    assert_eq!(tree.package("foo"), "ii 2.0");

    archive.set_release("Suite: test\nCodename: next\nLabel: vendor");
    archive.publish(&[Package::new("foo", "3.0")]);
    let result = prepare(&host, "run-5").await;
    let expected =
        "copy:/srv/archive changed its 'Codename' value from 'test' to 'next'; that may be another release; ";
    assert!(result.starts_with(expected), "{result}");
    assert!(result.ends_with(&command), "{result}");
    assert_eq!(tree.package("foo"), "ii 2.0");
}

/// Answers every request with a login page, until it is dropped. Returns its URL.
async fn login_page() -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let pages =
        Router::new().fallback(async || Html("<html><body>Please log in to the network</body></html>"));
    (url, tokio::spawn(async move { axum::serve(listener, pages).await.unwrap() }))
}

#[tokio::test]
async fn login_page_is_no_bad_signature() {
    let (tree, mut archive) = system(&[Package::new("foo", "1.0")], &["foo"]);
    archive.publish(&[Package::new("foo", "2.0")]);
    let server = NatsServer::with_streams().await;
    let mut host = host(&server, &tree, &[]).await;
    host.start();
    let (url, pages) = login_page().await;
    let intercepted = format!(
        "{url} is not what answers; check the network for a login page (captive portal), the proxy and its "
    );
    Archive::set_source(&tree, &url);
    let result = prepare(&host, "run-1").await;
    assert!(result.starts_with(&intercepted), "{result}");
    assert!(result.ends_with("(does the network require authentication?)"), "{result}");
    Archive::set_trusted_source(&tree, &url);
    let result = prepare(&host, "run-2").await;
    assert!(result.starts_with(&intercepted), "{result}");
    pages.abort();

    // Of a source without a Release file, APT stores the page as the list.
    let page = "<html><body>Please log in to the network</body></html>\n";
    let unsigned = tree.path("/srv/unsigned");
    fs::create_dir(&unsigned).unwrap();
    fs::write(unsigned.join("Packages"), page).unwrap();
    Archive::set_trusted_source(&tree, "file:/srv/unsigned");
    let result = prepare(&host, "run-3").await;
    assert!(result.contains(": Unable to parse package file "), "{result}");
    host.await_log("because APT cannot read it").await;

    archive.set_as_source(&tree);
    assert_eq!(run(&host, "run-4").await, "done");
    assert_eq!(tree.package("foo"), "ii 2.0");
}
