//! The connection to NATS.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::AccountErrorKind;
use async_nats::{Client, ConnectErrorKind, Event, ReconnectToServer, Server, ServerAddr};
use os_upgrade_credentials::{Access, ConnectDiagnostics, Program, address_for_client, without_userinfo};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::limits::NATS_MESSAGE_BYTES;
use os_upgrade_protocol::subject;
use tokio::sync::watch;

use super::Bus;
use super::worker_reports::WorkerConnection;

/// The oldest nats-server version that supports the fence of commands.
const SERVER_MIN: (i64, i64) = (2, 11);
/// How long the first connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// The most messages of a subscription that wait to be read; others are lost, and counted.
const SUBSCRIPTION_MESSAGES_MAX: usize = 16_384;

/// Why there is no usable connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The credentials or certificates for NATS cannot be used.
    #[error(transparent)]
    Access(#[from] os_upgrade_credentials::Error),
    /// An address is invalid.
    #[error("{server} is not the address of a nats-server: {source}")]
    Address {
        /// The address, without passwords.
        server: String,
        /// Why it is invalid.
        source: std::io::Error,
    },
    /// The server refuses the credentials.
    #[error("NATS at {servers} refuses this orchestrator ({source}): {advice}")]
    Refused {
        /// The addresses, without passwords.
        servers: String,
        /// The client's error.
        source: async_nats::ConnectError,
        /// What the operator can do.
        advice: String,
    },
    /// No server answers.
    #[error("cannot connect to NATS at {servers}: {source}{}", advice_suffix(advice.as_deref()))]
    Connect {
        /// The addresses, without passwords.
        servers: String,
        /// The client's error.
        source: async_nats::ConnectError,
        /// What the operator can do, if known.
        advice: Option<String>,
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

/// NATS does not take messages that may have to be sent.
#[derive(Debug, thiserror::Error)]
pub enum SmallMessages {
    /// The server does not.
    #[error(
        "the nats-server {server} takes messages of {bytes} bytes at most, and {NATS_MESSAGE_BYTES} are needed: raise \
         max_payload in its configuration"
    )]
    Server {
        /// Its name and address.
        server: String,
        /// Its `max_payload`.
        bytes: usize,
    },
    /// The server does, but not from this user.
    #[error(
        "NATS ends the connection at a message of {NATS_MESSAGE_BYTES} bytes, which are needed: raise the payload limit of \
         this user and of its account"
    )]
    User,
    /// Connections ended, perhaps for another reason.
    #[error(
        "NATS ends connections, or does not answer: whether it takes messages of {NATS_MESSAGE_BYTES} bytes is unknown"
    )]
    Unknown,
}

impl Bus {
    /// Checks what the connected server has said it takes.
    ///
    /// # Errors
    /// That is less than may have to be sent.
    pub fn check_server_messages(&self) -> Result<(), SmallMessages> {
        let info = self.client.server_info();
        let bytes = info.max_payload;
        if bytes >= NATS_MESSAGE_BYTES {
            return Ok(());
        }
        let server = format!("{} at {}:{}", info.server_name, info.host, info.port);
        Err(SmallMessages::Server { server, bytes })
    }

    /// As [`Self::check_server_messages`], and sends a large message, to nobody: the client does not learn the limits of
    /// users and accounts.
    ///
    /// # Errors
    /// NATS takes less than may have to be sent, or that cannot be found out.
    pub async fn try_messages(&self) -> Result<(), SmallMessages> {
        self.check_server_messages()?;
        let mut is_usable = true;
        // A connection may be lost for another reason, too.
        for _ in 0..2 {
            // Then only the large message is new to the connection.
            is_usable &= self.is_answered().await;
            let connection = self.connections();
            let sent = self.client.publish(subject::TRIAL, vec![0; NATS_MESSAGE_BYTES].into()).await;
            // The server answers after it has read that.
            self.is_answered().await;
            let is_kept =
                self.connections() == connection && self.client.connection_state() == State::Connected;
            if sent.is_ok() && is_kept {
                return Ok(());
            }
            tracing::debug!(is_usable, "a large message is not taken");
        }
        Err(if is_usable { SmallMessages::User } else { SmallMessages::Unknown })
    }

