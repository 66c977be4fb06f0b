//! What follows for units and machines at each tick: which hosts become machines, which are lost or found, where units have stopped, and
//! where they go. Placing looks at everything, and once a second is often enough.

use std::collections::BTreeSet;

use os_upgrade_protocol::{HostName, Revision};
use os_upgrade_scheduler::{MachineId, Silence, UnitName};

use super::fact::UnitFact;
use super::rules::offer;
use crate::enrolment::{APPROVED_AT_ONCE_MAX, ENROLLED_MAX, Enrolled};
use crate::fact::Fact;
use crate::state::State;
use crate::view::View;

/// Each host that the settings approve becomes the machine that it first announces. Another one waits for an operator, as does an id that
/// another machine has.
pub(crate) fn join_first(state: &State, view: &View) -> Vec<Fact> {
    if !state.settings.auto_approve {
        return Vec::new();
    }
    let machines = &state.units.machines;
    let mut taken: BTreeSet<MachineId> = machines.values().map(|machine| machine.id).collect();
    let new = view.hosts.iter().filter(|(host, seen)| {
        seen.runs_units.is_some() && !machines.contains_key(*host) && state.enrolled(host) == Enrolled::Auto
    });
    let joined = new.filter_map(|(host, seen)| {
        let offer = offer(view, host).filter(|offer| taken.insert(offer.id))?;
        let address = seen.address.clone().unwrap_or_default();
        let (host, machine, metadata) = (host.clone(), offer.id, offer.metadata);
        Some(UnitFact::MachineJoined { host, machine, metadata, address, actor: None }.into())
    });
    let room = ENROLLED_MAX.saturating_sub(machines.len()).min(APPROVED_AT_ONCE_MAX);
    joined.take(room).collect()
}

/// Machines whose agents are silent, and those that are heard again and have stopped what they lost. While the site is paused none is found
/// to be lost: its units could go nowhere.
///
/// How long an agent may be silent is what the `committed` state says. Where the record that is being decided shortens that, its silence
/// counts anew once the record is committed.
pub(crate) fn judge_machines(state: &State, committed: &State, view: &View) -> Vec<Fact> {
    if state.units.machines.is_empty() {
        return Vec::new();
    }
    let silences = committed.silences(view);
    let changed = state.units.machines.iter().filter_map(|(host, machine)| {
        let host = host.clone();
        match (silences.get(&machine.id)?, machine.lost_since) {
            (Silence::Lost, None) if state.pause.is_none() => Some(UnitFact::MachineLost { host }.into()),
            // A leader that has just begun has heard of no silence, and perhaps of nobody.
            (Silence::Heard, Some(_)) if view.hears_agent(&host) && state.has_stopped_losses(view, &host) => {
                Some(UnitFact::MachineFound { host }.into())
            }
            (Silence::Heard | Silence::Quiet | Silence::Lost | Silence::Mass { .. }, Some(_) | None) => None,
        }
    });
    changed.collect()
}

/// Units that no longer run where they were taken away, as the hosts report.
pub(crate) fn find_stopped(state: &State, view: &View) -> Vec<Fact> {
    // Only an agent says what runs on its host: another worker names no unit.
    let has_stopped = |name: &UnitName, host: &HostName, since: Revision| {
        state.agent_report(view, host).is_some_and(|applied| applied.revision >= since)
            && state.reported_unit(view, host, name).is_none()
    };
    let leaving = state.units.units.iter().flat_map(|(name, unit)| {
        unit.leaves().filter_map(move |(host, standing)| Some((name, host, standing.leaving?)))
    });
    let stopped = leaving.filter(|(name, host, since)| has_stopped(name, host, *since));
    stopped
        .map(|(unit, host, _)| UnitFact::Stopped { unit: unit.clone(), host: host.clone() }.into())
        .collect()
}

/// Where units go now.
pub(crate) fn place(state: &State, view: &View) -> Vec<Fact> {
    state.plan(view).into_iter().map(Fact::from).collect()
}
