//! Whose turn it may be, and what a slot is good for: what several decisions, and the effects, ask.

use os_upgrade_protocol::{GroupName, HostName};

use crate::config::LockProvider;
use crate::reason::Reason;
use crate::run::{HostStatus, Phase, Run, RunHost};
use crate::slot::{Slot, Standing};
use crate::state::State;

/// Whether a further host may come under way.
pub(crate) fn has_room(run: &Run) -> bool {
    run.phase == Phase::Upgrading
        && run.stopping.is_none()
        && run.under_way().len() < run.rollout.max_concurrent as usize
}

/// Whether `slot` is one that a host of `group` can use now.
pub(super) fn fits(state: &State, group: &GroupName, slot: &Slot) -> bool {
    slot.provider == state.settings.provider && slot.group == *group
}

/// Whether the lock server is to be asked for a slot for `host`: it waits for the answer, and for nothing else.
pub(crate) fn is_asked_for(state: &State, run: &Run, host: &HostName) -> bool {
    let waits = |in_run: &&RunHost| {
        in_run.status == HostStatus::Waiting && !matches!(in_run.reason, Some(Reason::ClockSkew { .. }))
    };
    let slot = state.slots.get(host).filter(|slot| !matches!(slot.standing, Standing::Releasing { .. }));
    match (run.host(host).filter(waits), slot) {
        (Some(in_run), Some(slot)) => {
            fits(state, &in_run.group, slot) && slot.provider == LockProvider::External
        }
        (None, _) | (_, None) => false,
    }
}
