//! Handlers report progress, and are told why they should stop.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{SecondsFormat, TimeDelta, Utc};
use futures::StreamExt;
use harness::host::APPLICATION;
use harness::nats_server::NatsServer;
use harness::site::Site;
use harness::wait::{PATIENCE, eventually};
use harness::worker::WorkerHost;
use os_upgrade_protocol::{Progress, subject};
use os_upgrade_worker_sdk::{
    BootIdSource, CancellationToken, Cause, Context, HandlerResult, Upgraded, Worker, WorkerBuilder,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// Reports progress in `upgrade`, then waits for `go`. With `waits`, `prepare` waits until it should stop.
#[derive(Debug, Clone, Default)]
struct TestWorker {
    waits: Arc<Mutex<bool>>,
    fails: bool,
    causes: Arc<Mutex<Vec<Cause>>>,
    go: Arc<Notify>,
}

impl Worker for TestWorker {
    async fn prepare(&self, context: &Context) -> HandlerResult {
        if *self.waits.lock().unwrap() {
            context.progress(1, "waiting");
            let cause = context.cancelled().await;
            self.causes.lock().unwrap().push(cause);
            Err(format!("stopped: {cause:?}"))?;
        }
        if self.fails {
            self.go.notified().await;
            Err("no space left")?;
        }
        Ok(())
    }

    async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
        for percent in 1..=100 {
            context.progress(percent, "unpacking");
        }
        self.go.notified().await;
        Ok(Upgraded::Done)
    }
}

impl TestWorker {
    fn start(&self, url: &str, directory: &Path, shutdown: CancellationToken) {
        self.start_as("h01", url, directory, shutdown);
    }

    fn start_as(&self, host: &str, url: &str, directory: &Path, shutdown: CancellationToken) {
        std::fs::write(directory.join("boot"), "boot-1\n").unwrap();
        let builder = WorkerBuilder::new(host, APPLICATION)
            .unwrap()
            .nats_url(url)
            .state_dir(directory.join("state"))
            .boot_id(BootIdSource::File(directory.join("boot")))
            .shutdown(shutdown);
        tokio::spawn(builder.run(self.clone()));
    }

    fn causes(&self) -> Vec<Cause> {
        self.causes.lock().unwrap().clone()
    }

    async fn await_cause(&self, cause: Cause) {
        let stopped = async || (self.causes().last() == Some(&cause)).then_some(());
        eventually(&format!("{cause:?}"), stopped).await;
    }
}

#[tokio::test]
async fn progress_is_shown_but_not_stored() {
    let site = Site::start().await;
    let rest = site.rest();
    let directory = tempfile::tempdir().unwrap();
    let worker = TestWorker::default();
    worker.start(&site.nats.url(), directory.path(), CancellationToken::new());
    rest.await_scheduled(&["h01"]).await;
    let id = rest.start_run().await;
    let last = json!({ "percent": 100, "text": "unpacking" });
    let shown = async || rest.try_host("h01").await.filter(|host| host["progress"] == last).map(drop);
    eventually("the progress", shown).await;
    let (_, hosts) = rest.get("/v1/state/os-upgrade/hosts").await;
    assert_eq!(hosts[0]["progress"], last, "{hosts}");
    let (_, state) = rest.get("/v1/state/os-upgrade?fields=hosts/progress").await;
    assert_eq!(state, json!({ "hosts": [{ "progress": last }] }));

    worker.go.notify_one();
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    let host = rest.try_host("h01").await.unwrap();
    assert_eq!(host.get("progress"), None, "{host}");
    let journal = Value::from(site.journal().await).to_string();
    assert!(!journal.contains("unpacking"), "{journal}");
}

