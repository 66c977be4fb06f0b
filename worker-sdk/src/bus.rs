//! NATS: connecting, the state of the connection, and confirmed publishing. Nothing is handed to the client while it
//! is disconnected, because it would keep that and send it late.
//!
//! A host may have an account of its own, whose credentials let it do nothing but what a worker must. JetStream is then
//! another account's: what may be asked of it has subjects of its own, and consumers are made by the orchestrator.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, ErrorCode, context::GetStreamErrorKind};
use async_nats::{Client, ConnectOptions, HeaderMap, ServerAddr};
use bytes::Bytes;
use os_upgrade_credentials::Access;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{ApplicationName, ConsumerAnswer, ConsumerRequest, HostName, header, subject};
use tokio::sync::watch;
use tracing::{debug, info, warn};

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
    /// JetStream as a host with an account of its own reaches it.
    imported: jetstream::Context,
    is_imported: Arc<AtomicBool>,
    /// What was published last by [`Self::publish_remembered`].
    published: Arc<Mutex<Option<Bytes>>>,
    link: watch::Sender<Link>,
}

impl Bus {
    pub(crate) fn new(client: Client) -> Self {
        let mut jetstream = jetstream::new(client.clone());
        jetstream.set_timeout(REQUEST_TIMEOUT);
        let mut imported = jetstream::with_prefix(client.clone(), subject::JETSTREAM_PREFIX);
        imported.set_timeout(REQUEST_TIMEOUT);
        let link = watch::Sender::new(link_of(&client));
        Self { client, jetstream, imported, is_imported: Arc::default(), published: Arc::default(), link }
    }

    /// Whether JetStream is another account's, so that consumers are the orchestrator's to make.
    pub(crate) fn is_imported(&self) -> bool {
        self.is_imported.load(Ordering::Relaxed)
    }

    /// Has the orchestrator make the consumer of `host` anew.
    pub(crate) async fn request_consumer(
        &self,
        host: &HostName,
        request: ConsumerRequest,
    ) -> Result<(), String> {
        let answer = self.client.request(subject::consumer_request(host), request.to_payload().into());
        let answer = self.bounded(answer).await.map_err(|error| {
            format!("no orchestrator makes the consumer, or the credentials are not those of {host}: {error}")
        })?;
        ConsumerAnswer::parse(&answer.payload)?.into_result()
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

    /// The same for what is the last on its subject from then on, and is asked for by [`Self::last_payload`].
    pub(crate) async fn publish_remembered(&self, subject: String, payload: Bytes) -> Result<(), String> {
        self.publish_stored(subject, HeaderMap::new(), payload.clone()).await?;
        *self.published.lock().unwrap_or_else(PoisonError::into_inner) = Some(payload);
        Ok(())
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
        // Whoever may read one message of a stream may read all of them; so after a start it is said once more.
        if self.is_imported() {
            return Ok(self.published.lock().unwrap_or_else(PoisonError::into_inner).clone());
        }
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
            let imported = self.is_imported();
            let jetstream = if imported { &self.imported } else { &self.jetstream };
            let error = match tokio::time::timeout(REQUEST_TIMEOUT, jetstream.get_stream(name)).await {
                Ok(Ok(stream)) => {
                    if !told.is_empty() {
                        info!(stream = name, "the stream is there");
                    }
                    return stream;
                }
                Ok(Err(error)) if is_absent(&error.kind()) => "it does not exist yet".to_owned(),
                Ok(Err(error))
                    if !imported && is_code(&error.kind(), ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT) =>
                {
                    if !self.is_imported.swap(true, Ordering::Relaxed) {
                        info!("JetStream is another account's, as the credentials of a host have it");
                    }
                    continue;
                }
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
    access: Access,
    application: &ApplicationName,
    host: &HostName,
) -> Result<Client, Error> {
    if let Some(user) = access.user().filter(|user| user != host.as_str()) {
        warn!(
            "the NATS credentials are those of {user}, not of {host}: nothing that is said for {host} is taken"
        );
    }
    let (addresses, options) = options(url, access, &header::worker_producer(application, host))?;
    let options = options.retry_on_initial_connect();
    options.connect(addresses).await.map_err(|error| Error::Connect(error.into()))
}

/// The servers that the URL names, and how to connect to them.
pub(crate) fn options(
    url: &str,
    access: Access,
    name: &str,
) -> Result<(Vec<ServerAddr>, ConnectOptions), Error> {
    let mut addresses = Vec::new();
    for part in url.split(',') {
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
    let log = Arc::new(EventLog { access, last: Mutex::default() });
    let options = options.event_callback(move |event| {
        log.log(&event);
        std::future::ready(())
    });
    Ok((addresses, options))
}

/// What the client says of its connection. Every try to connect fails with the same words; they are said once.
struct EventLog {
    access: Access,
    last: Mutex<String>,
}

impl EventLog {
    fn log(&self, event: &async_nats::Event) {
        use async_nats::Event;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Connected => {
                last.clear();
                info!("connected to NATS");
            }
            Event::Disconnected
            | Event::LameDuckMode
            | Event::Draining
            | Event::Closed
            | Event::SlowConsumer(_) => warn!("NATS: {event}"),
            Event::ServerError(_) | Event::ClientError(_) => {
                let text = self.access.advice(event).unwrap_or_else(|| event.to_string());
                if *last == text {
                    debug!("NATS: {event}");
                } else {
                    warn!("NATS: {text}");
                    *last = text;
                }
            }
        }
    }
}

fn link_of(client: &Client) -> Link {
    Link {
        connected: client.connection_state() == State::Connected,
        epoch: client.statistics().connects.load(Ordering::Relaxed),
    }
}

fn is_absent(kind: &GetStreamErrorKind) -> bool {
    is_code(kind, ErrorCode::STREAM_NOT_FOUND)
}

fn is_code(kind: &GetStreamErrorKind, code: ErrorCode) -> bool {
    match kind {
        GetStreamErrorKind::JetStream(error) => error.error_code() == code,
        GetStreamErrorKind::EmptyName
        | GetStreamErrorKind::Request
        | GetStreamErrorKind::InvalidStreamName => false,
    }
}
