//! What a node is told.

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{Request, Sealed, Settings};
use os_upgrade_protocol::{CommandId, HostName};

use super::{Known, Streams};
use crate::control::RawControl;
use crate::dispatch::PublishOutcome;
use crate::forward::{CallId, Outcome};
use crate::inventory::WorkerMessage;
use crate::jobs::{JobId, JobReport};
use crate::journal::append::{AppendOutcome, ReadBack};
use crate::journal::codec::Message;
use crate::journal::{AppendId, JournalError};
use crate::lease::LeaseOutcome;

/// Something that has happened.
#[derive(Debug)]
pub enum Event {
    /// Time may have passed.
    Tick,
    /// The site's own settings have changed.
    Settings(Settings),
    /// Why slots cannot be asked for with the secrets there are, or that they can.
    Sealed(Option<Sealed>),
    /// The connection to the bus came or went.
    Connected(bool),
    /// The streams were inspected.
    Inspected {
        /// What was looked for.
        known: Box<Known>,
        /// What was found; why nothing, when they did not answer.
        streams: Result<Streams, String>,
    },
    /// What exactly is missing, in a sentence.
    Accounted(String),
    /// What came of the last lease action.
    Lease {
        /// The number of the question.
        number: u64,
        /// What came of it.
        outcome: LeaseOutcome,
    },
    /// A message of the journal that is being followed.
    Journal {
        /// Its sequence.
        sequence: u64,
        /// Its content, or why it cannot be read.
        message: Result<Message, JournalError>,
    },
    /// Everything that stood in the journal when following began has been handed in.
    JournalEnd,
    /// An append came back.
    Appended {
        /// Its id.
        append_id: AppendId,
        /// What came of it.
        outcome: AppendOutcome,
    },
    /// A read of the journal came back.
    ReadBack {
        /// The sequence.
        sequence: u64,
        /// What stands there.
        found: ReadBack,
    },
    /// A message of the control stream.
    Control(RawControl),
    /// A fence came back.
    FencePublished {
        /// As it was handed out.
        epoch: u64,
        /// Its sequence, if it is certainly stored.
        stored: Option<u64>,
    },
    /// A command came back.
    CommandPublished {
        /// As it was handed out.
        epoch: u64,
        /// Which command.
        id: CommandId,
        /// Its deadline.
        not_after: DateTime<Utc>,
        /// What came of it.
        outcome: PublishOutcome,
    },
    /// A job came back.
    JobDone {
        /// As it was handed out.
        id: JobId,
        /// What became of it.
        report: JobReport,
    },
    /// A retraction came back: whether the command was deleted, if that is known.
    Retracted {
        /// The host.
        host: HostName,
        /// The command's sequence.
        sequence: u64,
        /// `Some(true)`: deleted. `Some(false)`: left, a worker has it. `None`: could not be found out.
        deleted: Option<bool>,
    },
    /// Someone asks for a change.
    Call {
        /// To be handed back with the answer.
        call: CallId,
        /// What is asked.
        request: Request,
        /// The revision of the lease at which a follower saw this process lead, where it is a follower that passes the
        /// request on; then it is never passed on again.
        forwarded_at: Option<u64>,
    },
    /// A request that was passed on came back.
    ForwardAnswered {
        /// As it was handed out.
        call: CallId,
        /// What came of it.
        outcome: Outcome,
    },
    /// A worker says something of its host.
    Worker(WorkerMessage),
    /// The process is to end; [`super::Action::Stopped`] follows.
    Stop,
}
