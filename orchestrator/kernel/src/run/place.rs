//! The place of a host in the order of turns.

use os_upgrade_protocol::HostName;

/// The place of a host in the order of turns: the smallest goes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of the run in which it had its last turn; 0 if it never had one.
    pub last_turn: u64,
    pub host: HostName,
}
