//! The listener with more clients than it has room for, and with some that want no answer, over real sockets.

use std::net::{IpAddr, SocketAddr};

use axum::routing::get;
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use super::limits::limited;
use super::served::listen;
use super::*;

/// A connection from `client`, an address of this machine's.
async fn connect(client: &str, address: SocketAddr) -> TcpStream {
    let client: IpAddr = client.parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((client, 0).into()).unwrap();
    socket.connect(address).await.unwrap()
}

/// What is answered to `path` on `stream`, which stays open; none when it was closed.
async fn ask(stream: &mut TcpStream, path: &str) -> Option<String> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let (mut answer, mut part) = (Vec::new(), [0; 4_096]);
    loop {
        let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
        answer.extend_from_slice(&part[..read]);
        let text = String::from_utf8_lossy(&answer);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.unwrap().parse().unwrap() {
                return Some(text.into_owned());
            }
        }
    }
}

/// Those of `number` new connections from `client` that are served.
async fn crowd(client: &str, address: SocketAddr, number: usize) -> Vec<TcpStream> {
    let mut served = Vec::new();
    for _ in 0..number {
        let mut stream = connect(client, address).await;
        if ask(&mut stream, "/healthz").await.is_some() {
            served.push(stream);
        }
    }
    served
}

#[tokio::test]
async fn few_with_many_connections_shut_nobody_out() {
    let (api, _calls) = TestApi::silent(Readiness::Ready).await;
    let options =
        limited(&[("OS_UPGRADE_API__CONNECTIONS", "17"), ("OS_UPGRADE_API__CONNECTIONS_PER_ADDRESS", "6")]);
    let options = Options { limits: options.limits.with_clients_on_loopback(), ..options };
    let shutdown = CancellationToken::new();
    let (address, served) = listen(&api, options, &shutdown).await;
    let mut first = crowd("127.0.0.2", address, 10).await;
    assert_eq!(first.len(), 6, "one address has its limit");
    let second = crowd("127.0.0.3", address, 6).await;
    let third = crowd("127.0.0.4", address, 4).await;
    assert_eq!((second.len(), third.len()), (6, 4));

    let mut newcomer = connect("127.0.0.5", address).await;
    for path in ["/healthz", "/readyz"] {
        let answer = ask(&mut newcomer, path).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    let text = ask(&mut newcomer, "/metrics").await.unwrap();
    assert!(text.contains("os_upgrade_api_refused_total{reason=\"connections\"} 5\n"), "{text}");
    // The one that was quiet for longest has made room.
    assert_eq!(ask(&mut first[0], "/healthz").await, None);
    assert!(ask(&mut first[1], "/healthz").await.is_some());
    // One is kept for this machine.
    let mut local = connect("127.0.0.1", address).await;
    assert!(ask(&mut local, "/healthz").await.is_some());
    assert!(ask(&mut first[2], "/healthz").await.is_some());

    shutdown.cancel();
    served.await.unwrap().unwrap();
    drop((second, third));
}

/// What is dropped with an answer's body tells so.
struct Dropped(CancellationToken);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[tokio::test]
async fn an_answer_that_is_not_taken_is_not_waited_for() {
    let ended = CancellationToken::new();
    let endless = {
        let ended = ended.clone();
        move || {
            let dropped = Dropped(ended.clone());
            Body::from_stream(futures::stream::repeat_with(move || {
                let _ = &dropped;
                Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 4_096]))
            }))
        }
    };
    let router = Router::new().route("/endless", get(async move || endless()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let served = serve::serve_router(listener, router, Limits::default(), None, shutdown.clone());
    let served = tokio::spawn(served);

    let mut stream = connect("127.0.0.1", address).await;
    stream.write_all(b"GET /endless HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    stream.read_exact(&mut [0; 1_024]).await.unwrap();
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    ended.cancelled().await;
    assert!(begun.elapsed() >= Duration::from_secs(29), "{:?}", begun.elapsed());
    shutdown.cancel();
    served.await.unwrap().unwrap();
}
