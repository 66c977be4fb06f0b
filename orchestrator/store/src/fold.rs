//! Folding the store's facts to a state, from which a lost journal can be restored.
//!
//! Everything durable is a fact, and the store has every fact with its time, so it has the whole state. Records also
//! contain the position in the control stream, which is in the store's own position.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use futures::TryStreamExt as _;
use os_upgrade_kernel::format::{self, ReadError};
use os_upgrade_kernel::{ApplyError, Fact, State};
use os_upgrade_protocol::error::with_causes;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, Row as _, query, query_scalar};

use super::error::{OpenError, StoreError};
use super::extent::{self, Extent};
use super::history::read_position;
use super::position::Position;
use super::{open, row};

/// The fold of a whole store.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded {
    /// The state after all facts.
    pub state: State,
    /// The position in the journal.
    pub position: Position,
    /// The number of facts in the store, of which those that the first state contains are not folded.
    pub facts: u64,
    /// What the history covers.
    pub extent: Extent,
}

/// Why a store cannot be folded.
#[derive(Debug, thiserror::Error)]
pub enum FoldError {
    /// The file is not this site's store.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A fact is unknown to this program.
    #[error("store {path}: fact {place} of record {sequence} was written by another version, or is damaged")]
    Unknown {
        path: PathBuf,
        /// The fact's record.
        sequence: u64,
        /// Its place in the record, from 0.
        place: u64,
        /// What cannot be read.
        #[source]
        source: ReadError,
    },
    /// A fact does not fit the state before it, because others are missing.
    #[error("store {path}: fact {place} of record {sequence} does not fit what comes before it")]
    Unfit {
        path: PathBuf,
        /// The fact's record.
        sequence: u64,
        /// Its place in the record, from 0.
        place: u64,
        /// The kernel's error.
        #[source]
        source: ApplyError,
    },
}

/// Folds the store of `site` at `path` without changing it; `None` if there is no file or it is empty.
///
/// # Errors
/// It is not this site's store, is damaged, or has facts that this program does not know.
pub async fn fold(path: &Path, site: &str) -> Result<Option<Folded>, FoldError> {
    let Some(mut connection) = open::open_read_only(path, site).await? else { return Ok(None) };
    // In one transaction, so that facts and position are consistent.
    let mut reader = connection.begin().await.map_err(StoreError::from)?;
    let Some(position) = read_position(&mut reader).await? else { return Ok(None) };
    let extent = extent::read(&mut reader).await?;
    let facts: i64 =
        query_scalar("SELECT count(*) FROM facts").fetch_one(&mut *reader).await.map_err(StoreError::from)?;
    let (mut state, from) = base(&mut reader).await?;
    let select = "SELECT sequence, place, at, fact FROM facts WHERE sequence >= ? ORDER BY sequence, place";
    let mut rows = query(select).bind(from.cast_signed()).fetch(&mut *reader);
    while let Some(row) = rows.try_next().await.map_err(StoreError::from)? {
        let (sequence, place): (u64, u64) = (
            row.try_get("sequence").map_err(StoreError::from)?,
            row.try_get("place").map_err(StoreError::from)?,
        );
        let at: DateTime<Utc> = row::time(&row, "at")?;
        let text: &str = row.try_get("fact").map_err(StoreError::from)?;
        let path = || path.to_owned();
        let fact: Fact = format::read(text.as_bytes()).map_err(|source| FoldError::Unknown {
            path: path(),
            sequence,
            place,
            source,
        })?;
        state.apply(at, &fact).map_err(|source| FoldError::Unfit {
            path: path(),
            sequence,
            place,
            source,
        })?;
    }
    state.control = position.control;
    Ok(Some(Folded { state, position, facts: facts.cast_unsigned(), extent }))
}

/// The state with which the fold begins, and the first record after it.
async fn base(reader: &mut SqliteConnection) -> Result<(State, u64), StoreError> {
    let Some(row) = query("SELECT sequence, state FROM base").fetch_optional(reader).await? else {
        return Ok((State::default(), 0));
    };
    let (sequence, stored): (u64, &str) = (row.try_get("sequence")?, row.try_get("state")?);
    let state = format::read(stored.as_bytes())
        .map_err(|error| StoreError::BadValue { column: "state", value: with_causes(&error) })?;
    Ok((state, sequence))
}

/// Copies the store of `site` at `path`, as it is at one moment, into the new file `copy`. Returns `false` if there is
/// no store.
///
/// # Errors
/// It is not this site's store, or cannot be read, or `copy` cannot be written.
pub async fn copy(path: &Path, site: &str, copy: &Path) -> Result<bool, FoldError> {
    let Some(mut connection) = open::open_read_only(path, site).await? else { return Ok(false) };
    query("VACUUM INTO ?")
        .bind(copy.to_string_lossy().as_ref())
        .execute(&mut connection)
        .await
        .map_err(StoreError::from)?;
    connection.close().await.map_err(StoreError::from)?;
    Ok(true)
}

/// The first problem that SQLite's integrity check finds in the store of `site` at `path`; `None` if there is none, or
/// no store.
///
/// # Errors
/// It is not this site's store, or cannot be read.
pub async fn integrity(path: &Path, site: &str) -> Result<Option<String>, FoldError> {
    let Some(mut connection) = open::open_read_only(path, site).await? else { return Ok(None) };
    let found: String = query_scalar("PRAGMA integrity_check(1)")
        .fetch_one(&mut connection)
        .await
        .map_err(StoreError::from)?;
    drop(connection.close().await);
    Ok((found != "ok").then_some(found))
}
