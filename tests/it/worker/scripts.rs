//! Scripts as people write them: with editors of other systems, with tools that have statuses of their own, and with daemons
//! that they leave behind.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;
use std::time::Instant;

use harness::nats_server::NatsServer;
use harness::wait::{PATIENCE, eventually};
use harness::worker::WorkerHost;

async fn host() -> (NatsServer, WorkerHost) {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    host.start();
    (server, host)
}

async fn prepare(host: &WorkerHost) -> String {
    let prepare = host.send("r1", &host.prepare("")).await;
    host.result_of(prepare).await
}

#[tokio::test]
async fn misbegun_scripts_are_explained() {
    let (_server, host) = host().await;
    let path = host.scripts().join("prepare");
    let windows =
        "it has the line ends of Windows (CRLF); convert it, such as with sed -i 's/\\r$//' or dos2unix";
    let unnamed = "its first line names no interpreter; begin it with one such as #!/bin/sh";
    let absent = |interpreter: &str| {
        format!(
            "its interpreter {interpreter} cannot be run; install it, or correct the first line: ENOENT: No such file or \
             directory"
        )
    };
    for (content, expected) in [
        (&b"#!/bin/sh\r\necho hi\r\nexit 0\r\n"[..], windows),
        (b"#!/bin/sh\recho hi\rexit 0\r", windows),
        (b"#!/usr/bin/env bash\r\nexit 0\r\n", windows),
        (
            b"\xef\xbb\xbf#!/bin/sh\nexit 0\n",
            "it begins with a byte order mark, which hides its interpreter; save it in UTF-8 without one",
        ),
        (b"\xff\xfe#\0!\0/\0", "it is in UTF-16; save it in UTF-8"),
        (b"echo plain >&2; exit 1\n", unnamed),
        (b"", "it is empty"),
        (b"#!/opt/python7\n", &absent("/opt/python7")),
        (
            b"#!/tmp\n",
            "its interpreter /tmp cannot be run; install it, or correct the first line: EISDIR: Is a directory",
        ),
        (
            b"#!/usr/bin/env python7\n",
            "its interpreter python7 is not in the search path; install it, or correct the first line",
        ),
    ] {
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(prepare(&host).await, format!("cannot run {}: {expected}", path.display()));
    }

    host.script("prepare", "");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let not_executable = format!("cannot run {}: it is not executable; run chmod +x on it", path.display());
    assert_eq!(prepare(&host).await, not_executable);
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(prepare(&host).await, format!("cannot run {}: it is not a file", path.display()));
    std::fs::remove_dir(&path).unwrap();
    // Not a missing script, without which there would be nothing to do.
    symlink("/opt/prepare", &path).unwrap();
    let dangling =
        format!("cannot run {}: it is a link to /opt/prepare, which does not exist", path.display());
    assert_eq!(prepare(&host).await, dangling);
}

#[tokio::test]
async fn line_ends_of_windows_are_named_when_a_script_fails() {
    let (_server, host) = host().await;
    let path = host.scripts().join("prepare");
    host.script("prepare", "echo broken >&2\r\nfalse\r");
    assert!(std::fs::read(&path).unwrap().starts_with(b"#!/bin/sh\n"));
    let result = prepare(&host).await;
    let because = "; prepare may fail because it has the line ends of Windows (CRLF); convert it";
    assert!(result.contains(because), "{result}");
    host.script("prepare", "printf 'one\r\n'\necho broken >&2\nfalse");
    assert_eq!(prepare(&host).await, "broken");
}

#[tokio::test]
async fn interpreters_are_found_without_search_path() {
    let server = NatsServer::with_streams().await;
    // As in a unit or a container that unsets it: the worker is found by its path.
    let mut host = WorkerHost::new(&server, "h1").await.without_environment("PATH");
    host.script("prepare", "");
    std::fs::write(host.scripts().join("prepare"), "#!/usr/bin/env sh\nexit 0\n").unwrap();
    host.start();
    assert_eq!(prepare(&host).await, "done");
}

#[tokio::test]
async fn status_of_stopped_service_is_no_reboot() {
    let (_server, host) = host().await;
    for (script, expected) in [
        ("exit 194", "reboot-required"),
        ("exit 3", "upgrade exited with status 3; exit status 3 is an error, and 194 requires a reboot"),
        ("echo web is down >&2; exit 3", "web is down; exit status 3 is an error, and 194 requires a reboot"),
        ("exit 4", "upgrade exited with status 4"),
    ] {
        host.script("upgrade", script);
        host.prepared("r1").await;
        let upgrade = host.send("r1", &host.upgrade()).await;
        assert_eq!(host.result_of(upgrade).await, expected);
    }
    host.script("prepare", "exit 194");
    assert_eq!(prepare(&host).await, "prepare exited with status 194");
}

/// Ends the processes whose ids scripts have written to `left`.
fn end_left_behind(host: &WorkerHost) {
    for pid in host.lines("left") {
        assert!(Command::new("kill").arg(&pid).status().unwrap().success(), "{pid} had ended");
    }
}

#[tokio::test]
async fn daemons_of_scripts_are_not_waited_for() {
    let (_server, host) = host().await;
    let daemon = "sleep 600 & echo $! >>../left";
    host.script("versions", &format!(r#"{daemon}; echo '{{"linux":"2"}}'"#));
    host.script("prepare", &format!("{daemon}; echo no space left >&2; exit 1"));
    let begun = Instant::now();
    // What they printed before they exited is not lost.
    assert_eq!(prepare(&host).await, "no space left");
    host.script("prepare", daemon);
    host.prepared("r2").await;
    let upgrade = host.send("r2", &host.upgrade()).await;
    host.result_of(upgrade).await;
    eventually("versions", async || {
        host.versions().await.last().filter(|versions| versions.0["linux"] == "2").map(drop)
    })
    .await;
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    end_left_behind(&host);
}

#[tokio::test]
async fn escape_sequences_do_not_reach_the_log() {
    let (_server, host) = host().await;
    host.script(
        "prepare",
        r"printf '\033]0;owned\007\033[31mred\033[0m \302\233m \342\200\256 x\rforged y\r\n' >&2; exit 1",
    );
    let result = prepare(&host).await;
    assert!(result.contains("\u{1b}[31mred"), "{result:?}");
    host.await_log("is answered").await;
    let log = host.log();
    assert!(log.contains("red"), "{log}");
    let raw = log.lines().find(|line| line.contains(|c: char| c.is_control() || c == '\u{202e}'));
    assert_eq!(raw, None);
}
