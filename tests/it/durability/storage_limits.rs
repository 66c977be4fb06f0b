//! NATS stores nothing more: everybody says which limit is reached, and everything goes on once there is room.

use std::collections::BTreeMap;

use async_nats::jetstream::{self, stream};
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::wait::eventually;
use os_upgrade_protocol::subject;
use os_upgrade_shell::storage::StorageLimit;
use reqwest::Method;
use serde_json::{Value, json};

const CONFIG: &str = "/v1/config/os-upgrade";
/// What a server or an account of these tests may store, in bytes.
const LIMIT: u64 = 4 * 1024 * 1024;

/// Fills what is left with messages of another program, the last ones small.
async fn fill(jetstream: &jetstream::Context) {
    let config =
        stream::Config { name: "other".into(), subjects: vec!["other".into()], ..Default::default() };
    jetstream.create_stream(config).await.unwrap();
    for bytes in [256 * 1024, 16 * 1024, 1024, 64, 1] {
        let payload = vec![b'x'; bytes];
        while jetstream.publish("other", payload.clone().into()).await.unwrap().await.is_ok() {}
    }
}

async fn await_reason(orchestrator: &Orchestrator, limit: StorageLimit) {
    eventually("it to name the limit", async || {
        // Requests show what is missing: without any, only the lease is written.
        orchestrator.rest.call(Method::PUT, CONFIG, &json!({ "worker-applications": [] }).to_string()).await;
        (orchestrator.readiness().await? == limit.to_string()).then_some(())
    })
    .await;
}

async fn check_doctor(orchestrator: &Orchestrator, limit: StorageLimit, storage: &str) {
    let instance = format!("problem  instance {}: {limit}", orchestrator.instance());
    // While the lease cannot be renewed either, the instance loses it and begins anew.
    let printed = eventually("doctor to name the limit", async || {
        let (code, printed, _) = orchestrator.command(&["doctor"]).await;
        (code == Some(1) && printed.contains(&instance)).then_some(printed)
    })
    .await;
    assert!(printed.contains(&format!("problem  storage of {storage}: ")), "{printed}");
    // There is a limit of 4 MiB, unless it is the journal's.
    let is_kept = !printed.contains("warning  output of commands: not kept: 1073741824 bytes are reserved");
    assert_eq!(is_kept, limit == StorageLimit::Stream, "{printed}");
}

async fn check(nats: NatsServer, limit: StorageLimit, storage: &str) {
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.start_ready().await;
    let jetstream = jetstream::new(nats.client().await);
    fill(&jetstream).await;
    await_reason(&orchestrator, limit).await;
    check_doctor(&orchestrator, limit, storage).await;
    jetstream.delete_stream("other").await.unwrap();
    orchestrator.ready().await;
    orchestrator.rest.configure("a").await;
}

#[tokio::test]
async fn reached_limit_of_the_account_is_named() {
    let accounts = format!(
        "accounts {{ a {{ jetstream {{ max_file: {LIMIT} }}, users: [{{ user: a, password: a }}] }} }}\nno_auth_user: a"
    );
    check(NatsServer::start_with(&accounts).await, StorageLimit::Account, "account").await;
}

#[tokio::test]
async fn reached_limit_of_the_server_is_named() {
    let mut nats = NatsServer::stopped("").storing_at_most(LIMIT);
    nats.start_again().await;
    check(nats, StorageLimit::Server, "the server, max_file_store").await;
}

#[tokio::test]
async fn reached_limit_of_the_journal_is_named() {
    let nats = NatsServer::start().await;
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.start_ready().await;
    let jetstream = jetstream::new(nats.client().await);
    let journal = jetstream.get_stream(subject::JOURNAL_STREAM).await.unwrap();
    let info = journal.cached_info();
    let limited =
        stream::Config { max_bytes: i64::try_from(info.state.bytes).unwrap() + 1_000, ..info.config.clone() };
    jetstream.update_stream(limited).await.unwrap();
    await_reason(&orchestrator, StorageLimit::Stream).await;
    check_doctor(&orchestrator, StorageLimit::Stream, subject::JOURNAL_STREAM).await;
    let metrics = orchestrator.rest.get_as("/metrics", "*/*").await;
    assert!(metrics.contains("os_upgrade_nats_limit_bytes{of=\"os-upgrade:journal\"} "), "{metrics}");
    jetstream.update_stream(info.config.clone()).await.unwrap();
    orchestrator.ready().await;
}

