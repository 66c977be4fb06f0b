//! Drains that are given up for now: when what they were for starts again.

use chrono::{DateTime, SubsecRound as _, Utc};
use os_upgrade_protocol::HostName;

use super::rules::uncordon_due;
use super::state::{Node, NodeStage};
use crate::fact::Fact;
use crate::reason::Reason;
use crate::slot::ReleaseCause;
use crate::state::State;
use crate::step::{Stage, Step, StepEvent};

impl State {
    /// Gives up the drain of the node of `host` for now. The node is uncordoned, and then the slot released, for others to go first.
    pub(crate) fn back_off(&self, host: &HostName, reason: Reason, now: DateTime<Utc>) -> Option<Fact> {
        let is_draining = |node: &&Node| matches!(node.stage, NodeStage::Checking | NodeStage::Evicting);
        self.nodes.get(host).filter(is_draining)?;
        // The slot was held before this drain, for an upgrade that failed: what it is held for has not ended.
        if !self.slots.get(host)?.begun {
            Some(uncordon_due(host, Some(ReleaseCause::DrainGivenUp), Some(reason)))
        } else if self.settings.keeps_cordon(ReleaseCause::Failed) {
            self.backed_off(host, &reason, now)
        } else {
            Some(uncordon_due(host, None, Some(reason)))
        }
    }

    /// The fact that the drain of the node of `host` was given up, and what it was for starts again later.
    pub(crate) fn backed_off(&self, host: &HostName, reason: &Reason, now: DateTime<Utc>) -> Option<Fact> {
        let step = self.step_at(host, Stage::Drain)?;
        let until = self.backs_off_until(&step, Some(reason), now);
        Some(step.fact(StepEvent::BackedOff { until, reason: reason.clone() }))
    }

    /// Until when `step` does not start again for this `reason`.
    pub(crate) fn backs_off_until(
        &self,
        step: &Step<'_>,
        reason: Option<&Reason>,
        now: DateTime<Utc>,
    ) -> DateTime<Utc> {
        let count = step.backoffs.saturating_add(1);
        now.trunc_subsecs(0) + self.settings.reboot.backoff.pause(&step.text(), count, reason)
    }
}
