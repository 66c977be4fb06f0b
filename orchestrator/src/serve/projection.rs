//! The task that applies committed records to the store, in batches.
//!
//! The driver passes records on as they are committed, from the snapshot on with which it began. What the store lacks
//! before them, and what the driver could not pass on because the store was slow, is read from the journal here.

mod store_writer;

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use os_upgrade_bus::Bus;
use os_upgrade_shell::instance::{Event, Leadership};
use os_upgrade_shell::journal::follow::Follower;
use os_upgrade_shell::journal::{Committed, JournalError};
use os_upgrade_store::{Position, Projector, Streams};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use self::store_writer::{Over, RETRY, StoreWriter};
use crate::driver;
use crate::shared::Shared;

/// The most committed records that wait for the store. It reads further ones from the journal.
const RECORDS_MAX: usize = 65_536;
/// The most records that are applied at once.
const BATCH_MAX: usize = 256;
/// How long the first of a batch waits for others. A transaction for each record would cost more than the record,
/// and every write to the disk delays what the bus has to sync.
const LINGER: Duration = Duration::from_millis(20);
/// How often it is checked that the store's file is still there.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// How often what was applied is made to survive a power cut, so that the journal may be trimmed.
const SYNC_INTERVAL: Duration = Duration::from_secs(10);
/// How often the state with which folding the store begins is moved. What is before it may be pruned.
const BASE_INTERVAL: Duration = Duration::from_hours(1);
/// How long to wait between two steps of pruning, which take the store's lock.
const PRUNE_INTERVAL: Duration = Duration::from_millis(100);

/// What the task works with.
pub(super) struct Projection {
    pub(super) projector: Projector,
    /// What the store has at the start.
    pub(super) position: Option<Position>,
    pub(super) ends: Ends,
    /// How long the history is kept.
    pub(super) keep: Duration,
    pub(super) shared: Shared,
}

/// The task's ends of the channels to the driver.
pub(super) struct Ends {
    /// Resolves to the streams that the records are from, before the first record. The bus is connected by then.
    streams: oneshot::Receiver<Option<Streams>>,
    /// Records, in order; some may be missing in between. The task ends when this is closed.
    committed: mpsc::Receiver<Committed>,
    /// The last record that found no room in `committed`.
    missed: watch::Receiver<u64>,
    /// Set to what is wrong with the store; `None` while nothing is.
    problem: watch::Sender<Option<String>>,
    /// Set to the last record that a power cut does not take from the store.
    synced: watch::Sender<u64>,
}

/// The channels between driver and task: the driver's ends, who names the streams to the task, and the task's ends.
pub(super) fn channels() -> (driver::Projection, oneshot::Sender<Option<Streams>>, Ends) {
    let (store, committed) = mpsc::channel(RECORDS_MAX);
    let (streams_found, streams) = oneshot::channel();
    let (missed_sender, missed) = watch::channel(0);
    let (problem, problem_seen) = watch::channel(None);
    let (synced, synced_seen) = watch::channel(0);
    let driver = driver::Projection {
        store,
        missed: missed_sender,
        problem: problem_seen,
        synced: synced_seen,
        recorded: 0,
    };
    (driver, streams_found, Ends { streams, committed, missed, problem, synced })
}

impl Projection {
    pub(super) async fn run(self) {
        let Self { projector, position, ends, keep, shared } = self;
        let Ends { streams, mut committed, missed, problem, synced } = ends;
        // Without streams there are no records.
        if let Some(streams) = streams.await.ok().flatten() {
            let writer = StoreWriter::new(projector, streams, position.as_ref(), problem, synced);
            let mut task = Task { writer, missed, keep, shared };
            // An error has been reported.
            let _: Result<(), Over> = task.run(&mut committed).await;
            task.writer.close().await;
        }
        // A failed store must not delay runs, so records are dropped: they are in the journal.
        while committed.recv().await.is_some() {}
    }
}

struct Task {
    writer: StoreWriter,
    missed: watch::Receiver<u64>,
    keep: Duration,
    shared: Shared,
}

impl Task {
    async fn run(&mut self, committed: &mut mpsc::Receiver<Committed>) -> Result<(), Over> {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut look = tokio::time::interval(LOOK_INTERVAL);
        let mut sync = tokio::time::interval(SYNC_INTERVAL);
        let mut base = tokio::time::interval(BASE_INTERVAL);
        let mut prune = tokio::time::interval(PRUNE_INTERVAL);
        prune.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut prunes = false;
        loop {
            tokio::select! {
                received = committed.recv_many(&mut batch, BATCH_MAX) => {
                    if received == 0 {
                        return Ok(());
                    }
                    linger(committed, &mut batch).await;
                    self.apply(&mut batch).await?;
                    prunes |= self.writer.has_moved_base();
                }
                Ok(()) = self.missed.changed() => {
                    let missed = *self.missed.borrow_and_update();
                    self.catch_up(missed).await?;
                }
                _ = look.tick() => self.writer.look(),
                _ = sync.tick() => self.writer.sync().await,
                _ = base.tick() => self.writer.base_is_due(),
                _ = prune.tick(), if prunes => prunes = self.prune().await,
            }
        }
    }

