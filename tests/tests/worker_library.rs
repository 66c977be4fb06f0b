//! The worker SDK as a library: a worker in this process, and the example.

use std::process::{Command, Stdio};

use os_upgrade_tests::nats_server::NatsServer;
use os_upgrade_tests::wait::eventually;
use os_upgrade_tests::worker::{APPLICATION, FIRST_BOOT, WorkerHost, worker_example};
use os_upgrade_worker_sdk::{
    BootIdSource, CancellationToken, Context, HandlerResult, Upgraded, Versions, Worker, WorkerBuilder,
};

/// Fails in every way that a handler can.
struct Clumsy;

impl Worker for Clumsy {
    async fn prepare(&self, context: &Context) -> HandlerResult {
        let run = context.run().map(ToString::to_string).unwrap_or_default();
        match run.as_str() {
            "panics" => panic!("out of order"),
            "fails" => Err(std::io::Error::other("no space left"))?,
            "waits" => {
                context.cancelled().await;
                Err("told to stop")?;
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
        Ok(Versions([("clumsy".to_owned(), "1".to_owned())].into()))
    }
}

#[tokio::test]
async fn a_worker_in_this_process() {
    let server = NatsServer::with_streams().await;
    // The host without its process: only the other end of the wire.
    let host = WorkerHost::new(&server, "h1").await;
    let shutdown = CancellationToken::new();
    let builder = WorkerBuilder::new("h1", APPLICATION)
        .unwrap()
        .nats_client(server.client().await)
        .state_dir(host.path("state"))
        .boot_id(BootIdSource::File(host.path("boot-id")))
        .shutdown(shutdown.clone());
    let worker = tokio::spawn(builder.run(Clumsy));

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
    let versions = Versions([("clumsy".to_owned(), "1".to_owned())].into());
    eventually("versions", async || Some(host.versions().await).filter(|all| *all == [versions.clone()]))
        .await;

    // At the end, what a handler returns because it was told to stop is no answer.
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
async fn the_example_serves_a_host() {
    let server = NatsServer::with_streams().await;
    let host = WorkerHost::new(&server, "h1").await;
    let mut example = Command::new(worker_example("minimal"))
        .args([server.url(), "h1".to_owned()])
        .env("TMPDIR", host.path(""))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let result = async |payload: String| {
        let sequence = host.send("r1", &payload).await;
        let replies = async || {
            let replies = host.replies().await;
            let reply = replies
                .iter()
                .find(|reply| os_upgrade_tests::worker::in_reply_to(reply) == Some(sequence))?;
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
