//! A site for tests: the real kernel, with a simulated clock and control stream.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

pub mod authority;

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_kernel::fact::ConfigFact;
use os_upgrade_kernel::{
    Answer, Batch, Clock, Config, ConfigOperation, ControlMessage, Effect, Expected, Fact, InReplyTo, Input,
    Order, Request, RunOperation, SeenHost, Settings, State, Targets, View, effects,
};
use os_upgrade_protocol::{Action, ApplicationName, GroupName, HostName, Outcome, Reply, RunId};
use os_upgrade_shell::journal::AppendId;
use os_upgrade_shell::journal::Committed;

/// The worker application on every host.
pub const APPLICATION: &str = "os-upgrade-debian";

/// State and view of a site, and the sequences of its streams. Each record is a second after the previous one.
#[derive(Debug, Clone)]
pub struct TestSite {
    /// The committed state.
    pub state: State,
    /// The view of the site.
    pub view: View,
    /// The time of the last record.
    pub now: DateTime<Utc>,
    journal: u64,
    control: u64,
}

/// The host `name`.
pub fn host(name: &str) -> HostName {
    HostName::new(name).unwrap()
}

/// The run `text`.
pub fn run_id(text: &str) -> RunId {
    RunId::new(text).unwrap()
}

/// A configuration with [`APPLICATION`] alone.
pub fn config() -> Config {
    serde_json::from_str(r#"{"worker-applications":[{"name":"os-upgrade-debian"}]}"#).unwrap()
}

/// Puts [`config`].
pub fn put_config() -> Input {
    let put = ConfigOperation::Put { config: config().into(), expected: Expected::Anything };
    Input::Request(Request::new("api", put).into())
}

/// Starts the run `run`, which has four hours.
pub fn trigger(run: &str) -> Input {
    let timeout = "4h".parse().unwrap();
    let trigger = RunOperation::Trigger {
        run: run_id(run),
        timeout: Some(timeout),
        targets: Targets::default(),
        reason: None,
    };
    Input::Request(Request::new("api", trigger).into())
}

/// Cancels the run.
pub fn cancel() -> Input {
    Input::Request(Request::new("api", RunOperation::Cancel { reason: None }).into())
}

impl TestSite {
    /// A site with workers on `hosts`, at 2026-11-21T05:00:00Z.
    pub fn new<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Self {
        let seen = SeenHost {
            applications: [ApplicationName::new(APPLICATION).unwrap()].into_iter().collect(),
            group: Some(GroupName::new("default").unwrap()),
            ..SeenHost::default()
        };
        let hosts = hosts.into_iter().map(|name| (host(name), seen.clone())).collect();
        let now: DateTime<Utc> = "2026-11-21T05:00:00Z".parse().unwrap();
        let view = View { hosts, clock: Clock::TRUSTED, ..View::default() };
        let mut state = State::default();
        let settings = Settings { auto_approve: true, ..Settings::default() };
        state.apply(now, &Fact::Config(ConfigFact::SettingsAdopted { settings })).unwrap();
        Self { state, view, now, journal: 0, control: 0 }
    }

    /// The record of `inputs`, decided together, and the answers to them.
    pub fn decide(&mut self, inputs: &[Input]) -> (Committed, Vec<Answer>) {
        self.now += TimeDelta::seconds(1);
        let follows = self.journal;
        self.journal += 1;
        let mut batch = Batch::new(&self.state, self.now);
        let answers = inputs.iter().filter_map(|input| batch.decide(&self.view, input)).collect();
        let (record, after) = batch.finish();
        let before = std::mem::replace(&mut self.state, after);
        let append_id = AppendId::new(&format!("test-{}", self.journal));
        (Committed { sequence: self.journal, append_id, follows, before, record }, answers)
    }

    /// The record of `inputs`, decided together.
    pub fn decide_record(&mut self, inputs: &[Input]) -> Committed {
        self.decide(inputs).0
    }

    /// A leader's fence, stored and read.
    pub fn fence(&mut self) -> Committed {
        self.control += 1;
        let sequence = self.control;
        let stored = Input::FenceStored { sequence, leader: "test".to_owned() };
        self.decide_record(&[stored, Input::Control { sequence, message: ControlMessage::Leader }])
    }

    /// Sends all pending commands: the record of their appearance in the control stream.
    pub fn send(&mut self) -> Committed {
        let mut inputs = Vec::new();
        for effect in effects(&self.state) {
            if let Effect::Send(Order { id, .. }) = effect {
                self.control += 1;
                let message = ControlMessage::Command { host: id.host.clone(), id: Some(id) };
                inputs.push(Input::Control { sequence: self.control, message });
            }
        }
        self.decide_record(&inputs)
    }

    /// The record of replies of `hosts`.
    pub fn reply<'a>(
        &mut self,
        hosts: impl IntoIterator<Item = &'a str>,
        action: Action,
        result: &Outcome,
    ) -> Committed {
        let mut inputs = Vec::new();
        for name in hosts {
            self.control += 1;
            let reply = Ok(Reply { action, result: result.clone() });
            let message =
                ControlMessage::Reply { host: host(name), reply, in_reply_to: InReplyTo::default() };
            inputs.push(Input::Control { sequence: self.control, message });
        }
        self.decide_record(&inputs)
    }

    /// A whole run: `hosts` prepare, and each is upgraded when it holds the slot. Returns all records.
    pub fn whole_run(&mut self, run: &str) -> Vec<Committed> {
        let names: Vec<String> = self.view.hosts.keys().map(ToString::to_string).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut records = vec![self.decide_record(&[trigger(run)]), self.send()];
        records.push(self.reply(names.iter().copied(), Action::Prepare, &Outcome::Done));
        for name in names {
            records.push(self.send());
            records.push(self.reply([name], Action::Upgrade, &Outcome::Done));
        }
        records
    }
}
