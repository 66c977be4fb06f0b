//! FleetLock over a socket: unusual requests, of clients, proxies and by mistake. Every answer is in the dialect.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::served::{exchange, listen};
use super::*;

const BODY: &str = r#"{"client_params":{"id":"a","group":"default"}}"#;
const PROTOCOL: &str = "fleet-lock-protocol: true\r\n";

/// An API that listens on a socket, with the values that must outlive it.
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

/// Status, head and body of the answer in `text`, after a `100 Continue`.
fn parse(text: &str) -> (u16, String, Value) {
    let text = text.strip_prefix("HTTP/1.1 100 Continue\r\n\r\n").unwrap_or(text);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() };
    (status, head.to_ascii_lowercase(), body)
}

impl Served {
    /// Sends a request on a new connection and returns the answer.
    async fn send(&self, line: &str, headers: &str, body: &str) -> (u16, String, Value) {
        let request =
            format!("{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n{body}");
        parse(&exchange(self.address, &request).await)
    }
}

fn with_length(headers: &str, body: &str) -> String {
    format!("{headers}content-length: {}\r\n", body.len())
}

#[tokio::test]
async fn paths_are_normalised() {
    let served = served().await;
    let headers = with_length(PROTOCOL, BODY);
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
        let (status, head, body) = served.send(&format!("POST {path}"), &headers, BODY).await;
        assert_eq!((status, body), (200, json!({})), "{path}");
        assert!(head.contains("content-type: application/json") && !head.contains("location:"), "{head}");
    }
    for path in [
        "/fleetlock",
        "/fleetlock/",
        "/fleetlock/v1/pre-reboots",
        "/fleetlock/v1/state/os-upgrade",
        "/wrong/base/v1/pre-reboot",
    ] {
        for method in ["POST", "GET", "OPTIONS"] {
            let (status, _, body) = served.send(&format!("{method} {path}"), &headers, BODY).await;
            assert_eq!((status, &body["kind"]), (404, &json!("not_found")), "{path}");
            assert_eq!(body["value"], format!("nothing exists at {path}"));
        }
    }
    // Other paths are not normalised.
    let (status, _, body) = served.send("POST //v1/config/os-upgrade", &headers, BODY).await;
    assert_eq!((status, body), (404, error("nothing exists at //v1/config/os-upgrade")));
}

#[tokio::test]
async fn only_post_is_allowed() {
    let served = served().await;
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW", "HEAD"] {
        for (headers, body) in [(PROTOCOL.to_owned(), ""), (with_length(PROTOCOL, BODY), BODY)] {
            let (status, head, body) =
                served.send(&format!("{method} //v1/pre-reboot"), &headers, body).await;
            assert_eq!(status, 405, "{method}");
            assert!(head.contains("\r\nallow: post"), "{head}");
            let expected = json!({ "kind": "method_not_allowed", "value": "FleetLock requests use POST" });
            assert_eq!(body, if method == "HEAD" { Value::Null } else { expected }, "{method}");
        }
    }
}

#[tokio::test]
async fn bodies_are_read_in_any_framing() {
    let served = served().await;
    let chunked = format!("{PROTOCOL}transfer-encoding: chunked\r\n");
    let expects = format!("{}expect: 100-continue\r\n", with_length(PROTOCOL, BODY));
    let (first, second) = BODY.split_at(10);
    let in_two = format!("{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", first.len(), second.len());
    let invalid = |value: &str| (400, json!({ "kind": "invalid_body", "value": value }));
    let granted = (200, json!({}));
    let shape = r#"the body is not {"client_params": {"id": "...", "group": "..."}}: "#;
    let no_body = invalid(&format!("{shape}EOF while parsing a value at line 1 column 0"));
    for (headers, body, expected) in [
        (&chunked, in_two.as_str(), granted.clone()),
        (&expects, BODY, granted),
        (&PROTOCOL.to_owned(), "", no_body.clone()),
        (&with_length(PROTOCOL, ""), "", no_body.clone()),
        (&chunked, "0\r\n\r\n", no_body),
    ] {
        let (status, _, answer) = served.send("POST /v1/pre-reboot", headers, body).await;
        assert_eq!((status, answer), expected, "{headers} {body}");
    }
    let (status, _, answer) = served.send("POST /v1/pre-reboot", &chunked, "zz\r\nx\r\n").await;
    assert_eq!((status, &answer["kind"]), (400, &json!("invalid_body")), "{answer}");
}

