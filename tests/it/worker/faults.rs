//! Workers are killed, NATS fails, files are corrupt: every command is executed once, and answered.

use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, pull};
use chrono::{DateTime, Utc};
use futures::StreamExt;
use harness::nats_server::{NatsServer, create_streams};
use harness::proxy::Proxy;
use harness::wait::{Stopwatch, eventually};
use harness::worker::WorkerHost;
use os_upgrade_protocol::{Action, Outcome, Reply, header, subject};
use os_upgrade_worker_rules::{Current, Phase, Position, StateFile, limits};

/// An upgrade that logs its starts and waits for the file `go`. Resumed, it ends at once.
const UPGRADE: &str = r#"
exec 2>/dev/null # Its worker may be dead; an error of the shell about that must not end it.
if [ -n "$OS_UPGRADE_RESUME" ]; then echo "resumed rebooted=$OS_UPGRADE_REBOOTED" >> ../calls; exit 0; fi
echo upgraded >> ../calls
trap 'echo stopped >> ../calls; exit 1' TERM
while [ ! -e ../go ]; do echo alive > ../alive; sleep 0.05; done"#;

async fn start_upgrade(server: &NatsServer) -> (WorkerHost, u64) {
    let mut host = WorkerHost::new(server, "h1").await;
    host.script("upgrade", UPGRADE);
    host.start();
    host.prepared("r1").await;
    let upgrade = host.send("r1", &host.upgrade()).await;
    host.await_file("alive").await;
    (host, upgrade)
}

#[tokio::test]
async fn killed_worker_resumes_upgrade() {
    let server = NatsServer::with_streams().await;
    let (mut host, upgrade) = start_upgrade(&server).await;
    host.kill();
    let restarted = Stopwatch::start();
    host.start();
    assert_eq!(host.result_of(upgrade).await, "done");
    host.await_acked(upgrade).await;
    // Resumed from the state file, not by redelivery.
    restarted.assert_below(limits::ACK_WAIT.to_std().unwrap() / 2);
    // The script that outlived its worker was stopped before it was started again.
    assert_eq!(host.lines("calls"), ["upgraded", "stopped", "resumed rebooted="]);
    std::fs::remove_file(host.path("alive")).unwrap();
    assert_eq!(host.replies_to(upgrade).await, 1);
    assert!(!host.path("alive").exists());
}

#[tokio::test]
async fn reboot_during_upgrade_is_reported() {
    let server = NatsServer::with_streams().await;
    let (mut host, upgrade) = start_upgrade(&server).await;
    host.kill();
    host.boot("boot-2");
    host.start();
    assert_eq!(host.result_of(upgrade).await, "done");
    assert_eq!(host.lines("calls"), ["upgraded", "stopped", "resumed rebooted=1"]);
}

#[tokio::test]
async fn stopped_worker_resumes_upgrade_later() {
    let server = NatsServer::with_streams().await;
    let (mut host, upgrade) = start_upgrade(&server).await;
    assert!(host.terminate().await.success());
    assert_eq!(host.lines("calls"), ["upgraded", "stopped"]);
    assert_eq!(host.replies_to(upgrade).await, 0);
    host.start();
    assert_eq!(host.result_of(upgrade).await, "done");
    assert_eq!(host.lines("calls"), ["upgraded", "stopped", "resumed rebooted="]);
    // An idle worker ends at once.
    host.await_acked(upgrade).await;
    assert!(host.terminate().await.success());
}

#[tokio::test]
async fn nats_restart_loses_nothing() {
    let mut server = NatsServer::with_streams().await;
    let (host, upgrade) = start_upgrade(&server).await;
    server.kill();
    // The handler ends while NATS is away.
    host.touch("go");
    host.await_log("the reply to command 3 is not stored yet").await;
    server.start_again().await;
    assert_eq!(host.result_of(upgrade).await, "done");
    host.await_acked(upgrade).await;
    assert_eq!(host.lines("calls"), ["upgraded"]);

    // Again, with a handler that runs the whole time.
    std::fs::remove_file(host.path("go")).unwrap();
    host.prepared("r2").await;
    let upgrade = host.send("r2", &host.upgrade()).await;
    eventually("the second upgrade", async || (host.lines("calls").len() == 2).then_some(())).await;
    server.kill();
    server.start_again().await;
    host.touch("go");
    assert_eq!(host.result_of(upgrade).await, "done");
    host.await_acked(upgrade).await;
    assert_eq!(host.lines("calls"), ["upgraded", "upgraded"]);
}

