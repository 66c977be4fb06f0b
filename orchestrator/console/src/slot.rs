//! Why a slot is refused, or not released.

use std::fmt::{self, Formatter};

use os_upgrade_kernel::SlotRefusal;
use os_upgrade_kernel::slot::{Denied, Full, HostDenied, NamedHolder};
use os_upgrade_protocol::time;

use crate::describe::Describe;

impl Describe for Denied {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownGroup { group } => write!(f, "there is no group {group}"),
            Self::Full(it) => it.describe(f),
            Self::OtherLockServer => {
                f.write_str("the slots of this site are granted by another lock server: ask that one")
            }
        }
    }
}

impl Describe for HostDenied {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftToEarlier { id, since } => write!(
                f,
                "free slots are left to earlier clients: {id} has waited since {}",
                time::format(*since)
            ),
            Self::Any(it) => it.describe(f),
        }
    }
}

impl Describe for SlotRefusal {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHolder { group, id } => {
                write!(f, "{id} neither holds a slot of group {group} nor waits for one")
            }
            Self::HolderAtWork { id, status, run } => write!(
                f,
                "{id} is {status} in run {run}: its slot can be released once the host has finished or the \
                 run has ended"
            ),
            Self::HolderRebooting { id, index } => write!(
                f,
                "entry {index} of the reboot queue is at work on {id}: its slot can be released once the host \
                 is back, or the entry was given up"
            ),
            Self::HolderUncertain { id } => {
                write!(f, "a command to {id} may still be on its way: try again in a moment")
            }
            Self::ReclaimsNothing => f.write_str(
                "slots of holders that have left the inventory are not reclaimed: set [fleet-lock] reclaim = \
                 \"inventory\", or release the slot with a reason",
            ),
            Self::HeldAlready { id, actor, reason } => {
                write!(f, "{id} is held by {actor}: {reason}; release it first")
            }
            Self::NotLeft { id } => write!(
                f,
                "{id} has not left the inventory: it was never in it, or an operator holds its slot; release \
                 it with a reason"
            ),
            Self::InInventory { id, applications } => {
                write!(f, "{id} is in the inventory: its workers have announced themselves on {applications}")
            }
            Self::LockDenied { denied } => denied.describe(f),
        }
    }
}

impl Describe for Full {
    fn describe(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { slots, held, holders } = self;
        match (*slots, held.saturating_sub(*slots as usize)) {
            (0, 0) => f.write_str("the group has no slots")?,
            (0, _) => f.write_str("the group has no slots any more; still held")?,
            (1, 0) => f.write_str("the only slot is held")?,
            (slots, 0) => write!(f, "all {slots} slots are held")?,
            (1, _) => write!(f, "there is 1 slot, and {held} are held")?,
            (slots, _) => write!(f, "there are {slots} slots, and {held} are held")?,
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

#[cfg(test)]
mod tests {
    use os_upgrade_kernel::ClientId;

    use super::*;
    use crate::describe::describe;

    #[test]
    fn refusals_say_who_holds_the_slots() {
        let since = "2026-11-21T01:00:00Z".parse().unwrap();
        let holder = |id: &str| NamedHolder { id: id.to_owned(), since };
        let full = |slots, held, holders| describe(&Full { slots, held, holders }).to_string();
        assert_eq!(full(1, 1, vec![holder("a")]), "the only slot is held by a since 2026-11-21T01:00:00Z");
        assert_eq!(
            full(1, 3, vec![holder("a"), holder("b")]),
            "there is 1 slot, and 3 are held by a since 2026-11-21T01:00:00Z, b since 2026-11-21T01:00:00Z and 1 more"
        );
        assert_eq!(full(0, 0, Vec::new()), "the group has no slots");
        assert_eq!(
            describe(&HostDenied::LeftToEarlier { id: ClientId::new("b").unwrap(), since }).to_string(),
            "free slots are left to earlier clients: b has waited since 2026-11-21T01:00:00Z"
        );
    }
}
