//! The reader: runs newest first, and one run with its hosts and facts. Its connections cannot write.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};
use futures::{Stream, TryStreamExt as _};
use os_upgrade_kernel::FactCursor;
use os_upgrade_kernel::fact::{AboutCommand, AuditList, Fact};
use os_upgrade_protocol::{Action, HostName, RunId};
use os_upgrade_shell::journal::AppendId;
use serde_json::value::RawValue;
use sqlx::query::Query;
use sqlx::sqlite::{
    Sqlite, SqliteArguments, SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions, SqliteRow,
};
use sqlx::{Row as _, query, query_scalar};
use tokio::sync::watch;

use super::error::{OpenError, StoreError};
use super::extent::{self, Extent};
use super::position::{Position, ProjectorStatus, Streams};
use super::time::to_text;
use super::totals::{self, Totals};
use super::{open, row};

/// The most lists read at once; further ones wait.
const CONNECTIONS_MAX: u32 = 4;

/// Reads what the projector has written. Clones are cheap and share the connections.
#[derive(Debug, Clone)]
pub struct History {
    pool: SqlitePool,
    /// The projector's progress; `None` for a reader without one.
    status: Option<watch::Receiver<ProjectorStatus>>,
}

/// A run, without its hosts.
#[derive(Debug)]
pub struct RunRow {
    pub id: String,
    /// The kind of its trigger, one word.
    pub trigger_kind: String,
    /// Who started it; `None` for an automatic start.
    pub actor: Option<String>,
    /// Why, as the operator says.
    pub reason: Option<String>,
    /// When it started.
    pub started_at: DateTime<Utc>,
    /// Its deadline.
    pub not_after: DateTime<Utc>,
    /// Its phase, or its last one.
    pub phase: String,
    /// Its rollout, as a JSON object like in the configuration.
    pub rollout: Box<RawValue>,
    /// Why no further host is started, as a JSON object; `None` unless the run is stopping.
    pub stopping: Option<Box<RawValue>>,
    /// When it ended; `None` while it is under way.
    pub ended_at: Option<DateTime<Utc>>,
    /// Its result, one word; `None` while it is under way. It is `unknown` if its end is in a gap of this store.
    pub result: Option<String>,
    /// A JSON object of status to number of hosts, without zeros.
    pub counts: Box<RawValue>,
    /// Whether it is a run of chosen hosts.
    pub targeted: bool,
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
    /// Its status, one word.
    pub status: String,
    /// When it got that status.
    pub since: DateTime<Utc>,
    /// Why it did not succeed, as a sentence.
    pub reason: Option<String>,
    /// The kind of the reason, one word.
    pub reason_kind: Option<String>,
    /// The reason in JSON, as it is journaled.
    pub reason_json: Option<String>,
    /// The action of its current or last command.
    pub command_action: Option<String>,
    /// The sequence of that command in the control stream; `None` until it has been seen there.
    pub command_sequence: Option<u64>,
    /// When its slot was granted; `None` before.
    pub started_at: Option<DateTime<Utc>>,
    /// When its part in the run ended; `None` before.
    pub ended_at: Option<DateTime<Utc>>,
}

/// A command that has been seen in the control stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRow {
    /// Its sequence in the control stream.
    pub sequence: u64,
    /// The host to which it was sent.
    pub host: String,
    pub action: Action,
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
    pub name: String,
    /// The name of the host event, for a fact about a host in a run.
    pub event: Option<String>,
    /// Who caused it, if a caller did.
    pub actor: Option<String>,
    /// The run that it is about, if any.
    pub run: Option<String>,
    /// The host that it is about, if any.
    pub host: Option<String>,
    /// The fact as a JSON object, as in the journal.
    pub fact: Box<RawValue>,
}

/// Which runs to list: those for which everything that is given holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The run has ended with this result, one word.
    pub result: Option<String>,
    /// It started at this time, or later.
    pub from: Option<DateTime<Utc>>,
    /// It started before this time.
    pub to: Option<DateTime<Utc>>,
    /// This host is in it.
    pub host: Option<HostName>,
}

