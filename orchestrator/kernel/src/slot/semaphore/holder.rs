//! Holders of slots of an embedded semaphore.

use std::ops::Not;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::owner::Owner;

/// A holder of a slot: for a run, for an external client, for an operator, or for several of them. The slot is free when
/// none is left.
///
/// To FleetLock a client id is one holder, and locks are recursive; so a host of a run and an external client with the
/// same name share one slot. Neither releases it for the other: a FleetLock agent unlocks each time it starts, even in
/// the middle of an upgrade that has just rebooted its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// When the slot was granted.
    pub since: DateTime<Utc>,
    /// The run or entry of the reboot queue for which a host holds it, if any.
    #[serde(rename = "run")]
    pub owner: Option<Owner>,
    /// Whether an external FleetLock client holds it.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub client: bool,
    /// An operator's hold, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

/// An operator's hold on a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    pub actor: String,
    /// Why, as the operator says.
    pub reason: String,
    /// When the operator placed the hold.
    pub since: DateTime<Utc>,
}

impl Holder {
    /// A holder that nobody needs yet.
    pub(super) const fn new(since: DateTime<Utc>) -> Self {
        Self { since, owner: None, client: false, hold: None }
    }

    /// Whether a run, a client or an operator still holds the slot.
    pub(super) const fn is_needed(&self) -> bool {
        self.owner.is_some() || self.client || self.hold.is_some()
    }
}
