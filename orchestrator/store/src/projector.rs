//! The projector: applies the journal's records to the store, each batch in one transaction, and tracks its position.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os_upgrade_kernel::State;
use os_upgrade_shell::journal::Committed;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, query};
use tokio::sync::watch;

use super::changes::Changes;
use super::error::{ApplyError, OpenError, StoreError};
use super::extent;
use super::history::{History, read_position};
use super::position::{Position, ProjectorStatus, Streams};
use super::{open, write};

/// The size of the write-ahead log from which on it is emptied, in bytes. By itself SQLite begins it anew at 4 MiB, unless somebody
/// reads from it.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How long readers are waited for then. The next attempt comes soon, and records wait meanwhile.
const SHORTEN_WITHIN: Duration = Duration::from_millis(200);

/// The only writer of the store.
#[derive(Debug)]
pub struct Projector {
    path: PathBuf,
    site: String,
    pub(super) connection: SqliteConnection,
    /// Which file it was when it was opened.
    file: Option<FileId>,
    status: watch::Sender<ProjectorStatus>,
}

impl Projector {
    /// Opens the store of `site` at `path`, or creates it.
    ///
    /// # Errors
    /// See [`OpenError`]. The file is not changed.
    pub async fn open(path: &Path, site: &str) -> Result<Self, OpenError> {
        let connection = open::open(path, site).await?;
        Ok(Self {
            file: FileId::at(path),
            path: path.to_owned(),
            site: site.to_owned(),
            connection,
            status: watch::Sender::default(),
        })
    }

    /// Opens the file again after a failure: a transaction that could be neither committed nor rolled back would block
    /// every later one.
    ///
    /// # Errors
    /// As [`Self::open`]; the old connection stays open.
    pub async fn reopen(&mut self) -> Result<(), OpenError> {
        self.connection = open::open(&self.path, &self.site).await?;
        self.file = FileId::at(&self.path);
        Ok(())
    }

    /// Whether the open file is still the one at its path. What is written to a file that was deleted or replaced is
    /// lost.
    pub fn is_in_place(&self) -> bool {
        self.file.is_some() && FileId::at(&self.path) == self.file
    }

    /// A reader of the same store that can wait for this projector. It has connections of its own.
    ///
    /// # Errors
    /// The file cannot be opened for reading.
    pub async fn history(&self) -> Result<History, OpenError> {
        Ok(History::of_projector(&self.path).await?.with_status(self.status.subscribe()))
    }

    /// The position in the journal; `None` if the store is empty. A power cut may set it back to that of the last
    /// [`Self::sync`].
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn position(&mut self) -> Result<Option<Position>, StoreError> {
        let position = read_position(&mut self.connection).await?;
        let sequence = position.as_ref().map_or(0, |position| position.sequence);
        self.status.send_modify(|status| status.sequence = sequence);
        Ok(position)
    }

    /// Applies `batch` in whole or not at all. Its first record is the one after record `follows` in the journal of
    /// `streams`, or the journal's first if `follows` is `None`.
    ///
    /// The caller must bound the batch: its facts are kept in memory as JSON until they are written. An empty batch
    /// changes nothing.
    ///
    /// # Errors
    /// The batch does not follow [`Self::position`], is of other streams or does not fit its own state, or the store
    /// cannot be written.
    pub async fn apply(
        &mut self,
        streams: &Streams,
        follows: Option<u64>,
        batch: &[Committed],
    ) -> Result<(), ApplyError> {
        let applied = self.apply_all(streams, follows, batch).await;
        self.report(applied, batch)
    }

    /// Applies `batch` as [`Self::apply`] does, though records before it are missing that cannot be had any more. The store
    /// begins anew with the state before the batch, and keeps what it had for reading.
    ///
    /// # Errors
    /// The batch is of other streams or does not fit its own state, or the store cannot be written.
    pub async fn apply_after_gap(
        &mut self,
        streams: &Streams,
        batch: &[Committed],
    ) -> Result<(), ApplyError> {
        let applied = self.apply_all_after_gap(streams, batch).await;
        self.report(applied, batch)
    }

