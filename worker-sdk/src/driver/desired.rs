//! Configurations: the loop that carries out what the rules about them decide. It runs beside the one for commands.

mod item;
mod place;
mod reader;
mod reports;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use chrono::TimeDelta;
use os_upgrade_credentials::LogThrottle;
use os_upgrade_protocol::{Applied, HostKey, HostName, Item};
use os_upgrade_sealing::PrivateKey;
use os_upgrade_worker_rules::{
    DesiredAction, DesiredEvent, DesiredLogic, DesiredMessage, DesiredState, Level, Loaded, limits,
};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, error, info, info_span, warn};

use super::executor::{SHUTDOWN_GRACE, catch_panic};
use crate::bus::Bus;
use crate::configuration::{Configuration, Secret};
use crate::store::Store;
use crate::{HandlerResult, Worker};
pub(super) use place::Files;
use reader::{Access, Reader};

/// How many events of the reader may wait.
const EVENTS_MAX: usize = 4;

/// The host's key, to be announced once the host can read what is sealed to it.
#[derive(Debug)]
pub(super) struct Offer {
    key: HostKey,
    access: watch::Receiver<Access>,
}

impl Offer {
    /// The key; `None` while nothing was read, as for a host without the right to.
    pub(super) fn key(&mut self) -> Option<HostKey> {
        (*self.access.borrow_and_update() == Access::Granted).then_some(self.key)
    }

    /// Resolves when [`Self::key`] may have changed.
    pub(super) async fn changed(&mut self) {
        if self.access.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Resolves when it is known whether the host can read.
    pub(super) async fn known(&mut self) {
        // The sender lives as long as the reader, which ends with the process.
        let _ = self.access.wait_for(|access| *access != Access::Unknown).await;
    }
}

/// What [`Configurations`] need.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) key: PrivateKey,
    pub(super) loaded: Loaded<DesiredState>,
    pub(super) files: Files,
    pub(super) host: HostName,
    pub(super) store: Arc<Store>,
    pub(super) bus: Bus,
    pub(super) shutdown: CancellationToken,
}

impl Parts {
    /// Begins to read manifests and to publish reports, in `tasks`. The caller serves the configurations and announces the key.
    pub(super) fn start<W: Worker>(
        self,
        worker: Arc<W>,
        tasks: &mut JoinSet<()>,
    ) -> (Configurations<W>, Offer) {
        let Self { key, loaded, files, host, store, bus, shutdown } = self;
        // For whoever approves the host to compare.
        info!(%host, key = %key.public(), "configurations of this host are sealed to this key");
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let access = watch::Sender::new(Access::Unknown);
        let offer = Offer { key: key.public(), access: access.subscribe() };
        let hints = Arc::new(Notify::new());
        tasks.spawn(reader::hints(bus.clone(), host.clone(), access.subscribe(), Arc::clone(&hints)));
        tasks.spawn(Reader { bus: bus.clone(), host: host.clone(), hints, access, events: sender }.run());
        let report = watch::Sender::new(None);
        tasks.spawn(reports::run(bus.clone(), host.clone(), report.subscribe()));
        let logic = DesiredLogic::new(host.clone());
        let (started, key) = (Instant::now(), Arc::new(key));
        let (opened, work, throttle) = (None, JoinSet::new(), LogThrottle::default());
        let configurations = Configurations {
            started,
            logic,
            loaded: Some(loaded),
            files: Arc::new(files),
            host,
            worker,
            store,
            bus,
            key,
            events,
            opened,
            work,
            report,
            throttle,
            shutdown,
        };
        (configurations, offer)
    }
}

/// The result of work that was begun.
enum Done {
    Got(Result<Secret, String>),
    Finished(Result<(), String>),
}

/// The rules about a host's configurations, and what is needed to carry out their actions.
pub(super) struct Configurations<W> {
    started: Instant,
    logic: DesiredLogic,
    /// The state file, until the loop begins.
    loaded: Option<Loaded<DesiredState>>,
    files: Arc<Files>,
    host: HostName,
    worker: Arc<W>,
    store: Arc<Store>,
    bus: Bus,
    key: Arc<PrivateKey>,
    events: mpsc::Receiver<DesiredEvent>,
    /// The content of the item that is about to be applied.
    opened: Option<Secret>,
    /// One task at most: the item that is got, or the handler that runs.
    work: JoinSet<Done>,
    report: watch::Sender<Option<Applied>>,
    throttle: LogThrottle,
    shutdown: CancellationToken,
}

