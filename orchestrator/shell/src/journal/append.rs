//! Appending: a record is stored in the stream exactly once, or the append detects that another instance leads.
//!
//! An append whose answer is lost has not failed yet. The first message after the journal's known end is read. Our own
//! message means that it was stored; no message means that it may be published again unchanged; another message means
//! that another instance leads. If messages after the known end were deleted, the stream's last sequence lies beyond it,
//! and the journal goes on from there: the ids of predecessors show that nothing is missing.

use std::collections::VecDeque;
use std::time::Duration;

use os_upgrade_kernel::{Record, State};

use super::codec::{Kind, Message, encode};
use super::{AppendId, Tip};
use crate::clock::Now;
use crate::storage::StorageLimit;

/// How long to wait before the stream is read again after it did not answer, and between two publishes of a message
/// that is refused and yet absent: a server that is cut off from its cluster behaves so until the lease is lost.
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// The outcome of publishing a journal message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendOutcome {
    /// It is stored, at this sequence.
    Stored { sequence: u64 },
    /// Refused or unanswered: the stream must be read to learn whether it is stored.
    Unknown,
    /// Refused, because a limit is reached. An earlier publish of the message may be stored.
    Full(StorageLimit),
}

/// The first message of the journal from one sequence on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadBack {
    /// There is a message.
    Found {
        sequence: u64,
        /// Its append id, if it has one.
        append_id: Option<AppendId>,
    },
    /// There is no message.
    Absent {
        /// The stream's last sequence.
        last: u64,
    },
    /// The stream did not answer.
    Failed,
}

/// What to do next for the append under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Publish this message on condition that this sequence is the stream's last.
    Publish {
        /// The last sequence that the stream must have.
        expected: u64,
        message: Message,
    },
    /// Read the first message from this sequence on.
    ReadBack { sequence: u64 },
    /// All messages are stored.
    Done {
        /// The sequence of the first of them.
        first: u64,
        /// The new end of the journal.
        tip: Tip,
    },
    /// Another instance has appended, or the append cannot be completed.
    Deposed,
}

/// The append under way: at most one.
#[derive(Debug)]
pub struct Appender {
    nonce: String,
    appends: u64,
    under_way: Option<UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    messages: VecDeque<Message>,
    tip: Tip,
    /// The last sequence that the stream must have: the tip's, or that of a deleted message after it.
    last: u64,
    phase: AppendPhase,
    since: Duration,
    /// The earliest time to publish a message again.
    again_from: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AppendPhase {
    Publishing,
    ReadingBack,
    /// The stream is read again at this time.
    Pausing {
        until: Duration,
    },
}

impl Appender {
    /// An appender whose ids start with `nonce`, which must be unique to this process.
    pub fn new(nonce: &str) -> Self {
        Self { nonce: nonce.to_owned(), appends: 0, under_way: None }
    }

    /// Whether an append is under way.
    pub fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    /// How long the append has been under way; zero if there is none.
    pub fn busy_for(&self, now: Now) -> Duration {
        self.under_way.as_ref().map_or(Duration::ZERO, |append| now.monotonic.saturating_sub(append.since))
    }

    /// Begins to append `record` after `tip`.
    pub fn record(&mut self, record: &Record, tip: &Tip, now: Now) -> Step {
        self.begin(Kind::Record, record, tip, now)
    }

    /// Begins to append a snapshot of `state` after `tip`; the one before it starts at `previous`.
    pub fn snapshot(&mut self, state: &State, previous: u64, tip: &Tip, now: Now) -> Step {
        self.begin(Kind::Snapshot { previous }, state, tip, now)
    }

    /// Abandons the append under way: the writer no longer leads. The journal will show whether it was stored.
    pub fn abandon(&mut self) {
        self.under_way = None;
    }

    fn begin<T: serde::Serialize>(&mut self, kind: Kind, content: &T, tip: &Tip, now: Now) -> Step {
        assert!(self.under_way.is_none(), "one append at a time");
        let (nonce, appends) = (&self.nonce, &mut self.appends);
        let messages = encode(kind, content, tip, || {
            *appends += 1;
            AppendId::new(&format!("{nonce}-{appends}"))
        });
        let append = UnderWay {
            messages: messages.into(),
            tip: tip.clone(),
            last: tip.sequence,
            phase: AppendPhase::Publishing,
            since: now.monotonic,
            again_from: now.monotonic,
        };
        let step = append.publish();
        self.under_way = Some(append);
        step
    }

