//! The writing SQL.

use std::collections::BTreeSet;

use os_upgrade_console::describe;
use os_upgrade_kernel::run::Ended;
use os_upgrade_kernel::{HostStatus, Reason, Run, RunHost, State};
use os_upgrade_protocol::{HostName, RunId};
use os_upgrade_shell::journal::Committed;
use serde::Serialize;
use sqlx::sqlite::{Sqlite, SqliteConnection};
use sqlx::{QueryBuilder, query, query_scalar};

use super::changes::{Changes, EndedRun, FactEntry, RunChange, counted_as};
use super::position::Position;
use super::time::to_text;

/// The result of a run whose end is in a gap. It has no end time, and its hosts are as they were last known.
const RESULT_UNKNOWN: &str = "unknown";

/// The most rows per statement. More would gain nothing; each number of rows is a statement of its own to prepare.
const ROWS_PER_STATEMENT: usize = 64;

/// Writes all rows of `changes`.
pub(super) async fn changes(connection: &mut SqliteConnection, changes: &Changes) -> sqlx::Result<()> {
    for run in &changes.base_runs {
        count_ends(connection, run).await?;
    }
    for change in &changes.runs {
        run(connection, &change.run).await?;
        hosts(connection, change).await?;
    }
    for entries in changes.facts.chunks(ROWS_PER_STATEMENT) {
        facts(connection, entries).await?;
    }
    for ended in &changes.ended_runs {
        ended_run(connection, ended).await?;
    }
    for (status, count) in &changes.ended_hosts {
        ended_hosts(connection, status, *count).await?;
    }
    Ok(())
}

/// Counts the end of `run`, and those of its hosts, unless the store has them.
async fn count_ends(connection: &mut SqliteConnection, run: &Run) -> sqlx::Result<()> {
    if let Some(Ended { at, result }) = run.ended {
        let ended = "SELECT EXISTS (SELECT 1 FROM runs WHERE id = ? AND ended_at IS NOT NULL)";
        let is_counted: bool = query_scalar(ended).bind(run.id.as_str()).fetch_one(&mut *connection).await?;
        if !is_counted {
            let trigger_kind = counted_as(&run.trigger);
            ended_run(connection, &EndedRun { at, result, trigger_kind }).await?;
        }
    }
    for status in [HostStatus::Upgraded, HostStatus::Failed, HostStatus::TimedOut].map(HostStatus::as_str) {
        let have = "SELECT host FROM run_hosts WHERE run = ? AND status = ?";
        let counted: Vec<String> =
            query_scalar(have).bind(run.id.as_str()).bind(status).fetch_all(&mut *connection).await?;
        let counted: BTreeSet<&str> = counted.iter().map(String::as_str).collect();
        let ended = run.hosts().iter().filter(|(_, host)| host.status.as_str() == status);
        let missing = ended.filter(|(name, _)| !counted.contains(name.as_str())).count();
        if let Ok(missing @ 1..) = u32::try_from(missing) {
            ended_hosts(connection, status, missing).await?;
        }
    }
    Ok(())
}

async fn ended_hosts(connection: &mut SqliteConnection, status: &str, count: u32) -> sqlx::Result<()> {
    let upsert = "INSERT INTO host_totals (status, total) VALUES (?, ?) \
                  ON CONFLICT (status) DO UPDATE SET total = total + excluded.total";
    query(upsert).bind(status).bind(count).execute(connection).await?;
    Ok(())
}

async fn ended_run(connection: &mut SqliteConnection, ended: &EndedRun) -> sqlx::Result<()> {
    let upsert = "INSERT INTO run_totals (result, trigger_kind, total, last_ended_at) VALUES (?, ?, 1, ?) \
                  ON CONFLICT (result, trigger_kind) DO UPDATE SET total = total + 1, \
                  last_ended_at = excluded.last_ended_at";
    query(upsert)
        .bind(ended.result.as_str())
        .bind(ended.trigger_kind)
        .bind(to_text(ended.at))
        .execute(connection)
        .await?;
    Ok(())
}

/// Writes the store's position.
pub(super) async fn position(connection: &mut SqliteConnection, position: &Position) -> sqlx::Result<()> {
    let upsert = "INSERT INTO position \
         (one, sequence, append_id, control, journal_created_at, control_created_at) \
         VALUES (1, ?, ?, ?, ?, ?) ON CONFLICT (one) DO UPDATE SET sequence = excluded.sequence, \
         append_id = excluded.append_id, control = excluded.control";
    query(upsert)
        .bind(position.sequence.cast_signed())
        .bind(position.append_id.as_str())
        .bind(position.control.cast_signed())
        .bind(to_text(position.streams.journal_created_at))
        .bind(to_text(position.streams.control_created_at))
        .execute(connection)
        .await?;
    Ok(())
}

/// Notes that the records after `last` and before `first` are missing.
pub(super) async fn gap(connection: &mut SqliteConnection, last: u64, first: &Committed) -> sqlx::Result<()> {
    query("INSERT INTO gaps (last, next, next_at) VALUES (?, ?, ?)")
        .bind(last.cast_signed())
        .bind(first.sequence.cast_signed())
        .bind(to_text(first.record.at))
        .execute(connection)
        .await?;
    Ok(())
}

