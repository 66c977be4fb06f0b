//! Writes to the store, again and again while it cannot be written, and says what is wrong with it.

use std::error::Error;
use std::time::Duration;

use chrono::{DateTime, Utc};
use os_upgrade_protocol::error::with_causes;
use os_upgrade_shell::journal::codec::Message;
use os_upgrade_shell::journal::{AppendId, Committed};
use os_upgrade_store::{ApplyError, Position, Projector, StoreError, Streams};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long to wait before the store, or the bus, is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// What is wrong with a store whose file is not there any more.
const GONE: &str =
    "the store was deleted or replaced while it was in use: restart, so that it is rebuilt from the journal";

/// The store gets no more records: what is wrong with it would only repeat, or the process ends.
#[derive(Debug)]
pub(super) struct Over;

#[derive(Debug)]
pub(super) struct StoreWriter {
    projector: Projector,
    streams: Streams,
    /// The last record applied.
    last: Option<(u64, AppendId)>,
    /// The time of the last record that this process has applied.
    last_at: Option<DateTime<Utc>>,
    /// The store has everything up to here, except for what cannot be had any more.
    covered: u64,
    /// Whether records before the next one cannot be had any more.
    has_gap: bool,
    /// Whether the state with which folding begins is to be moved.
    base_is_due: bool,
    /// Whether it was moved since that was last asked.
    base_moved: bool,
    /// When the write-ahead log may be emptied again, after that has failed.
    shorten_from: Option<Instant>,
    problem: watch::Sender<Option<String>>,
    synced: watch::Sender<u64>,
}

impl StoreWriter {
    pub(super) fn new(
        projector: Projector,
        streams: Streams,
        position: Option<&Position>,
        problem: watch::Sender<Option<String>>,
        synced: watch::Sender<u64>,
    ) -> Self {
        let last = position.map(|position| (position.sequence, position.append_id.clone()));
        let covered = last.as_ref().map_or(0, |(sequence, _)| *sequence);
        Self {
            projector,
            streams,
            last,
            last_at: None,
            covered,
            has_gap: false,
            base_is_due: false,
            base_moved: false,
            shorten_from: None,
            problem,
            synced,
        }
    }

    /// The store has everything up to this sequence, except for what cannot be had any more.
    pub(super) fn covered(&self) -> u64 {
        self.covered
    }

    /// The time of the last record that this process has applied.
    pub(super) fn last_at(&self) -> Option<DateTime<Utc>> {
        self.last_at
    }

    /// Everything up to `sequence` was read, whether there were records or not.
    pub(super) fn cover(&mut self, sequence: u64) {
        self.covered = self.covered.max(sequence);
    }

    /// Whether the store is being filled: nobody should wait for it.
    pub(super) fn is_behind(&self, behind: bool) {
        self.projector.set_behind(behind);
    }

    /// The journal is read from `message` at `sequence` on. If that is a snapshot which does not follow what the store has,
    /// the journal has been trimmed, and what was between them cannot be had any more.
    pub(super) fn begins_at(&mut self, sequence: u64, message: &Message) {
        let follows =
            |(last, id): &(u64, AppendId)| sequence <= last + 1 || message.previous.as_ref() == Some(id);
        self.has_gap |= message.begins_snapshot() && self.last.as_ref().is_some_and(|last| !follows(last));
    }

