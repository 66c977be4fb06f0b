//! Unusable files: each has its own error, and none is changed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use os_upgrade_kernel::Fact;
use os_upgrade_protocol::{Action, HostName};
use os_upgrade_test_site::{TestSite, put_config};
use sqlx::migrate::{Migration, MigrationType};

use super::*;

/// The error of opening the file, which must leave it unchanged.
async fn refused(path: &Path) -> OpenError {
    let before = fs::read(path).ok();
    let error = Projector::open(path, "site").await.unwrap_err();
    // A connection that was dropped closes in its own time.
    while path.with_extension("sqlite-wal").exists() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(fs::read(path).ok(), before, "{error}: the file was changed");
    error
}

/// A store of `site`, closed.
async fn store_of(directory: &TempDir, site: &str) -> PathBuf {
    let path = directory.path().join("store.sqlite");
    Projector::open(&path, site).await.unwrap().close().await.unwrap();
    path
}

async fn execute(path: &Path, sql: &'static str) {
    let mut connection = connect(path).await;
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    sqlx::Connection::close(connection).await.unwrap();
}

#[tokio::test]
async fn store_is_created_and_reopened() {
    let directory = TempDir::new().unwrap();
    let path = store_of(&directory, "site").await;
    let mut again = Projector::open(&path, "site").await.unwrap();
    assert_eq!(again.position().await.unwrap(), None);
    assert_eq!(rows(&path, "PRAGMA application_id").await, ["1330861392"]);
    assert_eq!(rows(&path, "SELECT * FROM site").await, ["1 | site"]);
}

#[tokio::test]
async fn empty_file_is_a_new_store() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("store.sqlite");
    fs::write(&path, "").unwrap();
    Projector::open(&path, "site").await.unwrap();
}

#[tokio::test]
async fn unwritable_path_is_refused() {
    let directory = TempDir::new().unwrap();
    for path in [directory.path().to_owned(), directory.path().join("absent/store.sqlite")] {
        let error = refused(&path).await;
        assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("store {} cannot be written", path.display()));
    }
}

/// Root may write in spite of the permissions; then nothing is checked.
#[tokio::test]
async fn read_only_file_is_refused() {
    let directory = TempDir::new().unwrap();
    let path = store_of(&directory, "site").await;
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    if fs::OpenOptions::new().write(true).open(&path).is_err() {
        let error = refused(&path).await;
        assert!(matches!(error, OpenError::NotWritable { .. }), "{error:?}");
    }
}

/// Whoever only reads a store that nobody has open leaves no log beside it, which would belong to whoever ran the program.
#[tokio::test]
async fn reader_of_a_store_leaves_nothing_beside_it() {
    let directory = TempDir::new().unwrap();
    let path = store_of(&directory, "site").await;
    let names = || {
        let entries = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
        entries.collect::<BTreeSet<_>>()
    };
    let before = names();
    let history = History::open(&path).await.unwrap();
    assert_eq!(history.count_audit(Audit::Reboots).await.unwrap(), 0);
    assert_eq!(names(), before);
    drop(history);
    assert_eq!(names(), before);
}

#[tokio::test]
async fn damaged_file_is_refused() {
    let directory = TempDir::new().unwrap();
    let text = directory.path().join("text");
    fs::write(&text, "Lorem ipsum dolor sit amet, ".repeat(100)).unwrap();
    let torn = store_of(&directory, "site").await;
    let content = fs::read(&torn).unwrap();
    fs::write(&torn, &content[..content.len() / 2]).unwrap();
    for path in [text, torn] {
        let error = refused(&path).await;
        assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
    }
}

#[tokio::test]
async fn database_of_another_program_is_refused() {
    let directory = TempDir::new().unwrap();
    for (name, sql, id) in [
        ("unnamed", "CREATE TABLE t (x)", 0),
        ("named", "PRAGMA application_id = 0x12345678; CREATE TABLE t (x)", 0x1234_5678),
        ("named and empty", "PRAGMA application_id = 0x12345678", 0x1234_5678),
    ] {
        let path = directory.path().join(name);
        execute(&path, sql).await;
        let error = refused(&path).await;
        assert!(
            matches!(error, OpenError::Foreign { application_id, .. } if application_id == id),
            "{name}: {error:?}"
        );
    }
}

