//! Servers on loopback for tests, each of which runs until it is dropped.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::serve::Listener;
use os_upgrade_test_site::authority::Authority;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::task::AbortOnDropHandle;

/// A server.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

/// A server of `router`.
pub(crate) async fn serve(router: Router) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Server { address, _task: AbortOnDropHandle::new(task) }
}

/// A server that reads a request, answers `bytes`, and closes.
pub(crate) async fn serve_bytes(bytes: impl Into<Vec<u8>>) -> Server {
    serve_raw(bytes.into(), false).await
}

/// A server that reads a request, answers `bytes`, and keeps the connection open.
pub(crate) async fn serve_held(bytes: impl Into<Vec<u8>>) -> Server {
    serve_raw(bytes.into(), true).await
}

async fn serve_raw(bytes: Vec<u8>, hold: bool) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            stream.write_all(&bytes).await.unwrap();
            open.extend(hold.then_some(stream));
        }
    });
    Server { address, _task: AbortOnDropHandle::new(task) }
}

/// A TLS server.
pub(crate) struct TlsServer {
    pub(crate) address: SocketAddr,
    /// How many certificates each client presented.
    pub(crate) chains: Arc<Mutex<Vec<usize>>>,
    _task: AbortOnDropHandle<()>,
}

struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
    chains: Arc<Mutex<Vec<usize>>>,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, peer) = self.tcp.accept().await.unwrap();
            // The handshake fails if the client rejects our certificate, or lacks a required one.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
                self.chains.lock().unwrap().push(chain.len());
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

/// A TLS server of `router`, whose certificate is from `authority`. If `clients` is given, it requires client certificates from that
/// authority.
pub(crate) async fn serve_tls(
    router: Router,
    authority: &Authority,
    clients: Option<&Authority>,
) -> TlsServer {
    let config = authority.server_config("127.0.0.1", clients);
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let chains = Arc::<Mutex<Vec<usize>>>::default();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TlsListener { tcp, acceptor, chains: Arc::clone(&chains) };
    let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    TlsServer { address, chains, _task: AbortOnDropHandle::new(task) }
}
