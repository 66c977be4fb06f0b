//! One instance of the orchestrator, as logic.
//!
//! Events go in one by one, then [`Instance::run`] returns the actions. Events that arrive together are therefore decided
//! together, and their facts are one append. An instance follows the journal until it holds the lease and has proved, by
//! appending, that it is at the journal's end. It then leads until an append is refused or the lease is lost.

mod action;
mod calls;
mod delivering;
mod event;
mod halt;
mod inspection;
mod known;
mod leading;
mod leave;
mod not_ready;
mod retention;
mod stopping;

use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_calendar::Zones;
use os_upgrade_kernel::{ClockDoubt, ControlMessage, Input, Purge, Settings, State};
use os_upgrade_protocol::HostName;

pub use self::action::{Action, Warning};
pub use self::event::Event;
pub use self::halt::{Found, Halt, Loss, losses};
use self::inspection::{Concerns, Finding, Inspection};
pub use self::known::{
    Acknowledged, ControlMark, StoreKnowledge, Stream, StreamFacts, StreamSettings, Streams,
};
use self::leading::{Leading, Starter};
pub use self::not_ready::NotReady;
use self::retention::{Extent, Retention};
pub use self::retention::{RetentionSettings, Trim};
pub use self::stopping::STOP_WITHIN;
use self::stopping::Stopping;
use crate::clock::{ClockWatch, EnrolledCounts, Now, vouches_for_clock};
use crate::control_stream::{self, RawControl};
use crate::delivery::Delivery;
use crate::dispatch::{Dispatch, DispatchSettings, Dispatcher, Leader};
pub use crate::forward::CallId;
use crate::forward::Forwards;
use crate::inventory::{Inventory, WorkerMessage};
use crate::journal::append::{AppendOutcome, Appender, ReadBack, Step};
use crate::journal::codec::Message;
use crate::journal::follow::Follower;
use crate::journal::{JournalError, Tip};
use crate::lease::{Lease, LeaseChange, LeaseHolder, LeaseOutcome, LeaseRequest};
use crate::storage::StorageLimit;

/// The parameters of an instance.
#[derive(Debug, Clone)]
pub struct InstanceSettings {
    /// The instance's name: the same across restarts.
    pub name: String,
    /// The process's name: never the same twice.
    pub nonce: String,
    /// The site's own settings. They are in force once this instance leads.
    pub settings: Settings,
    /// The rules of time zones at the start.
    pub zones: Zones,
    /// The limits of dispatching.
    pub dispatch: DispatchSettings,
    /// How much there may be to read after a snapshot, see [`Follower::weight_since_snapshot`], before another is written.
    pub snapshot_weight: usize,
    /// What is deleted of the streams.
    pub retention: RetentionSettings,
    /// The store's position when the process started; `None` without a store.
    pub store: Option<StoreKnowledge>,
    /// The time of the newest record in the store since an operator last started a run; `None` if there is none.
    pub newest_record: Option<DateTime<Utc>>,
    /// How long every inspection must find a loss before it is believed: in a cluster, a server that was paused or cut
    /// off may answer with its old state for a while.
    pub loss_confirmed_after: Duration,
}

/// Who leads, as far as this instance knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Leadership {
    /// This process.
    Here(LeaseHolder),
    /// Another process.
    At(LeaseHolder),
    /// There is no leader, or this instance does not know it.
    #[default]
    Unknown,
}

/// The logic of one running orchestrator, without I/O.
#[derive(Debug)]
pub struct Instance {
    settings: InstanceSettings,
    lease: Lease,
    follower: Follower,
    appender: Appender,
    inventory: Inventory,
    clocks: ClockWatch,
    /// Whether the clock was trusted when the record that is being appended was decided.
    decided_by_trusted_clock: bool,
    dispatcher: Dispatcher,
    delivery: Delivery,
    forwards: Forwards,
    role: Role,
    inspection: Inspection,
    retention: Retention,
    /// The limit because of which the last write to NATS was refused.
    storage: Option<StorageLimit>,
    /// Whether the journal has been read to its end.
    has_read: bool,
    stopping: Stopping,
    out: Vec<Action>,
}

