//! The driver: the one task that feeds the node with events and carries out its actions.
//!
//! Events that have arrived together are handed in together. Every action that takes time is a task of its own whose
//! outcome comes back as an event; nothing here waits for one, and nothing here decides anything.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use chrono::Utc;
use os_upgrade_kernel::{Record, Settings, hint};
use os_upgrade_shell::clock::Now;
use os_upgrade_shell::committed::Committed;
use os_upgrade_shell::dispatch::{Dispatch, PublishOutcome};
use os_upgrade_shell::forward::Outcome;
use os_upgrade_shell::jobs::StartedJob;
use os_upgrade_shell::journal::append::AppendOutcome;
use os_upgrade_shell::lease::{LeaseHolder, LeaseQuestion};
use os_upgrade_shell::node::{Action, CallId, Event, Halt, Known, Node, NodeSettings, Warning};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::adapters::Adapters;
use crate::bus::Bus;
use crate::call::Call;
use crate::loss;
use crate::news;
use crate::site::{Present, Readiness};
use crate::store::History;
use crate::strongbox::Strongbox;

/// Time between two looks at the clock when nothing else happens.
const TICK: Duration = Duration::from_millis(100);
/// Events that wait to be handed in; readers wait when there are so many.
const EVENTS_MAX: usize = 8192;
/// Events that are handed in before what follows from them is carried out.
const EVENTS_AT_ONCE: usize = 4096;
/// How long the last answers to followers may take to be on their way.
const FLUSH_WITHIN: Duration = Duration::from_millis(200);

/// What the driver works with.
#[derive(Debug)]
pub struct Driver {
    bus: Bus,
    node: Node,
    me: LeaseHolder,
    started: Instant,
    adapters: Adapters,
    strongbox: Strongbox,
    history: History,
    projection: mpsc::Sender<Committed>,
    store_problem: watch::Receiver<Option<String>>,
    store_left_behind: bool,
    present: Arc<ArcSwap<Present>>,
    calls: mpsc::Receiver<Call>,
    changes: watch::Receiver<Settings>,
    connected: watch::Receiver<bool>,
    incoming: mpsc::Receiver<Incoming>,
    sender: mpsc::Sender<Incoming>,
    /// The last record given to the history.
    recorded: u64,
    /// Those who wait for an answer.
    waiting: HashMap<CallId, oneshot::Sender<Outcome>>,
    calls_seen: CallId,
    journal: Reader,
    control: Reader,
    /// Answers to followers that are on their way.
    answers: TaskTracker,
    /// How often the loop has come round.
    turns: Arc<AtomicU64>,
    shutdown: CancellationToken,
    stopped: bool,
    /// Ends the readers, when the driver does.
    ended: CancellationToken,
}

/// What the driver is given.
#[derive(Debug)]
pub struct Parts {
    /// The node's settings.
    pub settings: NodeSettings,
    /// What carries out jobs.
    pub adapters: Adapters,
    /// The key to the secrets, when there is one.
    pub strongbox: Strongbox,
    /// What the store has.
    pub history: History,
    /// Where committed records go.
    pub projection: mpsc::Sender<Committed>,
    /// What is wrong with the store, if something is.
    pub store_problem: watch::Receiver<Option<String>>,
    /// Where the present state is shown.
    pub present: Arc<ArcSwap<Present>>,
    /// Settings that are to be in force from now on.
    pub changes: watch::Receiver<Settings>,
    /// Counts the turns of the driver's loop, at least one each 100 ms: a driver that makes none is stuck.
    pub turns: Arc<AtomicU64>,
    /// Ends the driver, in order.
    pub shutdown: CancellationToken,
}

/// A reader of a stream, or none. What an earlier one had still under way does not count any more.
#[derive(Debug, Default)]
struct Reader {
    generation: u64,
    stop: Option<CancellationToken>,
}

impl Reader {
    fn stop(&mut self) {
        self.generation += 1;
        if let Some(stop) = self.stop.take() {
            stop.cancel();
        }
    }

