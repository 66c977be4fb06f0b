//! The client against a real server on loopback that gives every kind of answer.

use std::future::pending;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect};
use os_upgrade_protocol::HostName;
use serde_json::json;
use tokio::net::TcpListener;

use super::*;
use crate::test_server::{serve, serve_bytes, serve_held};

const HTML: &str = "<html>\n  please <b>log in</b>\u{7}</html>";

fn client(base: &str, timeouts: Timeouts) -> FleetLockClient {
    FleetLockClient::new(&base.parse().unwrap(), timeouts, None).unwrap()
}

/// The outcome of both operations, which must be the same.
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
        "later" => (status, [(header::RETRY_AFTER, "7")], axum::Json(full)).into_response(),
        "until" => {
            let times = [
                (header::RETRY_AFTER, "Sun, 01 Mar 2026 12:00:09 GMT"),
                (header::DATE, "Sun, 01 Mar 2026 12:00:00 GMT"),
            ];
            (status, times).into_response()
        }
        "login" => Redirect::to("/200/html").into_response(),
        "hang" => pending().await,
        other => panic!("{other}"),
    }
}

/// What answers mean is tested in the shell; this tests that status, body and location are passed to it.
#[tokio::test]
async fn status_body_and_location_are_interpreted() {
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
async fn retry_after_is_returned() {
    let server = serve(Router::new().fallback(by_path)).await;
    let (group, seconds) = (GroupName::new("workers").unwrap(), Duration::from_secs);
    for (path, expected) in [
        ("200/later", None),
        ("409/kind", None),
        ("409/later", Some(RetryAfter::Slot(seconds(7)))),
        ("429/later", Some(RetryAfter::Server(seconds(7)))),
        ("503/until", Some(RetryAfter::Server(seconds(9)))),
    ] {
        let client = client(&format!("http://{}/{path}", server.address), Timeouts::default());
        for order in [SlotOrder::Lock, SlotOrder::Unlock] {
            assert_eq!(client.request(order, &group, "h01").await.retry_after, expected, "{path}");
        }
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let seen = Seen::default();
    let elsewhere = serve(Router::new().fallback(record).with_state(Arc::clone(&seen))).await;
    for status in [301, 302, 303, 307, 308] {
        let status = StatusCode::from_u16(status).unwrap();
        for target in [format!("http://{}/granted", elsewhere.address), "/granted".to_owned()] {
            let location = target.clone();
            let asked = Seen::default();
            let redirect = async move |state: State<Seen>, method, uri, headers, body| {
                record(state, method, uri, headers, body).await;
                (status, [(header::LOCATION, location)])
            };
            let server = serve(Router::new().fallback(redirect).with_state(Arc::clone(&asked))).await;
            let expected = odd(&format!("status {}: redirect to {target} not followed", status.as_u16()));
            assert_eq!(answer(&format!("http://{}", server.address)).await, expected);
            assert_eq!(asked.lock().unwrap().len(), 2, "once for each order");
        }
    }
    assert_eq!(seen.lock().unwrap().len(), 0);
}

/// Each timeout alone ends the request, with the other one far away.
#[tokio::test]
async fn connect_and_total_timeouts_apply() {
    const NEVER: Duration = Duration::from_hours(24);
    const SOON: Duration = Duration::from_millis(100);
    // It accepts connections and sends nothing, so the TLS handshake does not end.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let connecting =
        answer_with(&format!("https://{address}"), Timeouts { connect: SOON, total: NEVER }).await;
    assert!(not_sent(&connecting).contains("timed out"), "{connecting:?}");
    let timed_out = LockOutcome::Unreachable { why: NoAnswer::TimedOut };
    for scheme in ["https", "http"] {
        let timeouts = Timeouts { connect: NEVER, total: SOON };
        assert_eq!(answer_with(&format!("{scheme}://{address}"), timeouts).await, timed_out, "{scheme}");
    }
    // The headers arrive, and the body does not end.
    let held = serve_held("HTTP/1.1 500 Oops\r\nContent-Length: 9\r\n\r\n{").await;
    let timeouts = Timeouts { connect: NEVER, total: SOON };
    assert_eq!(answer_with(&format!("http://{}", held.address), timeouts).await, timed_out);
}

#[tokio::test]
async fn no_answer_is_unreachable() {
    let server = serve(Router::new().fallback(by_path)).await;
    let short = Timeouts { total: Duration::from_millis(100), ..Timeouts::default() };
    let hung = answer_with(&format!("http://{}/200/hang", server.address), short).await;
    assert_eq!(hung, LockOutcome::Unreachable { why: NoAnswer::TimedOut });

    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = answer(&format!("http://user:secret@{address}")).await;
    let detail = not_sent(&refused);
    assert!(detail.contains("Connection refused") && !detail.contains("secret"), "{detail}");
    not_sent(&answer("http://lock-server.invalid").await);
    // Plain HTTP where TLS is expected.
    not_sent(&answer(&format!("https://{}", server.address)).await);

    // These have the request, and may carry it out.
    for half in [&b""[..], b"HTTP/1.1 200"] {
        let server = serve_bytes(half).await;
        let answer = answer(&format!("http://{}", server.address)).await;
        let is_unknown = matches!(&answer, LockOutcome::Unreachable { why: NoAnswer::Failed { .. } });
        assert!(is_unknown, "{half:?}: {answer:?}");
    }
}

/// The message of an outcome that says that no request was sent.
fn not_sent(outcome: &LockOutcome) -> &str {
    let LockOutcome::Unreachable { why: NoAnswer::NotSent { detail } } = outcome else {
        panic!("{outcome:?}")
    };
    detail
}

#[tokio::test]
async fn non_http_answer_is_a_protocol_error() {
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
async fn requests_follow_the_protocol() {
    let seen = Seen::default();
    let server = serve(Router::new().fallback(record).with_state(Arc::clone(&seen))).await;
    let (group, id) = (GroupName::new("workers").unwrap(), HostName::new("häst").unwrap());
    for (base, prefix, authorization) in [
        ("http://HOST", "", None),
        ("http://HOST/", "", None),
        ("http://HOST/base", "/base", None),
        ("http://HOST/base/?x=1#y", "/base", None),
        ("http://HOST/base//", "/base", None),
        ("http://HOST/a/b%20c/", "/a/b%20c", None),
        ("http://HOST?x=1", "", None),
        ("http://us%40er:pass@HOST/base", "/base", Some("Basic dXNAZXI6cGFzcw==")),
        ("http://user:pa%3Ass%2F@HOST/base/", "/base", Some("Basic dXNlcjpwYTpzcy8=")),
        ("http://user@HOST/", "", Some("Basic dXNlcjo=")),
        ("http://h%C3%A4st:p%C3%A5@HOST/", "", Some("Basic aMOkc3Q6cMOl")),
    ] {
        let client = client(&base.replace("HOST", &server.address.to_string()), Timeouts::default());
        assert_eq!(client.lock(&group, &id).await, LockOutcome::Granted);
        assert_eq!(client.unlock(&group, &id).await, LockOutcome::Granted);
        let shown = format!("{client:?}");
        assert!(!shown.contains('@') && !shown.contains("pass") && !shown.contains("pa%3A"), "{shown}");
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
