//! Clients that send byte by byte, or stop in the middle: each times out, with an answer in its own dialect.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::join_all;
use harness::orchestrator::Orchestrator;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Timeouts of a request's head and body, as in docs/security.md. A busy machine may double them.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends `begin`, then `drip` repeatedly, until the connection is closed. Returns the answer and how long that took.
async fn send_slowly(address: SocketAddr, begin: &str, drip: &str) -> (String, Duration) {
    let start = Instant::now();
    let (mut read, mut write) = TcpStream::connect(address).await.unwrap().into_split();
    let sending = async {
        write.write_all(begin.as_bytes()).await.unwrap();
        while !drip.is_empty() && write.write_all(drip.as_bytes()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = Vec::new();
    tokio::select! {
        // Everything before the reset has been read.
        _ = read.read_to_end(&mut answer) => {}
        () = sending => {}
    }
    (String::from_utf8(answer).unwrap(), start.elapsed())
}

fn head(request: &str, more: &str) -> String {
    format!("{request} HTTP/1.1\r\nhost: localhost\r\nfleet-lock-protocol: true\r\n{more}")
}

/// The head of a request, and the first byte of a body that never arrives.
fn with_body(request: &str) -> String {
    head(request, "content-type: application/json\r\ncontent-length: 1000\r\n\r\n{")
}

#[tokio::test]
async fn slow_clients_are_disconnected() {
    let mut orchestrator = Orchestrator::managed();
    orchestrator.start_ready().await;
    let address = orchestrator.address();

    let heads = [
        (String::new(), ""),
        ("GET /v1/st".to_owned(), ""),
        (head("GET /v1/state/os-upgrade", ""), "x"),
        (head("PUT /v1/config/os-upgrade", "content-length: 2\r\nx: "), "y"),
        (head("POST /fleetlock/v1/pre-reboot", ""), "x"),
    ];
    let heads = join_all(heads.iter().map(async |(begin, drip)| {
        let (answer, took) = send_slowly(address, begin, drip).await;
        assert_eq!(answer, "", "{begin}");
        assert!((HEAD_TIMEOUT..2 * HEAD_TIMEOUT).contains(&took), "{begin}: closed after {took:?}");
    }));

    let late = "the body did not arrive in time";
    let problem = json!({ "errors": [{ "error-message": late }] });
    let bodies = [
        ("PUT /v1/config/os-upgrade", problem.clone()),
        ("PATCH /v1/config/os-upgrade", problem.clone()),
        ("POST /v1/state/os-upgrade/trigger-upgrade-site", problem.clone()),
        ("POST /v1/state/os-upgrade/trigger-upgrade-site?site=elsewhere", problem.clone()),
        ("POST /v1/state/strongbox/unseal", problem),
        ("POST /v1/pre-reboot", json!({ "kind": "body_timeout", "value": late })),
        ("POST /fleetlock/v1/steady-state", json!({ "kind": "body_timeout", "value": late })),
    ];
    let bodies = join_all(bodies.iter().map(async |(request, expected)| {
        // A client that stops, and one that sends slowly.
        for drip in ["", " "] {
            let (answer, took) = send_slowly(address, &with_body(request), drip).await;
            assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{request}: {answer}");
            let body = answer.split_once("\r\n\r\n").unwrap().1;
            assert_eq!(
                serde_json::from_str::<Value>(body).ok().as_ref(),
                Some(expected),
                "{request}: {body}"
            );
            assert!((BODY_TIMEOUT..3 * BODY_TIMEOUT).contains(&took), "{request}: closed after {took:?}");
        }
    }));
    tokio::join!(heads, bodies);
    assert_eq!(orchestrator.rest.get("/healthz").await.0, 200);
    assert_eq!(orchestrator.readiness().await.as_deref(), Some(""));
}
