//! What of the state is about the Kubernetes nodes of hosts: who needs them cordoned, and when a slot is released.

use chrono::{DateTime, SubsecRound as _, Utc};
use imbl::OrdSet;
use os_upgrade_calendar::Duration;
use os_upgrade_protocol::{Action, HostName};

use crate::config::{LockProvider, OnFailure};
use crate::fact::Fact;
use crate::node::{Node, NodeStage, NodeStep};
use crate::node_fence::NodeFence;
use crate::owner::Owner;
use crate::reason::Reason;
use crate::reboot_queue::{Entry, EntryEvent, EntryStatus};
use crate::run::{HostEvent, HostStatus, Run};
use crate::slot::{ReleaseCause, Slot, SlotState};
use crate::state::{ApplyError, State};
use crate::view::{SeenMark, SeenNode, View};

/// How long a drain may take if the settings do not say so: as long as by default.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(600);

impl State {
    /// Whether the node of `host` is to be drained before the host is upgraded or rebooted.
    pub fn has_node(&self, host: &HostName) -> bool {
        self.settings.kubernetes.as_ref().is_some_and(|kubernetes| kubernetes.includes(host))
    }

    /// After how long a drain is given up: after ten minutes if the settings have lost their `[kubernetes]` during it.
    pub fn drain_timeout(&self) -> Duration {
        self.settings.kubernetes.as_ref().map_or(DRAIN_TIMEOUT, |kubernetes| kubernetes.drain_timeout)
    }

    /// The fence for the marks of nodes; absent until the current one is passed.
    pub(crate) fn node_fence(&self) -> Option<NodeFence> {
        let fence = self.fence.as_ref().filter(|fence| fence.passed)?;
        Some(NodeFence { restored: self.restored, sequence: fence.sequence })
    }

    /// The run, or the entry of the reboot queue, for which the node of `host` is being drained.
    pub(crate) fn drained_for(&self, host: &HostName) -> Option<Owner> {
        let is_draining =
            |run: &&Run| run.host(host).is_some_and(|in_run| in_run.status == HostStatus::Draining);
        let of_run = self.run.as_ref().filter(is_draining).map(|run| Owner::Run(run.id.clone()));
        let entry = self.entry_of_slot(host).filter(|(_, entry)| entry.status == EntryStatus::Draining);
        of_run.or_else(|| entry.map(|(index, entry)| entry.owner(index)))
    }

    /// The run, or the entry of the reboot queue, whose command to upgrade or reboot `host` has not been sent yet.
    pub(crate) fn sent_next_for(&self, host: &HostName) -> Option<Owner> {
        let run = self.run.as_ref().filter(|run| {
            let command =
                run.host(host).filter(|in_run| in_run.is_unsent()).and_then(|in_run| in_run.command);
            command.is_some_and(|command| command.action != Action::Prepare)
        });
        let entry = self.entry_under_way(host).filter(|(_, entry)| entry.is_unsent());
        let run = run.map(|run| Owner::Run(run.id.clone()));
        run.or_else(|| entry.map(|(index, entry)| entry.owner(index)))
    }

    /// Whether the cordon of `host` allows its next command: its node is drained, and marked by this leader.
    pub(crate) fn cordon_allows(&self, host: &HostName, action: Action) -> bool {
        action == Action::Prepare
            || self.nodes.get(host).is_none_or(|node| match &node.stage {
                NodeStage::Drained => node.fence.is_some() && node.fence == self.node_fence(),
                // It is not drained for what the slot is held for: the host is no node of the cluster any more.
                NodeStage::Uncordoning { release: None, reason: None } => !self.has_node(host),
                NodeStage::Checking
                | NodeStage::Evicting
                | NodeStage::Rechecking
                | NodeStage::Uncordoning { .. } => false,
            })
    }

    /// Whether a run or an entry of the reboot queue is under way on `host`.
    pub(crate) fn is_at_work(&self, host: &HostName) -> bool {
        let in_run = self.run.as_ref().is_some_and(|run| run.under_way().contains(host));
        in_run || self.entry_under_way(host).is_some()
    }

