//! Rule `fair`, as far as it limits how long clients wait beside runs: the turns of hosts, from the grant of a slot to
//! its release.

use std::collections::BTreeMap;

use os_upgrade_kernel::fact::{QueueFact, RunFact, SlotFact};
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::{ClientId, Fact, HostEvent};
use os_upgrade_protocol::HostName;

use super::violation::Violation;
use crate::time::{Micros, SECOND};

#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Since when each host holds its slot; hosts without a slot are absent.
    since: BTreeMap<HostName, Micros>,
    longest: Micros,
    waits: u64,
}

impl Turns {
    /// The clients that waited for their slot.
    pub(super) fn waits(&self) -> u64 {
        self.waits
    }

    /// A fact was added to the journal.
    pub(super) fn fact(&mut self, now: Micros, fact: &Fact) {
        if let Fact::Run(RunFact::Host { host, event: HostEvent::SlotGranted { .. }, .. })
        | Fact::Queue(QueueFact::Reboot { host, event: EntryEvent::Started { .. }, .. }) = fact
        {
            self.since.insert(host.clone(), now);
        } else if let Fact::Slot(SlotFact::ReleaseDue { host, .. } | SlotFact::Released { host, .. }) = fact
            && let Some(since) = self.since.remove(host)
        {
            self.longest = self.longest.max(now - since);
        }
    }

    /// The longest time for which a host held its slot, since `forget_longest`.
    pub(super) fn longest(&self, now: Micros) -> Micros {
        let turns = self.since.values().map(|since| now - since);
        turns.fold(self.longest, Micros::max)
    }

    pub(super) fn forget_longest(&mut self) {
        self.longest = 0;
    }

    /// A client that had been refused was granted a slot after `waited`, with `within` as the limit.
    pub(super) fn waited(
        &mut self,
        client: &ClientId,
        waited: Micros,
        within: Micros,
    ) -> Result<(), Violation> {
        self.waits += 1;
        if waited > within {
            let (waited, within) = (waited / SECOND, within / SECOND);
            let text = format!("{client} waited {waited} s, and should have waited {within} s at most");
            return Err(Violation::new("fair", text));
        }
        Ok(())
    }
}
