//! Helpers for the table tests: a worker with its disk, functions that create events, and actions as lines.

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_protocol::{ApplicationName, HostName, subject};
use os_upgrade_worker_rules::{
    Action, BootId, Event, HandlerResult, Loaded, Now, Phase, Received, StateFile, Upgraded, WorkerConfig,
    WorkerLogic,
};

pub(crate) fn host() -> HostName {
    HostName::new("h1").unwrap()
}

pub(crate) fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
}

/// The time `second`, by both clocks.
pub(crate) fn now(second: i64) -> Now {
    Now { wall: at(second), monotonic: TimeDelta::seconds(second) }
}

/// A worker with its disk and clocks.
#[derive(Clone)]
pub(crate) struct Bench {
    pub(crate) logic: WorkerLogic,
    pub(crate) saved: Option<Vec<u8>>,
    pub(crate) now: Now,
}

impl Bench {
    pub(crate) fn logic() -> WorkerLogic {
        WorkerLogic::new(WorkerConfig {
            host: host(),
            application: ApplicationName::new("app").unwrap(),
            reboot_wait: TimeDelta::seconds(60),
        })
    }

    pub(crate) fn new() -> Self {
        Self { logic: Self::logic(), saved: None, now: now(0) }
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now.wall += TimeDelta::seconds(seconds);
        self.now.monotonic += TimeDelta::seconds(seconds);
    }

    pub(crate) fn take(&mut self, event: Event) -> Vec<String> {
        let actions = self.logic.handle(self.now, event);
        for action in &actions {
            if let Action::SaveState(file) = action {
                self.saved = Some(file.to_bytes());
            }
        }
        actions.iter().filter_map(line).collect()
    }

    /// The process dies and starts again, in this boot.
    pub(crate) fn restart(&mut self, boot: &str) -> Vec<String> {
        self.logic = Self::logic();
        let loaded = self.saved.as_deref().map_or(Loaded::Nothing, |bytes| {
            Loaded::File(Box::new(StateFile::parse(bytes, &host()).unwrap()))
        });
        self.take(started(loaded, boot))
    }
}

/// An action in one line; `None` for actions about versions, which have their own test.
pub(crate) fn line(action: &Action) -> Option<String> {
    Some(match action {
        Action::SaveState(file) => match &file.current {
            None => "save idle".to_owned(),
            Some(current) => format!("save {} #{}", phase(&current.phase), current.attempts),
        },
        Action::Run(call) => format!(
            "run {}{}{}",
            call.call.as_str(),
            if call.resume { " resume" } else { "" },
            if call.rebooted { " rebooted" } else { "" },
        ),
        Action::Reboot(call) => format!("reboot{}", if call.resume { " resume" } else { "" }),
        Action::Reply(reply) => {
            assert_eq!(reply.subject, subject::reply(&host()));
            let (of_any, of_run) = reply.headers.split_at(2);
            assert_eq!(
                of_any,
                [
                    ("Producer-Name", "app/h1".to_owned()),
                    ("Os-Upgrade-In-Reply-To", reply.sequence.to_string())
                ]
            );
            let run = match of_run {
                [("Os-Upgrade-Run", run)] if run == "r1" => String::new(),
                _ => format!(" {of_run:?}"),
            };
            format!("reply {}{run}", String::from_utf8(reply.payload.clone()).unwrap())
        }
        Action::Ack { subject, .. } => format!("ack {subject}"),
        Action::InProgress { subject } => format!("in-progress {subject}"),
        Action::ReadVersions | Action::PublishVersions { .. } => return None,
        Action::Log(note) => format!("log {note}"),
    })
}

pub(crate) fn phase(phase: &Phase) -> String {
    match phase {
        Phase::Preparing => "preparing".to_owned(),
        Phase::Upgrading { .. } => "upgrading".to_owned(),
        Phase::Rebooting { .. } => "rebooting".to_owned(),
        Phase::Checking => "checking".to_owned(),
        Phase::Answered { outcome } => format!("answered {}", outcome.as_str()),
    }
}

pub(crate) fn started(loaded: Loaded, boot: &str) -> Event {
    Event::Started { loaded, boot_id: BootId(boot.to_owned()) }
}

pub(crate) fn command(sequence: u64, run: &str, payload: &str) -> Event {
    Event::CommandReceived(Received {
        sequence,
        published: at(i64::try_from(sequence).unwrap() - 100),
        delivered: 1,
        last_sequence_at_open: 0,
        connection: 1,
        subject: subject::command(&host()),
        ack_subject: format!("a{sequence}"),
        run_header: (!run.is_empty()).then(|| run.to_owned()),
        id_header: None,
        payload: payload.as_bytes().to_vec(),
    })
}

