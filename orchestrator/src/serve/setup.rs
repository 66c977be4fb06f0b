//! What the settings refer to: files, the clients made with them, the address of the API. A mistake there counts as a
//! mistake in the settings, and is found before anything is started or written.

use std::io;
use std::net::SocketAddr;

use os_upgrade_adapters::cluster::Cluster;
use os_upgrade_adapters::fleet_lock_client::FleetLockClient;
use os_upgrade_adapters::kubernetes::client::BuildError;
use os_upgrade_api::{FleetSocket, Listeners};
use os_upgrade_auth::{Authenticator, FileError, Oidc, OidcError, WatchedTokens};
use os_upgrade_bus::connect::{ConnectError, check_access};
use os_upgrade_cli::Failure;
use os_upgrade_platform::local_socket::SocketError;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_settings::Settings;
use os_upgrade_site::strongbox::Strongbox;
use os_upgrade_site::strongbox::key_file::KeyFileError;
use os_upgrade_tls::http_client;
use os_upgrade_tls::pem_file::PemError;
use os_upgrade_tls::server_files::Tls;
use tokio::net::TcpListener;

use super::open_files::{self, FilesError};

/// Why valid settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// Anybody could call the API.
    #[error(
        "the API would be open to everybody who reaches {address}: make a token with `os-upgrade token create`, name \
         its file in [api] tokens, or listen on loopback"
    )]
    OpenToAll {
        /// The configured address.
        address: SocketAddr,
    },
    /// The token file cannot be used.
    #[error(transparent)]
    Tokens(#[from] FileError),
    /// The client for the identity provider cannot be set up, or the file of its keys cannot be used.
    #[error("cannot use the identity provider of [api.oidc]")]
    Oidc(#[source] OidcError),
    /// A file of `[api.tls]` cannot be used.
    #[error("cannot serve HTTPS")]
    Tls(#[from] PemError),
    /// The key of the strongbox cannot be used.
    #[error(transparent)]
    Strongbox(#[from] KeyFileError),
    /// The client for the lock server cannot be set up.
    #[error("cannot use the lock server")]
    LockServer(#[from] http_client::BuildError),
    /// The client for the Kubernetes cluster cannot be set up.
    #[error("cannot use the cluster of [kubernetes]")]
    Kubernetes(#[from] BuildError),
    /// The files for NATS cannot be used.
    #[error(transparent)]
    Nats(#[from] ConnectError),
    /// The open-file limit does not suffice.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The API cannot listen on its address.
    #[error("cannot listen on {address}")]
    Listen {
        /// The configured address.
        address: SocketAddr,
        source: io::Error,
    },
    /// The API cannot listen on its Unix socket.
    #[error("cannot use [api] fleet-socket")]
    FleetSocket(#[from] SocketError),
}

impl SetupError {
    /// Whether the problem may pass without a change to the configuration, so that a retry makes sense: this host may not
    /// have the address yet.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Listen { source, .. } => source.kind() == io::ErrorKind::AddrNotAvailable,
            // A command of the kubeconfig that gets a token may need a network, and the file of a token may be written later.
            Self::Kubernetes(BuildError::Client(_) | BuildError::Token { .. }) => true,
            Self::Kubernetes(
                BuildError::Kubeconfig { .. }
                | BuildError::NotInCluster { .. }
                | BuildError::ServiceAccount { .. },
            )
            | Self::OpenToAll { .. }
            | Self::Tokens(_)
            | Self::Oidc(_)
            | Self::Tls(_)
            | Self::Strongbox(_)
            | Self::LockServer(_)
            | Self::Nats(_)
            | Self::Files(_)
            | Self::FleetSocket(_) => false,
        }
    }
}

impl From<SetupError> for Failure {
    fn from(unusable: SetupError) -> Self {
        Self::Unusable { why: with_causes(&unusable), is_transient: unusable.is_transient() }
    }
}

/// What an instance sets up from its settings before it opens its data directory.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(super) authenticator: Authenticator,
    pub(super) tls: Option<Tls>,
    pub(super) strongbox: Strongbox,
    pub(super) locks: Option<FleetLockClient>,
    pub(super) nodes: Option<Cluster>,
    pub(super) listeners: Listeners,
}

impl Setup {
    /// Reads the files that `settings` name, raises the open-file limit, and listens. Nothing is written but the Unix socket, which is
    /// removed once this is dropped.
    ///
    /// # Errors
    /// One of these fails.
    pub(crate) async fn from_settings(settings: &Settings) -> Result<Self, SetupError> {
        check_access(&settings.nats.access())?;
        Ok(Self {
            authenticator: authenticator(settings)?,
            tls: Tls::from_settings(&settings.api_tls)?,
            strongbox: Strongbox::from_settings(settings)?,
            locks: FleetLockClient::from_settings(&settings.fleet_lock)?,
            nodes: Cluster::from_settings(settings).await?,
            listeners: {
                open_files::raise_limit(settings.api.connections.get().into())?;
                // The address comes first: of two instances with the same settings, the second one ends there.
                Listeners {
                    tcp: listen(settings.api.listen).await?,
                    fleet_socket: FleetSocket::from_settings(&settings.api).await?,
                }
            },
        })
    }
}

async fn listen(address: SocketAddr) -> Result<TcpListener, SetupError> {
    TcpListener::bind(address).await.map_err(|source| SetupError::Listen { address, source })
}

/// Who may call the API. If callers are not authenticated, the API must listen on loopback.
fn authenticator(settings: &Settings) -> Result<Authenticator, SetupError> {
    let tokens = settings.api.tokens.clone().map(WatchedTokens::open).transpose()?;
    let oidc = Oidc::from_settings(&settings.api_oidc).map_err(SetupError::Oidc)?;
    let authenticator = Authenticator::new(tokens, oidc);
    let address = settings.api.listen;
    if authenticator.is_open() && !address.ip().is_loopback() {
        return Err(SetupError::OpenToAll { address });
    }
    Ok(authenticator)
}
