//! Going on from what was kept outside the bus: what was under way is given up, and what may be held is.

use std::sync::Arc;

use os_upgrade_kernel::slot::SentCommand;
use os_upgrade_kernel::{
    Effect, Fact, HostStatus, LockProvider, OnFailure, Outstanding, Record, Restoration, RestoreSource,
    RunResult, Standing, State, StopCause, effects, restoration,
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
    Outstanding { host: host(name), group: group("default"), run: run("r1"), action, sequence }
}

/// h1 is through, h2 is being upgraded, h3 waits, and nobody has prepared h4.
fn in_the_middle() -> Site {
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
fn the_active_run_fails_and_slots_that_may_be_held_stay() {
    let site = in_the_middle();
    assert_eq!(site.state.slots.keys().collect::<Vec<_>>(), [&host("h2")]);
    let after = restored(&site.state, false, Vec::new());
    let ended = after.last_run.as_ref().unwrap();
    assert_eq!(after.run, None);
    assert_eq!(ended.ended.unwrap().result, RunResult::Failed);
    assert_eq!(ended.stopping, Some(StopCause::Restored { actor: "op".to_owned() }));
    let statuses: Vec<_> = ended.hosts().values().map(|host| host.status).collect();
    assert_eq!(statuses, [HostStatus::Upgraded, HostStatus::Failed, HostStatus::Cancelled]);
    let slot = after.slots.get(&host("h2")).unwrap();
    assert_eq!((slot.standing, slot.begun, slot.unsent_at_fence), (Standing::Held, true, None));
    assert_eq!(slot.command.map(|command| command.action), Some(Action::Upgrade));
    assert!(after.semaphores.get(&group("default")).unwrap().holders.contains_key("h2"));
    assert_eq!((after.fence.clone(), after.control), (None, 100));
    assert_eq!(effects(&after).collect::<Vec<_>>(), [], "nothing is under way any more");
    // A site where nothing is under way loses nothing by it.
    let quiet = restored(&after, false, Vec::new());
    assert_eq!(quiet, after);
}

#[test]
fn a_slot_is_not_given_back_because_no_command_was_seen() {
    let mut site = in_the_middle();
    // The command for h2 has been decided and not been seen: in the part that is lost, it may have been.
    perform(&mut site, "settings embedded default:2");
    let granted: Vec<_> = site.state.run.as_ref().unwrap().unsent().iter().cloned().collect();
    let after = restored(&site.state, false, Vec::new());
    for name in granted {
        let slot = after.slots.get(&name).unwrap();
        assert_eq!((slot.standing, slot.unsent_at_fence), (Standing::Held, None), "{name}");
    }
    // Neither a new fence nor time changes that, whatever the setting for failures.
    for policy in [OnFailure::Hold, OnFailure::Release] {
        let mut later = Site { state: after.clone(), ..in_the_middle() };
        Arc::make_mut(&mut later.state.settings).on_failure = policy;
        for line in ["wait 100000", "tick"] {
            perform(&mut later, line);
        }
        assert_eq!(later.state.slots, after.slots);
    }
}

#[test]
fn a_slot_that_was_asked_for_may_have_been_granted() {
    let mut site = Site::ready(&["h1", "h2"]);
    for line in
        ["settings external", "trigger r1", "deliver", "reply h1 prepare done", "reply h2 prepare done"]
    {
        perform(&mut site, line);
    }
    assert_eq!(site.state.slots.get(&host("h1")).unwrap().standing, Standing::Requested);
    let after = restored(&site.state, false, Vec::new());
    let slot = after.slots.get(&host("h1")).unwrap();
    assert_eq!((slot.standing, slot.provider), (Standing::Held, LockProvider::External));
    assert_eq!(effects(&after).collect::<Vec<_>>(), [], "nor is it given back");
}

#[test]
fn unknown_commands_hold_slots_and_are_retracted() {
    let site = in_the_middle();
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
fn the_fact_is_the_last_of_its_record() {
    let state = in_the_middle().state;
    let actor = "op".to_owned();
    let of =
        Restoration { source: RestoreSource::Backup, actor, control_kept: true, outstanding: Vec::new() };
    let facts = restoration(&state, of);
    let names: Vec<_> = facts.iter().map(Fact::name).collect();
    assert_eq!(names, ["host", "host", "run-stopping", "run-ended", "restored"]);
}
