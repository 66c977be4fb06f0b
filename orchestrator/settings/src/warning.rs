//! Settings that are valid and do not do what they say.

use crate::Settings;

/// What an operator should know of the settings. `Display` gives the sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// Each host of the reboot queue needs a slot.
    #[error(
        "[reboot] max-concurrent-reboots is {reboots}, and [fleet-lock.groups] has {slots} slots in all, so no more reboot at once"
    )]
    RebootsWithoutSlots {
        /// How many hosts of the queue may be under way at once.
        reboots: u32,
        /// How many slots there are.
        slots: u64,
    },
}

impl Warning {
    /// What to do about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::RebootsWithoutSlots { .. } => "raise the slots of a group, or lower max-concurrent-reboots",
        }
    }
}

impl Settings {
    /// What an operator should know of them.
    pub fn warnings(&self) -> Vec<Warning> {
        let reboots = self.reboot.max_concurrent_reboots.get();
        let slots = self.fleet_lock.groups.iter().map(|(_, slots)| u64::from(slots)).sum();
        // The slots of an external lock server are not known here.
        let exceeds = self.fleet_lock.url.is_none() && u64::from(reboots) > slots;
        exceeds.then_some(Warning::RebootsWithoutSlots { reboots, slots }).into_iter().collect()
    }
}
