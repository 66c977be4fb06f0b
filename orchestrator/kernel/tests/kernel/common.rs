//! Shared by the kernel's tests: a site that is driven input by input, with checks after each input.

pub(crate) mod check;
pub(crate) mod defaults;
pub(crate) mod moves;
pub(crate) mod play;
pub(crate) mod render;
pub(crate) mod script;

use chrono::{DateTime, TimeZone, Utc};
use os_upgrade_kernel::config::WorkerApplication;
use os_upgrade_kernel::fact::ConfigFact;
use os_upgrade_kernel::start::StartTimer;
use os_upgrade_kernel::{
    Answer, Batch, ClientId, Clock, Config, ConfigOperation, ControlMessage, Effect, Expected, Fact,
    InReplyTo, Input, JobDone, LockOutcome, Record, Request, Restoration, RestoreSource, SeenHost, Settings,
    SlotJob, SlotOrder, State, View, effects, hint, restoration,
};
use os_upgrade_protocol::{
    Action, ApplicationName, CommandId, GroupName, Hint, HostName, Outcome, Reply, RunId,
};

/// The application that every host serves unless a test says otherwise.
pub(crate) const APPLICATION: &str = "debian";

pub(crate) fn host(name: &str) -> HostName {
    HostName::new(name).unwrap()
}

/// The outcome of a request to the lock server about the slot of `host`, in the group `default`.
pub(crate) fn slot_done(order: SlotOrder, host: HostName, outcome: LockOutcome) -> Input {
    Input::JobDone(JobDone::LockServer(SlotJob { order, host, group: group("default") }, outcome))
}

pub(crate) fn group(name: &str) -> GroupName {
    GroupName::new(name).unwrap()
}

pub(crate) fn client(id: &str) -> ClientId {
    ClientId::new(id).unwrap()
}

pub(crate) fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

pub(crate) fn application(name: &str) -> ApplicationName {
    ApplicationName::new(name).unwrap()
}

/// The time at which every test begins.
pub(crate) fn start() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 21, 1, 0, 0).unwrap()
}

/// A configuration with one application.
pub(crate) fn config() -> Config {
    Config {
        worker_applications: vec![WorkerApplication { name: application(APPLICATION) }],
        ..Config::default()
    }
}

/// The usual settings: hosts are approved automatically.
pub(crate) fn settings() -> Settings {
    Settings { auto_approve: true, ..Settings::default() }
}

/// A host as announced by a worker of the usual application.
pub(crate) fn seen(group_name: Option<&str>) -> SeenHost {
    SeenHost {
        applications: [application(APPLICATION)].into_iter().collect(),
        group: group_name.map(group),
        ..SeenHost::default()
    }
}

/// Compares the file at `path` below `tests/kernel` with `actual`, which is made from the file's own content. With
/// `UPDATE_EXPECTED` in the environment the file is rewritten instead; review the diff.
pub(crate) fn expect_file(path: &str, actual: impl FnOnce(&str) -> String) {
    let file = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernel").join(path);
    let expected = std::fs::read_to_string(&file).unwrap();
    let actual = actual(&expected);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&file, actual).unwrap();
        return;
    }
    if actual != expected {
        let differs = actual.lines().zip(expected.lines()).position(|(actual, expected)| actual != expected);
        let line = differs.unwrap_or_else(|| actual.lines().count().min(expected.lines().count()));
        panic!("{path} differs from line {}; the outcome:\n\n{actual}", line + 1);
    }
}

/// The outcome of one input.
#[derive(Debug)]
pub(crate) struct Outputs {
    pub(crate) facts: Vec<Fact>,
    pub(crate) answer: Option<Answer>,
    pub(crate) hint: Option<(Hint, Vec<HostName>)>,
}

