//! FleetLock as bytes on a socket: what clients send that is unusual, and what proxies and mistakes make of it. Every
//! answer is in the dialect.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::served::{exchange, listen};
use super::*;

const BODY: &str = r#"{"client_params":{"id":"a","group":"default"}}"#;
const MEANT: &str = "fleet-lock-protocol: true\r\n";

/// An API that listens, and everything it needs.
struct Served {
    _api: TestApi,
    address: SocketAddr,
    _stop: tokio_util::sync::DropGuard,
}

async fn served() -> Served {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let shutdown = CancellationToken::new();
    let (address, _task) = listen(&api, Options::default(), &shutdown).await;
    Served { _api: api, address, _stop: shutdown.drop_guard() }
}

/// Status, headers and body of the last answer in `text`: 100 is none.
fn parse(text: &str) -> (u16, String, Value) {
    let text = text.strip_prefix("HTTP/1.1 100 Continue\r\n\r\n").unwrap_or(text);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
    (status, head.to_ascii_lowercase(), body)
}

impl Served {
    /// The answer to a request on a connection of its own.
    async fn ask(&self, line: &str, headers: &str, body: &str) -> (u16, String, Value) {
        let request = format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n{body}");
        parse(&exchange(self.address, &request).await)
    }
}

fn with_length(headers: &str, body: &str) -> String {
    format!("{headers}content-length: {}\r\n", body.len())
}

#[tokio::test]
async fn paths_as_clients_join_them() {
    let served = served().await;
    let headers = with_length(MEANT, BODY);
    for path in [
        "/v1/pre-reboot",
        "//v1/pre-reboot",
        "/v1/pre-reboot/",
        "///v1//pre-reboot//?x=1&x=2",
        "/fleetlock/v1/pre-reboot",
        "/fleetlock//v1/steady-state/",
        "//fleetlock/v1/steady-state?",
        "http://other.example//v1/pre-reboot",
    ] {
        let (status, head, body) = served.ask(&format!("POST {path}"), &headers, BODY).await;
        assert_eq!((status, body), (200, json!({})), "{path}");
        assert!(head.contains("content-type: application/json") && !head.contains("location:"), "{head}");
    }
    for path in ["/fleetlock", "/fleetlock/", "/fleetlock/v1/pre-reboots", "/fleetlock/v1/state/os-upgrade"] {
        for method in ["POST", "GET", "OPTIONS"] {
            let (status, _, body) = served.ask(&format!("{method} {path}"), &headers, BODY).await;
            assert_eq!((status, &body["kind"]), (404, &json!("not_found")), "{path}");
            assert_eq!(body["value"], format!("there is nothing at {path}"));
        }
    }
    // What is not FleetLock's is answered as ever.
    let (status, _, body) = served.ask("POST //v1/config/os-upgrade", &headers, BODY).await;
    assert_eq!((status, body), (404, error("there is nothing at //v1/config/os-upgrade")));
}

#[tokio::test]
async fn methods() {
    let served = served().await;
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "HEAD"] {
        for (headers, body) in [(MEANT.to_owned(), ""), (with_length(MEANT, BODY), BODY)] {
            let (status, head, body) = served.ask(&format!("{method} //v1/pre-reboot"), &headers, body).await;
            assert_eq!(status, 405, "{method}");
            assert!(head.contains("\r\nallow: post"), "{head}");
            let expected = json!({ "kind": "method_not_allowed", "value": "FleetLock requests are POSTed" });
            assert_eq!(body, if method == "HEAD" { Value::Null } else { expected }, "{method}");
        }
    }
}