    /// How many connections there have been, including the present one.
    fn connections(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    /// Whether NATS answers, be it that there is no JetStream. Waits for a connection.
    async fn is_answered(&self) -> bool {
        match self.jetstream.query_account().await {
            Ok(_) => true,
            Err(error) => match error.kind() {
                AccountErrorKind::JetStream(_) | AccountErrorKind::JetStreamUnavailable => true,
                AccountErrorKind::TimedOut | AccountErrorKind::Other => false,
            },
        }
    }

    /// Connects anew, to the next server of a cluster. A server tells its limits only then.
    pub async fn reconnect(&self) {
        if let Err(error) = self.client.force_reconnect().await {
            tracing::debug!(%error, "reconnect");
        }
    }
}

/// Connects to one of `servers`. The receiver holds whether the bus is connected. A lost connection is re-established
/// automatically, without limit.
///
/// # Errors
/// See [`ConnectError`]: the first connection fails.
pub async fn connect(
    servers: &[String],
    access: Access,
    name: &str,
) -> Result<(Bus, watch::Receiver<bool>), ConnectError> {
    let (connected, news) = watch::channel(true);
    let user = access.user();
    let client = open(servers, access, name, move |event| match event {
        Event::Connected => drop(connected.send(true)),
        Event::Disconnected | Event::Closed => drop(connected.send(false)),
        Event::SlowConsumer(_) => tracing::warn!(%event, "nats"),
        Event::LameDuckMode | Event::Draining | Event::ServerError(_) | Event::ClientError(_) => {}
    })
    .await?;
    Ok((Bus::new(client, user), news))
}

/// Makes a further connection, for what workers say over core NATS.
///
/// # Errors
/// See [`ConnectError`]: the first connection fails.
pub async fn connect_to_workers(
    servers: &[String],
    access: Access,
    name: &str,
) -> Result<WorkerConnection, ConnectError> {
    let losses = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&losses);
    let client = open(servers, access, name, move |event| match event {
        Event::Connected | Event::Disconnected | Event::Closed | Event::SlowConsumer(_) => {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        Event::LameDuckMode | Event::Draining | Event::ServerError(_) | Event::ClientError(_) => {}
    })
    .await?;
    Ok(WorkerConnection::new(client, losses))
}

/// Connects to one of `servers`, and reconnects from then on. Each event of the connection is passed to `notice`.
async fn open(
    servers: &[String],
    access: Access,
    name: &str,
    notice: impl Fn(&Event) + Send + Sync + 'static,
) -> Result<Client, ConnectError> {
    let mut addresses = Vec::new();
    for server in servers {
        let address = server.parse::<ServerAddr>();
        let failed = |source| ConnectError::Address { server: without_userinfo(server), source };
        addresses.push(address.map_err(failed)?);
    }
    // Servers are tried in turn. The client's own choice prefers the server just left to one that was down before.
    let attempts = Arc::new(AtomicUsize::new(0));
    let diagnostics = Arc::new(ConnectDiagnostics::new(Program::Orchestrator, access.clone()));
    let diagnostics_for_attempts = Arc::clone(&diagnostics);
    let next = move |servers: Vec<Server>, _| {
        let index = attempts.fetch_add(1, Ordering::Relaxed).checked_rem(servers.len());
        let diagnostics = Arc::clone(&diagnostics_for_attempts);
        async move {
            if let Some(text) = diagnostics.before_attempt(&servers).await {
                tracing::warn!("NATS: {text}");
            }
            let server = index.and_then(|index| servers.into_iter().nth(index));
            server.map(|server| ReconnectToServer { addr: server.addr, delay: None })
        }
    };
    let options = access
        .options(&addresses)?
        .name(name)
        .max_reconnects(None)
        .reconnect_delay_callback(|attempts| Duration::from_millis((50 * attempts as u64).min(1_000)))
        .ping_interval(Duration::from_secs(5))
        .subscription_capacity(SUBSCRIPTION_MESSAGES_MAX)
        .reconnect_to_server_callback(next)
        .connection_timeout(CONNECT_WITHIN)
        .event_callback(move |event| {
            if let Some(text) = diagnostics.describe_event(&event) {
                tracing::warn!("NATS: {text}");
            }
            if matches!(event, Event::ServerError(_) | Event::ClientError(_)) {
                tracing::debug!("NATS: {event}");
            }
            notice(&event);
            std::future::ready(())
        });
    let shown = || servers.iter().map(|server| without_userinfo(server)).collect::<Vec<_>>().join(", ");
    let advice =
        |error: &async_nats::ConnectError| Program::Orchestrator.advice(&access, &with_causes(error));
    let addresses: Vec<_> = addresses.into_iter().map(address_for_client).collect();
    let client = options.connect(addresses).await.map_err(|source| match source.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            let advice = advice(&source).unwrap_or_else(|| "check [nats] credentials".to_owned());
            ConnectError::Refused { servers: shown(), source, advice }
        }
        ConnectErrorKind::ServerParse
        | ConnectErrorKind::Dns
        | ConnectErrorKind::TimedOut
        | ConnectErrorKind::Tls
        | ConnectErrorKind::Io
        | ConnectErrorKind::MaxReconnects => {
            let advice = advice(&source);
            ConnectError::Connect { servers: shown(), source, advice }
        }
    })?;
    let info = client.server_info();
    if !client.is_server_compatible(SERVER_MIN.0, SERVER_MIN.1, 0) {
        return Err(ConnectError::TooOld { server: shown(), found: info.version });
    }
    Ok(client)
}

fn advice_suffix(advice: Option<&str>) -> String {
    advice.map(|advice| format!(": {advice}")).unwrap_or_default()
}

/// Checks the credentials and certificates for NATS, without connecting.
///
/// # Errors
/// See [`ConnectError::Access`].
pub fn check_access(access: &Access) -> Result<(), ConnectError> {
    Ok(access.options(&[]).map(drop)?)
}