    /// Whether the active run is not through with `host`.
    fn is_in_run(&self, host: &HostName) -> bool {
        let in_run = self.run.as_ref().and_then(|run| run.host(host));
        in_run.is_some_and(|in_run| !in_run.status.is_final())
    }

    /// Whether the node of `host` is cordoned though nothing is under way there: it stays so after a failure, until an operator, or
    /// the next run or reboot of the host, goes on with it.
    pub fn stays_cordoned(&self, host: &HostName) -> bool {
        let is_cordoned = |node: &Node| !matches!(node.stage, NodeStage::Uncordoning { .. });
        self.nodes.get(host).is_some_and(is_cordoned) && !self.is_at_work(host)
    }

    /// Whether `host` keeps its slot though nothing is under way there: after a failure, or since it was given up. Only a late `done` of
    /// its worker, the next run or reboot of the host, or an operator goes on with it.
    pub fn keeps_slot(&self, host: &HostName) -> bool {
        let is_released_later =
            |node: &Node| matches!(node.stage, NodeStage::Uncordoning { release: Some(_), .. });
        self.slots.get(host).is_some_and(|slot| slot.state == SlotState::Held)
            && !self.nodes.get(host).is_some_and(is_released_later)
            && !self.is_in_run(host)
            && self.entry_under_way(host).is_none()
    }

    /// Whether the mark of a node is of another journal, as it says itself, or as its fence is later: a leader of this journal has no later
    /// fence, as its decisions are not committed once another one leads.
    pub(crate) fn has_foreign_mark(&self, seen: &SeenNode) -> bool {
        let is_foreign =
            |(own, mark): (NodeFence, SeenMark)| own.yields_to(mark.fence, mark.is_of_other_journal);
        self.node_fence().zip(seen.mark).is_some_and(is_foreign)
    }

    /// The hosts whose nodes are drained, at work or uncordoned: those that failed are not among them.
    pub(crate) fn nodes_under_way(&self) -> OrdSet<HostName> {
        self.nodes.keys().filter(|host| !self.stays_cordoned(host)).cloned().collect()
    }

    /// Why the drain of the node of `host` must wait for other nodes: an API server of the cluster is alone under way.
    pub(crate) fn api_server_rule(&self, view: &View, host: &HostName) -> Option<Reason> {
        if !self.has_node(host) {
            return None;
        }
        let Some(nodes) = &view.nodes else { return Some(Reason::ClusterUnseen) };
        let is_server = |host: &HostName| nodes.get(host).is_some_and(|node| node.is_api_server);
        let mut others = self.nodes_under_way();
        others.remove(host);
        if let Some(server) = others.iter().find(|other| is_server(other)) {
            return Some(Reason::ApiServerUnderWay { host: server.clone() });
        }
        let other = others.get_min().filter(|_| is_server(host))?;
        Some(Reason::ApiServerWaits { host: other.clone() })
    }

    /// The fact that releases the slot of `host`, if it has one: once its node is uncordoned, if that is cordoned and does not stay
    /// so. An embedded slot is released at once, an external one when its server confirms.
    pub(crate) fn release_slot(&self, host: &HostName, why: ReleaseCause) -> Option<Fact> {
        let slot = self.slots.get(host)?;
        // One that is only requested has not begun a drain: a cordon there is an earlier one.
        let is_for_slot = slot.state == SlotState::Held && !self.keeps_cordon(why);
        let Some(node) = self.nodes.get(host).filter(|_| is_for_slot) else {
            return release(host, slot, why);
        };
        let is_due = matches!(node.stage, NodeStage::Uncordoning { release: Some(_), .. });
        (!is_due).then(|| uncordon_due(host, Some(why), None))
    }

    /// What follows for the slot and the node of a host that failed.
    pub(crate) fn after_failure(&self, host: &HostName) -> Option<Fact> {
        match self.settings.on_failure {
            OnFailure::Release => self.release_slot(host, ReleaseCause::Failed),
            OnFailure::Hold => self.uncordon_failed(host),
        }
    }

