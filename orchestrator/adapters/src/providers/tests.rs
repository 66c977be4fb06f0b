//! The client against real servers on loopback that answer in every way.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use os_upgrade_protocol::limits::{CONTENT_HEADER_BYTES_MAX, ITEM_BYTES_MAX};
use os_upgrade_protocol::{Content, FileEntry, HostKey, HostName, ItemKind, Revision};
use os_upgrade_provider_rules::{
    ANSWER_BYTES_MAX, ContentBytes, CredentialsProblem, Failure, Origin, Outcome, UrlTemplate,
};
use os_upgrade_sealing::{PrivateKey, SealError, SealedFor};
use os_upgrade_test_site::authority::Authority;
use tokio::net::TcpListener;
use zeroize::Zeroizing;

use super::*;
use crate::test_server::{TlsServer, serve, serve_bytes, serve_held, serve_tls};

const LONG: Duration = Duration::from_secs(20);
const DATE: &str = "Sun, 01 Mar 2026 12:00:00 GMT";
const MODIFIED: &str = "Sun, 01 Mar 2026 11:00:00 GMT";

fn name() -> ProviderName {
    ProviderName::new("app").unwrap()
}

fn host() -> HostName {
    HostName::new("h1.example").unwrap()
}

fn definition(url: &str) -> Definition {
    let url = UrlTemplate::new(url).unwrap();
    Definition {
        url,
        path: None,
        client_certificate: None,
        ca: None,
        timeout: LONG,
        reuses_connections: true,
    }
}

async fn ask_as(definition: &Definition, validator: Option<&Validator>) -> Reply {
    HttpProviders::default().ask(&name(), definition, &host(), validator, None).await
}

async fn ask(url: &str) -> Outcome {
    ask_as(&definition(url), None).await.outcome
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failed(failure)
}

/// The bytes of a content.
fn bytes(outcome: &Outcome) -> &[u8] {
    let Outcome::Content { content: bytes, .. } = outcome else { panic!("{outcome:?}") };
    bytes.as_slice()
}

fn failure(outcome: Outcome) -> Failure {
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    failure
}

/// Answers by the first segment of the path: `/404/h1.example`.
async fn by_path(uri: Uri) -> Response {
    let text = |kind: &'static str, text: &'static str| ([(header::CONTENT_TYPE, kind)], text);
    match uri.path().split('/').nth(1).unwrap() {
        "ok" => uri.path().to_owned().into_response(),
        "empty" => StatusCode::OK.into_response(),
        "html" => text("text/html; charset=utf-8", "<html>log in</html>").into_response(),
        "gzip" => ([(header::CONTENT_ENCODING, "gzip")], "\u{1f}").into_response(),
        "largest" => vec![b'x'; ITEM_BYTES_MAX].into_response(),
        "large" => vec![b'x'; ITEM_BYTES_MAX + 1].into_response(),
        "huge" => vec![b'x'; ANSWER_BYTES_MAX + 1].into_response(),
        "seconds" => (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "7")]).into_response(),
        "date" => {
            let times = [(header::RETRY_AFTER, "Sun, 01 Mar 2026 12:00:09 GMT"), (header::DATE, DATE)];
            (StatusCode::SERVICE_UNAVAILABLE, times).into_response()
        }
        "hang" => pending().await,
        status => StatusCode::from_u16(status.parse().unwrap()).unwrap().into_response(),
    }
}

/// What answers mean is tested with the rules; this tests that all that matters is passed to them.
#[tokio::test]
async fn every_answer_has_its_outcome() {
    let server = serve(Router::new().fallback(by_path)).await;
    let url = |path: &str| format!("http://{}/{path}/{{host}}", server.address);
    assert_eq!(bytes(&ask(&url("ok")).await), b"/ok/h1.example");
    assert_eq!(bytes(&ask(&url("empty")).await), b"");
    assert_eq!(bytes(&ask(&url("largest")).await).len(), ITEM_BYTES_MAX);
    for (path, expected) in [
        ("404", Outcome::Removed),
        ("410", Outcome::Removed),
        ("401", failed(Failure::Refused { status: 401 })),
        ("403", failed(Failure::Refused { status: 403 })),
        ("429", failed(Failure::Throttled)),
        ("500", failed(Failure::Unavailable { status: 500 })),
        ("204", failed(Failure::UnexpectedStatus { status: 204 })),
        ("206", failed(Failure::UnexpectedStatus { status: 206 })),
        ("304", failed(Failure::UnexpectedStatus { status: 304 })),
        ("html", failed(Failure::Html)),
        ("gzip", failed(Failure::Encoded)),
        ("large", failed(Failure::TooLarge { limit: ITEM_BYTES_MAX })),
        ("huge", failed(Failure::TooLarge { limit: ANSWER_BYTES_MAX })),
    ] {
        assert_eq!(ask(&url(path)).await, expected, "{path}");
    }
    for (path, seconds) in [("seconds", Some(7)), ("date", Some(9)), ("500", None)] {
        let reply = ask_as(&definition(&url(path)), None).await;
        assert_eq!(reply.retry_after, seconds.map(Duration::from_secs), "{path}");
    }
    // A page is proper where one is expected.
    let page = Definition { path: Some("/var/www/index.html".to_owned()), ..definition(&url("html")) };
    assert_eq!(bytes(&ask_as(&page, None).await.outcome), b"<html>log in</html>");
    let dots = HostName::new("..").unwrap();
    let reply = HttpProviders::default().ask(&name(), &definition(&url("ok")), &dots, None, None).await;
    assert_eq!(reply, Failure::HostNotInUrl.into());
}

