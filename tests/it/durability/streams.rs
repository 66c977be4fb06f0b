//! Existing streams with wrong settings: one error line each, which names the setting, and nothing is changed.

use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, PersistenceMode, RetentionPolicy, StorageType, SubjectTransform,
};
use harness::cluster::ClusterSite;
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_protocol::subject;

/// A wrong setting: the change, and its expected error.
type Case = (&'static str, fn(&mut Config), &'static str);

const ANY: &[Case] = &[
    ("subjects", |config| drop(config.subjects.pop()), "subjects = "),
    ("storage", |config| config.storage = StorageType::Memory, "storage = Memory; File is needed"),
    (
        "retention",
        |config| config.retention = RetentionPolicy::Interest,
        "retention = Interest; Limits is needed",
    ),
    (
        "persist-mode",
        |config| config.persist_mode = Some(PersistenceMode::Async),
        "persist-mode = async; default is needed",
    ),
    ("max-msgs", |config| config.max_messages = 1_000_000, "max-msgs = 1000000; 0 is needed"),
    ("max-bytes", |config| config.max_bytes = 1_000_000, "max-bytes = 1000000; 0 is needed"),
    ("max-age", |config| config.max_age = Duration::from_hours(24), "max-age = 86400s; 0ns is needed"),
    (
        "max-msgs-per-subject",
        |config| config.max_messages_per_subject = 10,
        "max-msgs-per-subject = 10; 0 is needed",
    ),
    ("max-msg-size", |config| config.max_message_size = 1_000, "max-msg-size = 1000; 0 is needed"),
    ("no-ack", |config| config.no_ack = true, "no-ack = true; false is needed"),
    ("deny-delete", |config| config.deny_delete = true, "deny-delete = true; false is needed"),
    ("deny-purge", |config| config.deny_purge = true, "deny-purge = true; false is needed"),
    ("allow-rollup-hdrs", |config| config.allow_rollup = true, "allow-rollup-hdrs = true; false is needed"),
    ("allow-direct", |config| config.allow_direct = true, "allow-direct = true; false is needed"),
    (
        "subject-transform",
        |config| {
            let (source, destination) = (">".to_owned(), "moved.>".to_owned());
            config.subject_transform = Some(SubjectTransform { source, destination });
        },
        "subject-transform = true; false is needed",
    ),
    ("max-consumers", |config| config.max_consumers = 500, "max-consumers = 500; at least 1"),
    ("no max-consumers", |config| config.max_consumers = -1, "max-consumers = -1; at least 1"),
];

const JOURNAL: &[Case] =
    &[("discard", |config| config.discard = DiscardPolicy::Old, "discard = Old; New is needed")];
const CONTROL: &[Case] =
    &[("discard", |config| config.discard = DiscardPolicy::New, "discard = New; Old is needed")];

/// Starts an instance that fails. Returns its one-line error.
async fn startup_error(nats: &NatsServer, more: &str) -> String {
    let mut orchestrator = Orchestrator::new(&nats.url(), more);
    orchestrator.start();
    let (code, output) = orchestrator.exited().await;
    let message: Vec<_> =
        output.lines().filter(|line| line.starts_with("error: ")).map(str::to_owned).collect();
    assert_eq!((code, message.len()), (Some(1), 1), "{output}");
    message[0].clone()
}

/// A server with the streams as an orchestrator creates them.
async fn with_created_streams() -> (NatsServer, jetstream::Context) {
    let nats = NatsServer::start().await;
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.start_ready().await;
    orchestrator.terminate().await;
    let jetstream = jetstream::new(nats.client().await);
    (nats, jetstream)
}

async fn check_cases(stream: &str, cases: impl Iterator<Item = &Case>) {
    let (nats, jetstream) = with_created_streams().await;
    let good = jetstream.get_stream(stream).await.unwrap().cached_info().config.clone();
    for (name, change, expected) in cases {
        jetstream.delete_stream(stream).await.unwrap();
        let mut config = good.clone();
        change(&mut config);
        let before = jetstream.create_stream(config).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let message = startup_error(&nats, "").await;
        assert!(
            message.starts_with(&format!("error: the stream {stream} has {expected}")),
            "{name}: {message}"
        );
        assert!(
            message.ends_with("It is left as it is: change it, or use another NATS account"),
            "{name}: {message}"
        );
        let after = jetstream.get_stream(stream).await.unwrap().cached_info().clone();
        assert_eq!(
            (&after.config, after.created),
            (&before.cached_info().config, before.cached_info().created),
            "{name}"
        );
    }
}

#[tokio::test]
async fn unsafe_journal_settings_are_found() {
    check_cases(subject::JOURNAL_STREAM, ANY.iter().chain(JOURNAL)).await;
}

#[tokio::test]
async fn unsafe_control_stream_settings_are_found() {
    check_cases(subject::CONTROL_STREAM, ANY.iter().chain(CONTROL)).await;
}

const LEASE: &str = "KV_os-upgrade-lease";

/// A lease that never ends would keep others from taking over.
#[tokio::test]
async fn unsafe_lease_settings_are_found() {
    let cases: [Case; 3] = [
        ("storage", |config| config.storage = StorageType::Memory, "storage = Memory; File is needed"),
        ("max-age", |config| config.max_age = Duration::from_hours(1), "max-age = 3600s; 6s is needed"),
        ("deny-delete", |config| config.deny_delete = false, "deny-delete = false; true is needed"),
    ];
    check_cases(LEASE, cases.iter()).await;
}

