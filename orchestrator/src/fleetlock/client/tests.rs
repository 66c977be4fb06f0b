//! Every kind of answer, from a real server on loopback.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect};
use os_upgrade_protocol::HostName;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::*;

const HTML: &str = "<html>\n  please <b>log in</b>\u{7}</html>";

/// A server until dropped.
struct Server {
    address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

async fn serve(router: Router) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Server { address, _task: AbortOnDropHandle::new(task) }
}

/// A server that reads a request, answers `bytes`, and closes.
async fn serve_bytes(bytes: impl Into<Vec<u8>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let bytes = bytes.into();
    let task = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            stream.write_all(&bytes).await.unwrap();
        }
    });
    Server { address, _task: AbortOnDropHandle::new(task) }
}

fn client(base: &str, timeouts: Timeouts) -> FleetLockClient {
    FleetLockClient::with_timeouts(&base.parse().unwrap(), timeouts).unwrap()
}

/// What both operations answer; they must not differ.
async fn answer_with(base: &str, timeouts: Timeouts) -> LockOutcome {
    let client = client(base, timeouts);
    let (group, id) = (GroupName::new("workers").unwrap(), HostName::new("h01").unwrap());
    let locked = client.lock(&group, &id).await;
    assert_eq!(client.unlock(&group, &id).await, locked, "{base}");
    locked
}

async fn answer(base: &str) -> LockOutcome {
    answer_with(base, Timeouts::default()).await
}

fn odd(detail: &str) -> LockOutcome {
    LockOutcome::Protocol { detail: detail.to_owned() }
}

/// Answers by the base path that the client was given: `/409/json/v1/pre-reboot`.
async fn by_path(uri: Uri) -> axum::response::Response {
    let mut parts = uri.path().trim_start_matches('/').split('/');
    let status = parts.next().and_then(|status| status.parse().ok()).unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    let full = json!({ "kind": "failed_lock_semaphore_full", "value": "all slots are held" });
    match parts.next().unwrap() {
        "empty" => status.into_response(),
        "kind" => (status, axum::Json(full)).into_response(),
        "html" => (status, HTML).into_response(),
        "long" => (status, axum::Json(json!({ "kind": "k", "value": "v".repeat(10_000) }))).into_response(),
        "huge" => (status, "x".repeat(10 * 1024 * 1024)).into_response(),
        "moved" => (status, [(header::LOCATION, "/200/empty")]).into_response(),
        "login" => Redirect::to("/200/html").into_response(),
        "hang" => pending().await,
        other => panic!("{other}"),
    }
}

/// What each answer means is tested where it is read; here, that status, body and location are handed over.
#[tokio::test]
async fn answers_are_handed_over_whole() {
    let server = serve(Router::new().fallback(by_path)).await;
    let denied =
        |kind: &str, value: &str| LockOutcome::Denied { lock_kind: kind.to_owned(), value: value.to_owned() };
    let full = denied("failed_lock_semaphore_full", "all slots are held");
    for (path, expected) in [
        ("200/empty", LockOutcome::Granted),
        ("200/kind", LockOutcome::Granted),
        ("200/huge", LockOutcome::Granted),
        ("202/empty", odd("status 202: only 200 grants")),
        ("204/empty", odd("status 204: only 200 grants")),
        ("301/moved", odd("status 301: redirect to /200/empty not followed")),
        ("302/login", odd("status 303: redirect to /200/html not followed")),
        ("304/empty", odd("status 304: only 200 grants")),
        ("307/moved", odd("status 307: redirect to /200/empty not followed")),
        ("401/html", odd("status 401: not a FleetLock error: <html> please <b>log in</b>\u{fffd}</html>")),
        ("409/kind", full.clone()),
        ("503/kind", full),
        ("503/empty", odd("status 503: no body")),
        ("500/long", denied("k", &("v".repeat(1_000) + "…"))),
        ("500/huge", odd("status 500: a body of more than 65536 bytes")),
    ] {
        assert_eq!(answer(&format!("http://{}/{path}", server.address)).await, expected, "{path}");
    }
}

