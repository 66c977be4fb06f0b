//! What fleet's users see of its scheduler, told anew: each story names what they rely on.

use super::*;

#[test]
fn pairs_share_a_machine_and_migrate_together() {
    let mut site = site(3, &[]);
    for number in 0..3 {
        add(&mut site, &format!("ping.{number}.service"), "");
        add(&mut site, &format!("pong.{number}.service"), &format!("MachineOf=ping.{number}.service"));
    }
    assert_eq!(settled(&mut site), "ping.0=1 ping.1=2 ping.2=3 pong.0=1 pong.1=2 pong.2=3");

    set_status(&mut site, 2, MachineStatus::Lost);
    let moves = step(&mut site);
    assert_eq!(
        moves,
        [
            take("ping.1.service", 2, Taken::Lost),
            take("pong.1.service", 2, Taken::Lost),
            place("ping.1.service", 1),
            place("pong.1.service", 1),
        ]
    );
    set_status(&mut site, 2, MachineStatus::Open);
    assert_eq!(step(&mut site), [], "what has moved does not move back");
}

#[test]
fn a_follower_moves_when_its_peer_does() {
    let mut site =
        site(2, &[("a.service", "MachineMetadata=disk=ssd"), ("b.service", "MachineOf=a.service")]);
    let peer_missing = Misfit::PeerElsewhere { peer: name("a.service"), machine: None };
    assert_eq!(step(&mut site), [], "no machine has a disk");
    assert_eq!(
        misfits(&site, "b.service"),
        BTreeMap::from([(1, peer_missing.clone()), (2, peer_missing.clone())])
    );
    site.machines.insert(machine(1), open("disk=ssd"));
    assert_eq!(settled(&mut site), "a=1 b=1");

    site.machines.insert(machine(1), open("disk=hdd"));
    site.machines.insert(machine(2), open("disk=ssd"));
    let misfit =
        Misfit::Metadata { key: "disk".to_owned(), wanted: std::iter::once("ssd".to_owned()).collect() };
    assert_eq!(
        step(&mut site),
        [
            take("a.service", 1, Taken::NoLongerFits { misfit }),
            take("b.service", 1, Taken::NoLongerFits { misfit: peer_missing }),
        ]
    );
    assert_eq!(places(&site), "a<1 b<1", "both may still run there");
    site.units.get_mut(&name("a.service")).unwrap().place = Place::Nowhere;
    assert_eq!(step(&mut site), [place("a.service", 2)]);
    assert_eq!(settled(&mut site), "a=2 b=2");
}

#[test]
fn of_five_in_conflict_three_run_on_three_machines() {
    let mut site = site(3, &[]);
    for number in 0..5 {
        add(&mut site, &format!("conflict.{number}.service"), "Conflicts=conflict.*.service");
    }
    let expected = "conflict.0=1 conflict.1=2 conflict.2=3 conflict.3=- conflict.4=-";
    assert_eq!(settled(&mut site), expected);
    let reasons = (0..3).map(|number| (number + 1, conflict(&format!("conflict.{number}.service"))));
    assert_eq!(misfits(&site, "conflict.4.service"), reasons.collect::<BTreeMap<_, _>>());

    set_desired(&mut site, "conflict.1.service", UnitState::Inactive);
    assert_eq!(step(&mut site), [take("conflict.1.service", 2, Taken::NotWanted)]);
    assert_eq!(places(&site), "conflict.0=1 conflict.1<2 conflict.2=3 conflict.3=- conflict.4=-");
    assert_eq!(settled(&mut site), "conflict.0=1 conflict.1=- conflict.2=3 conflict.3=2 conflict.4=-");
}

#[test]
fn a_conflict_holds_though_only_one_unit_names_it() {
    let mut site = site(1, &[("conflicts-with-hello.service", "Conflicts=hello.service")]);
    assert_eq!(settled(&mut site), "conflicts-with-hello=1");
    add(&mut site, "hello.service", "");
    assert_eq!(settled(&mut site), "conflicts-with-hello=1 hello=-");
    set_desired(&mut site, "conflicts-with-hello.service", UnitState::Inactive);
    assert_eq!(settled(&mut site), "conflicts-with-hello=- hello=1");
    set_desired(&mut site, "conflicts-with-hello.service", UnitState::Launched);
    assert_eq!(settled(&mut site), "conflicts-with-hello=- hello=1", "whoever is there stays");
}

#[test]
fn several_conflicts_may_be_named_in_a_line_or_in_lines() {
    let in_a_line = "Conflicts=m.2.service m.1.service";
    let in_lines = "Conflicts=m.0.service\nConflicts=m.1.service";
    let units = [("m.0.service", in_a_line), ("m.1.service", ""), ("m.2.service", in_lines)];
    assert_eq!(settled(&mut site(3, &units)), "m.0=1 m.1=2 m.2=3");
    assert_eq!(settled(&mut site(2, &units)), "m.0=1 m.1=2 m.2=-");
}

