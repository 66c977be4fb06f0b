//! Units, where they are, why they are not elsewhere, and the machines that run them.

use os_upgrade_api_types::routes::units::{
    IgnoredOption, Machine, MachineMisfit, Unit, UnitChange, UnitOnHost, UnitPlan, UnitStatus,
};
use os_upgrade_api_types::word::{UnitStep, Word};

use crate::row::{Column, Detail, Row};
use crate::zone::Zone;

/// How many digits of a machine id are shown, as fleet's tools do.
const SHORT_ID: usize = 8;

/// A unit on one host.
#[derive(Debug)]
pub struct OnHost {
    unit: String,
    host: String,
    machine: String,
    load: String,
    active: String,
    sub: String,
    is_leaving: bool,
}

/// Each of `units` on each of its hosts.
pub fn on_hosts(units: &[UnitStatus<'_>]) -> Vec<OnHost> {
    let pairs = units.iter().flat_map(|unit| unit.on.iter().map(move |on| (unit, on)));
    pairs.map(|(unit, on)| on_host(unit, on)).collect()
}

fn on_host(unit: &UnitStatus<'_>, on: &UnitOnHost<'_>) -> OnHost {
    let word = |word: Option<&str>| word.unwrap_or_default().to_owned();
    OnHost {
        unit: unit.name.to_string(),
        host: on.host.to_string(),
        machine: short(&on.machine),
        load: word(on.load.as_deref()),
        active: word(on.active.as_deref()),
        sub: word(on.sub.as_deref()),
        is_leaving: on.leaving,
    }
}

/// The first digits of a machine id.
fn short(id: &str) -> String {
    id.chars().take(SHORT_ID).collect()
}

/// Where a unit is, in a line.
fn places(status: &UnitStatus<'_>) -> String {
    let place = |on: &UnitOnHost<'_>| format!("{}{}", on.host, if on.leaving { " (leaving)" } else { "" });
    let places: Vec<String> = status.on.iter().map(place).collect();
    if places.is_empty() && status.unplaced { "nowhere".to_owned() } else { places.join(", ") }
}

/// What systemd says of a unit on a host, such as `active/running`.
fn systemd(on: &UnitOnHost<'_>) -> String {
    match (&on.active, &on.sub) {
        (Some(active), Some(sub)) => format!("{active}/{sub}"),
        (Some(active), None) => active.to_string(),
        (None, _) => String::new(),
    }
}

/// What systemd says of a unit: once if it says the same on all hosts.
fn systemds(status: &UnitStatus<'_>) -> String {
    let mut said: Vec<String> = status.on.iter().map(systemd).filter(|said| !said.is_empty()).collect();
    said.sort();
    said.dedup();
    said.join(", ")
}

/// What `units show` says of a unit, besides why machines cannot have it.
pub fn details(unit: &Unit<'_>, zone: Zone) -> Vec<Detail> {
    let Unit { status, contents: _, hash, not_on: _, ignored } = unit;
    let global = if status.global { ", on every machine that suits it" } else { "" };
    let mut lines = vec![
        ("unit", format!("{}{global}", status.name)),
        ("desired", format!("{} since {}, by {}", status.desired, zone.stamp(status.since), status.actor)),
        ("current", status.current.to_string()),
    ];
    if status.unplaced {
        lines.push(("on", "nowhere".to_owned()));
    }
    for (index, on) in status.on.iter().enumerate() {
        let head = if index == 0 { "on" } else { "" };
        let leaving = if on.leaving { ", taken away, and may still run" } else { "" };
        let said = match on.state.as_ref().map(Word::as_str) {
            Some(state) => format!("{state}, {}", systemd(on)),
            None => "its agent has not reported it".to_owned(),
        };
        lines.push((head, format!("{}, machine {}: {said}{leaving}", on.host, short(&on.machine))));
    }
    lines.push(("hash", hash.clone()));
    lines.extend(ignored.iter().map(|option| ("ignored", ignored_line(option))));
    lines
}

fn ignored_line(IgnoredOption { line, name }: &IgnoredOption<'_>) -> String {
    format!("{name} in line {line}: [X-Fleet] has no such option")
}

/// What would follow from a change of a unit, a line for each.
pub fn plan(plan: &UnitPlan<'_>) -> Vec<String> {
    let changes = plan.changes.iter().map(planned);
    changes.chain(plan.ignored.iter().map(|option| format!("ignored: {}", ignored_line(option)))).collect()
}

fn planned(change: &UnitChange<'_>) -> String {
    let UnitChange { kind, unit, hosts, desired, why, text } = change;
    let what = match kind.known() {
        Some(UnitStep::UnitSubmitted) => "would be submitted".to_owned(),
        Some(UnitStep::UnitWanted) => match desired {
            Some(state) => format!("is to be {state}"),
            None => "is to be in another state".to_owned(),
        },
        Some(UnitStep::UnitDestroyed) => "would be destroyed".to_owned(),
        Some(UnitStep::UnitPlaced) => format!("would run on {}", hosts.join(", ")),
        Some(UnitStep::UnitTaken) => format!("would be taken away from {}", hosts.join(", ")),
        Some(UnitStep::UnitStopped) => format!("has stopped on {}", hosts.join(", ")),
        None => kind.to_string(),
    };
    // An instance of an older version has no sentence.
    let why = text.as_deref().or(why.as_deref()).map(|why| format!(": {why}")).unwrap_or_default();
    format!("{unit} {what}{why}")
}

impl Row for UnitStatus<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("UNIT", |unit, _| unit.name.to_string()),
        Column::new("DESIRED", |unit, _| unit.desired.to_string()),
        Column::new("CURRENT", |unit, _| unit.current.to_string()),
        Column::new("SYSTEMD", |unit, _| systemds(unit)),
        Column::wide("GLOBAL", |unit, _| if unit.global { "yes" } else { "" }.to_owned()),
        Column::wide("BY", |unit, _| unit.actor.to_string()),
        Column::wide("SINCE", |unit, zone| zone.stamp(unit.since)),
        Column::text("ON", |unit, _| places(unit)),
    ];
    const NONE: &'static str = "there is no unit; os-upgrade units submit FILE submits one";

    fn name(&self) -> Option<String> {
        Some(self.name.to_string())
    }
}

