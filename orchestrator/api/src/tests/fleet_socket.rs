//! The Unix socket, for real: it serves fleet's dialects alone, to users of this machine.

use std::path::PathBuf;

use axum::Extension;
use axum::routing::get;
use os_upgrade_auth::{Caller, Rights, Role, WatchedTokens};
use os_upgrade_platform::{local_socket, plain_file};
use os_upgrade_settings::Settings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::served::exchange;
use super::*;
use crate::http::listener::Listener;

/// A directory with the path of a socket, and settings that name it.
struct Place {
    directory: TempDir,
    settings: Settings,
}

impl Place {
    fn new(more: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fleet.sock");
        let path = ("OS_UPGRADE_API__FLEET_SOCKET", path.to_str().unwrap());
        let variables = more.iter().chain([&path]).map(|(name, value)| (name.into(), value.into()));
        let settings = os_upgrade_settings::load(None, variables).unwrap();
        Self { directory, settings }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("fleet.sock")
    }

    async fn bind(&self) -> FleetSocket {
        FleetSocket::from_settings(&self.settings.api).await.unwrap().unwrap()
    }

    /// Sends `request` and reads until the server closes the connection.
    async fn exchange(&self, request: &str) -> String {
        let mut stream = UnixStream::connect(self.path()).await.unwrap();
        // The server may have closed it already.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        answer
    }

    async fn ask(&self, method: &str, path: &str) -> String {
        self.exchange(&request(method, path)).await
    }

    /// Serves, at the socket, what `router` answers.
    async fn serve(&self, router: Router, shutdown: &CancellationToken) -> JoinHandle<std::io::Result<()>> {
        let (listener, limits) =
            (Listener::Fleet(self.bind().await), Limits::from_settings(&self.settings.api));
        tokio::spawn(listener::serve_router(listener, router, limits, None, shutdown.clone()))
    }
}

fn request(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: fleet\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
}

async fn whoami(Extension(Caller { actor, rights }): Extension<Caller>) -> String {
    format!("{actor} {rights:?}")
}

/// No header of the request says who it is.
#[tokio::test]
async fn user_of_the_program_is_the_caller() {
    let user = plain_file::user();
    let actor = match local_socket::user_name(user) {
        Some(name) => format!("unix:{user} ({name})"),
        None => format!("unix:{user}"),
    };
    for (role, expected) in [("", Role::Viewer), ("viewer", Role::Viewer), ("admin", Role::Admin)] {
        let place = Place::new(&[("OS_UPGRADE_API__FLEET_SOCKET_ROLE", role)]);
        let shutdown = CancellationToken::new();
        let _stop = shutdown.clone().drop_guard();
        let _served = place.serve(Router::new().route("/", get(whoami)), &shutdown).await;
        let answer = place.ask("GET", "/").await;
        let body = format!("{actor} {:?}", Rights::Role(expected));
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with(&body), "{answer}");
    }
}

#[tokio::test]
async fn socket_goes_away_with_its_listener() {
    let place = Place::new(&[]);
    let shutdown = CancellationToken::new();
    let served = place.serve(Router::new(), &shutdown).await;
    // An idle connection does not delay shutdown.
    let _idle = UnixStream::connect(place.path()).await.unwrap();
    shutdown.cancel();
    served.await.unwrap().unwrap();
    assert!(!place.path().exists());
}

/// All programs at the socket are one client, that of loopback.
#[tokio::test]
async fn connections_are_limited() {
    let place = Place::new(&[("OS_UPGRADE_API__CONNECTIONS_PER_ADDRESS", "1")]);
    let shutdown = CancellationToken::new();
    let _stop = shutdown.clone().drop_guard();
    let _served = place.serve(Router::new().route("/", get(whoami)), &shutdown).await;
    let mut first = UnixStream::connect(place.path()).await.unwrap();
    assert_eq!(place.ask("GET", "/").await, "", "closed without an answer");
    first.write_all(request("GET", "/").as_bytes()).await.unwrap();
    let mut answer = String::new();
    first.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

/// With a token file nobody is known at the address; at the socket everybody is, within its role.
#[tokio::test]
async fn socket_serves_fleet_alone_and_without_tokens() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let place = Place::new(&[]);
    let tokens = place.directory.path().join("tokens.toml");
    os_upgrade_auth::write(&tokens, &[]).unwrap();
    let authenticator = Authenticator::new(Some(WatchedTokens::open(tokens).unwrap()), None);
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let listeners = Listeners { tcp, fleet_socket: Some(place.bind().await) };
    let shutdown = CancellationToken::new();
    let served = tokio::spawn(serve(
        listeners,
        api.site.clone(),
        api.history.clone(),
        authenticator,
        Options::default(),
        shutdown.clone(),
    ));
    for (method, path, at_address, at_socket) in [
        ("GET", "/v1-alpha/units", "401 Unauthorized", "200 OK"),
        ("GET", "/fleet/v1/units", "401 Unauthorized", "200 OK"),
        ("GET", "/fleet/v1/machines", "401 Unauthorized", "200 OK"),
        ("DELETE", "/v1-alpha/units/a.service", "401 Unauthorized", "403 Forbidden"),
        ("DELETE", "/fleet/v1/units/a.service", "401 Unauthorized", "403 Forbidden"),
        ("GET", "/healthz", "200 OK", "404 Not Found"),
        ("GET", "/v1/state/os-upgrade", "401 Unauthorized", "404 Not Found"),
        ("POST", "/v1/state/os-upgrade/trigger-upgrade-site", "401 Unauthorized", "404 Not Found"),
        ("GET", "/metrics", "401 Unauthorized", "404 Not Found"),
    ] {
        let answer = exchange(address, &request(method, path)).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {at_address}\r\n")), "{method} {path}: {answer}");
        let answer = place.ask(method, path).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {at_socket}\r\n")), "{method} {path}: {answer}");
        assert!(answer.contains("content-type: application/json\r\n"), "{method} {path}: {answer}");
        if !at_socket.starts_with("200") {
            assert!(answer.contains("\r\n\r\n{\"error\":{\"code\":"), "{method} {path}: {answer}");
        }
    }
    shutdown.cancel();
    served.await.unwrap().unwrap();
    assert!(!place.path().exists());
}

#[tokio::test]
async fn no_socket_unless_it_is_set() {
    assert!(FleetSocket::from_settings(&Settings::default().api).await.unwrap().is_none());
    let place = Place::new(&[("OS_UPGRADE_API__FLEET_SOCKET_GROUP", "no-such-group")]);
    let error = FleetSocket::from_settings(&place.settings.api).await.unwrap_err();
    assert_eq!(error.to_string(), "there is no group no-such-group");
}
