//! What facts about Kubernetes nodes change in the state.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;

use super::fact::NodeFact;
use super::state::{Node, NodeStage, NodeStep};
use crate::state::{ApplyError, State};
use crate::step::Stage;

impl State {
    /// Folds what happened to the node of a host.
    pub(crate) fn apply_node(&mut self, fact: &NodeFact, at: DateTime<Utc>) -> Result<(), ApplyError> {
        let NodeFact::Step { host, step } = fact;
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
    pub(crate) fn restored_nodes(&mut self) {
        let hosts: Vec<HostName> = self.nodes.keys().cloned().collect();
        for host in hosts {
            let is_draining = self.step_at(&host, Stage::Drain).is_some();
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