/// A page of runs, newest first.
#[derive(Debug)]
pub struct RunPage {
    pub items: Vec<RunRow>,
    /// The id of the last one, if older runs follow.
    pub next: Option<String>,
}

/// A page of facts.
#[derive(Debug)]
pub struct FactPage {
    pub items: Vec<FactRow>,
    /// The cursor of the last one, if more follow.
    pub next: Option<FactCursor>,
}

/// A kind of audited facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audit {
    /// Slots that operators held and released.
    Slots,
    /// Those, and slots that FleetLock clients were granted and released.
    AllSlots,
    /// The configuration replaced or deleted.
    Configuration,
    /// Secrets kept and removed, and new keys of the strongbox.
    Strongbox,
    /// Hosts approved, withdrawn and removed, what was approved with them, and nodes that operators had uncordoned.
    Enrolment,
    /// Runs that were due and did not start.
    MissedRuns,
    /// What operators did about the reboot queue, and what became of its entries.
    Reboots,
    /// Units submitted, stopped, started and destroyed.
    Units,
}

impl Audit {
    /// Every kind.
    #[cfg(test)]
    pub(super) const ALL: [Self; 8] = [
        Self::Slots,
        Self::AllSlots,
        Self::Configuration,
        Self::Strongbox,
        Self::Enrolment,
        Self::MissedRuns,
        Self::Reboots,
        Self::Units,
    ];

    /// The lists in which these facts are.
    const fn lists(self) -> &'static [AuditList] {
        match self {
            Self::Slots => &[AuditList::Holds],
            Self::AllSlots => &[AuditList::Holds, AuditList::Locks],
            Self::Configuration => &[AuditList::Configuration],
            Self::Strongbox => &[AuditList::Strongbox],
            Self::Enrolment => &[AuditList::Enrolment],
            Self::MissedRuns => &[AuditList::MissedRuns],
            Self::Reboots => &[AuditList::Reboots],
            Self::Units => &[AuditList::Units],
        }
    }

    /// The SQL that chooses them, by an index that has them in order.
    fn from(self) -> String {
        let names: Vec<String> =
            self.lists().iter().map(|list| format!("'{}'", <&str>::from(list))).collect();
        match names.as_slice() {
            [name] => format!("FROM facts INDEXED BY facts_of_lists WHERE list = {name}"),
            names => format!("FROM facts INDEXED BY facts_of_slots WHERE list IN ({})", names.join(", ")),
        }
    }

    /// The SQL that reads a page, newest first. Its parameters: sequence and place of the fact before the page, and the
    /// page's length.
    pub(super) fn select(self) -> String {
        format!(
            "SELECT {FACT_COLUMNS} {} AND (sequence, place) < (?, ?) ORDER BY sequence DESC, place DESC LIMIT ? + 1",
            self.from()
        )
    }

    /// The SQL that counts them.
    pub(super) fn select_count(self) -> String {
        format!("SELECT count(*) {}", self.from())
    }
}

/// A run with its hosts, by name, and its facts.
#[derive(Debug)]
pub struct RunDetail {
    pub run: RunRow,
    /// All of its hosts.
    pub hosts: Vec<HostRow>,
    /// Facts about it.
    pub facts: FactPage,
}

/// A host of a run, and the facts about it there.
#[derive(Debug)]
pub struct HostDetail {
    /// When the run started.
    pub run_started_at: DateTime<Utc>,
    /// When the next run started; `None` if it is the last one.
    pub next_run_at: Option<DateTime<Utc>>,
    pub host: HostRow,
    /// The facts, in order; at most 1 000, the first ones.
    pub facts: Vec<FactRow>,
}

/// The most facts about one host of a run. A host that is upgraded has some ten.
const HOST_FACTS_MAX: u32 = 1_000;
const RUN_COLUMNS: &str = "id, trigger_kind, actor, reason, started_at, not_after, phase, rollout, stopping, ended_at, \
                           result, counts, targeted";
