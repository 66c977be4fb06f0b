//! Reading the facts onwards from a position: which positions a reader may go on from, and what comes after one.

use chrono::{DateTime, Utc};
use futures::TryStreamExt as _;
use os_upgrade_kernel::FactCursor;
use sqlx::sqlite::SqliteConnection;
use sqlx::{query, query_scalar};

use super::error::StoreError;
use super::history::{FACT_COLUMNS, FactRow, History, read_position};
use super::row;

/// The end of the facts, and the journal that they are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// When the journal was created. Another time is another journal, whatever its sequences.
    pub journal_created_at: DateTime<Utc>,
    /// The last fact.
    pub last: FactCursor,
}

/// Whether a reader that has read the facts up to a position can go on from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    /// Every later fact is here.
    Possible,
    /// The position is after the last record that this store has.
    Ahead,
    /// Later facts are missing: they were pruned, or are in a gap, or precede the store.
    Incomplete,
}

/// What comes after a position.
#[derive(Debug)]
pub enum Following {
    /// The next facts, in order; none if it is the end.
    Facts(Vec<FactRow>),
    /// Records are missing, up to the one at this sequence.
    Gap {
        /// The sequence of the first record after the gap.
        next: u64,
    },
}

/// How much is read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    /// The most facts.
    pub facts: u32,
    /// As soon as they have so many bytes, none is added.
    pub bytes: usize,
}

impl History {
    /// Waits until the store has records after `sequence`, and returns the sequence of its last one. It never returns once
    /// the projector has ended.
    pub async fn advanced(&self, sequence: u64) -> u64 {
        if let Some(mut status) = self.status().cloned()
            && let Ok(status) = status.wait_for(|status| status.sequence > sequence).await
        {
            return status.sequence;
        }
        std::future::pending().await
    }

    /// The end of the facts; `None` without facts.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn end(&self) -> Result<Option<End>, StoreError> {
        let mut reader = self.pool().begin().await?;
        let Some(position) = read_position(&mut reader).await? else { return Ok(None) };
        let select = "SELECT sequence, place FROM facts ORDER BY sequence DESC, place DESC LIMIT 1";
        let last = query(select).fetch_optional(&mut *reader).await?;
        let last = last.map(|last| row::cursor(&last)).transpose()?;
        Ok(last.map(|last| End { journal_created_at: position.streams.journal_created_at, last }))
    }

    /// Whether a reader that has everything up to `after` can go on from there.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn resumption(&self, after: FactCursor) -> Result<Resumption, StoreError> {
        let mut reader = self.pool().begin().await?;
        let position = read_position(&mut reader).await?;
        if position.is_none_or(|position| after.sequence > position.sequence) {
            return Ok(Resumption::Ahead);
        }
        let is_gap_after: bool = query_scalar("SELECT count(*) > 0 FROM gaps WHERE last >= ?")
            .bind(after.sequence.cast_signed())
            .fetch_one(&mut *reader)
            .await?;
        let begins_before = match pruned(&mut reader).await? {
            Some(pruned) => pruned <= after,
            None => {
                query_scalar("SELECT count(*) > 0 FROM facts WHERE (sequence, place) <= (?, ?)")
                    .bind(after.sequence.cast_signed())
                    .bind(after.place.cast_signed())
                    .fetch_one(&mut *reader)
                    .await?
            }
        };
        Ok(if begins_before && !is_gap_after { Resumption::Possible } else { Resumption::Incomplete })
    }

    /// The first fact from which on nothing is missing; `None` if there is none.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn earliest(&self) -> Result<Option<FactCursor>, StoreError> {
        let mut reader = self.pool().begin().await?;
        let after_gaps: i64 =
            query_scalar("SELECT coalesce(max(next), 0) FROM gaps").fetch_one(&mut *reader).await?;
        let pruned = pruned(&mut reader).await?.unwrap_or(FactCursor { sequence: 0, place: 0 });
        let select = "SELECT sequence, place FROM facts WHERE sequence >= ? AND (sequence, place) > (?, ?) \
                      ORDER BY sequence, place LIMIT 1";
        let first = query(select)
            .bind(after_gaps)
            .bind(pruned.sequence.cast_signed())
            .bind(pruned.place.cast_signed())
            .fetch_optional(&mut *reader)
            .await?;
        first.map(|first| row::cursor(&first)).transpose()
    }

    /// The facts after `after`, in order, up to the next gap, and no more than a `portion` of them.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn following(&self, after: FactCursor, portion: Portion) -> Result<Following, StoreError> {
        // In one transaction, so that a gap is seen no later than what is after it.
        let mut reader = self.pool().begin().await?;
        let gap: Option<(i64, i64)> =
            sqlx::query_as("SELECT last, next FROM gaps WHERE last >= ? ORDER BY last LIMIT 1")
                .bind(after.sequence.cast_signed())
                .fetch_optional(&mut *reader)
                .await?;
        let until = gap.map_or(i64::MAX, |(last, _)| last);
        let facts = facts_between(&mut reader, after, until, portion).await?;
        Ok(match gap {
            Some((_, next)) if facts.is_empty() => Following::Gap { next: next.cast_unsigned() },
            Some(_) | None => Following::Facts(facts),
        })
    }

    /// The number of facts from record `first` on, and at most `limit` of them in order.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn facts_from(&self, first: u64, limit: u32) -> Result<(u64, Vec<FactRow>), StoreError> {
        let mut reader = self.pool().begin().await?;
        let count: i64 = query_scalar("SELECT count(*) FROM facts WHERE sequence >= ?")
            .bind(first.cast_signed())
            .fetch_one(&mut *reader)
            .await?;
        let after = FactCursor::before(FactCursor { sequence: first, place: 0 });
        let portion = Portion { facts: limit, bytes: usize::MAX };
        let facts = facts_between(&mut reader, after, i64::MAX, portion).await?;
        Ok((count.cast_unsigned(), facts))
    }
}

/// The last fact of all that were pruned; `None` if none was.
async fn pruned(reader: &mut SqliteConnection) -> Result<Option<FactCursor>, StoreError> {
    let pruned = query("SELECT sequence, place FROM pruned").fetch_optional(reader).await?;
    pruned.map(|pruned| row::cursor(&pruned)).transpose()
}

async fn facts_between(
    reader: &mut SqliteConnection,
    after: FactCursor,
    until: i64,
    portion: Portion,
) -> Result<Vec<FactRow>, StoreError> {
    let select = format!(
        "SELECT {FACT_COLUMNS} FROM facts WHERE (sequence, place) > (?, ?) AND sequence <= ? \
         ORDER BY sequence, place LIMIT ?"
    );
    let mut rows = query(sqlx::AssertSqlSafe(select))
        .bind(after.sequence.cast_signed())
        .bind(after.place.cast_signed())
        .bind(until)
        .bind(portion.facts)
        .fetch(reader);
    let mut facts = Vec::new();
    let mut bytes = 0_usize;
    while bytes < portion.bytes
        && let Some(row) = rows.try_next().await?
    {
        let fact = FactRow::read(&row)?;
        bytes = bytes.saturating_add(fact.fact.get().len());
        facts.push(fact);
    }
    Ok(facts)
}
