//! The driver: the one task that feeds the node with events and carries out its actions.
//!
//! Events that have arrived together are handed in together. Every action that takes time is a task of its own whose
//! outcome comes back as an event ([`work`]); nothing here waits for one, and nothing here decides anything.

mod decision_log;
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
use os_upgrade_kernel::Settings;
use os_upgrade_shell::clock::Now;
use os_upgrade_shell::forward::Outcome;
use os_upgrade_shell::journal::Committed;
use os_upgrade_shell::node::{Action, CallId, Event, Node, NodeSettings};
use os_upgrade_site::call::Call;
use os_upgrade_site::snapshot::{Readiness, SiteSnapshot};
use os_upgrade_site::strongbox::Strongbox;
use os_upgrade_store::History;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use self::projection::Projection;
use self::work::{Incoming, Work};

/// Time between two looks at the clock when nothing else happens.
const TICK: Duration = Duration::from_millis(100);
/// Events that are handed in before what follows from them is carried out.
const EVENTS_AT_ONCE: usize = 4096;

/// What the driver works with.
#[derive(Debug)]
pub(crate) struct Driver {
    node: Node,
    started: Instant,
    inputs: Inputs,
    callers: Callers,
    work: Work,
    projection: Projection,
    strongbox: Strongbox,
    present: Arc<ArcSwap<SiteSnapshot>>,
    /// How often the loop has come round.
    turns: Arc<AtomicU64>,
    stopped: bool,
}

/// Where what happens comes from.
#[derive(Debug)]
struct Inputs {
    calls: mpsc::Receiver<Call>,
    changes: watch::Receiver<Settings>,
    connected: watch::Receiver<bool>,
    incoming: mpsc::Receiver<Incoming>,
    shutdown: CancellationToken,
}

/// Those who wait for an answer.
#[derive(Debug, Default)]
struct Callers {
    waiting: HashMap<CallId, oneshot::Sender<Outcome>>,
    seen: CallId,
}

impl Callers {
    fn register(&mut self, answer: oneshot::Sender<Outcome>) -> CallId {
        self.seen += 1;
        self.waiting.insert(self.seen, answer);
        self.seen
    }

    fn answer(&mut self, call: CallId, outcome: Outcome) {
        if let Some(caller) = self.waiting.remove(&call) {
            // One who has given up does not want to know.
            drop(caller.send(outcome));
        }
    }
}

/// What the driver is given.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The node's settings.
    pub(crate) settings: NodeSettings,
    /// What carries out jobs.
    pub(crate) adapters: Adapters,
    /// The key to the secrets, when there is one.
    pub(crate) strongbox: Strongbox,
    /// What the store has.
    pub(crate) history: History,
    /// Where committed records go.
    pub(crate) projection: mpsc::Sender<Committed>,
    /// What is wrong with the store, if something is.
    pub(crate) store_problem: watch::Receiver<Option<String>>,
    /// Where the present state is shown.
    pub(crate) present: Arc<ArcSwap<SiteSnapshot>>,
    /// Settings that are to be in force from now on.
    pub(crate) changes: watch::Receiver<Settings>,
    /// Counts the turns of the driver's loop, at least one each 100 ms: a driver that makes none is stuck.
    pub(crate) turns: Arc<AtomicU64>,
    /// Ends the driver, in order.
    pub(crate) shutdown: CancellationToken,
}

impl Driver {
    /// A driver of a node that knows nothing yet, over `bus`, which is there as long as `connected` says so.
    pub(crate) fn new(
        parts: Parts,
        bus: Bus,
        connected: watch::Receiver<bool>,
        calls: mpsc::Receiver<Call>,
    ) -> Self {
        let Parts {
            settings,
            adapters,
            strongbox,
            history,
            projection,
            store_problem,
            present,
            changes,
            turns,
            shutdown,
        } = parts;
        let started = Instant::now();
        let (work, incoming) = Work::new(bus, adapters, history, &settings, started);
        Self {
            node: Node::new(settings),
            started,
            inputs: Inputs { calls, changes, connected, incoming, shutdown },
            callers: Callers::default(),
            work,
            projection: Projection::new(projection, store_problem),
            strongbox,
            present,
            turns,
            stopped: false,
        }
    }