#[tokio::test]
async fn bodies_in_any_framing() {
    let served = served().await;
    let chunked = format!("{MEANT}transfer-encoding: chunked\r\n");
    let expects = format!("{}expect: 100-continue\r\n", with_length(MEANT, BODY));
    let (first, second) = BODY.split_at(10);
    let in_two = format!("{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    let invalid = |value: &str| (400, json!({ "kind": "invalid_body", "value": value }));
    let granted = (200, json!({}));
    let shape = r#"the body is not {"client_params": {"id": "...", "group": "..."}}: "#;
    let no_body = invalid(&format!("{shape}EOF while parsing a value at line 1 column 0"));
    for (headers, body, expected) in [
        (&chunked, in_two.as_str(), granted.clone()),
        (&expects, BODY, granted),
        (&MEANT.to_owned(), "", no_body.clone()),
        (&with_length(MEANT, ""), "", no_body.clone()),
        (&chunked, "0\r\n\r\n", no_body),
    ] {
        let (status, _, answer) = served.ask("POST /v1/pre-reboot", headers, body).await;
        assert_eq!((status, answer), expected, "{headers} {body}");
    }
    let (status, _, answer) = served.ask("POST /v1/pre-reboot", &chunked, "zz\r\nx\r\n").await;
    assert_eq!((status, &answer["kind"]), (400, &json!("invalid_body")), "{answer}");
}

/// Whoever is still sending has to hear why it was in vain, and not that the connection was reset.
#[tokio::test]
async fn large_bodies_are_heard_out() {
    let served = served().await;
    let large = format!("{BODY}{}", " ".repeat(700_000));
    let chunked = format!("{MEANT}transfer-encoding: chunked\r\n");
    let in_chunks = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let too_large = ("body_too_large", "the body exceeds 65536 bytes");
    let not_meant = (
        "missing_fleet_lock_header",
        "the header fleet-lock-protocol must be there once, with the value true",
    );
    let not_posted = ("method_not_allowed", "FleetLock requests are POSTed");
    for (line, headers, body, status, (kind, value)) in [
        ("POST /v1/pre-reboot", with_length(MEANT, &large), &large, 413, too_large),
        ("POST /v1/steady-state", chunked, &in_chunks, 413, too_large),
        ("POST /v1/pre-reboot", with_length("", &large), &large, 400, not_meant),
        ("PUT /v1/pre-reboot", with_length(MEANT, &large), &large, 405, not_posted),
    ] {
        let (found, _, answer) = served.ask(line, &headers, body).await;
        assert_eq!((found, answer), (status, json!({ "kind": kind, "value": value })), "{line}");
    }
    let fits = format!("{BODY}{}", " ".repeat(64 * 1024 - BODY.len()));
    assert_eq!(served.ask("POST /v1/pre-reboot", &with_length(MEANT, &fits), &fits).await.0, 200);
}

/// A client that asks whether to send its body is told what is wrong instead, and is not waited for.
#[tokio::test]
async fn a_body_held_back_is_not_asked_for_in_vain() {
    let served = served().await;
    let expect = "expect: 100-continue\r\ncontent-length: 80000\r\n";
    for (headers, status, kind) in [
        (expect.to_owned(), 400, "missing_fleet_lock_header"),
        (format!("{MEANT}{expect}"), 413, "body_too_large"),
    ] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let request = format!("POST /v1/pre-reboot HTTP/1.1\r\nhost: x\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(!answer.contains("100 Continue"), "{answer}");
        let (found, _, body) = parse(&answer);
        assert_eq!((found, &body["kind"]), (status, &json!(kind)));
    }
}

#[tokio::test]
async fn a_body_that_does_not_come() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    tokio::time::pause();
    for (header, status, kind) in [("true", 408, "body_timeout"), ("no", 400, "missing_fleet_lock_header")] {
        let body = Body::from_stream(futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>());
        let request = Request::post("/v1/pre-reboot").header("fleet-lock-protocol", header);
        let (found, _, answer) = api.send(request.body(body).unwrap()).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((found, &answer["kind"]), (status, &json!(kind)), "{answer}");
    }
}

/// Within 3 s, whatever the core's own limit is.
#[tokio::test]
async fn a_core_that_does_not_answer_in_time() {
    let (directory, projector) = store().await;
    let shown = Arc::new(ArcSwap::from_pointee(SiteSnapshot::default()));
    let (sender, _calls) = mpsc::channel(8);
    let api = TestApi::over(SiteHandle::new(shown, sender), projector.history().await.unwrap(), directory);
    tokio::time::pause();
    for path in ["/v1/pre-reboot", "/v1/steady-state"] {
        let asked = tokio::time::Instant::now();
        let request = Request::post(path).header("fleet-lock-protocol", "true").body(Body::from(BODY));
        let (status, _, answer) = api.send(request.unwrap()).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let value = NotDone::unknown("starting").to_string();
        let expected = json!({ "kind": "outcome_unknown", "value": value });
        assert_eq!((status, answer), (503, expected), "{path}");
        assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
    }
}
