//! Why a unit is not on a machine: every reason, what comes first, and its form.

use super::*;

fn can_run(site: &Site, unit: &str, number: usize) -> Result<(), Misfit> {
    site.can_run(&name(unit), &machine(number))
}

/// Machine 1 is open and in the EU, 2 is closed, 3 is lost, 4 is open. `conflicting` and `z` are on 1, `away` leaves 4, `peer` is on 2.
fn example() -> Site {
    let mut site = site(4, &[]);
    site.machines.insert(machine(1), open("region=eu"));
    set_status(&mut site, 2, MachineStatus::Closed);
    set_status(&mut site, 3, MachineStatus::Lost);
    add_on(&mut site, "conflicting.service", "Conflicts=b*.service", 1);
    add_on(&mut site, "z.service", "Replaces=kicked.service circle.service", 1);
    add_on(&mut site, "peer.service", "", 2);
    add_on(&mut site, "away.service", "Conflicts=a.service", 4);
    site.units.get_mut(&name("away.service")).unwrap().place = Place::Leaving(machine(4));
    add(&mut site, "global.service", "Global=true\nMachineMetadata=region=eu");
    add(&mut site, "template@.service", "");
    site
}

#[test]
fn every_reason_is_given() {
    let peer_on =
        |number| Misfit::PeerElsewhere { peer: name("peer.service"), machine: Some(machine(number)) };
    let peer_not_there = |peer| Misfit::PeerElsewhere { peer: name(peer), machine: None };
    let eu =
        Misfit::Metadata { key: "region".to_owned(), wanted: std::iter::once("eu".to_owned()).collect() };
    let by_id = format!("MachineID={}", machine(1));
    let table: [(&str, &str, usize, Result<(), Misfit>); 24] = [
        ("new.service", "", 1, Ok(())),
        ("new.service", "", 2, Err(Misfit::Closed)),
        ("new.service", "", 3, Err(Misfit::Lost)),
        ("new.service", "", 9, Err(Misfit::NoSuchMachine)),
        ("new@.service", "", 1, Err(Misfit::Template)),
        ("new@1.service", "", 1, Ok(())),
        ("new.service", &by_id, 1, Ok(())),
        ("new.service", &by_id, 2, Err(Misfit::OtherMachine { wanted: machine(1) })),
        ("new.service", "MachineMetadata=region=eu", 1, Ok(())),
        ("new.service", "MachineMetadata=region=eu", 3, Err(eu.clone())),
        ("new.service", "MachineOf=gone.service", 1, Err(Misfit::PeerMissing { peer: name("gone.service") })),
        ("new.service", "MachineOf=peer.service", 1, Err(peer_on(2))),
        ("new.service", "MachineOf=peer.service", 2, Err(Misfit::Closed)),
        ("new.service", "MachineOf=away.service", 4, Err(peer_not_there("away.service"))),
        ("new.service", "MachineOf=global.service", 1, Ok(())),
        ("new.service", "MachineOf=global.service", 4, Err(peer_not_there("global.service"))),
        ("b.service", "", 1, Err(conflict("conflicting.service"))),
        ("new.service", "Conflicts=?.service", 1, Err(conflict("z.service"))),
        ("new.service", "Conflicts=global.*", 1, Err(conflict("global.service"))),
        ("a.service", "", 4, Err(conflict("away.service"))),
        ("kicked.service", "", 1, Err(Misfit::ReplacedBy { unit: name("z.service") })),
        ("circle.service", "Replaces=z.service", 4, Err(Misfit::Circle { unit: name("z.service") })),
        ("b.service", "Global=true", 1, Err(conflict("conflicting.service"))),
        ("new.service", "Global=true\nMachineMetadata=region=eu", 4, Err(eu.clone())),
    ];
    for (unit, options, number, expected) in table {
        let mut site = example();
        add(&mut site, unit, options);
        assert_eq!(can_run(&site, unit, number), expected, "{unit} {options} on {number}");
        let expected = if number <= 4 { expected.err() } else { None };
        assert_eq!(misfits(&site, unit).remove(&number), expected, "{unit} {options} on {number}");
    }
    let site = example();
    assert_eq!(can_run(&site, "gone.service", 1), Err(Misfit::NoSuchUnit));
    assert_eq!(can_run(&site, "away.service", 1), Err(Misfit::Leaving { machine: machine(4) }));
    assert_eq!(can_run(&site, "global.service", 9), Err(Misfit::NoSuchMachine));
}

#[test]
fn units_may_stay_where_they_could_not_come() {
    let mut site = example();
    assert_eq!(can_run(&site, "peer.service", 2), Ok(()), "the machine is closed");
    add_on(&mut site, "a.service", "", 4);
    assert_eq!(can_run(&site, "a.service", 4), Ok(()), "what conflicts is leaving");
    add_on(&mut site, "new.service", "Conflicts=global.service", 1);
    assert_eq!(can_run(&site, "new.service", 1), Ok(()), "the global unit gives way");
    assert_eq!(can_run(&site, "global.service", 1), Err(conflict("new.service")));
    add_on(&mut site, "lost.service", "", 3);
    assert_eq!(can_run(&site, "lost.service", 3), Err(Misfit::Lost));
    add_on(&mut site, "kicked.service", "", 1);
    assert_eq!(can_run(&site, "kicked.service", 1), Err(Misfit::ReplacedBy { unit: name("z.service") }));
}

#[test]
fn a_dry_run_asks_a_changed_site() {
    let mut site = site(1, &[("a.service", ""), ("b.service", "Conflicts=a.service")]);
    settle(&mut site);
    assert_eq!(can_run(&site, "b.service", 1), Err(conflict("a.service")));
    let mut changed = site.clone();
    set_desired(&mut changed, "a.service", UnitState::Inactive);
    settle(&mut changed);
    assert_eq!(can_run(&changed, "b.service", 1), Ok(()));
    assert_eq!(places(&site), "a=1 b=-", "the site itself has not changed");
}

#[test]
fn moves_of_unknown_units_change_nothing() {
    let mut site = example();
    let before = site.clone();
    site.apply(&place("gone.service", 1));
    site.apply(&take("gone.service", 1, Taken::NotWanted));
    assert_eq!(site, before);
}

#[test]
fn reasons_have_one_form_as_text() {
    let metadata =
        Misfit::Metadata { key: "disk".to_owned(), wanted: std::iter::once("ssd".to_owned()).collect() };
    let elsewhere = Misfit::PeerElsewhere { peer: name("a.service"), machine: None };
    for (taken, json) in [
        (Taken::NotWanted, r#"{"kind":"not-wanted"}"#),
        (
            Taken::NoLongerFits { misfit: metadata },
            r#"{"kind":"no-longer-fits","misfit":{"kind":"metadata","key":"disk","wanted":["ssd"]}}"#,
        ),
        (
            Taken::NoLongerFits { misfit: elsewhere },
            r#"{"kind":"no-longer-fits","misfit":{"kind":"peer-elsewhere","peer":"a.service","machine":null}}"#,
        ),
        (Taken::ReplacedBy { unit: name("a.service") }, r#"{"kind":"replaced-by","unit":"a.service"}"#),
    ] {
        assert_eq!(serde_json::to_string(&taken).unwrap(), json);
        assert_eq!(serde_json::from_str::<Taken>(json).unwrap(), taken);
    }
    let place = Place::On(machine(1));
    let json = serde_json::to_string(&place).unwrap();
    assert_eq!(json, r#"{"on":"00000000000000000000000000000001"}"#);
    assert_eq!(serde_json::from_str::<Place>(&json).unwrap(), place);
}
