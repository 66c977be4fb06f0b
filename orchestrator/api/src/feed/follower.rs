//! A subscriber's stream of events: where it begins, and what it gets next.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures::Stream;
use os_upgrade_api_types::routes::events::{EventId, FollowParameters, SiteEvent};
use os_upgrade_kernel::FactCursor;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_site::published_state::Readiness;
use os_upgrade_store::{End, Following, Portion, Resumption, StoreError};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::Feed;
use super::batch::{self, Batch, Selection};
use super::buffer::Next;
use crate::http::error::Problem;
use crate::http::listener::Seat;

/// Time between two blocks at most, so that a client and what is in between see that the connection is alive.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// How much is read at once for one subscriber. Their events are held until they are sent, as text and to choose from: about 40 KiB.
const FACTS_EACH: Portion = Portion { facts: 50, bytes: 12 * 1024 };
/// How long to wait for the record of an id, which another instance may have had earlier.
const RECORD_WAIT: Duration = Duration::from_secs(2);
/// After what time a client connects again, in milliseconds: its own default may be none.
const RETRY_HINT: &str = "retry: 1000\n";
/// A comment, which clients ignore.
const COMMENT: &str = ": \n\n";

/// A subscriber. Its seat is free again once this is dropped.
#[derive(Debug)]
pub(crate) struct Follower {
    feed: Feed,
    wanted: FollowParameters,
    epoch: i64,
    /// The last fact that was looked at.
    last: FactCursor,
    /// The last fact that the client knows to resume from.
    told: FactCursor,
    /// The number of the next batch in the buffer; `None` while the history is read.
    next: Option<u64>,
    /// The batch that is being sent, and the number of the next block of it.
    current: Option<(Arc<Batch>, usize)>,
    /// What is sent first.
    first: Option<Bytes>,
    /// Whether it has had everything once.
    is_up_to_date: bool,
    ended: watch::Receiver<bool>,
    heartbeat_at: Instant,
    seat: Seat,
}

/// Where a stream begins.
struct Start {
    epoch: i64,
    after: FactCursor,
    first: Bytes,
}

impl Feed {
    /// A stream of the events that are `wanted`, after the event `after`, or from now on.
    ///
    /// # Errors
    /// 503 before anything has happened, and when `after` is of a record that this instance does not have yet.
    pub(crate) async fn follow(
        &self,
        wanted: FollowParameters,
        after: Option<EventId>,
        seat: Seat,
    ) -> Result<Follower, Problem> {
        let Start { epoch, after, first } = self.start(after).await?;
        self.0.followers.send_modify(|count| *count += 1);
        Ok(Follower {
            feed: self.clone(),
            wanted,
            epoch,
            last: after,
            told: after,
            next: None,
            current: None,
            first: Some(first),
            is_up_to_date: false,
            ended: self.0.ended.subscribe(),
            heartbeat_at: Instant::now() + HEARTBEAT_INTERVAL,
            seat,
        })
    }

    async fn start(&self, after: Option<EventId>) -> Result<Start, Problem> {
        let Some(End { journal_created_at, last }) = self.0.history.end().await? else {
            return Err(Problem::unavailable("nothing is recorded yet"));
        };
        let epoch = EventId::epoch_of(journal_created_at);
        let begins_after = |fact| {
            let position = batch::position(EventId { epoch, fact });
            Start { epoch, after: fact, first: [RETRY_HINT.as_bytes(), &position].concat().into() }
        };
        match after {
            None => Ok(begins_after(last)),
            Some(id) if id.epoch == epoch && self.has_all_after(id.fact).await? => Ok(begins_after(id.fact)),
            Some(_) => {
                let earliest = self.0.history.earliest().await?;
                let id = earliest.map(|fact| EventId { epoch, fact });
                let reset = batch::single(SiteEvent::Reset { earliest: id });
                let first = [RETRY_HINT.as_bytes(), &reset].concat().into();
                Ok(Start { epoch, after: earliest.map_or(last, FactCursor::before), first })
            }
        }
    }

    /// Whether everything after `fact` is in the history.
    ///
    /// # Errors
    /// 503 if its record is not there yet.
    async fn has_all_after(&self, fact: FactCursor) -> Result<bool, Problem> {
        let history = &self.0.history;
        if history.resumption(fact).await? == Resumption::Ahead {
            // Running out of time shows in what follows.
            let _ = timeout(RECORD_WAIT, history.advanced(fact.sequence.saturating_sub(1))).await;
        }
        match history.resumption(fact).await? {
            Resumption::Possible => Ok(true),
            Resumption::Incomplete => Ok(false),
            Resumption::Ahead => {
                let published = self.0.site.published();
                let is_behind =
                    published.readiness != Readiness::Ready || published.position >= fact.sequence;
                if is_behind { Err(Problem::unavailable("the history is behind")) } else { Ok(false) }
            }
        }
    }
}

