//! `[api] fleet-socket` with the real program: its file is there as long as the program runs, and replaced after a kill.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use harness::http;
use harness::orchestrator::Orchestrator;
use harness::wait::eventually;
use nix::sys::signal::Signal;
use reqwest::Method;

const SOCKET: &str = "OS_UPGRADE_API__FLEET_SOCKET";

/// An instance with tokens, of which there is none, and with a socket.
fn guarded() -> (Orchestrator, PathBuf) {
    let mut orchestrator = Orchestrator::managed();
    let socket = orchestrator.directory().join("fleet.sock");
    let tokens = orchestrator.directory().join("tokens.toml");
    orchestrator.set_environment(SOCKET, socket.to_str().unwrap());
    orchestrator.set_environment("OS_UPGRADE_API__TOKENS", tokens.to_str().unwrap());
    (orchestrator, socket)
}

/// The status of an answer at the socket; `None` without one.
async fn ask(socket: &Path, method: Method, path: &str) -> Option<u16> {
    let client = http::builder([]).unix_socket(socket).build().unwrap();
    let answer = client.request(method, format!("http://fleet{path}")).send().await.ok()?;
    Some(answer.status().as_u16())
}

/// Waits until the units can be read at the socket.
async fn await_units(socket: &Path) {
    eventually("the units at the socket", async || {
        (ask(socket, Method::GET, "/fleet/v1/units").await == Some(200)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn socket_lives_as_long_as_the_program() {
    let (mut orchestrator, socket) = guarded();
    orchestrator.start();
    await_units(&socket).await;
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o7777, 0o660);
    for (method, path, expected) in [
        (Method::GET, "/v1-alpha/machines", 200),
        (Method::DELETE, "/fleet/v1/units/a.service", 403),
        (Method::GET, "/v1/state/os-upgrade", 404),
        (Method::GET, "/readyz", 404),
    ] {
        assert_eq!(ask(&socket, method.clone(), path).await, Some(expected), "{method} {path}");
    }

    orchestrator.signal(Signal::SIGHUP);
    let read = "the configuration was read again";
    eventually("the reload", async || orchestrator.log().contains(read).then_some(())).await;
    await_units(&socket).await;

    orchestrator.kill().await;
    assert!(socket.exists(), "nobody has removed it");
    assert_eq!(ask(&socket, Method::GET, "/fleet/v1/units").await, None);
    orchestrator.start();
    await_units(&socket).await;

    assert!(orchestrator.terminate().await.success());
    assert!(!socket.exists());
}

#[tokio::test]
async fn socket_of_another_instance_is_left_alone() {
    let (mut first, socket) = guarded();
    first.start();
    await_units(&socket).await;
    let missing = first.directory().join("missing/fleet.sock");
    for (path, why) in [(&socket, "another process does"), (&missing, "its directory does not exist")] {
        let mut second = Orchestrator::managed();
        second.set_environment(SOCKET, path.to_str().unwrap());
        second.start();
        let (code, log) = second.exited().await;
        let expected =
            format!("error: cannot use [api] fleet-socket: cannot listen on {}: {why}", path.display());
        assert!(code == Some(2) && log.lines().any(|line| line == expected), "{code:?} {log}");
        assert!(!second.directory().join("data").exists(), "nothing was started");
    }
    await_units(&socket).await;
}
