//! The loop that carries out what the rules decide. It decides nothing itself: events go in, actions come out.

mod commands;
mod desired;
mod executor;
mod input;
mod presence;

use std::sync::Arc;

use os_upgrade_protocol::{Announcement, subject};
use os_upgrade_sealing::PrivateKey;
use os_upgrade_worker_rules::consumer::SavedState;
use os_upgrade_worker_rules::{BootId, Event, WorkerConfig, limits};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::bus::Bus;
use crate::files::Roots;
use crate::progress::{self, ProgressReporter};
use crate::store::Store;
use crate::{BootIdSource, Error, VersionsNotifier, Worker};
use desired::Files;
use executor::{Executor, SHUTDOWN_GRACE};
use input::Input;
use presence::Occasion;

/// How many inputs may wait for the loop: a command, and the results of the few tasks under way.
const INPUTS_MAX: usize = 16;

/// A worker's parts, before they run.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) config: WorkerConfig,
    pub(crate) announcement: Announcement,
    pub(crate) boot_ids: BootIdSource,
    pub(crate) versions: VersionsNotifier,
    pub(crate) shutdown: CancellationToken,
    pub(crate) bus: Bus,
    pub(crate) store: Store,
    /// What configurations are sealed to, if the worker takes any.
    pub(crate) key: Option<PrivateKey>,
    /// Where they may have files.
    pub(crate) roots: Roots,
}

impl Driver {
    /// Serves the host until shut down.
    pub(crate) async fn run<W: Worker>(self, boot_id: BootId, worker: W) -> Result<(), Error> {
        let loaded = self.store.load()?;
        let store = Arc::new(self.store);
        let (sender, inputs) = mpsc::channel(INPUTS_MAX);
        let saved = watch::Sender::new(SavedState::default());
        let occasion = watch::Sender::new(Occasion { boot_id: boot_id.clone(), finished: 0 });
        let host = self.config.host.clone();
        let desired = match self.key {
            None => None,
            Some(key) => Some(desired::Parts {
                key,
                loaded: store.load_desired()?,
                files: Files::new(self.roots, Arc::clone(&store), store.load_files()?),
                host: host.clone(),
                store: Arc::clone(&store),
                bus: self.bus.clone(),
                shutdown: self.shutdown.clone(),
            }),
        };
        let progress = ProgressReporter::default();
        let worker = Arc::new(worker);
        let mut executor = Executor::new(
            self.config,
            Arc::clone(&worker),
            store,
            self.bus.clone(),
            sender.clone(),
            saved.clone(),
            self.shutdown.clone(),
            self.versions.clone(),
            progress.clone(),
        );
        info!(%host, application = %self.announcement.application, "the worker starts");
        // Before the first command: work that was cut off is resumed first, even if NATS is unreachable.
        executor.feed(Event::Started { loaded, boot_id }).await;

        let mut tasks = JoinSet::new();
        let desired = desired.map(|desired| desired.start(Arc::clone(&worker), &mut tasks));
        let (configurations, offer) = desired.unzip();
        tasks.spawn(self.bus.clone().watch_link());
        tasks.spawn(presence::heartbeats(self.bus.clone(), host.clone()));
        tasks.spawn(presence::announcements(
            self.bus.clone(),
            worker,
            self.announcement,
            occasion.subscribe(),
            offer,
        ));
        tasks.spawn(commands::run(self.bus.clone(), host.clone(), saved.subscribe(), sender.clone()));
        tasks.spawn(progress::run(self.bus.clone(), host.clone(), progress));
        tasks.spawn(input::hints(self.bus.clone(), subject::hint(&host), sender.clone()));
        tasks.spawn(input::reconnects(self.bus, sender.clone()));
        tasks.spawn(input::version_changes(self.versions, sender));

        let observed = Observed { boot_ids: self.boot_ids, occasion };
        let configure = async {
            if let Some(configurations) = configurations {
                configurations.serve().await;
            }
        };
        tokio::join!(serve(&mut executor, inputs, &observed, &self.shutdown), configure);
        // Stop heartbeats and commands first, then abort what still runs.
        tasks.shutdown().await;
        executor.abort_tasks().await;
        info!(%host, "the worker ends");
        Ok(())
    }
}

async fn serve<W: Worker>(
    executor: &mut Executor<W>,
    mut inputs: mpsc::Receiver<Input>,
    observed: &Observed,
    shutdown: &CancellationToken,
) {
    let every = limits::TICK_EVERY.to_std().expect("a tick is positive");
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(input) = inputs.recv() => {
                if matches!(input, Input::Event(Event::CommandReceived(_)))
                    && let Err(error) = observed.read_boot_id(executor).await
                {
                    warn!("a command waits until it is delivered again: {error}");
                    continue;
                }
                let is_finished = matches!(input, Input::Event(Event::HandlerFinished { .. }));
                handle(executor, input).await;
                if is_finished {
                    observed.occasion.send_modify(|occasion| occasion.finished += 1);
                }
            }
            _ = ticks.tick() => {
                if let Err(error) = observed.read_boot_id(executor).await {
                    // The file may be being replaced.
                    debug!("{error}");
                }
                executor.feed(Event::Tick).await;
            }
        }
    }
    let end = tokio::time::sleep(SHUTDOWN_GRACE);
    tokio::pin!(end);
    while !executor.can_stop() {
        tokio::select! {
            () = &mut end => {
                warn!("the work under way is cut off; the next start resumes it");
                return;
            }
            Some(input) = inputs.recv() => handle(executor, input).await,
        }
    }
}

async fn handle<W: Worker>(executor: &mut Executor<W>, input: Input) {
    match input {
        Input::Event(event) => executor.feed(event).await,
        Input::Hint(hint) => executor.hint(&hint),
    }
}

/// What is observed of the host, and passed on to whoever announces it.
struct Observed {
    boot_ids: BootIdSource,
    occasion: watch::Sender<Occasion>,
}

impl Observed {
    /// Reads the boot id, again and again: a worker that does not run on the host itself lives through its reboots. While it
    /// cannot be read, it is not known whether the host has rebooted.
    async fn read_boot_id<W: Worker>(&self, executor: &mut Executor<W>) -> Result<(), Error> {
        let boot_id = self.boot_ids.read()?;
        self.occasion.send_if_modified(|occasion| {
            let is_new = occasion.boot_id != boot_id;
            occasion.boot_id.clone_from(&boot_id);
            is_new
        });
        executor.feed(Event::BootIdRead(boot_id)).await;
        Ok(())
    }
}
