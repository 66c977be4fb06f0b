//! Units and machines: where units run, why one does not, and what needs a person.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use os_upgrade_api_types::body::Stamp;
use os_upgrade_api_types::routes::state::{
    ContestedMachine, FailedUnits, LostMachines, MassSilence, UnitTrouble, UnplacedUnits, WaitingMachines,
};
use os_upgrade_api_types::routes::units::{
    AnnouncedMachine, FAILED, IgnoredOption, Machine, MachineMisfit, UnitChange, UnitOnHost, UnitStatus,
};
use os_upgrade_api_types::word::{MachineStep, UnitStep, Word};
use os_upgrade_calendar::Duration;
use os_upgrade_console::{describe, no_machine, not_stopped, other_metadata};
use os_upgrade_kernel::unit::{Closed, TakenAway, UnitFact};
use os_upgrade_kernel::{self as kernel, Admission, MachineOffer, Standing, State, View};
use os_upgrade_protocol::{HostName, ReportedState, UnitReport};
use os_upgrade_scheduler::{MachineId, Misfit, Silence, UnitFile, UnitName, UnitState, unknown_options};
use os_upgrade_site::published_state::PublishedState;

/// How long a unit may be placed nowhere before that needs a person: machines come back, and others are approved.
const UNPLACED_AFTER: TimeDelta = TimeDelta::minutes(15);
/// The most machine ids, and hosts of each, that are listed as contested: hosts may announce any.
const LISTED_MAX: usize = 8;

/// About how many units, places of units and hosts an answer goes through.
pub(crate) fn size(published: &PublishedState) -> usize {
    let PublishedState { state, view, .. } = published;
    let places: usize = state.units.units.values().map(|unit| unit.on.len()).sum();
    state.units.units.len() + places + state.units.machines.len() + view.hosts.len()
}

/// A unit, and where it is.
pub(crate) fn status<'a>(
    published: &'a PublishedState,
    name: &'a UnitName,
    unit: &'a kernel::Unit,
) -> UnitStatus<'a> {
    let (state, view) = (&published.state, &published.view);
    let reports: BTreeMap<&HostName, &UnitReport> = state.unit_report(view, name).into_iter().collect();
    let on = unit.on.iter().map(|(host, standing)| on_host(host, standing, reports.get(host).copied()));
    UnitStatus {
        name: name.as_str().into(),
        desired: Word::Known(unit.desired),
        current: Word::Known(state.current_state(view, name)),
        global: unit.is_global(),
        unplaced: is_unplaced(name, unit),
        on: on.collect(),
        actor: unit.actor.as_str().into(),
        since: Stamp(unit.since),
    }
}

/// Whether the unit is to be loaded or launched, and no machine has it.
pub(crate) fn is_unplaced(name: &UnitName, unit: &kernel::Unit) -> bool {
    !name.is_template() && unit.desired != UnitState::Inactive && unit.on.is_empty()
}

fn on_host<'a>(host: &'a HostName, standing: &'a Standing, report: Option<&'a UnitReport>) -> UnitOnHost<'a> {
    UnitOnHost {
        host: host.as_str().into(),
        machine: standing.machine.as_str().into(),
        leaving: standing.leaving.is_some(),
        state: report.map(|report| Word::Known(reported(report.state))),
        load: report.map(|report| report.load.as_str().into()),
        active: report.map(|report| report.active.as_str().into()),
        sub: report.map(|report| report.sub.as_str().into()),
    }
}

const fn reported(state: ReportedState) -> UnitState {
    match state {
        ReportedState::Inactive => UnitState::Inactive,
        ReportedState::Loaded => UnitState::Loaded,
        ReportedState::Launched => UnitState::Launched,
    }
}

/// Why each machine on which the unit is not cannot have it.
pub(crate) fn misfits<'a>(state: &'a State, view: &View, name: &UnitName) -> Vec<MachineMisfit<'a>> {
    each_misfit(state, view, name).collect()
}