#[tokio::test]
async fn kill_before_ack_repeats_nothing() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    host.script("prepare", "echo prepared >> ../calls");
    let prepare = host.send("r1", &host.prepare("")).await;

    // As a killed worker would have left it: delivered, answered, not acknowledged.
    let stream = host.jetstream().get_stream(subject::CONTROL_STREAM).await.unwrap();
    let config = pull::Config {
        durable_name: Some(subject::consumer(&host.host)),
        ack_policy: AckPolicy::Explicit,
        ack_wait: limits::ACK_WAIT.to_std().unwrap(),
        max_ack_pending: 1,
        filter_subject: subject::command(&host.host),
        num_replicas: 1,
        ..pull::Config::default()
    };
    let consumer = stream.create_consumer(config).await.unwrap();
    let mut messages = consumer.fetch().max_messages(1).messages().await.unwrap();
    let message = messages.next().await.unwrap().unwrap();
    let published = std::time::SystemTime::from(message.info().unwrap().published);
    let outcome = Outcome::Done;
    let reply = Reply { action: Action::Prepare, result: outcome.clone() };
    let mut headers = async_nats::HeaderMap::new();
    headers.insert(header::IN_REPLY_TO, prepare.to_string());
    let stored =
        host.jetstream().publish_with_headers(subject::reply(&host.host), headers, reply.to_payload().into());
    stored.await.unwrap().await.unwrap();
    let mut state = StateFile::new(host.host.clone());
    state.current = Some(Current {
        position: Position { sequence: prepare, published: DateTime::<Utc>::from(published) },
        id: None,
        ack_subject: message.reply.as_ref().unwrap().to_string(),
        action: Action::Prepare,
        run: None,
        not_after: None,
        phase: Phase::Answered { outcome },
        attempts: 1,
    });
    std::fs::create_dir(host.path("state")).unwrap();
    std::fs::write(host.path("state/h1.json"), state.to_bytes()).unwrap();

    let started = Stopwatch::start();
    host.start();
    host.await_acked(prepare).await;
    // Recognised by the stored reply, not after a redelivery.
    started.assert_below(limits::ACK_WAIT.to_std().unwrap() / 2);
    // The worker cannot know that the first reply was stored.
    assert_eq!(host.replies_to(prepare).await, 2);
    assert_eq!(host.lines("calls"), [""; 0]);
}

#[tokio::test]
async fn corrupt_state_file_fails_closed() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    host.script("upgrade", "echo upgraded >> ../calls");
    host.start();
    host.prepared("r1").await;
    host.await_acked(1).await;
    eventually("the settled state", async || {
        let text = std::fs::read_to_string(host.path("state/h1.json")).unwrap();
        text.contains("settled").then_some(())
    })
    .await;
    host.kill();
    std::fs::write(host.path("state/h1.json"), "{\"format\":1,\"hos").unwrap();
    host.start();
    let refused = host.send("r1", &host.upgrade()).await;
    host.await_acked(refused).await;
    assert!(host.path("state/h1.json.corrupt").exists());
    assert_eq!(host.log().matches("the state file cannot be used").count(), 1);
    host.prepared("r2").await;
    let upgrade = host.send("r2", &host.upgrade()).await;
    assert_eq!(host.result_of(upgrade).await, "done");
    assert_eq!(host.replies_to(refused).await, 0);
    assert_eq!(host.lines("calls"), ["upgraded"]);
}

