//! What is known to have been acknowledged by the bus, and what the bus shows of it.

use std::fmt;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{Run, State};
use os_upgrade_protocol::subject;

use crate::journal::{AppendId, Tip};

/// What the store had reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreKnowledge {
    /// The last journal sequence projected.
    pub sequence: u64,
    /// Its append id.
    pub append_id: AppendId,
    /// How far the control stream had been taken into account by then.
    pub control: u64,
    /// When the journal had been created.
    pub journal_created: DateTime<Utc>,
    /// When the control stream had been created.
    pub control_created: DateTime<Utc>,
}

/// One of the two streams that must not lose anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The journal.
    Journal,
    /// The control stream.
    Control,
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Journal => "the journal",
            Self::Control => "the control stream",
        })
    }
}

/// Everything that the bus has acknowledged, as far as this instance can tell: from its store, and from what it has
/// read and appended since.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// Which inspection it is for. An answer to an earlier one counts for nothing.
    pub inspection: u64,
    /// The journal's last known message.
    pub journal: Tip,
    /// When the journal was created.
    pub journal_created: Option<DateTime<Utc>>,
    /// Up to where the control stream has been read.
    pub control: u64,
    /// When the control stream was created.
    pub control_created: Option<DateTime<Utc>>,
    /// A message that must stand in the control stream.
    pub mark: Option<ControlMark>,
    /// How far the store is.
    pub stored: Option<u64>,
}

/// A message of our own in the control stream. A stream that lost its end and has grown since holds another there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlMark {
    /// Its sequence.
    pub sequence: u64,
    /// Its subject.
    pub subject: String,
}

impl Known {
    /// What `store` alone knows.
    pub fn of_store(store: &StoreKnowledge) -> Self {
        Self {
            inspection: 0,
            journal: Tip { sequence: store.sequence, append_id: Some(store.append_id.clone()) },
            journal_created: Some(store.journal_created),
            control: store.control,
            control_created: Some(store.control_created),
            mark: None,
            stored: Some(store.sequence),
        }
    }

    /// The same, with what following the journal has brought.
    #[must_use]
    pub fn with(mut self, tip: &Tip, state: &State) -> Self {
        if tip.sequence > self.journal.sequence {
            self.journal = tip.clone();
        }
        self.control = self.control.max(state.control);
        self.mark = mark(state).or(self.mark);
        self
    }
}

/// The last message of our own that `state` knows to stand in the control stream: none of these is ever deleted, as
/// commands are before their run has ended.
fn mark(state: &State) -> Option<ControlMark> {
    let fence = state.fence.as_ref();
    let fence =
        fence.map(|fence| ControlMark { sequence: fence.sequence, subject: subject::LEADER.to_owned() });
    let hosts = state.run.as_ref().into_iter().flat_map(Run::hosts);
    let last = hosts.filter_map(|(name, host)| Some((host.command?.sequence?, name))).max();
    let command = last.map(|(sequence, host)| ControlMark { sequence, subject: subject::command(host) });
    fence.into_iter().chain(command).max_by_key(|mark| mark.sequence)
}

/// A stream as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamFacts {
    /// When it was created.
    pub created: DateTime<Utc>,
    /// The sequence of its first message; beyond the last if there is none.
    pub first_sequence: u64,
    /// The sequence of its last message, 0 if it never had one.
    pub last_sequence: u64,
}

/// Journal and control stream as they are; one that is not there is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streams {
    /// The journal.
    pub journal: Option<StreamFacts>,
    /// The control stream.
    pub control: Option<StreamFacts>,
    /// The append id of the journal's message at the known sequence; when that one has been trimmed, as the message
    /// after it has it. `None` when neither stands there.
    pub at_known: Option<AppendId>,
    /// The subject of the message at the mark, if one stands there.
    pub at_mark: Option<String>,
    /// Where to begin to follow the journal: its beginning, or a complete snapshot that the store has reached.
    pub follow_from: u64,
}
