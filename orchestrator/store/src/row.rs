//! Reading times and positions from columns.

use chrono::{DateTime, Utc};
use os_upgrade_kernel::FactCursor;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::error::StoreError;

fn from_text(column: &'static str, text: &str) -> Result<DateTime<Utc>, StoreError> {
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.to_utc())
        .map_err(|_| StoreError::BadValue { column, value: text.to_owned() })
}

/// The time in `column`.
pub(super) fn time(row: &SqliteRow, column: &'static str) -> Result<DateTime<Utc>, StoreError> {
    from_text(column, row.try_get(column)?)
}

/// The time in `column`; `None` if it is NULL.
pub(super) fn optional_time(
    row: &SqliteRow,
    column: &'static str,
) -> Result<Option<DateTime<Utc>>, StoreError> {
    row.try_get::<Option<&str>, _>(column)?.map(|text| from_text(column, text)).transpose()
}

/// The position in the columns `sequence` and `place`.
pub(super) fn cursor(row: &SqliteRow) -> Result<FactCursor, StoreError> {
    Ok(FactCursor { sequence: row.try_get("sequence")?, place: row.try_get("place")? })
}