impl Follower {
    /// The stream: pieces of one or more blocks. It ends when the feed ends, and when the client is too slow.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        futures::stream::unfold(self, async |mut follower| {
            let piece = follower.next().await?;
            follower.heartbeat_at = Instant::now() + HEARTBEAT_INTERVAL;
            Some((Ok(piece), follower))
        })
    }

    /// The next piece; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        loop {
            // What changes after this is noticed below.
            if *self.ended.borrow_and_update() {
                return None;
            }
            let found = match (self.current.take(), self.next) {
                (Some((batch, from)), _) => self.select(batch, from),
                (None, Some(number)) => self.next_of_buffer(number)?,
                (None, None) => match self.next_of_history().await {
                    Ok(found) => found,
                    Err(error) => {
                        tracing::warn!(error = with_causes(&error), "a stream of events ends");
                        return None;
                    }
                },
            };
            match found {
                Found::Piece(piece) => return Some(piece),
                Found::NotWanted if Instant::now() < self.heartbeat_at => continue,
                Found::NotWanted => return Some(self.heartbeat()),
                // Once it has everything, the client may want to know.
                Found::Nothing if !self.is_up_to_date => {
                    self.is_up_to_date = true;
                    if self.told != self.last {
                        return Some(self.heartbeat());
                    }
                }
                Found::Nothing => {}
            }
            match timeout_at(self.heartbeat_at, self.ended.changed()).await {
                Ok(changed) => changed.ok()?,
                Err(_) => return Some(self.heartbeat()),
            }
        }
    }

    /// What batch `number` has; `None` if it is lost.
    fn next_of_buffer(&mut self, number: u64) -> Option<Found> {
        let next = self.feed.buffer().get(number);
        match next {
            Next::Batch(batch) => {
                self.next = Some(number + 1);
                Some(self.select(batch, 0))
            }
            Next::Nothing => Some(Found::Nothing),
            Next::Lost => {
                self.seat.cut_off().count();
                None
            }
        }
    }

    /// What the history has next, or the place in the buffer.
    async fn next_of_history(&mut self) -> Result<Found, StoreError> {
        self.next = self.feed.buffer().join(self.last);
        if self.next.is_some() {
            return Ok(Found::NotWanted);
        }
        Ok(match self.feed.0.history.following(self.last, FACTS_EACH).await? {
            Following::Facts(facts) => {
                let Some(last) = facts.last() else { return Ok(Found::Nothing) };
                let batch = Arc::new(Batch::of_facts(self.epoch, &facts, last.cursor())?);
                match self.select(batch, 0) {
                    // The client need not begin here again.
                    Found::NotWanted | Found::Nothing => Found::Piece(self.heartbeat()),
                    Found::Piece(piece) => Found::Piece(piece),
                }
            }
            Following::Gap { next } => {
                let (reset, before) = self.feed.after_gap(self.epoch, next).await?;
                self.last = before;
                Found::Piece(batch::single(reset))
            }
        })
    }

    /// What is wanted of `batch`, from its block number `from` on.
    fn select(&mut self, batch: Arc<Batch>, from: usize) -> Found {
        let Selection { bytes, count, last, rest } = batch.select(&self.wanted, self.last, from);
        match rest {
            Some(rest) => self.current = Some((batch, rest)),
            None => self.last = self.last.max(batch.end()),
        }
        self.told = last.unwrap_or(self.told);
        self.feed.0.counts.sent.inc_by(count);
        if bytes.is_empty() { Found::NotWanted } else { Found::Piece(bytes) }
    }

    /// A block that moves the position from which the client resumes, or a comment.
    fn heartbeat(&mut self) -> Bytes {
        if self.told == self.last {
            return Bytes::from_static(COMMENT.as_bytes());
        }
        self.told = self.last;
        self.position()
    }

    fn position(&self) -> Bytes {
        batch::position(EventId { epoch: self.epoch, fact: self.last })
    }
}

/// What there is for a subscriber.
enum Found {
    /// Some blocks.
    Piece(Bytes),
    /// Nothing that it wants; there may be more.
    NotWanted,
    /// Nothing yet.
    Nothing,
}

impl Drop for Follower {
    fn drop(&mut self) {
        if self.next.is_some_and(|number| matches!(self.feed.buffer().get(number), Next::Lost)) {
            self.seat.cut_off().count();
        }
        self.feed.0.followers.send_modify(|count| *count -= 1);
    }
}
