//! Serves connections, with bounded handshakes, headers and times, and a graceful shutdown. [`super::limit`] bounds
//! their number.

use std::error::Error as _;
use std::io::{self, ErrorKind};
use std::iter;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Method;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use os_upgrade_api_types::route::Dialect;
use os_upgrade_auth::{Caller, PeerCertificate};
use os_upgrade_shell::instance::STOP_WITHIN;
use os_upgrade_tls::server_files::Tls;
use rustls::server::Acceptor;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::{Accept, StartHandshake, TlsStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt as _;

use super::client::Peer;
use super::connections::Connection;
use super::fleet_socket::{FleetSocket, LocalUser};
use super::sending::{Sending, hold_until_sent};
use super::{CutOff, Endless, Limits};
use crate::http::authorization::note_caller;
use crate::http::dialect::{Dialects, nested};
use crate::http::refusal::Refusal;

/// How long a client may take to send the headers of a request, and how long a connection may be idle.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// A connection is closed when no byte of an answer can be sent for this long.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Most headers in a request.
const HEADERS_MAX: usize = 64;
/// Longest request line with headers, in bytes.
const HEADER_BYTES_MAX: usize = 32 * 1_024;
/// How many bytes of answers are taken from whoever makes them before the client has read those before; a piece may exceed it. The
/// HTTP library uses one limit for this and for the head of a request.
const BUFFER_BYTES_MAX: usize = HEADER_BYTES_MAX + 8 * 1_024;
/// How long requests under way may take at shutdown: as long as the orchestrator itself, plus the time to write an
/// answer.
pub(crate) const DRAIN_TIMEOUT: Duration = STOP_WITHIN.saturating_add(Duration::from_millis(500));
/// Pause after a failed accept, for example without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a TLS handshake may take, including the wait for its permit.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Where clients connect.
#[derive(Debug)]
pub(crate) enum Listener {
    /// At an address.
    Tcp(TcpListener),
    /// At the Unix socket.
    Fleet(FleetSocket),
}

impl Listener {
    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok(Stream::Tcp(stream, address))
            }
            Self::Fleet(socket) => {
                let (stream, user) = socket.accept().await?;
                Ok(Stream::Unix(stream, user))
            }
        }
    }
}

/// A connection that was accepted.
#[derive(Debug)]
enum Stream {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream, LocalUser),
}

impl Stream {
    const fn peer(&self) -> Peer {
        match self {
            Self::Tcp(_, address) => Peer::Address(*address),
            Self::Unix(_, user) => Peer::User(*user),
        }
    }
}

