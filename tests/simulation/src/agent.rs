//! The agent of a host, which has systemd run units, and that systemd, in memory. It keeps to `docs/worker-protocol.md`. No code of it ships.

use std::collections::BTreeMap;

use os_upgrade_protocol::{
    Applied, AppliedItem, Item, ItemId, ItemKind, Manifest, ManifestRefusal, ReportedState, UnitItem,
    UnitReport, WantedState,
};

use crate::time::Micros;

/// The agent of a host.
#[derive(Debug, Default)]
pub(crate) struct Agent {
    /// The newest manifest that it has accepted, which is on its disk.
    accepted: Option<Manifest>,
    /// Why it does not follow what it has read since.
    refused: Option<ManifestRefusal>,
    /// The units that systemd has, by name.
    units: BTreeMap<String, HostUnit>,
    /// Whether this process has read what its host is to have. Until then it changes nothing: while it was away, units may have been moved.
    has_read: bool,
    /// Whether it waits for systemd.
    is_busy: bool,
    /// Until when it hangs.
    pub(crate) hangs_until: Micros,
    /// What orchestrators were told last over this connection.
    pub(crate) reported: Option<Applied>,
}

/// A unit as systemd has it.
#[derive(Debug)]
pub(crate) struct HostUnit {
    /// The item in force.
    pub(crate) item: ItemId,
    unit: UnitItem,
    /// Whether it was started for these contents, this placement and this boot.
    is_started: bool,
    /// Whether it runs. One that is being started does.
    pub(crate) runs: bool,
}

/// What an agent asks of systemd.
#[derive(Debug, Clone)]
pub(crate) enum AgentStep {
    /// Stop a unit and remove it.
    Remove { unit: String },
    /// Have this item in force. A unit that runs with other contents is stopped.
    Load { item: Item },
    /// Start a unit.
    Start { unit: String },
}

impl Agent {
    /// Its process starts.
    pub(crate) fn start(&mut self) {
        (self.has_read, self.is_busy, self.reported) = (false, false, None);
    }

    /// Reads what its host is to have. Returns the manifest if it is new, which counts once it is saved.
    pub(crate) fn read(&mut self, manifest: Option<&Manifest>) -> Option<Manifest> {
        let accepted = self.accepted.as_ref().map(|accepted| accepted.revision);
        let is_older = |manifest: &&Manifest| accepted.is_some_and(|accepted| manifest.revision < accepted);
        self.refused = manifest.filter(is_older).map(|_| ManifestRefusal::Older);
        let new = manifest.filter(|manifest| accepted.is_none_or(|accepted| manifest.revision > accepted));
        self.has_read |= new.is_none();
        new.cloned()
    }

    /// The manifest was saved.
    pub(crate) fn accept(&mut self, manifest: Manifest) {
        (self.accepted, self.has_read) = (Some(manifest), true);
    }

    /// What it is to have, by name.
    fn named(&self, unit: &str) -> Option<&Item> {
        self.items().find(|item| item.name == unit)
    }

    fn items(&self) -> impl Iterator<Item = &Item> {
        let items = self.accepted.iter().flat_map(|manifest| &manifest.items);
        items.filter(|item| item.kind == ItemKind::Unit)
    }

    /// What it asks of systemd next. Of what it is to have it can get what `is_stored`.
    pub(crate) fn next_step(&self, is_stored: impl Fn(&ItemId) -> bool) -> Option<AgentStep> {
        if !self.has_read || self.is_busy {
            return None;
        }
        if let Some(unit) = self.units.keys().find(|unit| self.named(unit).is_none()) {
            return Some(AgentStep::Remove { unit: unit.clone() });
        }
        self.items().find_map(|item| match self.units.get(&item.name) {
            Some(unit) if unit.item == item.id => {
                unit.is_to_start().then(|| AgentStep::Start { unit: item.name.clone() })
            }
            Some(_) | None => is_stored(&item.id).then(|| AgentStep::Load { item: item.clone() }),
        })
    }

    /// Asks systemd for `step`. Returns the unit that begins to run.
    pub(crate) fn begin(&mut self, step: &AgentStep) -> Option<String> {
        self.is_busy = true;
        match step {
            AgentStep::Start { unit } => {
                let it = self.units.get_mut(unit)?;
                let runs = std::mem::replace(&mut it.runs, true);
                (!runs).then(|| unit.clone())
            }
            AgentStep::Remove { .. } | AgentStep::Load { .. } => None,
        }
    }

    /// Systemd has done `step`. `stored` is the unit that it was to load, if the agent has got it. Returns the unit that does not run any more.
    pub(crate) fn finish(&mut self, step: AgentStep, stored: Option<UnitItem>) -> Option<String> {
        self.is_busy = false;
        match step {
            AgentStep::Remove { unit } => self.units.remove(&unit).filter(|it| it.runs).map(|_| unit),
            AgentStep::Load { item } => self.load(item, stored?),
            AgentStep::Start { unit } => {
                if let Some(it) = self.units.get_mut(&unit) {
                    it.is_started = true;
                }
                None
            }
        }
    }

    fn load(&mut self, item: Item, unit: UnitItem) -> Option<String> {
        // Another manifest may have been accepted meanwhile.
        if self.named(&item.name).is_none_or(|named| named.id != item.id) || unit.name != item.name {
            return None;
        }
        let before = self.units.remove(&item.name);
        let is_same = before.as_ref().is_some_and(|before| {
            (&before.unit.contents, before.unit.placement) == (&unit.contents, unit.placement)
        });
        let (was_started, ran) = before.map_or((false, false), |before| (before.is_started, before.runs));
        let (is_started, runs) = if is_same { (was_started, ran) } else { (false, false) };
        self.units.insert(item.name.clone(), HostUnit { item: item.id, unit, is_started, runs });
        (ran && !runs).then_some(item.name)
    }

    /// Its host goes down. Returns the units that ran.
    pub(crate) fn go_down(&mut self) -> Vec<String> {
        let mut ended = Vec::new();
        for (name, unit) in &mut self.units {
            if std::mem::take(&mut unit.runs) {
                ended.push(name.clone());
            }
            unit.is_started = false;
        }
        ended
    }

    /// The units that systemd has, by name.
    pub(crate) fn units(&self) -> &BTreeMap<String, HostUnit> {
        &self.units
    }

    /// The units that were started for what is in force, each with its item.
    pub(crate) fn launched(&self) -> impl Iterator<Item = (&String, &ItemId)> {
        self.units.iter().filter(|(_, unit)| unit.is_started).map(|(name, unit)| (name, &unit.item))
    }

    /// What it reports; nothing before it has accepted a manifest.
    pub(crate) fn report(&self) -> Option<Applied> {
        let accepted = self.accepted.as_ref()?;
        let items = self.units.iter().map(|(name, unit)| AppliedItem {
            kind: ItemKind::Unit,
            name: name.clone(),
            id: Some(unit.item.clone()),
            error: None,
            unit: Some(unit.report()),
        });
        Some(Applied {
            site: accepted.site.clone(),
            revision: accepted.revision,
            items: items.collect(),
            refused: self.refused,
        })
    }
}

impl HostUnit {
    fn is_to_start(&self) -> bool {
        self.unit.state == WantedState::Launched && !self.is_started
    }

    fn report(&self) -> UnitReport {
        let state = if self.is_started { ReportedState::Launched } else { ReportedState::Loaded };
        let (active, sub) = if self.runs { ("active", "running") } else { ("inactive", "dead") };
        UnitReport { state, load: "loaded".to_owned(), active: active.to_owned(), sub: sub.to_owned() }
    }
}
