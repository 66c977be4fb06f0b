//! Metrics of units and the machines that run them.

use os_upgrade_api_types::text::UNIT_STATES;
use os_upgrade_scheduler::{Silence, UnitState};
use os_upgrade_site::published_state::PublishedState;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::value::{gauge, number};
use crate::bodies::units;

type ByWord = Family<[(&'static str, &'static str); 1], Gauge>;
type ByTwoWords = Family<[(&'static str, &'static str); 2], Gauge>;

/// The states of machines: whether their agents are heard. One is quiet for as long as its grace lasts, as during an upgrade; silent ones fell
/// silent together, and nothing is moved.
const MACHINES: [&str; 4] = ["heard", "quiet", "silent", "lost"];

/// Describes units and machines.
pub(super) fn describe(registry: &mut Registry, published: &PublishedState) {
    let (state, view) = (&published.state, &published.view);
    let counts = ByTwoWords::default();
    let labels =
        |desired: UnitState, current: UnitState| [("state", desired.as_str()), ("current", current.as_str())];
    for (desired, current) in UNIT_STATES.into_iter().flat_map(|desired| UNIT_STATES.map(|it| (desired, it)))
    {
        counts.get_or_create(&labels(desired, current)).set(0);
    }
    for (name, unit) in state.units.existing() {
        counts.get_or_create(&labels(unit.desired, state.current_state(view, name))).inc();
    }
    let help = "Units, by the state that is wanted and the one in which they are";
    registry.register("os_upgrade_units", help, counts);
    let unplaced = state.units.existing().filter(|(name, unit)| units::is_unplaced(name, unit)).count();
    let help = "Units that are to be loaded or launched, and that no machine has";
    registry.register("os_upgrade_units_unplaced", help, gauge(number(unplaced)));
    let failed = units::failed_units(state, view).count();
    let help = "Units that have failed on a machine, as its systemd says";
    registry.register("os_upgrade_units_failed", help, gauge(number(failed)));
    registry.register(
        "os_upgrade_machines",
        "Machines that run units, by whether their agents are heard; only the leader tells quiet and silent ones",
        machines(published),
    );
    let help = "Machine ids that several hosts announce or have";
    registry.register(
        "os_upgrade_contested_machines",
        help,
        gauge(number(state.contested_machines(view).len())),
    );
}

fn machines(published: &PublishedState) -> ByWord {
    let (state, view) = (&published.state, &published.view);
    let counts = ByWord::default();
    for word in MACHINES {
        counts.get_or_create(&[("state", word)]).set(0);
    }
    let silences = state.silences(view);
    for machine in state.units.machines.values() {
        let word = match (machine.lost_since, silences.get(&machine.id)) {
            (Some(_), _) | (None, Some(Silence::Lost)) => "lost",
            (None, Some(Silence::Mass { .. })) => "silent",
            (None, Some(Silence::Quiet)) => "quiet",
            (None, Some(Silence::Heard) | None) => "heard",
        };
        counts.get_or_create(&[("state", word)]).inc();
    }
    counts
}