#[derive(Debug)]
enum Role {
    /// The streams have not been inspected yet.
    Starting,
    /// Another instance leads, or the leader is unknown. `at_end`: the journal has been read to its end.
    Following { at_end: bool },
    /// The lease is held; an append is under way to prove that this is the journal's end.
    Claiming,
    /// This instance leads.
    Leading(Box<Leading>),
    /// It does nothing more until an operator intervenes.
    Halted {
        halt: Halt,
        /// What is missing and what to do about it; `None` until that has been worked out.
        account: Option<String>,
    },
}

impl Instance {
    /// An instance before its first event.
    pub fn new(settings: InstanceSettings) -> Self {
        let holder = LeaseHolder::new(&settings.name, &settings.nonce);
        Self {
            lease: Lease::new(holder),
            follower: Follower::default(),
            appender: Appender::new(&settings.nonce),
            inventory: Inventory::new(settings.zones.clone()),
            clocks: ClockWatch::new(settings.newest_record),
            decided_by_trusted_clock: false,
            dispatcher: Dispatcher::new(settings.dispatch.clone(), &settings.nonce),
            delivery: Delivery::new(&settings.name),
            forwards: Forwards::default(),
            role: Role::Starting,
            inspection: Inspection::new(settings.store.clone(), settings.loss_confirmed_after),
            retention: Retention::default(),
            storage: None,
            has_read: false,
            stopping: Stopping::No,
            out: Vec::new(),
            settings,
        }
    }

    /// The committed state.
    pub fn state(&self) -> &State {
        &self.follower.state
    }

    /// Whether it has read the journal to its end. Before that, its state is out of date.
    pub fn has_read(&self) -> bool {
        self.has_read
    }

    /// What is seen of the site.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// The monotonic time until which this instance leads unless it renews its lease; `None` if it does not lead.
    pub fn leads_until(&self) -> Option<Duration> {
        self.lease.held_until().filter(|_| self.is_leading())
    }

    /// Whether this instance leads.
    pub fn is_leading(&self) -> bool {
        matches!(self.role, Role::Leading(_))
    }

    /// Who leads.
    pub fn leadership(&self) -> Leadership {
        match (&self.role, self.lease.leader()) {
            (Role::Leading(_), _) => Leadership::Here(self.lease.me().clone()),
            (Role::Starting | Role::Following { .. } | Role::Claiming | Role::Halted { .. }, Some(other)) => {
                Leadership::At(other.clone())
            }
            (Role::Starting | Role::Following { .. } | Role::Claiming | Role::Halted { .. }, None) => {
                Leadership::Unknown
            }
        }
    }

    /// The sequence up to which this instance has the journal.
    pub fn position(&self) -> u64 {
        self.follower.tip.sequence
    }

    /// Why it has halted, if it has.
    pub fn halted(&self) -> Option<&Halt> {
        match &self.role {
            Role::Halted { halt, .. } => Some(halt),
            Role::Starting | Role::Following { .. } | Role::Claiming | Role::Leading(_) => None,
        }
    }

    /// The setting of a stream that somebody has changed; `None` if all are as they must be. Everything goes on nevertheless.
    pub fn changed_setting(&self) -> Option<&str> {
        self.inspection.changed()
    }

    /// Whether it has room for further messages of the journal and the control stream. Those that are handed over
    /// nevertheless are kept, so without room none should be.
    pub fn has_room(&self) -> bool {
        match &self.role {
            Role::Leading(leading) => leading.has_room(),
            Role::Starting | Role::Following { .. } | Role::Claiming | Role::Halted { .. } => true,
        }
    }

