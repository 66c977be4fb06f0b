//! Waits for the bus while the API is already up: connects again and again, and answers calls meanwhile with what is
//! missing, and since when.
//!
//! Obstacles that may pass, or that an operator can remove in NATS, are waited for without limit. Streams that exist but
//! must not be used end the instance instead.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::Utc;
use os_upgrade_bus::Bus;
use os_upgrade_bus::connect::{ConnectError, SmallMessages, connect, connect_to_workers};
use os_upgrade_bus::streams::{Layout, StreamsError};
use os_upgrade_bus::worker_reports::WorkerConnection;
use os_upgrade_credentials::LogThrottle;
use os_upgrade_kernel::View;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::time;
use os_upgrade_settings::{NatsMode, Settings};
use os_upgrade_shell::instance::{Acknowledged, Streams};
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_site::call::Call;
use os_upgrade_site::published_state::{PublishedState, Readiness};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};

use crate::shared::Shared;

/// Time between two attempts.
const RETRY: Duration = Duration::from_secs(1);
/// Time between two iterations, which show the watchdog that the process is alive.
const ITERATION: Duration = Duration::from_millis(100);

/// The bus, ready for use.
#[derive(Debug)]
pub(super) struct ReadyBus {
    pub(super) bus: Bus,
    /// A connection for what workers say.
    pub(super) workers: WorkerConnection,
    /// Whether the bus is connected at the moment.
    pub(super) connected: watch::Receiver<bool>,
    /// The journal and the control stream, as inspected.
    pub(super) streams: Streams,
    /// Calls that were not answered while waiting.
    pub(super) calls: mpsc::Receiver<Call>,
}

/// Why the bus cannot be used.
#[derive(Debug, thiserror::Error)]
enum Obstacle {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    SmallMessages(#[from] SmallMessages),
    #[error(transparent)]
    Streams(#[from] StreamsError),
}

impl Obstacle {
    /// The reason to wait.
    ///
    /// # Errors
    /// Waiting does not help: an operator has to look at an existing stream first.
    fn reason_to_wait(self) -> Result<String, StreamsError> {
        match self {
            Self::Connect(error) => Ok(error.to_string()),
            Self::SmallMessages(error) => Ok(error.to_string()),
            Self::Streams(
                error @ (StreamsError::NoJetStream
                | StreamsError::NotAnOrchestrator { .. }
                | StreamsError::Unusable { .. }),
            ) => Ok(with_causes(&error)),
            Self::Streams(
                error @ (StreamsError::Incompatible { .. }
                | StreamsError::OtherSite { .. }
                | StreamsError::Restoring { .. }
                | StreamsError::Journal(_)),
            ) => Err(error),
        }
    }
}

/// An instance that waits for the bus.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) settings: Settings,
    /// What was acknowledged according to the store; `None` if the store is empty.
    pub(super) known: Option<Acknowledged>,
    pub(super) calls: mpsc::Receiver<Call>,
    pub(super) shared: Shared,
}

impl Waiting {
    /// Resolves once the bus can be used.
    ///
    /// # Errors
    /// The bus has streams that must not be used.
    pub(super) async fn ready(mut self) -> Result<ReadyBus, StreamsError> {
        let begun = Instant::now();
        let since = time::format(Utc::now());
        let mut throttle = LogThrottle::default();
        self.show("connecting to NATS".to_owned());
        let mut first_server = 0;
        loop {
            let attempt = Box::pin(attempt(self.settings.clone(), self.known.clone(), first_server));
            let why = match self.answer_calls_during(attempt).await {
                Ok(Connections { bus, workers, connected, streams }) => {
                    if !throttle.is_empty() {
                        tracing::info!(waited_secs = begun.elapsed().as_secs(), "NATS can be used");
                    }
                    return Ok(ReadyBus { bus, workers, connected, streams, calls: self.calls });
                }
                Err(obstacle) => {
                    // Another server of the cluster may take larger ones.
                    first_server += usize::from(matches!(obstacle, Obstacle::SmallMessages(_)));
                    obstacle.reason_to_wait()?
                }
            };
            if throttle.is_due(&why, std::time::Instant::now()) {
                tracing::warn!(since, "waiting for NATS: {why}");
            }
            self.show(format!("waiting for NATS since {since}: {why}"));
            self.answer_calls_during(tokio::time::sleep(RETRY)).await;
        }
    }

    fn show(&self, why: String) {
        let readiness = Readiness::NotReady(why);
        let view = View { zones: self.shared.zones.borrow().clone(), ..View::default() };
        self.shared.published.store(Arc::new(PublishedState {
            readiness,
            view,
            ..PublishedState::default()
        }));
    }

    /// Awaits `work`, and meanwhile answers calls and counts iterations.
    async fn answer_calls_during<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut iteration = tokio::time::interval(ITERATION);
        iteration.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                done = &mut work => return done,
                Some(Call { answer, .. }) = self.calls.recv() => {
                    let published = self.shared.published.load();
                    let why = published.readiness.reason_not_ready().unwrap_or_default();
                    // This only fails if the caller has given up.
                    drop(answer.send(Err(NotDone::unchanged(why))));
                }
                _ = iteration.tick() => {
                    self.shared.iterations.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

/// The connections to the bus.
struct Connections {
    bus: Bus,
    workers: WorkerConnection,
    connected: watch::Receiver<bool>,
    streams: Streams,
}

/// Connects, and creates or checks the streams. Nothing is kept from the last attempt: credentials and server may have
/// changed. Of a cluster, it begins with the server of the index `first_server`, counted round.
async fn attempt(
    settings: Settings,
    known: Option<Acknowledged>,
    first_server: usize,
) -> Result<Connections, Obstacle> {
    let mut servers = match settings.nats.mode() {
        NatsMode::External { urls } => urls.servers().to_vec(),
        NatsMode::Managed => Vec::new(),
    };
    let first = first_server.checked_rem(servers.len()).unwrap_or_default();
    servers.rotate_left(first);
    let site = settings.site.name.as_str();
    let name = format!("os-upgrade {site}");
    let (bus, connected) = connect(&servers, settings.nats.access(), &name).await?;
    bus.check_server_messages()?;
    let replicas = settings.nats.replicas.get() as usize;
    bus.ensure_streams(&Layout { site, replicas }, known.is_some()).await?;
    let streams = bus.inspect(&known.unwrap_or_default()).await?;
    // Only now: other obstacles are looked for each second, and this sends 1 MiB.
    bus.try_messages().await?;
    let workers = connect_to_workers(&servers, settings.nats.access(), &format!("{name} workers")).await?;
    Ok(Connections { bus, workers, connected, streams })
}
