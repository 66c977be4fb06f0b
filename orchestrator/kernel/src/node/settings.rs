//! The settings of Kubernetes nodes.

use std::collections::BTreeSet;

use os_upgrade_calendar::Duration;
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Serialize};

use crate::left_out::is_default;

/// How the Kubernetes nodes of hosts are drained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct KubernetesSettings {
    /// How long a drain may take.
    pub drain_timeout: Duration,
    /// Whether the node of a host that failed is uncordoned, too.
    #[serde(default, skip_serializing_if = "is_default")]
    pub uncordon_failed: bool,
    /// The hosts that are nodes of the cluster; absent if every host is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<BTreeSet<HostName>>,
}

impl KubernetesSettings {
    /// Whether `host` is a node of the cluster.
    pub fn includes(&self, host: &HostName) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.contains(host))
    }
}