    /// Applies what the store does not have of `batch`, and what comes before it.
    async fn apply(&mut self, batch: &mut Vec<Committed>) -> Result<(), Over> {
        // Following begins with a snapshot, so the store may already have the first records.
        batch.retain(|record| record.sequence > self.writer.covered());
        while let Some(first) = batch.first() {
            if first.follows > self.writer.covered() {
                self.catch_up(first.follows).await?;
            }
            let is_next = |pair: &&[Committed]| pair[1].follows == pair[0].sequence;
            let count = 1 + batch.windows(2).take_while(is_next).count();
            self.writer.apply(&batch[..count], &self.shared.shutdown).await?;
            batch.drain(..count);
        }
        Ok(())
    }

    /// Prunes some of what is too old. Returns whether there is more.
    async fn prune(&mut self) -> bool {
        // A clock that is ahead would make everything old. The leader knows that of its own; others compare theirs with it.
        let published = self.shared.published.load_full();
        let is_certain =
            !matches!(published.leadership, Leadership::Here(_)) || published.view.clock.is_trusted();
        let now = self.writer.last_at().filter(|_| is_certain).map(|last| last.min(Utc::now()));
        let keep = TimeDelta::from_std(self.keep).ok();
        let before = now.zip(keep).and_then(|(now, keep)| now.checked_sub_signed(keep));
        self.writer.prune(before).await
    }

    /// Applies what the store lacks of the journal up to `until`.
    async fn catch_up(&mut self, until: u64) -> Result<(), Over> {
        if until <= self.writer.covered() {
            return Ok(());
        }
        let Some(bus) = self.shared.shutdown.run_until_cancelled(self.shared.bus.wait()).await.cloned()
        else {
            return Err(Over);
        };
        tracing::info!(from = self.writer.covered() + 1, until, "the history is filled from the journal");
        self.writer.is_behind(true);
        let stop = self.shared.shutdown.child_token();
        let filled = self.fill(bus, until, &stop).await;
        stop.cancel();
        self.writer.is_behind(false);
        filled?;
        self.writer.cover(until);
        tracing::info!(until, "the history is complete");
        Ok(())
    }

    async fn fill(&mut self, bus: Bus, until: u64, stop: &CancellationToken) -> Result<(), Over> {
        let from = loop {
            match bus.follow_for_store(self.writer.covered()).await {
                Ok(Some(from)) => break from,
                Ok(None) => {
                    return Err(self
                        .writer
                        .fail(&JournalError::Gap { sequence: until, last: self.writer.covered() }));
                }
                Err(error) => {
                    tracing::warn!(%error, "the history cannot be filled from the journal; trying again");
                }
            }
            if stop.run_until_cancelled(tokio::time::sleep(RETRY)).await.is_none() {
                return Err(Over);
            }
        };
        let (sender, mut events) = mpsc::channel(BATCH_MAX);
        let reading = stop.clone();
        tokio::spawn(async move { bus.read_journal(from, reading, sender).await });
        let (mut follower, mut batch) = (Follower::default(), Vec::with_capacity(BATCH_MAX));
        loop {
            let Some(event) = stop.run_until_cancelled(events.recv()).await.flatten() else {
                return Err(Over);
            };
            // The end of the journal counts for nothing: a server that is behind has an earlier one.
            let mut is_end = false;
            if let Event::Journal { sequence, message, .. } = event {
                let message = message.map_err(|error| self.writer.fail(&error))?;
                // It may be trimmed while it is read.
                if follower.tip.append_id.is_none() || sequence > follower.tip.sequence + 1 {
                    self.writer.apply(&batch, stop).await?;
                    batch.clear();
                    self.writer.begins_at(sequence, &message);
                }
                let read = follower.read(sequence, &message).map_err(|error| self.writer.fail(&error))?;
                batch.extend(read.filter(|record| record.sequence > self.writer.covered()));
                is_end = sequence >= until;
            }
            if is_end || batch.len() >= BATCH_MAX {
                self.writer.apply(&batch, stop).await?;
                batch.clear();
            }
            if is_end {
                return Ok(());
            }
        }
    }
}

/// Fills `batch` with the records that arrive within [`LINGER`]. Receiving them one by one would wake this task for each.
async fn linger(committed: &mut mpsc::Receiver<Committed>, batch: &mut Vec<Committed>) {
    if batch.len() < BATCH_MAX {
        tokio::time::sleep(LINGER).await;
    }
    while batch.len() < BATCH_MAX
        && let Ok(record) = committed.try_recv()
    {
        batch.push(record);
    }
}