#[tokio::test]
async fn slow_answers_end_in_time() {
    let server = serve(Router::new().fallback(by_path)).await;
    // The headers arrive, and the body does not end.
    let dripping = serve_held("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx").await;
    // It accepts connections and sends nothing, so the TLS handshake does not end.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    for url in [
        format!("http://{}/hang/{{host}}", server.address),
        format!("http://{}/{{host}}", dripping.address),
        format!("https://{}/{{host}}", silent.local_addr().unwrap()),
    ] {
        let slow = Definition { timeout: Duration::from_millis(100), ..definition(&url) };
        assert_eq!(ask_as(&slow, None).await.outcome, failed(Failure::TimedOut), "{url}");
    }
}

#[tokio::test]
async fn incomplete_answers_are_not_taken() {
    for (answer, expected) in [
        ("", None),
        ("HTTP/1.1 200", None),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", None),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", None),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", Some(&b"hello"[..])),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Some(b"hello")),
    ] {
        let server = serve_bytes(answer).await;
        let outcome = ask(&format!("http://{}/{{host}}", server.address)).await;
        match expected {
            Some(expected) => assert_eq!(bytes(&outcome), expected, "{answer:?}"),
            None => assert_eq!(outcome, failed(Failure::Cut), "{answer:?}"),
        }
    }
    for answer in [
        "SSH-2.0-OpenSSH_9.2p1 Debian\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
    ] {
        let server = serve_bytes(answer).await;
        let outcome = ask(&format!("http://{}/{{host}}", server.address)).await;
        assert!(matches!(failure(outcome), Failure::NotHttp { .. }), "{answer:?}");
    }
}

/// Of a body without an announced length no more is read than the limit, however much there is.
#[tokio::test]
async fn endless_answers_are_cut_off() {
    let body = format!("{:x}\r\n{}\r\n", 1 << 20, "x".repeat(1 << 20)).repeat(9);
    let server = serve_held(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}")).await;
    let outcome = ask(&format!("http://{}/{{host}}", server.address)).await;
    assert_eq!(outcome, failed(Failure::TooLarge { limit: ANSWER_BYTES_MAX }));
}

/// The requests that a server got.
type Seen = Arc<Mutex<Vec<(String, HeaderMap)>>>;

