//! Units and machines: what is placed where, when a unit may start elsewhere, and what hosts are told of that.

mod machines;
mod properties;
mod silences;

use std::collections::BTreeSet;
use std::sync::Arc;

use os_upgrade_kernel::fact::{EnrolmentFact, UnitFact};
use os_upgrade_kernel::unit::{TakenAway, UNITS_BYTES_MAX};
use os_upgrade_kernel::{
    Accepted, Answer, DesiredOperation, DesiredUnit, EnrolmentOperation, Fact, Input, Operation, Refusal,
    Request, Resumption, Unit, UnitOperation, UnitRefusal, dry_run, manifests,
};
use os_upgrade_protocol::{Applied, AppliedItem, ItemKind, ReportedState, Revision, UnitReport, WantedState};
use os_upgrade_scheduler::{MachineId, UNIT_BYTES_MAX, UnitName, UnitState};

use crate::common::{Site, application, host, restore};

fn unit(name: &str) -> UnitName {
    UnitName::new(name).unwrap()
}

/// The machine id of the host `h<number>`.
fn machine(number: usize) -> MachineId {
    MachineId::new(&format!("{number:032x}")).unwrap()
}

/// A site with machines h1 to h`count`, which have labels `rack` with their numbers.
fn site(count: usize) -> Site {
    let names: Vec<String> = (1..=count).map(|number| format!("h{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut site = Site::ready(&names);
    for number in 1..=count {
        announce(&mut site, number, number);
    }
    tick(&mut site);
    assert_eq!(site.state.units.machines.len(), count);
    site
}

/// The host `h<number>` announces the machine id of `id`.
fn announce(site: &mut Site, number: usize, id: usize) {
    let seen = site.view.hosts.get_mut(&host(&format!("h{number}"))).unwrap();
    seen.runs_units = Some(application("agent"));
    seen.machine_id = Some(machine(id).to_string());
    seen.address = Some(format!("10.0.0.{number}"));
    seen.labels.insert("rack".to_owned(), number.to_string());
}

/// What a tick does with units.
fn tick(site: &mut Site) -> Vec<UnitFact> {
    let facts = site.input(Input::Tick).facts;
    facts.into_iter().filter_map(|fact| if let Fact::Unit(fact) = fact { Some(fact) } else { None }).collect()
}

fn request(site: &mut Site, operation: impl Into<Operation>) -> Answer {
    site.input(Input::Request(Request::new("eve", operation.into()))).answer.unwrap()
}

fn put(name: &str, contents: Option<&str>, desired: Option<UnitState>) -> UnitOperation {
    let contents = contents.map(ToOwned::to_owned);
    UnitOperation::Put { name: unit(name), contents, desired, replaces: false }
}

/// The unit `name`, with these options of `[X-Fleet]`, is launched.
fn launch(site: &mut Site, name: &str, options: &str) {
    let contents = format!("[X-Fleet]\n{options}\n");
    let answer = request(site, put(name, Some(&contents), Some(UnitState::Launched)));
    assert_eq!(answer, Ok(Accepted::Created), "{name}");
}

fn want(site: &mut Site, name: &str, state: UnitState) {
    request(site, put(name, None, Some(state))).unwrap();
}

fn destroy(site: &mut Site, name: &str) -> Answer {
    request(site, UnitOperation::Destroy { name: unit(name), expected: None })
}

fn placed(name: &str, on: &str) -> UnitFact {
    UnitFact::Placed { unit: unit(name), hosts: vec![host(on)] }
}

fn taken(name: &str, from: &str, why: TakenAway) -> UnitFact {
    UnitFact::Taken { unit: unit(name), hosts: vec![host(from)], why }
}

fn stopped(name: &str, on: &str) -> UnitFact {
    UnitFact::Stopped { unit: unit(name), host: host(on) }
}

/// The hosts on which the unit belongs.
fn on(site: &Site, name: &str) -> Vec<String> {
    let unit = site.state.units.unit(&unit(name));
    unit.into_iter().flat_map(Unit::stays_on).map(|(host, _)| host.to_string()).collect()
}

/// The units in the manifest of a host.
fn told(site: &Site, name: &str) -> BTreeSet<String> {
    let desired = site.state.desired.hosts.get(&host(name));
    desired.into_iter().flat_map(|desired| desired.units.keys().map(ToString::to_string)).collect()
}

/// Every manifest is published.
fn publish(site: &mut Site) {
    for order in manifests(&site.state).collect::<Vec<_>>() {
        site.input(Input::ManifestStored { host: order.host, revision: order.revision });
    }
}

/// A host has done what its newest manifest says, and reports that.
fn obey(site: &mut Site, name: &str) {
    let name = host(name);
    let desired = site.state.desired.hosts.get(&name);
    // Nothing is known any more of a host that is to have nothing and was told so.
    let sequence = desired.map_or(site.state.desired.changes, |desired| desired.changed);
    let revision = Revision { sequence, ..site.state.desired_revision(&name) };
    let item = |(unit, desired): (&UnitName, &DesiredUnit)| {
        let state = match desired.state {
            UnitState::Launched => ReportedState::Launched,
            UnitState::Inactive | UnitState::Loaded => ReportedState::Loaded,
        };
        let (load, active, sub) = ("loaded".to_owned(), "active".to_owned(), "running".to_owned());
        AppliedItem {
            kind: ItemKind::Unit,
            name: unit.to_string(),
            id: Some(desired.id(revision.epoch)),
            error: None,
            unit: Some(UnitReport { state, load, active, sub }),
        }
    };
    let items = desired.into_iter().flat_map(|desired| desired.units.iter()).map(item).collect();
    let applied = Applied { site: site.state.settings.site.clone(), revision, items, refused: None };
    site.view.applied.insert(name, Arc::new(applied));
}

#[test]
fn units_are_placed_at_ticks_and_are_what_hosts_report() {
    let mut site = site(2);
    launch(&mut site, "a.service", "");
    let name = unit("a.service");
    assert_eq!(on(&site, "a.service"), [""; 0]);
    let change = put("b.service", Some(""), Some(UnitState::Loaded));
    let shown = dry_run(&site.state, &site.view, &change, site.now).unwrap();
    assert_eq!(shown[1..], [placed("a.service", "h1"), placed("b.service", "h2")]);
    assert_eq!(tick(&mut site), [placed("a.service", "h1")]);
    assert_eq!(site.state.target(&name).map(|machine| machine.id), Some(machine(1)));

    // Its item is stored before the manifest that names it, once.
    let order = manifests(&site.state).next().unwrap();
    let items = order.new_units(&site.state);
    let [(id, item)] = &items[..] else { panic!("{items:?}") };
    assert_eq!((item.name.as_str(), item.contents.as_str()), ("a.service", "[X-Fleet]\n\n"));
    assert_eq!((item.state, item.placement), (WantedState::Launched, 1));
    let named = order.manifest(&site.state).unwrap().items;
    assert_eq!((named[0].kind, named[0].id.clone(), named.len()), (ItemKind::Unit, id.clone(), 1));
    publish(&mut site);
    launch(&mut site, "b.service", "MachineID=00000000000000000000000000000001");
    tick(&mut site);
    let order = manifests(&site.state).next().unwrap();
    assert_eq!(order.new_units(&site.state).len(), 1, "the other one is stored");
    assert_eq!(order.manifest(&site.state).unwrap().items.len(), 2);

    assert_eq!(site.state.current_state(&site.view, &name), UnitState::Inactive);
    obey(&mut site, "h1");
    assert_eq!(site.state.current_state(&site.view, &name), UnitState::Launched);
    assert_eq!(site.state.unit_report(&site.view, &name)[0].1.sub, "running");
    // What it reports of the item before does not count.
    want(&mut site, "a.service", UnitState::Loaded);
    assert_eq!(site.state.current_state(&site.view, &name), UnitState::Inactive);
    obey(&mut site, "h1");
    assert_eq!(site.state.current_state(&site.view, &name), UnitState::Loaded);
}

#[test]
fn requests_are_checked_in_one_order() {
    use UnitState::{Inactive, Launched};
    let mut site = site(1);
    let (template, named) = (unit("a@.service"), unit("a.service"));
    let unit = || named.clone();
    let refused = |refusal| Err(Refusal::Unit(refusal));
    let replacing = |contents: &str, desired| UnitOperation::Put {
        name: unit(),
        contents: Some(contents.to_owned()),
        desired,
        replaces: true,
    };
    let destroying = |text: &str| UnitOperation::Destroy { name: unit(), expected: Some(text.to_owned()) };
    let cases: Vec<(&str, UnitOperation, Answer)> = vec![
        ("nothing", put("a.service", None, None), refused(UnitRefusal::NoContents { unit: unit() })),
        (
            "a state",
            put("a.service", None, Some(Launched)),
            refused(UnitRefusal::NoContents { unit: unit() }),
        ),
        (
            "a template in use",
            put("a@.service", Some(""), Some(Launched)),
            refused(UnitRefusal::ActivatesTemplate { unit: template }),
        ),
        ("a template", put("a@.service", Some(""), None), Ok(Accepted::Created)),
        ("contents", put("a.service", Some("[Unit]\nA=1\n"), None), Ok(Accepted::Created)),
        (
            "the same",
            put("a.service", Some("[Unit]\nA=1\n"), None),
            refused(UnitRefusal::NoState { unit: unit() }),
        ),
        ("the same and a state", put("a.service", Some("[Unit]\nA=1\n"), Some(Launched)), Ok(Accepted::Done)),
        (
            "other contents",
            put("a.service", Some("[Unit]\nA=2\n"), Some(Launched)),
            refused(UnitRefusal::OtherContents { unit: unit() }),
        ),
        ("other text, same options", replacing("[Unit]\n\nA=1\n", Some(Inactive)), Ok(Accepted::Done)),
        ("other options", replacing("[Unit]\nA=2\n", None), Ok(Accepted::Created)),
        (
            "no longer the text",
            destroying("[Unit]\nA=1\n"),
            refused(UnitRefusal::OtherContents { unit: unit() }),
        ),
        ("its text", destroying("[Unit]\nA=2\n"), Ok(Accepted::Done)),
        ("again", destroying("[Unit]\nA=2\n"), refused(UnitRefusal::UnknownUnit { unit: unit() })),
    ];
    for (case, operation, expected) in cases {
        assert_eq!(request(&mut site, operation), expected, "{case}");
    }
    for (contents, is_bad_file) in [("no section\n", true), ("[X-Fleet]\nGlobal=perhaps\n", false)] {
        let answer = request(&mut site, put("a.service", Some(contents), None));
        match answer {
            Err(Refusal::Unit(UnitRefusal::BadFile { .. })) => assert!(is_bad_file, "{contents}"),
            Err(Refusal::Unit(UnitRefusal::BadRequirements { .. })) => assert!(!is_bad_file, "{contents}"),
            other => panic!("{contents}: {other:?}"),
        }
    }
}

/// 256 files of 64 KiB, and not one byte more. Other contents take the room of those that they replace.
#[test]
fn files_of_a_site_have_16_mib_at_most() {
    let mut site = site(1);
    let text = |bytes: usize| "#".repeat(bytes);
    let largest = text(UNIT_BYTES_MAX);
    let count = UNITS_BYTES_MAX / UNIT_BYTES_MAX;
    for number in 0..count {
        let (name, contents) = (unit(&format!("u{number}.service")), largest.clone());
        let submitted =
            UnitFact::Submitted { name, contents, desired: UnitState::Inactive, actor: "eve".to_owned() };
        site.state.apply(site.now, &submitted.into()).unwrap();
    }
    let full = Err(Refusal::Unit(UnitRefusal::TooManyBytes { limit: UNITS_BYTES_MAX }));
    assert_eq!(request(&mut site, put("a.service", Some("#"), None)), full);
    let replacing = |bytes: usize| UnitOperation::Put {
        name: unit("u0.service"),
        contents: Some(format!("{}\n[A]\nx=1", text(bytes - "\n[A]\nx=1".len()))),
        desired: None,
        replaces: true,
    };
    assert_eq!(request(&mut site, replacing(UNIT_BYTES_MAX)), Ok(Accepted::Created));
    assert_eq!(request(&mut site, put("a.service", Some("#"), None)), full);
    destroy(&mut site, "u0.service").unwrap();
    assert_eq!(request(&mut site, put("a.service", Some("#"), None)), Ok(Accepted::Created));
}

#[test]
fn units_start_elsewhere_once_they_have_stopped() {
    let mut site = site(2);
    launch(&mut site, "a.service", "MachineMetadata=rack=1");
    tick(&mut site);
    publish(&mut site);
    obey(&mut site, "h1");
    // Its machine gets other labels, as an operator says.
    let seen = site.view.hosts.get_mut(&host("h1")).unwrap();
    seen.labels.insert("rack".to_owned(), "9".to_owned());
    let seen = site.view.hosts.get_mut(&host("h2")).unwrap();
    seen.labels.insert("rack".to_owned(), "1".to_owned());
    assert_eq!(tick(&mut site), [], "what was approved counts");
    machines::approve(&mut site, &["h1", "h2"]).unwrap();
    let facts = tick(&mut site);
    assert!(matches!(&facts[..], [UnitFact::Taken { why: TakenAway::NoLongerFits { .. }, .. }]), "{facts:?}");
    assert_eq!(told(&site, "h1"), BTreeSet::new());
    assert_eq!(tick(&mut site), [], "the report is of the manifest before");
    publish(&mut site);
    obey(&mut site, "h1");
    assert_eq!(tick(&mut site), [stopped("a.service", "h1"), placed("a.service", "h2")]);
}

#[test]
fn units_start_again_only_after_they_have_stopped() {
    let mut site = site(1);
    launch(&mut site, "a.service", "");
    tick(&mut site);
    publish(&mut site);
    obey(&mut site, "h1");
    want(&mut site, "a.service", UnitState::Inactive);
    assert_eq!(told(&site, "h1"), BTreeSet::new());
    want(&mut site, "a.service", UnitState::Launched);
    assert_eq!(tick(&mut site), []);
    obey(&mut site, "h1");
    assert_eq!(tick(&mut site), [stopped("a.service", "h1"), placed("a.service", "h1")]);
    assert_eq!(site.state.desired.unit(&host("h1"), &unit("a.service")).unwrap().placement, 2);
}

/// Its name is free at once; a new one is placed when the old one has stopped.
#[test]
fn destroyed_units_are_waited_for() {
    let mut site = site(2);
    launch(&mut site, "a.service", "");
    tick(&mut site);
    publish(&mut site);
    obey(&mut site, "h1");
    assert_eq!(destroy(&mut site, "a.service"), Ok(Accepted::Done));
    let name = unit("a.service");
    assert_eq!(site.state.units.unit(&name), None);
    launch(&mut site, "a.service", "MachineMetadata=rack=2");
    assert_eq!(tick(&mut site), []);
    obey(&mut site, "h1");
    assert_eq!(tick(&mut site), [stopped("a.service", "h1"), placed("a.service", "h2")]);
    destroy(&mut site, "a.service").unwrap();
    obey(&mut site, "h2");
    assert_eq!(tick(&mut site), [stopped("a.service", "h2")]);
    assert!(site.state.units.units.is_empty());
}

#[test]
fn other_contents_stay_where_they_are() {
    let mut site = site(2);
    launch(&mut site, "a.service", "MachineMetadata=rack=2");
    tick(&mut site);
    publish(&mut site);
    let before = site.state.desired.unit(&host("h2"), &unit("a.service")).copied().unwrap();
    let replace = UnitOperation::Put {
        name: unit("a.service"),
        contents: Some("[Unit]\nA=2\n".to_owned()),
        desired: Some(UnitState::Launched),
        replaces: true,
    };
    assert_eq!(request(&mut site, replace), Ok(Accepted::Created));
    assert_eq!(tick(&mut site), []);
    let after = site.state.desired.unit(&host("h2"), &unit("a.service")).copied().unwrap();
    assert_eq!(after.placement, before.placement);
    let order = manifests(&site.state).next().unwrap();
    assert_eq!(order.replaced, [before.id(0)]);
    assert_eq!(order.new_units(&site.state)[0].1.contents, "[Unit]\nA=2\n");
}

#[test]
fn global_units_are_on_every_machine_that_suits_them() {
    let mut site = site(3);
    launch(&mut site, "g.service", "Global=true\nMachineMetadata=rack=1\nMachineMetadata=rack=3");
    launch(&mut site, "x.service", "Conflicts=g.service");
    let both = UnitFact::Placed { unit: unit("g.service"), hosts: vec![host("h1"), host("h3")] };
    assert_eq!(tick(&mut site), [placed("x.service", "h2"), both]);
    for name in ["h1", "h2", "h3"] {
        obey(&mut site, name);
    }
    assert_eq!(site.state.current_state(&site.view, &unit("g.service")), UnitState::Launched);
    // The least of its machines' states counts, and silence about it is the least of all.
    let mut loaded = Applied::clone(&site.view.applied[&host("h3")]);
    loaded.items[0].unit.as_mut().unwrap().state = ReportedState::Loaded;
    let silent = Applied { items: Vec::new(), ..loaded.clone() };
    for (said, expected) in [(loaded, UnitState::Loaded), (silent, UnitState::Inactive)] {
        site.view.applied.insert(host("h3"), Arc::new(said));
        let is_in_force = site.state.unit_in_force(&site.view, &host("h3"), &unit("g.service")).is_some();
        let current = site.state.current_state(&site.view, &unit("g.service"));
        assert_eq!((current, is_in_force), (expected, expected == UnitState::Loaded));
    }
    obey(&mut site, "h3");
    // While it leaves a machine, that gets nothing new: it may conflict.
    destroy(&mut site, "g.service").unwrap();
    launch(&mut site, "y.service", "MachineMetadata=rack=3");
    assert_eq!(tick(&mut site), []);
    obey(&mut site, "h3");
    assert_eq!(tick(&mut site), [stopped("g.service", "h3"), placed("y.service", "h3")]);
}

/// A unit that was global stays on one machine.
#[test]
fn units_cease_to_be_global() {
    let mut site = site(3);
    launch(&mut site, "g.service", "Global=true");
    tick(&mut site);
    let replace = UnitOperation::Put {
        name: unit("g.service"),
        contents: Some("[Unit]\nA=2\n".to_owned()),
        desired: Some(UnitState::Launched),
        replaces: true,
    };
    request(&mut site, replace).unwrap();
    let hosts = vec![host("h2"), host("h3")];
    let surplus = UnitFact::Taken { unit: unit("g.service"), hosts, why: TakenAway::NoLongerGlobal };
    assert_eq!(tick(&mut site), [surplus]);
    assert_eq!(on(&site, "g.service"), ["h1"]);
}

/// The streams may be gone, and hosts may follow manifests that the state does not know.
#[test]
fn after_a_restoration_everything_is_stored_anew() {
    let mut site = site(2);
    launch(&mut site, "a.service", "MachineMetadata=rack=1");
    launch(&mut site, "b.service", "MachineMetadata=rack=2");
    tick(&mut site);
    publish(&mut site);
    want(&mut site, "b.service", UnitState::Inactive);
    publish(&mut site);
    // Before the loss it has reported that it follows the manifest without b.
    obey(&mut site, "h2");
    restore(&mut site);
    let epoch = site.state.epoch();
    launch(&mut site, "c.service", "");
    assert_eq!(tick(&mut site), [], "the site is paused, and nothing is delivered");
    assert_eq!(manifests(&site.state).count(), 0);
    request(&mut site, DesiredOperation::Resume { host: None }).unwrap();
    let orders: Vec<_> = manifests(&site.state).collect();
    assert_eq!(orders.len(), 2);
    let items = orders[0].new_units(&site.state);
    assert_eq!(items[0].0.to_string(), format!("unit-{epoch}-1"));
    // Only a report of the new epoch says that it has stopped.
    let leaving = site.state.units.units[&unit("b.service")].on[&host("h2")].leaving.unwrap();
    assert_eq!(leaving.epoch, epoch);
    obey(&mut site, "h2");
    assert_eq!(tick(&mut site), [stopped("b.service", "h2")]);
}

/// Units count by their names: after a restoration each has another item.
#[test]
fn resumptions_name_units() {
    let mut site = site(1);
    launch(&mut site, "a.service", "");
    tick(&mut site);
    obey(&mut site, "h1");
    launch(&mut site, "b.service", "");
    tick(&mut site);
    restore(&mut site);
    let h1 = host("h1");
    let expected = Resumption { gains: vec!["b.service"], loses: vec![] };
    assert_eq!(site.state.resumption(&site.view, &h1), expected);
    destroy(&mut site, "a.service").unwrap();
    let expected = Resumption { gains: vec!["b.service"], loses: vec!["a.service"] };
    assert_eq!(site.state.resumption(&site.view, &h1), expected);
}

#[test]
fn withdrawn_hosts_are_waited_for_and_removed_ones_are_not() {
    let mut site = site(2);
    launch(&mut site, "a.service", "MachineMetadata=rack=1");
    launch(&mut site, "b.service", "MachineMetadata=rack=2");
    tick(&mut site);
    publish(&mut site);
    for number in [1, 2] {
        obey(&mut site, &format!("h{number}"));
        let (host, reason) = (host(&format!("h{number}")), "stolen".to_owned());
        request(&mut site, EnrolmentOperation::Withdraw { host, reason }).unwrap();
    }
    assert!(site.state.units.machines.is_empty());
    assert_eq!((told(&site, "h1"), told(&site, "h2")), (BTreeSet::new(), BTreeSet::new()));
    assert_eq!(tick(&mut site), []);
    publish(&mut site);
    site.view.applied.remove(&host("h2"));
    let (gone, actor, reason) = (host("h2"), "eve".to_owned(), "scrapped".to_owned());
    let removed = EnrolmentFact::HostRemoved { host: gone, actor, reason, announced: 0 };
    site.state.apply(site.now, &removed.into()).unwrap();
    let leaves = |site: &Site, name: &str| site.state.units.units[&unit(name)].leaves().count();
    assert_eq!((leaves(&site, "a.service"), leaves(&site, "b.service")), (1, 0));
    // The manifest without it is stored, so the host is to have nothing, and is not known any more.
    let leaving = site.state.units.units[&unit("a.service")].on[&host("h1")].leaving.unwrap();
    let site_name = site.state.settings.site.clone();
    let applied = Applied { site: site_name, revision: leaving, items: Vec::new(), refused: None };
    site.view.applied.insert(host("h1"), Arc::new(applied));
    assert_eq!(tick(&mut site), [stopped("a.service", "h1")]);
}
