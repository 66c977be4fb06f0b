//! The feed of events: reads what happens from the history, renders it once, and gives it to every subscriber.
//!
//! Everything comes from the history, what has happened and what happens now, so there is no seam between them: a
//! subscriber reads the history until it reaches the [`buffer`] of the newest events, and goes on from there. While nobody
//! subscribes, nothing is read.

mod batch;
mod buffer;
mod follower;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use os_upgrade_api_types::routes::events::{EventId, SiteEvent};
use os_upgrade_kernel::FactCursor;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_site::handle::SiteHandle;
use os_upgrade_site::published_state::PublishedState;
use os_upgrade_store::{End, Following, History, Portion, StoreError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use self::batch::Batch;
use self::buffer::Buffer;
use crate::http::listener::SubscriberCounts;

/// How much is read at once, for all subscribers.
const FACTS_AT_ONCE: Portion = Portion { facts: 500, bytes: 1024 * 1024 };
/// Shortest time between two deliveries. What happens meanwhile is delivered together.
const DELIVERY_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// How much longer that time is for each subscriber, so that a thousand of them do not slow the run down.
const DELIVERY_INTERVAL_EACH: Duration = Duration::from_millis(1);
/// Time between two deliveries of workers' progress, of which only the last report of each host is sent.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait before the history is read again after an error.
const RETRY: Duration = Duration::from_secs(1);

/// The feed. Clones share one state.
#[derive(Debug, Clone)]
pub(crate) struct Feed(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    site: SiteHandle,
    history: History,
    buffer: Mutex<Buffer>,
    /// Notifies subscribers of new events. The value is whether the feed has ended.
    ended: watch::Sender<bool>,
    /// The number of subscribers.
    followers: watch::Sender<usize>,
    counts: SubscriberCounts,
}

impl Feed {
    /// The feed of a site.
    pub(crate) fn new(site: SiteHandle, history: History, counts: SubscriberCounts) -> Self {
        Self(Arc::new(Shared {
            site,
            history,
            buffer: Mutex::default(),
            ended: watch::Sender::new(false),
            followers: watch::Sender::new(0),
            counts,
        }))
    }

    /// Reads events until `shutdown`. Then all streams end.
    pub(crate) async fn run(self, shutdown: CancellationToken) {
        shutdown.run_until_cancelled(self.fill()).await;
        self.0.ended.send_replace(true);
    }

    /// Reads events while there are subscribers.
    async fn fill(&self) {
        let mut followers = self.0.followers.subscribe();
        let mut nobody = followers.clone();
        while followers.wait_for(|count| *count > 0).await.is_ok() {
            tokio::select! {
                read = self.read() => {
                    if let Err(error) = read {
                        tracing::warn!(error = with_causes(&error), "events are not sent; trying again");
                    }
                    tokio::time::sleep(RETRY).await;
                }
                () = none_left(&mut nobody) => self.clear(),
            }
        }
    }

    /// Forgets the newest events, unless somebody has subscribed meanwhile.
    fn clear(&self) {
        // A new subscriber is counted before it looks into the buffer.
        let mut buffer = self.buffer();
        if *self.0.followers.borrow() == 0 {
            buffer.clear();
        }
    }

    /// Reads events, without an end. Returns if nothing has happened yet.
    async fn read(&self) -> Result<(), StoreError> {
        let Some(End { journal_created_at, last }) = self.0.history.end().await? else { return Ok(()) };
        let epoch = EventId::epoch_of(journal_created_at);
        let mut end = self.buffer().begin(last);
        self.0.ended.send_modify(|_| {});
        let mut sequence = 0;
        let mut shown = self.0.site.published();
        let mut progress = tokio::time::interval(PROGRESS_INTERVAL);
        loop {
            tokio::select! {
                advanced = self.0.history.advanced(sequence) => {
                    end = self.read_facts(epoch, end).await?;
                    sequence = advanced;
                }
                _ = progress.tick() => {
                    let published = self.0.site.published();
                    self.deliver(Batch::of_events(progress_since(&shown, &published), end));
                    shown = published;
                }
            }
            let followers = u32::try_from(*self.0.followers.borrow()).unwrap_or(u32::MAX);
            let interval = DELIVERY_INTERVAL_EACH.saturating_mul(followers).max(DELIVERY_INTERVAL_MIN);
            tokio::time::sleep(interval).await;
        }
    }

    /// Reads every fact after `end`. Returns the last one.
    async fn read_facts(&self, epoch: i64, mut end: FactCursor) -> Result<FactCursor, StoreError> {
        loop {
            let batch = match self.0.history.following(end, FACTS_AT_ONCE).await? {
                Following::Facts(facts) => {
                    let Some(last) = facts.last() else { return Ok(end) };
                    Batch::of_facts(epoch, &facts, last.cursor())?
                }
                Following::Gap { next } => {
                    let (reset, before) = self.after_gap(epoch, next).await?;
                    Batch::of_events([reset], before)
                }
            };
            end = batch.end();
            self.deliver(batch);
        }
    }

    /// What is sent at a gap in the history, which ends with record `next`, and the position after which to go on.
    async fn after_gap(&self, epoch: i64, next: u64) -> Result<(SiteEvent, FactCursor), StoreError> {
        let before = FactCursor { sequence: next, place: 0 }.before();
        let first = match self.0.history.following(before, Portion { facts: 1, bytes: usize::MAX }).await? {
            Following::Facts(facts) => facts.first().map(os_upgrade_store::FactRow::cursor),
            Following::Gap { .. } => None,
        };
        let earliest = first.map(|fact| EventId { epoch, fact });
        Ok((SiteEvent::Reset { earliest }, before))
    }

    fn deliver(&self, batch: Batch) {
        let is_empty = batch.len() == 0;
        self.buffer().push(batch);
        if !is_empty {
            self.0.ended.send_modify(|_| {});
        }
    }

    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.0.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until there is no subscriber.
async fn none_left(followers: &mut watch::Receiver<usize>) {
    // An error would mean that there is no feed.
    drop(followers.wait_for(|count| *count == 0).await);
}

/// The progress of workers that has changed from `before` to `now`, for commands that are under way.
fn progress_since(before: &PublishedState, now: &PublishedState) -> Vec<SiteEvent> {
    let Some(run) = &now.state.run else { return Vec::new() };
    let event = |name| {
        let (progress, command) = (now.progress_of(name)?, run.host(name)?.unanswered()?);
        Some(SiteEvent::Progress {
            run: run.id.to_string(),
            host: name.to_string(),
            action: command.action.into(),
            percent: progress.percent,
            text: progress.text.clone(),
        })
    };
    now.progress_changed_since(before).filter_map(event).collect()
}
