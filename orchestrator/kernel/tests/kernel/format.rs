//! The on-disk format: every fact, event, reason and cause as JSON, which must stay readable permanently.
//!
//! Lines here may be added and never changed. The words of all lines are in `format/words.txt`; `kernel/src/format.rs` says
//! what to do when a new one is missing there. Each list must have every variant: the functions named `…_variant` do not
//! compile when one is missing, and the lists are compared with the number of variants.

mod facts;
mod missed;
mod nodes;
mod reasons;
mod reboots;
mod snapshots;
mod units;
mod unknown;
mod words;

use std::collections::BTreeSet;

use chrono_tz::Tz;
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::config::Rollout;
use os_upgrade_kernel::fact::{ControlFact, IgnoreCause};
use os_upgrade_kernel::format::read;
use os_upgrade_kernel::reason::{Denial, LastWait, LockRefusal};
use os_upgrade_kernel::slot::{Denied, Full, Hold, Holder, HostDenied, NamedHolder, ReleaseCause};
use os_upgrade_kernel::{
    ClockDoubt, ConfigurationWait, Fact, HostEvent, HostStatus, LockProvider, NoAnswer, NodeWait, PauseCause,
    Phase, Pods, Reason, Record, RestoreSource, RunResult, SlotState, State, StopCause,
};
use os_upgrade_protocol::{Action, Outcome, Reply};
use os_upgrade_provider_rules::{Failure, ProviderName};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use self::reasons::cancelled;
use self::words::{check_values, check_words, with_unknown_fields};
use crate::common::{self, application, client, config, group, host, run, start};

/// Checks that each value reads and writes exactly as its JSON, and that each of the `count` variants has a line.
fn check<T>(table: &[(T, &str)], variant: impl Fn(&T) -> usize, count: usize)
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    check_values(table);
    let seen: BTreeSet<usize> = table.iter().map(|(value, _)| variant(value)).collect();
    assert_eq!(seen, (0..count).collect(), "every variant has a line, and a number of its own");
}

fn missing(wait: ConfigurationWait) -> Reason {
    Reason::ConfigurationMissing { provider: ProviderName::new("app").unwrap(), wait }
}

fn event_variant(event: &HostEvent) -> usize {
    match event {
        HostEvent::CommandSent { .. } => 0,
        HostEvent::Prepared => 1,
        HostEvent::Waiting { .. } => 2,
        HostEvent::TurnLost => 3,
        HostEvent::SlotGranted { .. } => 4,
        HostEvent::RebootRequired => 5,
        HostEvent::Upgraded => 6,
        HostEvent::Failed { .. } => 7,
        HostEvent::TimedOut { .. } => 8,
        HostEvent::Cancelled { .. } => 9,
        HostEvent::Drained => 10,
        HostEvent::BackedOff { .. } => 11,
        HostEvent::Recovering => 12,
        HostEvent::Skipped { .. } => 13,
        HostEvent::NotReached { .. } => 14,
        HostEvent::Overdue { .. } => 15,
        HostEvent::PrepareBegan => 16,
        HostEvent::PrepareFailed { .. } => 17,
    }
}

fn paused() -> PauseCause {
    PauseCause::Operator { actor: "eve".to_owned(), reason: "the fair is on".to_owned() }
}