#[test]
fn units_go_where_they_name_the_machine() {
    let mut site = site(3, &[("a.service", "")]);
    for number in 1..=3 {
        add(&mut site, &format!("b.{number}.service"), &format!("MachineID={}", machine(4 - number)));
    }
    add(&mut site, "c.service", &format!("MachineID={}", machine(9)));
    assert_eq!(settled(&mut site), "a=1 b.1=3 b.2=2 b.3=1 c=-");
    let elsewhere = Misfit::OtherMachine { wanted: machine(9) };
    let everywhere: BTreeMap<usize, Misfit> = (1..=3).map(|number| (number, elsewhere.clone())).collect();
    assert_eq!(misfits(&site, "c.service"), everywhere);
}

#[test]
fn metadata_are_alternatives_of_a_key_and_all_keys_count() {
    let mut site = site(0, &[]);
    for (number, metadata) in
        ["region=us", "region=eu disk=hdd", "region=eu disk=ssd", "disk=ssd"].iter().enumerate()
    {
        site.machines.insert(machine(number + 1), open(metadata));
    }
    for (unit, options, expected) in [
        ("a.service", "MachineMetadata=region=eu", "a=2"),
        ("b.service", "MachineMetadata=region=asia\nMachineMetadata=region=us", "b=1"),
        ("c.service", "MachineMetadata=\"region=eu\" \"disk=ssd\"", "c=3"),
        ("d.service", "MachineMetadata=\"disk=ssd\" \"region=us\" \"region=eu\"", "d=3"),
        ("e.service", "MachineMetadata=region=asia", "e=-"),
        ("f.service", "MachineMetadata=\"disk=nvme\" \"region=eu\"", "f=-"),
    ] {
        let mut alone = site.clone();
        add(&mut alone, unit, options);
        assert_eq!(settled(&mut alone), expected, "{options}");
    }
}

#[test]
fn instances_are_placed_and_templates_are_not() {
    let mut site = site(0, &[]);
    for number in 1..=2 {
        site.machines.insert(machine(number), open(&format!("hostname=h{number}")));
    }
    let options = "MachineMetadata=hostname=%i";
    add(&mut site, "metadata@.service", "");
    add(&mut site, "metadata@h1.service", options);
    add(&mut site, "metadata@h2.service", options);
    add(&mut site, "metadata@h3.service", options);
    assert_eq!(settled(&mut site), "metadata@=- metadata@h1=1 metadata@h2=2 metadata@h3=-");
    assert_eq!(
        misfits(&site, "metadata@.service"),
        BTreeMap::from([(1, Misfit::Template), (2, Misfit::Template)])
    );
}

#[test]
fn global_units_run_everywhere_and_count_nowhere() {
    let mut site = site(3, &[("goodbye.service", ""), ("hello.service", "")]);
    assert_eq!(settled(&mut site), "goodbye=1 hello=2");
    add(&mut site, "global.service", "Global=true");
    add(&mut site, "eu.service", "Global=true\nMachineMetadata=region=eu");
    site.machines.insert(machine(3), open("region=eu"));
    assert_eq!(step(&mut site), []);
    assert_eq!(
        (1..=3).map(|number| globals(&site, number)).collect::<Vec<_>>(),
        [vec!["global.service"], vec!["global.service"], vec!["eu.service", "global.service"]]
    );
    add(&mut site, "next.service", "");
    assert_eq!(step(&mut site), [place("next.service", 3)], "global units are no load");

    set_desired(&mut site, "global.service", UnitState::Inactive);
    assert_eq!(globals(&site, 1), Vec::<&str>::new());
    assert_eq!(globals(&site, 9), Vec::<&str>::new());
}

#[test]
fn of_global_units_in_conflict_the_first_runs() {
    let options = "Global=true\nConflicts=conflict-global.*.service";
    let mut site = site(3, &[("conflict-global.0.service", options), ("conflict-global.1.service", options)]);
    assert_eq!(step(&mut site), []);
    for number in 1..=3 {
        assert_eq!(globals(&site, number), ["conflict-global.0.service"]);
        assert_eq!(
            misfits(&site, "conflict-global.1.service")[&number],
            conflict("conflict-global.0.service")
        );
    }
    assert_eq!(misfits(&site, "conflict-global.0.service"), BTreeMap::new());
}