impl Row for OnHost {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("UNIT", |row, _| row.unit.clone()),
        Column::new("HOST", |row, _| row.host.clone()),
        Column::new("MACHINE", |row, _| row.machine.clone()),
        Column::new("LOAD", |row, _| row.load.clone()),
        Column::new("ACTIVE", |row, _| row.active.clone()),
        Column::new("SUB", |row, _| row.sub.clone()),
        Column::new("", |row, _| if row.is_leaving { "leaving" } else { "" }.to_owned()),
    ];
    const NONE: &'static str = "no machine has it";

    fn name(&self) -> Option<String> {
        Some(self.unit.clone())
    }
}

impl Row for MachineMisfit<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("NOT ON", |misfit, _| misfit.host.to_string()),
        Column::new("MACHINE", |misfit, _| short(&misfit.machine)),
        Column::text("WHY", |misfit, _| misfit.text.clone()),
    ];
    const NONE: &'static str = "every machine can have it";

    fn name(&self) -> Option<String> {
        Some(self.host.to_string())
    }
}

impl Row for Machine<'static> {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("HOST", |machine, _| machine.host.to_string()),
        Column::new("MACHINE", |machine, _| {
            let announced = machine.announced.as_ref().map(|announced| &announced.id);
            machine.id.as_ref().or(announced).map(|id| short(id)).unwrap_or_default()
        }),
        Column::new("STATE", |machine, _| machine.state.to_string()),
        Column::new("UNITS", |machine, _| machine.units.to_string()),
        Column::new("SILENT", |machine, _| machine.silent_for.as_deref().unwrap_or_default().to_owned()),
        Column::new("METADATA", |machine, _| {
            let metadata = machine.metadata.iter().map(|(key, value)| format!("{key}={value}"));
            metadata.collect::<Vec<_>>().join(" ")
        }),
        Column::wide("ADDRESS", |machine, _| machine.address.as_deref().unwrap_or_default().to_owned()),
        Column::wide("SINCE", |machine, zone| zone.stamp_or(machine.since, "")),
        Column::wide("LOST SINCE", |machine, zone| zone.stamp_or(machine.lost_since, "")),
        Column::text("WHY", |machine, _| machine.text.clone().unwrap_or_default()),
    ];
    const NONE: &'static str = "no host runs units: docs/units.md says how one does";

    fn name(&self) -> Option<String> {
        Some(self.host.to_string())
    }
}
