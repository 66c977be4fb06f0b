//! Whether the streams still hold everything that the bus has acknowledged. They are looked at when the bus comes, and
//! whenever it comes back; nothing is published before.

use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::State;

use super::halt::{self, Halt};
use super::known::{Known, StoreKnowledge, Streams};
use crate::clock::Now;
use crate::journal::Tip;
use crate::journal::codec::Message;

/// Looks at the streams that are further apart than this say nothing of the time between them.
const LOOKED_WITHIN: Duration = Duration::from_secs(10);
/// How long to wait before the streams are inspected again, after they did not answer.
const INSPECT_RETRY: Duration = Duration::from_millis(500);
/// How long an inspection may take before it counts as forgotten. A bus under load takes seconds for each look.
const INSPECT_WITHIN: Duration = Duration::from_secs(20);

/// The connection to the bus, and what is known of the streams behind it.
#[derive(Debug)]
pub(super) struct Inspection {
    store: Option<StoreKnowledge>,
    /// How long a loss must be found again and again before it is believed.
    certain_after: Duration,
    connected: bool,
    due: Due,
    /// How often inspections were begun, or made worthless.
    number: u64,
    /// When journal and control stream were created, once they have been seen.
    created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    /// Why they could not be looked at, when that was tried last.
    unseen: Option<String>,
    /// Since when something that had been acknowledged has not been found.
    missing: Option<Missing>,
}

/// Whether the streams have been looked at since the bus came, or came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// They are to be, from this time on.
    From(Duration),
    /// They have lost nothing.
    Done,
}

/// Something that had been acknowledged was not there, at every look from the first to the last of these times.
#[derive(Debug, Clone, Copy)]
struct Missing {
    since: Duration,
    last: Duration,
}

/// What an inspection has shown.
#[derive(Debug)]
pub(super) enum Finding {
    /// Nothing that counts: it is to be tried again.
    Nothing,
    /// Everything is there. The journal can be followed from this sequence on.
    Intact { follow_from: u64 },
    /// Something is certainly lost.
    Lost(Halt),
}

impl Inspection {
    pub(super) fn new(store: Option<StoreKnowledge>, certain_after: Duration) -> Self {
        let created = |store: &StoreKnowledge| (Some(store.journal_created), Some(store.control_created));
        Self {
            created: store.as_ref().map(created).unwrap_or_default(),
            store,
            certain_after,
            connected: true,
            due: Due::From(Duration::ZERO),
            number: 0,
            unseen: None,
            missing: None,
        }
    }

    /// Whether the bus is there.
    pub(super) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether something may be published: the bus is there, and has lost nothing since it was away.
    pub(super) fn may_publish(&self) -> bool {
        self.connected && self.due == Due::Done
    }

    /// Why nothing may be published, if so.
    pub(super) fn why_not(&self) -> Option<String> {
        if !self.connected {
            return Some("the bus is away".to_owned());
        }
        let not_yet = || "the streams have not been looked at yet".to_owned();
        (self.due != Due::Done).then(|| self.unseen.clone().unwrap_or_else(not_yet))
    }

    /// The connection came or went.
    pub(super) fn connection(&mut self, connected: bool) {
        // Also when it has not been seen to go: two changes may have been told as one.
        if connected {
            self.again();
        }
        self.connected = connected;
    }

    /// The streams are to be looked at once more.
    pub(super) fn again(&mut self) {
        self.due = Due::From(Duration::ZERO);
        self.number += 1;
    }

    /// What to look for now, where the journal has been read up to `tip` and is `state`: when that is due, and nobody is
    /// about to.
    pub(super) fn begin(&mut self, now: Now, tip: &Tip, state: &State) -> Option<Known> {
        let Due::From(from) = self.due else { return None };
        if !self.connected || now.monotonic < from {
            return None;
        }
        self.due = Due::From(now.monotonic + INSPECT_WITHIN);
        self.number += 1;
        let (journal_created, control_created) = self.created;
        let of_store = self.store.as_ref().map(Known::of_store).unwrap_or_default();
        let known = of_store.with(tip, state);
        Some(Known { inspection: self.number, journal_created, control_created, ..known })
    }

    /// The streams as they are now: is everything there that had been acknowledged when they were asked about?
    pub(super) fn inspected(&mut self, now: Now, known: &Known, streams: Result<Streams, String>) -> Finding {
        if known.inspection != self.number {
            return Finding::Nothing;
        }
        let streams = match streams {
            Ok(streams) => streams,
            Err(why) => {
                self.missing = None;
                return self.retry(now, why);
            }
        };
        if let Err(halt) = halt::check(known, &streams) {
            return self.found_missing(now, halt);
        }
        self.due = Due::Done;
        self.unseen = None;
        self.missing = None;
        let (Some(journal), Some(control)) = (streams.journal, streams.control) else {
            // Nothing is known to have stood in one that is not there. Whoever starts makes them.
            return self.retry(now, "the streams are not there".to_owned());
        };
        self.created = (Some(journal.created), Some(control.created));
        Finding::Intact { follow_from: streams.follow_from }
    }

    /// Whether the message of the journal at `sequence` is the one that the store knows there.
    pub(super) fn check(&self, sequence: u64, message: &Message) -> Result<(), Halt> {
        halt::check_against_store(self.store.as_ref(), sequence, message)
    }

    /// Something that had been acknowledged is not there. Nothing is published until it is, or until it is certain
    /// that it never will be.
    fn found_missing(&mut self, now: Now, halt: Halt) -> Finding {
        // A process that stood still has not looked meanwhile.
        let earlier = self.missing.filter(|missing| now.monotonic <= missing.last + LOOKED_WITHIN);
        let since = earlier.map_or(now.monotonic, |missing| missing.since);
        self.missing = Some(Missing { since, last: now.monotonic });
        if since + self.certain_after <= now.monotonic {
            self.due = Due::Done;
            return Finding::Lost(halt);
        }
        self.retry(now, format!("{halt}; looking again, as the server that says so may have been cut off"))
    }

    fn retry(&mut self, now: Now, why: String) -> Finding {
        self.unseen = Some(why);
        self.due = Due::From(now.monotonic + INSPECT_RETRY);
        Finding::Nothing
    }
}