async fn record(State(seen): State<Seen>, uri: Uri, headers: HeaderMap) -> &'static str {
    seen.lock().unwrap().push((uri.to_string(), headers));
    "x"
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let seen = Seen::default();
    let elsewhere = serve(Router::new().fallback(record).with_state(Arc::clone(&seen))).await;
    for status in [301, 302, 303, 307, 308] {
        let answer = format!(
            "HTTP/1.1 {status} Moved\r\nLocation: http://{}/\r\nContent-Length: 0\r\n\r\n",
            elsewhere.address
        );
        let server = serve_bytes(answer).await;
        let outcome = ask(&format!("http://{}/{{host}}", server.address)).await;
        assert_eq!(outcome, failed(Failure::Redirected { status }));
    }
    assert_eq!(seen.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn requests_are_conditional_and_plain() {
    let seen = Seen::default();
    let server = serve(Router::new().fallback(record).with_state(Arc::clone(&seen))).await;
    let definition = definition(&format!("http://{}/a/{{host}}/app.conf?v=1", server.address));
    let by_etag = Validator::new(b"old", Some(b"W/\"1\""), Some(MODIFIED.as_bytes()), Some(DATE.as_bytes()));
    let by_time = Validator::new(b"old", None, Some(MODIFIED.as_bytes()), Some(DATE.as_bytes()));
    let by_digest = Validator::new(b"x", None, None, None);
    let host = HostName::new("a/b").unwrap();
    let providers = HttpProviders::default();
    for (validator, none_match, modified_since) in [
        (None, None, None),
        (Some(&by_etag), Some("W/\"1\""), None),
        (Some(&by_time), None, Some(MODIFIED)),
        (Some(&by_digest), None, None),
    ] {
        let reply = providers.ask(&name(), &definition, &host, validator, None).await;
        let is_same = validator == Some(&by_digest);
        assert_eq!(matches!(reply.outcome, Outcome::Unchanged { .. }), is_same, "{reply:?}");
        let (uri, headers) = seen.lock().unwrap().pop().unwrap();
        assert_eq!(uri, "/a/a%2Fb/app.conf?v=1");
        let named = |name: &str| headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!((named("if-none-match"), named("if-modified-since")), (none_match, modified_since));
        assert_eq!(named("accept-encoding"), Some("identity"));
        assert!(named("user-agent").unwrap().starts_with("os-upgrade/"));
        assert_eq!((named("authorization"), named("cookie"), named("referer")), (None, None, None));
    }
}

/// Against a server that compares as RFC 9110 says.
#[tokio::test]
async fn unchanged_files_are_not_sent_again() {
    let files = async |uri: Uri, headers: HeaderMap| {
        let (validator, condition) = match uri.path() {
            "/etag" => ((header::ETAG, "\"1\""), header::IF_NONE_MATCH),
            _ => ((header::LAST_MODIFIED, MODIFIED), header::IF_MODIFIED_SINCE),
        };
        let is_same = headers.get(condition).is_some_and(|value| value == validator.1);
        let headers = [validator, (header::DATE, DATE)];
        if is_same { (StatusCode::NOT_MODIFIED, headers, "") } else { (StatusCode::OK, headers, "level=3") }
    };
    let server = serve(Router::new().fallback(files)).await;
    for path in ["etag", "time"] {
        let definition = definition(&format!("http://{}/{path}", server.address));
        let first = ask_as(&definition, None).await.outcome;
        let Outcome::Content { content: bytes, validator } = first else { panic!("{first:?}") };
        assert_eq!(bytes.as_slice(), b"level=3");
        let second = ask_as(&definition, Some(&validator)).await.outcome;
        assert_eq!(second, Outcome::Unchanged { validator }, "{path}");
    }
}

#[tokio::test]
async fn unreachable_servers_are_told_apart() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = failure(ask(&format!("http://{address}/{{host}}")).await);
    let Failure::Unreachable { why } = &refused else { panic!("{refused:?}") };
    assert!(why.contains("Connection refused") && !why.contains("h1.example"), "{why}");

    let (ours, other) = (Authority::new("one"), Authority::new("other"));
    let server = serve_tls(Router::new().fallback(by_path), &ours, None).await;
    let trusting = |ca: &str| {
        let url = format!("https://{}/ok/{{host}}", server.address);
        Definition { ca: Some(ca.to_owned()), ..definition(&url) }
    };
    let both = other.pem.clone() + &ours.pem;
    for ca in [&ours.pem, &both] {
        assert_eq!(bytes(&ask_as(&trusting(ca), None).await.outcome), b"/ok/h1.example");
    }
    for (ca, expected) in [
        (other.pem.as_str(), "its certificate is from an authority that is not trusted"),
        ("", "`ca` holds no certificate in PEM"),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "`ca` holds no usable authority: ",
        ),
    ] {
        let failed = failure(ask_as(&trusting(ca), None).await.outcome);
        let Failure::TlsFailed { why } = &failed else { panic!("{failed:?}") };
        assert!(why.contains(expected), "{why}");
    }
    // A server that does not speak TLS, one that wants a certificate, and TLS where HTTP is spoken.
    let plain = serve(Router::new().fallback(by_path)).await;
    let strict = serve_tls(Router::new().fallback(by_path), &ours, Some(&ours)).await;
    for address in [plain.address, strict.address] {
        let url = format!("https://{address}/ok/{{host}}");
        let outcome =
            ask_as(&Definition { ca: Some(ours.pem.clone()), ..definition(&url) }, None).await.outcome;
        assert!(matches!(&outcome, Outcome::Failed(Failure::TlsFailed { .. })), "{outcome:?}");
    }
    let crossed = failure(ask(&format!("http://{}/{{host}}", server.address)).await);
    assert!(matches!(crossed, Failure::NotHttp { .. } | Failure::Cut), "{crossed:?}");
}