    /// A publish was answered. An answer to any but the current publish is ignored.
    pub fn published(&mut self, append_id: &AppendId, outcome: &AppendOutcome) -> Option<Step> {
        let append = self.expecting(append_id, AppendPhase::Publishing)?;
        match outcome {
            AppendOutcome::Stored { sequence } if *sequence == append.last + 1 => {
                Some(self.stored(*sequence))
            }
            // Storing at another sequence should be impossible, since the server checks the expected one.
            AppendOutcome::Stored { .. } | AppendOutcome::Unknown | AppendOutcome::Full(_) => {
                Some(append.read_back())
            }
        }
    }

    /// A read was answered.
    pub fn read_back(&mut self, sequence: u64, found: &ReadBack, now: Now) -> Option<Step> {
        let append = self.under_way.as_mut()?;
        if append.phase != AppendPhase::ReadingBack || append.tip.sequence + 1 != sequence {
            return None;
        }
        let own = append.messages.front().map(|message| &message.append_id);
        match found {
            ReadBack::Found { sequence, append_id } if append_id.as_ref() == own => {
                Some(self.stored(*sequence))
            }
            ReadBack::Found { .. } => {
                self.under_way = None;
                Some(Step::Deposed)
            }
            // The parts of a set are at consecutive sequences.
            ReadBack::Absent { last } if *last > append.last && append.is_split() => {
                self.under_way = None;
                Some(Step::Deposed)
            }
            ReadBack::Absent { .. } if now.monotonic < append.again_from => {
                append.phase = AppendPhase::Pausing { until: append.again_from };
                None
            }
            ReadBack::Absent { last } => {
                append.last = append.last.max(*last);
                append.phase = AppendPhase::Publishing;
                append.again_from = now.monotonic + RETRY_AFTER;
                Some(append.publish())
            }
            ReadBack::Failed => {
                append.phase = AppendPhase::Pausing { until: now.monotonic + RETRY_AFTER };
                None
            }
        }
    }

    /// Reads the stream again when the pause is over.
    pub fn tick(&mut self, now: Now) -> Option<Step> {
        let append = self.under_way.as_mut()?;
        match append.phase {
            AppendPhase::Pausing { until } if until <= now.monotonic => Some(append.read_back()),
            AppendPhase::Pausing { .. } | AppendPhase::Publishing | AppendPhase::ReadingBack => None,
        }
    }

    fn expecting(&mut self, append_id: &AppendId, phase: AppendPhase) -> Option<&mut UnderWay> {
        self.under_way.as_mut().filter(|append| {
            append.phase == phase
                && append.messages.front().is_some_and(|message| message.append_id == *append_id)
        })
    }

    /// The first message is stored at `sequence`: publishes the next one, or ends the append.
    fn stored(&mut self, sequence: u64) -> Step {
        let append = self.under_way.as_mut().expect("only called with an append under way");
        let stored = append.messages.pop_front().expect("an append under way has a message");
        append.tip = Tip { sequence, append_id: Some(stored.append_id.clone()) };
        append.last = sequence;
        if append.messages.is_empty() {
            let (tip, parts) = (append.tip.clone(), u64::from(stored.parts));
            self.under_way = None;
            return Step::Done { first: sequence + 1 - parts, tip };
        }
        append.phase = AppendPhase::Publishing;
        append.publish()
    }
}

impl UnderWay {
    fn publish(&self) -> Step {
        let message = self.messages.front().expect("an append under way has a message").clone();
        Step::Publish { expected: self.last, message }
    }

    /// Whether a part of the payload is stored, and another is not.
    fn is_split(&self) -> bool {
        self.messages.front().is_some_and(|next| next.part > 1)
    }

    fn read_back(&mut self) -> Step {
        self.phase = AppendPhase::ReadingBack;
        Step::ReadBack { sequence: self.tip.sequence + 1 }
    }
}
