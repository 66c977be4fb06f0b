//! What becomes true of Kubernetes nodes.

use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use super::state::NodeStep;
use crate::about::{About, AuditList, OwnerRef, Part};

/// Something that has become true of the Kubernetes node of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum NodeFact {
    #[serde(rename = "node")]
    #[strum(serialize = "node")]
    Step {
        host: HostName,
        /// What happened.
        step: NodeStep,
    },
}

impl NodeFact {
    /// What it is about.
    pub(crate) fn about(&self) -> About<'_> {
        let Self::Step { host, step } = self;
        // Operators look for what they did, among the many steps that follow by themselves.
        let list = step.actor().map(|_| AuditList::Enrolment);
        About { actor: step.actor(), list, ..About::host(OwnerRef::OfSlot, host) }
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        let Self::Step { .. } = self;
        &[Part::Host, Part::Commands]
    }
}
