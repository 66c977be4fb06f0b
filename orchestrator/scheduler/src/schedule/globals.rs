//! Which global units run on a machine. Nobody places them: it follows from what else is there.

use std::collections::BTreeSet;

use super::misfit::{has_metadata, unsuited};
use super::site::{Machine, Named};
use crate::{MachineId, UnitName};

/// Those of `globals`, in their order, that suit the machine and conflict neither with the units `present` nor with an earlier one.
pub(super) fn running<'a>(
    globals: impl IntoIterator<Item = Named<'a>>,
    mut present: Vec<Named<'a>>,
    id: &MachineId,
    machine: &Machine,
) -> BTreeSet<&'a UnitName> {
    let mut running = BTreeSet::new();
    // Of two units without `Conflicts` it is clear that they do not conflict, and most have none.
    let mut forbidding: Vec<Named<'a>> =
        present.iter().copied().filter(|named| named.has_conflicts()).collect();
    for global in globals {
        let others = if global.has_conflicts() { &present } else { &forbidding };
        let is_free = || !others.iter().any(|other| global.conflicts_with(*other));
        // To explain why a machine does not suit a unit costs more than to find it out.
        let is_suited = has_metadata(global.unit, machine) && unsuited(global, id, machine).is_none();
        if is_suited && is_free() {
            running.insert(global.name);
            if global.has_conflicts() {
                forbidding.push(global);
            }
            present.push(global);
        }
    }
    running
}
