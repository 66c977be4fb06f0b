//! What a host says of itself that could be a machine, and what becomes of that.

use std::collections::BTreeMap;

use os_upgrade_protocol::HostName;
use os_upgrade_scheduler::MachineId;
use serde::{Deserialize, Serialize};

/// What a host announces that runs units: what an operator sees when he approves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MachineOffer {
    pub id: MachineId,
    /// Its labels.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

/// Whether a host that runs units, or did, is a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission<'a> {
    /// It is, as it was approved.
    Joined,
    /// It is, and announces other labels than those that were approved.
    OtherMetadata(MachineOffer),
    /// It announces another id than the approved one, or none: it gets no further unit.
    OtherId {
        /// What it announces; absent if it announces no id, or does not run units now.
        announced: Option<MachineOffer>,
    },
    /// It waits for approval.
    Waiting(MachineOffer),
    /// It announces the id of the machine that this host is.
    Taken { id: MachineId, by: &'a HostName },
    /// It announces no valid machine id.
    NoId,
    /// Another application of it runs units too, or takes configuration: both would write the one report that a host has.
    TwoReporters,
}
