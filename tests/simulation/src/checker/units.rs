//! Units: they are placed where their files allow it, run on one machine at a time, and are shown as launched once they are. Machines are lost
//! only if their agents are silent, and not if most are.
//!
//! The checker knows what each file asks from whoever wrote it, and does not read it.

mod apart;
mod silence;

use std::collections::{BTreeMap, BTreeSet};

use os_upgrade_kernel::fact::UnitFact;
use os_upgrade_kernel::{Machine, SlotState, State, UnitOperation};
use os_upgrade_protocol::{HostName, ItemId};
use os_upgrade_scheduler::{UnitName, UnitState};
use os_upgrade_shell::journal::AppendId;

use self::apart::Apart;
pub(crate) use self::silence::SeenMachine;
use self::silence::Silences;
use super::desired::Writer;
use super::violation::Violation;
use crate::plan::Plan;
use crate::time::Micros;
use crate::unit_plan::Wants;

/// A unit on a host, with the item by which it was started.
pub(crate) type LaunchedItem = (HostName, String, ItemId);

#[derive(Debug)]
pub(super) struct Units {
    /// What each file asks of machines, by its text.
    wants: BTreeMap<String, Wants>,
    /// Units that run on every machine, whichever of their files they have.
    globals: BTreeSet<String>,
    apart: Apart,
    silences: Silences,
    /// What was started.
    launched: BTreeSet<LaunchedItem>,
    /// The states in which each unit was to be, in order, each with the time since when; `None` while there was no such unit.
    desired: BTreeMap<String, Vec<(Micros, Option<UnitState>)>>,
    /// Units of the present record that were placed before their peers.
    without_peer: Vec<(UnitName, HostName)>,
    /// How many facts there were.
    facts: u64,
}

impl Units {
    pub(super) fn new(plan: &Plan) -> Self {
        let files = || plan.units.iter().flat_map(|units| &units.files);
        Self {
            wants: files().map(|file| (file.contents.clone(), file.wants.clone())).collect(),
            globals: files().filter(|file| file.wants.is_global).map(|file| file.unit.to_string()).collect(),
            apart: Apart::default(),
            silences: Silences::default(),
            launched: BTreeSet::new(),
            desired: BTreeMap::new(),
            without_peer: Vec::new(),
            facts: 0,
        }
    }

    /// A fact was added to the journal, which folds to `state`.
    pub(super) fn fact(&mut self, now: Micros, fact: &UnitFact, state: &State) -> Result<(), Violation> {
        self.facts += 1;
        match fact {
            UnitFact::Submitted { name, desired, .. } => self.said(now, name, Some(*desired)),
            UnitFact::Wanted { name, state, .. } => self.said(now, name, Some(*state)),
            UnitFact::Destroyed { name, .. } => self.said(now, name, None),
            UnitFact::MachineLost { host } => self.apart.lost(host),
            UnitFact::Placed { unit, hosts } => {
                for host in hosts {
                    self.check_place(unit, host, state)?;
                }
                if !self.globals.contains(unit.as_str()) {
                    self.apart.placed(unit.as_str(), hosts)?;
                }
            }
            UnitFact::Stopped { unit, host } => self.apart.stopped(unit.as_str(), host)?,
            UnitFact::MachineJoined { .. } | UnitFact::MachineFound { .. } | UnitFact::Taken { .. } => {}
        }
        Ok(())
    }

    fn said(&mut self, now: Micros, unit: &UnitName, desired: Option<UnitState>) {
        self.desired.entry(unit.to_string()).or_default().push((now, desired));
    }

    /// What the unit asks of its machine; nothing, if there is no such unit.
    fn wants_of(&self, unit: &UnitName, state: &State) -> Wants {
        let file = state.units.units.get(unit).map(|unit| unit.file.text());
        file.and_then(|text| self.wants.get(text)).cloned().unwrap_or_default()
    }

    /// A unit is placed on a host that is open, and fits there. Where its peer is, is seen at the end of the record.
    fn check_place(&mut self, unit: &UnitName, host: &HostName, state: &State) -> Result<(), Violation> {
        let wants = self.wants_of(unit, state);
        let Some(machine) = state.units.machines.get(host) else {
            return Err(placed(unit, host, "which is no machine"));
        };
        if let Some(why) = closed(host, machine, state).or_else(|| unsuited(&wants, machine)) {
            return Err(placed(unit, host, why));
        }
        let others =
            state.units.units.iter().filter(|(other, it)| *other != unit && it.on.contains_key(host));
        for (other, _) in others {
            if wants.conflicts.contains(other) || self.wants_of(other, state).conflicts.contains(unit) {
                return Err(placed(unit, host, &format!("where {other} is, with which it conflicts")));
            }
        }
        if wants.peer.is_some_and(|peer| !stays(&peer, host, state)) {
            self.without_peer.push((unit.clone(), host.clone()));
        }
        Ok(())
    }

