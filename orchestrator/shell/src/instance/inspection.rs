//! Inspection: do the streams still contain everything that the bus has acknowledged? It is required at the start, after
//! every reconnect and before each leadership, and nothing is published before it. Later it is repeated, because streams
//! can be deleted or purged on a live connection too.

use std::time::Duration;

use super::halt::{self, Halt};
use super::known::{Acknowledged, StoreKnowledge, StreamSettings, Streams};
use crate::clock::Now;
use crate::journal::codec::Message;
use crate::journal::follow::Follower;
use chrono::{DateTime, Utc};

/// How often the streams are inspected although nothing requires it.
const INSPECT_INTERVAL: Duration = Duration::from_secs(10);
/// A loss counts as lasting only while two inspections that find it are no further apart than this.
const INSPECTION_GAP_MAX: Duration = Duration::from_secs(25);
/// How long to wait before the next inspection after one that failed.
const INSPECT_RETRY: Duration = Duration::from_millis(500);
/// How many inspections in a row may come to nothing before that is reported. It takes 70 s if they fail at once, and
/// 140 s if they are not answered.
const FRUITLESS_MAX: u32 = 6;
/// How long an inspection may take before another is begun. A bus under load takes seconds for each read.
const INSPECT_WITHIN: Duration = Duration::from_secs(20);

/// The connection to the bus, and what is known of the streams behind it.
#[derive(Debug)]
pub(super) struct Inspection {
    store: Option<StoreKnowledge>,
    /// How long every inspection must find a loss before it is believed.
    certain_after: Duration,
    connected: bool,
    due: Due,
    /// The number of the current inspection. It grows when one is begun, and when the current one becomes outdated.
    number: u64,
    /// When the journal and the control stream were created; `None` until they have been seen.
    created: (Option<DateTime<Utc>>, Option<DateTime<Utc>>),
    /// The sequences at which they began when messages were last seen in them.
    first: (Option<u64>, Option<u64>),
    /// When the last inspection was begun.
    begun_at: Option<Duration>,
    /// When the last one was begun that found everything.
    intact_at: Option<Duration>,
    /// Why the last inspection failed.
    failure: Option<String>,
    /// How many inspections in a row have come to nothing, of those within [`INSPECT_INTERVAL`] only the first, and why the
    /// last that was answered did.
    fruitless: (u32, Option<String>),
    /// When the last of these was begun.
    counted_at: Option<Duration>,
    /// The setting of a stream that somebody has changed, when that was last inspected.
    changed: Option<String>,
    /// Set while acknowledged messages are missing.
    missing: Option<Missing>,
}

/// When the next inspection is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// From this time on. Nothing is published before it.
    Required(Duration),
    /// From this time on. The streams have been inspected since that was required last.
    Routine(Duration),
}

/// Every inspection between these times found acknowledged messages missing.
#[derive(Debug, Clone, Copy)]
struct Missing {
    since: Duration,
    last: Duration,
}

/// What an operator has to mend about the streams while everything goes on.
#[derive(Debug)]
pub(super) struct Concerns {
    overdue: Option<String>,
    changed: Option<String>,
}

impl Concerns {
    /// Whether something else is of concern than `before`. Why inspections are overdue is the same concern, whatever the reason.
    pub(super) fn differ(&self, before: &Self) -> bool {
        self.overdue.is_some() != before.overdue.is_some() || self.changed != before.changed
    }

    /// The more urgent one; `None` if there is none.
    pub(super) fn first(self) -> Option<String> {
        self.overdue.or(self.changed)
    }
}

/// The result of an inspection.
#[derive(Debug)]
pub(super) enum Finding {
    /// Inconclusive; another inspection follows.
    Nothing,
    /// Nothing is missing. The journal can be followed from this sequence on.
    Intact { follow_from: u64 },
    /// Messages are certainly lost.
    Lost(Halt),
}

impl Inspection {
    pub(super) fn new(store: Option<StoreKnowledge>, certain_after: Duration) -> Self {
        let created = |store: &StoreKnowledge| (Some(store.journal_created), Some(store.control_created));
        Self {
            created: store.as_ref().map(created).unwrap_or_default(),
            first: (None, None),
            store,
            certain_after,
            connected: true,
            due: Due::Required(Duration::ZERO),
            number: 0,
            begun_at: None,
            intact_at: None,
            failure: None,
            fruitless: (0, None),
            counted_at: None,
            changed: None,
            missing: None,
        }
    }

    /// Whether the bus is connected.
    pub(super) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether anything may be published: the bus is connected, and an inspection since one was required last found
    /// nothing missing.
    pub(super) fn may_publish(&self) -> bool {
        self.connected && !self.is_required()
    }

    /// The sequence of the journal's first message when it was last inspected; `None` if it had none.
    pub(super) fn journal_from(&self) -> Option<u64> {
        self.first.0
    }

    /// When the last inspection was begun that found everything, on the monotonic clock.
    pub(super) fn intact_at(&self) -> Option<Duration> {
        self.intact_at
    }

    /// Begins one at the next tick, unless one was begun at `since` or later.
    pub(super) fn expect_since(&mut self, since: Duration, now: Now) {
        if !self.is_required() && self.begun_at < Some(since) {
            self.due = Due::Routine(now.monotonic);
        }
    }

    /// Why nothing may be published; `None` if it may.
    pub(super) fn reason_not_ready(&self) -> Option<String> {
        if !self.connected {
            return Some("NATS is unreachable".to_owned());
        }
        let not_yet = || "the streams have not been inspected yet".to_owned();
        let required = self.is_required().then(|| self.failure.clone().unwrap_or_else(not_yet));
        required.or_else(|| self.overdue())
    }