#[test]
fn global_and_placed_units_keep_off_each_other() {
    let mut site = site(2, &[("a.service", "Conflicts=global.service")]);
    assert_eq!(settled(&mut site), "a=1");
    add(&mut site, "global.service", "Global=true");
    add(&mut site, "b.service", "Conflicts=global.service");
    assert_eq!(settled(&mut site), "a=1 b=1 global=-", "it runs on machine 2 only");
    assert_eq!((globals(&site, 1), globals(&site, 2)), (vec![], vec!["global.service"]));
    assert_eq!(misfits(&site, "b.service"), BTreeMap::from([(2, conflict("global.service"))]));

    add(&mut site, "follower.service", "MachineOf=global.service");
    assert_eq!(settled(&mut site), "a=1 b=1 follower=2 global=-");
}

#[test]
fn a_unit_that_becomes_global_gives_up_its_place() {
    let mut site = site(1, &[]);
    add_on(&mut site, "a.service", "Global=true", 1);
    assert_eq!(step(&mut site), [take("a.service", 1, Taken::BecameGlobal)]);
    assert_eq!(places(&site), "a=-");
    assert_eq!(globals(&site, 1), ["a.service"]);
}

/// That one waits says nothing of the next, unless no machine offers what both ask for.
#[test]
fn units_that_ask_for_the_same_may_fare_differently() {
    let mut site = site(1, &[("c.service", "Conflicts=a.service")]);
    assert_eq!(settled(&mut site), "c=1");
    add(&mut site, "a.service", "");
    add(&mut site, "b.service", "");
    add(&mut site, "d.service", "MachineMetadata=k=v");
    add(&mut site, "e.service", "MachineMetadata=k=v");
    assert_eq!(settled(&mut site), "a=- b=1 c=1 d=- e=-");
    site.machines.insert(machine(2), open("k=v"));
    assert_eq!(settled(&mut site), "a=2 b=1 c=1 d=2 e=2");
}

#[test]
fn a_replaced_unit_goes_elsewhere() {
    let mut site = site(2, &[("replace.0.service", ""), ("replace.1.service", "")]);
    add(&mut site, "replace.2.service", "MachineOf=replace.1.service");
    assert_eq!(settled(&mut site), "replace.0=1 replace.1=2 replace.2=2");

    add(&mut site, "replace-kick0.service", "Replaces=replace.0.service");
    let why = Taken::ReplacedBy { unit: name("replace-kick0.service") };
    assert_eq!(
        step(&mut site),
        [take("replace.0.service", 1, why), place("replace-kick0.service", 1)],
        "its machine is the least loaded one"
    );
    assert_eq!(
        misfits(&site, "replace.0.service")[&2],
        Misfit::Leaving { machine: machine(1) },
        "it may still run"
    );
    assert_eq!(settled(&mut site), "replace-kick0=1 replace.0=2 replace.1=2 replace.2=2");
}

#[test]
fn a_replaced_unit_waits_if_it_fits_nowhere_else() {
    let mut site = site(1, &[("a.service", ""), ("b.service", "MachineOf=a.service")]);
    assert_eq!(settled(&mut site), "a=1 b=1");
    add(&mut site, "z.service", "Replaces=a.service");
    assert_eq!(settled(&mut site), "a=- b=- z=1");
    assert_eq!(misfits(&site, "a.service")[&1], Misfit::ReplacedBy { unit: name("z.service") });
    site.machines.insert(machine(2), open(""));
    assert_eq!(settled(&mut site), "a=2 b=2 z=1");
}

#[test]
fn of_new_units_the_replacing_one_is_first() {
    let mut site = site(1, &[("a.service", ""), ("z.service", "Replaces=a.service")]);
    assert_eq!(step(&mut site), [place("z.service", 1)]);
}

/// fleet documents that units may not replace each other in a circle, and its tests expect that only one of them runs.
#[test]
fn of_units_that_replace_each_other_one_runs() {
    let mut site = site(2, &[("replace.0.service", "Replaces=replace-kick0.service")]);
    assert_eq!(settled(&mut site), "replace.0=1");
    add(&mut site, "replace-kick0.service", "Replaces=replace.0.service");
    assert_eq!(settled(&mut site), "replace-kick0=- replace.0=1");
    let circle = Misfit::Circle { unit: name("replace.0.service") };
    assert_eq!(misfits(&site, "replace-kick0.service"), BTreeMap::from([(1, circle.clone()), (2, circle)]));
    set_desired(&mut site, "replace.0.service", UnitState::Inactive);
    assert_eq!(settled(&mut site), "replace-kick0=1 replace.0=-");
}