    /// The fact that uncordons the node of a host that failed, if the settings say so and it is not under way.
    pub(crate) fn uncordon_failed(&self, host: &HostName) -> Option<Fact> {
        let is_due = |node: &Node| matches!(node.stage, NodeStage::Uncordoning { .. });
        let is_left = !self.keeps_cordon(ReleaseCause::Failed);
        (is_left && !is_due(self.nodes.get(host)?)).then(|| uncordon_due(host, None, None))
    }

    /// Whether a node stays cordoned when the slot of its host is released.
    fn keeps_cordon(&self, why: ReleaseCause) -> bool {
        match why {
            ReleaseCause::Failed => {
                self.settings.kubernetes.as_ref().is_none_or(|kubernetes| !kubernetes.uncordon_failed)
            }
            // The host may be looked after; `hosts uncordon` ends that.
            ReleaseCause::Operator => true,
            ReleaseCause::Upgraded
            | ReleaseCause::Rebooted
            | ReleaseCause::NeverSent
            | ReleaseCause::NotNeeded
            | ReleaseCause::DrainGivenUp
            | ReleaseCause::LateDone => false,
        }
    }

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
        Fact::Reboot { index, host: entry.host.clone(), event: EntryEvent::BackedOff { until, reason } }
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

    /// Folds what happened to the node of `host`.
    pub(crate) fn apply_node(
        &mut self,
        host: &HostName,
        step: &NodeStep,
        at: DateTime<Utc>,
    ) -> Result<(), ApplyError> {
        let no_node = || ApplyError::NoNode(host.clone());
        match step {
            NodeStep::Uncordoned => self.nodes.remove(host).map(|_| ()).ok_or_else(no_node),
            // One that is marked without an owner is found by its mark.
            NodeStep::UncordonDue { .. } => {
                let node = self.nodes.entry(host.clone());
                node.or_insert_with(|| Node::assumed_cordoned(at)).apply(step, at);
                Ok(())
            }
            NodeStep::Cordoned { .. }
            | NodeStep::EvictionBegan
            | NodeStep::RecheckBegan
            | NodeStep::Waiting { .. }
            | NodeStep::Drained { .. }
            | NodeStep::UncordonRequested { .. } => {
                self.nodes.get_mut(host).ok_or_else(no_node)?.apply(step, at);
                Ok(())
            }
        }
    }

    /// After a restoration: a host whose drain had begun may have been upgraded since, so its node stays cordoned, unless an entry of
    /// the reboot queue goes on with it. Marks are written anew.
    pub(crate) fn restored_nodes(&mut self, at: DateTime<Utc>) {
        self.restored = at.timestamp();
        let hosts: Vec<HostName> = self.nodes.keys().cloned().collect();
        for host in hosts {
            let is_draining = self.drained_for(&host).is_some();
            let Some(node) = self.nodes.get_mut(&host) else { continue };
            node.fence = None;
            match node.stage {
                NodeStage::Checking | NodeStage::Evicting if is_draining => node.stage = NodeStage::Checking,
                NodeStage::Checking | NodeStage::Evicting | NodeStage::Rechecking => {
                    node.stage = NodeStage::Drained;
                }
                NodeStage::Drained | NodeStage::Uncordoning { .. } => {}
            }
        }
    }
}

/// The fact that releases `slot`, whatever its node is.
pub(crate) fn release(host: &HostName, slot: &Slot, why: ReleaseCause) -> Option<Fact> {
    match (slot.provider, slot.state) {
        (LockProvider::Embedded, SlotState::Requested | SlotState::Held | SlotState::Releasing { .. }) => {
            Some(Fact::SlotReleased { host: host.clone(), why })
        }
        (LockProvider::External, SlotState::Requested | SlotState::Held) => {
            Some(Fact::SlotReleaseDue { host: host.clone(), why })
        }
        (LockProvider::External, SlotState::Releasing { .. }) => None,
    }
}

pub(crate) fn uncordon_due(host: &HostName, release: Option<ReleaseCause>, reason: Option<Reason>) -> Fact {
    Fact::Node { host: host.clone(), step: NodeStep::UncordonDue { release, reason } }
}