    fn start(&mut self, parent: &CancellationToken) -> (u64, CancellationToken) {
        self.stop();
        let stop = parent.child_token();
        self.stop = Some(stop.clone());
        (self.generation, stop)
    }
}

#[derive(Debug)]
enum Incoming {
    Event(Event),
    Call(Call),
    Journal { generation: u64, event: Event },
    Control { generation: u64, event: Event },
}

impl Driver {
    /// A driver of a node that knows nothing yet, over `bus`, which is there as long as `connected` says so.
    pub fn new(
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
        let (sender, incoming) = mpsc::channel(EVENTS_MAX);
        Self {
            bus,
            me: LeaseHolder { instance: settings.instance.clone(), nonce: settings.nonce.clone() },
            node: Node::new(settings),
            started: Instant::now(),
            adapters,
            strongbox,
            history,
            projection,
            store_problem,
            store_left_behind: false,
            present,
            calls,
            changes,
            connected,
            incoming,
            sender,
            recorded: 0,
            waiting: HashMap::new(),
            calls_seen: 0,
            journal: Reader::default(),
            control: Reader::default(),
            answers: TaskTracker::new(),
            turns,
            shutdown,
            stopped: false,
            ended: CancellationToken::new(),
        }
    }

    /// Runs until it is told to stop and has done so: everybody who asked has been answered then.
    pub async fn run(mut self) {
        let _end_readers = self.ended.clone().drop_guard();
        self.watch_workers();
        self.watch_followers();
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut stopping = false;
        while !self.stopped {
            tokio::select! {
                () = self.shutdown.cancelled(), if !stopping => {
                    stopping = true;
                    self.handle(Event::Stop);
                }
                Some(incoming) = self.incoming.recv() => self.take(incoming),
                Some(call) = self.calls.recv() => self.take_call(call),
                Ok(()) = self.changes.changed() => {
                    let settings = self.changes.borrow_and_update().clone();
                    self.handle(Event::Settings(settings));
                }
                Ok(()) = self.connected.changed() => {
                    let connected = *self.connected.borrow_and_update();
                    self.handle(Event::Connected(connected));
                }
                _ = tick.tick() => self.handle(Event::Tick),
            }
            self.take_what_waits();
            self.look_at_secrets();
            let now = self.now();
            // Before the state is shown: who reads of a run there finds it in the history.
            let is_record = |action: &Action| matches!(action, Action::Project(_));
            let (records, actions): (Vec<_>, Vec<_>) = self.node.run(now).into_iter().partition(is_record);
            for record in records {
                self.carry_out(record);
            }
            // Before anybody is answered: who has been told that a change is durable must find it when reading.
            self.show(now);
            for action in actions {
                self.carry_out(action);
            }
            self.turns.fetch_add(1, Ordering::Relaxed);
        }
        self.waiting.clear();
        self.answers.close();
        let said = async {
            self.answers.wait().await;
            self.bus.flush().await;
        };
        if tokio::time::timeout(FLUSH_WITHIN, said).await.is_err() {
            tracing::debug!("the bus did not take the last answers");
        }
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
            if let Ok(incoming) = self.incoming.try_recv() {
                self.take(incoming);
            } else if let Ok(call) = self.calls.try_recv() {
                self.take_call(call);
            } else {
                return;
            }
        }
    }

    fn take(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Event(event) => self.handle(event),
            Incoming::Call(call) => self.take_call(call),
            Incoming::Journal { generation, event } if generation == self.journal.generation => {
                self.handle(event);
            }
            Incoming::Control { generation, event } if generation == self.control.generation => {
                self.handle(event);
            }
            Incoming::Journal { .. } | Incoming::Control { .. } => {}
        }
    }

    fn take_call(&mut self, Call { request, forwarded_at, answer }: Call) {
        self.calls_seen += 1;
        let call = self.calls_seen;
        self.waiting.insert(call, answer);
        self.handle(Event::Call { call, request, forwarded_at });
    }

    /// Shows the committed state, who leads, and whether a write can be taken.
    fn show(&self, now: Now) {
        let left_behind = || "the store is too far behind: start again to go on with the history".to_owned();
        let problem =
            || self.store_problem.borrow().clone().or_else(|| self.store_left_behind.then(left_behind));
        let readiness = match self.node.not_ready(now).or_else(problem) {
            Some(reason) if self.node.halted().is_some() => Readiness::Halted(reason),
            Some(reason) => Readiness::NotReady(reason),
            None => Readiness::Ready,
        };
        self.present.store(Arc::new(Present {
            state: self.node.state().clone(),
            view: self.node.inventory().view().clone(),
            versions: self.node.inventory().versions().clone(),
            progress: self.node.inventory().progress().clone(),
            readiness,
            is_read: self.node.has_read(),
            leadership: self.node.leadership(),
            leader_keeps_back: None,
            position: self.node.position(),
            recorded: self.recorded,
        }));
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Inspect(known) => self.inspect(known),
            Action::Account(halt) => self.account(halt),
            Action::Lease(LeaseQuestion { number, action }) => self.spawn(|bus| async move {
                let outcome = bus.lease(&action).await;
                Event::Lease { number, outcome }
            }),
            Action::FollowJournal { from } => self.follow_journal(from),
            Action::StopJournal => self.journal.stop(),
            Action::Append { expected, message } => self.spawn(|bus| async move {
                let outcome: AppendOutcome = bus.append(expected, &message).await;
                Event::Appended { append_id: message.append_id, outcome }
            }),
            Action::ReadJournal { sequence } => self.spawn(|bus| async move {
                let found = bus.read_back(sequence).await;
                Event::ReadBack { sequence, found }
            }),
            Action::ReadControl { from } => self.read_control(from),
            Action::StopControl => self.control.stop(),
            Action::Dispatch(dispatch) => self.dispatch(dispatch),
            Action::Answer { call, outcome } => self.answer(call, outcome),
            Action::Forward { call, to, forwarded } => self.spawn(|bus| async move {
                Event::ForwardAnswered { call, outcome: bus.forward(&to, &forwarded).await }
            }),
            Action::Project(committed) => self.project(*committed),
            Action::Warn(warning) => warn(&warning),
            Action::Stopped => self.stopped = true,
        }
    }

    fn answer(&mut self, call: CallId, outcome: Outcome) {
        if let Some(asker) = self.waiting.remove(&call) {
            // One who has given up does not want to know.
            drop(asker.send(outcome));
        }
    }

    /// Tells the hosts at work that their run is stopping: what can be stopped need not be waited for.
    fn hint(&self, record: &Record) {
        if let Some((hint, hosts)) = hint(&record.facts, self.node.state()) {
            let bus = self.bus.clone();
            tokio::spawn(async move { bus.hint(&hint, hosts).await });
        }
    }

    /// Hands a record to the store, which must not hold up the runs: when it is too far behind, the history stops
    /// here, and goes on from the journal at the next start.
    fn project(&mut self, committed: Committed) {
        if self.node.is_leading() {
            news::tell(&committed.record);
            self.hint(&committed.record);
        }
        if self.store_left_behind {
            return;
        }
        let sequence = committed.sequence;
        if self.projection.try_send(committed).is_ok() {
            self.recorded = sequence;
        } else {
            self.store_left_behind = true;
            tracing::error!("the store is too far behind: the history stops until the next start");
        }
    }

    /// Runs `work` beside everything else; what it returns comes back as an event.
    fn spawn<F: Future<Output = Event> + Send + 'static>(&self, work: impl FnOnce(Bus) -> F) {
        let (work, sender) = (work(self.bus.clone()), self.sender.clone());
        tokio::spawn(async move {
            let event = work.await;
            // Nobody listens any more when the driver has stopped.
            drop(sender.send(Incoming::Event(event)).await);
        });
    }

    fn inspect(&self, known: Box<Known>) {
        self.spawn(|bus| async move {
            let streams = bus.inspect(&known).await.map_err(|error| error.to_string());
            Event::Inspected { known, streams }
        });
    }

    /// Finds out from the store what exactly the bus has lost.
    fn account(&self, halt: Halt) {
        let Halt::Lost(losses) = halt else { return };
        let history = self.history.clone();
        self.spawn(|bus| async move { Event::Accounted(loss::account(&bus, &history, &losses).await) });
    }

    fn follow_journal(&mut self, from: u64) {
        let (generation, stop) = self.journal.start(&self.ended);
        let (bus, sender) = (self.bus.clone(), self.sender.clone());
        tokio::spawn(async move {
            let map = |event| Incoming::Journal { generation, event };
            bus.follow_journal(from, stop, sender, map).await;
        });
    }

    fn read_control(&mut self, from: u64) {
        let (generation, stop) = self.control.start(&self.ended);
        let (bus, sender) = (self.bus.clone(), self.sender.clone());
        tokio::spawn(async move {
            let map = |raw| Incoming::Control { generation, event: Event::Control(raw) };
            bus.read_control(from, stop, sender, map).await;
        });
    }

    fn dispatch(&self, dispatch: Dispatch) {
        match dispatch {
            Dispatch::Fence { epoch } => {
                let me = self.me.clone();
                self.spawn(|bus| async move {
                    let stored = bus.publish_fence(&me.instance, &me.nonce).await;
                    Event::FencePublished { epoch, stored }
                });
            }
            Dispatch::Command { epoch, fence, id, not_after } => self.spawn(|bus| async move {
                let outcome: PublishOutcome = bus.publish_command(&id, not_after, fence).await;
                Event::CommandPublished { epoch, id, not_after, outcome }
            }),
            Dispatch::Job(StartedJob { id, job, before }) => {
                let (adapters, started) = (self.adapters.clone(), self.started);
                self.spawn(move |_| async move {
                    let report = adapters.carry_out(job, || started.elapsed() < before).await;
                    Event::JobDone { id, report }
                });
            }
            Dispatch::Withdraw { host, sequence } => self.spawn(|bus| async move {
                let deleted = bus.withdraw(&host, sequence).await;
                Event::Withdrawn { host, sequence, deleted }
            }),
        }
    }

    fn watch_followers(&self) {
        let (bus, me, answers) = (self.bus.clone(), self.me.clone(), self.answers.clone());
        let (stop, sink) = (self.ended.clone(), self.sender.clone());
        tokio::spawn(async move { bus.read_forwarded(&me, stop, sink, Incoming::Call, answers).await });
    }

    fn watch_workers(&self) {
        let parts = || (self.bus.clone(), self.ended.clone(), self.sender.clone());
        let (bus, stop, sink) = parts();
        tokio::spawn(async move { bus.read_announcements(stop, sink, Incoming::Event).await });
        let (bus, stop, sink) = parts();
        tokio::spawn(async move { bus.read_versions(stop, sink, Incoming::Event).await });
        let (bus, stop, sink) = parts();
        tokio::spawn(async move { bus.read_heartbeats(stop, sink, Incoming::Event).await });
        let (bus, stop, sink) = parts();
        tokio::spawn(async move { bus.read_progress(stop, sink, Incoming::Event).await });
    }
}

/// Groups and their slots, as in `default=1,edge=2`.
fn slots(settings: &Settings) -> String {
    let groups = settings.groups.iter().map(|(group, slots)| format!("{group}={slots}"));
    groups.collect::<Vec<_>>().join(",")
}

fn warn(warning: &Warning) {
    match warning {
        Warning::Halted(halt) => tracing::error!(%halt, "stopped: an operator has to look"),
        Warning::Inventory { host, error } => {
            tracing::warn!(%host, %error, "what a worker said cannot be used");
        }
        Warning::Leading => tracing::info!("leading"),
        Warning::Adopted(settings) => {
            tracing::info!(slots = slots(settings), timezone = %settings.timezone, "other settings are in force");
        }
        Warning::MoreHolders { group, slots, holders } => {
            tracing::warn!(%group, slots, holders, "more hold a slot than there are: none is given until they are fewer");
        }
        Warning::Deposed { why } => tracing::warn!(why, "leading no more"),
    }
}
