//! NATS: connecting, the state of the connection, and confirmed publishing. Nothing is handed to the client while it
//! is disconnected, because it would keep that and send it late.
//!
//! A host may have an account of its own, whose credentials let it do nothing but what a worker must. JetStream is then
//! another account's: what may be asked of it has subjects of its own, and consumers are made by the orchestrator.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_nats::connection::State;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, ErrorCode, context::GetStreamErrorKind};
use async_nats::{Client, ConnectOptions, HeaderMap, ServerAddr};
use bytes::Bytes;
use os_upgrade_credentials::{
    Access, ConnectDiagnostics, LogThrottle, ORCHESTRATOR, Program, SYSTEM, address_for_client,
};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::{ApplicationName, ConsumerAnswer, ConsumerRequest, HostName, header, subject};
use tokio::sync::watch;
use tracing::{debug, info, warn};

use crate::Error;

/// How long a request may take before it has failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the connection is looked at; a reconnect is noticed this late.
const LINK_CHECK_EVERY: Duration = Duration::from_millis(200);
/// The same until the first connection: a worker that starts waits for nothing else.
const LINK_AWAITED_EVERY: Duration = Duration::from_millis(20);
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
    /// What was published last by [`Self::publish_remembered`], by subject.
    published: Arc<Mutex<HashMap<String, Remembered>>>,
    link: watch::Sender<Link>,
}

/// What a worker has published.
#[derive(Debug, Clone)]
struct Remembered {
    payload: Bytes,
    /// When the stream that has it was created: one that was made anew does not.
    stream_created: SystemTime,
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
        loop {
            let has_been_connected = self.link.borrow().epoch > 0;
            let pause = if has_been_connected { LINK_CHECK_EVERY } else { LINK_AWAITED_EVERY };
            tokio::time::sleep(pause).await;
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

    /// The same for what [`Self::last_payload`] is asked for later. `stream` is the one of `subject`, as it was found
    /// just before.
    pub(crate) async fn publish_remembered(
        &self,
        stream: &Stream,
        subject: String,
        payload: Bytes,
    ) -> Result<(), String> {
        self.publish_stored(subject.clone(), HeaderMap::new(), payload.clone()).await?;
        let remembered = Remembered { payload, stream_created: created(stream) };
        self.published.lock().unwrap_or_else(PoisonError::into_inner).insert(subject, remembered);
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

    /// The payload of the last message on `subject` in `stream`, as it was found just now; `None` if there is none.
    ///
    /// A host with an account of its own may not read it back: whoever may read one message of a stream may read all of
    /// them. For such a host it is what this process has published there by [`Self::publish_remembered`].
    pub(crate) async fn last_payload(&self, stream: &Stream, subject: &str) -> Result<Option<Bytes>, String> {
        if self.is_imported() {
            let published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
            let there = published.get(subject).filter(|last| last.stream_created == created(stream));
            return Ok(there.map(|last| last.payload.clone()));
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
        let mut told = LogThrottle::default();
        loop {
            self.await_connection().await;
            let imported = self.is_imported();
            let jetstream = if imported { &self.imported } else { &self.jetstream };
            let error = match tokio::time::timeout(REQUEST_TIMEOUT, jetstream.get_stream(name)).await {
                Ok(Ok(stream)) => {
                    if !told.is_silent() {
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
            if told.is_due(&error, Instant::now()) {
                warn!(stream = name, "waiting for the stream, which the orchestrator creates: {error}");
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
    // What other names there are is a site's choice; these have an orchestrator's rights, and no host's.
    let is_no_host = |user: &String| [ORCHESTRATOR, SYSTEM].contains(&user.as_str()) && user != host.as_str();
    if let Some(user) = access.user().filter(is_no_host) {
        return Err(Error::OthersCredentials { user, host: host.clone() });
    }
    let name = header::worker_producer(application, host);
    let (addresses, options) = options(url, access, &name, Some(host))?;
    let options = options.retry_on_initial_connect();
    options.connect(addresses).await.map_err(|error| Error::Connect(error.into()))
}

/// The servers that the URL names, and how to connect to them; `host` is the one whose credentials are to be shown.
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
    let trouble = Arc::new(ConnectDiagnostics::new(Program::Worker, access.clone()));
    let of_attempts = Arc::clone(&trouble);
    let options = options
        // It chooses no server. No other place is shown why an attempt failed.
        .reconnect_to_server_callback(move |servers, _| {
            let trouble = Arc::clone(&of_attempts);
            async move {
                if let Some(text) = trouble.before_attempt(&servers).await {
                    warn!("NATS: {text}");
                }
                None
            }
        })
        .event_callback(move |event| {
            log(&event, trouble.of_event(&event));
            if let (async_nats::Event::Connected, Some(host)) = (&event, &host) {
                warn_of_others(&access, host);
            }
            std::future::ready(())
        });
    Ok((addresses.into_iter().map(address_for_client).collect(), options))
}

/// What the client says of its connection, and what is to be told about that if it is trouble.
fn log(event: &async_nats::Event, trouble: Option<String>) {
    use async_nats::Event;
    match (event, trouble) {
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

/// A name is only what somebody wrote there, so that it may be right; the server says what its holder may do.
fn warn_of_others(access: &Access, host: &HostName) {
    if let Some(user) = access.user().filter(|user| user != host.as_str()) {
        warn!(
            "the NATS credentials are made out to {user}: if they are not those of {host}, put those there that \
             `os-upgrade nats-config host {host}` makes"
        );
    }
}

fn created(stream: &Stream) -> SystemTime {
    stream.cached_info().created.into()
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
