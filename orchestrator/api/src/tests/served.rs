//! The listener, over real sockets.

use std::net::SocketAddr;

use os_upgrade_test_site::run_id;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;

/// Sends `request` and reads until the server closes the connection.
pub(super) async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Serves `api` until `shutdown`. Returns its address and the task.
pub(super) async fn listen(
    api: &TestApi,
    options: Options,
    shutdown: &CancellationToken,
) -> (SocketAddr, JoinHandle<std::io::Result<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let authenticator = Authenticator::default();
    let listeners = Listeners { tcp: listener, fleet_socket: None };
    let served =
        serve(listeners, api.site.clone(), api.history.clone(), authenticator, options, shutdown.clone());
    (address, tokio::spawn(served))
}

#[tokio::test]
async fn listener_serves_and_stops() {
    let mut site = TestSite::new(["h01"]);
    let records = [site.decide_record(&[os_upgrade_test_site::put_config()])];
    let api = TestApi::new(site, &records).await;
    let shutdown = CancellationToken::new();
    let (address, served) = listen(&api, Options::default(), &shutdown).await;

    let trigger = "POST /v1/state/os-upgrade/trigger-upgrade-site HTTP/1.1\r\n\
                   Host: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let answer = exchange(address, trigger).await;
    assert!(answer.starts_with("HTTP/1.1 204 No Content\r\n"), "{answer}");
    let run = api.site.published().state.run.clone().unwrap().id;
    let detail = api.history.run(&run_id(run.as_str()), 1, None).await.unwrap().unwrap();
    assert_eq!(detail.run.actor.as_deref(), Some("api 127.0.0.1"), "the audit has the peer's address");

    let headers = "X-Header: y\r\n".repeat(100);
    let answer = exchange(address, &format!("GET /healthz HTTP/1.1\r\n{headers}\r\n")).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");

    // An idle connection does not delay shutdown.
    let idle = TcpStream::connect(address).await.unwrap();
    shutdown.cancel();
    served.await.unwrap().unwrap();
    drop(idle);
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
}
