//! Drains that are given up for now: when what they were for starts again.

use chrono::{DateTime, SubsecRound as _, Utc};
use os_upgrade_protocol::HostName;

use super::rules::uncordon_due;
use super::state::{Node, NodeStage};
use crate::fact::{Fact, QueueFact};
use crate::reason::Reason;
use crate::reboot_queue::{Entry, EntryEvent, EntryStatus};
use crate::run::{HostEvent, HostStatus};
use crate::slot::ReleaseCause;
use crate::state::State;

impl State {
    /// Gives up the drain of the node of `host` for now. The node is uncordoned, and then the slot released, for others to go first.
    pub(crate) fn back_off(&self, host: &HostName, reason: Reason, now: DateTime<Utc>) -> Option<Fact> {
        let is_draining = |node: &&Node| matches!(node.stage, NodeStage::Checking | NodeStage::Evicting);
        self.nodes.get(host).filter(is_draining)?;
        // The slot was held before this drain, for an upgrade that failed: what it is held for has not ended.
        if !self.slots.get(host)?.begun {
            Some(uncordon_due(host, Some(ReleaseCause::DrainGivenUp), Some(reason)))
        } else if self.keeps_cordon(ReleaseCause::Failed) {
            self.backed_off(host, &reason, now)
        } else {
            Some(uncordon_due(host, None, Some(reason)))
        }
    }

    /// The fact that the drain of the node of `host` was given up, and what it was for starts again later.
    pub(crate) fn backed_off(&self, host: &HostName, reason: &Reason, now: DateTime<Utc>) -> Option<Fact> {
        if let Some(run) = &self.run
            && let Some(in_run) = run.host(host).filter(|in_run| in_run.status == HostStatus::Draining)
        {
            let count = in_run.backoff.map_or(0, |backoff| backoff.count);
            let until = self.backs_off_until(&format!("{} {host}", run.id), count, Some(reason), now);
            return Some(Fact::of_host(
                &run.id,
                host,
                HostEvent::BackedOff { until, reason: reason.clone() },
            ));
        }
        let (index, entry) =
            self.entry_of_slot(host).filter(|(_, entry)| entry.status == EntryStatus::Draining)?;
        Some(self.entry_backs_off((index, entry), Some(reason.clone()), now))
    }

    /// The fact that the entry at `index` starts again later.
    pub(crate) fn entry_backs_off(
        &self,
        (index, entry): (u64, &Entry),
        reason: Option<Reason>,
        now: DateTime<Utc>,
    ) -> Fact {
        let owner = entry.owner(index).to_string();
        let until = self.backs_off_until(&owner, entry.backoff_count, reason.as_ref(), now);
        Fact::Queue(QueueFact::Reboot {
            index,
            host: entry.host.clone(),
            event: EntryEvent::BackedOff { until, reason },
        })
    }

    /// Until when what `owner` waits for does not start again for this `reason`, after it has backed off `count` times before.
    fn backs_off_until(
        &self,
        owner: &str,
        count: u32,
        reason: Option<&Reason>,
        now: DateTime<Utc>,
    ) -> DateTime<Utc> {
        now.trunc_subsecs(0) + self.settings.reboot.backoff.pause(owner, count.saturating_add(1), reason)
    }
}