#[test]
fn circles_of_replacement_come_to_rest() {
    let table: [(&str, usize, Units<'_>, &str); 4] = [
        (
            "of three",
            3,
            &[
                ("a.service", "Replaces=b.service"),
                ("b.service", "Replaces=c.service"),
                ("c.service", "Replaces=a.service"),
            ],
            "a=1 b=- c=-",
        ),
        (
            "through the peer of a peer",
            1,
            &[
                ("a.service", "MachineOf=b.service\nReplaces=c.service"),
                ("b.service", "MachineOf=c.service"),
                ("c.service", ""),
            ],
            "a=- b=1 c=1",
        ),
        (
            "through three peers",
            1,
            &[
                ("a.service", "MachineOf=x.service\nReplaces=y.service"),
                ("b.service", "MachineOf=y.service\nReplaces=z.service"),
                ("c.service", "MachineOf=z.service\nReplaces=x.service"),
                ("x.service", ""),
                ("y.service", ""),
                ("z.service", ""),
            ],
            "a=- b=- c=- x=1 y=1 z=1",
        ),
        (
            "all of all",
            3,
            &[
                ("a.service", "Replaces=*"),
                ("b.service", "Replaces=*"),
                ("c.service", "Replaces=*"),
                ("d.service", ""),
            ],
            "a=1 b=- c=- d=2",
        ),
    ];
    for (case, machines, units, expected) in table {
        let new = site(machines, units);
        assert_eq!(settled(&mut new.clone()), expected, "{case}");
        for (unit, _) in units {
            let mut early = new.clone();
            early.units.get_mut(&name(unit)).unwrap().place = Place::On(machine(1));
            settle(&mut early);
        }
    }
}

#[test]
fn peers_in_a_circle_and_missing_peers_wait() {
    let mut site = site(
        2,
        &[
            ("a.service", "MachineOf=b.service"),
            ("b.service", "MachineOf=a.service"),
            ("c.service", "MachineOf=gone.service"),
        ],
    );
    assert_eq!(settled(&mut site), "a=- b=- c=-");
    let peer = |unit| Misfit::PeerElsewhere { peer: name(unit), machine: None };
    assert_eq!(misfits(&site, "a.service")[&1], peer("b.service"));
    assert_eq!(misfits(&site, "c.service")[&2], Misfit::PeerMissing { peer: name("gone.service") });
}

#[test]
fn the_least_loaded_is_next_and_nothing_is_balanced() {
    let mut site = site(3, &[]);
    for number in 1..=7 {
        add(&mut site, &format!("u{number}.service"), "");
    }
    assert_eq!(settled(&mut site), "u1=1 u2=2 u3=3 u4=1 u5=2 u6=3 u7=1");
    site.machines.insert(machine(4), open(""));
    assert_eq!(step(&mut site), [], "a new machine moves nothing");
    add(&mut site, "u8.service", "");
    add(&mut site, "u9.service", "");
    assert_eq!(step(&mut site), [place("u8.service", 4), place("u9.service", 4)]);
}

#[test]
fn a_closed_machine_keeps_what_it_has() {
    let mut site = site(2, &[("a.service", ""), ("b.service", "")]);
    assert_eq!(settled(&mut site), "a=1 b=2");
    set_status(&mut site, 1, MachineStatus::Closed);
    add(&mut site, "c.service", "");
    add(&mut site, "d.service", "MachineOf=a.service");
    assert_eq!(settled(&mut site), "a=1 b=2 c=2 d=-");
    assert_eq!(misfits(&site, "d.service")[&1], Misfit::Closed);
}

#[test]
fn a_withdrawn_machine_is_waited_for() {
    let mut site = site(2, &[("a.service", "")]);
    assert_eq!(settled(&mut site), "a=1");
    site.machines.remove(&machine(1));
    let why = Taken::NoLongerFits { misfit: Misfit::NoSuchMachine };
    assert_eq!(step(&mut site), [take("a.service", 1, why)]);
    assert_eq!(places(&site), "a<1");
    assert_eq!(settled(&mut site), "a=2");
}

/// Files may change under units that are there. Of two that conflict now, one goes.
#[test]
fn of_units_that_have_come_into_conflict_one_stays() {
    let mut site = site(2, &[]);
    add_on(&mut site, "a.service", "", 1);
    add_on(&mut site, "b.service", "Conflicts=a.service c.service", 1);
    add_on(&mut site, "c.service", "", 1);
    let misfit = conflict("a.service");
    assert_eq!(step(&mut site), [take("b.service", 1, Taken::NoLongerFits { misfit })]);
    assert_eq!(settled(&mut site), "a=1 b=2 c=1");

    set_desired(&mut site, "a.service", UnitState::Inactive);
    add_on(&mut site, "b.service", "Conflicts=a.service", 1);
    assert_eq!(
        step(&mut site),
        [take("a.service", 1, Taken::NotWanted)],
        "it need not go: the other one does"
    );
}
