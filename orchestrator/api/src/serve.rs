//! Serves the API to HTTP clients, to other sites, and fleet's dialects at a Unix socket.

use std::io;

use axum::Router;
use os_upgrade_auth::Authenticator;
use os_upgrade_site::handle::SiteHandle;
use os_upgrade_store::History;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::context::Options;
use crate::http::listener::{FleetSocket, Limits, Listener, serve_router};
use crate::router::Routers;

/// Where clients connect.
#[derive(Debug)]
pub struct Listeners {
    /// The address of the API.
    pub tcp: TcpListener,
    /// The Unix socket for fleet's clients on this machine, if there is one.
    pub fleet_socket: Option<FleetSocket>,
}

/// Serves the API on `listeners`, and to other sites, until `shutdown`. `authenticator` authenticates callers, but for those at the
/// Unix socket. Requests under way then have 3 s to end.
///
/// # Errors
/// None so far: a failed connection is closed, and a failed accept is retried.
pub async fn serve(
    listeners: Listeners,
    site: SiteHandle,
    history: History,
    authenticator: Authenticator,
    options: Options,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let Routers { edge, inner, at_socket, feed } =
        Routers::new(site.clone(), history, authenticator, &options);
    let Listeners { tcp, fleet_socket } = listeners;
    let answering_sites = options.sites.answer(site, inner, shutdown.clone());
    let feeding = feed.run(shutdown.clone());
    let locally = serve_locally(fleet_socket, at_socket, options.limits.clone(), shutdown.clone());
    let served = serve_router(Listener::Tcp(tcp), edge, options.limits, options.tls, shutdown);
    let (served, locally, (), ()) = tokio::join!(served, locally, answering_sites, feeding);
    served.and(locally)
}

async fn serve_locally(
    socket: Option<FleetSocket>,
    router: Router,
    limits: Limits,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let Some(socket) = socket else { return Ok(()) };
    serve_router(Listener::Fleet(socket), router, limits, None, shutdown).await
}
