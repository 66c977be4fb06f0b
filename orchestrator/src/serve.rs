//! One orchestrator instance, in phases: [`open`] the data directory, [`link`] the tasks by channels, [`wire`] each task with what
//! it needs, [`serve`] until something ends, and [`close`] the rest.

mod bus_startup;
mod drain_previews;
mod heartbeats;
mod open_files;
mod projection;
mod provider_tests;
pub(crate) mod reload;
mod service_manager;
mod setup;
pub(crate) mod with_nats;
mod zone_data;

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use chrono::{DateTime, Utc};
use os_upgrade_adapters::fleet_lock_client::FleetLockClient;
use os_upgrade_adapters::providers::Providers;
use os_upgrade_adapters::reboot_command::RebootCommands;
use os_upgrade_adapters::{self as adapters, Adapters};
use os_upgrade_api as api;
use os_upgrade_auth::Authenticator;
use os_upgrade_bus::PendingBus;
use os_upgrade_bus::host_reports::StreamedReports;
use os_upgrade_bus::streams::{Layout, StreamsError};
use os_upgrade_calendar::Zones;
use os_upgrade_kernel::{self as kernel, System};
use os_upgrade_platform::data_directory::{self, DataDirectory};
use os_upgrade_settings::{FleetLock, Settings};
use os_upgrade_shell::dispatch::DispatchSettings;
use os_upgrade_shell::instance::{
    Acknowledged, InstanceSettings, RetentionSettings, StoreKnowledge, Streams,
};
use os_upgrade_shell::jobs::SystemLimits;
use os_upgrade_site::call::Call;
use os_upgrade_site::handle::SiteHandle;
use os_upgrade_site::host_reports::HostReports;
use os_upgrade_site::instances::{About, Cluster};
use os_upgrade_site::published_state::PublishedState;
use os_upgrade_site::strongbox::Strongbox;
use os_upgrade_store::{History, OpenError, Position, Projector, StoreError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use self::bus_startup::{ReadyBus, Waiting};
use self::projection::Projection;
pub(crate) use self::setup::Setup;
use crate::driver::{self, Driver, Parts};
use crate::shared::Shared;

/// The most requests that wait for the driver.
const CALLS_MAX: usize = 1024;
/// How much there may be to read in the journal before a snapshot of the state is written to it.
const SNAPSHOT_WEIGHT: usize = 20_000;
/// How many messages the journal may have before it is trimmed although a live instance's store is behind.
const JOURNAL_MESSAGES_MAX: u64 = 500_000;
/// How many times the servers' `sync_interval` a snapshot stands before the streams are trimmed to it.
const SYNCS_BEFORE_TRIM: u32 = 5;
/// How long it stands at least: until a leader has heard of the other instances, which beat every second.
const SNAPSHOT_STANDS_MIN: Duration = Duration::from_secs(3);
/// The most commands that are published at once to a single server. In a cluster, which refuses concurrent messages under
/// one fence, they are published one by one.
const PUBLISHES_MAX: usize = 256;
/// How long a loss must last in a cluster before it is believed: twice the time after which an isolated nats-server stops
/// considering itself a stream's leader.
const LOSS_CERTAIN_AFTER: Duration = Duration::from_secs(20);

/// The requests a second that allow one more job in the cluster at once: a job about a node with many pods sends hundreds, and has to
/// end within its time.
const REQUESTS_FOR_A_JOB: usize = 12;
/// How often the operator's command is asked whether a host has booted, and how fast commands are begun.
const REBOOT_COMMAND: SystemLimits =
    SystemLimits::at_intervals(Duration::from_secs(10), Duration::from_millis(100));

/// The path of the API to which providers of kind `hooks` post call-backs.
const CALLBACK_PATH: &str = "/v1/hooks/callback";

/// How long everything else may take to end after the driver: the store applies the remaining records and is closed. What
/// it misses is in the journal.
const REST_WITHIN: Duration = Duration::from_millis(500);

/// Why an instance could not start or had to end.
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
    /// The bus has streams that this instance must not use.
    #[error(transparent)]
    Streams(#[from] StreamsError),
    /// A task of the instance has panicked.
    #[error("the {task} has failed")]
    Task { task: &'static str, source: JoinError },
    /// The API has stopped.
    #[error("the API has stopped")]
    Api(#[source] io::Error),
}

/// Runs an instance until `shutdown`. `settings.nats` has the addresses of servers, which need not be up yet. Each of
/// `changes` is applied when it arrives, if this instance leads.
///
/// # Errors
/// It cannot start, or a part of it failed.
pub(crate) async fn run(
    settings: Settings,
    setup: Setup,
    changes: watch::Receiver<kernel::Settings>,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let opened = tokio::select! {
        opened = open(settings, setup) => opened?,
        // Nothing has been started that must be ended.
        () = shutdown.cancelled() => return Ok(()),
    };
    let (shared, channels) = link(&opened, changes, shutdown);
    close(serve(wire(opened, shared, channels)).await).await
}

/// An instance that has opened its data directory and does not run yet.
struct Opened {
    settings: Settings,
    setup: Setup,
    directory: DataDirectory,
    projector: Projector,
    history: History,
    position: Option<Position>,
    newest_record: Option<DateTime<Utc>>,
}

async fn open(settings: Settings, setup: Setup) -> Result<Opened, ServeError> {
    let directory = DataDirectory::lock(&settings.store.path)?;
    let mut projector = Projector::open(&settings.store.database(), settings.site.name.as_str()).await?;
    let history = projector.history().await?;
    let position = projector.position().await?;
    // A history that is damaged is told when it is read; the journal has times of its own.
    let newest_record = history.newest_record().await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the history does not tell the time of its newest record");
        None
    });
    Ok(Opened { settings, setup, directory, projector, history, position, newest_record })
}

/// The channels between tasks, each end for the one that takes it.
struct Channels {
    /// Takes requests for `calls`.
    handle: SiteHandle,
    calls: mpsc::Receiver<Call>,
    /// The driver's ends of the channels to the projection.
    records: driver::Projection,
    /// Tells the projection the identity of the streams.
    streams_found: oneshot::Sender<Option<os_upgrade_store::Streams>>,
    projection: projection::Ends,
}

fn link(
    opened: &Opened,
    changes: watch::Receiver<kernel::Settings>,
    shutdown: CancellationToken,
) -> (Shared, Channels) {
    let published = Arc::new(ArcSwap::from_pointee(PublishedState::default()));
    let (sender, calls) = mpsc::channel(CALLS_MAX);
    let cluster = Cluster::new(About {
        instance: opened.directory.instance().to_owned(),
        address: opened.settings.api.listen.to_string(),
        settings: changes.clone(),
        lock_server: opened.settings.lock_server(),
    });
    let handle = SiteHandle::new(Arc::clone(&published), sender).with_cluster(cluster.clone());
    let (records, streams_found, projection) = projection::channels();
    let zones = zone_data::follow(shutdown.clone());
    let (bus, iterations) = (PendingBus::default(), Arc::default());
    let shared = Shared { bus, published, cluster, changes, zones, iterations, shutdown };
    (shared, Channels { handle, calls, records, streams_found, projection })
}

/// The tasks of an instance with everything that they need.
struct Wired {
    core: Core,
    projection: Projection,
    api: Api,
    shared: Shared,
    directory: DataDirectory,
}

/// What the API is served with.
struct Api {
    /// Where it listens, as the settings say.
    address: SocketAddr,
    listeners: api::Listeners,
    handle: SiteHandle,
    history: History,
    authenticator: Authenticator,
    options: api::Options,
}

fn wire(opened: Opened, shared: Shared, channels: Channels) -> Wired {
    let Opened { settings, setup, directory, projector, history, position, newest_record } = opened;
    let Setup { authenticator, tls, strongbox, locks, nodes, listeners } = setup;
    let address = settings.api.listen;
    let drains = drain_previews::of(nodes.as_ref());
    let providers = Providers::new(
        strongbox.clone(),
        Arc::clone(&shared.published),
        callback_endpoint(&settings, listeners.tcp.local_addr().unwrap_or(address)),
    );
    let adapters = adapters(&settings, locks, nodes, providers, &strongbox, &shared.published);
    let options = api::Options {
        tls,
        strongbox: strongbox.clone(),
        sites: api::Sites::new(settings.site.name.as_str(), Arc::clone(&shared.bus)),
        reports: HostReports::new(StreamedReports(Arc::clone(&shared.bus))),
        drains,
        provider_tests: provider_tests::of(&adapters.providers),
        ..api::Options::from_settings(&settings)
    };
    let store = position.as_ref().map(Position::knowledge);
    let known = store.as_ref().map(Acknowledged::of_store);
    let zones = shared.zones.borrow().clone();
    let parts = Parts {
        settings: instance_settings(&settings, directory.instance(), zones, store, newest_record),
        adapters,
        strongbox,
        history: history.clone(),
        projection: channels.records,
        shared: shared.clone(),
    };
    let keep = settings.history.keep.get();
    Wired {
        projection: Projection {
            projector,
            position,
            ends: channels.projection,
            keep,
            shared: shared.clone(),
        },
        core: Core {
            waiting: Waiting { settings, known, calls: channels.calls, shared: shared.clone() },
            streams_found: channels.streams_found,
            parts,
        },
        api: Api { address, listeners, handle: channels.handle, history, authenticator, options },
        shared,
        directory,
    }
}

/// An instance that does not serve the API any more, and whose tasks are ending.
struct Ending {
    served: io::Result<()>,
    core: JoinHandle<Result<(), ServeError>>,
    projection: JoinHandle<()>,
    heartbeats: JoinHandle<()>,
    notifier: JoinHandle<()>,
    token_watch: JoinHandle<()>,
    directory: DataDirectory,
}

/// Runs the tasks. Whichever ends first ends the others: an API without a driver would show an outdated state.
async fn serve(Wired { core, projection, api, shared, directory }: Wired) -> Ending {
    let Api { address, listeners, handle, history, authenticator, options } = api;
    let shutdown = shared.shutdown.clone();
    let notify = service_manager::notify(handle.clone(), Arc::clone(&shared.iterations), shutdown.clone());
    let heartbeats = spawn(&shutdown, heartbeats::run(shared));
    let projection = spawn(&shutdown, projection.run());
    let core = spawn(&shutdown, core.run());
    let notifier = spawn(&shutdown, notify);
    let token_watch = spawn(&shutdown, authenticator.clone().watch(shutdown.clone()));
    tracing::info!(%address, tls = options.tls.is_some(), "the API listens");
    if let Some(socket) = &listeners.fleet_socket {
        tracing::info!(path = %socket.path().display(), "the socket for fleet's clients listens");
    }
    let served = api::serve(listeners, handle, history, authenticator, options, shutdown.clone()).await;
    shutdown.cancel();
    Ending { served, core, projection, heartbeats, notifier, token_watch, directory }
}

async fn close(ending: Ending) -> Result<(), ServeError> {
    let Ending { served, core, projection, heartbeats, notifier, token_watch, directory } = ending;
    let core = core.await;
    // The driver sends records to the store until it ends, so the projection is awaited after it.
    let rest = async { tokio::join!(projection, heartbeats, notifier, token_watch) };
    let rest = tokio::time::timeout(REST_WITHIN, rest).await;
    drop(directory);
    let failed = |task| move |source| ServeError::Task { task, source };
    core.map_err(failed("driver"))??;
    if let Ok((projection, heartbeats, notifier, token_watch)) = rest {
        projection.map_err(failed("projection"))?;
        heartbeats.map_err(failed("heartbeat task"))?;
        notifier.map_err(failed("service manager notifier"))?;
        token_watch.map_err(failed("token file watch"))?;
    } else {
        tracing::warn!("the store was not closed in time; the journal has what is missing");
    }
    served.map_err(ServeError::Api)
}

/// Waits for the bus, and then runs the driver.
struct Core {
    waiting: Waiting,
    /// Tells the projection the identity of the streams.
    streams_found: oneshot::Sender<Option<os_upgrade_store::Streams>>,
    parts: Parts,
}

impl Core {
    async fn run(self) -> Result<(), ServeError> {
        let Self { waiting, streams_found, mut parts } = self;
        let (site, replicas) =
            (waiting.settings.site.name.clone(), waiting.settings.nats.replicas.get() as usize);
        let shutdown = parts.shared.shutdown.clone();
        let Some(ready) = shutdown.run_until_cancelled(waiting.ready()).await else {
            // Nothing has been started that must be ended.
            return Ok(());
        };
        let ReadyBus { bus, workers, connected, streams, calls } = ready?;
        // Both are set only here, and fail only if the receiver has ended.
        drop(parts.shared.bus.set(bus.clone()));
        let _ = streams_found.send(store_streams(&streams));
        if let Some(journal) = &streams.journal {
            parts.adapters.cluster =
                parts.adapters.cluster.map(|cluster| cluster.for_journal(journal.created));
        }
        let consumers = tokio::spawn({
            let (bus, workers, stop) = (bus.clone(), workers.clone(), shutdown.clone());
            async move { bus.create_consumers(&workers, stop).await }
        });
        let side_streams = tokio::spawn({
            let bus = bus.clone();
            async move { bus.keep_side_streams(&Layout { site: site.as_str(), replicas }, shutdown).await }
        });
        Driver::new(parts, bus, workers, connected, calls).run().await;
        // Whoever still needs a consumer asks again, and the next start creates the streams.
        consumers.abort();
        side_streams.abort();
        Ok(())
    }
}

/// Runs `work` as a task; when it ends, orderly or by a panic, `shutdown` is cancelled.
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

/// The URL to which providers post call-backs. Without `public-url` it is where the API listens, at `address`.
fn callback_endpoint(settings: &Settings, address: SocketAddr) -> String {
    let base = settings.api.public_url.as_ref().map_or_else(
        || {
            let scheme = if settings.api_tls.cert.is_some() { "https" } else { "http" };
            format!("{scheme}://{address}")
        },
        |url| url.url().as_str().trim_end_matches('/').to_owned(),
    );
    base + CALLBACK_PATH
}

/// What carries out jobs, and asks providers.
fn adapters(
    settings: &Settings,
    locks: Option<FleetLockClient>,
    cluster: Option<adapters::cluster::Cluster>,
    providers: Providers,
    strongbox: &Strongbox,
    published: &Arc<ArcSwap<PublishedState>>,
) -> Adapters {
    let lock_server = locks.map(|locks| locks.with_credentials(strongbox.credentials(published)));
    let reboot_commands = RebootCommands::from_settings(settings);
    for (key, command) in reboot_commands.iter().flat_map(RebootCommands::commands) {
        // It may be installed before a host is to reboot, so that this keeps nothing from running.
        if command.executable().is_none() {
            let program = command.program();
            tracing::warn!("[reboot] {key}: {program} cannot be executed by this user, or is not there");
        }
    }
    Adapters { lock_server, cluster, reboot_commands, providers }
}

/// The streams from which the store is filled; `None` if one is missing, since then nothing is read from the other either.
fn store_streams(streams: &Streams) -> Option<os_upgrade_store::Streams> {
    Some(os_upgrade_store::Streams {
        journal_created_at: streams.journal?.created,
        control_created_at: streams.control?.created,
    })
}

/// How jobs of a Kubernetes cluster begin. A drain is a job that is repeated until it is done: pods may end at once, or take minutes.
/// Its adapter keeps to `requests-per-second`, so that jobs need no pace of their own.
fn cluster_limits(requests_per_second: u32) -> SystemLimits {
    let requests = usize::try_from(requests_per_second).unwrap_or(usize::MAX);
    SystemLimits {
        retry: Duration::from_secs(5),
        retry_first: Duration::from_secs(1),
        interval: Duration::ZERO,
        at_once: (requests / REQUESTS_FOR_A_JOB).clamp(8, 64),
    }
}

fn instance_settings(
    settings: &Settings,
    instance: &str,
    zones: Zones,
    store: Option<StoreKnowledge>,
    newest_record: Option<DateTime<Utc>>,
) -> InstanceSettings {
    let is_cluster = settings.nats.replicas.get() > 1;
    let FleetLock { retry_interval, request_interval, .. } = &settings.fleet_lock;
    let lock_server = SystemLimits::at_intervals(retry_interval.get(), request_interval.get());
    let cluster = cluster_limits(settings.kubernetes.requests_per_second.get());
    InstanceSettings {
        name: instance.to_owned(),
        nonce: uuid::Uuid::new_v4().simple().to_string(),
        settings: settings.for_kernel(),
        zones,
        dispatch: DispatchSettings {
            publishes_max: if is_cluster { 1 } else { PUBLISHES_MAX },
            systems: BTreeMap::from([
                (System::LockServer, lock_server),
                (System::Cluster, cluster),
                (System::RebootCommand, REBOOT_COMMAND),
            ]),
        },
        snapshot_weight: SNAPSHOT_WEIGHT,
        retention: RetentionSettings {
            snapshot_stands: SNAPSHOT_STANDS_MIN.max(settings.nats.sync_interval.get() * SYNCS_BEFORE_TRIM),
            journal_messages_max: JOURNAL_MESSAGES_MAX,
        },
        store,
        newest_record,
        loss_confirmed_after: if is_cluster { LOSS_CERTAIN_AFTER } else { Duration::ZERO },
    }
}
