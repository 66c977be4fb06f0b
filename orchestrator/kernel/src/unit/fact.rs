//! What becomes true of units and machines.

use std::collections::BTreeMap;

use os_upgrade_protocol::HostName;
use os_upgrade_scheduler::{MachineId, Misfit, Taken, UnitName, UnitState};
use serde::{Deserialize, Serialize};

use crate::about::{About, AuditList, OwnerRef, Part};

/// Something that has become true of units and machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum UnitFact {
    /// There is a new unit, or one has other contents from here on.
    #[serde(rename = "unit-submitted")]
    #[strum(serialize = "unit-submitted")]
    Submitted {
        name: UnitName,
        /// The text of its file.
        contents: String,
        desired: UnitState,
        actor: String,
    },
    /// A unit is to be in another state.
    #[serde(rename = "unit-wanted")]
    #[strum(serialize = "unit-wanted")]
    Wanted { name: UnitName, state: UnitState, actor: String },
    /// There is no such unit any more.
    #[serde(rename = "unit-destroyed")]
    #[strum(serialize = "unit-destroyed")]
    Destroyed { name: UnitName, actor: String },
    /// A host is a machine from here on, or another one than before, or one with other labels.
    MachineJoined {
        host: HostName,
        machine: MachineId,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        metadata: BTreeMap<String, String>,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        address: String,
        /// Who approved it; absent if it is the first machine of a host that the settings approve.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// A machine's agent is silent: its units go elsewhere.
    MachineLost { host: HostName },
    /// The agent of a lost machine is heard again.
    MachineFound { host: HostName },
    /// A unit belongs on these hosts, too, from here on.
    #[serde(rename = "unit-placed")]
    #[strum(serialize = "unit-placed")]
    Placed { unit: UnitName, hosts: Vec<HostName> },
    /// A unit no longer belongs on these hosts. It may run there until that has been reported.
    #[serde(rename = "unit-taken")]
    #[strum(serialize = "unit-taken")]
    Taken { unit: UnitName, hosts: Vec<HostName>, why: TakenAway },
    /// A unit no longer runs on a host from which it was taken away.
    #[serde(rename = "unit-stopped")]
    #[strum(serialize = "unit-stopped")]
    Stopped { unit: UnitName, host: HostName },
}

/// Why a unit was taken away from a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum TakenAway {
    /// It is to be inactive.
    NotWanted,
    /// It was destroyed.
    Destroyed,
    /// Its machine is lost.
    MachineLost,
    /// It may no longer be on its machine.
    NoLongerFits { misfit: Misfit },
    /// Another unit takes its place.
    ReplacedBy { unit: UnitName },
    /// Its machine is evacuated.
    Evacuated,
    /// It was global, and is not any more: it stays on one machine.
    NoLongerGlobal,
}

impl TakenAway {
    /// Why the scheduler takes a unit away. Absent for one that has become global: the scheduler is not told where such a unit is.
    pub(super) fn new(taken: Taken) -> Option<Self> {
        match taken {
            Taken::NotWanted => Some(Self::NotWanted),
            Taken::BecameGlobal => None,
            Taken::Lost => Some(Self::MachineLost),
            Taken::NoLongerFits { misfit } => Some(Self::NoLongerFits { misfit }),
            Taken::ReplacedBy { unit } => Some(Self::ReplacedBy { unit }),
            Taken::Evacuated => Some(Self::Evacuated),
        }
    }
}

impl UnitFact {
    pub(crate) fn about(&self) -> About<'_> {
        match self {
            Self::Submitted { actor, .. } | Self::Wanted { actor, .. } | Self::Destroyed { actor, .. } => {
                About::by(actor).in_list(AuditList::Units)
            }
            Self::MachineJoined { host, actor, .. } => {
                let about = About { actor: actor.as_deref(), ..About::host(OwnerRef::None, host) };
                about.in_list(AuditList::Enrolment)
            }
            Self::MachineLost { host } | Self::MachineFound { host } | Self::Stopped { host, .. } => {
                About::host(OwnerRef::None, host)
            }
            Self::Placed { .. } | Self::Taken { .. } => About::default(),
        }
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        match self {
            Self::Submitted { .. }
            | Self::Wanted { .. }
            | Self::Destroyed { .. }
            | Self::MachineJoined { .. }
            | Self::MachineLost { .. }
            | Self::MachineFound { .. }
            | Self::Placed { .. }
            | Self::Taken { .. }
            | Self::Stopped { .. } => &[],
        }
    }
}