/// A site: the state, what is seen, the time, and the end of its control stream.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) state: State,
    pub(crate) view: View,
    pub(crate) now: DateTime<Utc>,
    pub(crate) last_sequence: u64,
    /// Whether slots became fewer at some time, so that more holders than slots are no error.
    pub(crate) lowered: bool,
    /// The leader's.
    pub(crate) start_timer: StartTimer,
    pub(crate) turns: check::LastTurns,
}

impl Default for Site {
    fn default() -> Self {
        // Only some stories are about hosts that wait for approval.
        let mut state = State::default();
        state.apply(start(), &Fact::Config(ConfigFact::SettingsAdopted { settings: settings() })).unwrap();
        let clock = Clock::TRUSTED;
        let view = View { clock, has_read_control: true, has_awaited_replies: true, ..View::default() };
        Self {
            state,
            view,
            now: start(),
            last_sequence: 0,
            lowered: false,
            start_timer: StartTimer::default(),
            turns: check::LastTurns::default(),
        }
    }
}

/// The site is restored from the store at the start, with nothing outstanding.
pub(crate) fn restore(site: &mut Site) {
    let restored = Restoration {
        source: RestoreSource::Store,
        actor: "op".to_owned(),
        control_kept: false,
        outstanding: Vec::new(),
    };
    let facts = restoration(&site.state, restored);
    site.state.apply_record(&Record { at: start(), control: 0, facts }).unwrap();
}

impl Site {
    /// A site with these hosts, the usual configuration and settings, and a fence that has been read.
    pub(crate) fn ready(hosts: &[&str]) -> Self {
        let mut site = Self::default();
        for name in hosts {
            site.view.hosts.insert(host(name), seen(None));
        }
        site.input(Input::Settings(settings()));
        let put = ConfigOperation::Put { config: config().into(), expected: Expected::Anything };
        site.input(Input::Request(Request::new("admin", put).into()));
        site.fence();
        site
    }

    /// Decides one input, folds its facts, and runs the checks.
    #[allow(clippy::needless_pass_by_value, reason = "callers build inputs in place")]
    pub(crate) fn input(&mut self, input: Input) -> Outputs {
        let mut batch = Batch::new(&self.state, self.now);
        let answer = batch.decide(&self.view, &input);
        let (record, after) = batch.finish();
        if let Input::Settings(settings) = &input {
            self.lowered |=
                self.state.semaphores.iter().any(|(group, semaphore)| {
                    settings.groups.get(group).copied().unwrap_or(0) < semaphore.slots
                });
        }
        let step = check::Step { before: &self.state, view: &self.view, input: &input, record: &record };
        check::step(&step, &after, self.lowered);
        self.turns.follow(&step);
        self.state = after;
        let hint = hint(&record.facts, &self.state);
        Outputs { facts: record.facts, answer, hint }
    }

    /// A message at the end of the control stream.
    pub(crate) fn control(&mut self, message: ControlMessage) -> Outputs {
        self.last_sequence += 1;
        self.input(Input::Control { sequence: self.last_sequence, message })
    }

    /// A fence, stored and read.
    pub(crate) fn fence(&mut self) -> Vec<Fact> {
        let (sequence, leader) = (self.last_sequence + 1, "one".to_owned());
        let mut facts = self.input(Input::FenceStored { sequence, leader }).facts;
        facts.extend(self.control(ControlMessage::Leader).facts);
        facts
    }

    /// A command appears in the control stream.
    pub(crate) fn command(&mut self, id: CommandId) -> Outputs {
        self.control(ControlMessage::Command { host: id.host.clone(), id: Some(id) })
    }

    /// A reply appears in the control stream.
    pub(crate) fn reply(
        &mut self,
        from: &str,
        action: Action,
        result: Outcome,
        in_reply_to: InReplyTo,
    ) -> Outputs {
        let reply = Ok(Reply { action, result });
        self.control(ControlMessage::Reply { host: host(from), reply, in_reply_to })
    }

    /// Everything that should be under way.
    pub(crate) fn effects(&self) -> Vec<Effect> {
        effects(&self.state).collect()
    }
}
