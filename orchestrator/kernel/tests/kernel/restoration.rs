//! Restoration: the active run ends, and every slot that may be held is held.

use std::sync::Arc;

use os_upgrade_kernel::control::SentCommand;
use os_upgrade_kernel::{
    Effect, Fact, HostStatus, LockProvider, OnFailure, Outstanding, Record, Restoration, RestoreSource,
    RunResult, SlotState, State, StopCause, effects, restoration,
};
use os_upgrade_protocol::Action;

use crate::common::{Site, group, host, run, script::perform, start};

fn restored(state: &State, control_kept: bool, outstanding: Vec<Outstanding>) -> State {
    let actor = "op".to_owned();
    let facts =
        restoration(state, Restoration { source: RestoreSource::Store, actor, control_kept, outstanding });
    let mut after = state.clone();
    after.apply_record(&Record { at: start(), control: 100, facts }).unwrap();
    after
}

fn outstanding(name: &str, action: Action, sequence: u64) -> Outstanding {
    Outstanding { host: host(name), group: group("default"), owner: run("r1").into(), action, sequence }
}

/// A site with an active run: h1 is upgraded, h2 is being upgraded, h3 waits, and h4 does not exist.
fn mid_run() -> Site {
    let mut site = Site::ready(&["h1", "h2", "h3"]);
    for line in [
        "trigger r1",
        "deliver",
        "reply h1 prepare done",
        "reply h2 prepare done",
        "reply h3 prepare done",
        "deliver",
        "reply h1 upgrade done",
        "deliver",
    ] {
        perform(&mut site, line);
    }
    site
}

#[test]
fn active_run_fails_and_slots_stay() {
    let site = mid_run();
    assert_eq!(site.state.slots.keys().collect::<Vec<_>>(), [&host("h2")]);
    let after = restored(&site.state, false, Vec::new());
    let ended = after.last_run.as_ref().unwrap();
    assert_eq!(after.run, None);
    assert_eq!(ended.ended.unwrap().result, RunResult::Failed);
    assert_eq!(ended.stopping, Some(StopCause::Restored { actor: "op".to_owned() }));
    let statuses: Vec<_> = ended.hosts().values().map(|host| host.status).collect();
    assert_eq!(statuses, [HostStatus::Upgraded, HostStatus::Failed, HostStatus::Cancelled]);
    let slot = after.slots.get(&host("h2")).unwrap();
    assert_eq!((slot.state, slot.begun, slot.unsent_at_fence), (SlotState::Held, true, None));
    assert_eq!(slot.command.map(|command| command.action), Some(Action::Upgrade));
    assert!(after.semaphores.get(&group("default")).unwrap().holders.contains_key("h2"));
    assert_eq!((after.fence.clone(), after.control), (None, 100));
    assert_eq!(effects(&after).collect::<Vec<_>>(), [], "nothing is under way");
    // A site where nothing is under way does not change.
    let quiet = restored(&after, false, Vec::new());
    assert_eq!(quiet.restored, after.restored + 1, "of two restorations the later one is newer");
    assert_eq!(State { restored: after.restored, ..quiet }, after);
}

#[test]
fn unseen_commands_do_not_release_slots() {
    let mut site = mid_run();
    // The command for h2 is decided and has not been seen: it may be in the part that is lost.
    perform(&mut site, "settings embedded default:2");
    let granted: Vec<_> = site.state.run.as_ref().unwrap().unsent().iter().cloned().collect();
    let after = restored(&site.state, false, Vec::new());
    for name in granted {
        let slot = after.slots.get(&name).unwrap();
        assert_eq!((slot.state, slot.unsent_at_fence), (SlotState::Held, None), "{name}");
    }
    // Neither a new fence nor time changes that, whatever `on-failure` says.
    for policy in [OnFailure::Hold, OnFailure::Release] {
        let mut later = Site { state: after.clone(), ..mid_run() };
        Arc::make_mut(&mut later.state.settings).on_failure = policy;
        for line in ["wait 100000", "tick"] {
            perform(&mut later, line);
        }
        assert_eq!(later.state.slots, after.slots);
    }
}

#[test]
fn requested_slots_count_as_held() {
    let mut site = Site::ready(&["h1", "h2"]);
    for line in
        ["settings external", "trigger r1", "deliver", "reply h1 prepare done", "reply h2 prepare done"]
    {
        perform(&mut site, line);
    }
    assert_eq!(site.state.slots.get(&host("h1")).unwrap().state, SlotState::Requested);
    let after = restored(&site.state, false, Vec::new());
    let slot = after.slots.get(&host("h1")).unwrap();
    assert_eq!((slot.state, slot.provider), (SlotState::Held, LockProvider::External));
    assert_eq!(effects(&after).collect::<Vec<_>>(), [], "it is not released either");
}

#[test]
fn unknown_commands_hold_slots_and_are_retracted() {
    let site = mid_run();
    let commands = vec![
        outstanding("h3", Action::Reboot, 90),
        outstanding("h4", Action::Prepare, 91),
        outstanding("h2", Action::Upgrade, 92),
    ];
    for kept in [true, false] {
        let after = restored(&site.state, kept, commands.clone());
        assert_eq!(after.slots.keys().collect::<Vec<_>>(), [&host("h2"), &host("h3")]);
        let command = |name: &str| after.slots.get(&host(name)).unwrap().command;
        assert_eq!(command("h3"), Some(SentCommand { action: Action::Reboot, sequence: 90 }));
        assert_eq!(command("h2"), Some(SentCommand { action: Action::Upgrade, sequence: 92 }));
        assert_eq!(after.semaphores.get(&group("default")).unwrap().holders.len(), 2);
        let expected: Vec<_> = commands
            .iter()
            .filter(|_| kept)
            .map(|command| Effect::Retract { host: command.host.clone(), sequence: command.sequence })
            .collect();
        assert_eq!(effects(&after).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn restored_is_the_last_fact() {
    let state = mid_run().state;
    let actor = "op".to_owned();
    let from_backup =
        Restoration { source: RestoreSource::Backup, actor, control_kept: true, outstanding: Vec::new() };
    let facts = restoration(&state, from_backup);
    let names: Vec<_> = facts.iter().map(Fact::name).collect();
    assert_eq!(names, ["host", "host", "run-stopping", "run-ended", "site-paused", "restored"]);
}