    /// Handles one event. The next [`Self::run`] returns the actions that follow from it.
    pub fn handle(&mut self, now: Now, event: Event) {
        if let Role::Halted { account, .. } = &mut self.role {
            if let Event::LossDescribed(text) = event {
                *account = Some(text);
            } else if let Event::Call { call, .. } = event {
                self.refuse(call);
            } else if let Event::ForwardAnswered { call, outcome } = event {
                self.forward_answered(now, call, outcome);
            } else if let Event::Stop = event {
                self.stop(now);
            }
            return;
        }
        match event {
            Event::Tick => self.tick(now),
            Event::Settings(settings) => self.settings_changed(settings),
            Event::Zones(zones) => self.inventory.zones_replaced(zones, now.wall),
            Event::Sealed(sealed) => self.inventory.secrets_seen(sealed),
            Event::Connected(connected) => {
                self.retention.listen();
                self.inspection.connection(connected);
            }
            Event::Inspected { known, streams } => self.inspected(now, &known, streams),
            // Only a halted instance requests an account, and it handles the event above.
            Event::LossDescribed(_) => {}
            Event::Lease { number, outcome } => {
                if let (Some(asked), LeaseOutcome::Written { at: Some(at), .. }) =
                    (self.lease.asked_at(number), &outcome)
                {
                    self.clocks.bus_read(*at, asked, now);
                }
                self.lease_answered(&outcome);
                let (action, change) = self.lease.outcome(now, number, &outcome);
                self.lease_changed(action, change.as_ref());
            }
            Event::Journal { sequence, stored_at, message } => self.journal(sequence, stored_at, message),
            Event::JournalEnd => self.journal_end(now),
            Event::Appended { append_id, outcome } => {
                self.storage = match outcome {
                    AppendOutcome::Full(limit) => Some(limit),
                    AppendOutcome::Stored { .. } => None,
                    AppendOutcome::Unknown => self.storage,
                };
                let step = self.appender.published(&append_id, &outcome);
                self.step(now, step);
            }
            Event::ReadBack { sequence, found } => {
                // An absent message would be published again, which must wait like every other publish.
                let is_absent = matches!(found, ReadBack::Absent { .. });
                let must_wait = is_absent && !self.may_publish();
                let found = if must_wait { ReadBack::Failed } else { found };
                let step = self.appender.read_back(sequence, &found, now);
                self.step(now, step);
            }
            Event::Control(raw) => self.control(now, &raw),
            Event::FencePublished { epoch, stored } => self.fence_published(now, epoch, stored),
            Event::CommandPublished { epoch, order, outcome } => {
                self.dispatcher.command_published(now, epoch, order, outcome);
            }
            Event::JobDone { id, report } => {
                if self.dispatcher.job_done(now, id, &report) {
                    self.decide_on(Input::JobDone(report.done));
                }
            }
            Event::Retracted { host, sequence, deleted } => self.retracted(now, host, sequence, deleted),
            Event::Delivered(delivered) => self.delivered(now, delivered),
            Event::Purged { purge, done } => self.purged(now, purge, done),
            Event::Call { call, request, forwarded_at } => self.call(now, call, request, forwarded_at),
            Event::ForwardAnswered { call, outcome } => self.forward_answered(now, call, outcome),
            Event::Worker(message) => {
                if let WorkerMessage::Heartbeat { host, time: Some(time), .. } = &message
                    && self.inventory.view().hosts.contains_key(host)
                {
                    let takes_part = self.follower.state.enrolled(host).takes_part();
                    self.clocks.host_read(host, *time, takes_part, now);
                }
                if !matches!(message, WorkerMessage::Heartbeat { .. } | WorkerMessage::Progress { .. }) {
                    self.delivery.view_changed();
                }
                let warning = self.inventory.apply(now, message).err();
                self.out
                    .extend(warning.map(|(host, error)| Action::Warn(Warning::Inventory { host, error })));
            }
            Event::ClusterSeen { nodes, at } => {
                if self.inventory.cluster_seen(now, at, nodes) {
                    self.decide_on(Input::NodesSeen);
                }
            }
            Event::Stored { by_all } => self.retention.stored(by_all),
            Event::Trimmed { trim, done } => self.retention.trimmed(trim, done),
            Event::AnnouncementsDeleted { count } => self.inventory.surplus().deleted(now.monotonic, count),
            Event::Stop => self.stop(now),
        }
    }

