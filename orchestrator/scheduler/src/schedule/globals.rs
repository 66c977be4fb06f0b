//! Which global units run on a machine. Nobody places them: it follows from what else is there.

use std::collections::BTreeSet;

use super::misfit::unsuited;
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
    for global in globals {
        let is_free = || !present.iter().any(|other| global.conflicts_with(*other));
        if unsuited(global, id, machine).is_none() && is_free() {
            running.insert(global.name);
            present.push(global);
        }
    }
    running
}
