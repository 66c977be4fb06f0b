//! What an instance asks the driver to do.

use os_upgrade_kernel::{ClockDoubt, Settings};
use os_upgrade_protocol::{GroupName, Hint, HostName};

use super::{Acknowledged, CallId, Halt, Trim};
use crate::dispatch::Dispatch;
use crate::forward::{Forwarded, Outcome};
use crate::inventory::InventoryError;
use crate::journal::Committed;
use crate::journal::codec::Message;
use crate::lease::{LeaseHolder, LeaseRequest};

/// Something for the driver to carry out.
#[derive(Debug)]
pub enum Action {
    /// Inspect the streams: do they hold everything known to have been acknowledged?
    Inspect(Box<Acknowledged>),
    /// Find out what exactly is missing, for the operator.
    DescribeLoss(Halt),
    /// Carry out this action on the lease.
    Lease(LeaseRequest),
    /// Deliver the journal from this sequence on. Replaces an earlier `FollowJournal`.
    FollowJournal {
        /// The first sequence.
        from: u64,
    },
    /// Stop following the journal.
    StopJournal,
    /// Publish to the journal on condition that this sequence is its last.
    Append {
        /// The last sequence that the stream must have.
        expected: u64,
        message: Message,
    },
    /// Read the first message of the journal from this sequence on, never from a replica.
    ReadJournal {
        /// The sequence to begin at.
        sequence: u64,
    },
    /// Deliver the control stream from this sequence on. Replaces an earlier `ReadControl`.
    ReadControl {
        /// The first sequence.
        from: u64,
    },
    /// Stop reading the control stream.
    StopControl,
    /// Carry out an effect.
    Dispatch(Dispatch),
    /// Answer a call.
    Answer {
        /// The call's id.
        call: CallId,
        /// The answer, or why there is none.
        outcome: Outcome,
    },
    /// Pass a request to the leader, whose answer may take [`crate::forward::ANSWER_WITHIN`].
    Forward {
        /// The call's id, returned with the outcome.
        call: CallId,
        /// The process that leads.
        to: LeaseHolder,
        forwarded: Forwarded,
    },
    /// Pass a committed record to the projection.
    Project {
        committed: Box<Committed>,
        /// Whether this instance decided it. If so, it also logs the facts.
        decided_here: bool,
    },
    /// Publish the current state to readers. Records are projected before, so that a run in the state is also in the
    /// history. Answers follow after, so that a caller told of a change finds it.
    PublishState,
    /// Send these hosts a hint that their run is stopping, so that they can cut waits short. Nothing relies on it.
    Hint {
        hint: Hint,
        /// Its recipients.
        hosts: Vec<HostName>,
    },
    /// Delete the announcements with these sequences, which count for nothing, from their stream.
    DeleteAnnouncements(Vec<u64>),
    /// Delete from the streams what nobody needs any more.
    Trim(Trim),
    /// Log a warning for the operator.
    Warn(Warning),
    /// The process may end: every call has been answered, and the lease is released as far as that was possible.
    Stopped,
}

/// Something an operator may want to know.
#[derive(Debug)]
pub enum Warning {
    /// The instance halts: it does nothing more until an operator intervenes.
    Halted(Halt),
    /// A message of the inventory cannot be used.
    Inventory {
        /// The host that it is about.
        host: HostName,
        /// Why not.
        error: InventoryError,
    },
    /// This instance leads, and whether the time can be relied on has changed.
    Clock {
        /// Why it cannot; absent if it can again.
        doubt: Option<ClockDoubt>,
    },
    /// Whether an operator has to mend something about the streams has changed.
    Streams {
        /// What; absent if nothing any more.
        concern: Option<String>,
    },
    /// The stream of what hosts are to have is another site's: nothing is delivered.
    CrossedSite {
        /// The other site.
        site: String,
    },
    /// This instance has begun to lead.
    Leading,
    /// New settings are in force.
    Adopted(Settings),
    /// Fewer slots are in force than are held.
    HoldersExceedSlots {
        group: GroupName,
        /// How many slots there are.
        slots: u32,
        /// How many are held.
        holders: usize,
    },
    /// This instance has stopped leading.
    Deposed {
        /// The cause, for the log.
        why: &'static str,
    },
}
