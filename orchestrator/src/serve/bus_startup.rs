//! From when the API listens until the bus can be used: it is tried again and again, and whoever asks meanwhile hears
//! what is missing, and since when.
//!
//! What may come by itself, or by what somebody does to NATS, is waited for, however long. Streams that are there and
//! must not be used are none of that: they end the instance.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use chrono::Utc;
use os_upgrade_bus::Bus;
use os_upgrade_bus::connect::{ConnectError, connect};
use os_upgrade_bus::streams::{Layout, StreamsError};
use os_upgrade_credentials::LogThrottle;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_protocol::time;
use os_upgrade_settings::{NatsMode, Settings};
use os_upgrade_shell::node::{Known, Streams};
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_site::call::Call;
use os_upgrade_site::snapshot::{Readiness, SiteSnapshot};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};

/// Time between two attempts.
const RETRY: Duration = Duration::from_secs(1);
/// Time between two signs of life for whoever watches the process.
const TURN: Duration = Duration::from_millis(100);

/// The bus, as an instance begins to use it.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) bus: Bus,
    /// Whether the connection is there, from now on.
    pub(super) connected: watch::Receiver<bool>,
    /// Journal and control stream as they are.
    pub(super) streams: Streams,
    /// Requests that nobody has looked at yet.
    pub(super) calls: mpsc::Receiver<Call>,
}

/// Why the bus cannot be used.
#[derive(Debug, thiserror::Error)]
enum Obstacle {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Streams(#[from] StreamsError),
}

impl Obstacle {
    /// Why it is worth waiting.
    ///
    /// # Errors
    /// It is not: a stream that is there is left alone until somebody has looked at it.
    fn may_pass(self) -> Result<String, StreamsError> {
        match self {
            Self::Connect(error) => Ok(error.to_string()),
            Self::Streams(
                error @ (StreamsError::NoJetStream
                | StreamsError::NotForThis { .. }
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

/// One that waits for the bus.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) settings: Settings,
    /// What the store knows to have been acknowledged, if it knows anything.
    pub(super) known: Option<Known>,
    /// Where it is shown that this waits.
    pub(super) present: Arc<ArcSwap<SiteSnapshot>>,
    /// Requests.
    pub(super) calls: mpsc::Receiver<Call>,
    /// Counts its turns, as the driver's are counted later.
    pub(super) turns: Arc<AtomicU64>,
}

impl Waiting {
    /// Resolves once the bus can be used.
    ///
    /// # Errors
    /// It is there, with streams that must not be used.
    pub(super) async fn arrived(mut self) -> Result<Arrived, StreamsError> {
        let begun = Instant::now();
        let since = time::format(Utc::now());
        let mut told = LogThrottle::default();
        self.show("connecting to NATS".to_owned());
        loop {
            let attempt = Box::pin(attempt(self.settings.clone(), self.known.clone()));
            let why = match self.meanwhile(attempt).await {
                Ok((bus, connected, streams)) => {
                    if !told.is_silent() {
                        tracing::info!(waited_secs = begun.elapsed().as_secs(), "NATS can be used");
                    }
                    return Ok(Arrived { bus, connected, streams, calls: self.calls });
                }
                Err(obstacle) => obstacle.may_pass()?,
            };
            if told.is_due(&why, std::time::Instant::now()) {
                tracing::warn!(since, "waiting for NATS: {why}");
            }
            self.show(format!("waiting for NATS since {since}: {why}"));
            self.meanwhile(tokio::time::sleep(RETRY)).await;
        }
    }

    fn show(&self, why: String) {
        let readiness = Readiness::NotReady(why);
        self.present.store(Arc::new(SiteSnapshot { readiness, ..SiteSnapshot::default() }));
    }

    /// Does `work`, and answers whoever asks before it is done.
    async fn meanwhile<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut turn = tokio::time::interval(TURN);
        turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                done = &mut work => return done,
                Some(Call { answer, .. }) = self.calls.recv() => {
                    let present = self.present.load();
                    let why = present.readiness.why_not().unwrap_or_default();
                    // One who has given up does not want to know.
                    drop(answer.send(Err(NotDone::unchanged(why))));
                }
                _ = turn.tick() => {
                    self.turns.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Connects, and has the streams as they have to be. Everything is done anew each time: the credentials may be others by
/// now, and the server another.
async fn attempt(
    settings: Settings,
    known: Option<Known>,
) -> Result<(Bus, watch::Receiver<bool>, Streams), Obstacle> {
    let servers = match settings.nats.mode() {
        NatsMode::External { urls } => urls.servers().to_vec(),
        NatsMode::Managed => Vec::new(),
    };
    let site = settings.site.name.as_str();
    let (bus, connected) = connect(&servers, settings.nats.access(), &format!("os-upgrade {site}")).await?;
    let replicas = settings.nats.replicas.get() as usize;
    bus.ensure_streams(&Layout { site, replicas }, known.is_some()).await?;
    bus.ensure_lease(replicas).await?;
    let streams = bus.inspect(&known.unwrap_or_default()).await?;
    Ok((bus, connected, streams))
}
