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
    /// A key of `[reboot]` is set that belongs to something that is not there.
    #[error("[reboot] {key} has no effect without {needs}")]
    NoEffect {
        key: &'static str,
        /// What it belongs to.
        needs: &'static str,
    },
}

impl Warning {
    /// What to do about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::RebootsWithoutSlots { .. } => "raise the slots of a group, or lower max-concurrent-reboots",
            Self::NoEffect { .. } => "set what it needs, or remove it",
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
        let exceeds = exceeds.then_some(Warning::RebootsWithoutSlots { reboots, slots });
        exceeds.into_iter().chain(self.without_command()).chain(self.without_cluster()).collect()
    }

    /// The keys of a command that reboots, where there is none.
    fn without_command(&self) -> impl Iterator<Item = Warning> {
        let (reboot, default) = (&self.reboot, Self::default().reboot);
        let keys = [
            ("command-timeout", reboot.command_timeout.is_some()),
            ("command-retries", reboot.command_retries != default.command_retries),
            ("command-interval", reboot.command_interval != default.command_interval),
        ];
        without(keys, reboot.reboot_command.is_some(), "reboot-command")
    }

    /// The keys of nodes, where there is no cluster.
    fn without_cluster(&self) -> impl Iterator<Item = Warning> {
        let (reboot, default) = (&self.reboot, Self::default().reboot);
        let keys = [
            ("api-servers", reboot.api_servers != default.api_servers),
            ("api-server-selector", reboot.api_server_selector != default.api_server_selector),
            ("skip-wait-for-delete", reboot.skip_wait_for_delete.is_some()),
        ];
        without(keys, self.cluster().is_some(), "[kubernetes]")
    }
}

/// A warning for each of the `keys` that is set, unless what they need is there.
fn without<const N: usize>(
    keys: [(&'static str, bool); N],
    is_there: bool,
    needs: &'static str,
) -> impl Iterator<Item = Warning> {
    let set = keys.into_iter().filter(move |(_, is_set)| *is_set && !is_there);
    set.map(move |(key, _)| Warning::NoEffect { key, needs })
}
