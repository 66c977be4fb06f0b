//! Which hosts are machines, which are lost, and which get no further unit.

use std::sync::Arc;
use std::time::Duration;

use os_upgrade_kernel::fact::{ConfigFact, UnitFact};
use os_upgrade_kernel::unit::{Closed, TakenAway};
use os_upgrade_kernel::{
    Admission, AgentSeen, Answer, EnrolmentOperation, EnrolmentRefusal, Fact, LockProvider, MachineOffer,
    PauseOperation, Refusal, Settings, Slot, SlotState, dry_run,
};
use os_upgrade_protocol::limits::UNITS_MAX;
use os_upgrade_protocol::{Applied, HostName};
use os_upgrade_scheduler::UnitState;

use super::{announce, launch, machine, obey, placed, publish, put, request, site, taken, tick, told, unit};
use crate::common::{Site, group, host, restore, run, settings};

/// What a host announces.
fn offer(site: &Site, name: &str) -> MachineOffer {
    let seen = &site.view.hosts[&host(name)];
    let id = seen.machine_id.as_deref().unwrap().parse().unwrap();
    MachineOffer {
        id,
        metadata: seen.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
    }
}

fn approve_shown(site: &mut Site, shown: &[(&str, MachineOffer)]) -> Answer {
    let hosts: Vec<HostName> = shown.iter().map(|(name, _)| host(name)).collect();
    let machines = shown.iter().map(|(name, offer)| (host(name), offer.clone())).collect();
    request(site, EnrolmentOperation::Approve { hosts, keys: [].into(), machines })
}

/// An operator approves what hosts announce.
pub(super) fn approve(site: &mut Site, names: &[&str]) -> Answer {
    let shown: Vec<_> = names.iter().map(|name| (*name, offer(site, name))).collect();
    approve_shown(site, &shown)
}

/// h1 has a slot of a lock server.
fn hold_slot(site: &mut Site) {
    set_slot(site, SlotState::Held);
}

/// The slot of h1 at a lock server is in this state.
pub(super) fn set_slot(site: &mut Site, state: SlotState) {
    let slot = Slot {
        group: group("default"),
        provider: LockProvider::External,
        state,
        since: site.now,
        held_since: None,
        refusal: None,
        in_doubt: false,
        unlocked_at: None,
        owner: run("r1").into(),
        command: None,
        begun: false,
        failed: false,
        unsent_at_fence: None,
    };
    site.state.slots.insert(host("h1"), slot);
}

/// Why a host gets no further unit.
pub(super) fn closed(site: &Site, name: &str) -> Option<Closed> {
    site.state.closed_machines(&site.view).remove(&host(name))
}

/// Hosts are approved by operators alone.
fn approve_by_hand(site: &mut Site) {
    let settings = Settings { auto_approve: false, ..settings() };
    site.state.apply(site.now, &Fact::Config(ConfigFact::SettingsAdopted { settings })).unwrap();
}

/// The agent of a host is silent.
pub(super) fn silence(site: &mut Site, name: &str, secs: u64) {
    site.view.agents.insert(host(name), AgentSeen { silent_for: Duration::from_secs(secs), is_heard: true });
}

pub(super) fn lost(name: &str) -> UnitFact {
    UnitFact::MachineLost { host: host(name) }
}

#[test]
fn machines_are_what_operators_have_seen() {
    let mut site = site(2);
    approve_by_hand(&mut site);
    site.view.hosts.insert(host("h3"), crate::common::seen(None));
    announce(&mut site, 3, 3);
    assert_eq!(tick(&mut site), [], "nobody has approved it");
    assert_eq!(site.state.admission(&site.view, &host("h3")), Some(Admission::Waiting(offer(&site, "h3"))));

    let shown = offer(&site, "h3");
    let refused = |refusal| Err(Refusal::Enrolment(refusal));
    site.view.hosts.get_mut(&host("h3")).unwrap().labels.insert("role".to_owned(), "vault".to_owned());
    let announced = Some(offer(&site, "h3"));
    let changed = EnrolmentRefusal::MachineChanged { host: host("h3"), announced };
    assert_eq!(approve_shown(&mut site, &[("h3", shown)]), refused(changed));
    announce(&mut site, 3, 1);
    let taken = EnrolmentRefusal::MachineTaken { host: host("h3"), machine: machine(1), by: host("h1") };
    assert_eq!(approve(&mut site, &["h3"]), refused(taken));
    let by = host("h1");
    assert_eq!(
        site.state.admission(&site.view, &host("h3")),
        Some(Admission::Taken { id: machine(1), by: &by })
    );
    let contested = site.state.contested_machines(&site.view);
    assert_eq!(contested[&machine(1)].len(), 2);

    announce(&mut site, 3, 3);
    approve(&mut site, &["h3"]).unwrap();
    assert_eq!(site.state.units.machines[&host("h3")].metadata["role"], "vault");
    assert_eq!(site.state.admission(&site.view, &host("h3")), Some(Admission::Joined));
}

