//! The reader: runs newest first, and one run with its hosts and facts. Its connections cannot write.

use std::path::Path;

use chrono::{DateTime, Utc};
use futures::{Stream, TryStreamExt as _};
use os_upgrade_kernel::FactCursor;
use os_upgrade_protocol::RunId;
use os_upgrade_shell::journal::AppendId;
use serde_json::value::RawValue;
use sqlx::sqlite::{SqliteConnection, SqlitePool, SqlitePoolOptions, SqliteRow};
use sqlx::{Row as _, query, query_scalar};
use tokio::sync::watch;

use super::error::{OpenError, StoreError};
use super::position::{Position, Streams, TakenIn};
use super::{open, row};

/// How many lists are read at once; further ones wait.
const CONNECTIONS_MAX: u32 = 4;

/// Reads what the projector has written. Cheap to clone.
#[derive(Debug, Clone)]
pub struct History {
    pool: SqlitePool,
    /// How far a projector is, while one is at work.
    taken_in: Option<watch::Receiver<TakenIn>>,
}

/// A run, without its hosts.
#[derive(Debug)]
pub struct RunRow {
    /// Its id.
    pub id: String,
    /// What started it, as one word.
    pub trigger_kind: String,
    /// Who started it, where somebody did.
    pub actor: Option<String>,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// When it ends at the latest.
    pub not_after: DateTime<Utc>,
    /// How far it is, or was at its end.
    pub phase: String,
    /// How it goes through the hosts: the JSON object of the configuration.
    pub rollout: Box<RawValue>,
    /// Why no further host is started, as a JSON object.
    pub stopping: Option<Box<RawValue>>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// How it went.
    pub result: Option<String>,
    /// JSON object: status to number of hosts, where there are any.
    pub counts: Box<RawValue>,
}

/// A host of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    /// Its name.
    pub host: String,
    /// The application that serves it.
    pub application: String,
    /// The group whose slot it needs.
    pub group: String,
    /// Where it is.
    pub status: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// Why it waits, or came to an unhappy end: the sentence.
    pub reason: Option<String>,
    /// The same as one word.
    pub reason_kind: Option<String>,
    /// What its current command asks, or its last.
    pub command_action: Option<String>,
    /// Where that stands in the control stream.
    pub command_sequence: Option<u64>,
    /// When its slot was granted.
    pub started_at: Option<DateTime<Utc>>,
    /// When its part in the run ended.
    pub ended_at: Option<DateTime<Utc>>,
}

/// A command that has been seen in the control stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRow {
    /// Its sequence.
    pub sequence: u64,
    /// The host it was sent to.
    pub host: String,
    /// What it asks.
    pub action: String,
}

/// A fact.
#[derive(Debug)]
pub struct FactRow {
    /// The sequence of its record in the journal.
    pub sequence: u64,
    /// Its place in that record, from 0.
    pub place: u64,
    /// When it became true.
    pub at: DateTime<Utc>,
    /// Its name.
    pub name: String,
    /// For a fact about a host: what happened to it.
    pub event: Option<String>,
    /// Who caused it, where somebody did.
    pub actor: Option<String>,
    /// The host it is about.
    pub host: Option<String>,
    /// The fact as a JSON object, as it stands in the journal.
    pub fact: Box<RawValue>,
}

/// Some runs, newest first.
#[derive(Debug)]
pub struct RunPage {
    /// The runs.
    pub items: Vec<RunRow>,
    /// The last of them, when older ones follow.
    pub next: Option<String>,
}

/// Some facts, in order.
#[derive(Debug)]
pub struct FactPage {
    /// The facts.
    pub items: Vec<FactRow>,
    /// The last of them, when more follow.
    pub next: Option<FactCursor>,
}

/// What callers did, of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audit {
    /// Slots that operators held and released.
    Slots,
    /// These, and those that FleetLock clients were granted and gave back.
    SlotsOfAll,
    /// The configuration replaced or deleted.
    Configuration,
    /// Secrets kept and removed, and the strongbox given another key.
    Strongbox,
    /// Hosts approved and withdrawn.
    Enrolment,
}

impl Audit {
    /// Every kind.
    #[cfg(test)]
    pub(super) const ALL: [Self; 5] =
        [Self::Slots, Self::SlotsOfAll, Self::Configuration, Self::Strongbox, Self::Enrolment];

