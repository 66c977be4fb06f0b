//! Connecting to NATS, with a host's credentials or an orchestrator's, and what the log says of the connection.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, ServerAddr};
use os_upgrade_credentials::{Access, ConnectDiagnostics, ORCHESTRATOR, Program, SYSTEM, address_for_client};
use os_upgrade_protocol::{ApplicationName, HostName, header};
use tracing::{debug, info, warn};

use crate::Error;

/// How often the server is pinged. A server that hangs keeps its connections open; the client gives up after three
/// unanswered pings. With the client's default that takes two to three minutes.
const PING_EVERY: Duration = Duration::from_secs(5);
/// The longest pause between two attempts to connect.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(2);

/// Connects to the servers of `url`. Returns immediately, because the first connection is retried too.
pub(crate) async fn connect(
    url: &str,
    access: Access,
    application: &ApplicationName,
    host: &HostName,
) -> Result<Client, Error> {
    // Other user names are a site's choice. Users with these names have no host's permissions.
    let is_reserved =
        |user: &String| [ORCHESTRATOR, SYSTEM].contains(&user.as_str()) && user != host.as_str();
    if let Some(user) = access.user().filter(is_reserved) {
        return Err(Error::ForeignCredentials { user, host: host.clone() });
    }
    let name = header::worker_producer(application, host);
    let (addresses, options) = options(url, access, &name, Some(host))?;
    let options = options.retry_on_initial_connect();
    options.connect(addresses).await.map_err(|error| Error::Connect(error.into()))
}

/// The servers in `url`, and the options for connecting to them; `host` is the host whose credentials are expected.
pub(crate) fn options(
    url: &str,
    access: Access,
    name: &str,
    host: Option<&HostName>,
) -> Result<(Vec<ServerAddr>, ConnectOptions), Error> {
    let mut addresses = Vec::new();
    for part in url.split(',') {
        if part.trim().is_empty() {
            return Err(Error::NatsUrl("it is empty; give nats://HOST:4222 or the like".to_owned()));
        }
        let address: ServerAddr =
            part.trim().parse().map_err(|error: std::io::Error| Error::NatsUrl(error.to_string()))?;
        addresses.push(address);
    }
    let options = access
        .options(&addresses)?
        .name(name)
        .ping_interval(PING_EVERY)
        .max_reconnects(None)
        .reconnect_delay_callback(|attempts| {
            let doublings = u32::try_from(attempts.min(10)).unwrap_or(10);
            (Duration::from_millis(10) * 2_u32.pow(doublings)).min(RECONNECT_PAUSE_MAX)
        });
    let host = host.cloned();
    let diagnostics = Arc::new(ConnectDiagnostics::new(Program::Worker, access.clone()));
    let attempt_diagnostics = Arc::clone(&diagnostics);
    let options = options
        // The callback chooses no server; it is the only place where the client reports why an attempt failed.
        .reconnect_to_server_callback(move |servers, _| {
            let diagnostics = Arc::clone(&attempt_diagnostics);
            async move {
                if let Some(text) = diagnostics.before_attempt(&servers).await {
                    warn!("NATS: {text}");
                }
                None
            }
        })
        .event_callback(move |event| {
            log(&event, diagnostics.describe_event(&event));
            if let (async_nats::Event::Connected, Some(host)) = (&event, &host) {
                warn_if_not_for_host(&access, host);
            }
            std::future::ready(())
        });
    Ok((addresses.into_iter().map(address_for_client).collect(), options))
}

/// Logs an event of the client, or `diagnosis` instead.
fn log(event: &async_nats::Event, diagnosis: Option<String>) {
    use async_nats::Event;
    match (event, diagnosis) {
        (_, Some(text)) => warn!("NATS: {text}"),
        (Event::Connected, None) => info!("connected to NATS"),
        (Event::ServerError(_) | Event::ClientError(_), None) => debug!("NATS: {event}"),
        (
            Event::Disconnected
            | Event::LameDuckMode
            | Event::Draining
            | Event::Closed
            | Event::SlowConsumer(_),
            None,
        ) => warn!("NATS: {event}"),
    }
}

/// Warns if the user name in the credentials is not the host's. That is no error: the name can be chosen freely, and only
/// the server decides about permissions.
fn warn_if_not_for_host(access: &Access, host: &HostName) {
    if let Some(user) = access.user().filter(|user| user != host.as_str()) {
        warn!(
            "the user name in the NATS credentials is {user}: if they are not those of {host}, replace them with those that \
             `os-upgrade nats-config host {host}` creates"
        );
    }
}
