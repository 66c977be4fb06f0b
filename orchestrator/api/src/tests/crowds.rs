//! The listener with too many clients, and with clients that do not read their answers, over real sockets.

use std::net::{IpAddr, SocketAddr};

use axum::routing::get;
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

use super::limits::limited;
use super::served::listen;
use super::*;
use crate::http::listener::Listener;

/// Connects from `client`, an address of this machine.
async fn connect(client: &str, address: SocketAddr) -> TcpStream {
    let client: IpAddr = client.parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((client, 0).into()).unwrap();
    socket.connect(address).await.unwrap()
}

/// The answer to `path` on `stream`, which stays open; `None` when it was closed.
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

/// Opens `number` connections from `client` and returns those that are served.
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
async fn new_client_gets_a_connection() {
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
    // The longest quiet connection made room.
    assert_eq!(ask(&mut first[0], "/healthz").await, None);
    assert!(ask(&mut first[1], "/healthz").await.is_some());
    // One connection is reserved for this machine.
    let mut local = connect("127.0.0.1", address).await;
    assert!(ask(&mut local, "/healthz").await.is_some());
    assert!(ask(&mut first[2], "/healthz").await.is_some());

    shutdown.cancel();
    served.await.unwrap().unwrap();
    drop((second, third));
}

/// Cancels the token when it is dropped, with the body of an answer.
struct Dropped(CancellationToken);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A listener whose answer at `/endless` never ends. Returns its address, and a token that is cancelled when the
/// answer is cut off.
async fn endless(shutdown: &CancellationToken) -> (SocketAddr, CancellationToken) {
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
    let address = listen_with(router, Limits::default(), shutdown).await;
    (address, ended)
}

async fn listen_with(router: Router, limits: Limits, shutdown: &CancellationToken) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listener = Listener::Tcp(listener);
    tokio::spawn(listener::serve_router(listener, router, limits, None, shutdown.clone()));
    address
}

/// Requests `path` and reads the beginning of the answer.
async fn begin(client: &str, address: SocketAddr, path: &str) -> TcpStream {
    let mut stream = connect(client, address).await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.read_exact(&mut [0; 1_024]).await.unwrap();
    stream
}

#[tokio::test]
async fn unread_answer_times_out() {
    let shutdown = CancellationToken::new();
    let _stop = shutdown.clone().drop_guard();
    let (address, ended) = endless(&shutdown).await;
    let _stream = begin("127.0.0.1", address, "/endless").await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    ended.cancelled().await;
    assert!(begun.elapsed() >= Duration::from_secs(29), "{:?}", begun.elapsed());
}

fn would_block(read: &std::io::Result<usize>) -> bool {
    read.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// A client that reads slowly is cut off after the limit for a whole answer.
#[tokio::test]
async fn slowly_read_answer_times_out() {
    let shutdown = CancellationToken::new();
    let _stop = shutdown.clone().drop_guard();
    let (address, ended) = endless(&shutdown).await;
    let stream = begin("127.0.0.1", address, "/endless").await;
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    let slowly = async {
        let mut part = vec![0; 65_536];
        loop {
            tokio::time::sleep(Duration::from_secs(10)).await;
            while stream.try_read(&mut part).is_ok_and(|read| read > 0) {}
            // Do not advance the paused clock until more data arrives: sockets work in real time.
            while would_block(&stream.try_read(&mut part[..1])) && !ended.is_cancelled() {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::select! {
        () = ended.cancelled() => {}
        () = async { tokio::time::timeout(Duration::from_mins(10), slowly).await.unwrap_or_default() } => {}
    }
    assert!((110..=125).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

/// Until the last byte of its answer is sent, a request is under way, and its connection does not make room.
#[tokio::test]
async fn request_is_under_way_until_sent() {
    const LARGE: usize = 32 * 1_024 * 1_024;
    let limits = limited(&[
        ("OS_UPGRADE_API__CONNECTIONS", "17"),
        ("OS_UPGRADE_API__CONNECTIONS_PER_ADDRESS", "6"),
        ("OS_UPGRADE_API__REQUESTS_IN_FLIGHT", "1"),
    ]);
    let limits = limits.limits.with_clients_on_loopback();
    let router = Router::new()
        .route("/large", get(async || vec![b' '; LARGE]))
        .route("/small", get(async || "small"))
        .route("/healthz", get(async || "alive"))
        .layer(middleware::from_fn_with_state((limits.clone(), Dialect::Specification), listener::enforce));
    let shutdown = CancellationToken::new();
    let _stop = shutdown.clone().drop_guard();
    let address = listen_with(router, limits, &shutdown).await;

    let mut slow = begin("127.0.0.2", address, "/large").await;
    let mut other = connect("127.0.0.3", address).await;
    let answer = ask(&mut other, "/small").await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let mut first = crowd("127.0.0.2", address, 5).await;
    let others = [crowd("127.0.0.3", address, 4).await, crowd("127.0.0.4", address, 5).await];
    assert_eq!((first.len(), others.each_ref().map(Vec::len)), (5, [4, 5]));
    // The limit is reached, and another connection than the slow one makes room.
    assert_eq!(crowd("127.0.0.5", address, 1).await.len(), 1);
    assert_eq!(ask(&mut first[0], "/healthz").await, None);

    let mut rest = vec![0; LARGE];
    slow.read_exact(&mut rest[..LARGE - 1_024]).await.unwrap();
    let answer = ask(&mut other, "/small").await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}