pub(crate) fn prepare(sequence: u64) -> Event {
    let payload = r#"{"action":"prepare","hosts":["h1"],"not-after":"2027-01-15T08:10:00Z"}"#;
    command(sequence, "r1", payload)
}

pub(crate) fn upgrade(sequence: u64) -> Event {
    command(sequence, "r1", r#"{"action":"upgrade","host":"h1"}"#)
}

pub(crate) fn reboot(sequence: u64) -> Event {
    command(sequence, "r1", r#"{"action":"reboot","host":"h1"}"#)
}

pub(crate) fn finished(sequence: u64, result: HandlerResult) -> Event {
    Event::HandlerFinished { sequence, result }
}

pub(crate) fn upgraded(sequence: u64) -> Event {
    finished(sequence, HandlerResult::Upgrade(Ok(Upgraded::RebootRequired)))
}

pub(crate) const SAVED: Event = Event::StateSaved;

pub(crate) fn stored(sequence: u64) -> Event {
    Event::ReplyStored { sequence }
}

pub(crate) fn acked(sequence: u64) -> Event {
    Event::Acked { sequence }
}

/// An input and the expected actions.
pub(crate) enum Step {
    On(Event, &'static [&'static str]),
    /// A number of seconds pass, then a tick.
    After(i64, &'static [&'static str]),
    /// The wall clock jumps by so many seconds, and a tick follows.
    ClockSteps(i64, &'static [&'static str]),
    Restart(&'static str, &'static [&'static str]),
}
pub(crate) use Step::{After, ClockSteps, On, Restart};

#[track_caller]
pub(crate) fn check(steps: Vec<Step>) {
    let mut bench = Bench::new();
    bench.take(started(Loaded::Nothing, "boot-1"));
    check_on(&mut bench, steps);
}

#[track_caller]
pub(crate) fn check_on(bench: &mut Bench, steps: Vec<Step>) {
    for (number, step) in steps.into_iter().enumerate() {
        let (got, expected) = match step {
            On(event, expected) => (bench.take(event), expected),
            After(seconds, expected) => {
                bench.pass(seconds);
                (bench.take(Event::Tick), expected)
            }
            ClockSteps(seconds, expected) => {
                bench.now.wall += TimeDelta::seconds(seconds);
                (bench.take(Event::Tick), expected)
            }
            Restart(boot, expected) => (bench.restart(boot), expected),
        };
        assert_eq!(got, expected, "step {number}");
    }
}

/// A prepare that succeeded and is settled.
pub(crate) fn prepared() -> Vec<Step> {
    vec![
        On(prepare(1), &["log prepare (command 1) begins", "save preparing #1"]),
        On(SAVED, &["run prepare"]),
        On(
            finished(1, HandlerResult::Prepare(Ok(()))),
            &["log prepare (command 1) is answered: done", "save answered done #1"],
        ),
        On(SAVED, &[r#"reply {"action":"prepare","result":"done"}"#]),
        On(stored(1), &["ack a1"]),
        On(acked(1), &["save idle"]),
        On(SAVED, &[]),
    ]
}

/// As [`prepared`], and an upgrade that requires a reboot.
pub(crate) fn upgraded_and_settled() -> Vec<Step> {
    let mut steps = prepared();
    steps.extend([
        On(upgrade(2), &["log upgrade (command 2) begins", "save upgrading #1"]),
        On(SAVED, &["run upgrade"]),
        On(
            upgraded(2),
            &["log upgrade (command 2) is answered: reboot-required", "save answered reboot-required #1"],
        ),
        On(SAVED, &[r#"reply {"action":"upgrade","result":"reboot-required"}"#]),
        On(stored(2), &["ack a2"]),
        On(acked(2), &["save idle"]),
        On(SAVED, &[]),
    ]);
    steps
}

/// As [`upgraded_and_settled`], and a reboot that is under way.
pub(crate) fn rebooting() -> Vec<Step> {
    let mut steps = upgraded_and_settled();
    steps.extend([
        On(reboot(3), &["log reboot (command 3) begins", "save rebooting #1"]),
        On(SAVED, &["reboot"]),
        On(Event::RebootReturned { sequence: 3, result: Ok(()) }, &[]),
    ]);
    steps
}

pub(crate) fn then(mut steps: Vec<Step>, more: Vec<Step>) -> Vec<Step> {
    steps.extend(more);
    steps
}
