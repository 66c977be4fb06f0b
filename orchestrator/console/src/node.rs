//! What is done to the Kubernetes nodes of hosts, and what that waits for.

use std::fmt::{self, Formatter};

use os_upgrade_kernel::node::NodeProgress;
use os_upgrade_kernel::{NodeRefusal, NodeStage, NodeWait, Pod, PodObstacle, Pods, Volumes};
use os_upgrade_protocol::time;

use crate::describe::{Describe, describe};

/// That the mark of a node is of another journal.
pub(crate) const FOREIGN_MARK: &str = "its node has a mark of a journal that this site does not have, from before it was set up anew or put back; \
    `os-upgrade hosts uncordon` takes it over";

impl Describe for NodeWait {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods { pods } => pods.describe(f),
            Self::Volumes { volumes } => volumes.describe(f),
            Self::NotReady => f.write_str("its node is not ready, or is still in its old boot"),
            Self::ForeignMark { .. } => f.write_str(FOREIGN_MARK),
            Self::Unreachable { why } => {
                write!(f, "the Kubernetes API server is unreachable: {why}", why = describe(why))
            }
            Self::Refused { detail } => write!(f, "Kubernetes refuses: {detail}"),
        }
    }
}

impl Describe for PodObstacle {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTried => f.write_str("has not been evicted yet"),
            Self::Requested => f.write_str("is being evicted"),
            Self::Terminating => f.write_str("is terminating"),
            Self::Finalizers { finalizers } => {
                write!(f, "is terminating, and kept by {}", finalizers_named(finalizers))
            }
            Self::JobRunning => f.write_str("belongs to a job that is running"),
            Self::Awaited => f.write_str("is waited for, because of wait-for-pods"),
            Self::Budget { budgets } => write!(f, "is kept by {}", budgets_named(budgets)),
            Self::UnreadBudget { message } => write!(f, "is kept by a budget: {message}"),
            Self::BudgetPending { message, until } => {
                write!(f, "waits for its budget until {}: {message}", time::format(*until))
            }
            Self::UncountedPods { budget } => write!(
                f,
                "is kept for good by the budget {budget}, which counts pods of controllers and selects none"
            ),
            Self::SeveralBudgets { budgets } => {
                write!(f, "is kept for good because several budgets select it: {}", budgets.join(", "))
            }
            Self::Denied { detail } => write!(f, "may not be evicted: {detail}"),
            Self::MissingRight { detail } => {
                write!(f, "cannot be evicted, because a right is missing: {detail}")
            }
            Self::NamespaceEnds => f.write_str("waits for the end of its namespace"),
            Self::Failed { detail } => write!(f, "could not be evicted: {detail}"),
        }
    }
}

impl Describe for NodeRefusal {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotCordoned { host } => write!(f, "the node of {host} is not cordoned by this site"),
            Self::NodeInUse { host } => write!(
                f,
                "{host} is under way: its node is uncordoned by itself; cancel or give up what is under way to end it now"
            ),
            Self::NodeUncertain { host } => {
                write!(f, "a command to {host} may still be on its way: try again in a moment")
            }
        }
    }
}

impl Describe for Pods {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.kubelet_silent {
            f.write_str("the kubelet of its node is silent, and ends no pod: ")?;
        }
        let Some((first, others)) = self.first.split_first() else {
            return write!(f, "{} pods are left", self.count);
        };
        first.describe(f)?;
        others.iter().try_for_each(|pod| write!(f, "; {}", describe(pod)))?;
        match self.count.saturating_sub(self.first.len()) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl Describe for Volumes {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { count, first, staying } = self;
        write!(f, "volumes are still in use: {}", first.join(", "))?;
        match count.saturating_sub(first.len()) {
            0 => {}
            more => write!(f, " and {more} more")?,
        }
        match staying {
            0 => Ok(()),
            staying => write!(f, ", of which {staying} may belong to pods that stay"),
        }
    }
}

impl Describe for Pod {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { namespace, name, owner, obstacle, since } = self;
        write!(f, "pod {namespace}/{name}")?;
        if let Some(owner) = owner {
            write!(f, " of {owner}")?;
        }
        write!(f, " {}, since {}", describe(obstacle), time::format(*since))
    }
}

fn finalizers_named(finalizers: &[String]) -> String {
    match finalizers {
        [finalizer] => format!("the finalizer {finalizer}"),
        several => format!("the finalizers {}", several.join(", ")),
    }
}

fn budgets_named(budgets: &[String]) -> String {
    match budgets {
        [] => "a budget".to_owned(),
        [budget] => format!("the budget {budget}"),
        several => format!("the budgets {}", several.join(", ")),
    }
}

impl Describe for NodeProgress {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "its node is {} since {}", doing(&self.stage), time::format(self.since))?;
        self.waits.iter().try_for_each(|waits| write!(f, ": {}", describe(waits)))
    }
}

const fn doing(stage: &NodeStage) -> &'static str {
    match stage {
        NodeStage::Checking => "being checked before its drain",
        NodeStage::Evicting => "being drained",
        NodeStage::Drained => "cordoned",
        NodeStage::Rechecking => "being drained once more before the reboot",
        NodeStage::Uncordoning { .. } => "being uncordoned",
    }
}