fn credentials(secret: &str, origin: &str) -> Credentials {
    let name = SecretName::new("files").unwrap();
    Credentials::new(name, Zeroizing::new(secret.to_owned()), Origin::new(origin).unwrap())
}

#[tokio::test]
async fn credentials_go_to_their_origin_alone() {
    let seen = Seen::default();
    let server = serve(Router::new().fallback(record).with_state(Arc::clone(&seen))).await;
    let own = format!("http://{}", server.address);
    let definition = definition(&format!("{own}/{{host}}"));
    let malformed = Err(CredentialsProblem::Malformed);
    for (secret, origin, expected) in [
        ("eyJhbGciOi.x_y-z", own.as_str(), Ok("Bearer eyJhbGciOi.x_y-z")),
        ("user:pa:ss", &own, Ok("Basic dXNlcjpwYTpzcw==")),
        ("häst:på", &own, Ok("Basic aMOkc3Q6cMOl")),
        ("hunter2", "https://files.example", Err(CredentialsProblem::OtherOrigin)),
        ("hunter2", "http://127.0.0.1:1", Err(CredentialsProblem::OtherOrigin)),
        ("hunter2", &own.replace("http:", "https:"), Err(CredentialsProblem::OtherOrigin)),
        ("hunter2\r\nX: y", &own, malformed),
        ("hunter 2", &own, malformed),
        ("user:hunter2\n", &own, malformed),
        ("", &own, malformed),
    ] {
        let credentials = credentials(secret, origin);
        let shown = format!("{credentials:?}");
        assert!(!shown.contains("hunter") && !shown.contains("user"), "{shown}");
        let reply =
            HttpProviders::default().ask(&name(), &definition, &host(), None, Some(&credentials)).await;
        let requests = std::mem::take(&mut *seen.lock().unwrap());
        match expected {
            Ok(value) => {
                assert_eq!(bytes(&reply.outcome), b"x");
                assert_eq!(requests[0].1[header::AUTHORIZATION], value);
            }
            Err(problem) => {
                let failure = Failure::Credentials { problem, secret: Some("files".to_owned()) };
                assert_eq!(reply, failure.into(), "{secret:?} {origin}");
                assert_eq!(requests.len(), 0, "nothing was sent");
            }
        }
    }
}

/// A provider behind TLS, with this client certificate.
fn with_certificate(server: &TlsServer, ca: &Authority, certificate: Option<Credentials>) -> Definition {
    let url = format!("https://{}/{{host}}", server.address);
    Definition { ca: Some(ca.pem.clone()), client_certificate: certificate, ..definition(&url) }
}

#[tokio::test]
async fn client_certificates_are_presented() {
    let (servers, clients) = (Authority::new("one"), Authority::new("other"));
    let seen = Seen::default();
    let router = Router::new().fallback(record).with_state(Arc::clone(&seen));
    let server = serve_tls(router, &servers, Some(&clients)).await;
    let origin = format!("https://{}", server.address);
    let secret = |authority: &Authority, chain: &str| {
        let (certificate, key) = authority.certify("orchestrator");
        Some(credentials(&format!("{certificate}{key}{chain}"), &origin))
    };
    // A changed certificate is presented by the next request.
    let providers = HttpProviders::default();
    let token = credentials("token", &origin);
    for certificate in [secret(&clients, ""), secret(&clients, &clients.pem)] {
        let definition = with_certificate(&server, &servers, certificate);
        let reply = providers.ask(&name(), &definition, &host(), None, Some(&token)).await;
        assert_eq!(bytes(&reply.outcome), b"x");
    }
    for (certificate, expected) in
        [(None, "it requires a certificate"), (secret(&servers, ""), "it does not accept the certificate")]
    {
        let definition = with_certificate(&server, &servers, certificate);
        let failed = failure(providers.ask(&name(), &definition, &host(), None, Some(&token)).await.outcome);
        let Failure::TlsFailed { why } = &failed else { panic!("{failed:?}") };
        assert!(why.ends_with(expected), "{why}");
    }
    assert_eq!(*server.chains.lock().unwrap(), [1, 2]);
    let requests = seen.lock().unwrap();
    assert_eq!(requests.len(), 2, "nobody else got through");
    assert!(requests.iter().all(|(_, headers)| headers[header::AUTHORIZATION] == "Bearer token"));
}

