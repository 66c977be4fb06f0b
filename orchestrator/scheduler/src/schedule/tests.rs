//! Placement on sites that are written as text.

mod crowd;
mod evacuation;
mod laws;
mod reasons;
mod stories;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::*;
use crate::{Requirements, UnitFile, UnitState};

/// Rounds after which a site that does not come to rest never will.
const ROUNDS_MAX: usize = 200;

fn name(text: &str) -> UnitName {
    UnitName::new(text).unwrap()
}

/// Units with their options.
type Units<'a> = &'a [(&'a str, &'a str)];

/// Machine 1 is the first.
fn machine(number: usize) -> MachineId {
    MachineId::new(&format!("{number:032x}")).unwrap()
}

/// The requirements in `options`, lines of `[X-Fleet]`; `None` if they contradict each other.
fn requirements(unit: &str, options: &str) -> Option<Arc<Requirements>> {
    let text = format!("[Service]\nExecStart=/bin/sleep infinity\n\n[X-Fleet]\n{options}\n");
    Requirements::read(&name(unit), &UnitFile::parse(&text).unwrap()).ok().map(Arc::new)
}

/// A launched unit that is nowhere.
fn unit(unit: &str, options: &str) -> Unit {
    let requirements = requirements(unit, options).unwrap();
    Unit { requirements, desired: UnitState::Launched, place: Place::Nowhere }
}

/// An open machine with metadata such as `region=eu disk=ssd`.
fn open(metadata: &str) -> Machine {
    let pairs = metadata.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    let metadata = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    Machine { metadata, status: MachineStatus::Open }
}

/// So many open machines without metadata, and these units with their options.
fn site(machines: usize, units: Units<'_>) -> Site {
    let machines = (1..=machines).map(|number| (machine(number), open(""))).collect();
    let mut site = Site { units: BTreeMap::new(), machines };
    for (name, options) in units {
        add(&mut site, name, options);
    }
    site
}

fn add(site: &mut Site, unit_name: &str, options: &str) {
    site.units.insert(name(unit_name), unit(unit_name, options));
}

/// Adds a unit that belongs on a machine.
fn add_on(site: &mut Site, unit_name: &str, options: &str, number: usize) {
    let place = Place::On(machine(number));
    site.units.insert(name(unit_name), Unit { place, ..unit(unit_name, options) });
}

fn set_status(site: &mut Site, number: usize, status: MachineStatus) {
    site.machines.get_mut(&machine(number)).unwrap().status = status;
}

fn set_desired(site: &mut Site, unit: &str, desired: UnitState) {
    site.units.get_mut(&name(unit)).unwrap().desired = desired;
}

/// Carries out what follows now.
fn step(site: &mut Site) -> Vec<Move> {
    let moves = site.moves();
    for step in &moves {
        site.apply(step);
    }
    moves
}

/// What has left its machine has stopped there.
fn report_stopped(site: &mut Site) {
    for unit in site.units.values_mut() {
        if let Place::Leaving(_) = unit.place {
            unit.place = Place::Nowhere;
        }
    }
}

/// Goes on until nothing moves and nothing is leaving.
fn settle(site: &mut Site) -> Vec<Move> {
    let mut all = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let moves = step(site);
        let is_leaving = site.units.values().any(|unit| matches!(unit.place, Place::Leaving(_)));
        if moves.is_empty() && !is_leaving {
            return all;
        }
        all.extend(moves);
        report_stopped(site);
    }
    panic!("the site does not come to rest: {site:?}");
}

/// The machine of each unit without its suffix: `a=1 b=- c<2`. `-` is nowhere, and `c` is leaving machine 2.
fn places(site: &Site) -> String {
    let number = |machine: &MachineId| {
        let digits = machine.to_string();
        digits.trim_start_matches('0').to_owned()
    };
    let show = |(name, unit): (&UnitName, &Unit)| {
        let stem = name.as_str().trim_end_matches(".service");
        match &unit.place {
            Place::Nowhere => format!("{stem}=-"),
            Place::On(machine) => format!("{stem}={}", number(machine)),
            Place::Leaving(machine) => format!("{stem}<{}", number(machine)),
        }
    };
    site.units.iter().map(show).collect::<Vec<_>>().join(" ")
}

/// Settles a site, and says where its units are then.
fn settled(site: &mut Site) -> String {
    settle(site);
    places(site)
}

fn place(unit: &str, number: usize) -> Move {
    Move::Place { unit: name(unit), machine: machine(number) }
}

fn take(unit: &str, number: usize, why: Taken) -> Move {
    Move::Take { unit: name(unit), machine: machine(number), why }
}

/// Why a unit is not on each machine, by the machine's number.
fn misfits(site: &Site, unit: &str) -> BTreeMap<usize, Misfit> {
    let misfits = site.misfits(&name(unit));
    (1..100).filter_map(|number| Some((number, misfits.get(&machine(number))?.clone()))).collect()
}

fn conflict(unit: &str) -> Misfit {
    Misfit::Conflict { unit: name(unit) }
}

fn globals(site: &Site, number: usize) -> Vec<&str> {
    site.globals().on(&machine(number)).map(UnitName::as_str).collect()
}