    /// Which facts those are, in the words of the index made for them.
    const fn condition(self) -> &'static str {
        match self {
            Self::Slots => "type IN ('hold-placed', 'holder-released')",
            Self::SlotsOfAll => "type IN ('hold-placed', 'holder-released', 'lock-granted', 'lock-released')",
            Self::Configuration => "type = 'config-replaced'",
            Self::Strongbox => "type IN ('strongbox-made', 'secret-kept', 'secret-removed')",
            Self::Enrolment => "type IN ('hosts-approved', 'host-withdrawn')",
        }
    }

    /// What reads a page, newest first: of the fact before it, the sequence and the place, and how long a page is.
    pub(super) fn select(self) -> String {
        format!(
            "SELECT sequence, place, at, type, event, actor, host, fact FROM facts \
             WHERE {} AND (sequence, place) < (?, ?) ORDER BY sequence DESC, place DESC LIMIT ? + 1",
            self.condition()
        )
    }

    /// What counts them.
    pub(super) fn select_count(self) -> String {
        format!("SELECT count(*) FROM facts WHERE {}", self.condition())
    }
}

/// A run with its hosts, by name, and its facts.
#[derive(Debug)]
pub struct RunDetail {
    /// The run.
    pub run: RunRow,
    /// All of its hosts.
    pub hosts: Vec<HostRow>,
    /// Facts in whose history it is.
    pub facts: FactPage,
}

const RUN_COLUMNS: &str = "id, trigger_kind, actor, started_at, not_after, phase, rollout, stopping, ended_at, \
                           result, counts";

