//! What of the state is about the Kubernetes nodes of hosts: who needs them cordoned, and when a slot is released.

use imbl::OrdSet;
use os_upgrade_calendar::Duration;
use os_upgrade_protocol::{Action, HostName};

use super::api_servers::{ApiServerRule, api_server_rule};
use super::fence::NodeFence;
use super::state::{Node, NodeStage, NodeStep};
use crate::config::Settings;
use crate::fact::{Fact, NodeFact};
use crate::reason::Reason;
use crate::slot::{ReleaseCause, SlotState};
use crate::state::State;
use crate::view::{SeenMark, SeenNode, View};

/// How long a drain may take if the settings do not say so: as long as by default.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(600);

impl Settings {
    /// Whether the node of `host` is to be drained before the host is upgraded or rebooted.
    pub fn has_node(&self, host: &HostName) -> bool {
        self.kubernetes.as_ref().is_some_and(|kubernetes| kubernetes.includes(host))
    }

    /// After how long a drain is given up: after ten minutes if the settings have lost their `[kubernetes]` during it.
    pub fn drain_timeout(&self) -> Duration {
        self.kubernetes.as_ref().map_or(DRAIN_TIMEOUT, |kubernetes| kubernetes.drain_timeout)
    }

    /// Whether a node stays cordoned when the slot of its host is released.
    pub(crate) fn keeps_cordon(&self, why: ReleaseCause) -> bool {
        match why {
            ReleaseCause::Failed => {
                self.kubernetes.as_ref().is_none_or(|kubernetes| !kubernetes.uncordon_failed)
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
}

impl State {
    /// The fence for the marks of nodes; absent until the current one is passed.
    pub(crate) fn node_fence(&self) -> Option<NodeFence> {
        let fence = self.fence.as_ref().filter(|fence| fence.passed)?;
        Some(NodeFence { restored: self.restored, sequence: fence.sequence })
    }

    /// Whether the cordon of `host` allows its next command: its node is drained, and marked by this leader.
    pub(crate) fn cordon_allows(&self, host: &HostName, action: Action) -> bool {
        action == Action::Prepare
            || self.nodes.get(host).is_none_or(|node| match &node.stage {
                NodeStage::Drained => node.fence.is_some() && node.fence == self.node_fence(),
                // It is not drained for what the slot is held for: the host is no node of the cluster any more.
                NodeStage::Uncordoning { release: None, reason: None } => !self.settings.has_node(host),
                NodeStage::Checking
                | NodeStage::Evicting
                | NodeStage::Rechecking
                | NodeStage::Uncordoning { .. } => false,
            })
    }

    /// Whether the node of `host` is cordoned though nothing is under way there: it stays so after a failure, until an operator, or
    /// the next run or reboot of the host, goes on with it.
    pub fn stays_cordoned(&self, host: &HostName) -> bool {
        let is_cordoned = |node: &Node| !matches!(node.stage, NodeStage::Uncordoning { .. });
        self.nodes.get(host).is_some_and(is_cordoned) && !self.is_at_work(host)
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

    /// The API servers of the cluster that ended without success and still hold a slot: whether the cluster can do without another one is
    /// not known.
    pub(crate) fn servers_left(&self, view: &View) -> OrdSet<HostName> {
        let nodes = view.nodes.iter().flatten();
        let servers = nodes.filter(|(host, node)| node.is_api_server && self.settings.has_node(host));
        let is_left = |host: &HostName| {
            self.slots.get(host).is_some_and(|slot| slot.state == SlotState::Held) && !self.is_at_work(host)
        };
        servers.map(|(host, _)| host).filter(|host| is_left(host)).cloned().collect()
    }

    /// Why the drain of the node of `host` must wait for other nodes: an API server of the cluster is alone under way.
    pub(crate) fn waits_for_nodes(&self, view: &View, host: &HostName) -> Option<Reason> {
        if !self.settings.has_node(host) {
            return None;
        }
        let Some(nodes) = &view.nodes else { return Some(Reason::ClusterUnseen) };
        let is_server = |host: &HostName| nodes.get(host).is_some_and(|node| node.is_api_server);
        let others = self.nodes_under_way().union(self.servers_left(view)).without(host);
        Some(match api_server_rule(is_server, &others, host)? {
            ApiServerRule::UnderWay(server) => Reason::ApiServerUnderWay { host: server.clone() },
            ApiServerRule::Waits(other) => Reason::ApiServerWaits { host: other.clone() },
        })
    }

    /// The fact that uncordons the node of a host that failed, if the settings say so and it is not under way.
    pub(crate) fn uncordon_failed(&self, host: &HostName) -> Option<Fact> {
        let is_due = |node: &Node| matches!(node.stage, NodeStage::Uncordoning { .. });
        let is_left = !self.settings.keeps_cordon(ReleaseCause::Failed);
        (is_left && !is_due(self.nodes.get(host)?)).then(|| uncordon_due(host, None, None))
    }
}

pub(crate) fn uncordon_due(host: &HostName, release: Option<ReleaseCause>, reason: Option<Reason>) -> Fact {
    Fact::Node(NodeFact::Step { host: host.clone(), step: NodeStep::UncordonDue { release, reason } })
}