    /// Runs until it is told to stop and has done so: everybody who asked has been answered then.
    pub(crate) async fn run(mut self) {
        let end_readers = self.work.end_readers();
        self.work.read_workers_and_followers();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut stopping = false;
        while !self.stopped {
            tokio::select! {
                () = self.inputs.shutdown.cancelled(), if !stopping => {
                    stopping = true;
                    self.handle(Event::Stop);
                }
                Some(incoming) = self.inputs.incoming.recv() => self.take(incoming),
                Some(call) = self.inputs.calls.recv() => self.take_call(call),
                Ok(()) = self.inputs.changes.changed() => {
                    let settings = self.inputs.changes.borrow_and_update().clone();
                    self.handle(Event::Settings(settings));
                }
                Ok(()) = self.inputs.connected.changed() => {
                    let connected = *self.inputs.connected.borrow_and_update();
                    self.handle(Event::Connected(connected));
                }
                _ = tick.tick() => self.handle(Event::Tick),
            }
            self.take_what_waits();
            self.look_at_secrets();
            let now = self.now();
            for action in self.node.run(now) {
                self.carry_out(now, action);
            }
            self.turns.fetch_add(1, Ordering::Relaxed);
        }
        // What is still asked is left unanswered, and its asker says that the outcome is not known.
        drop((end_readers, self.inputs, self.callers));
        self.work.flush().await;
    }

    fn now(&self) -> Now {
        Now { wall: Utc::now(), monotonic: self.started.elapsed() }
    }

    fn handle(&mut self, event: Event) {
        let now = self.now();
        self.node.handle(now, event);
    }

    /// Before anything is decided: the key may have been given, or the secret kept, by who asks now. What others lack
    /// stops nobody, so only one that leads looks.
    fn look_at_secrets(&mut self) {
        let leads = self.node.is_leading();
        let sealed = leads.then(|| self.strongbox.withholds_slots(&self.node.state().strongbox)).flatten();
        if sealed != self.node.inventory().view().sealed {
            self.handle(Event::Sealed(sealed));
        }
    }

    fn take_what_waits(&mut self) {
        for _ in 0..EVENTS_AT_ONCE {
            if let Ok(incoming) = self.inputs.incoming.try_recv() {
                self.take(incoming);
            } else if let Ok(call) = self.inputs.calls.try_recv() {
                self.take_call(call);
            } else {
                return;
            }
        }
    }

    fn take(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Call(call) => self.take_call(call),
            Incoming::Event(event) => self.handle(event),
            Incoming::Read { reading, event } if self.work.is_current(reading) => self.handle(event),
            Incoming::Read { .. } => {}
        }
    }

    fn take_call(&mut self, Call { request, forwarded_at, answer }: Call) {
        let call = self.callers.register(answer);
        self.handle(Event::Call { call, request, forwarded_at });
    }

    fn carry_out(&mut self, now: Now, action: Action) {
        match action {
            Action::Project { committed, decided_here } => {
                if decided_here {
                    decision_log::tell(&committed.record);
                }
                self.projection.hand_over(*committed);
            }
            Action::Show => self.show(now),
            Action::Answer { call, outcome } => self.callers.answer(call, outcome),
            Action::Warn(warning) => decision_log::warn(&warning),
            Action::Stopped => self.stopped = true,
            Action::Inspect(known) => self.work.inspect(known),
            Action::Account(halt) => self.work.account(halt),
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
        }
    }

    /// Shows the committed state, who leads, and whether a write can be taken.
    fn show(&self, now: Now) {
        let readiness = match self.node.not_ready(now).or_else(|| self.projection.problem()) {
            Some(reason) if self.node.halted().is_some() => Readiness::Halted(reason),
            Some(reason) => Readiness::NotReady(reason),
            None => Readiness::Ready,
        };
        self.present.store(Arc::new(SiteSnapshot {
            state: self.node.state().clone(),
            view: self.node.inventory().view().clone(),
            versions: self.node.inventory().versions().clone(),
            progress: self.node.inventory().progress().clone(),
            readiness,
            is_read: self.node.has_read(),
            leadership: self.node.leadership(),
            position: self.node.position(),
            recorded: self.projection.recorded(),
        }));
    }
}
