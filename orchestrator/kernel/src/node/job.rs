//! The Kubernetes cluster: which nodes to cordon, drain and uncordon, and what follows from the answers.
//!
//! Each job is short and looks at the node anew, so that none has to be cancelled. A drain is a job that is repeated.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{GroupName, HostName};

use super::fence::NodeFence;
use super::state::{Node, NodeStage, NodeStep};
use super::wait::{NodeWait, Pods, Volumes};
use crate::fact::{Fact, NodeFact};
use crate::no_answer::NoAnswer;
use crate::owner::Owner;
use crate::reason::Reason;
use crate::slot::{ReleaseCause, release};
use crate::state::State;
use crate::step::{Stage, Step, StepEvent};
use crate::system_job::{Subject, SystemJob};
use crate::view::View;

/// Work on the Kubernetes node of a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeJob {
    /// What to do.
    pub order: NodeOrder,
    pub host: HostName,
    /// The fence to write into the node's mark. A node whose mark has a later one, or is of another journal, is left alone.
    pub fence: NodeFence,
}

/// What to do to a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeOrder {
    /// Cordon it, and ask for all evictions in a dry run.
    Check {
        /// For whom it is drained.
        owner: Owner,
        /// Whether it was cordoned for this drain before. If so, a cordon that is gone is not made anew.
        is_cordoned: bool,
    },
    /// Cordon it, and evict each pod that is due, once.
    Evict {
        /// For whom it is drained.
        owner: Owner,
        /// Whether it was cordoned for this drain before. If so, a cordon that is gone is not made anew.
        is_cordoned: bool,
        /// Whether it is unschedulable because of this site alone: if so, it is not taken for an administrator's cordon if its mark is
        /// gone.
        is_ours: bool,
    },
    /// Write the fence into its mark, if it has one.
    Hold,
    /// Leave it as it was before it was cordoned.
    Uncordon {
        /// Whether it must be ready before.
        ready: bool,
        /// The boot that it must have left before it counts as ready.
        left: Option<String>,
        /// Whether it is unschedulable because of this site alone: if so, it is made schedulable even if its mark is gone.
        is_ours: bool,
        /// The fence in a mark of another journal that is treated like one of this site's.
        takes_over: Option<NodeFence>,
    },
}

/// The outcome of work on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeOutcome {
    /// Of `Check`: it is cordoned, and the dry run was not refused.
    Clear,
    /// Of `Check`: it is cordoned, and would not be drained. Of `Evict`: it is cordoned, and pods are left.
    Remaining { pods: Pods },
    /// Of `Evict`: it is cordoned, and no pod that has to go is left, but volumes are still in use.
    VolumesInUse { volumes: Volumes },
    /// Of `Check` and `Evict`: it is cordoned, a fresh list shows no pod that has to go, and volumes are no longer in use.
    Drained {
        /// The boot that its kubelet reports.
        boot_id: Option<String>,
    },
    /// Of `Check` and `Evict`: its cordon, made for this drain, is gone or not ours any more.
    CordonLost {
        /// What was found.
        detail: String,
    },
    /// Of `Hold`: its mark has the fence.
    Held,
    /// Of `Hold`: it has no mark of this site, or is gone.
    Unmarked,
    /// Of `Uncordon`: it is as it was before, or gone.
    Uncordoned,
    /// Of `Uncordon`: it is not ready yet.
    NotReady,
    /// Its mark has a later fence than the job, or is of another journal.
    Superseded {
        /// The fence in the mark.
        fence: NodeFence,
    },
    /// Of `Check` and `Evict`: it was unschedulable before it was cordoned, as an administrator had left it.
    FoundUnschedulable {
        /// What else came of the job.
        outcome: Box<NodeOutcome>,
    },
    /// No answer.
    Unreachable {
        /// Why there is no answer.
        why: NoAnswer,
    },
    /// The request was refused, or the answer makes no sense.
    Refused {
        /// A description.
        detail: String,
    },
}

impl NodeOutcome {
    /// What came of the job, but for what the node was before.
    pub fn without_mark(&self) -> &Self {
        match self {
            Self::FoundUnschedulable { outcome } => outcome.without_mark(),
            Self::Clear
            | Self::Remaining { .. }
            | Self::VolumesInUse { .. }
            | Self::Drained { .. }
            | Self::CordonLost { .. }
            | Self::Held
            | Self::Unmarked
            | Self::Uncordoned
            | Self::NotReady
            | Self::Superseded { .. }
            | Self::Unreachable { .. }
            | Self::Refused { .. } => self,
        }
    }
}

impl SystemJob for NodeJob {
    type Outcome = NodeOutcome;

    fn wanted(state: &State) -> impl Iterator<Item = Self> {
        let jobs = state.node_fence().map(|fence| {
            state.nodes.iter().filter_map(move |(host, node)| {
                let order = order(state, host, node, fence)?;
                Some(Self { order, host: host.clone(), fence })
            })
        });
        jobs.into_iter().flatten()
    }

