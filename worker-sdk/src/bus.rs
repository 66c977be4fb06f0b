//! NATS: the state of the connection, and confirmed publishing. Nothing is passed to the client while it
//! is disconnected, because it would buffer messages and send them late.
//!
//! A host may have its own account, whose permissions are limited to what a worker needs. JetStream then belongs to
//! another account: the permitted requests are imported under their own subjects, and the orchestrator creates consumers.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_nats::connection::State;
use async_nats::header as jetstream_header;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, ErrorCode, context::GetStreamErrorKind};
use async_nats::{Client, HeaderMap, Message, RequestErrorKind, StatusCode};
use bytes::Bytes;
use os_upgrade_credentials::LogThrottle;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::limits::NATS_MESSAGE_BYTES;
use os_upgrade_protocol::{AckSubject, ConsumerAnswer, ConsumerRequest, HostName, subject};
use tokio::sync::watch;
use tracing::{info, warn};

/// The prefix of the JetStream API where it is the account's own.
const JETSTREAM_API: &str = "$JS.API";
/// Time limit for a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the state of the connection is checked; a reconnect is noticed with this delay.
const LINK_CHECK_EVERY: Duration = Duration::from_millis(200);
/// How often it is checked until the first connection, which a starting worker waits for.
const FIRST_LINK_CHECK_EVERY: Duration = Duration::from_millis(20);
/// How often a missing stream is looked up.
const STREAM_CHECK_EVERY: Duration = Duration::from_millis(500);
/// The state of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) connected: bool,
    /// Increases with every connection.
    pub(crate) epoch: u64,
}

/// A connection to NATS. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Bus {
    client: Client,
    jetstream: jetstream::Context,
    /// JetStream under the imported subjects, for a host with its own account.
    imported: jetstream::Context,
    is_imported: Arc<AtomicBool>,
    /// The connection over which NATS lets acknowledgements through in the short form only, as [`Link::epoch`] counts.
    acks_short: Arc<AtomicU64>,
    /// The last message that [`Self::publish_remembered`] has published, by subject.
    published: Arc<Mutex<HashMap<String, Remembered>>>,
    link: watch::Sender<Link>,
}

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// As for a host whose account does not import its subject.
    #[error("nobody listens to its subject")]
    Unheard,
    #[error("{0}")]
    Unanswered(String),
}

/// A published message.
#[derive(Debug, Clone)]
struct Remembered {
    payload: Bytes,
    /// When its stream was created: a stream that was created again no longer has the message.
    stream_created: SystemTime,
}

impl Bus {
    pub(crate) fn new(client: Client) -> Self {
        let mut jetstream = jetstream::new(client.clone());
        jetstream.set_timeout(REQUEST_TIMEOUT);
        let mut imported = jetstream::with_prefix(client.clone(), subject::JETSTREAM_PREFIX);
        imported.set_timeout(REQUEST_TIMEOUT);
        let link = watch::Sender::new(link_of(&client));
        Self {
            client,
            jetstream,
            imported,
            is_imported: Arc::default(),
            acks_short: Arc::default(),
            published: Arc::default(),
            link,
        }
    }

    /// Whether JetStream belongs to another account, so that the orchestrator must create consumers.
    pub(crate) fn is_imported(&self) -> bool {
        self.is_imported.load(Ordering::Relaxed)
    }

    /// Requests that the orchestrator creates or replaces the consumer of `host`.
    pub(crate) async fn request_consumer(
        &self,
        host: &HostName,
        request: ConsumerRequest,
    ) -> Result<(), String> {
        let answer = self.client.request(subject::consumer_request(host), request.to_payload().into());
        let answer = self.bounded(answer).await.map_err(|error| {
            format!(
                "no orchestrator creates the consumer, or the credentials are not those of {host}: {error}"
            )
        })?;
        ConsumerAnswer::parse(&answer.payload)?.into_result()
    }