#[tokio::test]
async fn scripts_report_progress() {
    let site = Site::start().await;
    let rest = site.rest();
    let mut host = WorkerHost::new(&site.nats, "h01").await;
    let script = r#"
set -eu
[ ! -s "$OS_UPGRADE_PROGRESS" ]
echo 10 begins >"$OS_UPGRADE_PROGRESS"
echo '40% unpacking linux' >>"$OS_UPGRADE_PROGRESS"
while [ ! -e ../more ]; do sleep 0.02; done
echo configuring >"$OS_UPGRADE_PROGRESS"
while [ ! -e ../go ]; do sleep 0.02; done"#;
    host.script("prepare", r#"echo 99 prepared >>"$OS_UPGRADE_PROGRESS""#);
    host.script("upgrade", script);
    host.script("versions", r#"echo "{\"progress\":\"${OS_UPGRADE_PROGRESS:-none}\"}""#);
    host.start();
    rest.await_scheduled(&["h01"]).await;
    let id = rest.start_run().await;
    let shows = async |last: Value| {
        let shown = async || rest.try_host("h01").await.filter(|host| host["progress"] == last);
        eventually("the progress", shown).await
    };
    let state = shows(json!({ "percent": 40, "text": "unpacking linux" })).await;
    assert_eq!(state["versions"], json!({ "progress": "none" }));
    std::fs::write(host.path("more"), "").unwrap();
    shows(json!({ "text": "configuring" })).await;
    std::fs::write(host.path("go"), "").unwrap();
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
}

#[tokio::test]
async fn cancel_notifies_preparing_hosts() {
    let site = Site::start().await;
    let rest = site.rest();
    let directory = tempfile::tempdir().unwrap();
    let worker = TestWorker::default();
    *worker.waits.lock().unwrap() = true;
    worker.start(&site.nats.url(), directory.path(), CancellationToken::new());
    rest.await_scheduled(&["h01"]).await;
    let id = rest.start_run().await;
    let waits = async || rest.try_host("h01").await.filter(|host| host.get("progress").is_some());
    eventually("the prepare", waits).await;
    assert_eq!(rest.cancel().await.0, 204);
    worker.await_cause(Cause::Cancelled).await;
    assert_eq!(rest.await_end(&id).await.result(), Some("cancelled"));
}

#[tokio::test]
async fn failed_run_notifies_busy_hosts() {
    let site = Site::start().await;
    let rest = site.rest();
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (waiting, failing) = (TestWorker::default(), TestWorker { fails: true, ..TestWorker::default() });
    *waiting.waits.lock().unwrap() = true;
    for (worker, host, directory) in [(&waiting, "h01", &directories[0]), (&failing, "h02", &directories[1])]
    {
        worker.start_as(host, &site.nats.url(), directory.path(), CancellationToken::new());
    }
    rest.await_scheduled(&["h01", "h02"]).await;
    let id = rest.start_run().await;
    let waits = async || rest.try_host("h01").await.filter(|host| host.get("progress").is_some());
    eventually("the prepare", waits).await;
    failing.go.notify_one();
    waiting.await_cause(Cause::RunFailed).await;
    assert_eq!(rest.await_end(&id).await.result(), Some("failed"));
    assert_eq!(failing.causes(), []);
}

/// A late hint about an ended run stops nothing; an empty hint is about the current command.
#[tokio::test]
async fn other_runs_hint_is_ignored() {
    let server = NatsServer::with_streams().await;
    let host = WorkerHost::new(&server, "h01").await;
    let worker = TestWorker::default();
    *worker.waits.lock().unwrap() = true;
    worker.start(&server.url(), &host.path(""), CancellationToken::new());
    let mut progress = host.client().subscribe(subject::progress(&host.host)).await.unwrap();
    let prepare = host.send("r2", &host.prepare("")).await;
    tokio::time::timeout(PATIENCE, progress.next()).await.unwrap().unwrap();
    for payload in [r#"{"run":"r1","cause":"failed"}"#, r#"{"run":"r2","cause":"cancelled"}"#, ""] {
        host.client().publish(subject::hint(&host.host), payload.into()).await.unwrap();
    }
    assert_eq!(host.result_of(prepare).await, "stopped: Cancelled");
    assert_eq!(worker.causes(), [Cause::Cancelled]);
}

#[tokio::test]
async fn stop_causes_are_distinguished() {
    let server = NatsServer::with_streams().await;
    let host = WorkerHost::new(&server, "h01").await;
    let worker = TestWorker::default();
    *worker.waits.lock().unwrap() = true;
    let shutdown = CancellationToken::new();
    worker.start(&server.url(), &host.path(""), shutdown.clone());
    let soon = (Utc::now() + TimeDelta::seconds(2)).to_rfc3339_opts(SecondsFormat::Millis, true);
    let prepare = host.send("r1", &host.prepare(&soon)).await;
    assert_eq!(host.result_of(prepare).await, "stopped: NotAfter");
    let mut progress = host.client().subscribe(subject::progress(&host.host)).await.unwrap();
    let prepare = host.send("r2", &host.prepare("")).await;
    // Waits for the handler's own report: a handler that has not begun yet would not be started.
    let waiting = Progress::new(prepare, 1, "waiting");
    while tokio::time::timeout(PATIENCE, progress.next())
        .await
        .unwrap()
        .is_some_and(|message| Progress::parse(&message.payload).unwrap() != waiting)
    {}
    shutdown.cancel();
    worker.await_cause(Cause::Shutdown).await;
    assert_eq!(worker.causes(), [Cause::NotAfter, Cause::Shutdown]);
}

#[tokio::test]
async fn frequent_progress_is_throttled() {
    let server = NatsServer::with_streams().await;
    let host = WorkerHost::new(&server, "h01").await;
    let mut progress = host.client().subscribe(subject::progress(&host.host)).await.unwrap();
    host.client().flush().await.unwrap();
    let worker = TestWorker::default();
    worker.start(&server.url(), &host.path(""), CancellationToken::new());
    host.prepared("r1").await;
    let upgrade = host.send("r1", &host.upgrade()).await;
    let mut next = async || {
        let message = tokio::time::timeout(PATIENCE, progress.next()).await.unwrap().unwrap();
        Progress::parse(&message.payload).unwrap()
    };
    let last = Progress::new(upgrade, 100, "unpacking");
    let mut count = 1;
    while next().await != last {
        count += 1;
    }
    assert!(count <= 2, "{count}");
    // Repeated, for an orchestrator that has just started.
    assert_eq!(next().await, last);
    worker.go.notify_one();
    assert_eq!(host.result_of(upgrade).await, "done");
    let more = tokio::time::timeout(Duration::from_millis(1), progress.next()).await;
    assert!(more.is_err(), "{more:?}");
}