impl History {
    /// Opens the store at `path` for reading; a [`super::Projector`] or [`super::fold()`] has made sure what it is.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        let options = open::options(path).read_only(true);
        let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS_MAX).connect_with(options).await;
        Ok(Self { pool: pool.map_err(|source| OpenError::of(path, source))?, taken_in: None })
    }

    /// The same, behind a projector that tells in `taken_in` how far it is.
    pub(super) fn behind(self, taken_in: watch::Receiver<TakenIn>) -> Self {
        Self { taken_in: Some(taken_in), ..self }
    }

    /// Waits until record `sequence` has been taken in, or none can be or will be any more. That may be long: bound it.
    pub async fn has(&self, sequence: u64) {
        if let Some(mut taken_in) = self.taken_in.clone() {
            // An error says that the projector is gone.
            drop(taken_in.wait_for(|taken_in| taken_in.failed || taken_in.sequence >= sequence).await);
        }
    }

    /// At most `limit` runs, newest first, older than `after` if that is given.
    ///
    /// # Errors
    /// There is no run `after`, or the store cannot be read.
    pub async fn runs(&self, limit: u32, after: Option<&RunId>) -> Result<RunPage, StoreError> {
        let mut reader = self.pool.begin().await?;
        let before = match after {
            None => i64::MAX,
            Some(id) => query_scalar("SELECT number FROM runs WHERE id = ?")
                .bind(id.as_str())
                .fetch_optional(&mut *reader)
                .await?
                .ok_or_else(|| StoreError::UnknownRun(id.to_string()))?,
        };
        let select =
            format!("SELECT {RUN_COLUMNS} FROM runs WHERE number < ? ORDER BY number DESC LIMIT ? + 1");
        let rows =
            query(sqlx::AssertSqlSafe(select)).bind(before).bind(limit).fetch_all(&mut *reader).await?;
        let items = rows.iter().map(RunRow::read).collect::<Result<_, _>>()?;
        let (items, next) = page(items, limit, |run: &RunRow| run.id.clone());
        Ok(RunPage { items, next })
    }

    /// Run `id`, with at most `facts_limit` of its facts, those after `facts_after` if that is given; `None` when
    /// there is no such run.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn run(
        &self,
        id: &RunId,
        facts_limit: u32,
        facts_after: Option<FactCursor>,
    ) -> Result<Option<RunDetail>, StoreError> {
        // One transaction: run, hosts and facts are of the same moment.
        let mut reader = self.pool.begin().await?;
        let select = sqlx::AssertSqlSafe(format!("SELECT {RUN_COLUMNS} FROM runs WHERE id = ?"));
        let Some(row) = query(select).bind(id.as_str()).fetch_optional(&mut *reader).await? else {
            return Ok(None);
        };
        let run = RunRow::read(&row)?;
        let hosts = hosts(&mut reader, id).await?;
        let facts = facts(&mut reader, id, facts_limit, facts_after).await?;
        Ok(Some(RunDetail { run, hosts, facts }))
    }

    /// How many runs there are.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count_runs(&self) -> Result<u64, StoreError> {
        let count: i64 = query_scalar("SELECT count(*) FROM runs").fetch_one(&self.pool).await?;
        Ok(count.cast_unsigned())
    }

    /// At most `limit` facts of `audit`, newest first, those before `before` if that is given.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn audit(
        &self,
        audit: Audit,
        limit: u32,
        before: Option<FactCursor>,
    ) -> Result<FactPage, StoreError> {
        let before = before.unwrap_or(FactCursor { sequence: u64::MAX >> 1, place: 0 });
        let select = query(sqlx::AssertSqlSafe(audit.select())).bind(before.sequence.cast_signed());
        let rows = select.bind(before.place.cast_signed()).bind(limit).fetch(&self.pool);
        let items = collect(rows, FactRow::read).await?;
        let (items, next) = page(items, limit, FactRow::cursor);
        Ok(FactPage { items, next })
    }

    /// How many facts of `audit` there are.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count_audit(&self, audit: Audit) -> Result<u64, StoreError> {
        let select = sqlx::AssertSqlSafe(audit.select_count());
        let count: i64 = query_scalar(select).fetch_one(&self.pool).await?;
        Ok(count.cast_unsigned())
    }

    /// How far the journal has been taken in; `None` for an empty store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn position(&self) -> Result<Option<Position>, StoreError> {
        read_position(&mut *self.pool.acquire().await?).await
    }

    /// The sequences of all records that have facts, in order.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn sequences(&self) -> Result<Vec<u64>, StoreError> {
        let select = query_scalar::<_, i64>("SELECT DISTINCT sequence FROM facts ORDER BY sequence");
        let sequences = select.fetch_all(&self.pool).await?;
        Ok(sequences.into_iter().map(i64::cast_unsigned).collect())
    }

    /// How many facts there are from record `first` on, and at most `limit` of them in order.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn facts_from(&self, first: u64, limit: u32) -> Result<(u64, Vec<FactRow>), StoreError> {
        let mut reader = self.pool.begin().await?;
        let count: i64 = query_scalar("SELECT count(*) FROM facts WHERE sequence >= ?")
            .bind(first.cast_signed())
            .fetch_one(&mut *reader)
            .await?;
        let select = "SELECT sequence, place, at, type, event, actor, host, fact FROM facts \
                      WHERE sequence >= ? ORDER BY sequence, place LIMIT ?";
        let rows = query(select).bind(first.cast_signed()).bind(limit).fetch(&mut *reader);
        Ok((count.cast_unsigned(), collect(rows, FactRow::read).await?))
    }

    /// Every command that has been seen in the control stream and not been retracted since, in the stream's order.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn commands(&self) -> Result<Vec<CommandRow>, StoreError> {
        let select = "SELECT json_extract(fact, '$.event.sequence') AS sequence, host, \
                      json_extract(fact, '$.event.action') AS action FROM facts \
                      WHERE type = 'host' AND event = 'command-sent' AND json_extract(fact, '$.event.sequence') \
                      NOT IN (SELECT json_extract(fact, '$.sequence') FROM facts WHERE type = 'command-retracted') \
                      ORDER BY 1";
        collect(query(select).fetch(&self.pool), CommandRow::read).await
    }
}

async fn hosts(reader: &mut SqliteConnection, run: &RunId) -> Result<Vec<HostRow>, StoreError> {
    let select = "SELECT host, application, lock_group, status, since, reason, reason_kind, command_action, \
                  command_sequence, started_at, ended_at FROM run_hosts WHERE run = ? ORDER BY host";
    collect(query(select).bind(run.as_str()).fetch(reader), HostRow::read).await
}