/// An instance that crashes would be succeeded an hour later.
#[tokio::test]
async fn setting_changed_under_a_leader_is_named() {
    let site = Site::start().await;
    site.orchestrator.await_leading().await;
    let changed_setting = async || site.rest().get("/readyz").await.1["changed-setting"].clone();
    let stream = site.jetstream().get_stream(LEASE).await.unwrap();
    let config = stream.cached_info().config.clone();
    let changed = Config { max_age: Duration::from_hours(1), ..config.clone() };
    site.jetstream().update_stream(changed).await.unwrap();
    let named = eventually("it to name the setting", async || {
        let changed = changed_setting().await;
        changed.as_str().map(str::to_owned)
    })
    .await;
    assert!(named.starts_with("the stream KV_os-upgrade-lease has max-age = 3600s; 6s is needed"), "{named}");
    // Everything goes on meanwhile.
    site.rest().configure("other").await;
    site.jetstream().update_stream(config).await.unwrap();
    eventually("it to be right again", async || changed_setting().await.is_null().then_some(())).await;
}

/// A site that was grown to a cluster: the lease would be lost with its one server.
#[tokio::test]
async fn too_few_replicas_of_the_lease_are_reported() {
    let mut site = ClusterSite::start(1, "").await;
    site.members[0].orchestrator.terminate().await;
    let stream = site.jetstream().get_stream(LEASE).await.unwrap();
    let config = Config { num_replicas: 1, ..stream.cached_info().config.clone() };
    site.jetstream().update_stream(config).await.unwrap();
    let text = "the stream KV_os-upgrade-lease has replicas = 1; at least 3 is needed. It is left as it is: change it, or \
                use another NATS account";
    let orchestrator = &mut site.members[0].orchestrator;
    let (code, printed, _) = orchestrator.command(&["doctor"]).await;
    assert_eq!(code, Some(1));
    assert!(printed.contains(&format!("problem  stream {LEASE}: {text}")), "{printed}");
    orchestrator.start();
    let (code, output) = orchestrator.exited().await;
    assert_eq!(code, Some(1));
    assert!(output.contains(&format!("error: {text}")), "{output}");
}

/// Whoever deletes the lease, or the whole bucket, delays the site, and no more.
#[tokio::test]
async fn deleted_lease_is_created_again_while_running() {
    let mut site = Site::start().await;
    let mut second = Orchestrator::new(&site.nats.url(), "");
    second.start();
    second.await_following(&site.orchestrator).await;
    let before = site.jetstream().get_stream(LEASE).await.unwrap().cached_info().config.clone();
    site.jetstream().delete_stream(LEASE).await.unwrap();
    let after = eventually("the lease", async || site.jetstream().get_stream(LEASE).await.ok()).await;
    assert_eq!(after.cached_info().config, before);
    // It can be held, and taken over.
    eventually("a leader", async || second.role().await).await;
    site.orchestrator.kill().await;
    second.await_leading().await;
}

#[tokio::test]
async fn too_few_replicas_are_reported() {
    let (nats, _) = with_created_streams().await;
    let mut orchestrator = Orchestrator::new(&nats.url(), "replicas = 3");
    orchestrator.start();
    let (code, output) = orchestrator.exited().await;
    let text = "error: the stream os-upgrade:journal has replicas = 1; at least 3 is needed. It is left as it is: change \
                it, or use another NATS account";
    assert_eq!(code, Some(1));
    assert!(output.contains(text), "{output}");
}

#[tokio::test]
async fn other_sites_streams_are_reported() {
    let (nats, jetstream) = with_created_streams().await;
    let expected = |stream: &str| {
        format!(
            "error: the stream {stream} belongs to site \"site\", not \"lund\": check [site] name and [nats] url"
        )
    };
    let lund = "[site]\nname = \"lund\"";
    assert_eq!(startup_error(&nats, lund).await, expected(subject::JOURNAL_STREAM));
    jetstream.delete_stream(subject::JOURNAL_STREAM).await.unwrap();
    assert_eq!(startup_error(&nats, lund).await, expected(subject::CONTROL_STREAM));
}

/// Streams created by an older version do not name their site.
#[tokio::test]
async fn unmarked_stream_is_adopted_with_messages() {
    let (nats, jetstream) = with_created_streams().await;
    let before = jetstream.get_stream(subject::JOURNAL_STREAM).await.unwrap().cached_info().clone();
    let mut config = before.config.clone();
    config.metadata.remove("os-upgrade.site");
    jetstream.update_stream(config).await.unwrap();
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.start_ready().await;
    orchestrator.await_leading().await;
    let after = jetstream.get_stream(subject::JOURNAL_STREAM).await.unwrap().cached_info().clone();
    assert_eq!(after.config.metadata.get("os-upgrade.site").map(String::as_str), Some("site"));
    assert_eq!(after.created, before.created);
    assert!(after.state.messages > before.state.messages);
    assert!(startup_error(&nats, "[site]\nname = \"lund\"").await.contains("belongs to site \"site\""));
}
