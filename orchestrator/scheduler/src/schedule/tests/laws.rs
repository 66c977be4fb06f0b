//! What holds on every site.

use proptest::prelude::*;

use super::*;

const UNITS: usize = 8;
const MACHINES: usize = 4;
const PATTERNS: &[&str] =
    &["u0.service", "u[12].service", "u3.service", "u[4-6].service", "u7.*", "u?.service"];

fn unit_name(number: usize) -> String {
    format!("u{number}.service")
}

/// Lines of `[X-Fleet]`. Some contradict each other.
fn options() -> impl Strategy<Value = String> {
    let peers = prop::collection::vec(0..UNITS, 1..3);
    let patterns = || prop::collection::vec(prop::sample::select(PATTERNS), 1..3);
    let of = peers.prop_map(|peers| {
        peers.into_iter().map(|peer| format!("MachineOf={}", unit_name(peer))).collect::<Vec<_>>().join("\n")
    });
    let conflicts = || patterns().prop_map(|patterns| format!("Conflicts={}", patterns.join(" ")));
    let replaces = || patterns().prop_map(|patterns| format!("Replaces={}", patterns.join(" ")));
    let metadata = prop_oneof![Just("MachineMetadata=k=a"), Just("MachineMetadata=k=a\nMachineMetadata=k=b")];
    let none = || Just(String::new());
    let others = prop_oneof![
        3 => none(),
        2 => conflicts(),
        3 => replaces(),
        1 => Just("Global=true".to_owned()),
        1 => conflicts().prop_map(|conflicts| format!("Global=true\n{conflicts}")),
        1 => (1..=MACHINES).prop_map(|number| format!("MachineID={}", machine(number))),
    ];
    let of = prop_oneof![2 => none(), 1 => of];
    let metadata = prop_oneof![3 => none(), 1 => metadata.prop_map(ToOwned::to_owned)];
    (others, of, metadata, any::<bool>()).prop_map(|(others, of, metadata, evacuates)| {
        let evacuate = if evacuates { "Evacuate=true" } else { "" };
        [others.as_str(), of.as_str(), metadata.as_str(), evacuate].join("\n")
    })
}

fn places_of_units() -> impl Strategy<Value = Place> {
    // The last one is no machine of the site.
    let number = 1..=MACHINES + 1;
    prop_oneof![
        2 => Just(Place::Nowhere),
        3 => number.clone().prop_map(|number| Place::On(machine(number))),
        1 => number.prop_map(|number| Place::Leaving(machine(number))),
    ]
}

fn units() -> impl Strategy<Value = BTreeMap<UnitName, Unit>> {
    let state = prop::sample::select(vec![UnitState::Inactive, UnitState::Loaded, UnitState::Launched]);
    let one = (options(), state, places_of_units()).boxed();
    prop::collection::vec(one, 1..=UNITS).prop_map(|units| {
        let unit = |(number, (options, desired, place)): (usize, (String, UnitState, Place))| {
            let unit = unit_name(number);
            let requirements = requirements(&unit, &options).unwrap_or_default();
            (name(&unit), Unit { requirements, desired, place })
        };
        units.into_iter().enumerate().map(unit).collect()
    })
}

fn machines() -> impl Strategy<Value = BTreeMap<MachineId, Machine>> {
    let status = prop_oneof![
        4 => Just(MachineStatus::Open),
        1 => Just(MachineStatus::Closed),
        1 => Just(MachineStatus::Lost),
    ];
    let one = (prop::sample::select(vec!["", "k=a", "k=b"]), status);
    prop::collection::vec(one, 0..=MACHINES).prop_map(|machines| {
        let one = |(number, (metadata, status)): (usize, (&str, MachineStatus))| {
            (machine(number + 1), Machine { status, ..open(metadata) })
        };
        machines.into_iter().enumerate().map(one).collect()
    })
}

fn sites() -> impl Strategy<Value = Site> {
    (units(), machines()).prop_map(|(units, machines)| Site { units, machines })
}

fn on(unit: &Unit) -> Option<&MachineId> {
    match &unit.place {
        Place::On(machine) => Some(machine),
        Place::Nowhere | Place::Leaving(_) => None,
    }
}

/// Whether the two may share no machine, by the words of both.
fn are_in_conflict((one, one_unit): (&UnitName, &Unit), (other, other_unit): (&UnitName, &Unit)) -> bool {
    let forbids = |unit: &Unit, name: &UnitName| {
        unit.requirements.conflicts.iter().any(|pattern| pattern.matches(name))
    };
    one != other && (forbids(one_unit, other) || forbids(other_unit, one))
}

/// What is wrong with where a unit is, found without indexes; `None` if nothing is.
fn fault(site: &Site, name: &UnitName, unit: &Unit) -> Option<&'static str> {
    let id = on(unit)?;
    let requirements = &unit.requirements;
    let Some(machine) = site.machines.get(id) else { return Some("no such machine") };
    if machine.status == MachineStatus::Lost {
        return Some("lost machine");
    }
    if unit.desired == UnitState::Inactive || requirements.is_global {
        return Some("not to be placed");
    }
    if requirements.machine_id.is_some_and(|wanted| wanted != *id) {
        return Some("other machine");
    }
    let has = |(key, values): (&String, &BTreeSet<String>)| {
        machine.metadata.get(key).is_some_and(|value| values.contains(value))
    };
    if !requirements.machine_metadata.iter().all(has) {
        return Some("metadata");
    }
    let globals: BTreeSet<&UnitName> = site.globals().on(id).collect();
    let is_there = |peer: &UnitName| {
        globals.contains(peer) || site.units.get(peer).is_some_and(|peer| on(peer) == Some(id))
    };
    if !requirements.machine_of.iter().all(is_there) {
        return Some("peer");
    }
    let same_machine = site.units.iter().filter(|(_, other)| on(other) == Some(id));
    let globals = globals.iter().filter_map(|global| site.units.get_key_value(*global));
    if same_machine.chain(globals).any(|other| are_in_conflict((name, unit), other)) {
        return Some("conflict");
    }
    None
}