    /// The actions to carry out now, in this order, after the events handled so far.
    pub fn run(&mut self, now: Now) -> Vec<Action> {
        self.inspect(now);
        self.judge_clock(now);
        self.claim(now);
        self.append_next(now);
        self.retention.observe(now, &self.follower);
        let shown = self.forwards.take_visible(now, self.position()).into_iter();
        self.out.extend(shown.map(|(call, answered)| Action::Answer { call, outcome: Ok(answered) }));
        // While the bus is away, commands are not published either: one might be stored after its deadline.
        let may_publish = self.may_publish();
        self.replies_decided(now);
        if let Role::Leading(leading) = &mut self.role {
            for job in leading.take_committed_jobs() {
                self.dispatcher.job_committed(&job);
            }
        }
        if let (Role::Leading(leading), Some(leased_until)) = (&self.role, self.lease.held_until())
            && may_publish
            && !self.stopping.is_requested()
        {
            let (state, decided) = (&self.follower.state, leading.decided());
            let is_time_trusted = self.inventory.view().clock.is_trusted();
            let leader = Leader { state, decided, leased_until, is_time_trusted };
            let begun = self.dispatcher.begin_due(&leader, now);
            self.out.extend(begun.into_iter().map(Action::Dispatch));
            let fence = self.dispatcher.open_fence(state);
            let begun = fence.map(|fence| self.delivery.begin_due(state, self.inventory.view(), fence, now));
            let versions = self.inventory.versions();
            let begun = begun.into_iter().flatten().map(|deliver| deliver.with_versions(versions));
            let begun = begun.map(Dispatch::Deliver);
            self.out.extend(begun.map(Action::Dispatch));
            self.out.extend(self.inventory.surplus().begin(now.monotonic).map(Action::DeleteAnnouncements));
            let settings = self.settings.retention;
            if let Some(since) = self.retention.stands_since(now, settings) {
                self.inspection.expect_since(since, now);
            }
            let (first, intact_at) = (self.inspection.journal_from(), self.inspection.intact_at());
            let journal = Extent { first, last: self.follower.tip.sequence, intact_at };
            self.out.extend(self.retention.begin(now, settings, journal).map(Action::Trim));
        }
        if let Role::Leading(leading) = &mut self.role {
            self.inventory.replies_ignored(leading.take_ignored());
        }
        self.continue_stopping(now);
        in_order(std::mem::take(&mut self.out))
    }

    /// Before anything is decided: whether wall time can be relied on.
    fn judge_clock(&mut self, now: Now) {
        if self.clocks.observe(now) {
            self.lease.renew_soon();
        }
        let state = &self.follower.state;
        let enrolled = EnrolledCounts {
            approved: state.enrolment.approved.len(),
            withdrawn: state.enrolment.withdrawn.len(),
            auto_approve: state.settings.auto_approve,
        };
        let Some(clock) = self.clocks.judge(now, enrolled, |host| state.enrolled(host).takes_part()) else {
            return;
        };
        let known = self.inventory.view();
        let kinds = [&known.clock, &clock].map(|clock| clock.doubt.as_ref().map(ClockDoubt::kind));
        if matches!(self.role, Role::Leading(_)) && kinds[0] != kinds[1] {
            self.out.push(Action::Warn(Warning::Clock { doubt: clock.doubt.clone() }));
        }
        self.clocks.retain_hosts(now, |host| known.hosts.contains_key(host));
        self.inventory.clock_judged(clock);
    }

