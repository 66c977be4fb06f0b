//! What the bus is known to have acknowledged, and what its streams contain.

use std::fmt;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{Run, State};
use os_upgrade_protocol::subject;

use crate::journal::{AppendId, Tip};

/// The store's position when the process started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreKnowledge {
    /// The last journal sequence projected.
    pub sequence: u64,
    pub append_id: AppendId,
    /// The position in the control stream as of that message.
    pub control: u64,
    /// The creation time of the journal.
    pub journal_created: DateTime<Utc>,
    /// The creation time of the control stream.
    pub control_created: DateTime<Utc>,
}

/// One of the two streams that must not lose messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
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

/// What the bus has acknowledged, as far as this instance knows from its store and from what it has read and appended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Acknowledged {
    /// The number of the inspection that it is for. Results of earlier inspections are ignored.
    pub inspection: u64,
    /// The journal's last known message.
    pub journal: Tip,
    /// When the journal was created; `None` if never seen.
    pub journal_created: Option<DateTime<Utc>>,
    /// The sequence up to which the control stream has been read.
    pub control: u64,
    /// When the control stream was created; `None` if never seen.
    pub control_created: Option<DateTime<Utc>>,
    /// A message that the control stream must contain.
    pub mark: Option<ControlMark>,
    /// The first message that the journal must still contain: the first that this process has seen there.
    pub journal_from: Option<u64>,
    /// The first message that the control stream must still contain: the first that this process has seen there, the last
    /// fence, or an unanswered command before that.
    pub control_from: Option<u64>,
    /// Whether it is asked from where to follow the journal.
    pub asks_start: bool,
}

/// A message of an orchestrator in the control stream. A stream that lost its end and has grown again has a different
/// message at this sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlMark {
    pub sequence: u64,
    pub subject: String,
}

impl Acknowledged {
    /// What the store alone shows.
    pub fn of_store(store: &StoreKnowledge) -> Self {
        Self {
            inspection: 0,
            journal: Tip { sequence: store.sequence, append_id: Some(store.append_id.clone()) },
            journal_created: Some(store.journal_created),
            control: store.control,
            control_created: Some(store.control_created),
            mark: None,
            journal_from: None,
            control_from: None,
            asks_start: false,
        }
    }

    /// Adds what following the journal has shown.
    #[must_use]
    pub fn with(mut self, tip: &Tip, state: &State) -> Self {
        if tip.sequence > self.journal.sequence {
            self.journal = tip.clone();
        }
        self.control = self.control.max(state.control);
        self.mark = mark(state).or(self.mark);
        self.control_from = control_from(state);
        self
    }
}

/// The last fence or command that `state` knows to be in the control stream. Fences are never deleted, and commands
/// only when they are retracted.
fn mark(state: &State) -> Option<ControlMark> {
    let fence = state.fence.as_ref();
    let fence =
        fence.map(|fence| ControlMark { sequence: fence.sequence, subject: subject::LEADER.to_owned() });
    let hosts = state.run.as_ref().into_iter().flat_map(Run::hosts);
    let last = hosts.filter_map(|(name, host)| Some((host.command?.sequence?, name))).max();
    let command = last.map(|(sequence, host)| ControlMark { sequence, subject: subject::command(host) });
    fence.into_iter().chain(command).max_by_key(|mark| mark.sequence)
}

/// The first message of the control stream that is still needed, given that fences are never deleted.
fn control_from(state: &State) -> Option<u64> {
    let fence = state.fence.as_ref().map(|fence| fence.sequence);
    let unanswered = unanswered(state);
    // Without a fence nothing is known to precede a command, which may be deleted.
    fence.and_then(|fence| unanswered.chain([fence]).min())
}

/// The sequences of the commands that are not answered yet.
pub(super) fn unanswered(state: &State) -> impl Iterator<Item = u64> {
    let hosts = state.run.as_ref().into_iter().flat_map(Run::hosts);
    hosts.filter_map(|(_, host)| host.unanswered()?.sequence)
}

/// The extent of an existing stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamFacts {
    /// When it was created.
    pub created: DateTime<Utc>,
    /// The sequence of its first message; greater than the last if the stream is empty.
    pub first_sequence: u64,
    /// The sequence of its last message, 0 if it never had one.
    pub last_sequence: u64,
}

impl StreamFacts {
    /// The sequence of its first message, if it has one.
    pub(super) fn first(self) -> Option<u64> {
        (1..=self.last_sequence).contains(&self.first_sequence).then_some(self.first_sequence)
    }
}

/// What an inspection found in the streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streams {
    /// The journal; `None` if it does not exist.
    pub journal: Option<StreamFacts>,
    /// The control stream; `None` if it does not exist.
    pub control: Option<StreamFacts>,
    /// The append id of the journal's message at the known sequence. If that message was trimmed, the id that the next
    /// message names as its predecessor's. `None` if both are missing.
    pub at_known: Option<AppendId>,
    /// The subject of the message at the mark; `None` if there is none.
    pub at_mark: Option<String>,
    /// The sequence from which to follow the journal: that at which its newest complete snapshot starts, else its first.
    pub follow_from: u64,
    /// Whether the journal begins with a complete snapshot, as it does after it was trimmed. Only looked at if it begins
    /// later than it is known to have begun.
    pub begins_with_snapshot: bool,
    /// Whether the streams have the settings on which the site relies.
    pub settings: StreamSettings,
}

/// Whether streams have the settings on which the site relies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamSettings {
    /// The bus has not answered about all of them.
    Unknown,
    /// They have.
    Unchanged,
    /// Somebody has changed one: which, and what it must be.
    Changed(String),
}