#[tokio::test]
async fn newer_schema_is_refused() {
    let directory = TempDir::new().unwrap();
    let path = store_of(&directory, "site").await;
    execute(&path, "INSERT INTO _sqlx_migrations VALUES (99, 'later', '2030-01-01', 1, x'00', 1)").await;
    let error = refused(&path).await;
    assert_eq!(
        error.to_string(),
        format!("store {} has schema 99, newer than 18, the newest that this program knows", path.display())
    );
    assert!(matches!(error, OpenError::Newer { found: 99, known: 18, .. }), "{error:?}");
}

/// Facts, each as an older schema has it: without what it is about but for its actor.
const STORED: [&str; 22] = [
    r#"{"type":"hold-placed","group":"edge","id":"n7","actor":"eve","reason":"a new disk"}"#,
    r#"{"type":"holder-released","group":"edge","id":"n7","actor":"eve","reason":"it burnt"}"#,
    r#"{"type":"lock-granted","group":"edge","id":"n7","actor":"token rack"}"#,
    r#"{"type":"lock-released","group":"edge","id":"n7","actor":"token rack"}"#,
    r#"{"type":"lock-awaited","group":"edge","id":"n7","actor":"token rack"}"#,
    r#"{"type":"lock-wait-ended","group":"edge","id":"n7","actor":"token rack"}"#,
    r#"{"type":"config-replaced","config":null,"actor":"eve"}"#,
    r#"{"type":"strongbox-made","check":"c2VhbA=="}"#,
    r#"{"type":"secret-kept","name":"lock-server","sealed":"c2VjcmV0","actor":"eve"}"#,
    r#"{"type":"secret-removed","name":"lock-server","actor":"eve"}"#,
    r#"{"type":"hosts-approved","hosts":["h1","h2"],"actor":"eve"}"#,
    r#"{"type":"host-withdrawn","host":"h1","actor":"eve","reason":"stolen"}"#,
    r#"{"type":"host-removed","host":"h1","actor":"eve","reason":"scrapped","announced":7}"#,
    r#"{"type":"node","host":"h1","step":{"kind":"uncordoned"}}"#,
    r#"{"type":"node","host":"h1","step":{"kind":"uncordon-requested","actor":"eve","reason":"mended"}}"#,
    r#"{"type":"run-missed","start":"2026-11-21T01:00:00Z","latest":"2026-11-21T01:00:00Z","end":"2026-11-21T02:00:00Z","reason":{"kind":"no-leader"}}"#,
    r#"{"type":"reboots-queued","hosts":["h1"],"actor":"eve"}"#,
    r#"{"type":"reboot","index":7,"host":"h1","event":{"kind":"rebooted"}}"#,
    r#"{"type":"reboot-queue-switched","enabled":false,"actor":"eve"}"#,
    r#"{"type":"reboot-backoff-reset","actor":"eve"}"#,
    r#"{"type":"host","run":"r1","host":"h1","event":{"type":"prepared"}}"#,
    r#"{"type":"fenced","sequence":7,"leader":"one"}"#,
];

/// A store with an older schema keeps what it has, and its facts are found in the lists.
#[tokio::test]
async fn older_schemas_are_brought_up_to_date() {
    let steps = "(8, 'projection', '2026-11-22', 1, x'00', 1), (15, 'pruned', '2026-11-27', 1, x'00', 1)";
    for (versions, expected) in [
        (steps.to_owned(), vec!["8", "15", "16", "17", "18"]),
        (format!("(16, 'schema', '2026-11-28', 1, x'{}', 1)", checksum_of_16()), vec!["16", "17", "18"]),
    ] {
        let directory = TempDir::new().unwrap();
        let path = older_store(&directory, &versions).await;
        Projector::open(&path, "site").await.unwrap().close().await.unwrap();
        assert_eq!(rows(&path, "SELECT version FROM _sqlx_migrations").await, expected);
        let expected = STORED.map(|json| {
            let list = fact(json).about().list.map_or("-", Into::into);
            format!("{list} | {json}")
        });
        assert_eq!(rows(&path, "SELECT list, fact FROM facts ORDER BY sequence").await, expected);
    }
}

