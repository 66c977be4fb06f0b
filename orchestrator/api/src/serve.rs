//! Serves the API to HTTP clients and to other sites.

use std::io;

use os_upgrade_auth::Authenticator;
use os_upgrade_site::handle::SiteHandle;
use os_upgrade_store::History;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::context::Options;
use crate::http::listener::serve_router;
use crate::router::Routers;

/// Serves the API on `listener`, and to other sites, until `shutdown`. `authenticator` authenticates callers. Requests under
/// way then have 3 s to end.
///
/// # Errors
/// None so far: a failed connection is closed, and a failed accept is retried.
pub async fn serve(
    listener: TcpListener,
    site: SiteHandle,
    history: History,
    authenticator: Authenticator,
    options: Options,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let Routers { edge, inner, feed } = Routers::new(site.clone(), history, authenticator, &options);
    let answering_sites = options.sites.answer(site, inner, shutdown.clone());
    let feeding = feed.run(shutdown.clone());
    let served = serve_router(listener, edge, options.limits, options.tls, shutdown);
    let (served, (), ()) = tokio::join!(served, answering_sites, feeding);
    served
}
