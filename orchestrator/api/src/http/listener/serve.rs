//! The listener: connections with bounded handshakes, headers and times, and an orderly end. How many there may be is in
//! [`super::limit`].

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Uri};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use os_upgrade_auth::PeerCertificate;
use os_upgrade_shell::node::STOP_WITHIN;
use os_upgrade_tls::server_files::Tls;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::{Accept, StartHandshake, TlsStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt as _;

use super::Limits;
use super::connections::Connection;
use super::early::Refusal;
use super::sending::{Sending, until_sent};

/// How long a client may take to send the headers of a request, and a connection may lie idle.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may leave an answer lying: the connection is closed when not a byte of it could be sent for so long.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Most headers of a request.
const HEADERS_MAX: usize = 64;
/// Most bytes of a request line with its headers.
const HEADER_BYTES_MAX: usize = 32 * 1_024;
/// How long requests under way have at the end: as long as the orchestrator itself, and what it takes to write an answer.
pub(crate) const DRAIN_TIMEOUT: Duration = STOP_WITHIN.saturating_add(Duration::from_millis(500));
/// How long to wait when no connection can be accepted, for want of file descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a handshake of TLS may take, its turn included.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) async fn serve_router(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    tls: Option<Tls>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let graceful = GracefulShutdown::new();
    let service = Service {
        router,
        plain: Router::new()
            .fallback(async |method: Method, uri: Uri| Refusal::HttpsOnly.answer(&method, uri.path())),
        tls: tls.clone(),
        handshakes: Arc::clone(limits.handshakes()),
        shutdown: shutdown.clone(),
    };
    let following = tls.map(|tls| AbortOnDropHandle::new(tokio::spawn(tls.follow_files(shutdown.clone()))));
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, peer)) => {
                // An answer that says why would need a task, and time, for each that is closed.
                let Some(connection) = limits.connect(peer.ip()) else { continue };
                let (service, watcher) = (service.clone(), graceful.watcher());
                tokio::spawn(async move {
                    let (connection, sending) = (Arc::new(connection), Sending::default());
                    let client = Client {
                        address: peer,
                        connection: Arc::clone(&connection),
                        sending: sending.clone(),
                        certificate: None,
                    };
                    tokio::select! {
                        // First, so that an answer that begins is noticed.
                        biased;
                        () = service.serve(stream, client, watcher) => {}
                        () = connection.has_to_close() => {}
                        () = sending.overdue() => tracing::debug!(%peer, "an answer was not taken in time"),
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop((listener, following));
    if tokio::time::timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still under way at the end");
    }
    Ok(())
}

/// What every connection is served with.
#[derive(Clone)]
struct Service {
    router: Router,
    /// What answers those that speak plain HTTP where TLS is spoken.
    plain: Router,
    tls: Option<Tls>,
    handshakes: Arc<Semaphore>,
    shutdown: CancellationToken,
}

/// A request came on a connection that has just had to make room. It was not begun.
#[derive(Debug, thiserror::Error)]
#[error("the connection had to make room for another")]
struct Displaced;

/// Who has connected.
#[derive(Debug, Clone)]
struct Client {
    address: SocketAddr,
    connection: Arc<Connection>,
    sending: Sending,
    certificate: Option<PeerCertificate>,
}

impl Service {
    async fn serve(self, stream: TcpStream, mut client: Client, watcher: Watcher) {
        let address = client.address;
        // Answers are written whole; waiting for more to send would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%address, %error, "cannot set TCP_NODELAY");
        }
        let ended = match &self.tls {
            None => watcher.watch(connection(impatient(stream), client, self.router)).await,
            Some(tls) => match self.secured(tls, stream, address).await {
                Some(Secured::Tls(stream)) => {
                    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                    client.certificate = shown.and_then(PeerCertificate::of);
                    watcher.watch(connection(stream, client, self.router)).await
                }
                Some(Secured::Plain(stream)) => watcher.watch(connection(stream, client, self.plain)).await,
                None => return,
            },
        };
        // A client that goes away in the middle is no news.
        if let Err(error) = ended {
            tracing::debug!(%address, %error, "connection ended");
        }
    }

    /// The connection after the handshake, or before one that the client does not mean to make.
    async fn secured(&self, tls: &Tls, stream: TcpStream, address: SocketAddr) -> Option<Secured> {
        let handshake = async {
            let mut first = [0];
            if stream.peek(&mut first).await? == 1 && first[0].is_ascii_alphabetic() {
                return Ok(Secured::Plain(impatient(stream)));
            }
            let hello = LazyConfigAcceptor::new(Acceptor::default(), impatient(stream)).await?;
            self.keys(tls, hello).await?.await.map(|stream| Secured::Tls(Box::new(stream)))
        };
        let made = tokio::select! {
            () = self.shutdown.cancelled() => return None,
            made = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake) => made,
        };
        match made {
            Ok(Ok(secured)) => return Some(secured),
            // A certificate that is not valid, say: its owner wants to know.
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::info!(%address, %error, "TLS handshake refused");
            }
            Ok(Err(error)) => tracing::debug!(%address, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%address, "TLS handshake not made in time"),
        }
        None
    }

    /// What there is to work out for a handshake that has begun, in its turn and off the runtime's threads, on which the
    /// run goes on: a flood of connections must not hold it up. The client is waited for before and after.
    async fn keys(&self, tls: &Tls, hello: StartHandshake<Impatient>) -> io::Result<Accept<Impatient>> {
        let turn = Arc::clone(&self.handshakes).acquire_owned().await.map_err(io::Error::other)?;
        let config = Arc::clone(tls.acceptor().config());
        let begun = tokio::task::spawn_blocking(move || {
            let accept = hello.into_stream(config);
            drop(turn);
            accept
        });
        begun.await.map_err(io::Error::other)
    }
}

/// A connection where TLS is spoken.
enum Secured {
    Tls(Box<TlsStream<Impatient>>),
    Plain(Impatient),
}

/// A connection that fails when nothing can be sent for too long.
type Impatient = Pin<Box<TimeoutStream<TcpStream>>>;

fn impatient(stream: TcpStream) -> Impatient {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    Box::pin(stream)
}

fn connection<I>(
    io: I,
    client: Client,
    router: Router,
) -> impl hyper_util::server::graceful::GracefulConnection<Output = Result<(), hyper::Error>>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(ConnectInfo(client.address));
        if let Some(certificate) = &client.certificate {
            request.extensions_mut().insert(certificate.clone());
        }
        let (router, connection, sending) =
            (router.clone(), Arc::clone(&client.connection), client.sending.clone());
        async move {
            let under_way = connection.request().ok_or(Displaced)?;
            let answered = router.oneshot(request.map(Body::new)).await;
            let response = answered.unwrap_or_else(|never| match never {});
            Ok::<_, Displaced>(until_sent(response, (under_way, sending.begin())))
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_header_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(io), service)
}
