//! Units leave a machine before its host is upgraded.

use super::*;

/// Machine 1 with these units, closed, and one more open machine.
fn closed_with(units: Units<'_>) -> Site {
    let mut site = site(2, &[]);
    for (name, options) in units {
        add_on(&mut site, name, options, 1);
    }
    set_status(&mut site, 1, MachineStatus::Closed);
    site
}

/// Evacuates machine 1, and says where the units are when all have moved.
fn evacuated(site: &mut Site) -> String {
    let moves = site.evacuate(&machine(1));
    for step in &moves {
        site.apply(step);
    }
    settled(site)
}

#[test]
fn only_units_that_want_to_are_evacuated() {
    let mut site =
        closed_with(&[("a.service", "Evacuate=true"), ("b.service", ""), ("c.service", "Evacuate=yes")]);
    assert_eq!(
        site.evacuate(&machine(1)),
        [take("a.service", 1, Taken::Evacuated), take("c.service", 1, Taken::Evacuated)]
    );
    assert_eq!(evacuated(&mut site), "a=2 b=1 c=2");
    assert_eq!(site.evacuate(&machine(1)), []);
    assert_eq!(site.evacuate(&machine(9)), [], "there is no such machine");
}

#[test]
fn units_that_fit_nowhere_else_stay() {
    let table: [(&str, Units<'_>, &str); 5] = [
        ("a conflict", &[("a.service", "Evacuate=true\nConflicts=there.service")], "a=1 there=2"),
        ("no metadata", &[("a.service", "Evacuate=true\nMachineMetadata=disk=ssd")], "a=1 there=2"),
        // They are in conflict because a file has changed since.
        (
            "room for one",
            &[("a.service", "Evacuate=true\nConflicts=b.service"), ("b.service", "Evacuate=true")],
            "a=2 b=1 there=2",
        ),
        (
            "the peer stays",
            &[("a.service", ""), ("b.service", "Evacuate=true\nMachineOf=a.service")],
            "a=1 b=1 there=2",
        ),
        (
            "the peer goes",
            &[("a.service", "Evacuate=true"), ("b.service", "MachineOf=a.service")],
            "a=2 b=2 there=2",
        ),
    ];
    for (case, units, expected) in table {
        let mut site = closed_with(units);
        add_on(&mut site, "there.service", "", 2);
        site.machines.insert(machine(1), Machine { status: MachineStatus::Closed, ..open("disk=ssd") });
        assert_eq!(evacuated(&mut site), expected, "{case}");
    }
}

#[test]
fn nothing_is_evacuated_where_no_machine_is_open() {
    let mut site = closed_with(&[("a.service", "Evacuate=true")]);
    set_status(&mut site, 2, MachineStatus::Closed);
    assert_eq!(site.evacuate(&machine(1)), []);
    assert_eq!(misfits(&site, "a.service"), BTreeMap::from([(2, Misfit::Closed)]));
}
