//! Why a lock is refused: typed, because it is journaled as the reason why a host waits.

use chrono::{DateTime, Utc};
use os_upgrade_protocol::GroupName;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::slot::ClientId;

/// Why a lock is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Denied {
    /// No such group is configured.
    UnknownGroup {
        /// The unknown group.
        group: GroupName,
    },
    /// Every slot is held.
    Full(Full),
    /// The slots of this site are granted by an external lock server.
    OtherLockServer,
}

/// Why a host of a run is refused a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum HostDenied {
    /// The free slots are left to external clients that were refused before this host arrived.
    LeftToEarlier {
        /// One of these clients.
        id: ClientId,
        /// When it began to wait, in whole seconds.
        since: DateTime<Utc>,
    },
    /// The refusal that any client would get.
    #[serde(untagged)]
    Any(Denied),
}

/// A semaphore that has no free slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Full {
    /// How many slots there are.
    pub slots: u32,
    /// How many are held; more than `slots` after the slots became fewer.
    pub held: usize,
    /// The first few holders, by id.
    pub holders: Vec<NamedHolder>,
}

/// A holder named in a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NamedHolder {
    /// Its FleetLock client id.
    pub id: String,
    /// When it got its slot, in whole seconds.
    pub since: DateTime<Utc>,
}

/// The `kind` of a FleetLock error: a small fixed set, as FleetLock requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DeniedKind {
    /// No such group is configured.
    UnknownGroup,
    /// Every slot is held.
    FailedLockSemaphoreFull,
    /// The slots of this site are granted by an external lock server.
    OtherLockServer,
}

impl DeniedKind {
    /// The word in the FleetLock error.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Denied {
    /// The `kind` of the FleetLock error.
    pub const fn kind(&self) -> DeniedKind {
        match self {
            Self::UnknownGroup { .. } => DeniedKind::UnknownGroup,
            Self::Full(_) => DeniedKind::FailedLockSemaphoreFull,
            Self::OtherLockServer => DeniedKind::OtherLockServer,
        }
    }
}

impl HostDenied {
    /// The `kind` of the FleetLock error.
    pub const fn kind(&self) -> DeniedKind {
        match self {
            Self::Any(denied) => denied.kind(),
            Self::LeftToEarlier { .. } => DeniedKind::FailedLockSemaphoreFull,
        }
    }
}

impl From<Denied> for HostDenied {
    fn from(denied: Denied) -> Self {
        Self::Any(denied)
    }
}
