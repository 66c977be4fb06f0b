//! Whatever is asked, reported and silent: no unit is on two machines unless it leaves one, hosts are told what stands there, and conflicts
//! hold.

use std::collections::BTreeMap;
use std::time::Duration;

use os_upgrade_kernel::fact::ConfigFact;
use os_upgrade_kernel::{AgentSeen, EnrolmentOperation, Fact, Settings, UnitOperation};
use os_upgrade_scheduler::UnitState;
use proptest::prelude::*;

use super::{announce, destroy, machines, obey, publish, request, site, tick, unit};
use crate::common::{Site, host, settings};

const HOSTS: usize = 4;
const UNITS: usize = 5;

#[derive(Debug, Clone, Copy)]
enum Step {
    Put { unit: usize, contents: usize, state: usize },
    Destroy { unit: usize },
    Obey { host: usize },
    Silent { host: usize, secs: u64 },
    Withdraw { host: usize },
    Approve { host: usize },
    Relabel { host: usize, rack: usize },
    Publish,
    Tick,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let host = || 1..=HOSTS;
    let step = prop_oneof![
        6 => (0..UNITS, 0..6_usize, 0..4_usize).prop_map(|(unit, contents, state)| Step::Put { unit, contents, state }),
        1 => (0..UNITS).prop_map(|unit| Step::Destroy { unit }),
        4 => host().prop_map(|host| Step::Obey { host }),
        2 => (host(), prop_oneof![Just(0_u64), Just(30), Just(600)])
            .prop_map(|(host, secs)| Step::Silent { host, secs }),
        1 => host().prop_map(|host| Step::Withdraw { host }),
        2 => host().prop_map(|host| Step::Approve { host }),
        1 => (host(), 1..=HOSTS).prop_map(|(host, rack)| Step::Relabel { host, rack }),
        2 => Just(Step::Publish),
        6 => Just(Step::Tick),
    ];
    prop::collection::vec(step, 1..60)
}

fn name_of(number: usize) -> String {
    format!("u{number}.service")
}

fn contents_of(unit: usize, number: usize) -> String {
    let other = name_of((unit + 1) % UNITS);
    let options = match number {
        0 => String::new(),
        1 => "MachineMetadata=rack=1\nMachineMetadata=rack=2".to_owned(),
        2 => format!("Conflicts={other}"),
        3 => format!("MachineOf={other}"),
        4 => "Global=true".to_owned(),
        _ => format!("Replaces={other}"),
    };
    format!("[X-Fleet]\n{options}\n")
}

fn play(site: &mut Site, step: Step) {
    let name = |number: usize| host(&format!("h{number}"));
    match step {
        Step::Put { unit: number, contents, state } => {
            let states = [UnitState::Inactive, UnitState::Loaded, UnitState::Launched];
            let put = UnitOperation::Put {
                name: unit(&name_of(number)),
                contents: Some(contents_of(number, contents)),
                desired: states.get(state).copied(),
                replaces: true,
            };
            // Some are refused.
            drop(request(site, put));
        }
        Step::Destroy { unit } => drop(destroy(site, &name_of(unit))),
        Step::Obey { host } => obey(site, &format!("h{host}")),
        Step::Silent { host, secs } => {
            site.view
                .agents
                .insert(name(host), AgentSeen { silent_for: Duration::from_secs(secs), is_heard: true });
        }
        Step::Withdraw { host } => {
            let (host, reason) = (name(host), "moved".to_owned());
            request(site, EnrolmentOperation::Withdraw { host, reason }).unwrap();
        }
        Step::Approve { host } => drop(machines::approve(site, &[format!("h{host}").as_str()])),
        Step::Relabel { host, rack } => {
            let seen = site.view.hosts.get_mut(&name(host)).unwrap();
            seen.labels.insert("rack".to_owned(), rack.to_string());
        }
        Step::Publish => publish(site),
        Step::Tick => drop(tick(site)),
    }
}

/// What holds after every step.
fn check(site: &Site) {
    let units = &site.state.units;
    let mut told = BTreeMap::new();
    for (name, unit) in &units.units {
        let stays = unit.stays_on().count();
        assert!(!unit.destroyed || stays == 0 && !unit.on.is_empty(), "{name}: {unit:?}");
        assert!(unit.desired != UnitState::Inactive || stays == 0, "{name}: {unit:?}");
        for (host, standing) in unit.stays_on() {
            told.insert((host.clone(), name.clone()), (unit.desired, standing.placement));
            assert!(units.machines.contains_key(host), "{name} stays on {host}, which is no machine");
        }
    }
    let desired = site.state.desired.hosts.iter().flat_map(|(host, desired)| {
        let units = desired.units.iter();
        units.map(|(name, unit)| ((host.clone(), name.clone()), (unit.state, unit.placement)))
    });
    assert_eq!(desired.collect::<BTreeMap<_, _>>(), told);
}

/// What holds after a tick, once conflicting contents have been sorted out.
fn check_settled(site: &Site) {
    for (name, unit) in site.state.units.existing().filter(|(_, unit)| !unit.is_global()) {
        assert!(unit.stays_on().count() <= 1, "{name}: {unit:?}");
        let requirements = unit.requirements.as_ref().unwrap();
        for (host, _) in unit.stays_on() {
            let there =
                site.state.units.existing().filter(|(_, other)| {
                    other.on.get(host).is_some_and(|standing| standing.leaving.is_none())
                });
            let mut others = there.map(|(other, _)| other).filter(|other| *other != name);
            let conflict = others.find(|other| requirements.conflicts.iter().any(|it| it.matches(other)));
            assert_eq!(conflict, None, "{name} on {host}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn units_are_where_they_may_be(steps in steps()) {
        let mut site = site(HOSTS);
        // Otherwise hosts that are withdrawn and approved would be approved by themselves.
        let settings = Settings { auto_approve: false, ..settings() };
        site.state.apply(site.now, &Fact::Config(ConfigFact::SettingsAdopted { settings })).unwrap();
        for number in 1..=HOSTS {
            announce(&mut site, number, number);
            machines::approve(&mut site, &[format!("h{number}").as_str()]).unwrap();
        }
        for step in steps {
            play(&mut site, step);
            check(&site);
            if matches!(step, Step::Tick) {
                check_settled(&site);
            }
        }
        // Without news it comes to rest: what a tick moves may let the next one move more, but not for ever.
        let moved = (0..=UNITS * HOSTS).find(|_| tick(&mut site).is_empty());
        prop_assert!(moved.is_some(), "ticks go on moving units");
    }
}