    fn tick(&mut self, now: Now) {
        self.inventory.tick(now, self.inspection.is_connected());
        if matches!(self.role, Role::Starting) {
            return;
        }
        // Without an inspection it could not lead, and would only keep others from leading.
        let is_leading = matches!(self.role, Role::Leading(_));
        self.lease.abstain(!is_leading && self.inspection.overdue().is_some());
        let (action, change) = self.lease.tick(now);
        self.lease_changed(action, change.as_ref());
        let step = self.appender.tick(now);
        self.step(now, step);
        if let Role::Leading(leading) = &mut self.role {
            leading.tick();
        }
    }

    /// The leader's settings are in force; a follower's take effect when it leads.
    fn settings_changed(&mut self, settings: Settings) {
        self.settings.settings = settings;
        if let Role::Leading(leading) = &mut self.role {
            leading.push(Input::Settings(self.settings.settings.clone()));
        }
    }

    /// Requests an inspection of the streams when one is due.
    fn inspect(&mut self, now: Now) {
        if matches!(self.role, Role::Halted { .. }) {
            return;
        }
        let before = self.inspection.concerns();
        let known = self.inspection.begin(now, &self.follower);
        self.warn_of_streams(&before);
        self.out.extend(known.map(|known| Action::Inspect(Box::new(known))));
    }

    /// Warns if what is of concern about the streams is not what it was `before`.
    fn warn_of_streams(&mut self, before: &Concerns) {
        let concerns = self.inspection.concerns();
        if concerns.differ(before) {
            self.out.push(Action::Warn(Warning::Streams { concern: concerns.first() }));
        }
    }

    fn inspected(&mut self, now: Now, known: &Acknowledged, streams: Result<Streams, String>) {
        let before = self.inspection.concerns();
        let finding = self.inspection.inspected(now, known, streams);
        self.warn_of_streams(&before);
        match finding {
            Finding::Nothing => {}
            Finding::Intact { follow_from } if matches!(self.role, Role::Starting) => {
                self.role = Role::Following { at_end: false };
                self.out.push(Action::FollowJournal { from: follow_from });
            }
            Finding::Intact { .. } => {}
            Finding::Lost(halt) => self.halt(halt),
        }
    }

    /// Whether something may be published.
    fn may_publish(&self) -> bool {
        self.inspection.may_publish()
    }

    fn lease_changed(&mut self, question: Option<LeaseRequest>, change: Option<&LeaseChange>) {
        self.out.extend(question.map(Action::Lease));
        match change {
            Some(LeaseChange::Lost) => self.step_down("the lease is lost"),
            Some(LeaseChange::Copied) => {
                self.halt(Halt::Copied { instance: self.settings.name.clone() });
            }
            // A loss since the last inspection would be trimmed away, and its traces with it.
            Some(LeaseChange::Gained) => self.inspection.require(),
            None => {}
        }
    }

    fn lease_answered(&mut self, outcome: &LeaseOutcome) {
        self.storage = match outcome {
            LeaseOutcome::Full(limit) => Some(*limit),
            LeaseOutcome::Taken { .. } => None,
            // A small entry may fit where a record does not.
            LeaseOutcome::Written { .. } | LeaseOutcome::Released | LeaseOutcome::Failed => self.storage,
        };
    }

    fn journal(&mut self, sequence: u64, stored_at: DateTime<Utc>, message: Result<Message, JournalError>) {
        // A claimant or leader reads its own appends here. Those of another instance make its next append fail.
        if !matches!(self.role, Role::Following { .. }) {
            return;
        }
        let read = message.map_err(Halt::from).and_then(|message| {
            self.inspection.check(sequence, &message)?;
            self.follower.read(sequence, &message).map_err(Halt::from)
        });
        match read {
            Ok(Some(committed)) => {
                let record = &committed.record;
                self.clocks.recorded(record.at, stored_at, vouches_for_clock(record));
                self.out.push(Action::Project { committed: Box::new(committed), decided_here: false });
            }
            Ok(None) => {}
            Err(halt) => self.halt(halt),
        }
    }

