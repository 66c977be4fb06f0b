//! The loop that carries out what the rules decide. It decides nothing itself: events go in, actions come out.

mod commands;
mod executor;
mod input;
mod presence;

use std::time::Duration;

use os_upgrade_protocol::{Announcement, subject};
use os_upgrade_worker_rules::consumer::SavedState;
use os_upgrade_worker_rules::{Activity, BootId, Event, WorkerConfig, limits};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::bus::Bus;
use crate::progress::{self, ProgressReporter};
use crate::store::Store;
use crate::{BootIdSource, Error, VersionsNotifier, Worker};
use executor::Executor;
use input::Input;

/// How many inputs may wait for the loop: a command, and the results of the few tasks under way.
const INPUTS_MAX: usize = 16;
/// How long handlers and replies under way have to finish during shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

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
}

impl Driver {
    /// Serves the host until shut down.
    pub(crate) async fn run<W: Worker>(self, boot_id: BootId, worker: W) -> Result<(), Error> {
        let loaded = self.store.load()?;
        let (sender, inputs) = mpsc::channel(INPUTS_MAX);
        let saved = watch::Sender::new(SavedState::default());
        let host = self.config.host.clone();
        let progress = ProgressReporter::default();
        let mut executor = Executor::new(
            self.config,
            worker,
            self.store,
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
        tasks.spawn(self.bus.clone().watch_link());
        tasks.spawn(presence::heartbeats(self.bus.clone(), host.clone()));
        tasks.spawn(presence::announcements(self.bus.clone(), self.announcement));
        tasks.spawn(commands::run(self.bus.clone(), host.clone(), saved.subscribe(), sender.clone()));
        tasks.spawn(progress::run(self.bus.clone(), host.clone(), progress));
        tasks.spawn(input::hints(self.bus.clone(), subject::hint(&host), sender.clone()));
        tasks.spawn(input::reconnects(self.bus, sender.clone()));
        tasks.spawn(input::version_changes(self.versions, sender));

        serve(&mut executor, inputs, &self.boot_ids, &self.shutdown).await;
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
    boot_ids: &BootIdSource,
    shutdown: &CancellationToken,
) {
    let every = limits::TICK_EVERY.to_std().expect("a tick is positive");
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(input) = inputs.recv() => handle(executor, input).await,
            _ = ticks.tick() => {
                if matches!(executor.activity(), Activity::Rebooting { .. }) {
                    read_boot_id(executor, boot_ids).await;
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

/// Reads the boot id while a reboot is awaited: a worker that does not run on the host itself survives the reboot.
async fn read_boot_id<W: Worker>(executor: &mut Executor<W>, source: &BootIdSource) {
    match source.read() {
        Ok(boot_id) => executor.feed(Event::BootIdRead(boot_id)).await,
        // The file may be being replaced; the wait continues.
        Err(error) => debug!("{error}"),
    }
}
