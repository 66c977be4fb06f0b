//! NATS stores nothing more: everybody says which limit is reached, and everything goes on once there is room.

use async_nats::jetstream::{self, stream};
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::wait::eventually;
use os_upgrade_protocol::subject;
use os_upgrade_shell::storage::StorageLimit;
use reqwest::Method;
use serde_json::json;

const CONFIG: &str = "/v1/config/os-upgrade";
/// What a server or an account of these tests may store, in bytes.
const LIMIT: usize = 4 * 1024 * 1024;

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

async fn check_doctor(orchestrator: &Orchestrator, limit: StorageLimit, storage: Option<&str>) {
    let (code, printed, _) = orchestrator.command(&["doctor"]).await;
    assert_eq!(code, Some(1), "{printed}");
    let instance = format!("problem  instance {}: {limit}", orchestrator.instance());
    assert!(printed.contains(&instance), "{printed}");
    if let Some(of) = storage {
        assert!(printed.contains(&format!("problem  storage of {of}: ")), "{printed}");
    }
}

async fn check(nats: NatsServer, limit: StorageLimit, storage: Option<&str>) {
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
    check(NatsServer::start_with(&accounts).await, StorageLimit::Account, Some("account")).await;
}

#[tokio::test]
async fn reached_limit_of_the_server_is_named() {
    let mut nats = NatsServer::stopped("").storing_at_most(LIMIT);
    nats.start_again().await;
    check(nats, StorageLimit::Server, None).await;
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
    check_doctor(&orchestrator, StorageLimit::Stream, Some(subject::JOURNAL_STREAM)).await;
    let metrics = orchestrator.rest.get_as("/metrics", "*/*").await;
    assert!(metrics.contains("os_upgrade_nats_limit_bytes{of=\"os-upgrade:journal\"} "), "{metrics}");
    jetstream.update_stream(info.config.clone()).await.unwrap();
    orchestrator.ready().await;
}
