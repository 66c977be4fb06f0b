//! Slots that are released because time has passed, or because a fence was.

use chrono::{DateTime, Utc};

use super::state::{LATE_REQUEST_MAX, ReleaseCause, Slot, SlotState};
use crate::config::OnFailure;
use crate::fact::{Fact, SlotFact, non_empty};
use crate::state::State;
use crate::view::View;

/// Releases slots whose last command was never sent, as a passed fence shows.
pub(crate) fn release_unsent(state: &State, _: &View, _: DateTime<Utc>) -> Option<Vec<Fact>> {
    let fence = state.fence.as_ref();
    let was_never_sent = |slot: &Slot| slot.unsent_at_fence.is_some() && !slot.may_see_late_command(fence);
    let cause = |slot: &Slot| match (slot.begun, state.settings.on_failure) {
        (false, OnFailure::Hold | OnFailure::Release) => Some(ReleaseCause::NeverSent),
        (true, OnFailure::Release) => Some(ReleaseCause::Failed),
        // An earlier command of the same step was seen: the host may be working on it.
        (true, OnFailure::Hold) => None,
    };
    let unsent = state.slots.iter().filter(|(_, slot)| was_never_sent(slot) && slot.state == SlotState::Held);
    non_empty(unsent.filter_map(|(host, slot)| state.release_slot(host, cause(slot)?)).collect())
}

/// Releases slots once more that were in doubt: a request whose outcome is not known may have been carried out after the
/// release.
pub(crate) fn release_again(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let due = state.slots.iter().filter_map(|(host, slot)| {
        let SlotState::Releasing { why } = slot.state else { return None };
        let is_due = view.clock.has_passed(LATE_REQUEST_MAX, slot.unlocked_at?, now);
        is_due.then(|| Fact::Slot(SlotFact::ReleaseDue { host: host.clone(), why }))
    });
    non_empty(due.collect())
}
