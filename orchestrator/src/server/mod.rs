//! One orchestrator instance, from its settings until it is told to end.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::Settings;

/// Why an instance could not start, or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The API's address cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// Runs an instance until `shutdown`. The message bus is up: `settings.nats` names servers.
///
/// # Errors
/// It cannot start or go on.
pub async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), ServeError> {
    let address = settings.api.listen;
    let listening = TcpListener::bind(address).await;
    let _listener = listening.map_err(|source| ServeError::Listen { address, source })?;
    shutdown.cancelled().await;
    Ok(())
}