impl<W: Worker> Configurations<W> {
    /// Serves the host until shut down. Then nothing new is begun, and a handler under way has [`SHUTDOWN_GRACE`] to finish; otherwise
    /// the next start calls it again.
    pub(super) async fn serve(mut self) {
        if let Some(loaded) = self.loaded.take() {
            self.feed(DesiredEvent::Started(loaded)).await;
        }
        let mut ticks = tokio::time::interval(limits::TICK_EVERY.to_std().expect("a tick is positive"));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let shutdown = self.shutdown.clone();
        loop {
            let event = tokio::select! {
                () = shutdown.cancelled() => break,
                Some(done) = self.work.join_next() => self.done(done.expect("it catches panics")),
                Some(event) = self.events.recv() => event,
                _ = ticks.tick() => DesiredEvent::Tick,
            };
            self.feed(event).await;
        }
        match tokio::time::timeout(SHUTDOWN_GRACE, self.work.join_next()).await {
            Ok(Some(Ok(Done::Finished(Ok(()))))) => self.feed(DesiredEvent::Finished(Ok(()))).await,
            // A handler that was asked to stop has not failed.
            Ok(_) => {}
            Err(_) => warn!("a configuration under way is cut off; the next start applies it again"),
        }
    }

    /// Passes `event` to the rules and carries out their actions.
    async fn feed(&mut self, event: DesiredEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let is_tick = event == DesiredEvent::Tick;
            let actions = self.logic.handle(self.now(), event);
            if is_tick && actions.is_empty() {
                return;
            }
            for action in actions {
                events.extend(self.carry_out(action).await);
            }
        }
        let report = self.logic.report();
        self.report.send_if_modified(|last| {
            let is_new = *last != report;
            *last = report;
            is_new
        });
    }

    fn now(&self) -> TimeDelta {
        TimeDelta::from_std(self.started.elapsed()).unwrap_or(TimeDelta::MAX)
    }

    /// Begins one action; a save is carried out immediately and returns its outcome.
    async fn carry_out(&mut self, action: DesiredAction) -> Option<DesiredEvent> {
        match action {
            DesiredAction::SaveState(state) => return Some(self.save(*state).await),
            DesiredAction::Get(item) => self.get(item),
            DesiredAction::Configure(item) => self.configure(item),
            DesiredAction::Discard => self.opened = None,
            DesiredAction::Revoke(name) => self.revoke(name),
            DesiredAction::Log(message) => self.log(&message),
        }
        None
    }

    async fn save(&self, state: DesiredState) -> DesiredEvent {
        let store = Arc::clone(&self.store);
        let saved = spawn_blocking(move || store.save_desired(&state)).await;
        match saved.map_err(std::io::Error::other).flatten() {
            Ok(()) => DesiredEvent::StateSaved,
            Err(error) => DesiredEvent::StateSaveFailed(error.to_string()),
        }
    }

    fn get(&mut self, item: Item) {
        let (bus, key, host) = (self.bus.clone(), Arc::clone(&self.key), self.host.clone());
        self.begin(async move { Done::Got(item::get(&bus, &key, &host, &item).await) });
    }

    fn configure(&mut self, item: Item) {
        let Some(content) = self.opened.take() else {
            return;
        };
        let span = info_span!("configure", host = %self.host, name = item.name, id = %item.id);
        let (worker, files) = (Arc::clone(&self.worker), Arc::clone(&self.files));
        let handler = async move {
            let (name, placing) = (item.name.clone(), Arc::clone(&files));
            let placed = spawn_blocking(move || (placing.place(&name, &content), content)).await;
            let (changed, content) = placed?;
            let configuration =
                Configuration { name: item.name.clone(), id: item.id, content, changed: changed? };
            worker.configure(&configuration).await?;
            Ok(spawn_blocking(move || files.handled(&item.name)).await??)
        };
        self.run(handler.instrument(span));
    }

    fn revoke(&mut self, name: String) {
        let span = info_span!("revoke", host = %self.host, name);
        let (worker, files) = (Arc::clone(&self.worker), Arc::clone(&self.files));
        let handler = async move {
            let of = name.clone();
            spawn_blocking(move || files.remove(&of)).await??;
            worker.revoke(&name).await
        };
        self.run(handler.instrument(span));
    }

    fn run(&mut self, handler: impl Future<Output = HandlerResult> + Send + 'static) {
        self.begin(async move { Done::Finished(catch_panic(handler).await) });
    }

    fn begin(&mut self, work: impl Future<Output = Done> + Send + 'static) {
        if !self.shutdown.is_cancelled() {
            self.work.spawn(work);
        }
    }

    /// What the rules are told when work is done.
    fn done(&mut self, done: Done) -> DesiredEvent {
        match done {
            Done::Finished(result) => DesiredEvent::Finished(result),
            Done::Got(result) => DesiredEvent::Got(result.map(|content| self.opened = Some(content))),
        }
    }

    fn log(&mut self, message: &DesiredMessage) {
        let level = message.level();
        // What fails is tried again and again.
        if level >= Level::Warn && !self.throttle.is_due(&message.to_string(), Instant::now()) {
            return debug!("{message}");
        }
        match level {
            Level::Debug => debug!("{message}"),
            Level::Info => info!("{message}"),
            Level::Warn => warn!("{message}"),
            Level::Error => error!("{message}"),
        }
    }
}
