//! Why a request is refused.

use std::fmt::{self, Formatter};

use os_upgrade_kernel::Refusal;

use crate::describe::Describe;

impl Describe for Refusal {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(refusal) => refusal.describe(f),
            Self::Pause(refusal) => refusal.describe(f),
            Self::Config(refusal) => refusal.describe(f),
            Self::Enrolment(refusal) => refusal.describe(f),
            Self::Slot(refusal) => refusal.describe(f),
            Self::Lock(denied) => denied.describe(f),
            Self::Desired(refusal) => refusal.describe(f),
            Self::Reboot(refusal) => refusal.describe(f),
            Self::Node(refusal) => refusal.describe(f),
            Self::Secret(refusal) => refusal.describe(f),
            Self::Unit(refusal) => refusal.describe(f),
        }
    }
}