fn each_misfit<'a>(
    state: &'a State,
    view: &View,
    name: &UnitName,
) -> impl Iterator<Item = MachineMisfit<'a>> + use<'a> {
    let machines = state.units.machines.iter();
    let hosts: BTreeMap<MachineId, (&HostName, &kernel::Machine)> =
        machines.map(|(host, machine)| (machine.id, (host, machine))).collect();
    let unit = state.units.unit(name);
    let closed = state.closed_machines(view);
    let left = unit.and_then(|unit| unit.leaves().next());
    let left = left.map(|(host, _)| not_stopped(host, state.units.machines.contains_key(host)));
    let found = state.why_not_placed(view, name).into_iter();
    found.filter_map(move |(id, misfit)| {
        let (host, machine) = *hosts.get(&id)?;
        let is_on = unit.is_some_and(|unit| unit.on.contains_key(host));
        let why = (closed.get(host), left.as_deref());
        if is_on { None } else { Some(machine_misfit((host, machine), &misfit, why)) }
    })
}

/// Why a unit cannot be on a machine; beside that why the machine is closed, and that the unit has not stopped elsewhere.
fn machine_misfit<'a>(
    (host, machine): (&'a HostName, &'a kernel::Machine),
    misfit: &Misfit,
    (closed, left): (Option<&Closed>, Option<&str>),
) -> MachineMisfit<'a> {
    let left = if matches!(misfit, Misfit::Leaving { .. }) { left } else { None };
    let closed = match misfit {
        Misfit::Closed => closed,
        Misfit::NoSuchUnit
        | Misfit::NoSuchMachine
        | Misfit::Template
        | Misfit::Leaving { .. }
        | Misfit::OtherMachine { .. }
        | Misfit::Metadata { .. }
        | Misfit::Lost
        | Misfit::PeerMissing { .. }
        | Misfit::PeerElsewhere { .. }
        | Misfit::Conflict { .. }
        | Misfit::ReplacedBy { .. }
        | Misfit::Circle { .. } => None,
    };
    let text = closed.map(|why| describe(why).to_string()).or_else(|| left.map(ToOwned::to_owned));
    let text = text.unwrap_or_else(|| describe(misfit).to_string());
    MachineMisfit {
        host: host.as_str().into(),
        machine: machine.id.as_str().into(),
        kind: <&'static str>::from(misfit).into(),
        closed: closed.map(|why| <&'static str>::from(why).into()),
        text,
    }
}

/// The options of `[X-Fleet]` in `file` that are ignored.
pub(crate) fn ignored(file: &UnitFile) -> Vec<IgnoredOption<'static>> {
    let options = unknown_options(file).into_iter();
    options.map(|option| IgnoredOption { line: option.line, name: option.name.into() }).collect()
}

/// What would happen to a unit.
pub(crate) fn change(fact: &UnitFact) -> Option<UnitChange<'_>> {
    let nowhere: &[HostName] = &[];
    let (kind, unit, hosts) = match fact {
        UnitFact::Submitted { name, .. } => (UnitStep::UnitSubmitted, name, nowhere),
        UnitFact::Wanted { name, .. } => (UnitStep::UnitWanted, name, nowhere),
        UnitFact::Destroyed { name, .. } => (UnitStep::UnitDestroyed, name, nowhere),
        UnitFact::Placed { unit, hosts } => (UnitStep::UnitPlaced, unit, hosts.as_slice()),
        UnitFact::Taken { unit, hosts, .. } => (UnitStep::UnitTaken, unit, hosts.as_slice()),
        UnitFact::Stopped { unit, host } => (UnitStep::UnitStopped, unit, std::slice::from_ref(host)),
        // They happen to machines, whatever is asked for.
        UnitFact::MachineJoined { .. } | UnitFact::MachineLost { .. } | UnitFact::MachineFound { .. } => {
            return None;
        }
    };
    let desired = if let UnitFact::Wanted { state, .. } = fact { Some(Word::Known(*state)) } else { None };
    let why = if let UnitFact::Taken { why, .. } = fact { Some(why) } else { None };
    let word = |why: &TakenAway| Cow::from(<&'static str>::from(why));
    Some(UnitChange {
        kind: Word::Known(kind),
        unit: unit.as_str().into(),
        hosts: hosts.iter().map(|host| host.as_str().into()).collect(),
        desired,
        why: why.map(word),
        text: why.map(|why| describe(why).to_string()),
    })
}