#[tokio::test]
async fn unusable_client_certificates_are_not_presented() {
    let authority = Authority::new("one");
    let server = serve_tls(Router::new().fallback(by_path), &authority, None).await;
    let own = format!("https://{}", server.address);
    let (certificate, key) = authority.certify("orchestrator");
    let (_, other_key) = authority.certify("orchestrator");
    let whole = certificate.clone() + &key;
    let key_line = key.lines().nth(1).unwrap();
    for (secret, origin, problem) in [
        ("hunter2".to_owned(), own.as_str(), CredentialsProblem::Malformed),
        (whole.clone(), "https://files.example", CredentialsProblem::OtherOrigin),
        (key.clone(), &own, CredentialsProblem::Malformed),
        (certificate.clone(), &own, CredentialsProblem::Malformed),
        (certificate.clone() + &other_key, &own, CredentialsProblem::Malformed),
        (whole.clone() + &other_key, &own, CredentialsProblem::Malformed),
        (whole.replace("PRIVATE", "ENCRYPTED PRIVATE"), &own, CredentialsProblem::Malformed),
        // On one line, as of a variable that lost its line breaks.
        (whole.replace('\n', ""), &own, CredentialsProblem::Malformed),
    ] {
        let definition = with_certificate(&server, &authority, Some(credentials(&secret, origin)));
        let reply = ask_as(&definition, None).await;
        let failure = Failure::ClientCertificate { problem, secret: Some("files".to_owned()) };
        assert_eq!(reply, failure.into(), "{secret} {origin}");
        let shown = format!("{definition:?}");
        assert!(!shown.contains(key_line) && !shown.contains("hunter"), "{shown}");
    }
    assert!(server.chains.lock().unwrap().is_empty(), "nobody was connected to");
}

#[tokio::test]
async fn a_changed_definition_has_its_own_client() {
    let server = serve(Router::new().fallback(by_path)).await;
    let providers = HttpProviders::default();
    let ok = definition(&format!("http://{}/ok/{{host}}", server.address));
    let gone = definition(&format!("http://{}/404/{{host}}", server.address));
    let first = providers.client(&name(), &ok).unwrap();
    assert!(Arc::ptr_eq(&first, &providers.client(&name(), &ok).unwrap()), "connections are kept");
    assert_eq!(providers.ask(&name(), &gone, &host(), None, None).await.outcome, Outcome::Removed);
    assert!(!Arc::ptr_eq(&first, &providers.client(&name(), &ok).unwrap()));
    let all = Providers { http: providers.clone(), ..Providers::default() };
    all.retain_configured(&os_upgrade_kernel::State::default());
    assert!(providers.clients.lock().unwrap().is_empty());
}

#[test]
fn contents_are_sealed_to_their_host() {
    let (key, host) = (PrivateKey::generate(), host());
    let revision = Revision { epoch: 0, sequence: 4711 };
    let sealed_for = SealedFor { host: &host, kind: ItemKind::Configuration, name: "app", revision };
    let target = FileTarget {
        path: "/etc/app.conf".to_owned(),
        mode: Some(0o640),
        user: Some("root".to_owned()),
        group: Some("app".to_owned()),
    };
    let bytes = ContentBytes::new(b"level=3".to_vec());
    let open = |item: &SealedItem| Content::parse(&key.open(&sealed_for, &item.bytes).unwrap()).unwrap();

    let item = seal(&key.public(), &sealed_for, &[target.entry(7)], &bytes).unwrap();
    let FileTarget { path, mode, user, group } = target.clone();
    let file = FileEntry { path, mode, user, group, bytes: 7 };
    assert_eq!(open(&item), Content { files: vec![file.clone()], bytes: b"level=3".to_vec() });
    assert_eq!(item.id.to_string().len(), 22, "128 bits in base64url");

    let other = FileEntry { path: "/etc/b".to_owned(), mode: None, user: None, group: None, bytes: 3 };
    let files = [FileEntry { bytes: 4, ..file }, other];
    let both = seal(&key.public(), &sealed_for, &files, &bytes).unwrap();
    assert_eq!(open(&both), Content { files: files.to_vec(), bytes: b"level=3".to_vec() });

    let opaque = seal(&key.public(), &sealed_for, &[], &bytes).unwrap();
    assert_eq!(open(&opaque), Content { files: Vec::new(), bytes: b"level=3".to_vec() });
    assert_ne!(opaque.id, item.id);

    let nobody = seal(&HostKey::new([0; 32]), &sealed_for, &[], &bytes).unwrap_err();
    assert_eq!(nobody, SealItemError::Key(SealError));
    assert_eq!(Failure::from(nobody), Failure::NotSealed);
    let long = FileTarget { path: "/".repeat(CONTENT_HEADER_BYTES_MAX), ..target };
    let refused = seal(&key.public(), &sealed_for, &[long.entry(7)], &bytes);
    assert_eq!(refused, Err(SealItemError::HeaderTooLong));
}