/// A client that is still sending must get the error, not a reset connection.
#[tokio::test]
async fn large_bodies_are_read_to_the_end() {
    let served = served().await;
    let large = format!("{BODY}{}", " ".repeat(700_000));
    let chunked = format!("{PROTOCOL}transfer-encoding: chunked\r\n");
    let in_chunks = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let too_large = ("body_too_large", "the body exceeds 65536 bytes");
    let no_header = (
        "missing_fleet_lock_header",
        "the header fleet-lock-protocol must be given once, with the value true",
    );
    let not_post = ("method_not_allowed", "FleetLock requests use POST");
    for (line, headers, body, status, (kind, value)) in [
        ("POST /v1/pre-reboot", with_length(PROTOCOL, &large), &large, 413, too_large),
        ("POST /v1/steady-state", chunked, &in_chunks, 413, too_large),
        ("POST /v1/pre-reboot", with_length("", &large), &large, 400, no_header),
        ("PUT /v1/pre-reboot", with_length(PROTOCOL, &large), &large, 405, not_post),
    ] {
        let (found, _, answer) = served.send(line, &headers, body).await;
        assert_eq!((found, answer), (status, json!({ "kind": kind, "value": value })), "{line}");
    }
    let fits = format!("{BODY}{}", " ".repeat(64 * 1024 - BODY.len()));
    assert_eq!(served.send("POST /v1/pre-reboot", &with_length(PROTOCOL, &fits), &fits).await.0, 200);
}

/// A client that waits for `100 Continue` gets the error at once.
#[tokio::test]
async fn refused_body_is_not_requested() {
    let served = served().await;
    let expect = "expect: 100-continue\r\ncontent-length: 80000\r\n";
    for (headers, status, kind) in [
        (expect.to_owned(), 400, "missing_fleet_lock_header"),
        (format!("{PROTOCOL}{expect}"), 413, "body_too_large"),
    ] {
        let mut stream = TcpStream::connect(served.address).await.unwrap();
        let request = format!("POST /v1/pre-reboot HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(!answer.contains("100 Continue"), "{answer}");
        let (found, _, body) = parse(&answer);
        assert_eq!((found, &body["kind"]), (status, &json!(kind)));
    }
}

#[tokio::test]
async fn missing_body_times_out() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    tokio::time::pause();
    for (header, status, kind) in [("true", 408, "body_timeout"), ("no", 400, "missing_fleet_lock_header")] {
        let body = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let request = Request::post("/v1/pre-reboot").header("fleet-lock-protocol", header);
        let (found, _, answer) = api.send(request.body(body).unwrap()).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((found, &answer["kind"]), (status, &json!(kind)), "{answer}");
    }
}

/// The answer arrives within 3 s, whatever the instance's own timeout.
#[tokio::test]
async fn silent_core_is_outcome_unknown() {
    let (directory, projector) = store().await;
    let shown = Arc::new(ArcSwap::from_pointee(PublishedState::default()));
    let (sender, _calls) = mpsc::channel(8);
    let api = TestApi::over(SiteHandle::new(shown, sender), projector.history().await.unwrap(), directory);
    tokio::time::pause();
    for path in ["/v1/pre-reboot", "/v1/steady-state"] {
        let begun = tokio::time::Instant::now();
        let request = Request::post(path).header("fleet-lock-protocol", "true").body(Body::from(BODY));
        let (status, _, answer) = api.send(request.unwrap()).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let value = NotDone::unknown("starting").to_string();
        let expected = json!({ "kind": "outcome_unknown", "value": value });
        assert_eq!((status, answer), (503, expected), "{path}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
}
