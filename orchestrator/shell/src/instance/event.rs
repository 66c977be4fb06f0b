//! What the driver tells the instance.

use std::time::Duration;

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use os_upgrade_calendar::Zones;
use os_upgrade_kernel::{Order, Purge, Request, Sealed, SeenNode, Settings};
use os_upgrade_protocol::HostName;

use super::{Acknowledged, Streams, Trim};
use crate::control_stream::RawControl;
use crate::delivery::Delivered;
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
    /// The system's time zone data were replaced.
    Zones(Zones),
    /// Why the current secrets do not allow slot requests; `None` if they do.
    Sealed(Option<Sealed>),
    /// The connection to the bus was made (`true`) or lost.
    Connected(bool),
    /// The streams were inspected.
    Inspected {
        /// What was expected.
        known: Box<Acknowledged>,
        /// What was found, or why the streams could not be read.
        streams: Result<Streams, String>,
    },
    /// The answer to [`super::Action::DescribeLoss`]: a sentence that says what is missing.
    LossDescribed(String),
    /// The outcome of a lease action.
    Lease {
        /// The number of the question.
        number: u64,
        outcome: LeaseOutcome,
    },
    /// A message of the followed journal.
    Journal {
        sequence: u64,
        /// When it was stored, by the clock of the bus.
        stored_at: DateTime<Utc>,
        /// Its content, or why it cannot be read.
        message: Result<Message, JournalError>,
    },
    /// Everything that was in the journal when following began has been delivered.
    JournalEnd,
    /// An append was answered.
    Appended { append_id: AppendId, outcome: AppendOutcome },
    /// A read of the journal was answered.
    ReadBack {
        /// The sequence from [`super::Action::ReadJournal`].
        sequence: u64,
        /// What was found from there on.
        found: ReadBack,
    },
    /// A message of the control stream.
    Control(RawControl),
    /// The publish of a fence was answered.
    FencePublished {
        /// The epoch from [`crate::dispatch::Dispatch::Fence`].
        epoch: u64,
        /// Its sequence; `None` unless it is certainly stored.
        stored: Option<u64>,
    },
    /// The publish of a command was answered.
    CommandPublished {
        /// The epoch from [`crate::dispatch::Dispatch::Command`].
        epoch: u64,
        /// The command.
        order: Order,
        outcome: PublishOutcome,
    },
    /// A job has ended.
    JobDone {
        /// The id from [`crate::jobs::StartedJob`].
        id: JobId,
        /// Its outcome.
        report: JobReport,
    },
    /// Something that was to be delivered was, or was not.
    Delivered(Delivered),
    /// A purge was answered.
    Purged {
        purge: Purge,
        /// Whether everything is deleted; otherwise it is tried again.
        done: bool,
    },
    /// A retraction was answered.
    Retracted {
        host: HostName,
        sequence: u64,
        /// `Some(true)`: the command is deleted. `Some(false)`: it stays, a worker has it. `None`: unknown.
        deleted: Option<bool>,
    },
    /// A client or follower requests a change.
    Call {
        /// The call's id, returned with the answer.
        call: CallId,
        request: Request,
        /// The lease revision at which a follower saw this process lead; `None` if the request was not forwarded. A
        /// forwarded request is never forwarded again.
        forwarded_at: Option<u64>,
    },
    /// A forwarded request was answered.
    ForwardAnswered {
        /// The call's id from [`super::Action::Forward`].
        call: CallId,
        outcome: Outcome,
    },
    /// A worker reports something about its host.
    Worker(WorkerMessage),
    /// The Kubernetes cluster has told its nodes.
    ClusterSeen {
        /// The nodes of hosts, by host.
        nodes: OrdMap<HostName, SeenNode>,
        /// The monotonic time when it was asked.
        at: Duration,
    },
    /// [`super::Action::DeleteAnnouncements`] was carried out.
    AnnouncementsDeleted {
        /// How many were deleted, or are not there, from the first one on. The next one could not be deleted.
        count: usize,
    },
    /// The stores of this instance and of every other live one have, and will not lose, the journal up to this record.
    Stored {
        /// Its sequence; `None` if it is not known of all.
        by_all: Option<u64>,
    },
    /// [`super::Action::Trim`] was carried out.
    Trimmed {
        /// What was to be deleted.
        trim: Trim,
        /// Whether it is.
        done: bool,
    },
    /// The process must end; [`super::Action::Stopped`] follows.
    Stop,
}