/// `doctor` and `restore` look for lost commands in a store that no `serve` of this version has opened yet.
#[tokio::test]
async fn commands_are_read_from_older_schemas() {
    let directory = TempDir::new().unwrap();
    let path = older_store(&directory, "(15, 'pruned', '2026-11-27', 1, x'00', 1)").await;
    let commands = [
        (
            30,
            r#"{"type":"host","run":"r1","host":"h1","event":{"type":"command-sent","action":"upgrade","attempt":1,"sequence":9}}"#,
        ),
        (
            31,
            r#"{"type":"reboot","index":7,"host":"h2","event":{"kind":"command-sent","attempt":1,"sequence":12}}"#,
        ),
        (32, r#"{"type":"late-command-seen","host":"h3","action":"reboot","sequence":11}"#),
        (
            33,
            r#"{"type":"host","run":"r1","host":"h4","event":{"type":"command-sent","action":"prepare","attempt":1,"sequence":13}}"#,
        ),
        (34, r#"{"type":"command-retracted","host":"h4","sequence":13,"deleted":true}"#),
    ];
    let mut older = connect(&path).await;
    for (sequence, json) in commands {
        insert(&mut older, sequence, json).await;
    }
    insert_text(&mut older, 35, "newer", Some("h5"), r#"{"type":"newer","host":"h5","sequence":14}"#).await;
    sqlx::Connection::close(older).await.unwrap();
    let found = History::open(&path).await.unwrap().commands().await.unwrap();
    let found: Vec<_> =
        found.iter().map(|command| (command.sequence, command.host.as_str(), command.action)).collect();
    assert_eq!(found, [(9, "h1", Action::Upgrade), (11, "h3", Action::Reboot), (12, "h2", Action::Reboot)]);
}

#[tokio::test]
async fn runs_of_chosen_hosts_are_told_in_older_stores() {
    let directory = TempDir::new().unwrap();
    let path =
        older_store(&directory, &format!("(16, 'schema', '2026-11-28', 1, x'{}', 1)", checksum_of_16()))
            .await;
    let mut older = connect(&path).await;
    for (number, targeted) in [(1, ""), (2, r#","targeted":true"#)] {
        let rows = format!(
            r#"INSERT INTO runs VALUES ({number}, 'r{number}', 'operator', 'eve', '2026-11-21', '2026-11-21', 'upgrading', '{{}}', NULL, NULL, NULL, '{{}}', NULL);
               INSERT INTO facts VALUES (5{number}, 0, '2026-11-22T00:00:00.000000000Z', 'run-started', NULL, 'eve', 'r{number}', NULL,
               '{{"type":"run-started","run":"r{number}","trigger":{{"kind":"operator","actor":"eve"{targeted}}}}}')"#
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(rows)).execute(&mut older).await.unwrap();
    }
    sqlx::Connection::close(older).await.unwrap();
    Projector::open(&path, "site").await.unwrap().close().await.unwrap();
    assert_eq!(rows(&path, "SELECT id, targeted FROM runs ORDER BY id").await, ["r1 | 0", "r2 | 1"]);
}

fn fact(json: &str) -> Fact {
    serde_json::from_str(json).unwrap()
}

/// A store with the schema before lists, whose migrations are these `versions`, with the facts of [`STORED`].
async fn older_store(directory: &TempDir, versions: &str) -> PathBuf {
    let path = directory.path().join("store.sqlite");
    let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
    let mut older = sqlx::ConnectOptions::connect(&options).await.unwrap();
    sqlx::raw_sql(SCHEMA_16).execute(&mut older).await.unwrap();
    let table = format!(
        "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description TEXT NOT NULL, \
         installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, success BOOLEAN NOT NULL, checksum BLOB NOT NULL, \
         execution_time BIGINT NOT NULL); INSERT INTO site VALUES (1, 'site'); INSERT INTO _sqlx_migrations VALUES {versions}"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(table)).execute(&mut older).await.unwrap();
    for (sequence, json) in (1..).zip(STORED) {
        insert(&mut older, sequence, json).await;
    }
    sqlx::Connection::close(older).await.unwrap();
    path
}

const SCHEMA_16: &str = include_str!("../../../../migrations/0016_schema.sql");

/// The checksum with which the program records that it made schema 16, in hexadecimal digits.
fn checksum_of_16() -> String {
    let (kind, sql) = (MigrationType::Simple, sqlx::SqlSafeStr::into_sql_str(SCHEMA_16));
    let migration = Migration::new(16, "schema".into(), kind, sql, false);
    migration.checksum.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

async fn insert(connection: &mut SqliteConnection, sequence: i64, json: &str) {
    let fact = fact(json);
    let host = fact.about().host.map(HostName::as_str);
    insert_text(connection, sequence, fact.name(), host, json).await;
    sqlx::query("UPDATE facts SET actor = ? WHERE sequence = ?")
        .bind(fact.about().actor)
        .bind(sequence)
        .execute(connection)
        .await
        .unwrap();
}

async fn insert_text(
    connection: &mut SqliteConnection,
    sequence: i64,
    name: &str,
    host: Option<&str>,
    json: &str,
) {
    let insert =
        "INSERT INTO facts VALUES (?, 0, '2026-11-22T00:00:00.000000000Z', ?, NULL, NULL, NULL, ?, ?)";
    sqlx::query(insert).bind(sequence).bind(name).bind(host).bind(json).execute(connection).await.unwrap();
}

#[tokio::test]
async fn older_schema_is_refused() {
    let directory = TempDir::new().unwrap();
    let path = store_of(&directory, "site").await;
    execute(&path, "DELETE FROM _sqlx_migrations; INSERT INTO _sqlx_migrations VALUES (14, 'earlier', '2026-01-01', 1, x'00', 1)").await;
    let error = refused(&path).await;
    assert_eq!(
        error.to_string(),
        format!(
            "store {} has schema 14, older than 15, the oldest that this program reads; it can be rebuilt from the \
             journal: move it away and start again",
            path.display()
        )
    );
    assert!(matches!(error, OpenError::Older { found: 14, first: 15, .. }), "{error:?}");
}

#[tokio::test]
async fn store_of_another_site_is_refused() {
    let directory = TempDir::new().unwrap();
    let path = store_of(&directory, "lund").await;
    let error = refused(&path).await;
    assert!(
        matches!(&error, OpenError::OtherSite { found, expected, .. } if found == "lund" && expected == "site"),
        "{error:?}"
    );
}

#[tokio::test]
async fn store_in_use_is_refused() {
    let directory = TempDir::new().unwrap();
    let path = store_of(&directory, "site").await;
    let mut other = connect(&path).await;
    sqlx::raw_sql("BEGIN EXCLUSIVE").execute(&mut other).await.unwrap();
    let mut waiting = open::options(&path).busy_timeout(Duration::ZERO).connect().await.unwrap();
    let busy = sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut waiting).await.unwrap_err();
    let error = OpenError::of(&path, busy);
    assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
}

#[tokio::test]
async fn full_disk_is_called_one() {
    let mut store = TestStore::new().await;
    let mut site = TestSite::new(["h01"]);
    let records = [site.decide_record(&[put_config()])];
    let pages: i64 =
        sqlx::query_scalar("PRAGMA page_count").fetch_one(&mut store.projector.connection).await.unwrap();
    let limit = |pages: i64| format!("PRAGMA max_page_count = {pages}");
    let full = sqlx::AssertSqlSafe(limit(pages));
    sqlx::query(full).fetch_all(&mut store.projector.connection).await.unwrap();
    let created = sqlx::query("CREATE TABLE filler AS SELECT zeroblob(1048576)");
    let error = StoreError::from(created.execute(&mut store.projector.connection).await.unwrap_err());
    assert!(matches!(error, StoreError::DiskFull(_)), "{error:?}");
    assert_eq!(error.to_string(), "its disk is full");
    let room = sqlx::AssertSqlSafe(limit(1_000_000));
    sqlx::query(room).fetch_all(&mut store.projector.connection).await.unwrap();
    store.projector.apply(&streams(), None, &records).await.unwrap();
}

/// Among readers who come and go, the log would grow for ever.
#[tokio::test]
async fn log_is_emptied_once_readers_are_gone() {
    let mut store = TestStore::new().await;
    let log = || fs::metadata(store.directory.path().join("store.sqlite-wal")).unwrap().len();
    let mut reader = connect(&store.path()).await;
    sqlx::query("BEGIN").execute(&mut reader).await.unwrap();
    sqlx::query("SELECT * FROM site").fetch_all(&mut reader).await.unwrap();
    let writer = &mut store.projector.connection;
    sqlx::query("CREATE TABLE filler (bytes BLOB)").execute(&mut *writer).await.unwrap();
    for _ in 0..20 {
        sqlx::query("INSERT INTO filler VALUES (zeroblob(1048576))").execute(&mut *writer).await.unwrap();
    }
    let large = log();
    assert!(large > 20 << 20, "{large}");
    assert!(matches!(store.projector.shorten_log().await, Err(StoreError::Busy)), "somebody reads from it");
    sqlx::query("COMMIT").execute(&mut reader).await.unwrap();
    store.projector.sync().await.unwrap();
    assert_eq!(log(), large, "it is written back, and stays as large");
    store.projector.shorten_log().await.unwrap();
    assert_eq!(log(), 0);
}