fn faults(site: &Site) -> Vec<(String, &'static str)> {
    let fault = |(name, unit): (&UnitName, &Unit)| Some((name.to_string(), fault(site, name, unit)?));
    site.units.iter().filter_map(fault).collect()
}

/// Whether a move is right at this moment. `rest` are the moves after it.
fn is_right(site: &Site, step: &Move, rest: &[Move]) -> bool {
    match step {
        Move::Place { unit, machine } => {
            let found = &site.units[unit];
            found.place == Place::Nowhere
                && found.desired != UnitState::Inactive
                && !found.requirements.is_global
                && site.can_run(unit, machine).is_ok()
        }
        Move::Take { unit, machine, why } => {
            let found = &site.units[unit];
            let is_right = match why {
                Taken::NotWanted => found.desired == UnitState::Inactive,
                Taken::BecameGlobal => found.requirements.is_global,
                Taken::Lost => site.machines[machine].status == MachineStatus::Lost,
                Taken::NoLongerFits { misfit } => site.can_run(unit, machine).as_ref() == Err(misfit),
                Taken::ReplacedBy { unit: by } => {
                    let comes = Move::Place { unit: by.clone(), machine: *machine };
                    let is_there = site.units[by].place == Place::On(*machine);
                    let replaces = &site.units[by].requirements.replaces;
                    replaces.iter().any(|pattern| pattern.matches(unit))
                        && (is_there || rest.contains(&comes))
                }
                Taken::Evacuated => found.requirements.evacuates,
            };
            is_right && found.place == Place::On(*machine)
        }
    }
}

/// Carries out moves, each of which must be right when its turn comes.
fn replay(site: &mut Site, moves: &[Move]) {
    for (number, step) in moves.iter().enumerate() {
        assert!(is_right(site, step, &moves[number + 1..]), "{step:?} of {moves:?} is wrong on {site:?}");
        site.apply(step);
    }
}

/// The places of all units that are on machines.
fn placed(site: &Site) -> BTreeMap<UnitName, MachineId> {
    site.units.iter().filter_map(|(name, unit)| Some((name.clone(), *on(unit)?))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_move_is_right_and_nothing_is_left_to_do(mut site in sites()) {
        let moves = site.moves();
        prop_assert!(moves.len() <= 3 * site.units.len());
        prop_assert_eq!(&site.moves(), &moves);
        replay(&mut site, &moves);
        prop_assert_eq!(site.moves(), []);
        prop_assert_eq!(faults(&site), Vec::<(String, &str)>::new());
    }

    #[test]
    fn nothing_moves_that_may_stay(site in sites()) {
        for step in site.moves() {
            if let Move::Take { unit, machine, why: Taken::NoLongerFits { misfit } } = step {
                // Only the move of a peer makes a unit leave that could stay until then.
                let could_stay = site.can_run(&unit, &machine).is_ok();
                prop_assert!(!could_stay || matches!(misfit, Misfit::PeerElsewhere { .. }), "{unit}: {misfit:?}");
            }
        }
    }

    #[test]
    fn a_site_comes_to_rest(mut site in sites()) {
        settle(&mut site);
        prop_assert_eq!(faults(&site), Vec::<(String, &str)>::new());
        for (name, unit) in &site.units {
            let is_waiting = unit.desired != UnitState::Inactive && unit.place == Place::Nowhere;
            if is_waiting && !unit.requirements.is_global {
                let misfits = site.misfits(name);
                prop_assert!(misfits.keys().eq(site.machines.keys()), "{name} waits without a reason: {misfits:?}");
            }
        }
    }

    #[test]
    fn a_new_machine_moves_nothing(mut site in sites(), metadata in prop::sample::select(vec!["", "k=a"])) {
        settle(&mut site);
        let before = placed(&site);
        let new = machine(MACHINES + 2);
        site.machines.insert(new, open(metadata));
        settle(&mut site);
        let mut after = placed(&site);
        after.retain(|_, machine| *machine != new);
        prop_assert_eq!(after, before);
    }

    #[test]
    fn evacuation_takes_what_fits_elsewhere(mut site in sites(), number in 1..=MACHINES) {
        let from = machine(number);
        if let Some(machine) = site.machines.get_mut(&from) {
            machine.status = MachineStatus::Closed;
        }
        settle(&mut site);
        for step in site.evacuate(&from) {
            let Move::Take { unit, machine, why } = &step else { panic!("{step:?} places") };
            let fits = site.machines.len() - site.misfits(unit).len();
            let is_evacuated = *why == Taken::Evacuated
                && site.units[unit].requirements.evacuates
                // On its own machine, where it may stay, and on another one.
                && fits > 1;
            let follows = matches!(why, Taken::NoLongerFits { misfit: Misfit::PeerElsewhere { .. } });
            prop_assert!(*machine == from && (is_evacuated || follows), "{step:?} of {site:?}");
        }
    }
}