async fn facts(
    reader: &mut SqliteConnection,
    run: &RunId,
    limit: u32,
    after: Option<FactCursor>,
) -> Result<FactPage, StoreError> {
    let (sequence, place) =
        after.map_or((-1, -1), |after| (after.sequence.cast_signed(), after.place.cast_signed()));
    let select = "SELECT sequence, place, at, type, event, actor, host, fact FROM facts \
                  WHERE run = ? AND (sequence, place) > (?, ?) ORDER BY sequence, place LIMIT ? + 1";
    let rows = query(select).bind(run.as_str()).bind(sequence).bind(place).bind(limit).fetch(reader);
    let items = collect(rows, FactRow::read).await?;
    let (items, next) = page(items, limit, FactRow::cursor);
    Ok(FactPage { items, next })
}

/// Reads rows as they come: a large run's would otherwise be held twice, and read in one go on a thread that the run
/// needs too.
async fn collect<T>(
    mut rows: impl Stream<Item = sqlx::Result<SqliteRow>> + Unpin,
    read: impl Fn(&SqliteRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut items = Vec::new();
    while let Some(row) = rows.try_next().await? {
        items.push(read(&row)?);
    }
    Ok(items)
}

/// Of up to `limit` + 1 rows the first `limit`, and the cursor to go on from when there are more.
fn page<T, C>(mut items: Vec<T>, limit: u32, cursor: impl Fn(&T) -> C) -> (Vec<T>, Option<C>) {
    let limit = limit as usize;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(cursor);
    (items, next)
}

impl RunRow {
    fn read(row: &SqliteRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            trigger_kind: row.try_get("trigger_kind")?,
            actor: row.try_get("actor")?,
            started_at: row::time(row, "started_at")?,
            not_after: row::time(row, "not_after")?,
            phase: row.try_get("phase")?,
            rollout: json("rollout", row.try_get("rollout")?)?,
            stopping: row
                .try_get::<Option<_>, _>("stopping")?
                .map(|text| json("stopping", text))
                .transpose()?,
            ended_at: row::optional_time(row, "ended_at")?,
            result: row.try_get("result")?,
            counts: json("counts", row.try_get("counts")?)?,
        })
    }
}

impl HostRow {
    fn read(row: &SqliteRow) -> Result<Self, StoreError> {
        Ok(Self {
            host: row.try_get("host")?,
            application: row.try_get("application")?,
            group: row.try_get("lock_group")?,
            status: row.try_get("status")?,
            since: row::time(row, "since")?,
            reason: row.try_get("reason")?,
            reason_kind: row.try_get("reason_kind")?,
            command_action: row.try_get("command_action")?,
            command_sequence: row.try_get("command_sequence")?,
            started_at: row::optional_time(row, "started_at")?,
            ended_at: row::optional_time(row, "ended_at")?,
        })
    }
}

impl CommandRow {
    fn read(row: &SqliteRow) -> Result<Self, StoreError> {
        Ok(Self {
            sequence: row.try_get("sequence")?,
            host: row.try_get("host")?,
            action: row.try_get("action")?,
        })
    }
}

impl FactRow {
    /// Its place.
    pub const fn cursor(&self) -> FactCursor {
        FactCursor { sequence: self.sequence, place: self.place }
    }

    fn read(row: &SqliteRow) -> Result<Self, StoreError> {
        Ok(Self {
            sequence: row.try_get("sequence")?,
            place: row.try_get("place")?,
            at: row::time(row, "at")?,
            name: row.try_get("type")?,
            event: row.try_get("event")?,
            actor: row.try_get("actor")?,
            host: row.try_get("host")?,
            fact: json("fact", row.try_get("fact")?)?,
        })
    }
}

fn json(column: &'static str, text: String) -> Result<Box<RawValue>, StoreError> {
    let bad = |error: serde_json::Error| StoreError::BadValue { column, value: error.to_string() };
    RawValue::from_string(text).map_err(bad)
}

pub(crate) async fn read_position(connection: &mut SqliteConnection) -> Result<Option<Position>, StoreError> {
    let query =
        query("SELECT sequence, append_id, control, journal_created_at, control_created_at FROM position");
    let row = query.fetch_optional(connection).await?;
    row.map(|row| {
        Ok(Position {
            sequence: row.try_get("sequence")?,
            append_id: AppendId::new(row.try_get("append_id")?),
            control: row.try_get("control")?,
            streams: Streams {
                journal_created_at: row::time(&row, "journal_created_at")?,
                control_created_at: row::time(&row, "control_created_at")?,
            },
        })
    })
    .transpose()
}