#[tokio::test]
async fn recreated_stream_is_read_from_start() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    host.start();
    for run in ["r1", "r2", "r3"] {
        host.prepared(run).await;
    }
    host.jetstream().delete_stream(subject::CONTROL_STREAM).await.unwrap();
    host.jetstream().delete_stream(subject::VERSIONS_STREAM).await.unwrap();
    host.jetstream().delete_stream(subject::WORKERS_STREAM).await.unwrap();
    create_streams(host.jetstream()).await;
    // Its sequences are below the ones that the worker has settled.
    host.prepared("r4").await;
}

#[tokio::test]
async fn repeated_kills_upgrade_once() {
    let server = NatsServer::with_streams().await;
    let mut host = WorkerHost::new(&server, "h1").await;
    host.script("upgrade", r#"[ -n "$OS_UPGRADE_RESUME" ] || echo "$OS_UPGRADE_RUN" >> ../calls"#);
    host.start();
    let mut runs = Vec::new();
    // Killed at moments spread over a whole step, which takes tens of milliseconds.
    for number in 0..12_u64 {
        let run = format!("r{number}");
        let prepare = host.send(&run, &host.prepare("")).await;
        // One at a time, as the orchestrator sends them: a new consumer starts at the last message of its subject.
        assert_eq!(host.result_of(prepare).await, "done");
        let upgrade = host.send(&run, &host.upgrade()).await;
        let moment = Instant::now() + Duration::from_millis(number * 7);
        eventually("the moment", async || (Instant::now() >= moment).then_some(())).await;
        host.kill();
        host.start();
        assert_eq!(host.result_of(upgrade).await, "done");
        host.await_acked(upgrade).await;
        runs.push(run);
    }
    // A script killed before its first line is not counted; any other is counted once.
    let calls = host.lines("calls");
    let mut once = calls.clone();
    once.dedup();
    assert_eq!(calls, once);
    assert!(calls.iter().all(|run| runs.contains(run)));
}

/// A cloned machine has its host's name as well. One of the two workers serves the host, and the other waits until it ends.
#[tokio::test]
async fn one_of_two_workers_serves_their_host() {
    let server = NatsServer::with_streams().await;
    let mut hosts = [WorkerHost::new(&server, "h1").await, WorkerHost::new(&server, "h1").await];
    for host in &hosts {
        host.script("upgrade", "echo upgraded >> ../calls");
    }
    hosts[0].start();
    let reads = async || hosts[0].consumer().await.filter(|info| info.num_waiting > 0);
    eventually("the first to wait for commands", reads).await;
    hosts[1].start();
    let notices = |host: &&WorkerHost| host.log().contains("another worker of this host seems to run");
    eventually("one to notice the other", async || hosts.iter().any(|host| notices(&host)).then_some(()))
        .await;
    let upgrades = |hosts: &[WorkerHost]| hosts.iter().map(|host| host.lines("calls").len()).sum::<usize>();
    for (number, run) in (1..).zip(["r1", "r2"]) {
        let prepare = hosts[0].send(run, &hosts[0].prepare("")).await;
        assert_eq!(hosts[0].result_of(prepare).await, "done");
        let upgrade = hosts[0].send(run, &hosts[0].upgrade()).await;
        assert_eq!(hosts[0].result_of(upgrade).await, "done");
        hosts[0].await_acked(upgrade).await;
        assert_eq!(upgrades(&hosts), number);
    }
    let serving = hosts.iter().position(|host| !host.lines("calls").is_empty()).unwrap();
    assert_eq!(hosts[serving].lines("calls").len(), 2, "always the same one");
    hosts[serving].kill();
    hosts[1 - serving].prepared("r3").await;
}

/// A hung server keeps its connections; the worker notices only that it does not answer.
#[tokio::test]
async fn worker_leaves_hung_server() {
    let server = NatsServer::with_streams().await;
    let lines = [Proxy::start(server.address()).await, Proxy::start(server.address()).await];
    let urls = lines.iter().map(|line| format!("nats://{}", line.address())).collect::<Vec<_>>().join(",");
    let mut host = WorkerHost::new(&server, "h1").await.with_url(urls);
    host.start();
    host.prepared("r1").await;
    let used: Vec<_> = lines.iter().filter(|line| line.is_in_use()).collect();
    assert_eq!(used.len(), 1);
    used[0].cut();
    host.prepared("r2").await;
}
