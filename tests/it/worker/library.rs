//! The worker SDK as a library: a worker in this process, and the minimal example.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_nats::jetstream;
use harness::host::APPLICATION;
use harness::nats_server::{NatsServer, create_streams};
use harness::secured_nats::SecuredNats;
use harness::streams;
use harness::wait::eventually;
use harness::worker::{FIRST_BOOT, WorkerHost, worker_example};
use os_upgrade_protocol::{HostName, subject};
use os_upgrade_worker_sdk::{
    BootIdSource, CancellationToken, Context, HandlerResult, Upgraded, Versions, Worker, WorkerBuilder,
};

/// A worker whose `prepare` fails as the run's id demands.
struct FailingWorker;

impl Worker for FailingWorker {
    async fn prepare(&self, context: &Context) -> HandlerResult {
        let run = context.run().map(ToString::to_string).unwrap_or_default();
        match run.as_str() {
            "panics" => panic!("out of order"),
            "fails" => Err(std::io::Error::other("no space left"))?,
            "waits" => {
                context.cancelled().await;
                Err("stopped")?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
        context.versions_notifier().notify();
        Ok(Upgraded::RebootRequired)
    }

    async fn versions(&self, _context: &Context) -> HandlerResult<Versions> {
        Ok(Versions([("failing".to_owned(), "1".to_owned())].into()))
    }
}

#[tokio::test]
async fn worker_runs_in_process() {
    let server = NatsServer::with_streams().await;
    // The host without a worker process: only the orchestrator's side of the messages.
    let host = WorkerHost::new(&server, "h1").await;
    let shutdown = CancellationToken::new();
    let builder = WorkerBuilder::new("h1", APPLICATION)
        .unwrap()
        .nats_client(server.client().await)
        .state_dir(host.path("state"))
        .boot_id(BootIdSource::File(host.path("boot-id")))
        .shutdown(shutdown.clone());
    let worker = tokio::spawn(builder.run(FailingWorker));

    let prepared = async |run: &str| {
        let sequence = host.send(run, &host.prepare("")).await;
        host.result_of(sequence).await
    };
    assert_eq!(prepared("panics").await, "the handler panicked: out of order");
    assert_eq!(prepared("fails").await, "no space left");
    assert_eq!(prepared("r1").await, "done");
    let upgrade = host.send("r1", &host.upgrade()).await;
    assert_eq!(host.result_of(upgrade).await, "reboot-required");
    let reboot = host.send("r1", &host.reboot()).await;
    assert_eq!(host.result_of(reboot).await, "this worker cannot reboot its host");
    let versions = Versions([("failing".to_owned(), "1".to_owned())].into());
    eventually("versions", async || Some(host.versions().await).filter(|all| *all == [versions.clone()]))
        .await;

    // When the worker stops, the error of an interrupted handler is not sent as an answer.
    let waiting = host.send("waits", &host.prepare("")).await;
    let state = host.path("state/h1.json");
    eventually("the prepare to begin", async || {
        let text = std::fs::read_to_string(&state).unwrap();
        text.contains("preparing").then_some(())
    })
    .await;
    shutdown.cancel();
    worker.await.unwrap().unwrap();
    assert_eq!(host.replies_to(waiting).await, 0);
    assert_eq!(std::fs::read_to_string(host.path("boot-id")).unwrap(), FIRST_BOOT);
}

#[tokio::test]
async fn example_serves_host() {
    let server = NatsServer::with_streams().await;
    let host = WorkerHost::new(&server, "h1").await;
    let mut example = Command::new(worker_example("minimal"))
        .arg("h1")
        .env("OS_UPGRADE_NATS_URL", server.url())
        .env("TMPDIR", host.path(""))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let result = async |payload: String| {
        let sequence = host.send("r1", &payload).await;
        let replies = async || {
            let replies = host.replies().await;
            let reply = replies.iter().find(|reply| harness::worker::in_reply_to(reply) == Some(sequence))?;
            Some(String::from_utf8(reply.payload.to_vec()).unwrap())
        };
        eventually("a reply", replies).await
    };
    assert_eq!(result(host.prepare("")).await, r#"{"action":"prepare","result":"done"}"#);
    assert_eq!(result(host.upgrade()).await, r#"{"action":"upgrade","result":"reboot-required"}"#);
    let refused = r#"{"action":"reboot","result":"a demo does not reboot h1"}"#;
    assert_eq!(result(host.reboot()).await, refused);
    let new = Versions([("minimal".to_owned(), "2.0".to_owned())].into());
    eventually("new versions", async || (host.versions().await.last() == Some(&new)).then_some(())).await;
    example.kill().unwrap();
    example.wait().unwrap();
}

/// A worker with a settable version, which counts the requests for it.
#[derive(Clone, Default)]
struct VersionedWorker {
    version: Arc<Mutex<&'static str>>,
    times: Arc<AtomicUsize>,
}

impl VersionedWorker {
    fn set_version(&self, version: &'static str) {
        *self.version.lock().unwrap() = version;
    }
}

impl Worker for VersionedWorker {
    async fn upgrade(&self, _context: &Context) -> HandlerResult<Upgraded> {
        Ok(Upgraded::Done)
    }

    async fn versions(&self, _context: &Context) -> HandlerResult<Versions> {
        let version = (*self.version.lock().unwrap()).to_owned();
        self.times.fetch_add(1, Ordering::Relaxed);
        Ok(Versions([("linux".to_owned(), version)].into()))
    }
}

/// Checks what a worker publishes of its versions while the stream is deleted and created again.
async fn check_versions(worker: impl FnOnce(WorkerBuilder) -> WorkerBuilder, jetstream: &jetstream::Context) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("boot-id"), "boot-1\n").unwrap();
    let versioned = VersionedWorker::default();
    versioned.set_version("1");
    let builder = WorkerBuilder::new("h01", APPLICATION)
        .unwrap()
        .state_dir(path("state"))
        .boot_id(BootIdSource::File(path("boot-id")));
    let notifier = builder.versions_notifier();
    let worker = tokio::spawn(worker(builder).run(versioned.clone()));
    let filter = subject::versions(&HostName::new("h01").unwrap());
    let await_versions = async |expected: &[&str]| {
        let expected: Vec<_> = expected.iter().map(|version| format!(r#"{{"linux":"{version}"}}"#)).collect();
        eventually("the versions", async || {
            let stored = streams::stored(jetstream, subject::VERSIONS_STREAM, &filter).await;
            let payloads = stored.iter().map(|message| &message.payload[..]);
            payloads.eq(expected.iter().map(String::as_bytes)).then_some(())
        })
        .await;
    };
    create_streams(jetstream).await;
    await_versions(&["1"]).await;
    // Nothing is published without a change.
    let times = versioned.times.load(Ordering::Relaxed);
    notifier.notify();
    eventually("a request for the versions", async || {
        (versioned.times.load(Ordering::Relaxed) > times).then_some(())
    })
    .await;
    versioned.set_version("2");
    notifier.notify();
    await_versions(&["1", "2"]).await;

    jetstream.delete_stream(subject::VERSIONS_STREAM).await.unwrap();
    create_streams(jetstream).await;
    notifier.notify();
    await_versions(&["2"]).await;
    worker.abort();
}

#[tokio::test]
async fn versions_repeat_to_recreated_stream() {
    let server = NatsServer::start().await;
    let jetstream = jetstream::new(server.client().await);
    check_versions(|builder| builder.nats_url(&server.url()), &jetstream).await;
}

#[tokio::test]
async fn versions_repeat_without_stream_access() {
    let nats = SecuredNats::start(1).await;
    let credentials = nats.admit("h01").await;
    let jetstream = jetstream::new(nats.client(&nats.issued().orchestrator_credentials()).await);
    let access = |builder: WorkerBuilder| {
        builder.nats_url(&nats.urls()).credentials(credentials).tls_ca(nats.issued().ca())
    };
    check_versions(access, &jetstream).await;
}

/// Versions that are lost with the server are published again as soon as it is back.
#[tokio::test]
async fn versions_repeat_after_total_loss() {
    let mut server = NatsServer::with_streams().await;
    let host = WorkerHost::new(&server, "h1").await;
    let builder = WorkerBuilder::new("h1", APPLICATION)
        .unwrap()
        .nats_url(&server.url())
        .state_dir(host.path("state"))
        .boot_id(BootIdSource::File(host.path("boot-id")));
    let worker = tokio::spawn(builder.run(VersionedWorker::default()));
    let await_versions = async || {
        eventually("the versions", async || (host.versions().await.len() == 1).then_some(())).await;
    };
    await_versions().await;
    server.kill();
    server.delete_streams();
    server.start_again().await;
    create_streams(&jetstream::new(server.client().await)).await;
    await_versions().await;
    worker.abort();
}