    async fn apply_all_after_gap(
        &mut self,
        streams: &Streams,
        batch: &[Committed],
    ) -> Result<(), ApplyError> {
        let Some((first, last)) = batch.first().zip(batch.last()) else { return Ok(()) };
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await?;
        if let Some(position) = read_position(&mut transaction).await? {
            check_streams(&position, streams)?;
            write::gap(&mut transaction, position.sequence, first).await?;
            write::unknown_results(&mut transaction, &first.before).await?;
        }
        write::base(&mut transaction, first).await?;
        let changes = Changes::of(batch, true)?;
        write_changes(&mut transaction, streams, &changes, last).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Tells readers whether `batch` was applied.
    fn report(&self, applied: Result<(), ApplyError>, batch: &[Committed]) -> Result<(), ApplyError> {
        self.status.send_modify(|status| {
            status.failed = applied.is_err();
            if let (Ok(()), Some(last)) = (&applied, batch.last()) {
                status.sequence = last.sequence;
            }
        });
        applied
    }

    /// Whether the store is being filled, so that nobody should wait for it.
    pub fn set_behind(&self, behind: bool) {
        self.status.send_modify(|status| status.behind = behind);
    }

    async fn apply_all(
        &mut self,
        streams: &Streams,
        follows: Option<u64>,
        batch: &[Committed],
    ) -> Result<(), ApplyError> {
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await?;
        write_batch(&mut transaction, streams, follows, batch).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Empties the store, so that the whole journal can be applied again.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn reset(&mut self) -> Result<(), StoreError> {
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await?;
        for table in
            ["facts", "run_hosts", "runs", "base", "gaps", "pruned", "run_totals", "host_totals", "position"]
        {
            let delete = sqlx::AssertSqlSafe(format!("DELETE FROM {table}"));
            query(delete).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Moves the store to `position` in the streams that were restored from it, and applies `next`, the first record
    /// there.
    ///
    /// # Errors
    /// The store cannot be written and is unchanged; or `next` does not follow `position`.
    pub async fn rebase(&mut self, position: &Position, next: Committed) -> Result<(), ApplyError> {
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await?;
        query("DELETE FROM position").execute(&mut *transaction).await?;
        write::position(&mut transaction, position).await?;
        write_batch(&mut transaction, &position.streams, Some(position.sequence), &[next]).await?;
        transaction.commit().await?;
        Ok(self.sync().await?)
    }

    /// Makes everything applied so far survive a power cut. That is required before the journal is trimmed below
    /// [`Self::position`].
    ///
    /// # Errors
    /// The store cannot be written, or readers kept it busy for too long.
    pub async fn sync(&mut self) -> Result<(), StoreError> {
        let checkpoint = sqlx::query_scalar("PRAGMA wal_checkpoint(FULL)");
        let is_busy: bool = checkpoint.fetch_one(&mut self.connection).await?;
        if is_busy { Err(StoreError::Busy) } else { Ok(()) }
    }

    /// Empties the write-ahead log if it is large. Its beginning is used again only while nobody reads from it, so that among
    /// readers who come and go it would grow for ever, and each write to it would be followed by another to the database.
    ///
    /// # Errors
    /// The store cannot be written, or a reader took too long: then it is to be tried again later.
    pub async fn shorten_log(&mut self) -> Result<(), StoreError> {
        if extent::log_bytes(&self.path) <= LOG_BYTES_MAX {
            return Ok(());
        }
        self.wait_for_readers(SHORTEN_WITHIN).await?;
        let checkpoint = sqlx::query_scalar("PRAGMA wal_checkpoint(TRUNCATE)");
        let is_busy: Result<bool, _> = checkpoint.fetch_one(&mut self.connection).await;
        self.wait_for_readers(open::BUSY_TIMEOUT).await?;
        if is_busy? { Err(StoreError::Busy) } else { Ok(()) }
    }

    /// Sets how long this connection waits for others.
    async fn wait_for_readers(&mut self, within: Duration) -> Result<(), StoreError> {
        let set = format!("PRAGMA busy_timeout = {}", within.as_millis());
        query(sqlx::AssertSqlSafe(set)).fetch_all(&mut self.connection).await?;
        Ok(())
    }

    /// Closes the file after writing everything back into it.
    ///
    /// # Errors
    /// The store cannot be written. The journal still has what is missing.
    pub async fn close(self) -> Result<(), StoreError> {
        Ok(self.connection.close().await?)
    }
}

/// What tells a file from another: its device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    /// That of the file at `path`; `None` if there is none.
    fn at(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self(found.dev(), found.ino()))
    }
}

/// Writes the changes of `batch` and the new position.
async fn write_batch(
    transaction: &mut SqliteConnection,
    streams: &Streams,
    follows: Option<u64>,
    batch: &[Committed],
) -> Result<(), ApplyError> {
    let Some(last) = batch.last() else {
        return Ok(());
    };
    let position = read_position(transaction).await?;
    check(position.as_ref(), streams, follows, batch)?;
    let changes = Changes::of(batch, position.is_none())?;
    let needs_base = |first: &&Committed| position.is_none() && first.before != State::default();
    if let Some(first) = batch.first().filter(needs_base) {
        write::base(transaction, first).await?;
    }
    write_changes(transaction, streams, &changes, last).await
}

/// Writes `changes`, and the position after `last`.
async fn write_changes(
    transaction: &mut SqliteConnection,
    streams: &Streams,
    changes: &Changes,
    last: &Committed,
) -> Result<(), ApplyError> {
    write::changes(transaction, changes).await?;
    let position = Position {
        sequence: last.sequence,
        append_id: last.append_id.clone(),
        control: last.record.control,
        streams: *streams,
    };
    Ok(write::position(transaction, &position).await?)
}

fn check_streams(position: &Position, streams: &Streams) -> Result<(), ApplyError> {
    let stored = position.streams;
    if stored == *streams { Ok(()) } else { Err(ApplyError::OtherStreams { stored, given: *streams }) }
}

/// Checks that `batch` is from the store's streams, follows its position, and is in order.
fn check(
    position: Option<&Position>,
    streams: &Streams,
    follows: Option<u64>,
    batch: &[Committed],
) -> Result<(), ApplyError> {
    if let Some(position) = position {
        check_streams(position, streams)?;
    }
    let gap = |follows, first| ApplyError::Gap { position: position.cloned(), follows, first };
    let (mut last, mut control) = (position.map(|at| at.sequence), position.map(|at| at.control));
    if let Some(first) = batch.first().filter(|_| last != follows) {
        return Err(gap(follows, first.sequence));
    }
    for committed in batch {
        let in_order = last.is_none_or(|last| committed.sequence > last);
        // The control position before a record is that of the previous record.
        if !in_order || control.is_some_and(|control| committed.before.control != control) {
            return Err(gap(last, committed.sequence));
        }
        (last, control) = (Some(committed.sequence), Some(committed.record.control));
    }
    Ok(())
}
