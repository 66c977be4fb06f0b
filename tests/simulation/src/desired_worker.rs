//! The part of a worker's process that applies what its host is to have.

use std::collections::VecDeque;

use os_upgrade_protocol::{Applied, HostKey, HostName};
use os_upgrade_worker_rules::{DesiredAction, DesiredEvent, DesiredLogic};

#[derive(Debug)]
pub(crate) struct DesiredWorker {
    pub(crate) logic: DesiredLogic,
    /// Events that have not been handled.
    pub(crate) mailbox: VecDeque<DesiredEvent>,
    /// Actions that have not been carried out.
    pub(crate) todo: VecDeque<DesiredAction>,
    pub(crate) step_is_due: bool,
    /// The number of the content that was opened and not applied yet.
    pub(crate) opened: Option<u64>,
    /// What orchestrators were told last over this connection.
    pub(crate) reported: Option<Applied>,
}

impl DesiredWorker {
    pub(crate) fn new(host: HostName) -> Self {
        Self {
            logic: DesiredLogic::new(host),
            mailbox: VecDeque::new(),
            todo: VecDeque::new(),
            step_is_due: false,
            opened: None,
            reported: None,
        }
    }
}

/// The key of the host of this index, of which it has had `earlier` ones.
pub(crate) fn key(index: usize, earlier: u8) -> HostKey {
    let mut bytes = [earlier; 32];
    bytes[0] = u8::try_from(index).expect("a simulated site is small");
    HostKey::new(bytes)
}