/// The first host with an id becomes the machine; the other one is shown.
#[test]
fn no_two_hosts_are_one_machine() {
    let mut site = Site::ready(&["h1", "h2"]);
    announce(&mut site, 1, 7);
    announce(&mut site, 2, 7);
    tick(&mut site);
    assert_eq!(site.state.units.machines.keys().collect::<Vec<_>>(), [&host("h1")]);
    assert_eq!(site.state.contested_machines(&site.view).len(), 1);
}

#[test]
fn units_of_lost_machines_go_elsewhere() {
    let mut site = site(3);
    launch(&mut site, "a.service", "");
    tick(&mut site);
    publish(&mut site);
    obey(&mut site, "h1");
    silence(&mut site, "h1", 0);
    assert_eq!(tick(&mut site), []);
    silence(&mut site, "h1", 30);
    let expected = [lost("h1"), taken("a.service", "h1", TakenAway::MachineLost), placed("a.service", "h2")];
    assert_eq!(tick(&mut site), expected);
    assert_eq!((told(&site, "h1").len(), told(&site, "h2").len()), (0, 1));
    silence(&mut site, "h1", 0);
    publish(&mut site);
    assert_eq!(tick(&mut site), [], "its report is as old as before");
    let mut report = Applied::clone(&site.view.applied[&host("h1")]);
    report.revision = site.state.desired_revision(&host("h1"));
    site.view.applied.insert(host("h1"), Arc::new(report));
    assert_eq!(tick(&mut site), [], "it follows the manifest without the unit, and has not stopped that");
    obey(&mut site, "h1");
    assert_eq!(tick(&mut site), [UnitFact::MachineFound { host: host("h1") }], "nothing moves back");
}

/// Whatever keeps the leader from hearing most machines says little about these.
#[test]
fn mass_silence_moves_nothing() {
    let mut site = site(3);
    launch(&mut site, "a.service", "");
    tick(&mut site);
    for name in ["h1", "h2"] {
        silence(&mut site, name, 60);
    }
    assert_eq!(tick(&mut site), []);
    assert_eq!(closed(&site, "h1"), Some(Closed::Silent));
    silence(&mut site, "h2", 0);
    assert_eq!(tick(&mut site)[0], lost("h1"));
}

/// h1 has as many units as a machine may have.
fn fill(site: &mut Site) {
    for number in 0..UNITS_MAX {
        let (name, contents, actor) = (unit(&format!("f{number}.service")), String::new(), "eve".to_owned());
        let desired = UnitState::Launched;
        let submitted = UnitFact::Submitted { name: name.clone(), contents, desired, actor };
        for fact in [submitted, UnitFact::Placed { unit: name, hosts: vec![host("h1")] }] {
            site.state.apply(site.now, &fact.into()).unwrap();
        }
    }
}

#[test]
fn machines_close_for_a_reason() {
    type Closing = fn(&mut Site);
    let cases: [(Closing, Closed); 9] = [
        (hold_slot, Closed::HoldsSlot),
        (
            |site| {
                let pause = PauseOperation::Pause { reason: "fair".to_owned(), until: None };
                request(site, pause).unwrap();
            },
            Closed::Paused,
        ),
        (
            |site| {
                let (host, reason) = (host("h1"), "fair".to_owned());
                request(site, EnrolmentOperation::Defer { host, reason, until: None }).unwrap();
            },
            Closed::Deferred,
        ),
        (|site| announce(site, 1, 9), Closed::OtherId { announced: Some(machine(9)) }),
        (
            |site| site.view.hosts.get_mut(&host("h1")).unwrap().runs_units = None,
            Closed::OtherId { announced: None },
        ),
        (approve_by_hand, Closed::NotEnrolled),
        (
            |site| {
                restore(site);
                request(site, PauseOperation::Resume { reason: None }).unwrap();
            },
            Closed::Withheld,
        ),
        // Nobody else is silent, and nobody could be reached.
        (|site| silence(site, "h1", 60), Closed::Silent),
        (fill, Closed::Full),
    ];
    for (close, expected) in cases {
        let mut site = site(1);
        assert_eq!(closed(&site, "h1"), None);
        launch(&mut site, "a.service", "");
        close(&mut site);
        assert_eq!(closed(&site, "h1"), Some(expected.clone()));
        assert_eq!(site.state.why_not_placed(&site.view, &unit("a.service")).len(), 1, "{expected:?}");
        let other = put("b.service", Some(""), Some(UnitState::Launched));
        let facts = dry_run(&site.state, &site.view, &other, site.now).unwrap();
        assert!(!facts.iter().any(|fact| matches!(fact, UnitFact::Placed { .. })), "{facts:?}");
    }
}
