//! What a node wants done.

use os_upgrade_kernel::Settings;
use os_upgrade_protocol::{GroupName, Hint, HostName};

use super::{CallId, Halt, Known};
use crate::dispatch::Dispatch;
use crate::forward::{Forwarded, Outcome};
use crate::inventory::InventoryError;
use crate::journal::Committed;
use crate::journal::codec::Message;
use crate::lease::{LeaseHolder, LeaseQuestion};

/// Something for the shell to carry out.
#[derive(Debug)]
pub enum Action {
    /// Look at the streams: whether they hold what is known to have been acknowledged.
    Inspect(Box<Known>),
    /// Find out what exactly is missing, for the operator.
    Account(Halt),
    /// Do this about the lease.
    Lease(LeaseQuestion),
    /// Hand in the journal from this sequence on, instead of whatever was followed before.
    FollowJournal {
        /// The first sequence wanted.
        from: u64,
    },
    /// Stop following the journal.
    StopJournal,
    /// Publish to the journal, expecting this sequence to be its last.
    Append {
        /// The last sequence that the stream must have.
        expected: u64,
        /// The message.
        message: Message,
    },
    /// Read the journal at this sequence, never from a replica.
    ReadJournal {
        /// The sequence.
        sequence: u64,
    },
    /// Hand in the control stream from this sequence on, instead of whatever was read before.
    ReadControl {
        /// The first sequence wanted.
        from: u64,
    },
    /// Stop reading the control stream.
    StopControl,
    /// Carry out an effect.
    Dispatch(Dispatch),
    /// Answer a call.
    Answer {
        /// Which one.
        call: CallId,
        /// The answer, or why there is none.
        outcome: Outcome,
    },
    /// Ask the leader in this one's place, within [`crate::forward::ANSWER_WITHIN`].
    Forward {
        /// To be handed back with the outcome.
        call: CallId,
        /// The process that leads.
        to: LeaseHolder,
        /// What is asked.
        forwarded: Forwarded,
    },
    /// Hand a committed record to the projection.
    Project {
        /// The record.
        committed: Box<Committed>,
        /// Whether it was decided here: then this instance logs what it says.
        decided_here: bool,
    },
    /// Show readers the present state. Whoever reads of a run there finds it in the history, since records are projected
    /// before; and who is told after it that a change is durable finds the change.
    Show,
    /// Tell these hosts that their run is stopping: what can be stopped need not be waited for. Nothing relies on it.
    Hint {
        /// What to tell.
        hint: Hint,
        /// Whom.
        hosts: Vec<HostName>,
    },
    /// Tell the operator.
    Warn(Warning),
    /// The process may end: everybody has been answered, and the lease is given back as far as that was possible.
    Stopped,
}

/// Something an operator may want to know.
#[derive(Debug)]
pub enum Warning {
    /// The node stops for good.
    Halted(Halt),
    /// A message of the inventory cannot be used.
    Inventory {
        /// About which host.
        host: HostName,
        /// Why not.
        error: InventoryError,
    },
    /// This instance leads from now on.
    Leading,
    /// Other settings than before are in force.
    Adopted(Settings),
    /// Fewer slots are in force than are held.
    MoreHolders {
        /// The group.
        group: GroupName,
        /// How many there are.
        slots: u32,
        /// How many are held.
        holders: usize,
    },
    /// This instance leads no more.
    Deposed {
        /// Why.
        why: &'static str,
    },
}