/// Every host that runs units, or did as a machine, by name.
pub(crate) fn machines(published: &PublishedState) -> Vec<Machine<'_>> {
    let (state, view) = (&published.state, &published.view);
    let mut counts: BTreeMap<&HostName, usize> = BTreeMap::new();
    for host in state.units.units.values().flat_map(|unit| unit.on.keys()) {
        *counts.entry(host).or_default() += 1;
    }
    let hosts: BTreeSet<&HostName> = state.units.machines.keys().chain(view.hosts.keys()).collect();
    let count = |host: &HostName| counts.get(host).copied().unwrap_or_default();
    let closed = state.closed_machines(view);
    hosts.into_iter().filter_map(|host| machine(published, host, (count(host), closed.get(host)))).collect()
}

/// `host` as a machine, with the number of its units and why it gets no further one.
fn machine<'a>(
    published: &'a PublishedState,
    host: &'a HostName,
    (units, closed): (usize, Option<&Closed>),
) -> Option<Machine<'a>> {
    let (state, view) = (&published.state, &published.view);
    let admission = state.admission(view, host)?;
    let approved = state.units.machines.get(host);
    let lost_since = approved.and_then(|machine| machine.lost_since);
    let step = match &admission {
        Admission::Waiting(_) => MachineStep::Waiting,
        Admission::Taken { .. } => MachineStep::Taken,
        Admission::NoId => MachineStep::NoId,
        Admission::TwoReporters => MachineStep::TwoReporters,
        Admission::Joined | Admission::OtherMetadata(_) | Admission::OtherId { .. } => {
            match (lost_since, closed) {
                (Some(_), _) => MachineStep::Lost,
                (None, Some(_)) => MachineStep::Closed,
                (None, None) => MachineStep::Open,
            }
        }
    };
    let lost = || lost_since.map(|_| describe(&Misfit::Lost).to_string());
    let text = no_machine(host, &admission).or_else(lost);
    let text = text.or_else(|| closed.map(|why| describe(why).to_string()));
    let text = text.or_else(|| other_metadata(host, &admission));
    let announced = match admission {
        Admission::Waiting(offer)
        | Admission::OtherMetadata(offer)
        | Admission::OtherId { announced: Some(offer) } => Some(announced(offer)),
        Admission::Joined
        | Admission::OtherId { announced: None }
        | Admission::Taken { .. }
        | Admission::NoId
        | Admission::TwoReporters => None,
    };
    let silent = approved.map(|_| view.agent_silence(host).as_secs()).filter(|silent| *silent > 0);
    Some(Machine {
        host: host.as_str().into(),
        id: approved.map(|machine| machine.id.as_str().into()),
        state: Word::Known(step),
        closed: closed.map(|why| <&'static str>::from(why).into()),
        text,
        since: approved.map(|machine| Stamp(machine.since)),
        lost_since: lost_since.map(Stamp),
        silent_for: silent.map(|silent| Duration::from_secs(silent).to_string().into()),
        address: approved.map(|machine| Cow::from(&machine.address)).filter(|address| !address.is_empty()),
        metadata: approved.map(|machine| borrowed(&machine.metadata)).unwrap_or_default(),
        announced,
        units,
    })
}

fn borrowed(metadata: &BTreeMap<String, String>) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
    metadata.iter().map(|(key, value)| (key.into(), value.into())).collect()
}

fn announced(offer: MachineOffer) -> AnnouncedMachine<'static> {
    let metadata = offer.metadata.into_iter().map(|(key, value)| (key.into(), value.into()));
    AnnouncedMachine { id: offer.id.to_string().into(), metadata: metadata.collect() }
}

/// What keeps units from running at `now`.
pub(crate) fn trouble(published: &PublishedState, now: DateTime<Utc>) -> Option<UnitTrouble<'_>> {
    let (state, view) = (&published.state, &published.view);
    let (contested, more_contested) = contested(state, view);
    let trouble = UnitTrouble {
        unplaced: unplaced(state, view, now),
        failed: failed(state, view),
        lost: lost(state),
        mass_silence: mass_silence(state, view),
        contested,
        more_contested,
        waiting: waiting(state, view),
    };
    (trouble != UnitTrouble::default()).then_some(trouble)
}

