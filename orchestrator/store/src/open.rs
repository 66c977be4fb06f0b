//! Opening the file, with the checks before anything is written to it.

use std::path::Path;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous,
};
use sqlx::{ConnectOptions as _, Connection as _, SqlSafeStr as _};

use super::error::OpenError;

/// "OSUP", as the first migration writes it.
const APPLICATION_ID: u32 = 0x4F53_5550;

/// How long a connection waits for another's lock.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Every migration: number, name, SQL. Append only: a released migration never changes, not even in its comments.
const MIGRATIONS: [(i64, &str, &str); 3] = [
    (16, "schema", include_str!("../../../migrations/0016_schema.sql")),
    (17, "lists", include_str!("../../../migrations/0017_lists.sql")),
    (18, "targeted", include_str!("../../../migrations/0018_targeted.sql")),
];

/// The oldest schema that is brought up to date. Builds that were never released made it in steps; older ones stop before it.
const OLDEST: i64 = 15;

/// The options of every connection to the file at `path`.
pub(super) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        .disable_statement_logging()
}

/// Opens or creates the file at `path` for writing, and checks that it is the store of `site`.
pub(super) async fn open(path: &Path, site: &str) -> Result<SqliteConnection, OpenError> {
    let error = |source| OpenError::of(path, source);
    // Before the owner is known nothing is changed, not even the journal mode.
    let mut connection = options(path).create_if_missing(true).connect().await.map_err(error)?;
    check_owner(&mut connection, path, site).await?;
    connection.close().await.map_err(error)?;
    // What a power cut takes from a projection is read from the journal again, so NORMAL is enough.
    let mut connection = options(path)
        // It is written to the file each time that it is set.
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .connect()
        .await
        .map_err(error)?;
    migrate(&mut connection, path).await?;
    let written = sqlx::query("INSERT INTO site (one, name) VALUES (1, ?) ON CONFLICT DO NOTHING").bind(site);
    written.execute(&mut connection).await.map_err(error)?;
    // If the row already existed, nothing has been written so far: check that the file can be written.
    let probe = connection.begin_with("BEGIN IMMEDIATE").await.map_err(error)?;
    probe.rollback().await.map_err(error)?;
    Ok(connection)
}

/// Opens the file at `path` for reading only, and checks that it is the store of `site`; `None` if there is no file or
/// it is empty. Nothing is created or changed.
pub(super) async fn open_read_only(path: &Path, site: &str) -> Result<Option<SqliteConnection>, OpenError> {
    let error = |source| OpenError::of(path, source);
    match std::fs::metadata(path) {
        Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(error(source.into())),
        Ok(found) if found.len() == 0 => return Ok(None),
        Ok(_) => {}
    }
    let mut connection = read_only(path).connect().await.map_err(error)?;
    check_owner(&mut connection, path, site).await?;
    Ok(Some(connection))
}

/// To read the file at `path`, which this process does not write, without leaving anything beside it.
pub(super) fn read_only(path: &Path) -> SqliteConnectOptions {
    // Without a write-ahead log no process has it open, and an immutable connection creates none.
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let in_use = Path::new(&log).exists();
    options(path).read_only(true).immutable(!in_use)
}

/// Checks that the file is empty or the store of `site`, with a schema that this program reads.
async fn check_owner(connection: &mut SqliteConnection, path: &Path, site: &str) -> Result<(), OpenError> {
    let error = |source| OpenError::of(path, source);
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE '\\_sqlx\\_%' ESCAPE '\\' \
                  AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let tables: i64 = sqlx::query_scalar(tables).fetch_one(&mut *connection).await.map_err(error)?;
    let stored: i32 =
        sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *connection).await.map_err(error)?;
    let application_id = stored.cast_unsigned();
    if application_id == 0 && tables == 0 {
        return Ok(());
    }
    if application_id != APPLICATION_ID {
        return Err(OpenError::Foreign { path: path.to_owned(), application_id });
    }
    check_version(connection, path).await?;
    let found: Option<String> =
        sqlx::query_scalar("SELECT name FROM site").fetch_optional(connection).await.map_err(error)?;
    match found {
        Some(found) if found != site => {
            Err(OpenError::OtherSite { path: path.to_owned(), found, expected: site.to_owned() })
        }
        Some(_) | None => Ok(()),
    }
}

async fn check_version(connection: &mut SqliteConnection, path: &Path) -> Result<(), OpenError> {
    let newest: Option<i64> = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations")
        .fetch_one(connection)
        .await
        .map_err(|source| OpenError::of(path, source))?;
    let known = MIGRATIONS.last().map_or(0, |(version, ..)| *version);
    match newest {
        Some(found) if found > known => Err(OpenError::Newer { path: path.to_owned(), found, known }),
        Some(found) if found < OLDEST => {
            Err(OpenError::Older { path: path.to_owned(), found, first: OLDEST })
        }
        Some(_) | None => Ok(()),
    }
}

async fn migrate(connection: &mut SqliteConnection, path: &Path) -> Result<(), OpenError> {
    let migration = |(version, name, sql): (i64, &'static str, &'static str)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    let mut migrator = Migrator::with_migrations(MIGRATIONS.map(migration).to_vec());
    // The steps that made the oldest schema are not among them.
    migrator.set_ignore_missing(true);
    migrator.run_direct(None, connection, false).await.map_err(|error| {
        if let MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) = error {
            OpenError::of(path, source)
        } else {
            OpenError::Schema { path: path.to_owned(), source: error }
        }
    })
}
