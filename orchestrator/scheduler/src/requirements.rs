//! What a unit asks of its machine: the section `[X-Fleet]` of its file.

mod key;
mod problem;
mod words;

use std::collections::{BTreeMap, BTreeSet};

pub use problem::{RequirementsError, RequirementsProblem, VALUES_MAX};

use crate::machine::MachineId;
use crate::pattern::Pattern;
use crate::requirements::key::Key;
use crate::requirements::words::{SECTION, Words};
use crate::unit::{UnitFile, UnitName};

/// Keys that a unit has no two of, with what is wrong if it has.
const CONTRADICTIONS: [(Key, Key, RequirementsProblem); 7] = [
    (Key::MachineId, Key::MachineOf, RequirementsProblem::MachineIdWithMachineOf),
    (Key::MachineId, Key::Conflicts, RequirementsProblem::MachineIdWithConflicts),
    (Key::MachineId, Key::Global, RequirementsProblem::MachineIdWithGlobal),
    (Key::MachineId, Key::Replaces, RequirementsProblem::MachineIdWithReplaces),
    (Key::Global, Key::MachineOf, RequirementsProblem::GlobalWithMachineOf),
    (Key::Global, Key::Replaces, RequirementsProblem::GlobalWithReplaces),
    (Key::Conflicts, Key::Replaces, RequirementsProblem::ConflictsWithReplaces),
];

/// What a unit asks of its machine. A template's has no values that name the instance, such as `%i`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirements {
    /// The only machine that it runs on.
    pub machine_id: Option<MachineId>,
    /// Units on whose machine it runs.
    pub machine_of: Vec<UnitName>,
    /// What its machine's metadata are: for each key one of the values.
    pub machine_metadata: BTreeMap<String, BTreeSet<String>>,
    /// Other units with which it shares no machine. A pattern may match the unit itself, which means nothing.
    pub conflicts: Vec<Pattern>,
    /// Other units that leave its machine. A pattern may match the unit itself, which means nothing.
    pub replaces: Vec<Pattern>,
    /// Whether it runs on every machine that fits.
    pub is_global: bool,
    /// Whether it moves to another machine before its own is upgraded.
    pub evacuates: bool,
}

/// An option of `[X-Fleet]` that means nothing: fleet ignores those, so files that live have them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownOption {
    /// Its line.
    pub line: u32,
    /// Its name.
    pub name: String,
}

/// The options of `[X-Fleet]` that [`Requirements::read`] ignores.
pub fn unknown_options(file: &UnitFile) -> Vec<UnknownOption> {
    let unknown = file.assigned(SECTION).filter(|assigned| Key::new(assigned.name).is_none());
    unknown.map(|assigned| UnknownOption { line: assigned.line, name: assigned.name.to_owned() }).collect()
}

impl Requirements {
    /// What the file of the unit `name` asks. Older names of options count as the newer ones do.
    ///
    /// # Errors
    /// See [`RequirementsProblem`].
    pub fn read(name: &UnitName, file: &UnitFile) -> Result<Self, RequirementsError> {
        use RequirementsProblem as P;
        let words = Words::read(name, file)?;
        if let Some(line) = words.first_line(Key::MachineBootId) {
            return Err(RequirementsError { line, problem: P::MachineBootId });
        }
        let mut machine_id = None;
        words.each(Key::MachineId, |text| {
            let id = MachineId::new(text).map_err(|_| P::MachineId)?;
            let other = machine_id.replace(id).filter(|before| *before != id);
            other.map_or(Ok(()), |_| Err(P::TwoMachineIds))
        })?;
        let machine_of = words.each(Key::MachineOf, |text| {
            let peer = UnitName::new(text).map_err(P::Peer)?;
            if peer == *name { Err(P::PeerItself) } else { Ok(peer) }
        })?;
        let mut machine_metadata: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (key, value) in words.each(Key::MachineMetadata, pair)? {
            machine_metadata.entry(key).or_default().insert(value);
        }
        let conflicts = words.each(Key::Conflicts, |text| {
            other_units(text, name, &machine_of, P::ConflictsWithItself, |peer| P::PeerConflicts { peer })
        })?;
        let replaces = words.each(Key::Replaces, |text| {
            other_units(text, name, &machine_of, P::ReplacesItself, |peer| P::PeerReplaced { peer })
        })?;
        // The last one counts, as in fleet.
        let is_global = words.each(Key::Global, boolean)?.pop().unwrap_or(false);
        let evacuates = words.each(Key::Evacuate, boolean)?.pop().unwrap_or(false);
        check_contradictions(&words, is_global)?;
        Ok(Self { machine_id, machine_of, machine_metadata, conflicts, replaces, is_global, evacuates })
    }
}

/// Refuses two requirements that exclude each other.
fn check_contradictions(words: &Words, is_global: bool) -> Result<(), RequirementsError> {
    let line_of = |key| words.first_line(key).filter(|_| key != Key::Global || is_global);
    for (one, other, problem) in CONTRADICTIONS {
        if let (Some(one), Some(other)) = (line_of(one), line_of(other)) {
            return Err(RequirementsError { line: one.max(other), problem });
        }
    }
    Ok(())
}

/// The key and the value of metadata.
fn pair(text: &str) -> Result<(String, String), RequirementsProblem> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() && !value.contains('=') => {
            Ok((key.to_owned(), value.to_owned()))
        }
        Some(_) | None => Err(RequirementsProblem::Metadata),
    }
}

/// A pattern of units that are to be elsewhere than `name`. The problem is `itself` if it stands for `name` alone, and `peer` if it matches
/// one of the units that are to be on the same machine.
fn other_units(
    text: &str,
    name: &UnitName,
    peers: &[UnitName],
    itself: RequirementsProblem,
    peer: fn(UnitName) -> RequirementsProblem,
) -> Result<Pattern, RequirementsProblem> {
    let pattern = Pattern::new(text).map_err(RequirementsProblem::Pattern)?;
    if pattern.only_name().as_ref() == Some(name) {
        return Err(itself);
    }
    match peers.iter().find(|peer| pattern.matches(peer)) {
        Some(found) => Err(peer(found.clone())),
        None => Ok(pattern),
    }
}

/// A boolean in one of the forms that systemd reads.
fn boolean(text: &str) -> Result<bool, RequirementsProblem> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "y" | "true" | "t" | "on" => Ok(true),
        "0" | "no" | "n" | "false" | "f" | "off" => Ok(false),
        _ => Err(RequirementsProblem::Boolean),
    }
}

#[cfg(test)]
mod tests;
