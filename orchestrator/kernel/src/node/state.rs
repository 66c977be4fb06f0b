//! The Kubernetes nodes of hosts: how far the drain of each has come, and whether it is cordoned.
//!
//! A node is here from the moment a job may have cordoned it until it is known to be as it was before. The cordon belongs to its
//! host's slot, which is released once the node is uncordoned. The node of a host that failed stays cordoned, with or without a
//! slot, as `[kubernetes] on-failure` says.

use chrono::{DateTime, SubsecRound as _, Utc};
use serde::{Deserialize, Serialize, Serializer};
use strum::VariantNames as _;

use super::fence::NodeFence;
use super::wait::NodeWait;
use crate::left_out::is_default;
use crate::reason::Reason;
use crate::slot::ReleaseCause;

/// The node of a host, which is cordoned or may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Node {
    /// How far it is.
    pub stage: NodeStage,
    /// When its drain, or the end of its cordon, began.
    pub since: DateTime<Utc>,
    /// The fence in its mark; absent until it is known to be cordoned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<NodeFence>,
    /// The boot that it ran in when it was drained, if its kubelet reports one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The boot that it has left before it counts as ready again; absent unless it reboots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// What it waits for, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<NodeWait>,
    /// Whether it was unschedulable before it was cordoned, as an administrator had left it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub was_unschedulable: bool,
    /// The fence in a mark of another journal that an operator lets this site take over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_over: Option<NodeFence>,
}

/// How far the work on a node is.
#[derive(
    Debug,
    Clone,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::VariantNames,
    strum::EnumDiscriminants,
)]
#[strum_discriminants(
    name(NodeStageKind),
    derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames),
    serde(rename_all = "kebab-case"),
    strum(serialize_all = "kebab-case")
)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum NodeStage {
    /// It is being cordoned, and a dry run of its drain is due. Nothing is evicted.
    Checking,
    /// It is being drained.
    Evicting,
    /// It is cordoned and was drained: its host is at work, or failed.
    Drained,
    /// Its host is about to reboot, so that it is looked at once more, and drained of what has arrived since.
    Rechecking,
    /// It is being uncordoned.
    Uncordoning {
        /// Why the slot of its host is released afterwards; absent if the slot is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        release: Option<ReleaseCause>,
        /// Why its drain was given up, if it was and is tried again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
    },
}

impl NodeStage {
    /// The wire name.
    pub fn as_str(&self) -> &'static str {
        self.into()
    }

    /// Every wire name.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        Self::VARIANTS.iter().copied()
    }

    /// Whether a slot is released once it is uncordoned.
    const fn has_release(&self) -> bool {
        matches!(self, Self::Uncordoning { release: Some(_), .. })
    }

    /// Whether it is uncordoned only once it is ready, because its host has been upgraded or rebooted.
    pub(crate) const fn waits_for_ready(&self) -> bool {
        match self {
            Self::Uncordoning { release: Some(release), .. } => match release {
                ReleaseCause::Upgraded | ReleaseCause::Rebooted | ReleaseCause::LateDone => true,
                ReleaseCause::Failed
                | ReleaseCause::NeverSent
                | ReleaseCause::NotNeeded
                | ReleaseCause::DrainGivenUp
                | ReleaseCause::Operator => false,
            },
            Self::Uncordoning { release: None, .. }
            | Self::Checking
            | Self::Evicting
            | Self::Drained
            | Self::Rechecking => false,
        }
    }
}

/// What happens to the node of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::EnumDiscriminants)]
#[strum_discriminants(
    name(NodeStepKind),
    derive(Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames),
    serde(rename_all = "kebab-case"),
    strum(serialize_all = "kebab-case")
)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum NodeStep {
    /// It is cordoned, and its mark has this fence.
    Cordoned {
        fence: NodeFence,
        /// Whether it was unschedulable before, as an administrator had left it.
        #[serde(default, skip_serializing_if = "is_default")]
        was_unschedulable: bool,
    },
    /// The dry run was not refused, so pods are evicted from here on.
    EvictionBegan,
    /// It was drained, and something is on it again before its host has rebooted.
    RecheckBegan,
    /// It waits for something.
    Waiting {
        /// What it waits for.
        waits: NodeWait,
    },
    Drained {
        /// The boot that its kubelet reports, if it does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot_id: Option<String>,
    },
    /// It is to be as it was before.
    UncordonDue {
        /// Why the slot of its host is released afterwards; absent if the slot is not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        release: Option<ReleaseCause>,
        /// Why its drain is given up, if it is and is tried again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Reason>,
    },
    /// An operator lets it be as it was before.
    UncordonRequested {
        actor: String,
        /// Why, as the operator says.
        reason: String,
    },
    /// It is as it was before.
    Uncordoned,
}

