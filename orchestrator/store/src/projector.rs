//! The projector: takes in records behind the journal, a batch in one transaction, and knows how far it is.

use std::path::{Path, PathBuf};

use os_upgrade_kernel::State;
use os_upgrade_shell::journal::Committed;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, query};
use tokio::sync::watch;

use super::changes::Changes;
use super::error::{ApplyError, OpenError, StoreError};
use super::history::{History, read_position};
use super::position::{Position, Streams, TakenIn};
use super::{open, write};

/// The one writer of the store.
#[derive(Debug)]
pub struct Projector {
    path: PathBuf,
    site: String,
    connection: SqliteConnection,
    taken_in: watch::Sender<TakenIn>,
}

impl Projector {
    /// Opens the store of `site` at `path`, or creates it.
    ///
    /// # Errors
    /// One kind for each thing that can be wrong with the file; it is then as it was.
    pub async fn open(path: &Path, site: &str) -> Result<Self, OpenError> {
        let connection = open::open(path, site).await?;
        Ok(Self {
            path: path.to_owned(),
            site: site.to_owned(),
            connection,
            taken_in: watch::Sender::default(),
        })
    }

    /// Opens the file again, as after a failure: a transaction that could be neither committed nor rolled back would be
    /// in the way of every one after it.
    ///
    /// # Errors
    /// As [`Self::open`]; then this one stays as it is.
    pub async fn reopen(&mut self) -> Result<(), OpenError> {
        self.connection = open::open(&self.path, &self.site).await?;
        Ok(())
    }

    /// A reader of the same store, with connections of its own, that can wait for this projector.
    ///
    /// # Errors
    /// The file cannot be opened for reading.
    pub async fn history(&self) -> Result<History, OpenError> {
        Ok(History::open(&self.path).await?.behind(self.taken_in.subscribe()))
    }

    /// How far the journal has been taken in; `None` for an empty store. A power cut may take some of it back, unless
    /// [`Self::sync`] has come after it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn position(&mut self) -> Result<Option<Position>, StoreError> {
        let position = read_position(&mut self.connection).await?;
        let sequence = position.as_ref().map_or(0, |position| position.sequence);
        self.taken_in.send_modify(|taken_in| taken_in.sequence = sequence);
        Ok(position)
    }

    /// Takes in `batch`, whose first record comes right after record `follows` in the journal of `streams`;
    /// `None` says that it is the first that the journal still holds. All of it is taken in, or nothing.
    ///
    /// Bound the batch: its facts are held as JSON until they are written. An empty one does nothing.
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
        self.taken_in.send_modify(|taken_in| {
            taken_in.failed = applied.is_err();
            if let (Ok(()), Some(last)) = (&applied, batch.last()) {
                taken_in.sequence = last.sequence;
            }
        });
        applied
    }

    async fn apply_all(
        &mut self,
        streams: &Streams,
        follows: Option<u64>,
        batch: &[Committed],
    ) -> Result<(), ApplyError> {
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await?;
        take_in(&mut transaction, streams, follows, batch).await?;
        transaction.commit().await?;
        Ok(())
    }

    /// Empties the store, so that the whole journal can be taken in again. Readers see the old content until then.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn reset(&mut self) -> Result<(), StoreError> {
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await?;
        for table in ["facts", "run_hosts", "runs", "base", "position"] {
            let delete = sqlx::AssertSqlSafe(format!("DELETE FROM {table}"));
            query(delete).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// Makes the store one of other streams, those that were made anew from it: `next` is the first record there, and
    /// comes after `position`.
    ///
    /// # Errors
    /// The store cannot be written; then it is as it was.
    pub async fn rebase(&mut self, position: &Position, next: Committed) -> Result<(), ApplyError> {
        let mut transaction = self.connection.begin_with("BEGIN IMMEDIATE").await?;
        query("DELETE FROM position").execute(&mut *transaction).await?;
        write::position(&mut transaction, position).await?;
        take_in(&mut transaction, &position.streams, Some(position.sequence), &[next]).await?;
        transaction.commit().await?;
        Ok(self.sync().await?)
    }

    /// Makes sure that everything taken in outlasts a power cut, as it must before the journal is trimmed on the
    /// strength of [`Self::position`].
    ///
    /// # Errors
    /// The store cannot be written, or readers kept it busy for too long.
    pub async fn sync(&mut self) -> Result<(), StoreError> {
        let checkpoint = sqlx::query_scalar("PRAGMA wal_checkpoint(FULL)");
        let is_busy: bool = checkpoint.fetch_one(&mut self.connection).await?;
        if is_busy { Err(StoreError::Busy) } else { Ok(()) }
    }

    /// Closes the file, with everything written back into it.
    ///
    /// # Errors
    /// The store cannot be written; the journal has what is missing.
    pub async fn close(self) -> Result<(), StoreError> {
        Ok(self.connection.close().await?)
    }
}

/// Writes what `batch` changes, and how far the store is with it.
async fn take_in(
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
    let rootless = |first: &&Committed| position.is_none() && first.before != State::default();
    if let Some(first) = batch.first().filter(rootless) {
        write::base(transaction, first).await?;
    }
    write::changes(transaction, &changes).await?;
    let position = Position {
        sequence: last.sequence,
        append_id: last.append_id.clone(),
        control: last.record.control,
        streams: *streams,
    };
    Ok(write::position(transaction, &position).await?)
}

/// `batch` is of the streams that the store is of, follows what the store has, and is in order.
fn check(
    position: Option<&Position>,
    streams: &Streams,
    follows: Option<u64>,
    batch: &[Committed],
) -> Result<(), ApplyError> {
    if let Some(stored) = position.map(|position| position.streams).filter(|stored| stored != streams) {
        return Err(ApplyError::OtherStreams { stored, given: *streams });
    }
    let gap = |follows, first| ApplyError::Gap { position: position.cloned(), follows, first };
    let (mut last, mut control) = (position.map(|at| at.sequence), position.map(|at| at.control));
    if let Some(first) = batch.first().filter(|_| last != follows) {
        return Err(gap(follows, first.sequence));
    }
    for committed in batch {
        let in_order = last.is_none_or(|last| committed.sequence > last);
        // The state before a record has the control position after the record before it.
        if !in_order || control.is_some_and(|control| committed.before.control != control) {
            return Err(gap(last, committed.sequence));
        }
        (last, control) = (Some(committed.sequence), Some(committed.record.control));
    }
    Ok(())
}