    fn journal_end(&mut self, now: Now) {
        if let Role::Following { at_end } = &mut self.role {
            *at_end = true;
            self.has_read = true;
            // Before this instance leads, the streams are compared with everything it has read.
            self.inspection.require();
        }
        self.claim(now);
    }

    /// Tries to lead: with the lease held, an empty record is appended where the journal is believed to end.
    fn claim(&mut self, now: Now) {
        let ready = matches!(self.role, Role::Following { at_end: true }) && !self.stopping.is_requested();
        if !ready || !self.lease.is_held() || self.appender.is_busy() || !self.may_publish() {
            return;
        }
        self.role = Role::Claiming;
        self.out.push(Action::StopJournal);
        let leading = Leading::claim(&self.follower.journaled(), now);
        let step = self.appender.record(&leading, &self.follower.tip, now);
        self.step(now, Some(step));
    }

    fn step(&mut self, now: Now, step: Option<Step>) {
        match step {
            None => {}
            Some(Step::Publish { expected, message }) => self.out.push(Action::Append { expected, message }),
            Some(Step::ReadBack { sequence }) => self.out.push(Action::ReadJournal { sequence }),
            Some(Step::Done { first, tip }) => self.appended(now, first, tip),
            Some(Step::Deposed) => self.step_down("another instance has appended to the journal"),
        }
    }

    fn appended(&mut self, now: Now, first: u64, tip: Tip) {
        match &mut self.role {
            Role::Claiming => {
                self.retention.listen();
                self.follower.appended(tip, None);
                self.dispatcher.begin_leadership(now);
                self.delivery.leadership_begins(now);
                self.inventory.leadership_begins();
                let mut leading = Leading::new();
                leading.push(Input::LeadershipBegan);
                leading.push(Input::Settings(self.settings.settings.clone()));
                self.role = Role::Leading(Box::new(leading));
                self.show_polls();
                self.out.push(Action::ReadControl { from: self.follower.state.control + 1 });
                self.out.push(Action::Warn(Warning::Leading));
            }
            Role::Leading(leading) => {
                let before = self.out.len();
                let state_before = self.follower.state.clone();
                let parts = (&mut self.dispatcher, &mut self.delivery, now);
                leading.appended((first, tip), parts, &mut self.follower, &mut self.out);
                self.inventory.graces_changed(&state_before, &self.follower.state);
                let stored_at = self.clocks.bus_time(now).unwrap_or(now.wall);
                // What is recorded by a doubtful clock is no witness.
                for action in self.out[before..].iter().filter(|_| self.decided_by_trusted_clock) {
                    if let Action::Project { committed, .. } = action {
                        let record = &committed.record;
                        self.clocks.recorded(record.at, stored_at, vouches_for_clock(record));
                    }
                }
            }
            Role::Starting | Role::Following { .. } | Role::Halted { .. } => {}
        }
    }

    fn append_next(&mut self, now: Now) {
        let may_publish = self.may_publish();
        let Role::Leading(leading) = &mut self.role else { return };
        if self.appender.is_busy() {
            return;
        }
        leading.drop_stale_calls(now, &mut self.out);
        // Published now, it would be stored when the bus is back, perhaps long after the caller was told otherwise.
        if !may_publish {
            return;
        }
        // A run does not start while hosts are unread, nor while this instance is stopping.
        let may_start = self.inventory.is_read() && !self.stopping.is_requested();
        let sequence = self.follower.tip.sequence + 1;
        let starter = may_start.then_some(Starter { process: &self.settings.nonce, sequence });
        self.inventory.control_read(self.dispatcher.has_read_control(&self.follower.state));
        let view = self.inventory.view();
        let step = match leading.next_record(&mut self.follower.state, view, now, starter) {
            Some(record) => {
                self.decided_by_trusted_clock = view.clock.is_trusted();
                self.appender.record(record, &self.follower.tip, now)
            }
            // A stopping instance leaves the snapshot to its successor.
            None if self.follower.weight_since_snapshot >= self.settings.snapshot_weight
                && !self.stopping.is_requested() =>
            {
                leading.snapshot_begun();
                self.appender.snapshot(
                    &self.follower.journaled(),
                    self.follower.snapshot,
                    &self.follower.tip,
                    now,
                )
            }
            None => return,
        };
        self.step(now, Some(step));
    }