/// The condition of a [`RunFilter`], with its parameters from `?1` to `?4`.
const RUN_CONDITION: &str = "(?1 IS NULL OR result = ?1) AND (?2 IS NULL OR started_at >= ?2) \
                             AND (?3 IS NULL OR started_at < ?3) AND (?4 IS NULL OR EXISTS \
                             (SELECT 1 FROM run_hosts WHERE run_hosts.run = runs.id AND host = ?4))";
const HOST_COLUMNS: &str = "host, application, lock_group, status, since, reason, reason_kind, reason_json, command_action, \
                            command_sequence, started_at, ended_at";

/// The columns of a [`FactRow`].
pub(super) const FACT_COLUMNS: &str = "sequence, place, at, type, event, actor, run, host, fact";

impl History {
    /// Opens the store at `path`, which this process does not write, for reading. Nothing is left beside it. The caller must have
    /// checked it with [`super::fold()`].
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        Self::with(path, open::read_only(path)).await
    }

    /// Opens the store at `path`, which a projector of this process writes.
    pub(super) async fn of_projector(path: &Path) -> Result<Self, OpenError> {
        Self::with(path, open::options(path).read_only(true)).await
    }

    async fn with(path: &Path, options: SqliteConnectOptions) -> Result<Self, OpenError> {
        let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS_MAX).connect_with(options).await;
        Ok(Self { pool: pool.map_err(|source| OpenError::of(path, source))?, status: None })
    }

    /// The connections.
    pub(super) const fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    /// The projector's progress; `None` for a reader without one.
    pub(super) const fn status(&self) -> Option<&watch::Receiver<ProjectorStatus>> {
        self.status.as_ref()
    }

    /// Adds the progress of a projector to wait for.
    pub(super) fn with_status(self, status: watch::Receiver<ProjectorStatus>) -> Self {
        Self { status: Some(status), ..self }
    }

    /// Waits until record `sequence` has been applied, the last write failed, the store is being filled, or the projector has ended. That may take
    /// long: the caller must bound it.
    pub async fn wait_for(&self, sequence: u64) {
        if let Some(mut status) = self.status.clone() {
            // An error means that the projector has ended.
            drop(
                status.wait_for(|status| status.failed || status.behind || status.sequence >= sequence).await,
            );
        }
    }

    /// How many messages of the journal the store is behind record `sequence`.
    pub fn behind(&self, sequence: u64) -> u64 {
        self.status.as_ref().map_or(0, |status| sequence.saturating_sub(status.borrow().sequence))
    }

    /// At most `limit` runs, newest first; only those that `filter` lets pass, and those older than `after`, if given.
    ///
    /// # Errors
    /// There is no run `after`, or the store cannot be read.
    pub async fn runs(
        &self,
        filter: &RunFilter,
        limit: u32,
        after: Option<&RunId>,
    ) -> Result<RunPage, StoreError> {
        let mut reader = self.pool.begin().await?;
        let before = match after {
            None => i64::MAX,
            Some(id) => query_scalar("SELECT number FROM runs WHERE id = ?")
                .bind(id.as_str())
                .fetch_optional(&mut *reader)
                .await?
                .ok_or_else(|| StoreError::UnknownRun(id.to_string()))?,
        };
        let select = format!(
            "SELECT {RUN_COLUMNS} FROM runs WHERE {RUN_CONDITION} AND number < ?5 ORDER BY number DESC LIMIT ?6 + 1"
        );
        let select = filter.bind(query(sqlx::AssertSqlSafe(select))).bind(before).bind(limit);
        let rows = select.fetch_all(&mut *reader).await?;
        let items = rows.iter().map(RunRow::read).collect::<Result<_, _>>()?;
        let (items, next) = page(items, limit, |run: &RunRow| run.id.clone());
        Ok(RunPage { items, next })
    }

    /// Run `id` with at most `facts_limit` of its facts, only those after `facts_after`, if given; `None` if there is
    /// no such run.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn run(
        &self,
        id: &RunId,
        facts_limit: u32,
        facts_after: Option<FactCursor>,
    ) -> Result<Option<RunDetail>, StoreError> {
        // In one transaction, so that run, hosts and facts are consistent.
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

    /// What happened to `host` in run `id`; `None` if there is no such run, or the host is not in it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn host_of_run(&self, id: &RunId, host: &HostName) -> Result<Option<HostDetail>, StoreError> {
        let mut reader = self.pool.begin().await?;
        let select = format!("SELECT {HOST_COLUMNS} FROM run_hosts WHERE run = ? AND host = ?");
        let select = query(sqlx::AssertSqlSafe(select)).bind(id.as_str()).bind(host.as_str());
        let Some(row) = select.fetch_optional(&mut *reader).await? else { return Ok(None) };
        let select = "SELECT started_at, (SELECT next.started_at FROM runs AS next WHERE next.number > runs.number \
                      ORDER BY next.number LIMIT 1) AS next_started_at FROM runs WHERE id = ?";
        let run = query(select).bind(id.as_str()).fetch_one(&mut *reader).await?;
        let select = format!(
            "SELECT {FACT_COLUMNS} FROM facts WHERE run = ? AND host = ? ORDER BY sequence, place LIMIT {HOST_FACTS_MAX}"
        );
        let select = query(sqlx::AssertSqlSafe(select)).bind(id.as_str()).bind(host.as_str());
        let facts = collect(select.fetch(&mut *reader), FactRow::read).await?;
        let run_started_at = row::time(&run, "started_at")?;
        let next_run_at = row::optional_time(&run, "next_started_at")?;
        Ok(Some(HostDetail { run_started_at, next_run_at, host: HostRow::read(&row)?, facts }))
    }

    /// The number of runs that `filter` lets pass.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count_runs(&self, filter: &RunFilter) -> Result<u64, StoreError> {
        let select = format!("SELECT count(*) AS count FROM runs WHERE {RUN_CONDITION}");
        let row = filter.bind(query(sqlx::AssertSqlSafe(select))).fetch_one(&self.pool).await?;
        Ok(row.try_get("count")?)
    }

    /// At most `limit` facts of `audit`, newest first; only those before `before`, if given.
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

    /// The number of facts of `audit`.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count_audit(&self, audit: Audit) -> Result<u64, StoreError> {
        let select = sqlx::AssertSqlSafe(audit.select_count());
        let count: i64 = query_scalar(select).fetch_one(&self.pool).await?;
        Ok(count.cast_unsigned())
    }

    /// The position in the journal; `None` if the store is empty.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn position(&self) -> Result<Option<Position>, StoreError> {
        read_position(&mut *self.pool.acquire().await?).await
    }

    /// The time of the newest record since an operator last started a run; `None` without facts. An operator's start says that
    /// the clock is right, whatever was recorded before.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn newest_record(&self) -> Result<Option<DateTime<Utc>>, StoreError> {
        extent::newest_record(&mut *self.pool.acquire().await?).await
    }

    /// What the history covers.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn extent(&self) -> Result<Extent, StoreError> {
        extent::read(&mut *self.pool.acquire().await?).await
    }

    /// How many runs and hosts came to which end.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn totals(&self) -> Result<Totals, StoreError> {
        // In one transaction, so that runs and hosts are consistent.
        totals::read(&mut *self.pool.begin().await?).await
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

    /// Every command that was seen in the control stream and has not been retracted, in the stream's order. Reads all facts about
    /// hosts, of a store with any schema that [`super::fold()`] reads.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn commands(&self) -> Result<Vec<CommandRow>, StoreError> {
        let mut rows = query("SELECT host, fact FROM facts WHERE host IS NOT NULL ORDER BY sequence, place")
            .fetch(&self.pool);
        let mut commands = BTreeMap::new();
        while let Some(row) = rows.try_next().await? {
            // What a newer version knows of commands is not known here.
            let Ok(fact) = serde_json::from_str::<Fact>(row.try_get("fact")?) else { continue };
            let Some(AboutCommand { sequence, seen }) = fact.about().command else { continue };
            match seen {
                Some(action) => {
                    let host = row.try_get("host")?;
                    commands.insert(sequence, CommandRow { sequence, host, action });
                }
                None => drop(commands.remove(&sequence)),
            }
        }
        Ok(commands.into_values().collect())
    }
}