    /// The units that the record placed before their peers are where these are, unless they are somewhere else by now.
    pub(super) fn check_peers(&mut self, state: &State) -> Result<(), Violation> {
        for (unit, host) in std::mem::take(&mut self.without_peer) {
            let peer = self.wants_of(&unit, state).peer;
            if stays(&unit, &host, state) && peer.is_some_and(|peer| !stays(&peer, &host, state)) {
                return Err(placed(&unit, &host, "where its peer is not"));
            }
        }
        Ok(())
    }

    /// Whether an operation had its effect at some time since the call.
    pub(super) fn took_effect(&self, operation: &UnitOperation, called: Micros) -> bool {
        let (name, expected) = match operation {
            UnitOperation::Put { name, desired, .. } => (name, Some(desired.unwrap_or(UnitState::Inactive))),
            UnitOperation::Destroy { name, .. } => (name, None),
        };
        let Some(said) = self.desired.get(name.as_str()) else { return false };
        let before = said.partition_point(|(at, _)| *at <= called).saturating_sub(1);
        said[before..].iter().any(|(_, desired)| *desired == expected)
    }

    /// The bus was put back to an earlier moment, and hosts were not.
    pub(super) fn rolled_back(&mut self, names: &[HostName]) {
        for host in names {
            self.apart.lost(host);
        }
    }

    /// The site knows nothing of `host` any more, and what runs there goes on.
    pub(super) fn host_gone(&mut self, host: &HostName) {
        self.apart.lost(host);
    }

    /// `host` has accepted the newest manifest.
    pub(super) fn caught_up(&mut self, host: &HostName) {
        self.apart.caught_up(host);
    }

    /// Whether the present record has placed units before their peers.
    pub(super) fn awaits_peers(&self) -> bool {
        !self.without_peer.is_empty()
    }

    /// A unit begins to run on `host`.
    pub(super) fn begins(&mut self, host: &HostName, unit: &str) -> Result<(), Violation> {
        self.apart.begins(host, unit, self.globals.contains(unit))
    }

    /// A unit does not run on `host` any more.
    pub(super) fn ends(&mut self, host: &HostName, unit: &str) {
        self.apart.ends(host, unit);
    }

    /// An agent has started a unit by this item.
    pub(super) fn launched(&mut self, host: &HostName, unit: &str, item: &ItemId) {
        self.launched.insert((host.clone(), unit.to_owned(), item.clone()));
    }

    /// What is shown as launched was.
    pub(super) fn check_launched(&self, shown: &LaunchedItem) -> Result<(), Violation> {
        if self.launched.contains(shown) {
            return Ok(());
        }
        Err(Violation::new("launched", format!("it is shown and was not: {shown:?}")))
    }

    /// A process begins to lead, and listens to agents from here on.
    pub(super) fn agents_awaited(&mut self, now: Micros, writer: Writer) {
        self.silences.awaited(now, writer);
    }

    /// A heartbeat of an agent reaches a process.
    pub(super) fn agent_heard(&mut self, now: Micros, writer: Writer, host: &HostName) {
        self.silences.heard(now, writer, host);
    }

    /// A process appends that a machine is lost.
    pub(super) fn machine_lost(
        &mut self,
        now: Micros,
        writer: Writer,
        (append, host): (&AppendId, &HostName),
        seen: &BTreeMap<HostName, SeenMachine>,
    ) -> Result<(), Violation> {
        self.silences.lost(now, writer, (append, host), seen)
    }

    /// How many facts there were.
    pub(super) fn facts(&self) -> u64 {
        self.facts
    }
}

/// Whether the unit belongs on `host`.
fn stays(unit: &UnitName, host: &HostName, state: &State) -> bool {
    let unit = state.units.units.get(unit);
    unit.and_then(|unit| unit.on.get(host)).is_some_and(|standing| standing.leaving.is_none())
}

/// Why nothing may be placed on `host`, if so.
fn closed(host: &HostName, machine: &Machine, state: &State) -> Option<&'static str> {
    if machine.lost_since.is_some() {
        Some("which is lost")
    } else if state.pause.is_some() {
        Some("while the site is paused")
    } else if state.enrolment.deferred.contains_key(host) {
        Some("which is deferred")
    } else if state.slots.get(host).is_some_and(|slot| slot.state != SlotState::Requested) {
        Some("which holds a slot")
    } else if !state.enrolled(host).takes_part() {
        Some("which takes no part")
    } else {
        None
    }
}

/// Why a unit that asks for this may not be on the machine, if so.
fn unsuited(wants: &Wants, machine: &Machine) -> Option<&'static str> {
    if wants.machine.is_some_and(|id| id != machine.id) {
        Some("and asks for another machine")
    } else if wants.hall.is_some_and(|hall| machine.metadata.get("hall") != Some(&hall.to_string())) {
        Some("and asks for another hall")
    } else {
        None
    }
}

fn placed(unit: &UnitName, host: &HostName, why: &str) -> Violation {
    Violation::new("placed", format!("{unit} is placed on {host}, {why}"))
}
