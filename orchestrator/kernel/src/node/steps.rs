//! What follows for Kubernetes nodes from time, and from what is seen of them.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::HostName;

use super::rules::uncordon_due;
use super::state::{Node, NodeStage};
use crate::fact::{Fact, non_empty};
use crate::reason::Reason;
use crate::state::State;
use crate::step::Stage;
use crate::view::{SeenNode, View};

/// Gives up drains that have taken too long.
pub(crate) fn time_out_drains(state: &State, view: &View, now: DateTime<Utc>) -> Option<Vec<Fact>> {
    let after = state.settings.drain_timeout();
    let is_late =
        |node: &Node| view.clock.is_trusted() && view.clock.has_passed(after.to_delta(), node.since, now);
    let late = state
        .nodes
        .iter()
        .filter(|(host, node)| is_late(node) && state.step_at(host, Stage::Drain).is_some());
    let given_up = late.filter_map(|(host, node)| {
        let reason = Reason::DrainTimedOut { after, waits: node.waits.clone() };
        state.back_off(host, reason, now)
    });
    non_empty(given_up.collect())
}

/// Uncordons nodes that are marked by this site and unknown to the state, and nodes of failed hosts that somebody has made
/// schedulable by hand.
pub(crate) fn sweep(state: &State, view: &View) -> Vec<Fact> {
    // Before its fence is passed, a leader may not know all that was decided before.
    let Some(nodes) = view.nodes.as_ref().filter(|_| state.node_fence().is_some()) else { return Vec::new() };
    let under_way = state.nodes_under_way();
    let is_left = |(host, seen): &(&HostName, &SeenNode)| match state.nodes.get(*host) {
        None => !state.slots.contains_key(*host),
        Some(node) => {
            let is_uncordoned = matches!(node.stage, NodeStage::Uncordoning { .. });
            let is_kept = !is_uncordoned && !under_way.contains(*host) && !state.may_begin_late(host);
            is_kept && !seen.is_unschedulable
        }
    };
    let marked = nodes.iter().filter(|(_, seen)| seen.mark.is_some());
    let left = marked.filter(is_left);
    left.map(|(host, _)| uncordon_due(host, None, None)).collect()
}