#[test]
fn events() {
    let reason = Reason::RunTimedOut { waited_for: None };
    let table = [
        (
            HostEvent::CommandSent { action: Action::Prepare, attempt: 1, sequence: 4 },
            r#"{"type":"command-sent","action":"prepare","attempt":1,"sequence":4}"#,
        ),
        (HostEvent::PrepareBegan, r#"{"type":"prepare-began"}"#),
        (
            HostEvent::PrepareFailed { until: start(), reason: Reason::ClusterUnseen },
            r#"{"type":"prepare-failed","until":"2026-11-21T01:00:00Z","reason":{"kind":"cluster-unseen"}}"#,
        ),
        (HostEvent::Prepared, r#"{"type":"prepared"}"#),
        (
            HostEvent::Waiting { reason: Reason::AskingForSlot { group: group("edge") } },
            r#"{"type":"waiting","reason":{"kind":"asking-for-slot","group":"edge"}}"#,
        ),
        (HostEvent::TurnLost, r#"{"type":"turn-lost"}"#),
        (
            HostEvent::SlotGranted { group: group("edge"), provider: LockProvider::Embedded, drain: false },
            r#"{"type":"slot-granted","group":"edge","provider":"embedded"}"#,
        ),
        (HostEvent::RebootRequired, r#"{"type":"reboot-required"}"#),
        (HostEvent::Upgraded, r#"{"type":"upgraded"}"#),
        (
            HostEvent::Failed { reason: reason.clone() },
            r#"{"type":"failed","reason":{"kind":"run-timed-out"}}"#,
        ),
        (
            HostEvent::TimedOut { reason: reason.clone() },
            r#"{"type":"timed-out","reason":{"kind":"run-timed-out"}}"#,
        ),
        (
            HostEvent::Cancelled { reason: reason.clone() },
            r#"{"type":"cancelled","reason":{"kind":"run-timed-out"}}"#,
        ),
        (HostEvent::NotReached { reason }, r#"{"type":"not-reached","reason":{"kind":"run-timed-out"}}"#),
        (HostEvent::Overdue { after: Duration::from_secs(7_200) }, r#"{"type":"overdue","after":"2h"}"#),
        (
            HostEvent::Skipped { reason: Reason::Unreachable },
            r#"{"type":"skipped","reason":{"kind":"unreachable"}}"#,
        ),
        (
            HostEvent::SlotGranted { group: group("edge"), provider: LockProvider::Embedded, drain: true },
            r#"{"type":"slot-granted","group":"edge","provider":"embedded","drain":true}"#,
        ),
        (HostEvent::Drained, r#"{"type":"drained"}"#),
        (
            HostEvent::BackedOff { until: start(), reason: Reason::ClusterUnseen },
            r#"{"type":"backed-off","until":"2026-11-21T01:00:00Z","reason":{"kind":"cluster-unseen"}}"#,
        ),
        (HostEvent::Recovering, r#"{"type":"recovering"}"#),
    ];
    check(&table, event_variant, 18);
    for (event, json) in &table {
        assert!(json.starts_with(&format!(r#"{{"type":"{}""#, event.name())), "{json}");
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "one table")]
fn reasons() {
    let detail = || "refused".to_owned();
    let edge = || group("edge");
    let holders = vec![NamedHolder { id: "h1".to_owned(), since: start() }];
    let full = Full { slots: 1, held: 1, holders };
    let left = HostDenied::LeftToEarlier { id: client("n1"), since: start() };
    let table = [
        (Reason::AskingForSlot { group: edge() }, r#"{"kind":"asking-for-slot","group":"edge"}"#),
        (
            Reason::SlotDenied {
                group: edge(),
                denial: Denial::External { lock_kind: "full".to_owned(), value: "no".to_owned() },
            },
            r#"{"kind":"slot-denied","group":"edge","denial":{"provider":"external","lock-kind":"full","value":"no"}}"#,
        ),
        (
            Reason::SlotDenied { group: edge(), denial: Denial::Embedded(Denied::Full(full).into()) },
            concat!(
                r#"{"kind":"slot-denied","group":"edge","denial":{"provider":"embedded","kind":"full","#,
                r#""slots":1,"held":1,"holders":[{"id":"h1","since":"2026-11-21T01:00:00Z"}]}}"#,
            ),
        ),
        (
            Reason::SlotDenied { group: edge(), denial: Denial::Embedded(left) },
            concat!(
                r#"{"kind":"slot-denied","group":"edge","denial":{"provider":"embedded","kind":"left-to-earlier","#,
                r#""id":"n1","since":"2026-11-21T01:00:00Z"}}"#,
            ),
        ),
        (
            Reason::SlotDenied {
                group: edge(),
                denial: Denial::Embedded(Denied::UnknownGroup { group: edge() }.into()),
            },
            concat!(
                r#"{"kind":"slot-denied","group":"edge","#,
                r#""denial":{"provider":"embedded","kind":"unknown-group","group":"edge"}}"#,
            ),
        ),
        (
            Reason::SlotUnreachable { group: edge(), why: NoAnswer::Failed { detail: detail() } },
            r#"{"kind":"slot-unreachable","group":"edge","why":{"kind":"failed","detail":"refused"}}"#,
        ),
        (
            Reason::SlotUnreachable { group: edge(), why: NoAnswer::NotSent { detail: detail() } },
            r#"{"kind":"slot-unreachable","group":"edge","why":{"kind":"not-sent","detail":"refused"}}"#,
        ),
        (
            Reason::SlotProtocol { group: edge(), detail: detail() },
            r#"{"kind":"slot-protocol","group":"edge","detail":"refused"}"#,
        ),
        (Reason::Unreachable, r#"{"kind":"unreachable"}"#),
        (
            Reason::WorkerError { action: Action::Upgrade, message: "oops".to_owned() },
            r#"{"kind":"worker-error","action":"upgrade","message":"oops"}"#,
        ),
        (Reason::Unhealthy { message: "oops".to_owned() }, r#"{"kind":"unhealthy","message":"oops"}"#),
        (
            Reason::NoReply { action: Action::Reboot, unreachable: false },
            r#"{"kind":"no-reply","action":"reboot"}"#,
        ),
        (
            Reason::NoReply { action: Action::Reboot, unreachable: true },
            r#"{"kind":"no-reply","action":"reboot","unreachable":true}"#,
        ),
        (Reason::NotSent { action: Action::Prepare }, r#"{"kind":"not-sent","action":"prepare"}"#),
        (Reason::RunFailed { host: host("h1") }, r#"{"kind":"run-failed","host":"h1"}"#),
        (
            Reason::RunCancelled { actor: "eve".to_owned(), reason: None },
            r#"{"kind":"run-cancelled","actor":"eve"}"#,
        ),
        (
            Reason::RunCancelled { actor: "eve".to_owned(), reason: Some("a fair".to_owned()) },
            r#"{"kind":"run-cancelled","actor":"eve","reason":"a fair"}"#,
        ),
        (Reason::RunTimedOut { waited_for: None }, r#"{"kind":"run-timed-out"}"#),
        (
            Reason::RunTimedOut {
                waited_for: Some(LastWait::HostsUnprepared { host: host("h2"), others: 1 }),
            },
            r#"{"kind":"run-timed-out","waited-for":{"kind":"hosts-unprepared","host":"h2","others":1}}"#,
        ),
        (
            Reason::RunTimedOut { waited_for: Some(LastWait::HostsPreparing { hosts: 3 }) },
            r#"{"kind":"run-timed-out","waited-for":{"kind":"hosts-preparing","hosts":3}}"#,
        ),
        (
            Reason::RunTimedOut { waited_for: Some(LastWait::HostUnderWay { host: host("h2"), others: 2 }) },
            r#"{"kind":"run-timed-out","waited-for":{"kind":"host-under-way","host":"h2","others":2}}"#,
        ),
        (
            Reason::RunTimedOut {
                waited_for: Some(LastWait::Recorded(Box::new(Reason::AskingForSlot { group: edge() }))),
            },
            r#"{"kind":"run-timed-out","waited-for":{"kind":"asking-for-slot","group":"edge"}}"#,
        ),
        (
            Reason::RunTimedOut { waited_for: Some(LastWait::NodeUndrained { waits: None }) },
            r#"{"kind":"run-timed-out","waited-for":{"kind":"node-undrained"}}"#,
        ),
        (
            Reason::RunTimedOut {
                waited_for: Some(LastWait::NodeUndrained { waits: Some(NodeWait::NotReady) }),
            },
            r#"{"kind":"run-timed-out","waited-for":{"kind":"node-undrained","waits":{"kind":"not-ready"}}}"#,
        ),
        (
            Reason::NoTimeLeft { expected: Duration::from_secs(1_200), waited_for: None },
            r#"{"kind":"no-time-left","expected":"20m"}"#,
        ),
        (
            Reason::NoTimeLeft {
                expected: Duration::from_secs(1_200),
                waited_for: Some(LastWait::HostUnderWay { host: host("h2"), others: 0 }),
            },
            r#"{"kind":"no-time-left","expected":"20m","waited-for":{"kind":"host-under-way","host":"h2"}}"#,
        ),
        (Reason::Restored { actor: "cli".to_owned() }, r#"{"kind":"restored","actor":"cli"}"#),
        (Reason::AwaitsApproval { host: host("h1") }, r#"{"kind":"awaits-approval","host":"h1"}"#),
        (
            Reason::HostDeferred { actor: "eve".to_owned(), reason: "the quarter closes".to_owned() },
            r#"{"kind":"host-deferred","actor":"eve","reason":"the quarter closes"}"#,
        ),
        (
            Reason::HostWithdrawn { actor: "eve".to_owned(), reason: "stolen".to_owned() },
            r#"{"kind":"host-withdrawn","actor":"eve","reason":"stolen"}"#,
        ),
        (Reason::BootTimeout { after: Duration::from_secs(600) }, r#"{"kind":"boot-timeout","after":"10m"}"#),
        (
            Reason::PrepareTimeout { after: Duration::from_secs(600) },
            r#"{"kind":"prepare-timeout","after":"10m"}"#,
        ),
        (
            Reason::UpgradeTimeout { after: Duration::from_secs(600) },
            r#"{"kind":"upgrade-timeout","after":"10m"}"#,
        ),
        (
            Reason::GivenUp { actor: "eve".to_owned(), reason: "no power".to_owned() },
            r#"{"kind":"given-up","actor":"eve","reason":"no power"}"#,
        ),
        (
            Reason::DrainRefused { pods: Pods { count: 3, first: Vec::new(), kubelet_silent: false } },
            r#"{"kind":"drain-refused","pods":{"count":3,"first":[]}}"#,
        ),
        (
            Reason::DrainTimedOut { after: Duration::from_secs(600), waits: Some(NodeWait::NotReady) },
            r#"{"kind":"drain-timed-out","after":"10m","waits":{"kind":"not-ready"}}"#,
        ),
        (
            Reason::DrainTimedOut { after: Duration::from_secs(600), waits: None },
            r#"{"kind":"drain-timed-out","after":"10m"}"#,
        ),
        (Reason::CordonLost { detail: detail() }, r#"{"kind":"cordon-lost","detail":"refused"}"#),
        (Reason::ApiServerUnderWay { host: host("h1") }, r#"{"kind":"api-server-under-way","host":"h1"}"#),
        (Reason::ApiServerWaits { host: host("h1") }, r#"{"kind":"api-server-waits","host":"h1"}"#),
        (Reason::ForeignMark, r#"{"kind":"foreign-mark"}"#),
        (
            missing(ConfigurationWait::Key),
            r#"{"kind":"configuration-missing","provider":"app","wait":"key"}"#,
        ),
        (
            missing(ConfigurationWait::Resumption),
            r#"{"kind":"configuration-missing","provider":"app","wait":"resumption"}"#,
        ),
        (
            missing(ConfigurationWait::Provider { failure: Some(Failure::Refused { status: 403 }) }),
            r#"{"kind":"configuration-missing","provider":"app","wait":"provider","failure":{"kind":"refused","status":403}}"#,
        ),
        (
            missing(ConfigurationWait::Host { error: Some("no such directory".to_owned()) }),
            r#"{"kind":"configuration-missing","provider":"app","wait":"host","error":"no such directory"}"#,
        ),
        (Reason::ClusterUnseen, r#"{"kind":"cluster-unseen"}"#),
        (
            Reason::Paused(paused()),
            r#"{"kind":"paused","cause":"operator","actor":"eve","reason":"the fair is on"}"#,
        ),
        (
            Reason::RebootCommandFailed { detail: "no".to_owned(), output: "x".to_owned() },
            r#"{"kind":"reboot-command-failed","detail":"no","output":"x"}"#,
        ),
        (
            Reason::RebootCommandNotStarted { detail: "no".to_owned() },
            r#"{"kind":"reboot-command-not-started","detail":"no"}"#,
        ),
        (
            Reason::RebootUnknown { detail: "a crash".to_owned(), output: String::new() },
            r#"{"kind":"reboot-unknown","detail":"a crash","output":""}"#,
        ),
        (ClockDoubt::ClockUnmeasured.into(), r#"{"kind":"clock-unmeasured"}"#),
        (ClockDoubt::ClockSkew { seconds: -31 }.into(), r#"{"kind":"clock-skew","seconds":-31}"#),
        (
            ClockDoubt::ClockDisputed { differ: 2, hosts: 3 }.into(),
            r#"{"kind":"clock-disputed","differ":2,"hosts":3}"#,
        ),
        (ClockDoubt::ClockStepped.into(), r#"{"kind":"clock-stepped"}"#),
        (
            ClockDoubt::ClockBehind { newest: start() }.into(),
            r#"{"kind":"clock-behind","newest":"2026-11-21T01:00:00Z"}"#,
        ),
    ];
    let kinds: Vec<_> = Reason::kinds().collect();
    let variant = |reason: &Reason| kinds.iter().position(|kind| *kind == reason.kind()).unwrap();
    check(&table, variant, kinds.len());
    let last_wait = |reason: &Reason| {
        let Reason::RunTimedOut { waited_for } = reason else { return None };
        waited_for.as_ref().map(|wait| match wait {
            LastWait::HostsUnprepared { .. } => 0,
            LastWait::HostUnderWay { .. } => 1,
            LastWait::NodeUndrained { .. } => 2,
            LastWait::Recorded(_) => 3,
            LastWait::HostsPreparing { .. } => 4,
        })
    };
    let seen: BTreeSet<usize> = table.iter().filter_map(|(reason, _)| last_wait(reason)).collect();
    assert_eq!(seen, (0..5).collect());
    for (reason, json) in &table {
        assert!(json.starts_with(&format!(r#"{{"kind":"{}""#, reason.kind())), "{json}");
    }
}

#[test]
fn causes() {
    let ignored = |cause: &IgnoreCause| match cause {
        IgnoreCause::Malformed { .. } => 0,
        IgnoreCause::UnknownSubject { .. } => 1,
        IgnoreCause::NothingOutstanding => 2,
        IgnoreCause::AlreadyAnswered => 3,
        IgnoreCause::TooLate { .. } => 5,
        IgnoreCause::ForeignCommand => 4,
    };
    let table = [
        (
            IgnoreCause::Malformed { detail: "not JSON".to_owned() },
            r#"{"kind":"malformed","detail":"not JSON"}"#,
        ),
        (
            IgnoreCause::UnknownSubject { subject: "x.y".to_owned() },
            r#"{"kind":"unknown-subject","subject":"x.y"}"#,
        ),
        (IgnoreCause::NothingOutstanding, r#"{"kind":"nothing-outstanding"}"#),
        (IgnoreCause::AlreadyAnswered, r#"{"kind":"already-answered"}"#),
        (IgnoreCause::ForeignCommand, r#"{"kind":"foreign-command"}"#),
        (IgnoreCause::TooLate { run: run("r1") }, r#"{"kind":"too-late","run":"r1"}"#),
    ];
    check(&table, ignored, 6);

    let stopped = |cause: &StopCause| match cause {
        StopCause::Failed { .. } => 0,
        StopCause::Cancelled { .. } => 1,
        StopCause::Restored { .. } => 2,
    };
    let table = [
        (StopCause::Failed { host: host("h1") }, r#"{"kind":"failed","host":"h1"}"#),
        (cancelled(None), r#"{"kind":"cancelled","actor":"eve"}"#),
        (StopCause::Restored { actor: "cli".to_owned() }, r#"{"kind":"restored","actor":"cli"}"#),
    ];
    check(&table, stopped, 3);

    let from = |source: &RestoreSource| match source {
        RestoreSource::Store => 0,
        RestoreSource::Backup => 1,
    };
    let table = [(RestoreSource::Store, r#""store""#), (RestoreSource::Backup, r#""backup""#)];
    check(&table, from, 2);
    for (source, json) in &table {
        assert_eq!(format!("{:?}", source.as_str()), *json);
    }

    let released = |cause: &ReleaseCause| match cause {
        ReleaseCause::Upgraded => 0,
        ReleaseCause::Failed => 1,
        ReleaseCause::NeverSent => 2,
        ReleaseCause::NotNeeded => 3,
        ReleaseCause::LateDone => 4,
        ReleaseCause::Operator => 5,
        ReleaseCause::Rebooted => 6,
        ReleaseCause::DrainGivenUp => 7,
    };
    let table = [
        (ReleaseCause::Upgraded, r#""upgraded""#),
        (ReleaseCause::Failed, r#""failed""#),
        (ReleaseCause::NeverSent, r#""never-sent""#),
        (ReleaseCause::NotNeeded, r#""not-needed""#),
        (ReleaseCause::LateDone, r#""late-done""#),
        (ReleaseCause::Operator, r#""operator""#),
        (ReleaseCause::Rebooted, r#""rebooted""#),
        (ReleaseCause::DrainGivenUp, r#""drain-given-up""#),
    ];
    check(&table, released, 8);
    for (cause, json) in &table {
        assert_eq!(format!("{:?}", cause.as_str()), *json);
    }
}

#[test]
fn words() {
    let result = |result: &RunResult| match result {
        RunResult::Completed => 0,
        RunResult::Failed => 1,
        RunResult::TimedOut => 2,
        RunResult::Cancelled => 3,
    };
    let table = [
        (RunResult::Completed, r#""completed""#),
        (RunResult::Failed, r#""failed""#),
        (RunResult::TimedOut, r#""timed-out""#),
        (RunResult::Cancelled, r#""cancelled""#),
    ];
    check(&table, result, RunResult::ALL.len());
    for (result, json) in &table {
        assert_eq!(format!("{:?}", result.as_str()), *json);
    }

    let slot_state = |state: &SlotState| match state {
        SlotState::Requested => 0,
        SlotState::Held => 1,
        SlotState::Releasing { .. } => 2,
    };
    let table = [
        (SlotState::Requested, r#""requested""#),
        (SlotState::Held, r#""held""#),
        (SlotState::Releasing { why: ReleaseCause::Failed }, r#"{"releasing":{"why":"failed"}}"#),
    ];
    check(&table, slot_state, 3);

    let refusal = |refusal: &LockRefusal| match refusal {
        LockRefusal::Denied { .. } => 0,
        LockRefusal::Unreachable { .. } => 1,
        LockRefusal::Protocol { .. } => 2,
    };
    let text = || "no".to_owned();
    let table = [
        (
            LockRefusal::Denied { lock_kind: text(), value: text() },
            r#"{"kind":"denied","lock-kind":"no","value":"no"}"#,
        ),
        (
            LockRefusal::Unreachable { why: NoAnswer::TimedOut },
            r#"{"kind":"unreachable","why":{"kind":"timed-out"}}"#,
        ),
        (LockRefusal::Protocol { detail: text() }, r#"{"kind":"protocol","detail":"no"}"#),
    ];
    check(&table, refusal, 3);

    let phase = |phase: &Phase| match phase {
        Phase::Preparing => 0,
        Phase::Upgrading => 1,
    };
    check(&[(Phase::Preparing, r#""preparing""#), (Phase::Upgrading, r#""upgrading""#)], phase, 2);

    let statuses = HostStatus::ALL.map(|status| (status, format!("{:?}", status.as_str())));
    let table: Vec<_> = statuses.iter().map(|(status, json)| (*status, json.as_str())).collect();
    check(&table, |status| *status as usize, HostStatus::ALL.len());
}

#[test]
fn records_and_snapshots() {
    let record = Record {
        at: start(),
        control: 12,
        facts: vec![Fact::Control(ControlFact::FencePassed { sequence: 7 })],
    };
    let json = r#"{"at":"2026-11-21T01:00:00Z","control":12,"facts":[{"type":"fence-passed","sequence":7}]}"#;
    check(&[(record, json)], |_| 0, 1);

    // Holders of a slot: a host of a run, an external client, both under one name.
    let holder = |run: Option<&str>, client| Holder {
        since: start(),
        owner: run.map(|run| common::run(run).into()),
        client,
        hold: None,
    };
    let hold = Hold { actor: "eve".to_owned(), reason: "a new disk".to_owned(), since: start() };
    let table = [
        (holder(Some("r1"), false), r#"{"since":"2026-11-21T01:00:00Z","run":"r1"}"#),
        (holder(None, true), r#"{"since":"2026-11-21T01:00:00Z","run":null,"client":true}"#),
        (holder(Some("r1"), true), r#"{"since":"2026-11-21T01:00:00Z","run":"r1","client":true}"#),
        (
            Holder { hold: Some(hold), ..holder(None, false) },
            concat!(
                r#"{"since":"2026-11-21T01:00:00Z","run":null,"#,
                r#""hold":{"actor":"eve","reason":"a new disk","since":"2026-11-21T01:00:00Z"}}"#,
            ),
        ),
    ];
    check(&table, |_| 0, 1);

    // A site with a busy state: a newer program must read whatever an older one wrote.
    let mut site = common::Site::ready(&["h1", "h2"]);
    let story = [
        "trigger r1",
        "deliver",
        "reply h1 prepare done",
        "reply h2 prepare no",
        "settings embedded default:2",
        "put-config debian rollout/max-concurrent=2",
        "trigger r2",
        "deliver",
        "reply h1 prepare done",
        "reply h2 prepare done",
        "sent h1 upgrade",
        "cancel",
        "settings external",
        "wait 15000",
        "tick",
        "trigger r3",
        "deliver",
        "reply h1 prepare done",
        "approve h1 h3 h4",
        "withdraw h3 why=stolen",
    ];
    for line in story {
        common::script::perform(&mut site, line);
    }
    common::expect_file("format/state.json", |json| {
        let written = serde_json::to_string_pretty(&site.state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&written).unwrap(), site.state);
        let written = common::defaults::leave_out_lines(&written);
        if json == format!("{written}\n") {
            assert_eq!(read::<State>(json.as_bytes()).unwrap(), site.state);
        }
        let value = serde_json::to_value(&site.state).unwrap();
        check_words("State", &value);
        for more in with_unknown_fields(&value) {
            let more = more.to_string();
            assert!(read::<State>(more.as_bytes()).is_err(), "{more}");
        }
        written + "\n"
    });
}