    /// The setting of a stream that somebody has changed; `None` if all are as they must be.
    pub(super) fn changed(&self) -> Option<&str> {
        self.changed.as_deref()
    }

    /// What an operator has to mend about the streams while everything goes on.
    pub(super) fn concerns(&self) -> Concerns {
        Concerns { overdue: self.overdue(), changed: self.changed.clone() }
    }

    /// Why the streams have not been inspected for so long that a loss would go unnoticed; `None` if they have been.
    pub(super) fn overdue(&self) -> Option<String> {
        let (times, why) = &self.fruitless;
        let why = why.as_deref().unwrap_or("no answer");
        let text = || format!("the streams cannot be inspected, so that a loss would go unnoticed: {why}");
        (*times > FRUITLESS_MAX).then(text)
    }

    fn is_required(&self) -> bool {
        matches!(self.due, Due::Required(_))
    }

    /// The connection was made or lost.
    pub(super) fn connection(&mut self, connected: bool) {
        // Even if no disconnect was reported: two changes may be reported as one.
        if connected {
            self.fruitless = (0, None);
            self.require();
        }
        self.connected = connected;
    }

    /// Requires another inspection; the result of one under way is ignored.
    pub(super) fn require(&mut self) {
        self.due = Due::Required(Duration::ZERO);
        self.number += 1;
    }

    /// Begins an inspection if one is due: what it must find, given what `follower` has read.
    pub(super) fn begin(&mut self, now: Now, follower: &Follower) -> Option<Acknowledged> {
        let (Due::Required(from) | Due::Routine(from)) = self.due;
        if !self.connected || now.monotonic < from {
            return None;
        }
        let again = now.monotonic + INSPECT_WITHIN;
        self.due = if self.is_required() { Due::Required(again) } else { Due::Routine(again) };
        if self.counted_at.is_none_or(|at| at + INSPECT_INTERVAL <= now.monotonic) {
            self.counted_at = Some(now.monotonic);
            // Until it finds something.
            self.fruitless.0 = self.fruitless.0.saturating_add(1);
        }
        self.number += 1;
        self.begun_at = Some(now.monotonic);
        let (journal_created, control_created) = self.created;
        let of_store = self.store.as_ref().map(Acknowledged::of_store).unwrap_or_default();
        let known = of_store.with(&follower.tip, &follower.state);
        let (journal, control) = self.first;
        Some(Acknowledged {
            inspection: self.number,
            journal_created,
            control_created,
            journal_from: journal.or(follower.first),
            // Messages of hosts may precede the first fence, and are purged.
            control_from: known.control_from.or(control),
            // Only before following: a snapshot is read to answer it.
            asks_start: follower.tip.append_id.is_none(),
            ..known
        })
    }

    /// Compares the streams with what was known when the inspection began.
    pub(super) fn inspected(
        &mut self,
        now: Now,
        known: &Acknowledged,
        streams: Result<Streams, String>,
    ) -> Finding {
        if known.inspection != self.number {
            return Finding::Nothing;
        }
        let streams = match streams {
            Ok(streams) => streams,
            // What was found before still holds; a bus under load is not asked more often.
            Err(why) if !self.is_required() => {
                self.due = Due::Routine(now.monotonic + INSPECT_INTERVAL);
                self.fruitless.1 = Some(why);
                return Finding::Nothing;
            }
            Err(why) => {
                self.missing = None;
                self.fruitless.1 = Some(why.clone());
                return self.retry(now, why);
            }
        };
        self.fruitless = (0, None);
        if let Err(halt) = halt::check(known, &streams) {
            return self.found_missing(now, halt);
        }
        self.due = Due::Routine(now.monotonic + INSPECT_INTERVAL);
        self.failure = None;
        self.missing = None;
        let (Some(journal), Some(control)) = (streams.journal, streams.control) else {
            // A stream that does not exist is not known to have existed. It is created at the start.
            return self.retry(now, "the streams do not exist".to_owned());
        };
        self.intact_at = self.begun_at;
        match streams.settings {
            // What was found before still holds.
            StreamSettings::Unknown => {}
            StreamSettings::Unchanged => self.changed = None,
            StreamSettings::Changed(setting) => self.changed = Some(setting),
        }
        self.created = (Some(journal.created), Some(control.created));
        self.first = (journal.first().or(self.first.0), control.first().or(self.first.1));
        Finding::Intact { follow_from: streams.follow_from }
    }

    /// Checks a journal message against the store's position.
    pub(super) fn check(&self, sequence: u64, message: &Message) -> Result<(), Halt> {
        halt::check_against_store(self.store.as_ref(), sequence, message)
    }

    /// Acknowledged messages are missing. Nothing is published until they are found or the loss is certain.
    fn found_missing(&mut self, now: Now, halt: Halt) -> Finding {
        // A process that was paused has not inspected anything in between.
        let earlier = self.missing.filter(|missing| now.monotonic <= missing.last + INSPECTION_GAP_MAX);
        let since = earlier.map_or(now.monotonic, |missing| missing.since);
        self.missing = Some(Missing { since, last: now.monotonic });
        if since + self.certain_after <= now.monotonic {
            return Finding::Lost(halt);
        }
        self.retry(
            now,
            format!("{halt}; checking again, as the server that answers so may have been cut off"),
        )
    }

    fn retry(&mut self, now: Now, why: String) -> Finding {
        self.failure = Some(why);
        self.due = Due::Required(now.monotonic + INSPECT_RETRY);
        Finding::Nothing
    }
}
