//! A site as large as one may be expected to be. There is no time limit: without indexes it would not end while anybody waits.

use super::*;

const MANY: usize = 1000;

/// A thousand units of all kinds on a thousand machines in ten zones.
fn crowd() -> Site {
    let mut site = Site::default();
    for number in 1..=MANY {
        site.machines.insert(machine(number), open(&format!("zone=z{} number={number}", number % 10)));
    }
    for number in 0..MANY {
        let group = number % 50;
        let options = match number % 10 {
            0..=3 => String::new(),
            4 => format!("Conflicts=group{group}-*.service"),
            5 => format!("MachineOf=group{}-{}.service", (number - 5) % 50, number - 5),
            6 => format!("MachineID={}", machine(number + 1)),
            7 => format!("MachineMetadata=zone=z{}", number % 7),
            8 => format!("Replaces=group{}-{}.service", (number - 8) % 50, number - 8),
            _ => format!("MachineMetadata=number={number}\nEvacuate=true"),
        };
        add(&mut site, &format!("group{group}-{number}.service"), &options);
    }
    for number in 0..20 {
        add(&mut site, &format!("global{number}.service"), "Global=true\nMachineMetadata=zone=z1");
    }
    site
}

#[test]
fn a_thousand_units_find_a_thousand_machines() {
    let mut site = crowd();
    assert_eq!(settle(&mut site).len(), MANY, "each is placed once");
    assert_eq!(globals(&site, 1).len(), 20);
    assert_eq!(globals(&site, 2).len(), 0);

    site.machines.insert(machine(MANY + 1), open(""));
    assert_eq!(step(&mut site), [], "a new machine moves nothing");

    let on_first: Vec<UnitName> = site
        .units
        .iter()
        .filter(|(_, unit)| unit.place == Place::On(machine(1)))
        .map(|(name, _)| name.clone())
        .collect();
    assert!(!on_first.is_empty());
    set_status(&mut site, 1, MachineStatus::Lost);
    let moved = step(&mut site).into_iter().map(|step| match step {
        Move::Place { unit, .. } | Move::Take { unit, .. } => unit,
    });
    let moved: BTreeSet<UnitName> = moved.collect();
    assert_eq!(moved.into_iter().collect::<Vec<_>>(), on_first, "nothing else moves");
}

/// Some conflict with others, and some with all.
#[test]
fn hundreds_of_global_units_run_on_a_thousand_machines() {
    let mut site = site(MANY, &[]);
    for number in 0..256 {
        let options = match number % 64 {
            7 => "\nConflicts=other*.service",
            8 => "\nConflicts=g*.service",
            _ => "",
        };
        add(&mut site, &format!("g{number:03}.service"), &format!("Global=true{options}"));
    }
    assert_eq!(site.moves(), []);
    assert_eq!(globals(&site, 1).len(), 252);
    assert_eq!(globals(&site, MANY).len(), 252);
    add_on(&mut site, "other.service", "", 1);
    let found = site.globals();
    assert_eq!(found.on(&machine(1)).count(), 248);
    assert_eq!(found.misfit(&name("g007.service"), &machine(1)), Some(conflict("other.service")));
    assert_eq!(found.misfit(&name("g007.service"), &machine(2)), None);
}

#[test]
fn thousands_of_units_ask_in_vain() {
    let mut site = site(MANY, &[]);
    for number in 0..4 * MANY {
        add(&mut site, &format!("u{number}.service"), "MachineMetadata=zone=z9");
    }
    assert_eq!(site.moves(), []);
}

/// All exclude each other, so that each looks at all machines and all units.
#[test]
fn a_thousand_units_in_conflict_wait_for_machines() {
    let mut site = site(MANY / 2, &[]);
    for number in 0..MANY {
        add(&mut site, &format!("u{number}.service"), "Conflicts=u*.service");
    }
    assert_eq!(settle(&mut site).len(), MANY / 2);
    assert_eq!(site.misfits(&name("u999.service")).len(), MANY / 2);
}
