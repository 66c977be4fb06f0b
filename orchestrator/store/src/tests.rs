//! The store against real files, with records that the real kernel decided.

mod files;
mod fold;
mod follow;
mod prune;
mod records;

use std::path::{Path, PathBuf};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{Column as _, ConnectOptions as _, Row as _, ValueRef as _};
use tempfile::TempDir;

use super::*;

/// A store in a temporary directory.
struct TestStore {
    directory: TempDir,
    projector: Projector,
}

impl TestStore {
    async fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let projector = Projector::open(&directory.path().join("store.sqlite"), "site").await.unwrap();
        Self { directory, projector }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("store.sqlite")
    }
}

fn streams() -> Streams {
    Streams {
        journal_created_at: "2026-11-01T00:00:00.000000001Z".parse().unwrap(),
        control_created_at: "2026-11-01T00:00:00.5Z".parse().unwrap(),
    }
}

async fn connect(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new().filename(path).create_if_missing(true).connect().await.unwrap()
}

/// The rows of `select`, with columns joined by ` | `.
async fn rows(path: &Path, select: &'static str) -> Vec<String> {
    let rows = sqlx::query(select).fetch_all(&mut connect(path).await).await.unwrap();
    rows.iter().map(row_text).collect()
}

fn row_text(row: &SqliteRow) -> String {
    let column = |index: usize| {
        if row.try_get_raw(index).unwrap().is_null() {
            "-".to_owned()
        } else if let Ok(number) = row.try_get::<i64, _>(index) {
            number.to_string()
        } else {
            row.get::<String, _>(index)
        }
    };
    row.columns().iter().map(|found| column(found.ordinal())).collect::<Vec<_>>().join(" | ")
}

/// The whole content of the file.
async fn dump(path: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for select in [
        "SELECT * FROM site",
        "SELECT * FROM position",
        "SELECT * FROM base",
        "SELECT * FROM runs ORDER BY number",
        "SELECT * FROM run_hosts ORDER BY run, host",
        "SELECT * FROM facts ORDER BY sequence, place",
        "SELECT * FROM run_totals",
        "SELECT * FROM host_totals",
    ] {
        all.extend(rows(path, select).await);
    }
    all
}