fn unplaced<'a>(state: &'a State, view: &View, now: DateTime<Utc>) -> Option<UnplacedUnits<'a>> {
    let is_old = |unit: &kernel::Unit| unit.since + UNPLACED_AFTER <= now;
    let mut units = state.units.existing().filter(|(name, unit)| is_unplaced(name, unit) && is_old(unit));
    let (name, unit) = units.next()?;
    let misfit = each_misfit(state, view, name).next();
    let text = misfit.map_or_else(
        || "no host is a machine that can have it".to_owned(),
        |misfit| format!("{}: {}", misfit.host, misfit.text),
    );
    let (first, since) = (name.as_str().into(), Stamp(unit.since));
    Some(UnplacedUnits { units: 1 + units.count(), first, since, text })
}

/// The units that have failed, each with a host on which that is so.
pub(crate) fn failed_units<'a>(
    state: &'a State,
    view: &'a View,
) -> impl Iterator<Item = (&'a UnitName, &'a HostName)> {
    state.units.existing().filter_map(move |(name, _)| {
        let reports = state.unit_report(view, name).into_iter();
        let mut failed = reports.filter(|(_, report)| report.active == FAILED);
        failed.next().map(|(host, _)| (name, host))
    })
}

fn failed<'a>(state: &'a State, view: &'a View) -> Option<FailedUnits<'a>> {
    let mut units = failed_units(state, view);
    let (first, host) = units.next()?;
    Some(FailedUnits { units: 1 + units.count(), first: first.as_str().into(), host: host.as_str().into() })
}

fn lost(state: &State) -> Option<LostMachines<'_>> {
    let machines = state.units.machines.iter();
    let mut lost = machines.filter_map(|(host, machine)| Some((host, machine.lost_since?)));
    let (first, since) = lost.next()?;
    Some(LostMachines { machines: 1 + lost.count(), first: first.as_str().into(), since: Stamp(since) })
}

fn mass_silence(state: &State, view: &View) -> Option<MassSilence> {
    state.silences(view).into_values().find_map(|silence| match silence {
        Silence::Mass { silent, reachable } => Some(MassSilence { silent, reachable }),
        Silence::Heard | Silence::Quiet | Silence::Lost => None,
    })
}

/// The contested machine ids that are listed, and how many are not.
fn contested<'a>(state: &'a State, view: &'a View) -> (Vec<ContestedMachine<'a>>, Option<usize>) {
    let contested = state.contested_machines(view);
    let more = not_listed(contested.len());
    let machine = |(id, hosts): (MachineId, BTreeSet<&'a HostName>)| ContestedMachine {
        id: id.to_string().into(),
        more: not_listed(hosts.len()),
        hosts: hosts.into_iter().take(LISTED_MAX).map(|host| host.as_str().into()).collect(),
    };
    (contested.into_iter().take(LISTED_MAX).map(machine).collect(), more)
}

/// How many of `count` are not listed; absent if all are.
fn not_listed(count: usize) -> Option<usize> {
    count.checked_sub(LISTED_MAX).filter(|more| *more > 0)
}

fn waiting<'a>(state: &State, view: &'a View) -> Option<WaitingMachines<'a>> {
    let is_waiting = |host: &HostName| match state.admission(view, host) {
        Some(Admission::Waiting(_) | Admission::OtherId { announced: Some(_) }) => true,
        Some(
            Admission::Joined
            | Admission::OtherMetadata(_)
            | Admission::OtherId { announced: None }
            | Admission::Taken { .. }
            | Admission::NoId
            | Admission::TwoReporters,
        )
        | None => false,
    };
    let running = view.hosts.iter().filter(|(_, seen)| seen.runs_units.is_some()).map(|(host, _)| host);
    let mut hosts = running.filter(|host| state.enrolled(host).takes_part() && is_waiting(host));
    let first = hosts.next()?;
    Some(WaitingMachines { hosts: 1 + hosts.count(), first: first.as_str().into() })
}
