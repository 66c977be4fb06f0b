//! Why a lock is refused: typed, because it is journaled as the reason why a host waits. `Display` gives the sentence
//! for operators, which is also the `value` of the FleetLock error.

use std::fmt;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::{GroupName, time};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::slot::ClientId;

/// Why a lock is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Denied {
    /// No such group is configured.
    #[error("there is no group {group}")]
    UnknownGroup {
        /// The unknown group.
        group: GroupName,
    },
    /// Every slot is held.
    #[error("{0}")]
    Full(Full),
    /// The slots of this site are granted by an external lock server.
    #[error("the slots of this site are granted by another lock server: ask that one")]
    OtherLockServer,
}

/// Why a host of a run is refused a lock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum HostDenied {
    /// The free slots are left to external clients that were refused before this host arrived.
    #[error("free slots are left to earlier clients: {id} has waited since {}", time::format(*since))]
    LeftToEarlier {
        /// One of these clients.
        id: ClientId,
        /// When it began to wait, in whole seconds.
        since: DateTime<Utc>,
    },
    /// The refusal that any client would get.
    #[error(transparent)]
    #[serde(untagged)]
    Any(#[from] Denied),
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

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slots, held, holders } = self;
        match (*slots, held.saturating_sub(*slots as usize)) {
            (0, 0) => f.write_str("the group has no slots")?,
            (0, _) => f.write_str("the group has no slots any more; still held")?,
            (1, 0) => f.write_str("the only slot is held")?,
            (slots, 0) => write!(f, "all {slots} slots are held")?,
            (slots, _) => write!(f, "the slots were lowered to {slots}, {held} are still held")?,
        }
        for (index, NamedHolder { id, since }) in holders.iter().enumerate() {
            let lead = if index == 0 { " by" } else { "," };
            write!(f, "{lead} {id} since {}", time::format(*since))?;
        }
        match held.saturating_sub(holders.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
