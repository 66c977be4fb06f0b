//! What silence means: how long an agent may be silent, how many may be, and what a report proves.

use std::time::Duration;

use os_upgrade_kernel::slot::{ReleaseCause, SlotFact};
use os_upgrade_kernel::unit::{Closed, UnitFact};
use os_upgrade_kernel::{
    AgentSeen, Batch, Config, ConfigOperation, Configures, Effect, Expected, Fact, HostStatus, InReplyTo,
    Input, LockOutcome, RunOperation, SeenHost, SlotOrder, SlotState, State, Targets, sends,
};
use os_upgrade_protocol::{HostKey, Outcome};
use os_upgrade_scheduler::{Silence, UnitState};
use serde_json::json;

use super::machines::{closed, lost, set_slot, silence};
use super::{launch, machine, obey, publish, request, site, stopped, tick, want};
use crate::common::{APPLICATION, Site, application, host, run, slot_done};

/// What the silence of h`number` means.
fn silence_of(site: &Site, number: usize) -> Option<Silence> {
    site.state.silences(&site.view).remove(&machine(number))
}

/// Those that are lost already count: the third of four is one of a mass.
#[test]
fn machines_that_fall_silent_in_turn_are_a_mass() {
    let mut site = site(4);
    for name in ["h1", "h2", "h3", "h4"] {
        silence(&mut site, name, 0);
    }
    silence(&mut site, "h1", 30);
    assert_eq!(tick(&mut site), [lost("h1")]);
    silence(&mut site, "h1", 60);
    silence(&mut site, "h2", 30);
    assert_eq!(tick(&mut site), [lost("h2")]);
    silence(&mut site, "h2", 60);
    silence(&mut site, "h3", 30);
    assert_eq!(tick(&mut site), []);
    assert_eq!(silence_of(&site, 3), Some(Silence::Mass { silent: 3, reachable: 4 }));

    // Of lost ones that it has never heard a new leader knows only that.
    for name in ["h1", "h2"] {
        let silent_for = Duration::from_secs(30);
        site.view.agents.insert(host(name), AgentSeen { silent_for, is_heard: false });
    }
    assert_eq!(silence_of(&site, 1), None);
    assert_eq!(tick(&mut site), [lost("h3")]);
}

/// Both applications write the one report of the host, and only the agent knows what runs there.
#[test]
fn reports_of_two_applications_prove_nothing() {
    type Change = fn(&mut SeenHost);
    let cases: [(&str, Change); 3] = [
        ("another one takes configuration", |seen| {
            let key = HostKey::new([1; 32]);
            seen.configures = Some(Configures { application: application("other"), key });
        }),
        ("the agent takes configuration, and so does another one", |seen| {
            let key = HostKey::new([1; 32]);
            seen.configures = Some(Configures { application: application("agent"), key });
            seen.configures_refused.insert(application("other"));
        }),
        ("another one runs units", |seen| {
            seen.runs_units_refused.insert(application("other"));
        }),
    ];
    for (case, change) in cases {
        let mut site = site(1);
        launch(&mut site, "a.service", "");
        tick(&mut site);
        publish(&mut site);
        obey(&mut site, "h1");
        let alone = site.view.hosts[&host("h1")].clone();
        change(site.view.hosts.get_mut(&host("h1")).unwrap());
        // It may announce a key now.
        tick(&mut site);
        want(&mut site, "a.service", UnitState::Inactive);
        obey(&mut site, "h1");
        assert_eq!(tick(&mut site), [], "{case}");
        assert_eq!(closed(&site, "h1"), Some(Closed::OtherId { announced: None }), "{case}");
        site.view.hosts.insert(host("h1"), alone);
        assert_eq!(tick(&mut site), [stopped("a.service", "h1")], "{case}");
    }
}

#[test]
fn hosts_that_are_upgraded_may_be_silent_for_longer() {
    let mut site = site(3);
    set_slot(&mut site, SlotState::Requested);
    silence(&mut site, "h1", 30);
    assert_eq!(silence_of(&site, 1), Some(Silence::Lost), "it may wait for its slot for long");
    for state in [SlotState::Held, SlotState::Releasing { why: ReleaseCause::Upgraded }] {
        set_slot(&mut site, state);
        silence(&mut site, "h1", 30 * 60);
        assert_eq!(silence_of(&site, 1), Some(Silence::Quiet), "{state:?}");
        silence(&mut site, "h1", 31 * 60);
        assert_eq!(silence_of(&site, 1), Some(Silence::Lost), "{state:?}");
    }
}

/// As long as a step may take at its stage, and what any agent may be silent for.
#[test]
fn each_stage_has_its_own_grace() {
    let mut site = site(2);
    let rollout = json!({"upgrade-timeout": "50m", "boot-timeout": "20m"});
    let config = json!({"worker-applications": [{"name": APPLICATION}], "rollout": rollout});
    let config: Config = serde_json::from_value(config).unwrap();
    request(&mut site, ConfigOperation::Put { config: config.into(), expected: Expected::Anything }).unwrap();
    let targets = Targets::default();
    let trigger = RunOperation::Trigger { run: run("r1"), timeout: None, targets, reason: None };
    request(&mut site, trigger).unwrap();
    let status = |site: &Site| site.state.run.as_ref().unwrap().host(&host("h1")).unwrap().status;
    while status(&site) != HostStatus::Upgrading {
        let order = sends(&site.state).find_map(|it| if let Effect::Send(it) = it { Some(it) } else { None });
        let id = order.unwrap().id;
        site.command(id.clone());
        let in_reply_to = InReplyTo { sequence: Some(site.last_sequence), run: None };
        site.reply(id.host.as_str(), id.action, Outcome::Done, in_reply_to);
    }
    let upgrading = serde_json::to_string(&site.state).unwrap();
    for (status, minutes) in [("draining", 10), ("upgrading", 50), ("rebooting", 20), ("recovering", 10)] {
        let json = upgrading.replace(r#""status":"upgrading""#, &format!(r#""status":"{status}""#));
        let state: State = serde_json::from_str(&json).unwrap();
        let expected = Duration::from_secs(30 + minutes * 60);
        assert_eq!(state.agent_grace(&host("h1")), expected, "{status}");
        assert_eq!(state.agent_grace(&host("h2")), Duration::from_secs(30), "it waits for a slot");
    }
}

/// Until the release is committed, the silence up to then was allowed; after that the shell counts it anew.
#[test]
fn silence_up_to_a_release_is_no_loss() {
    let mut site = site(3);
    set_slot(&mut site, SlotState::Releasing { why: ReleaseCause::Upgraded });
    silence(&mut site, "h1", 10 * 60);
    let decide = |state: &State, inputs: &[Input]| {
        let mut batch = Batch::new(state, site.now);
        for input in inputs {
            batch.decide(&site.view, input);
        }
        batch.finish()
    };
    let is_loss = |fact: &Fact| matches!(fact, Fact::Unit(UnitFact::MachineLost { .. }));
    let released = slot_done(SlotOrder::Unlock, host("h1"), LockOutcome::Granted);
    let (record, after) = decide(&site.state, &[released, Input::Tick]);
    let is_release = |fact: &Fact| matches!(fact, Fact::Slot(SlotFact::Released { .. }));
    assert!(record.facts.iter().any(is_release), "{record:?}");
    assert!(!record.facts.iter().any(is_loss), "{record:?}");
    assert!(after.agent_grace(&host("h1")) < site.state.agent_grace(&host("h1")));
    let (record, _) = decide(&after, &[Input::Tick]);
    assert!(record.facts.iter().any(is_loss), "{record:?}");
}
