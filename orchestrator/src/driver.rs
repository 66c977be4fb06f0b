//! The driver: the one task that feeds the instance with events and carries out its actions.
//!
//! Events that have arrived together are handled together, in turns of bounded time: however much arrives of one kind,
//! ticks, the lease and the other kinds get theirs. Every action that takes time is a task of its own whose
//! outcome comes back as an event ([`work`]); the driver never waits for one, and never decides anything.

mod decision_log;
mod leadership;
mod nodes;
mod projection;
mod work;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use chrono::Utc;
use os_upgrade_adapters::Adapters;
use os_upgrade_bus::Bus;
use os_upgrade_bus::worker_reports::WorkerConnection;
use os_upgrade_calendar::Zones;
use os_upgrade_kernel::Settings;
use os_upgrade_shell::clock::Now;
use os_upgrade_shell::forward::Outcome;
use os_upgrade_shell::instance::{Action, CallId, Event, Instance, InstanceSettings};
use os_upgrade_site::call::Call;
use os_upgrade_site::instances::Cluster;
use os_upgrade_site::published_state::{PublishedState, Readiness};
use os_upgrade_site::strongbox::Strongbox;
use os_upgrade_store::History;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

pub(crate) use self::decision_log::TARGET as DECISIONS;
pub(crate) use self::projection::Projection;
use self::work::{Arrivals, Incoming, ReadEvent, Work};
use crate::shared::Shared;

/// Time between two ticks of the instance's clock.
const TICK: Duration = Duration::from_millis(100);
/// The most events of each kind that are handled before the resulting actions are carried out.
const EVENTS_AT_ONCE: usize = 4096;
/// How long events are handled before the resulting actions are carried out.
const TURN_MAX: Duration = Duration::from_millis(20);

/// The instance with everything it needs to run.
#[derive(Debug)]
pub(crate) struct Driver {
    instance: Instance,
    started: Instant,
    inputs: Inputs,
    callers: Callers,
    work: Work,
    projection: Projection,
    cluster: Cluster,
    strongbox: Strongbox,
    published: Arc<ArcSwap<PublishedState>>,
    /// Counts the iterations of the loop.
    iterations: Arc<AtomicU64>,
    stopped: bool,
}

/// The sources of events.
#[derive(Debug)]
struct Inputs {
    calls: mpsc::Receiver<Call>,
    changes: watch::Receiver<Settings>,
    zones: watch::Receiver<Zones>,
    connected: watch::Receiver<bool>,
    arrivals: Arrivals,
    /// Whether messages of workers wait that a turn had no time for. They are handled at ticks, else.
    workers_wait: bool,
    shutdown: CancellationToken,
}

/// The callers that wait for an answer.
#[derive(Debug, Default)]
struct Callers {
    waiting: HashMap<CallId, oneshot::Sender<Outcome>>,
    last: CallId,
}

impl Callers {
    fn register(&mut self, answer: oneshot::Sender<Outcome>) -> CallId {
        self.last += 1;
        self.waiting.insert(self.last, answer);
        self.last
    }

    fn answer(&mut self, call: CallId, outcome: Outcome) {
        if let Some(caller) = self.waiting.remove(&call) {
            // This only fails if the caller has given up.
            drop(caller.send(outcome));
        }
    }
}

/// The parts of which a driver is made.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) settings: InstanceSettings,
    /// Carries out jobs.
    pub(crate) adapters: Adapters,
    /// The site's secrets, sealed or not.
    pub(crate) strongbox: Strongbox,
    pub(crate) history: History,
    /// The queue of committed records for the store.
    pub(crate) projection: Projection,
    pub(crate) shared: Shared,
}