    fn done(&self, state: &State, view: &View, outcome: &NodeOutcome, now: DateTime<Utc>) -> Vec<Fact> {
        let Some(node) = state.nodes.get(&self.host) else { return Vec::new() };
        // What was begun for an earlier stage says nothing of this one.
        if state.node_fence() != Some(self.fence)
            || order(state, &self.host, node, self.fence).as_ref() != Some(&self.order)
        {
            return Vec::new();
        }
        let was_unschedulable = matches!(outcome, NodeOutcome::FoundUnschedulable { .. });
        let answered = Answered { job: self, state, view, node, was_unschedulable, now };
        match outcome.without_mark() {
            NodeOutcome::FoundUnschedulable { .. } => Vec::new(),
            NodeOutcome::Superseded { fence } => answered.superseded(*fence),
            NodeOutcome::Unreachable { why } => answered.waits(NodeWait::Unreachable { why: why.clone() }),
            NodeOutcome::Refused { detail } => answered.waits(NodeWait::Refused { detail: detail.clone() }),
            NodeOutcome::NotReady => answered.waits(NodeWait::NotReady),
            NodeOutcome::Held => answered.cordoned().into_iter().collect(),
            NodeOutcome::Unmarked => answered.unmarked(),
            NodeOutcome::Clear => answered.with_cordon(vec![answered.fact(NodeStep::EvictionBegan)]),
            NodeOutcome::Remaining { pods } => answered.with_cordon(answered.remaining(pods)),
            NodeOutcome::VolumesInUse { volumes } => {
                answered.with_cordon(answered.keeps_on(NodeWait::Volumes { volumes: volumes.clone() }))
            }
            NodeOutcome::Drained { boot_id } => answered.with_cordon(answered.drained(boot_id.as_deref())),
            NodeOutcome::CordonLost { detail } => {
                let reason = Reason::CordonLost { detail: detail.clone() };
                state.back_off(&self.host, reason, now).into_iter().collect()
            }
            NodeOutcome::Uncordoned => answered.uncordoned(),
        }
    }

    fn leadership_began(_: &State) -> impl Iterator<Item = Fact> + '_ {
        // A job with an earlier fence undoes nothing once the mark has this leader's.
        std::iter::empty()
    }

    fn unanswered(why: NoAnswer) -> NodeOutcome {
        NodeOutcome::Unreachable { why }
    }

    fn is_answer(outcome: &NodeOutcome) -> bool {
        match outcome {
            NodeOutcome::Clear
            | NodeOutcome::Remaining { .. }
            | NodeOutcome::VolumesInUse { .. }
            | NodeOutcome::Drained { .. }
            | NodeOutcome::CordonLost { .. }
            | NodeOutcome::Held
            | NodeOutcome::Unmarked
            | NodeOutcome::Uncordoned
            | NodeOutcome::NotReady => true,
            NodeOutcome::FoundUnschedulable { outcome } => Self::is_answer(outcome),
            NodeOutcome::Superseded { .. }
            | NodeOutcome::Unreachable { .. }
            | NodeOutcome::Refused { .. } => false,
        }
    }

    fn subject(&self) -> Subject {
        Subject::Host(self.host.clone())
    }

    fn is_release(&self) -> bool {
        matches!(self.order, NodeOrder::Uncordon { .. })
    }

    fn pool(&self) -> Option<&GroupName> {
        None
    }
}

/// What the node of `host` needs now, if anything.
fn order(state: &State, host: &HostName, node: &Node, fence: NodeFence) -> Option<NodeOrder> {
    let is_cordoned = node.fence.is_some();
    // An earlier leader, perhaps of an older version, may not have said what was before.
    let is_ours = node.fence == Some(fence) && !node.was_unschedulable;
    let hold = || (node.fence != Some(fence)).then_some(NodeOrder::Hold);
    match &node.stage {
        NodeStage::Checking | NodeStage::Evicting => match state.step_at(host, Stage::Drain) {
            Some(Step { owner, .. }) if node.stage == NodeStage::Checking => {
                Some(NodeOrder::Check { owner, is_cordoned })
            }
            Some(Step { owner, .. }) => {
                Some(NodeOrder::Evict { owner, is_cordoned, is_ours: is_ours && !is_cordoned })
            }
            None => hold(),
        },
        // Before a command goes out under a new leader, and before each reboot, the node is looked at once more.
        NodeStage::Rechecking | NodeStage::Drained => match state.told_next(host) {
            Some(Step { owner, .. }) if node.stage == NodeStage::Rechecking || node.fence != Some(fence) => {
                Some(NodeOrder::Evict { owner, is_cordoned: false, is_ours })
            }
            Some(_) | None => hold(),
        },
        NodeStage::Uncordoning { .. } => {
            let ready = node.stage.waits_for_ready();
            let left = node.left.clone().filter(|_| ready);
            Some(NodeOrder::Uncordon { ready, left, is_ours, takes_over: node.takes_over })
        }
    }
}

/// A job with an answer, and the node that it is about.
struct Answered<'a> {
    job: &'a NodeJob,
    state: &'a State,
    view: &'a View,
    node: &'a Node,
    was_unschedulable: bool,
    now: DateTime<Utc>,
}

