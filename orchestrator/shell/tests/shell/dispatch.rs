//! Dispatch: a command that was cancelled while it waited is not sent.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_kernel::config::Rollout;
use os_upgrade_kernel::fact::{ControlFact, QueueFact, RunFact};
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::{
    CommandOrder, Enlisted, Fact, HostEvent, Job, LockProvider, Reason, Record, State, System, Trigger,
};
use os_upgrade_protocol::{ApplicationName, GroupName, HostName, RunId};
use os_upgrade_shell::clock::Now;
use os_upgrade_shell::dispatch::{Dispatch, DispatchSettings, Dispatcher, Leader, PublishOutcome};
use os_upgrade_shell::jobs::{StartedJob, SystemLimits};

const NOW: Now = Now { wall: DateTime::UNIX_EPOCH, monotonic: Duration::from_secs(100) };

fn host(name: &str) -> HostName {
    HostName::new(name).unwrap()
}

/// Folds `facts` and reports them to the dispatcher as committed.
fn commit(state: &mut State, dispatcher: &mut Dispatcher, facts: Vec<Fact>) {
    let record = Record { at: NOW.wall, control: 0, facts };
    state.apply_record(&record).unwrap();
    dispatcher.committed(&record);
}

fn begin_due(state: &State, dispatcher: &mut Dispatcher) -> Vec<Dispatch> {
    let leased_until = NOW.monotonic + Duration::from_secs(6);
    let leader = Leader { state, decided: None, leased_until, is_time_trusted: true };
    dispatcher.begin_due(&leader, NOW)
}

/// The one command that begins now, if any; its publish is answered as stored.
fn sent(state: &State, dispatcher: &mut Dispatcher) -> Option<String> {
    let begun = begin_due(state, dispatcher);
    let [Dispatch::Command { epoch, order, .. }] = &begun[..] else {
        assert_eq!(begun, []);
        return None;
    };
    dispatcher.command_published(NOW, *epoch, order.clone(), PublishOutcome::Stored);
    Some(order.id.to_string())
}

/// The state that a new leader finds may say that its predecessor's command is being run. It has ended.
#[test]
fn command_of_a_predecessor_is_not_run_again() {
    let at_once = SystemLimits::at_intervals(Duration::from_secs(10), Duration::ZERO);
    let systems = BTreeMap::from([(System::RebootCommand, at_once)]);
    let mut dispatcher = Dispatcher::new(DispatchSettings { publishes_max: 1, systems }, "b");
    let mut state = State::default();
    let event = |event| Fact::Queue(QueueFact::Reboot { index: 0, host: host("h1"), event });
    let started = EntryEvent::Started {
        group: GroupName::new("default").unwrap(),
        provider: LockProvider::Embedded,
        drain: false,
    };
    let due = EntryEvent::AttemptDue { node: "h1".to_owned(), boot_id: Some("one".to_owned()) };
    let queued = Fact::Queue(QueueFact::RebootsQueued {
        hosts: vec![host("h1")],
        actor: "eve".to_owned(),
        reason: None,
        window: None,
    });
    let fenced =
        |sequence, leader: &str| Fact::Control(ControlFact::Fenced { sequence, leader: leader.to_owned() });
    let passed = |sequence| Fact::Control(ControlFact::FencePassed { sequence });
    let facts =
        vec![fenced(1, "a"), passed(1), queued, event(started), event(due), event(EntryEvent::AttemptBegan)];
    commit(&mut state, &mut dispatcher, facts);

    dispatcher.begin_leadership(NOW);
    let begun = begin_due(&state, &mut dispatcher);
    let [Dispatch::Fence { epoch }] = begun[..] else { panic!("{begun:?}") };
    assert_eq!(dispatcher.fence_published(NOW, epoch, Some(2)), Some(2));
    assert_eq!(begin_due(&state, &mut dispatcher), []);
    let reason = Reason::RebootUnknown { detail: "a crash".to_owned(), output: String::new() };
    let unknown = event(EntryEvent::AttemptUnknown { reason });
    commit(&mut state, &mut dispatcher, vec![unknown, fenced(2, "b"), passed(2)]);
    assert_eq!(begin_due(&state, &mut dispatcher), []);

    // Its own one it runs, once.
    let due = EntryEvent::AttemptDue { node: "h1".to_owned(), boot_id: Some("one".to_owned()) };
    commit(&mut state, &mut dispatcher, vec![event(due), event(EntryEvent::AttemptBegan)]);
    let begun = begin_due(&state, &mut dispatcher);
    let [Dispatch::Job(StartedJob { job: Job::RebootCommand(job), .. })] = &begun[..] else {
        panic!("{begun:?}")
    };
    assert_eq!(job.order, CommandOrder::Reboot { attempt: 2 });
    assert_eq!(begin_due(&state, &mut dispatcher), []);
}

#[test]
fn withdrawn_host_gets_no_command() {
    let settings = DispatchSettings { publishes_max: 1, systems: BTreeMap::new() };
    let mut dispatcher = Dispatcher::new(settings, "a");
    let mut state = State::default();
    let run = RunId::new("r1").unwrap();
    let enlisted = ["h1", "h2", "h3"].map(|name| Enlisted {
        host: host(name),
        application: ApplicationName::new("debian").unwrap(),
        group: GroupName::new("default").unwrap(),
        skipped: None,
        unheard: false,
    });
    let not_after: DateTime<Utc> = NOW.wall + TimeDelta::hours(1);
    let started = Fact::Run(RunFact::Started {
        run: run.clone(),
        trigger: Trigger::Operator { actor: "eve".to_owned(), reason: None, targeted: false },
        not_after,
        rollout: Rollout::default(),
        hosts: enlisted.to_vec(),
    });
    let fenced = Fact::Control(ControlFact::Fenced { sequence: 1, leader: "a".to_owned() });
    dispatcher.begin_leadership(NOW);
    let fence = begin_due(&state, &mut dispatcher);
    let [Dispatch::Fence { epoch }] = fence[..] else { panic!("{fence:?}") };
    assert_eq!(dispatcher.fence_published(NOW, epoch, Some(1)), Some(1));
    commit(
        &mut state,
        &mut dispatcher,
        vec![started, fenced, Fact::Control(ControlFact::FencePassed { sequence: 1 })],
    );

    assert_eq!(sent(&state, &mut dispatcher).as_deref(), Some("r1/h1/prepare/1"));
    let reason = Reason::HostWithdrawn { actor: "eve".to_owned(), reason: "stolen".to_owned() };
    let cancelled = Fact::of_host(&run, &host("h2"), HostEvent::Cancelled { reason });
    commit(&mut state, &mut dispatcher, vec![cancelled]);
    assert_eq!(sent(&state, &mut dispatcher).as_deref(), Some("r1/h3/prepare/1"));
    assert_eq!(sent(&state, &mut dispatcher), None);
}