impl Driver {
    /// A driver of a new instance, over `bus` and `workers`. `connected` is whether the bus is connected at the moment.
    pub(crate) fn new(
        parts: Parts,
        bus: Bus,
        workers: WorkerConnection,
        connected: watch::Receiver<bool>,
        calls: mpsc::Receiver<Call>,
    ) -> Self {
        let Parts { settings, adapters, strongbox, history, projection, shared } = parts;
        let Shared { bus: _, published, cluster, changes, zones, iterations, shutdown } = shared;
        let started = Instant::now();
        let (work, arrivals) = Work::new(bus, adapters, history, &settings, started);
        work.read_workers_and_followers(workers, &arrivals);
        work.watch_nodes();
        Self {
            instance: Instance::new(settings),
            started,
            inputs: Inputs { calls, changes, zones, connected, arrivals, workers_wait: false, shutdown },
            callers: Callers::default(),
            work,
            projection,
            cluster,
            strongbox,
            published,
            iterations,
            stopped: false,
        }
    }

    /// Runs until `shutdown` and until the instance has stopped, which answers all calls.
    pub(crate) async fn run(mut self) {
        let end_readers = self.work.end_readers();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut stopping = false;
        while !self.stopped {
            let has_room = self.instance.has_room();
            tokio::select! {
                // Most urgent first.
                biased;
                () = self.inputs.shutdown.cancelled(), if !stopping => {
                    stopping = true;
                    self.handle(Event::Stop);
                }
                _ = tick.tick() => {
                    self.handle(Event::Tick);
                    let by_all = self.cluster.stored_by_all(&self.published.load(), Utc::now());
                    self.handle(Event::Stored { by_all });
                    self.inputs.workers_wait = true;
                }
                Ok(()) = self.inputs.changes.changed() => {
                    let settings = self.inputs.changes.borrow_and_update().clone();
                    self.handle(Event::Settings(settings));
                }
                Ok(()) = self.inputs.zones.changed() => {
                    let zones = self.inputs.zones.borrow_and_update().clone();
                    self.handle(Event::Zones(zones));
                }
                Ok(()) = self.inputs.connected.changed() => {
                    let connected = *self.inputs.connected.borrow_and_update();
                    self.handle(Event::Connected(connected));
                }
                Some(incoming) = self.inputs.arrivals.outcomes.recv() => self.handle_incoming(incoming),
                Some(call) = self.inputs.calls.recv() => self.handle_call(call),
                Some(read) = self.inputs.arrivals.read.recv(), if has_room => self.handle_read(read),
                () = tokio::task::yield_now(), if self.inputs.workers_wait => {}
            }
            self.take_turn();
            self.check_secrets();
            let now = self.now();
            let actions = self.instance.run(now);
            self.work.leads_until(self.instance.leads_until());
            for action in actions {
                self.carry_out(now, action);
            }
            self.iterations.fetch_add(1, Ordering::Relaxed);
        }
        // Dropped calls get no answer: their callers report an unknown outcome.
        drop((end_readers, self.inputs, self.callers));
        self.work.flush().await;
    }

    fn now(&self) -> Now {
        Now { wall: Utc::now(), monotonic: self.started.elapsed() }
    }

    fn handle(&mut self, event: Event) {
        let now = self.now();
        self.instance.handle(now, event);
    }

    /// Reports to the instance whether slots are withheld because secrets are sealed. It runs before every decision, since a
    /// call may just have unsealed the strongbox or stored the secret. Only the leader needs it.
    fn check_secrets(&mut self) {
        let leads = self.instance.is_leading();
        let sealed = leads.then(|| self.strongbox.blocks_slots(&self.instance.state().strongbox)).flatten();
        if sealed != self.instance.inventory().view().sealed {
            self.handle(Event::Sealed(sealed));
        }
    }

    /// Handles what has arrived, one of each kind after the other, for [`TURN_MAX`] at most.
    fn take_turn(&mut self) {
        let until = Instant::now() + TURN_MAX;
        for _ in 0..EVENTS_AT_ONCE {
            if !self.handle_one_of_each() || Instant::now() >= until {
                return;
            }
        }
    }