impl Answered<'_> {
    fn fact(&self, step: NodeStep) -> Fact {
        Fact::Node(NodeFact::Step { host: self.job.host.clone(), step })
    }

    /// That the mark has this leader's fence, and what was before.
    fn cordoned(&self) -> Option<Fact> {
        let (fence, was_unschedulable) = (self.job.fence, self.was_unschedulable);
        let is_new = self.node.fence != Some(fence) || (was_unschedulable && !self.node.was_unschedulable);
        is_new.then(|| self.fact(NodeStep::Cordoned { fence, was_unschedulable }))
    }

    /// The mark has a later fence, or is of another journal. Once what follows from that is committed, no later leader of this journal has written it: its fence
    /// would have been committed before, and this leader would have been deposed.
    fn superseded(&self, fence: NodeFence) -> Vec<Fact> {
        let (state, host) = (self.state, &self.job.host);
        let slot = state.slots.get(host).filter(|slot| !slot.begun);
        let is_untouched = self.node.stage == NodeStage::Checking && self.node.fence.is_none();
        let Some(slot) = slot.filter(|_| is_untouched) else {
            return self.waits(NodeWait::ForeignMark { fence });
        };
        // There is nothing to undo, and others can go first. The node is looked after without the host.
        let mut facts = vec![self.fact(NodeStep::Uncordoned)];
        facts.extend(state.backed_off(host, &Reason::ForeignMark, self.now));
        facts.extend(release(host, slot, ReleaseCause::DrainGivenUp));
        facts
    }

    /// It has no mark any more, which would say what was before.
    fn unmarked(self) -> Vec<Fact> {
        Answered { was_unschedulable: true, ..self }.cordoned().into_iter().collect()
    }

    fn with_cordon(&self, facts: Vec<Fact>) -> Vec<Fact> {
        self.cordoned().into_iter().chain(facts).collect()
    }

    fn waits(&self, waits: NodeWait) -> Vec<Fact> {
        let is_known = self.node.waits.as_ref().is_some_and(|known| known.is_like(&waits));
        // What was found is not forgotten while nobody can look: an operator decides about it.
        let is_unseen = matches!(waits, NodeWait::Unreachable { .. } | NodeWait::Refused { .. });
        let hides_mark = is_unseen && self.node.foreign_mark().is_some();
        if is_known || hides_mark { Vec::new() } else { vec![self.fact(NodeStep::Waiting { waits })] }
    }

    fn remaining(&self, pods: &Pods) -> Vec<Fact> {
        // Nothing has been evicted, and others can go first. Where only budgets are awaited, it is not known whether the pods may go.
        if self.node.stage == NodeStage::Checking && !pods.wait_for_budgets() {
            let reason = Reason::DrainRefused { pods: pods.clone() };
            return self.state.back_off(&self.job.host, reason, self.now).into_iter().collect();
        }
        self.keeps_on(NodeWait::Pods { pods: pods.clone() })
    }

    /// The node is not drained yet, or not any more.
    fn keeps_on(&self, waits: NodeWait) -> Vec<Fact> {
        let waits = self.waits(waits);
        match self.node.stage {
            NodeStage::Drained => [self.fact(NodeStep::RecheckBegan)].into_iter().chain(waits).collect(),
            NodeStage::Checking
            | NodeStage::Evicting
            | NodeStage::Rechecking
            | NodeStage::Uncordoning { .. } => waits,
        }
    }

    /// The node is drained: its host is upgraded, or told to reboot.
    fn drained(&self, boot_id: Option<&str>) -> Vec<Fact> {
        let (state, host) = (self.state, &self.job.host);
        let drained = self.fact(NodeStep::Drained { boot_id: boot_id.map(ToOwned::to_owned) });
        if let Some(step) = state.step_at(host, Stage::Drain) {
            // It took so long that the upgrade fits no more: the run leaves its host out, or ends.
            if step.begins_until.is_some_and(|until| until < self.now) {
                return Vec::new();
            }
            return state
                .drained(self.view, &step, boot_id)
                .map(|begun| vec![drained, begun])
                .unwrap_or_default();
        }
        // It was looked at for another leader, and nothing has changed.
        let is_known = self.node.stage == NodeStage::Drained
            && self.node.boot_id.as_deref() == boot_id
            && self.node.waits.is_none();
        if is_known { Vec::new() } else { vec![drained] }
    }

    /// The node is as it was before, so that what waited for it goes on.
    fn uncordoned(&self) -> Vec<Fact> {
        let (state, host) = (self.state, &self.job.host);
        let NodeStage::Uncordoning { release: why, reason } = &self.node.stage else { return Vec::new() };
        let mut facts = vec![self.fact(NodeStep::Uncordoned)];
        if let Some(step) = state.step_at(host, Stage::Recover) {
            facts.push(step.fact(StepEvent::Done));
        } else if let Some(reason) = reason {
            facts.extend(state.backed_off(host, reason, self.now));
        }
        let slot = state.slots.get(host);
        facts.extend(why.zip(slot).and_then(|(why, slot)| release(host, slot, why)));
        facts
    }
}
