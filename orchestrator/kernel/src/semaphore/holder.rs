//! Who holds a slot of an embedded semaphore, and for whom.

use std::ops::Not;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::RunId;
use serde::{Deserialize, Serialize};

/// Someone who holds a slot, for one or more of three reasons. The slot is free when none is left.
///
/// To FleetLock a client id is one holder, whoever speaks for it, and locks are recursive; so a host of ours and a
/// client that calls itself by the host's name share one slot. But neither gives back for the other: a FleetLock agent
/// unlocks each time it starts, also in the middle of an upgrade that has just rebooted its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Since when.
    pub since: DateTime<Utc>,
    /// The run on whose behalf, if it is a host of ours.
    pub run: Option<RunId>,
    /// Whether a FleetLock client from outside holds it.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub client: bool,
    /// That an operator wants it held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
}

/// An operator's word that a slot is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: DateTime<Utc>,
}

impl Holder {
    /// One that holds a slot for nothing yet.
    pub(super) const fn new(since: DateTime<Utc>) -> Self {
        Self { since, run: None, client: false, hold: None }
    }

    /// Whether it has a reason left.
    pub(super) const fn is_needed(&self) -> bool {
        self.run.is_some() || self.client || self.hold.is_some()
    }
}
