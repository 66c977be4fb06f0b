//! What others ask of the control stream: whether a command may still appear there.

use os_upgrade_protocol::HostName;

use crate::state::State;

impl State {
    /// Whether a command of an ended run, or of a host that was given up, may still appear for `host`, or is being retracted: its
    /// worker may still begin.
    pub(crate) fn may_begin_late(&self, host: &HostName) -> bool {
        let is_being_retracted = self.retractions.values().any(|retracted| retracted == host);
        let slot = self.slots.get(host);
        is_being_retracted || slot.is_some_and(|slot| slot.may_see_late_command(self.fence.as_ref()))
    }
}
