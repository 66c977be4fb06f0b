//! The listener: connections with bounded headers, times and number, and an orderly end.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use os_upgrade_shell::node::STOP_WITHIN;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::router;
use crate::auth::Gate;
use crate::site::SiteHandle;
use crate::store::History;

/// Connections served at once; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 512;
/// How long a client may take to send the headers of a request, and a connection may lie idle.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Most headers of a request.
const HEADERS_MAX: usize = 64;
/// Most bytes of a request line with its headers.
const HEADER_BYTES_MAX: usize = 32 * 1_024;
/// How long requests under way have at the end: as long as the orchestrator itself, and what it takes to write an answer.
const DRAIN_TIMEOUT: Duration = STOP_WITHIN.saturating_add(Duration::from_millis(500));
/// How long to wait when no connection can be accepted, for want of file descriptors, say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the API on `listener` to those whom `gate` lets in, until `shutdown`; requests under way then have 3 s to end.
///
/// # Errors
/// None as yet: what goes wrong with a connection is that connection's, and accepting is tried again.
pub async fn serve(
    listener: TcpListener,
    site: SiteHandle,
    history: History,
    gate: Gate,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let router = router(site, history, gate);
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    loop {
        let accept = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let connection = graceful.watch(connection(stream, peer, router.clone()));
                tokio::spawn(async move {
                    // A client that goes away in the middle is no news.
                    if let Err(error) = connection.await {
                        tracing::debug!(%peer, %error, "connection ended");
                    }
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIMEOUT, graceful.shutdown()).await.is_err() {
        tracing::warn!("requests were still under way at the end");
    }
    Ok(())
}

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> {
    // Answers are written whole; waiting for more to send would only delay them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "cannot set TCP_NODELAY");
    }
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let router = router.clone();
        async move {
            Ok::<_, Infallible>(
                router.oneshot(request.map(Body::new)).await.unwrap_or_else(|never| match never {}),
            )
        }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_header_size(HEADER_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service)
}