    /// Handles one event of each kind. Returns whether there was any.
    fn handle_one_of_each(&mut self) -> bool {
        let incoming = self.inputs.arrivals.outcomes.try_recv().ok();
        let call = self.inputs.calls.try_recv().ok();
        let read = if self.instance.has_room() { self.inputs.arrivals.read.try_recv().ok() } else { None };
        let has_any = incoming.is_some() || call.is_some() || read.is_some();
        if let Some(incoming) = incoming {
            self.handle_incoming(incoming);
        }
        if let Some(call) = call {
            self.handle_call(call);
        }
        if let Some(read) = read {
            self.handle_read(read);
        }
        if !self.inputs.workers_wait {
            return has_any;
        }
        let (stored, report) = (self.inputs.arrivals.stored.pop(), self.inputs.arrivals.reports.pop());
        self.inputs.workers_wait = stored.is_some() || report.is_some();
        for message in stored.into_iter().chain(report) {
            self.handle(Event::Worker(message));
        }
        has_any || self.inputs.workers_wait
    }

    fn handle_incoming(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Call(call) => self.handle_call(call),
            Incoming::Event(event) => self.handle(event),
        }
    }

    fn handle_read(&mut self, ReadEvent { reading, event }: ReadEvent) {
        if self.work.is_current(reading) {
            self.handle(event);
        }
    }

    fn handle_call(&mut self, Call { request, forwarded_at, answer }: Call) {
        let call = self.callers.register(answer);
        self.handle(Event::Call { call, request, forwarded_at });
    }

    fn carry_out(&mut self, now: Now, action: Action) {
        match action {
            Action::Project { committed, decided_here } => {
                if decided_here {
                    decision_log::log(&committed.record);
                }
                self.projection.send(*committed);
            }
            Action::PublishState => self.publish(now),
            Action::Answer { call, outcome } => self.callers.answer(call, outcome),
            Action::Warn(warning) => decision_log::warn(&warning),
            Action::Stopped => self.stopped = true,
            Action::Inspect(known) => self.work.inspect(known),
            Action::DescribeLoss(halt) => self.work.describe_loss(halt),
            Action::Lease(question) => self.work.lease(question),
            Action::FollowJournal { from } => self.work.follow_journal(from),
            Action::StopJournal => self.work.stop_journal(),
            Action::Append { expected, message } => self.work.append(expected, message),
            Action::ReadJournal { sequence } => self.work.read_journal(sequence),
            Action::ReadControl { from } => self.work.read_control(from),
            Action::StopControl => self.work.stop_control(),
            Action::Dispatch(dispatch) => self.work.dispatch(dispatch),
            Action::Forward { call, to, forwarded } => self.work.forward(call, to, forwarded),
            Action::Hint { hint, hosts } => self.work.hint(hint, hosts),
            Action::Trim(trim) => self.work.trim(trim),
            Action::DeleteAnnouncements(surplus) => self.work.delete_announcements(surplus),
        }
    }

    /// Publishes the committed state, the leader, and whether writes can be taken.
    fn publish(&self, now: Now) {
        let before = self.published.load_full();
        let not_ready = self.instance.not_ready(now).map(|reason| reason.to_string());
        let readiness = match not_ready.or_else(|| self.projection.problem()) {
            Some(why) => match self.instance.halted() {
                Some(halt) => Readiness::Halted { kind: halt.kind(), why },
                None => Readiness::NotReady(why),
            },
            None => Readiness::Ready,
        };
        self.published.store(Arc::new(PublishedState {
            state: self.instance.state().clone(),
            view: self.instance.inventory().view().clone(),
            versions: self.instance.inventory().versions().clone(),
            progress: self.instance.inventory().progress().clone(),
            unused: self.instance.inventory().unused(),
            readiness,
            changed_setting: self.instance.changed_setting().map(str::to_owned),
            crossed_site: self.instance.crossed_site().map(str::to_owned),
            is_read: self.instance.has_read(),
            leadership: self.instance.leadership(),
            position: self.instance.position(),
            recorded: self.projection.recorded,
            stored: self.projection.synced(),
        }));
        // After that, a call that ends looks itself whether its provider is still there.
        self.work.follow_providers(&before.state, self.instance.state());
    }
}