/// What is left of each limit, before it is reached.
#[tokio::test]
async fn limits_are_shown_with_what_is_left() {
    let account = "max_mem: 1000000, max_streams: 9, max_consumers: 200000";
    let (rows, metrics) = rows_with_account(account).await;
    assert_eq!(rows["streams of account"], "8 of 9, 1 left");
    assert_eq!(
        rows["storage of account memory"],
        "0 of 1000000 bytes, 1000000 left; the site stores nothing there"
    );
    assert!(rows["consumers of account"].ends_with(", and 200000 for each stream"), "{rows:?}");
    assert!(rows["consumers of os-upgrade:control"].contains(" of 100000, 99"), "{rows:?}");
    let server = &rows["storage of the server, max_file_store"];
    let limit = server.split(' ').nth(2).unwrap().parse::<u64>().unwrap();
    assert!((1_997_000_000..=2_000_000_000).contains(&limit), "{server}");
    let of = |what: &str| format!("{{of=\"{what}\"}}");
    for line in [
        format!("limit_streams{} 9", of("account")),
        format!("streams{} 8", of("account")),
        format!("limit_consumers{} 10000", of(subject::JOURNAL_STREAM)),
    ] {
        assert!(metrics.contains(&format!("os_upgrade_nats_{line}\n")), "{line}: {metrics}");
    }

    // Below it, the server's limit is not reached.
    let (rows, _) = rows_with_account("max_file: 1500000000").await;
    assert!(rows["storage of account"].contains(" of 1500000000 bytes, 1499"), "{rows:?}");
    assert!(!rows.keys().any(|of| of.starts_with("storage of the server")), "{rows:?}");
}

/// What `doctor` finds, by check, and the metrics, at a server that stores 2 GB for an account with these limits.
async fn rows_with_account(limits: &str) -> (BTreeMap<String, String>, String) {
    let accounts = format!(
        "accounts {{ a {{ jetstream {{ {limits} }}, users: [{{ user: a, password: a }}] }} }}\nno_auth_user: a"
    );
    let mut nats = NatsServer::stopped(&accounts).storing_at_most(2_000_000_000);
    nats.start_again().await;
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.start_ready().await;
    let jetstream = jetstream::new(nats.client().await);
    for stream in [subject::OUTPUT_STREAM, subject::DESIRED_STREAM, subject::APPLIED_STREAM] {
        eventually(stream, async || jetstream.get_stream(stream).await.ok()).await;
    }
    let (code, printed, _) = orchestrator.command(&["doctor", "--output", "json"]).await;
    assert_eq!(code, Some(0), "{printed}");
    let rows: Vec<Value> = serde_json::from_str(&printed).unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = rows.iter().map(|row| (text(row, "check"), text(row, "found"))).collect();
    (rows, orchestrator.rest.get_as("/metrics", "*/*").await)
}

/// An account in which the streams cannot be created.
#[tokio::test]
async fn streams_that_do_not_fit_are_a_problem() {
    let accounts = "accounts { a { jetstream { max_streams: 5, max_consumers: 1000 }, \
                    users: [{ user: a, password: a }] } }\nno_auth_user: a";
    let nats = NatsServer::start_with(accounts).await;
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.start();
    eventually("it to wait", async || {
        orchestrator.readiness().await.filter(|reason| reason.contains("maximum consumers limit"))
    })
    .await;
    let (code, printed, _) = orchestrator.command(&["doctor"]).await;
    assert_eq!(code, Some(1), "{printed}");
    let streams = "problem  streams of account: 0 of 5, 5 left; 8 of the site are missing\n";
    let consumers =
        "problem  consumers of account: 0, and 1000 for each stream; 8 streams of the site are missing\n";
    assert!(printed.contains(streams) && printed.contains(consumers), "{printed}");
}
