//! How far back the history goes, what is missing in it, and how large it is.

use std::fs;
use std::path::Path;

use chrono::{DateTime, Utc};
use sqlx::sqlite::SqliteConnection;
use sqlx::{query, query_scalar};

use super::error::StoreError;
use super::row;

/// What the history covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// When the oldest fact became true; `None` without facts.
    pub since: Option<DateTime<Utc>>,
    /// How many times records are missing: the journal was trimmed while this instance was away.
    pub gaps: u64,
    /// The number of runs.
    pub runs: u64,
    /// The size of the database, in bytes, without its write-ahead log.
    pub bytes: u64,
    /// The size of its write-ahead log, in bytes.
    pub log_bytes: u64,
}

pub(super) async fn read(connection: &mut SqliteConnection) -> Result<Extent, StoreError> {
    let oldest = query("SELECT at FROM facts ORDER BY sequence, place LIMIT 1")
        .fetch_optional(&mut *connection)
        .await?;
    let since = oldest.map(|oldest| row::time(&oldest, "at")).transpose()?;
    let gaps: i64 = query_scalar("SELECT count(*) FROM gaps").fetch_one(&mut *connection).await?;
    let runs: i64 = query_scalar("SELECT count(*) FROM runs").fetch_one(&mut *connection).await?;
    let bytes: i64 =
        query_scalar("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
            .fetch_one(&mut *connection)
            .await?;
    let file: String = query_scalar("SELECT file FROM pragma_database_list WHERE name = 'main'")
        .fetch_one(connection)
        .await?;
    Ok(Extent {
        since,
        gaps: gaps.cast_unsigned(),
        runs: runs.cast_unsigned(),
        bytes: bytes.cast_unsigned(),
        log_bytes: log_bytes(Path::new(&file)),
    })
}

/// The size of the write-ahead log of the database at `path`, in bytes. A database that nobody has open has none.
pub(super) fn log_bytes(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(log).map_or(0, |file| file.len())
}

/// The time of the newest record since an operator last started a run. Facts about a run are none later than its end.
pub(super) async fn newest_record(
    connection: &mut SqliteConnection,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    // Each part is answered from an index, or from the few thousand runs.
    let newest = query(
        "WITH started AS (SELECT id, number FROM runs WHERE trigger_kind = 'operator' ORDER BY number DESC LIMIT 1),
              since AS (SELECT coalesce((SELECT min(sequence) FROM facts WHERE run = (SELECT id FROM started)), 0) AS first)
         SELECT max(at) AS at FROM (
             SELECT max(started_at, coalesce(ended_at, started_at)) AS at FROM runs
                 WHERE number >= coalesce((SELECT number FROM started), 0)
             UNION ALL
             SELECT at FROM (SELECT at FROM facts WHERE run IS NULL AND sequence >= (SELECT first FROM since)
                 ORDER BY at DESC LIMIT 1)
             UNION ALL
             SELECT at FROM (SELECT at FROM facts ORDER BY sequence DESC, place DESC LIMIT 1))",
    )
    .fetch_one(connection)
    .await?;
    row::optional_time(&newest, "at")
}
