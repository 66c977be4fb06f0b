//! Giving slots back.

use os_upgrade_protocol::HostName;

use crate::config::LockProvider;
use crate::fact::{Fact, ReleaseCause};
use crate::run::Run;
use crate::slot::Standing;
use crate::state::State;

/// Gives back the slot of `host`, if it has one: an embedded one at once, another's once its server confirms.
pub(super) fn release(state: &State, host: &HostName, why: ReleaseCause) -> Option<Fact> {
    let slot = state.slots.get(host)?;
    match (slot.provider, slot.standing) {
        (LockProvider::Embedded, Standing::Requested | Standing::Held | Standing::Releasing { .. }) => {
            Some(Fact::SlotReleased { host: host.clone(), why })
        }
        (LockProvider::External, Standing::Requested | Standing::Held) => {
            Some(Fact::SlotReleaseDue { host: host.clone(), why })
        }
        (LockProvider::External, Standing::Releasing { .. }) => None,
    }
}

/// Takes back what was asked for on behalf of `run` for a host that will not be started. A slot that the host had
/// held before the run stays held: what it is held for has not ended.
pub(super) fn withdraw(state: &State, run: &Run, host: &HostName) -> Option<Fact> {
    let slot = state.slots.get(host)?;
    if slot.run == run.id && slot.standing == Standing::Requested {
        release(state, host, ReleaseCause::NotNeeded)
    } else {
        None
    }
}
