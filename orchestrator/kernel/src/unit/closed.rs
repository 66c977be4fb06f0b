//! Why a machine gets no further unit.

use os_upgrade_scheduler::MachineId;
use serde::Serialize;
use strum::{IntoStaticStr, VariantNames};

/// Why a machine that is not lost gets no further unit. It keeps those that it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, IntoStaticStr, VariantNames)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Closed {
    /// Its host takes no part.
    NotEnrolled,
    /// Its host has a slot.
    HoldsSlot,
    /// The site is paused.
    Paused,
    /// Its host is deferred.
    Deferred,
    /// Its host announces another machine id than the approved one.
    OtherId {
        /// That id; absent if it announces no valid one, or does not run units now.
        announced: Option<MachineId>,
    },
    /// Its host is not told what it is to have, until an operator resumes the delivery.
    Withheld,
    /// Its agent is silent, and so are too many others to say that the machine is lost.
    Silent,
    /// It has as many units as a machine may have.
    Full,
    /// A unit that was global, or is destroyed, has not stopped there yet.
    Leaving,
}
