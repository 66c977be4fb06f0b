//! NATS: connecting, the state of the connection, and confirmed publishing. Nothing is handed to the client while it
//! is disconnected, because it would keep that and send it late.

use std::future::Future;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, ErrorCode, context::GetStreamErrorKind};
use async_nats::{Client, ConnectOptions, HeaderMap, ServerAddr};
use bytes::Bytes;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{ApplicationName, HostName, header};
use percent_encoding::percent_decode_str;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::Error;

/// How long a request may take before it has failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the connection is looked at; a reconnect is noticed this late.
const LINK_CHECK_EVERY: Duration = Duration::from_millis(200);
/// How often a stream that is not there is looked for.
const STREAM_CHECK_EVERY: Duration = Duration::from_millis(500);
/// How often the server is asked whether it is still there. One that hangs keeps its connections, and is given up when
/// it has left the third such question open; without this that took two to three minutes.
const PING_EVERY: Duration = Duration::from_secs(5);
/// The longest pause between two tries to connect.
const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(2);

/// The connection at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) connected: bool,
    /// Rises with every connection.
    pub(crate) epoch: u64,
}

/// A connection to NATS. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Bus {
    client: Client,
    jetstream: jetstream::Context,
    link: watch::Sender<Link>,
}

impl Bus {
    pub(crate) fn new(client: Client) -> Self {
        let mut jetstream = jetstream::new(client.clone());
        jetstream.set_timeout(REQUEST_TIMEOUT);
        let link = watch::Sender::new(link_of(&client));
        Self { client, jetstream, link }
    }

    /// Keeps [`Self::link`] up to date; never returns.
    pub(crate) async fn watch_link(self) {
        let mut interval = tokio::time::interval(LINK_CHECK_EVERY);
        loop {
            interval.tick().await;
            let link = link_of(&self.client);
            self.link.send_if_modified(|known| {
                let changed = *known != link;
                *known = link;
                changed
            });
        }
    }

    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Publishes, and returns once the stream has stored it.
    pub(crate) async fn publish_stored(
        &self,
        subject: String,
        headers: HeaderMap,
        payload: Bytes,
    ) -> Result<(), String> {
        self.bounded(async {
            let ack = self.jetstream.publish_with_headers(subject, headers, payload).await?;
            ack.await.map(drop)
        })
        .await
    }

    /// Acknowledges through `subject`, which may come from an earlier connection, and has it confirmed.
    pub(crate) async fn ack(&self, subject: String) -> Result<(), String> {
        let ack = Bytes::from_static(b"+ACK");
        self.bounded(self.client.request(subject, ack)).await.map(drop)
    }

    /// Publishes without a confirmation, if there is a connection.
    pub(crate) async fn send(&self, subject: String, payload: Bytes) {
        // An error is that of a client being closed; what is sent here may get lost anyway.
        let _ = self.bounded(self.client.publish(subject, payload)).await;
    }

    pub(crate) async fn subscribe(&self, subject: String) -> Result<async_nats::Subscriber, String> {
        self.client.subscribe(subject).await.map_err(|error| with_causes(&error))
    }

    /// The payload of the last message on `subject`, if there is one.
    pub(crate) async fn last_payload(&self, stream: &Stream, subject: &str) -> Result<Option<Bytes>, String> {
        let last = async {
            match stream.get_last_raw_message_by_subject(subject).await {
                Ok(message) => Ok(Some(message.payload)),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
                Err(error) => Err(error),
            }
        };
        self.bounded(last).await
    }

    /// Waits until the stream is there; the orchestrator creates it, never a worker.
    pub(crate) async fn await_stream(&self, name: &str) -> Stream {
        let mut told = String::new();
        loop {
            self.await_connection().await;
            let error = match tokio::time::timeout(REQUEST_TIMEOUT, self.jetstream.get_stream(name)).await {
                Ok(Ok(stream)) => {
                    if !told.is_empty() {
                        info!(stream = name, "the stream is there");
                    }
                    return stream;
                }
                Ok(Err(error)) if is_absent(&error.kind()) => "it does not exist yet".to_owned(),
                Ok(Err(error)) => with_causes(&error),
                Err(_) => "no answer".to_owned(),
            };
            if told != error {
                warn!(stream = name, "waiting for the stream, which the orchestrator creates: {error}");
                told = error;
            }
            tokio::time::sleep(STREAM_CHECK_EVERY).await;
        }
    }