async fn hosts(reader: &mut SqliteConnection, run: &RunId) -> Result<Vec<HostRow>, StoreError> {
    let select = format!("SELECT {HOST_COLUMNS} FROM run_hosts WHERE run = ? ORDER BY host");
    collect(query(sqlx::AssertSqlSafe(select)).bind(run.as_str()).fetch(reader), HostRow::read).await
}

async fn facts(
    reader: &mut SqliteConnection,
    run: &RunId,
    limit: u32,
    after: Option<FactCursor>,
) -> Result<FactPage, StoreError> {
    let (sequence, place) =
        after.map_or((-1, -1), |after| (after.sequence.cast_signed(), after.place.cast_signed()));
    let select = format!(
        "SELECT {FACT_COLUMNS} FROM facts \
         WHERE run = ? AND (sequence, place) > (?, ?) ORDER BY sequence, place LIMIT ? + 1"
    );
    let rows = query(sqlx::AssertSqlSafe(select))
        .bind(run.as_str())
        .bind(sequence)
        .bind(place)
        .bind(limit)
        .fetch(reader);
    let items = collect(rows, FactRow::read).await?;
    let (items, next) = page(items, limit, FactRow::cursor);
    Ok(FactPage { items, next })
}

/// Reads rows one by one. Otherwise the rows of a large run would be in memory twice, and reading them would block the
/// thread.
pub(super) async fn collect<T>(
    mut rows: impl Stream<Item = sqlx::Result<SqliteRow>> + Unpin,
    read: impl Fn(&SqliteRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let mut items = Vec::new();
    while let Some(row) = rows.try_next().await? {
        items.push(read(&row)?);
    }
    Ok(items)
}

/// Of up to `limit` + 1 rows, the first `limit`, and the last one's cursor if there are more.
fn page<T, C>(mut items: Vec<T>, limit: u32, cursor: impl Fn(&T) -> C) -> (Vec<T>, Option<C>) {
    let limit = limit as usize;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(cursor);
    (items, next)
}

impl RunFilter {
    fn bind<'q>(&self, select: Query<'q, Sqlite, SqliteArguments>) -> Query<'q, Sqlite, SqliteArguments> {
        let host = self.host.as_ref().map(|host| host.as_str().to_owned());
        select.bind(self.result.clone()).bind(self.from.map(to_text)).bind(self.to.map(to_text)).bind(host)
    }
}

impl RunRow {
    fn read(row: &SqliteRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            trigger_kind: row.try_get("trigger_kind")?,
            actor: row.try_get("actor")?,
            reason: row.try_get("reason")?,
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
            targeted: row.try_get("targeted")?,
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
            reason_json: row.try_get("reason_json")?,
            command_action: row.try_get("command_action")?,
            command_sequence: row.try_get("command_sequence")?,
            started_at: row::optional_time(row, "started_at")?,
            ended_at: row::optional_time(row, "ended_at")?,
        })
    }
}

impl FactRow {
    /// Its sequence and place.
    pub const fn cursor(&self) -> FactCursor {
        FactCursor { sequence: self.sequence, place: self.place }
    }

    pub(super) fn read(row: &SqliteRow) -> Result<Self, StoreError> {
        Ok(Self {
            sequence: row.try_get("sequence")?,
            place: row.try_get("place")?,
            at: row::time(row, "at")?,
            name: row.try_get("type")?,
            event: row.try_get("event")?,
            actor: row.try_get("actor")?,
            run: row.try_get("run")?,
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