/// Notes that it is not known how those runs ended that `state` does not know any more.
pub(super) async fn unknown_results(connection: &mut SqliteConnection, state: &State) -> sqlx::Result<()> {
    let id = |run: Option<&Run>| run.map(|run| run.id.as_str().to_owned());
    query("UPDATE runs SET result = ? WHERE result IS NULL AND id IS NOT ? AND id IS NOT ? AND id IS NOT ?")
        .bind(RESULT_UNKNOWN)
        .bind(id(state.run.as_ref()))
        .bind(id(state.last_run.as_ref()))
        .bind(id(state.last_whole_run.as_deref()))
        .execute(connection)
        .await?;
    Ok(())
}

/// Writes the state before the first record.
pub(super) async fn base(connection: &mut SqliteConnection, first: &Committed) -> sqlx::Result<()> {
    query("INSERT OR REPLACE INTO base (one, sequence, state) VALUES (1, ?, ?)")
        .bind(first.sequence.cast_signed())
        .bind(json(&first.before))
        .execute(connection)
        .await?;
    Ok(())
}

async fn run(connection: &mut SqliteConnection, run: &Run) -> sqlx::Result<()> {
    let upsert = "INSERT INTO runs (id, trigger_kind, actor, reason, started_at, not_after, phase, rollout, stopping, \
         ended_at, result, counts, targeted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
         ON CONFLICT (id) DO UPDATE SET phase = excluded.phase, stopping = excluded.stopping, \
         ended_at = excluded.ended_at, result = excluded.result, counts = excluded.counts";
    query(upsert)
        .bind(run.id.as_str())
        .bind(run.trigger.kind())
        .bind(run.trigger.actor())
        .bind(run.trigger.reason())
        .bind(to_text(run.started_at))
        .bind(to_text(run.not_after))
        .bind(run.phase.as_str())
        .bind(json(&run.rollout))
        .bind(run.stopping.as_ref().map(json))
        .bind(run.ended.map(|ended| to_text(ended.at)))
        .bind(run.ended.map(|ended| ended.result.as_str()))
        .bind(json(&run.counts()))
        .bind(run.trigger.is_targeted())
        .execute(connection)
        .await?;
    Ok(())
}

async fn hosts(connection: &mut SqliteConnection, change: &RunChange) -> sqlx::Result<()> {
    let rows: Vec<_> = change
        .hosts
        .iter()
        .filter_map(|(name, started)| Some((name, change.run.host(name)?, started.map(to_text))))
        .collect();
    for rows in rows.chunks(ROWS_PER_STATEMENT) {
        host_rows(connection, &change.run, rows).await?;
    }
    Ok(())
}

async fn host_rows(
    connection: &mut SqliteConnection,
    run: &Run,
    rows: &[(&HostName, &RunHost, Option<String>)],
) -> sqlx::Result<()> {
    let mut insert: QueryBuilder<Sqlite> = QueryBuilder::new(
        "INSERT INTO run_hosts (run, host, application, lock_group, status, since, reason, reason_kind, \
         reason_json, command_action, command_sequence, started_at, ended_at) ",
    );
    insert.push_values(rows, |mut row, (name, host, started)| {
        let reason = host.reason.as_ref();
        let command = host.command;
        row.push_bind(run.id.as_str())
            .push_bind(name.as_str())
            .push_bind(host.application.as_str())
            .push_bind(host.group.as_str())
            .push_bind(host.status.as_str())
            .push_bind(to_text(host.since))
            .push_bind(reason.map(|reason| describe(reason).to_string()))
            .push_bind(reason.map(Reason::kind))
            .push_bind(reason.map(json))
            .push_bind(command.map(|command| command.action.as_str()))
            .push_bind(command.and_then(|command| command.sequence).map(u64::cast_signed))
            .push_bind(started.clone())
            .push_bind(host.status.is_final().then(|| to_text(host.since)));
    });
    // A host's slot is granted once in a run; later batches must not erase its time.
    insert.push(
        " ON CONFLICT (run, host) DO UPDATE SET status = excluded.status, since = excluded.since, \
         reason = excluded.reason, reason_kind = excluded.reason_kind, reason_json = excluded.reason_json, \
         command_action = excluded.command_action, command_sequence = excluded.command_sequence, \
         started_at = coalesce(excluded.started_at, started_at), ended_at = excluded.ended_at",
    );
    insert.build().execute(connection).await?;
    Ok(())
}

async fn facts(connection: &mut SqliteConnection, entries: &[FactEntry]) -> sqlx::Result<()> {
    let mut insert: QueryBuilder<Sqlite> = QueryBuilder::new(
        "INSERT INTO facts (sequence, place, at, type, event, actor, run, host, list, fact) ",
    );
    insert.push_values(entries, |mut row, entry| {
        row.push_bind(entry.sequence.cast_signed())
            .push_bind(entry.place)
            .push_bind(to_text(entry.at))
            .push_bind(entry.name)
            .push_bind(entry.event)
            .push_bind(entry.actor.as_deref())
            .push_bind(entry.run.as_ref().map(RunId::as_str))
            .push_bind(entry.host.as_ref().map(HostName::as_str))
            .push_bind(entry.list)
            .push_bind(entry.json.as_str());
    });
    insert.build().execute(connection).await?;
    Ok(())
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("stored values have string keys and no fallible part")
}