    fn control(&mut self, now: Now, raw: &RawControl) {
        let Role::Leading(leading) = &mut self.role else { return };
        let message: ControlMessage = control_stream::read(raw);
        if let ControlMessage::Reply { host, .. } = &message {
            self.inventory.replied(now, host, raw.time);
        }
        leading.push(Input::Control { sequence: raw.sequence, message });
    }

    fn fence_published(&mut self, now: Now, epoch: u64, stored: Option<u64>) {
        let Role::Leading(leading) = &mut self.role else { return };
        if let Some(sequence) = self.dispatcher.fence_published(now, epoch, stored) {
            let leader = self.settings.name.clone();
            leading.push(Input::FenceStored { sequence, leader });
        }
    }

    fn decide_on(&mut self, input: Input) {
        if let Role::Leading(leading) = &mut self.role {
            leading.push(input);
        }
    }

    fn retracted(&mut self, now: Now, host: HostName, sequence: u64, deleted: Option<bool>) {
        let counts = self.dispatcher.retraction_answered(now, sequence);
        let Role::Leading(leading) = &mut self.role else { return };
        if let Some(deleted) = deleted.filter(|_| counts) {
            leading.push(Input::Retracted { host, sequence, deleted });
        }
    }

    fn purged(&mut self, now: Now, purge: Purge, done: bool) {
        if self.dispatcher.purge_answered(now, &purge) && done {
            self.decide_on(Input::Purged { host: purge.host, announced: purge.announced });
        }
    }

    /// Stops leading or claiming. Appends under way are abandoned; the journal will show whether they were stored.
    fn step_down(&mut self, why: &'static str) {
        self.appender.abandon();
        match &mut self.role {
            Role::Leading(leading) => {
                leading.fail_calls(why, &mut self.out);
                self.delivery.leadership_ends(&mut self.inventory);
                self.out.push(Action::StopControl);
                self.out.push(Action::Warn(Warning::Deposed { why }));
            }
            Role::Claiming => {}
            Role::Starting | Role::Following { .. } | Role::Halted { .. } => return,
        }
        self.role = Role::Following { at_end: false };
        self.out.push(Action::FollowJournal { from: self.follower.tip.sequence + 1 });
    }

    fn halt(&mut self, halt: Halt) {
        self.appender.abandon();
        if let Role::Leading(leading) = &mut self.role {
            leading.fail_calls("the orchestrator has halted", &mut self.out);
        }
        self.out.extend([Action::StopControl, Action::StopJournal]);
        self.out.push(Action::Warn(Warning::Halted(halt.clone())));
        if matches!(halt, Halt::Lost(_)) {
            self.out.push(Action::DescribeLoss(halt.clone()));
        }
        self.role = Role::Halted { halt, account: None };
    }
}

/// Sorts actions: records, then the state that includes them, then everything else. See [`Action::PublishState`].
fn in_order(actions: Vec<Action>) -> Vec<Action> {
    let is_record = |action: &Action| matches!(action, Action::Project { .. });
    let (mut ordered, rest): (Vec<_>, Vec<_>) = actions.into_iter().partition(is_record);
    ordered.push(Action::PublishState);
    ordered.extend(rest);
    ordered
}