    /// Applies `batch`, whose records follow each other. While the store cannot be written, it is tried again; other errors
    /// would only repeat. Nothing is lost either way, since the journal has the records.
    pub(super) async fn apply(&mut self, batch: &[Committed], stop: &CancellationToken) -> Result<(), Over> {
        let Some(last) = batch.last() else { return Ok(()) };
        let follows = self.last.as_ref().map(|(sequence, _)| *sequence);
        loop {
            let applied = if self.has_gap {
                self.projector.apply_after_gap(&self.streams, batch).await
            } else {
                self.projector.apply(&self.streams, follows, batch).await
            };
            let Err(error) = applied else { break };
            self.failed(&error)?;
            if stop.run_until_cancelled(tokio::time::sleep(RETRY)).await.is_none() {
                return Err(Over);
            }
            if let Err(error) = self.projector.reopen().await {
                self.report(format!("the store cannot be written: {}", with_causes(&error)));
            }
        }
        self.has_gap = false;
        if self.base_is_due {
            // A state that is later than the facts to be pruned.
            match self.projector.advance_base(&batch[0]).await {
                Ok(()) => (self.base_is_due, self.base_moved) = (false, true),
                Err(error) => tracing::warn!(error = with_causes(&error), "the history is not pruned"),
            }
        }
        self.last = Some((last.sequence, last.append_id.clone()));
        self.last_at = Some(last.record.at);
        self.cover(last.sequence);
        self.shorten_log().await;
        if self.projector.is_in_place() {
            self.problem.send_if_modified(|problem| problem.take().is_some());
        } else {
            self.report(GONE.to_owned());
        }
        Ok(())
    }

    /// Keeps the write-ahead log small.
    async fn shorten_log(&mut self) {
        if self.shorten_from.is_some_and(|from| Instant::now() < from) {
            return;
        }
        self.shorten_from = None;
        if let Err(error) = self.projector.shorten_log().await {
            self.shorten_from = Some(Instant::now() + RETRY);
            tracing::debug!(%error, "the write-ahead log of the store is not emptied");
        }
    }

    fn failed(&self, error: &ApplyError) -> Result<(), Over> {
        match error {
            ApplyError::Store(
                StoreError::Sqlite(_)
                | StoreError::DiskFull(_)
                | StoreError::Busy
                | StoreError::CannotOpen(_),
            ) => {
                self.report(format!("the store cannot be written: {}", with_causes(error)));
                Ok(())
            }
            ApplyError::Store(_)
            | ApplyError::OtherStreams { .. }
            | ApplyError::Gap { .. }
            | ApplyError::Fact { .. } => Err(self.fail(error)),
        }
    }

    /// The history cannot go on, because of `error`.
    pub(super) fn fail(&self, error: &dyn Error) -> Over {
        self.report(format!("the history has stopped: {}", with_causes(error)));
        Over
    }

    /// Checks that the file is still there.
    pub(super) fn look(&self) {
        if !self.projector.is_in_place() {
            self.report(GONE.to_owned());
        }
    }

    /// Makes what was applied survive a power cut.
    pub(super) async fn sync(&mut self) {
        // What is written to a file that was deleted is lost.
        let last = self.last.as_ref().map_or(0, |(sequence, _)| *sequence);
        if last == *self.synced.borrow() || !self.projector.is_in_place() {
            return;
        }
        match self.projector.sync().await {
            Ok(()) => drop(self.synced.send_replace(last)),
            // Readers are in the way; the next time will do.
            Err(error) => tracing::debug!(%error, "the store is not synced"),
        }
    }

    /// The next record is one with which folding may begin: what is before it may be pruned.
    pub(super) fn base_is_due(&mut self) {
        self.base_is_due = true;
    }

    /// Whether folding begins later than when this was last asked, so that there may be something to prune.
    pub(super) fn has_moved_base(&mut self) -> bool {
        std::mem::take(&mut self.base_moved)
    }

    /// Prunes some of what is older than `before`, and of what is of no use at any age. Returns whether there is more.
    pub(super) async fn prune(&mut self, before: Option<DateTime<Utc>>) -> bool {
        let pruned = self.projector.prune(before).await;
        pruned.unwrap_or_else(|error| {
            tracing::warn!(error = with_causes(&error), "the history is not pruned");
            false
        })
    }

    /// Closes the file. The store gets no more records, so its readers need not wait for them.
    pub(super) async fn close(self) {
        if let Err(error) = self.projector.close().await {
            tracing::warn!(%error, "the store was not closed cleanly; the journal has what is missing");
        }
    }

    fn report(&self, text: String) {
        if self.problem.borrow().as_ref() != Some(&text) {
            tracing::error!("{text}");
            self.problem.send_replace(Some(text));
        }
    }
}