#[tokio::test]
async fn no_answer_is_unreachable() {
    let server = serve(Router::new().fallback(by_path)).await;
    let short = Timeouts { total: Duration::from_millis(100), ..Timeouts::default() };
    let hung = answer_with(&format!("http://{}/200/hang", server.address), short).await;
    assert_eq!(hung, LockOutcome::Unreachable { detail: "timed out".to_owned() });

    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = answer(&format!("http://user:secret@{address}")).await;
    let LockOutcome::Unreachable { detail } = &refused else { panic!("{refused:?}") };
    assert!(detail.contains("Connection refused") && !detail.contains("secret"), "{detail}");

    for half in [&b""[..], b"HTTP/1.1 200"] {
        let server = serve_bytes(half).await;
        let answer = answer(&format!("http://{}", server.address)).await;
        assert!(matches!(answer, LockOutcome::Unreachable { .. }), "{half:?}: {answer:?}");
    }

    // Plain HTTP where TLS is expected.
    let tls = answer(&format!("https://{}", server.address)).await;
    assert!(matches!(tls, LockOutcome::Unreachable { .. }), "{tls:?}");
}

#[tokio::test]
async fn what_is_not_http_is_a_protocol_error() {
    let server = serve_bytes(b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n\r\n").await;
    let garbage = answer(&format!("http://{}", server.address)).await;
    assert!(matches!(garbage, LockOutcome::Protocol { .. }), "{garbage:?}");

    for body in ["Transfer-Encoding: chunked\r\n\r\nzz\r\n", "Content-Length: 9\r\n\r\n{"] {
        let server = serve_bytes(format!("HTTP/1.1 500 Oops\r\n{body}")).await;
        let garbage = answer(&format!("http://{}", server.address)).await;
        assert!(matches!(garbage, LockOutcome::Protocol { .. }), "{body}: {garbage:?}");
    }
}

type Seen = Arc<Mutex<Vec<(Method, String, HeaderMap, Bytes)>>>;

async fn record(State(seen): State<Seen>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) {
    seen.lock().unwrap().push((method, uri.to_string(), headers, body));
}

#[tokio::test]
async fn requests_are_those_of_the_protocol() {
    let seen = Seen::default();
    let server = serve(Router::new().fallback(record).with_state(Arc::clone(&seen))).await;
    let (group, id) = (GroupName::new("workers").unwrap(), HostName::new("häst").unwrap());
    for (base, prefix, authorization) in [
        ("http://HOST", "", None),
        ("http://HOST/", "", None),
        ("http://HOST/base", "/base", None),
        ("http://HOST/base/?x=1#y", "/base", None),
        ("http://us%40er:pass@HOST/base", "/base", Some("Basic dXNAZXI6cGFzcw==")),
    ] {
        let client = client(&base.replace("HOST", &server.address.to_string()), Timeouts::default());
        assert_eq!(client.lock(&group, &id).await, LockOutcome::Granted);
        assert_eq!(client.unlock(&group, &id).await, LockOutcome::Granted);
        assert!(!format!("{client:?}").contains("pass@"));
        let requests = std::mem::take(&mut *seen.lock().unwrap());
        let paths: Vec<_> = requests.iter().map(|(_, path, _, _)| path.as_str()).collect();
        assert_eq!(paths, [format!("{prefix}/v1/pre-reboot"), format!("{prefix}/v1/steady-state")]);
        for (method, _, headers, body) in requests {
            assert_eq!(method, Method::POST);
            assert_eq!(headers["fleet-lock-protocol"], "true");
            assert_eq!(
                headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap()),
                authorization
            );
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body, json!({ "client_params": { "id": "häst", "group": "workers" } }));
        }
    }
}