/// Serves `router` until `shutdown`. Only connections to an address have TLS, and only those of the Unix socket a caller.
pub(crate) async fn serve_router(
    listener: Listener,
    router: Router,
    limits: Limits,
    tls: Option<Tls>,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let graceful = GracefulShutdown::new();
    let service = Service {
        router,
        plain: nested(Dialects {
            specification: https_only(Dialect::Specification),
            fleet_lock: https_only(Dialect::FleetLock),
            call_backs: https_only(Dialect::CallBack),
            fleet_v1_alpha: https_only(Dialect::Fleet),
            fleet_v1: https_only(Dialect::Fleet),
        }),
        tls: tls.clone(),
        handshakes: Arc::clone(limits.handshakes()),
        shutdown: shutdown.clone(),
    };
    let watching = tls.map(|tls| AbortOnDropHandle::new(tokio::spawn(tls.watch_files(shutdown.clone()))));
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok(stream) => {
                let peer = stream.peer();
                // Closed without an answer: each would cost a task, and time.
                let Some(connection) = limits.connect(peer) else { continue };
                let (service, watcher) = (service.clone(), graceful.watcher());
                tokio::spawn(async move {
                    let (connection, sending) = (Arc::new(connection), Sending::default());
                    let client = Client {
                        peer,
                        caller: None,
                        connection: Arc::clone(&connection),
                        sending: sending.clone(),
                        certificate: None,
                        subscriber: Arc::default(),
                    };
                    tokio::select! {
                        // The service is polled first, so that `overdue` sees an answer that it begins.
                        biased;
                        () = service.serve(stream, client, watcher) => {}
                        () = connection.close_requested() => {}
                        () = sending.overdue() => tracing::debug!(%peer, "the client did not read an answer in time"),
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop((listener, watching));
    if tokio::time::timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still under way at shutdown");
    }
    Ok(())
}

/// What all connections share.
#[derive(Clone)]
struct Service {
    router: Router,
    /// Answers plain HTTP on a port with TLS.
    plain: Router,
    tls: Option<Tls>,
    handshakes: Arc<Semaphore>,
    shutdown: CancellationToken,
}

/// A request arrived on a connection that is being closed to make room. The request was not begun.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed to make room for another")]
struct Displaced;

/// The client of a connection.
#[derive(Debug, Clone)]
struct Client {
    peer: Peer,
    /// Who it is, as the Unix socket knows; other clients are identified by each request.
    caller: Option<Caller>,
    connection: Arc<Connection>,
    sending: Sending,
    certificate: Option<PeerCertificate>,
    /// Counts it if it follows events and is cut off.
    subscriber: Arc<OnceLock<CutOff>>,
}

impl Service {
    async fn serve(self, stream: Stream, mut client: Client, watcher: Watcher) {
        let (peer, subscriber) = (client.peer, Arc::clone(&client.subscriber));
        let ended = match stream {
            Stream::Tcp(stream, address) => self.serve_tcp(stream, address, client, watcher).await,
            Stream::Unix(stream, user) => {
                client.caller = Some(user.caller().await);
                watcher.watch(connection(with_write_timeout(stream), client, self.router)).await
            }
        };
        // Clients disconnect at any time, so this is no warning.
        if let Err(error) = ended {
            if let Some(cut_off) = subscriber.get().filter(|_| is_timeout(&error)) {
                cut_off.count();
            }
            tracing::debug!(%peer, %error, "connection ended");
        }
    }

    async fn serve_tcp(
        self,
        stream: TcpStream,
        address: SocketAddr,
        mut client: Client,
        watcher: Watcher,
    ) -> Result<(), hyper::Error> {
        // Answers are written at once, so Nagle's algorithm would only delay them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%address, %error, "cannot set TCP_NODELAY");
        }
        let Some(tls) = &self.tls else {
            return watcher.watch(connection(with_write_timeout(stream), client, self.router)).await;
        };
        match self.handshake(tls, stream, address).await {
            Some(Accepted::Tls(stream)) => {
                let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                client.certificate = shown.and_then(PeerCertificate::of);
                watcher.watch(connection(stream, client, self.router)).await
            }
            Some(Accepted::Plain(stream)) => watcher.watch(connection(stream, client, self.plain)).await,
            None => Ok(()),
        }
    }

    /// The connection after the TLS handshake, or as it is when the client speaks plain HTTP. `None` when the
    /// handshake failed or the server stops.
    async fn handshake(&self, tls: &Tls, stream: TcpStream, address: SocketAddr) -> Option<Accepted> {
        let handshake = async {
            let mut first = [0];
            if stream.peek(&mut first).await? == 1 && first[0].is_ascii_alphabetic() {
                return Ok(Accepted::Plain(with_write_timeout(stream)));
            }
            let hello = LazyConfigAcceptor::new(Acceptor::default(), with_write_timeout(stream)).await?;
            self.compute_keys(tls, hello).await?.await.map(|stream| Accepted::Tls(Box::new(stream)))
        };
        let outcome = tokio::select! {
            () = self.shutdown.cancelled() => return None,
            outcome = tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake) => outcome,
        };
        match outcome {
            Ok(Ok(secured)) => return Some(secured),
            // For example an invalid certificate, whose owner needs to know.
            Ok(Err(error)) if error.kind() == ErrorKind::InvalidData => {
                tracing::info!(%address, %error, "TLS handshake refused");
            }
            Ok(Err(error)) => tracing::debug!(%address, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%address, "TLS handshake timed out"),
        }
        None
    }

    /// Computes the keys of a handshake, under a permit and off the runtime's threads, so that a flood of connections
    /// cannot delay the run. No permit is held while waiting for the client.
    async fn compute_keys(
        &self,
        tls: &Tls,
        hello: StartHandshake<TimedStream>,
    ) -> io::Result<Accept<TimedStream>> {
        let permit = Arc::clone(&self.handshakes).acquire_owned().await.map_err(io::Error::other)?;
        let config = Arc::clone(tls.acceptor().config());
        let begun = tokio::task::spawn_blocking(move || {
            let accept = hello.into_stream(config);
            drop(permit);
            accept
        });
        begun.await.map_err(io::Error::other)
    }
}

/// Refuses every request.
fn https_only(dialect: Dialect) -> Router {
    Router::new().fallback(async move |method: Method| Refusal::HttpsOnly.answer(&method, dialect))
}

/// Whether a write made no progress for [`WRITE_TIMEOUT`].
fn is_timeout(error: &hyper::Error) -> bool {
    let causes = iter::successors(error.source(), |cause| (*cause).source());
    causes
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == ErrorKind::TimedOut)
}

/// A connection on a port with TLS.
enum Accepted {
    Tls(Box<TlsStream<TimedStream>>),
    Plain(TimedStream),
}

/// A connection that fails when a write makes no progress for [`WRITE_TIMEOUT`].
type TimedStream<S = TcpStream> = Pin<Box<TimeoutStream<S>>>;

fn with_write_timeout<S: AsyncRead + AsyncWrite>(stream: S) -> TimedStream<S> {
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
        if let Peer::Address(address) = client.peer {
            request.extensions_mut().insert(ConnectInfo(address));
        }
        if let Some(caller) = &client.caller {
            note_caller(request.extensions_mut(), Ok(caller.clone()));
        }
        if let Some(certificate) = &client.certificate {
            request.extensions_mut().insert(certificate.clone());
        }
        let (router, connection, sending) =
            (router.clone(), Arc::clone(&client.connection), client.sending.clone());
        let subscriber = Arc::clone(&client.subscriber);
        async move {
            let under_way = connection.begin_request().ok_or(Displaced)?;
            let answered = router.oneshot(request.map(Body::new)).await;
            let response = answered.unwrap_or_else(|never| match never {});
            if let Some(Endless(cut_off)) = response.extensions().get() {
                // There is one, because such an answer ends its connection.
                let _ = subscriber.set(cut_off.clone());
                connection.leave();
                return Ok(response);
            }
            Ok::<_, Displaced>(hold_until_sent(response, (under_way, sending.begin())))
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_header_size(HEADER_BYTES_MAX)
        .max_buf_size(BUFFER_BYTES_MAX)
        .serve_connection(TokioIo::new(io), service)
}
