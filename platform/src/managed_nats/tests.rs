//! Tests with a real nats-server. They fail if none is found.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use async_nats::jetstream;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::*;
use crate::nats_server::find;

async fn start(directory: &Path) -> ManagedNats {
    let options = Options { directory: directory.join("nats server \"1\""), port: None };
    ManagedNats::start(find().await.unwrap(), &options).await.unwrap()
}

async fn stream_messages(nats: &ManagedNats) -> u64 {
    let context = jetstream::new(connect(&nats.url()).await.unwrap());
    let config = jetstream::stream::Config { name: "kept".to_owned(), ..Default::default() };
    let mut stream = context.get_or_create_stream(config).await.unwrap();
    stream.info().await.unwrap().state.messages
}

async fn publish(nats: &ManagedNats) {
    let context = jetstream::new(connect(&nats.url()).await.unwrap());
    context.publish("kept", "x".into()).await.unwrap().await.unwrap();
}

#[tokio::test]
async fn data_and_port_survive_stop_and_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut nats = start(dir.path()).await;
    let url = nats.url();
    assert_eq!(stream_messages(&nats).await, 0);
    publish(&nats).await;

    assert!(nats.stop().await.code().is_some(), "it exits on SIGTERM");
    nats.start_again().await.unwrap();
    assert_eq!((nats.url(), stream_messages(&nats).await), (url.clone(), 1));
    publish(&nats).await;

    let ended = nats.exited();
    assert_eq!(nats.kill().await.signal(), Some(Signal::SIGKILL as i32));
    assert_eq!(ended.await.signal(), Some(Signal::SIGKILL as i32));
    nats.start_again().await.unwrap();
    assert_eq!((nats.url(), stream_messages(&nats).await), (url, 2));

    let pid = nats.pid();
    nats.start_again().await.unwrap();
    assert_eq!(nats.pid(), pid, "a running server is not restarted");
    assert!(nats.log().is_file());
}

#[tokio::test]
async fn password_is_required_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let nats = start(dir.path()).await;
    let (url, directory) = (nats.url(), nats.log().parent().unwrap().to_owned());
    let (before, address) = url.split_once('@').unwrap();
    for other in [format!("nats://{address}"), format!("{before}0@{address}"), format!("nats://x@{address}")]
    {
        let refused = connect(&other).await.unwrap_err().to_string();
        assert!(refused.contains("authorization violation"), "{other}: {refused}");
    }
    assert_eq!(running(&directory).await.unwrap(), Some(url.clone()));
    assert!(!format!("{nats:?}").contains(before.rsplit(':').next().unwrap()));
    for file in ["url", "nats-server.conf"] {
        let mode = fs::metadata(directory.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    drop(nats);
    assert_eq!(running(&directory).await.unwrap(), None);
    assert_eq!(start(dir.path()).await.url(), url);

    // An incomplete password is replaced.
    fs::write(directory.join("url"), &url[..url.len() / 2]).unwrap();
    let other = start(dir.path()).await;
    assert_ne!(other.url(), url);
    assert_eq!(fs::read_to_string(directory.join("url")).unwrap().trim(), other.url());
}

#[tokio::test]
async fn taken_port_is_a_one_line_error() {
    let dir = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let options =
        Options { directory: dir.path().to_owned(), port: Some(taken.local_addr().unwrap().port()) };
    let error = ManagedNats::start(find().await.unwrap(), &options).await.unwrap_err();
    let Error::Ended { detail, .. } = &error else { panic!("{error:?}") };
    assert!(detail.contains("address already in use"), "{detail}");
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
}

#[tokio::test]
async fn directory_is_exclusive_and_keeps_its_port() {
    let dir = tempfile::tempdir().unwrap();
    let first = start(dir.path()).await;
    let options = Options { directory: first.log().parent().unwrap().to_owned(), port: None };
    let error = ManagedNats::start(find().await.unwrap(), &options).await.unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error:?}");
    let port = first.port();
    drop(first);
    let second = start(dir.path()).await;
    assert_eq!(second.port(), port);
    drop(second);
    let _taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    assert_ne!(start(dir.path()).await.port(), port);
}

#[tokio::test]
async fn unusable_directory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let options = Options { directory: file.join("nats"), port: None };
    let error = ManagedNats::start(find().await.unwrap(), &options).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot use {} for the managed nats-server", file.join("nats").display())
    );
}

/// Run by the test below in its own process.
#[tokio::test]
#[ignore = "the parent in `the_server_ends_with_a_killed_parent`"]
async fn parent_of_a_server() {
    let directory = PathBuf::from(std::env::var_os("TEST_NATS_DIRECTORY").unwrap());
    let nats = start(&directory).await;
    println!("server {} {}", nats.pid(), nats.url());
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn the_server_ends_with_a_killed_parent() {
    let dir = tempfile::tempdir().unwrap();
    let mut parent = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "managed_nats::tests::parent_of_a_server", "--ignored", "--nocapture"])
        .env("TEST_NATS_DIRECTORY", dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (pid, url): (i32, String) = BufReader::new(parent.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| {
            let (pid, url) = line.split_once("server ")?.1.split_once(' ')?;
            Some((pid.parse().ok()?, url.to_owned()))
        })
        .unwrap();
    assert!(access::answers(&url).await);
    parent.kill().unwrap();
    parent.wait().unwrap();
    while access::answers(&url).await {}
    // It may stay a zombie if there is no init process.
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    while kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH) && !stat().contains(") Z ") {
        tokio::task::yield_now().await;
    }
}
