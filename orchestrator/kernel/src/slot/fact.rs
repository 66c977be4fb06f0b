//! What becomes true of slots: those of hosts, and those of clients and operators.

use os_upgrade_protocol::{GroupName, HostName};
use serde::{Deserialize, Serialize};

use super::client_id::ClientId;
use super::state::ReleaseCause;
use crate::about::{About, AuditList, OwnerRef, Part};
use crate::owner::Owner;
use crate::reason::LockRefusal;

/// Something that has become true of the slot of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum SlotFact {
    /// A host's slot is about to be requested from a lock server, so it may be held from here on.
    #[serde(rename = "slot-requested")]
    #[strum(serialize = "slot-requested")]
    Requested {
        host: HostName,
        group: GroupName,
        /// Who needs the slot.
        #[serde(rename = "run")]
        owner: Owner,
    },
    /// The lock server has not granted the slot that was requested for a host; it is asked again.
    #[serde(rename = "slot-refused")]
    #[strum(serialize = "slot-refused")]
    Refused {
        host: HostName,
        /// Why not.
        refusal: LockRefusal,
    },
    /// A host's slot is no longer needed and must be released at the lock server, or once more if it was in doubt.
    #[serde(rename = "slot-release-due")]
    #[strum(serialize = "slot-release-due")]
    ReleaseDue {
        host: HostName,
        /// The reason for the release.
        why: ReleaseCause,
    },
    /// The lock server has not released a host's slot; it is asked again.
    #[serde(rename = "slot-release-refused")]
    #[strum(serialize = "slot-release-refused")]
    ReleaseRefused {
        host: HostName,
        /// Why not.
        refusal: LockRefusal,
    },
    /// The outcome of a request to the lock server about a host's slot is not known, so that it may still be carried out.
    #[serde(rename = "slot-in-doubt")]
    #[strum(serialize = "slot-in-doubt")]
    InDoubt { host: HostName },
    /// The lock server has released a host's slot that is in doubt. It is asked once more after a while, in case it has
    /// carried out an earlier request meanwhile.
    #[serde(rename = "slot-unlocked")]
    #[strum(serialize = "slot-unlocked")]
    Unlocked { host: HostName },
    /// A host's slot is free.
    #[serde(rename = "slot-released")]
    #[strum(serialize = "slot-released")]
    Released {
        host: HostName,
        /// The reason for the release.
        why: ReleaseCause,
    },
}

impl SlotFact {
    /// What it is about.
    pub(crate) fn about(&self) -> About<'_> {
        match self {
            Self::Requested { host, owner, .. } => About::host(OwnerRef::Owner(owner), host),
            Self::Refused { host, .. }
            | Self::ReleaseDue { host, .. }
            | Self::ReleaseRefused { host, .. }
            | Self::InDoubt { host }
            | Self::Unlocked { host }
            | Self::Released { host, .. } => About::host(OwnerRef::OfSlot, host),
        }
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        match self {
            Self::Requested { .. }
            | Self::Refused { .. }
            | Self::ReleaseDue { .. }
            | Self::ReleaseRefused { .. }
            | Self::InDoubt { .. }
            | Self::Unlocked { .. }
            | Self::Released { .. } => &[],
        }
    }
}

/// Something that has become true of a slot that no run and no entry of the reboot queue needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum LockFact {
    /// An external FleetLock client holds a slot of an embedded semaphore.
    #[serde(rename = "lock-granted")]
    #[strum(serialize = "lock-granted")]
    Granted {
        group: GroupName,
        /// The client's FleetLock id.
        id: ClientId,
        /// Who made the request.
        actor: String,
    },
    /// An external FleetLock client was refused a slot; it is remembered as a waiter for a while.
    #[serde(rename = "lock-awaited")]
    #[strum(serialize = "lock-awaited")]
    Awaited {
        group: GroupName,
        /// The client's FleetLock id.
        id: ClientId,
        /// Who made the request.
        actor: String,
    },
    /// An external FleetLock client has released its slot.
    #[serde(rename = "lock-released")]
    #[strum(serialize = "lock-released")]
    Released {
        group: GroupName,
        /// The client's FleetLock id.
        id: ClientId,
        /// Who made the request.
        actor: String,
    },
    /// An external FleetLock client, which holds no slot, no longer waits for one.
    #[serde(rename = "lock-wait-ended")]
    #[strum(serialize = "lock-wait-ended")]
    WaitEnded {
        group: GroupName,
        /// The client's FleetLock id.
        id: ClientId,
        /// Who made the request.
        actor: String,
    },
    /// An operator holds a slot of an embedded semaphore.
    HoldPlaced {
        group: GroupName,
        /// The id under which the slot is held.
        id: ClientId,
        actor: String,
        /// Why, as the operator says.
        reason: String,
    },
    /// An operator released a slot: neither the client nor an operator holds it any more, and the client no longer waits
    /// for one. A slot held for a run is released by a separate fact.
    HolderReleased {
        group: GroupName,
        /// The id that held it.
        id: ClientId,
        actor: String,
        /// Why, as the operator says; absent when it was released because the client has left the inventory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl LockFact {
    /// What it is about.
    pub(crate) fn about(&self) -> About<'_> {
        match self {
            Self::Granted { actor, .. } | Self::Released { actor, .. } => {
                About::by(actor).in_list(AuditList::Locks)
            }
            Self::Awaited { actor, .. } | Self::WaitEnded { actor, .. } => {
                About::by(actor).in_list(AuditList::Waits)
            }
            Self::HoldPlaced { actor, .. } | Self::HolderReleased { actor, .. } => {
                About::by(actor).in_list(AuditList::Holds)
            }
        }
    }

    /// What must be derived again after it.
    pub(crate) const fn affects(&self) -> &'static [Part] {
        match self {
            Self::Granted { .. }
            | Self::Awaited { .. }
            | Self::Released { .. }
            | Self::WaitEnded { .. }
            | Self::HoldPlaced { .. }
            | Self::HolderReleased { .. } => &[],
        }
    }
}