    /// Keeps [`Self::link`] up to date; never returns.
    pub(crate) async fn watch_link(self) {
        loop {
            let has_been_connected = self.link.borrow().epoch > 0;
            let pause = if has_been_connected { LINK_CHECK_EVERY } else { FIRST_LINK_CHECK_EVERY };
            tokio::time::sleep(pause).await;
            let link = link_of(&self.client);
            if link.connected && link.epoch > self.link.borrow().epoch {
                warn_of_small_messages(&self.client);
            }
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

    /// How many connections there have been, including the present one: [`Link::epoch`] as of now.
    pub(crate) fn connections(&self) -> u64 {
        link_of(&self.client).epoch
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Publishes a message and returns once the stream has stored it.
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

    /// As [`Self::publish_stored`], and remembers the message for [`Self::last_payload`]. `stream` is the stream of
    /// `subject`, looked up just before.
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

    /// Sends `ack` about a command through `subject`, which it was delivered with over `connection`, and waits for
    /// confirmation. A server understands both forms of such a subject, but the rights on NATS may be older than the form
    /// that it gives; then the short one is used.
    pub(crate) async fn ack(&self, ack: &'static [u8], subject: &str, connection: u64) -> Result<(), String> {
        let Some(long) = AckSubject::parse(subject).filter(AckSubject::is_long) else {
            let sent = self.send_ack(ack, subject.to_owned(), connection).await;
            return sent.map_err(|error| error.to_string());
        };
        let mut is_unheard = false;
        if self.acks_short.load(Ordering::Relaxed) != connection {
            match self.send_ack(ack, subject.to_owned(), connection).await {
                Ok(()) => return Ok(()),
                Err(RequestError::Unheard) => is_unheard = true,
                // That says nothing about the form.
                Err(RequestError::Unanswered(_)) => {}
            }
        }
        let sent = self.send_ack(ack, long.short(), connection).await;
        if is_unheard && sent.is_ok() && self.acks_short.swap(connection, Ordering::Relaxed) != connection {
            warn!(
                "NATS lets no acknowledgement through in the form that its server gives, so they go in the older one: renew \
                 the rights of this host with `os-upgrade nats-config init` and `push`"
            );
        }
        sent.map_err(|error| error.to_string())
    }

    /// What the client has queued when the connection ends may still go over the next one.
    async fn send_ack(
        &self,
        ack: &'static [u8],
        subject: String,
        connection: u64,
    ) -> Result<(), RequestError> {
        if self.connections() > connection {
            return Err(RequestError::Unanswered("the connection has ended".to_owned()));
        }
        self.request(subject, Bytes::from_static(ack)).await.map(drop)
    }

    /// Publishes a message without confirmation, if connected.
    pub(crate) async fn send(&self, subject: String, payload: Bytes) {
        // The only errors are those of a missing connection or a closed client; the message may be lost anyway.
        let _ = self.bounded(self.client.publish(subject, payload)).await;
    }

    pub(crate) async fn subscribe(&self, subject: String) -> Result<async_nats::Subscriber, String> {
        self.client.subscribe(subject).await.map_err(|error| with_causes(&error))
    }

    /// The payload of the last message on `subject` in `stream`, which was looked up just before; `None` if there is none.
    ///
    /// A host with its own account may not read it back, because the permission to read one message of a stream applies
    /// to all of them. For such a host it is the last message that this process has published with
    /// [`Self::publish_remembered`].
    pub(crate) async fn last_payload(&self, stream: &Stream, subject: &str) -> Result<Option<Bytes>, String> {
        if self.is_imported() {
            let published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
            let last = published.get(subject).filter(|last| last.stream_created == created(stream));
            return Ok(last.map(|last| last.payload.clone()));
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

    /// The last message on `subject` of `stream`, which allows direct gets; `None` if there is none. A host with its own account may ask
    /// for this if the subject is its own. [`Self::is_imported`] must be known, as it is after [`Self::await_stream`].
    pub(crate) async fn get(&self, stream: &str, subject: &str) -> Result<Option<Bytes>, RequestError> {
        let prefix = if self.is_imported() { subject::JETSTREAM_PREFIX } else { JETSTREAM_API };
        let request = format!("{prefix}.DIRECT.GET.{stream}.{subject}");
        let answer = self.request(request, Bytes::new()).await?;
        if answer.status == Some(StatusCode::NOT_FOUND) {
            return Ok(None);
        }
        let found = answer.headers.as_ref().and_then(|headers| headers.get(jetstream_header::NATS_SUBJECT));
        if answer.status.is_none() && found.is_some_and(|found| found.as_str() == subject) {
            return Ok(Some(answer.payload));
        }
        let status = answer.status.map(|status| format!(": status {status}")).unwrap_or_default();
        Err(RequestError::Unanswered(format!("the answer is no message of {stream}{status}")))
    }

    /// The answer to a request, within [`REQUEST_TIMEOUT`].
    async fn request(&self, subject: String, payload: Bytes) -> Result<Message, RequestError> {
        let answer = self.bounded(async {
            match self.client.request(subject, payload).await {
                Err(error) if error.kind() == RequestErrorKind::NoResponders => {
                    Ok(Err(RequestError::Unheard))
                }
                answer => answer.map(Ok),
            }
        });
        answer.await.map_err(RequestError::Unanswered)?
    }

    /// Waits until the stream exists; only the orchestrator creates it.
    pub(crate) async fn await_stream(&self, name: &str) -> Stream {
        let mut throttle = LogThrottle::default();
        loop {
            self.await_connection().await;
            let imported = self.is_imported();
            let jetstream = if imported { &self.imported } else { &self.jetstream };
            let error = match tokio::time::timeout(REQUEST_TIMEOUT, jetstream.get_stream(name)).await {
                Ok(Ok(stream)) => {
                    if !throttle.is_empty() {
                        info!(stream = name, "the stream exists");
                    }
                    return stream;
                }
                Ok(Err(error)) if is_absent(&error.kind()) => "it does not exist yet".to_owned(),
                Ok(Err(error))
                    if !imported && is_code(&error.kind(), ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT) =>
                {
                    if !self.is_imported.swap(true, Ordering::Relaxed) {
                        info!(
                            "JetStream belongs to another account, as is usual for the credentials of a host"
                        );
                    }
                    continue;
                }
                Ok(Err(error)) => with_causes(&error),
                Err(_) => "no answer".to_owned(),
            };
            if throttle.is_due(&error, Instant::now()) {
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

    /// Carries out `request`, within [`REQUEST_TIMEOUT`], unless disconnected.
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

/// Warns if the server takes only small messages: what is larger is not stored.
fn warn_of_small_messages(client: &Client) {
    let bytes = client.max_payload();
    if bytes < NATS_MESSAGE_BYTES {
        warn!(
            "NATS takes messages of {bytes} bytes at most, and {NATS_MESSAGE_BYTES} are needed: raise max_payload in the \
             configuration of the nats-server"
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

#[cfg(all(test, feature = "testing"))]
mod tests {
    use async_nats::Subscriber;
    use futures::StreamExt as _;

    use super::*;
    use crate::testing::NatsServer;

    const LONG: &str = "$JS.ACK._.bgPM0v7Z.stream.worker-h1.1.7.3.1790000000.0";
    const SHORT: &str = "$JS.ACK.stream.worker-h1.1.7.3.1790000000.0";

    async fn subscribe(client: &Client, subject: &'static str) -> Subscriber {
        let subscriber = client.subscribe(subject).await.expect("NATS answers");
        client.flush().await.expect("NATS answers");
        subscriber
    }

    /// Answers the next acknowledgement.
    async fn take(client: &Client, acks: &mut Subscriber) {
        let reply = acks.next().await.expect("NATS answers").reply.expect("NATS answers");
        client.publish(reply, Bytes::new()).await.expect("NATS answers");
    }

    #[tokio::test]
    async fn long_form_is_given_up_only_where_nobody_listens() {
        let server = NatsServer::start().await.expect("NATS answers");
        let client = async_nats::connect(server.url()).await.expect("NATS answers");
        let bus = Bus::new(client.clone());
        let ack = |connection| bus.ack(b"+ACK", LONG, connection);
        let mut short = subscribe(&client, SHORT).await;

        // No answer in time.
        let long = subscribe(&client, LONG).await;
        let (acked, ()) = tokio::join!(ack(1), take(&client, &mut short));
        assert_eq!((acked, bus.acks_short.load(Ordering::Relaxed)), (Ok(()), 0));
        drop(long);
        let mut long = subscribe(&client, LONG).await;
        let (acked, ()) = tokio::join!(ack(1), take(&client, &mut long));
        assert_eq!(acked, Ok(()));

        long.unsubscribe().await.expect("NATS answers");
        let (acked, ()) = tokio::join!(ack(1), take(&client, &mut short));
        assert_eq!((acked, bus.acks_short.load(Ordering::Relaxed)), (Ok(()), 1));
        let mut long = subscribe(&client, LONG).await;
        let (acked, ()) = tokio::join!(ack(1), take(&client, &mut short));
        assert_eq!(acked, Ok(()));

        client.force_reconnect().await.expect("NATS answers");
        tokio::time::timeout(REQUEST_TIMEOUT, async {
            while bus.connections() < 2 || !bus.is_connected() {
                tokio::time::sleep(FIRST_LINK_CHECK_EVERY).await;
            }
        })
        .await
        .expect("NATS answers");
        let (acked, ()) = tokio::join!(ack(2), take(&client, &mut long));
        assert_eq!(acked, Ok(()));
    }
}