    pub(crate) async fn await_connection(&self) {
        let mut link = self.link();
        // The sender lives in `self`, so this cannot fail.
        let _ = link.wait_for(|link| link.connected).await;
    }

    /// Carries out `request` unless disconnected, within the time that a request has.
    async fn bounded<T, E: std::error::Error>(
        &self,
        request: impl Future<Output = Result<T, E>>,
    ) -> Result<T, String> {
        if !self.is_connected() {
            return Err("not connected to NATS".to_owned());
        }
        match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
            Ok(result) => result.map_err(|error| with_causes(&error)),
            Err(_) => Err("no answer from NATS in time".to_owned()),
        }
    }
}

/// Connects as the URL says. The first connection is retried, too, and so this returns at once.
pub(crate) async fn connect(
    url: &str,
    application: &ApplicationName,
    host: &HostName,
) -> Result<Client, Error> {
    let (addresses, options) = options(url, &header::worker_producer(application, host))?;
    let options = options.retry_on_initial_connect();
    options.connect(addresses).await.map_err(|error| Error::Connect(error.into()))
}

/// The servers that the URL names, and how to connect to them.
pub(crate) fn options(url: &str, name: &str) -> Result<(Vec<ServerAddr>, ConnectOptions), Error> {
    let mut addresses = Vec::new();
    for part in url.split(',') {
        let address: ServerAddr =
            part.trim().parse().map_err(|error: std::io::Error| Error::NatsUrl(error.to_string()))?;
        addresses.push(address);
    }
    let mut options = ConnectOptions::new()
        .name(name)
        .ping_interval(PING_EVERY)
        .max_reconnects(None)
        .reconnect_delay_callback(|attempts| {
            let doublings = u32::try_from(attempts.min(10)).unwrap_or(10);
            (Duration::from_millis(10) * 2_u32.pow(doublings)).min(RECONNECT_PAUSE_MAX)
        })
        .event_callback(|event| async move {
            log_event(&event);
        });
    // The client does not look at the user in the URL by itself.
    if let Some((user, password)) = addresses.iter().find_map(userinfo) {
        options = match password {
            Some(password) => options.user_and_password(user, password),
            None => options.token(user),
        };
    }
    Ok((addresses, options))
}

fn userinfo(address: &ServerAddr) -> Option<(String, Option<String>)> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = address.username().filter(|user| !user.is_empty())?;
    Some((decode(user), address.password().map(decode)))
}

fn log_event(event: &async_nats::Event) {
    use async_nats::Event;
    match event {
        Event::Connected => info!("connected to NATS"),
        Event::Disconnected
        | Event::LameDuckMode
        | Event::Draining
        | Event::Closed
        | Event::SlowConsumer(_)
        | Event::ServerError(_)
        | Event::ClientError(_) => warn!("NATS: {event}"),
    }
}

fn link_of(client: &Client) -> Link {
    Link {
        connected: client.connection_state() == State::Connected,
        epoch: client.statistics().connects.load(std::sync::atomic::Ordering::Relaxed),
    }
}

fn is_absent(kind: &GetStreamErrorKind) -> bool {
    match kind {
        GetStreamErrorKind::JetStream(error) => error.error_code() == ErrorCode::STREAM_NOT_FOUND,
        GetStreamErrorKind::EmptyName
        | GetStreamErrorKind::Request
        | GetStreamErrorKind::InvalidStreamName => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_stands_in_the_url() {
        for (url, expected) in [
            ("nats://127.0.0.1:4222", None),
            ("127.0.0.1", None),
            ("nats://token@host", Some(("token", None))),
            ("nats://me:s%40fe%2F@host:4222", Some(("me", Some("s@fe/")))),
        ] {
            let user = userinfo(&url.parse().unwrap());
            let user = user.as_ref().map(|(user, password)| (user.as_str(), password.as_deref()));
            assert_eq!(user, expected, "{url}");
        }
    }
}
