//! The connection to NATS.

use std::path::Path;
use std::time::Duration;

use async_nats::{ConnectErrorKind, ConnectOptions, Event};
use tokio::sync::watch;

use super::Bus;

/// The oldest nats-server that has the fence of commands.
const SERVER_MIN: (i64, i64) = (2, 11);
/// How long the first connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// There is no usable connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The credentials file cannot be used.
    #[error("cannot use the NATS credentials in {path}: {source}")]
    Credentials {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The server does not let this program in.
    #[error(
        "NATS at {servers} refuses this orchestrator ({source}): check [nats] credentials, or user and password in \
         [nats] url, and its user at the server"
    )]
    Refused {
        /// The addresses, without passwords.
        servers: String,
        /// Why not.
        source: async_nats::ConnectError,
    },
    /// No server answers.
    #[error("cannot connect to NATS at {servers}: {source}")]
    Connect {
        /// The addresses, without passwords.
        servers: String,
        /// Why not.
        source: async_nats::ConnectError,
    },
    /// The server is too old.
    #[error("the nats-server at {server} has version {found}; at least {}.{} is needed", SERVER_MIN.0, SERVER_MIN.1)]
    TooOld {
        /// Its address.
        server: String,
        /// Its version.
        found: String,
    },
}

/// Connects to one of `servers`. The second value tells whether the connection is there.
///
/// # Errors
/// See [`ConnectError`]. Once connected, it comes back by itself for ever.
pub async fn connect(
    servers: &[String],
    credentials: Option<&Path>,
    name: &str,
) -> Result<(Bus, watch::Receiver<bool>), ConnectError> {
    let (connected, news) = watch::channel(true);
    let mut options = ConnectOptions::new()
        .name(name)
        .max_reconnects(None)
        .reconnect_delay_callback(|attempts| Duration::from_millis((50 * attempts as u64).min(1_000)))
        .ping_interval(Duration::from_secs(5))
        .connection_timeout(CONNECT_WITHIN)
        .event_callback(move |event| {
            match event {
                Event::Connected => drop(connected.send(true)),
                Event::Disconnected | Event::Closed => drop(connected.send(false)),
                Event::LameDuckMode | Event::Draining => {}
                Event::SlowConsumer(_) | Event::ServerError(_) | Event::ClientError(_) => {
                    tracing::warn!(%event, "nats");
                }
            }
            std::future::ready(())
        });
    if let Some(path) = credentials {
        options = with_credentials(options, path).await?;
    }
    let shown = || servers.iter().map(|server| without_userinfo(server)).collect::<Vec<_>>().join(", ");
    let client = options.connect(servers).await.map_err(|source| match source.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            ConnectError::Refused { servers: shown(), source }
        }
        ConnectErrorKind::ServerParse
        | ConnectErrorKind::Dns
        | ConnectErrorKind::TimedOut
        | ConnectErrorKind::Tls
        | ConnectErrorKind::Io
        | ConnectErrorKind::MaxReconnects => ConnectError::Connect { servers: shown(), source },
    })?;
    let info = client.server_info();
    if !client.is_server_compatible(SERVER_MIN.0, SERVER_MIN.1, 0) {
        return Err(ConnectError::TooOld { server: shown(), found: info.version });
    }
    Ok((Bus::new(client), news))
}

/// Whether the credentials in `path` can be used, as far as that is seen without a server.
///
/// # Errors
/// See [`ConnectError::Credentials`].
pub async fn check_credentials(path: &Path) -> Result<(), ConnectError> {
    with_credentials(ConnectOptions::new(), path).await.map(drop)
}

async fn with_credentials(options: ConnectOptions, path: &Path) -> Result<ConnectOptions, ConnectError> {
    let failed = |source| ConnectError::Credentials { path: path.display().to_string(), source };
    options.credentials_file(path).await.map_err(failed)
}

fn without_userinfo(server: &str) -> String {
    match (server.split_once("://"), server.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        (None, Some((_, host))) => host.to_owned(),
        (_, None) => server.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn passwords_are_not_shown() {
        for (server, shown) in [
            ("nats://user:pw@host:4222", "nats://host:4222"),
            ("nats://host:4222", "nats://host:4222"),
            ("user:p@w@host", "host"),
        ] {
            assert_eq!(super::without_userinfo(server), shown);
        }
    }
}
