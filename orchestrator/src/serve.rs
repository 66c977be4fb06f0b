//! One orchestrator instance, from its settings until it is told to end: everything is opened, wired and closed here.

mod bus_startup;
mod heartbeats;
mod open_files;
mod projection;
pub(crate) mod reload;
mod service_manager;
mod setup;
pub(crate) mod with_nats;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use os_upgrade_adapters::Adapters;
use os_upgrade_api as api;
use os_upgrade_bus::PendingBus;
use os_upgrade_bus::streams::StreamsError;
use os_upgrade_kernel as kernel;
use os_upgrade_platform::data_directory::{self, DataDirectory};
use os_upgrade_settings::Settings;
use os_upgrade_shell::dispatch::DispatchSettings;
use os_upgrade_shell::jobs::SystemLimits;
use os_upgrade_shell::node::{Known, NodeSettings, StoreKnowledge, Streams};
use os_upgrade_site::handle::SiteHandle;
use os_upgrade_site::instances::{About, Cluster};
use os_upgrade_site::snapshot::SiteSnapshot;
use os_upgrade_store::{History, OpenError, Position, Projector, StoreError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use self::bus_startup::{Arrived, Waiting};
pub(crate) use self::setup::Setup;
use crate::driver::{Driver, Parts};

/// Requests that wait for the driver.
const CALLS_MAX: usize = 1024;
/// Committed records that may wait for the store before it counts as left behind.
const PROJECTION_MAX: usize = 65_536;
/// After how many facts a snapshot of the state is written.
const FACTS_PER_SNAPSHOT: usize = 20_000;
/// Commands that may be on their way to a single server at once. In a cluster, which refuses concurrent messages
/// under one fence, they go one by one.
const PUBLISHES_MAX: usize = 256;
/// How long a loss is doubted in a cluster: twice the time after which a nats-server that hears nothing of the others
/// believes no longer that it leads a stream.
const LOSS_CERTAIN_AFTER: Duration = Duration::from_secs(20);

/// How long everything else may take to end after the driver: the store takes in what is left and is closed. The journal
/// has what it does not take in.
const REST_WITHIN: Duration = Duration::from_millis(500);

/// Why an instance could not start, or could not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// The data directory cannot be used.
    #[error(transparent)]
    Directory(#[from] data_directory::Error),
    /// The store cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be read.
    #[error("cannot read the store")]
    Store(#[from] StoreError),
    /// The bus has streams that must not be used.
    #[error(transparent)]
    Streams(#[from] StreamsError),
    /// A task of the instance has panicked.
    #[error("the {task} has failed")]
    Task {
        /// Which one.
        task: &'static str,
        /// How.
        source: JoinError,
    },
    /// The API has ended.
    #[error("the API has ended")]
    Api(#[source] io::Error),
}

/// Runs an instance until `shutdown`, with the `means` of its settings. `settings.nats` names servers; they are waited for.
/// Each of `changes` is put in force as it comes, when this instance leads.
///
/// # Errors
/// It cannot start or go on.
pub(crate) async fn run(
    settings: Settings,
    means: Setup,
    changes: watch::Receiver<kernel::Settings>,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let opened = tokio::select! {
        opened = open(settings, means) => opened?,
        // Nothing has been begun that anybody waits for.
        () = shutdown.cancelled() => return Ok(()),
    };
    opened.run(changes, shutdown).await
}

/// An instance with everything of its own, which does not run yet.
struct Opened {
    settings: Settings,
    means: Setup,
    directory: DataDirectory,
    projector: Projector,
    history: History,
    position: Option<Position>,
}

async fn open(settings: Settings, means: Setup) -> Result<Opened, ServeError> {
    let directory = DataDirectory::lock(&settings.store.path)?;
    let mut projector = Projector::open(&settings.store.database(), settings.site.name.as_str()).await?;
    let history = projector.history().await?;
    let position = projector.position().await?;
    Ok(Opened { settings, means, directory, projector, history, position })
}

impl Opened {
    async fn run(
        self,
        changes: watch::Receiver<kernel::Settings>,
        shutdown: CancellationToken,
    ) -> Result<(), ServeError> {
        let Self {
            settings,
            means: Setup { gate, tls, strongbox, locks, listener },
            directory,
            projector,
            history,
            position,
        } = self;
        let (present, handle, calls) = site();
        let bus = PendingBus::default();
        let about = About {
            instance: directory.instance().to_owned(),
            address: settings.api.listen.to_string(),
            settings: changes.clone(),
            lock_server: settings.lock_server(),
        };
        let cluster = Cluster::new(about);
        let handle = handle.with_cluster(cluster.clone());
        let heartbeats = heartbeats::run(cluster, Arc::clone(&bus), Arc::clone(&present), shutdown.clone());
        let cluster = spawn(&shutdown, heartbeats);
        let sites = api::Sites::new(settings.site.name.as_str(), Arc::clone(&bus));
        let (projection, committed) = mpsc::channel(PROJECTION_MAX);
        let (found, streams) = oneshot::channel();
        let (problem, store_problem) = watch::channel(None);
        let turns = Arc::default();
        let store = position.as_ref().map(Position::knowledge);
        let core = Core {
            waiting: Waiting {
                settings: settings.clone(),
                known: store.as_ref().map(Known::of_store),
                present: Arc::clone(&present),
                calls,
                turns: Arc::clone(&turns),
            },
            bus,
            found,
            parts: Parts {
                settings: node_settings(&settings, directory.instance(), store),
                adapters: Adapters {
                    lock_server: locks.map(|locks| locks.with_credentials(strongbox.credentials(&present))),
                },
                strongbox: strongbox.clone(),
                history: history.clone(),
                projection,
                store_problem,
                present,
                changes,
                turns: Arc::clone(&turns),
                shutdown: shutdown.clone(),
            },
        };

        // Whichever ends first ends the others: an API that shows a state nobody keeps any more would be a lie.
        let projection = spawn(&shutdown, projection::run(projector, position, streams, committed, problem));
        let core = spawn(&shutdown, core.run(shutdown.clone()));
        let told = spawn(&shutdown, service_manager::tell(handle.clone(), turns, shutdown.clone()));
        let followed = spawn(&shutdown, gate.clone().follow(shutdown.clone()));
        let address = settings.api.listen;
        tracing::info!(%address, tls = tls.is_some(), "the API listens");
        let limits = api::Limits::of_settings(&settings.api);
        let options = api::Options { tls, limits, strongbox, sites };
        let served = api::serve(listener, handle, history, gate, options, shutdown.clone()).await;
        shutdown.cancel();
        let core = core.await;
        // Only then has the store been given everything.
        let rest = async { tokio::join!(projection, cluster, told, followed) };
        let rest = tokio::time::timeout(REST_WITHIN, rest).await;
        drop(directory);
        let failed = |task| move |source| ServeError::Task { task, source };
        core.map_err(failed("driver"))??;
        if let Ok((projection, cluster, told, followed)) = rest {
            projection.map_err(failed("projection"))?;
            cluster.map_err(failed("view of the instances"))?;
            told.map_err(failed("service manager's news"))?;
            followed.map_err(failed("view of the tokens"))?;
        } else {
            tracing::warn!("the store was not closed in time; the journal has what is missing");
        }
        served.map_err(ServeError::Api)
    }
}

/// What waits for the bus, and then drives the node.
struct Core {
    waiting: Waiting,
    /// Where the bus is handed to everything else that needs it.
    bus: PendingBus,
    /// Where it is said which streams the store is filled from.
    found: oneshot::Sender<Option<os_upgrade_store::Streams>>,
    parts: Parts,
}

impl Core {
    async fn run(self, shutdown: CancellationToken) -> Result<(), ServeError> {
        let Self { waiting, bus: late, found, parts } = self;
        let Some(arrived) = shutdown.run_until_cancelled(waiting.arrived()).await else {
            // Nothing has been begun that anybody waits for.
            return Ok(());
        };
        let Arrived { bus, connected, streams, calls } = arrived?;
        // Both are said once, here; whoever does not listen has ended.
        drop(late.set(bus.clone()));
        let _ = found.send(store_streams(&streams));
        let consumers = tokio::spawn({
            let bus = bus.clone();
            async move { bus.make_consumers(shutdown).await }
        });
        Driver::new(parts, bus, connected, calls).run().await;
        // It ends with the shutdown, and what it has begun is done again by whoever asks again.
        consumers.abort();
        Ok(())
    }
}

/// Runs `work` beside everything else; its end, orderly or by a panic, is the end of everything.
fn spawn<T: Send + 'static>(
    shutdown: &CancellationToken,
    work: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let end_all = shutdown.clone().drop_guard();
    tokio::spawn(async move {
        let _end_all = end_all;
        work.await
    })
}

fn site() -> (Arc<ArcSwap<SiteSnapshot>>, SiteHandle, mpsc::Receiver<os_upgrade_site::call::Call>) {
    let present = Arc::new(ArcSwap::from_pointee(SiteSnapshot::default()));
    let (sender, calls) = mpsc::channel(CALLS_MAX);
    let handle = SiteHandle::new(Arc::clone(&present), sender);
    (present, handle, calls)
}

/// The streams that the store is filled from. When one is missing nothing is read from the other either.
fn store_streams(streams: &Streams) -> Option<os_upgrade_store::Streams> {
    Some(os_upgrade_store::Streams {
        journal_created_at: streams.journal?.created,
        control_created_at: streams.control?.created,
    })
}

fn node_settings(settings: &Settings, instance: &str, store: Option<StoreKnowledge>) -> NodeSettings {
    let is_cluster = settings.nats.replicas.get() > 1;
    let lock_server = SystemLimits {
        retry: settings.fleet_lock.retry_interval.get(),
        interval: settings.fleet_lock.request_interval.get(),
    };
    NodeSettings {
        instance: instance.to_owned(),
        nonce: uuid::Uuid::new_v4().simple().to_string(),
        settings: settings.for_kernel(),
        dispatch: DispatchSettings { publishes_max: if is_cluster { 1 } else { PUBLISHES_MAX }, lock_server },
        facts_per_snapshot: FACTS_PER_SNAPSHOT,
        store,
        loss_certain_after: if is_cluster { LOSS_CERTAIN_AFTER } else { Duration::ZERO },
    }
}