/// How far the work on a node is, for operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct NodeProgress {
    /// The stage, in JSON its word.
    #[serde(serialize_with = "as_word")]
    pub stage: NodeStage,
    /// When its drain, or the end of its cordon, began, in whole seconds.
    #[serde(skip)]
    pub since: DateTime<Utc>,
    /// What it waits for, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<NodeWait>,
}

fn as_word<S: Serializer>(stage: &NodeStage, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(stage.as_str())
}

impl Node {
    /// How far it is, for operators.
    pub fn progress(&self) -> NodeProgress {
        NodeProgress {
            stage: self.stage.clone(),
            since: self.since.trunc_subsecs(0),
            waits: self.waits.clone(),
        }
    }
}

impl NodeStep {
    /// The step's name, as in its JSON.
    pub fn name(&self) -> &'static str {
        NodeStepKind::from(self).into()
    }

    /// The operator, if one caused it.
    pub fn actor(&self) -> Option<&str> {
        match self {
            Self::UncordonRequested { actor, .. } => Some(actor),
            Self::Cordoned { .. }
            | Self::EvictionBegan
            | Self::RecheckBegan
            | Self::Waiting { .. }
            | Self::Drained { .. }
            | Self::UncordonDue { .. }
            | Self::Uncordoned => None,
        }
    }
}

impl Node {
    /// One that is to be drained from `at` on.
    pub(crate) const fn checking(at: DateTime<Utc>) -> Self {
        Self {
            stage: NodeStage::Checking,
            since: at,
            fence: None,
            boot_id: None,
            left: None,
            waits: None,
            was_unschedulable: false,
            takes_over: None,
        }
    }

    /// The fence in its mark, if that is of another journal and nobody has taken it over.
    pub fn foreign_mark(&self) -> Option<NodeFence> {
        match self.waits {
            Some(NodeWait::ForeignMark { fence }) => Some(fence),
            Some(
                NodeWait::Pods { .. }
                | NodeWait::Volumes { .. }
                | NodeWait::NotReady
                | NodeWait::Unreachable { .. }
                | NodeWait::Refused { .. },
            )
            | None => None,
        }
    }

    /// One that is cordoned, as far as is known.
    pub(crate) fn assumed_cordoned(at: DateTime<Utc>) -> Self {
        Self { stage: NodeStage::Drained, ..Self::checking(at) }
    }

    /// Its host is about to reboot.
    pub(crate) fn reboots(&mut self) {
        self.stage = NodeStage::Rechecking;
        self.left.clone_from(&self.boot_id);
        self.waits = None;
    }

    /// The slot of its host is released.
    pub(crate) fn slot_released(&mut self) {
        if let NodeStage::Uncordoning { release, .. } = &mut self.stage {
            *release = None;
        }
    }

    fn uncordon(&mut self, release: Option<ReleaseCause>, reason: Option<&Reason>, at: DateTime<Utc>) {
        self.stage = NodeStage::Uncordoning { release, reason: reason.cloned() };
        self.since = at;
        self.waits = None;
    }

    /// Folds `step`. That it is uncordoned removes it, which is up to the caller.
    pub(crate) fn apply(&mut self, step: &NodeStep, at: DateTime<Utc>) {
        match step {
            NodeStep::Cordoned { fence, was_unschedulable } => {
                self.fence = Some(*fence);
                self.was_unschedulable |= was_unschedulable;
            }
            NodeStep::EvictionBegan => self.stage = NodeStage::Evicting,
            NodeStep::RecheckBegan => self.stage = NodeStage::Rechecking,
            NodeStep::Waiting { waits } => self.waits = Some(waits.clone().since(self.waits.as_ref())),
            NodeStep::Drained { boot_id } => {
                self.stage = NodeStage::Drained;
                self.boot_id.clone_from(boot_id);
                self.waits = None;
            }
            NodeStep::UncordonDue { release, reason } => self.uncordon(*release, reason.as_ref(), at),
            // Whether it is ready does not matter any more.
            NodeStep::UncordonRequested { .. } => {
                let release = self.stage.has_release().then_some(ReleaseCause::NotNeeded);
                self.takes_over = self.foreign_mark().or(self.takes_over);
                self.uncordon(release, None, at);
            }
            NodeStep::Uncordoned => {}
        }
    }
}
