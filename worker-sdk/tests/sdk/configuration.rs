//! A worker in this process that takes configurations, which the test publishes as orchestrators do.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use async_nats::Client;
use async_nats::jetstream::{self, stream::Config};
use os_upgrade_jetstream::{applied_stream, desired_stream, worker_streams};
use os_upgrade_protocol::{
    Announcement, ApplicationName, Applied, AppliedItem, Content, FileEntry, HostKey, HostName, Item, ItemId,
    ItemKind, Manifest, ManifestRefusal, Revision, subject,
};
use os_upgrade_sealing::{PrivateKey, SealedFor, seal};
use os_upgrade_worker_sdk::testing::NatsServer;
use os_upgrade_worker_sdk::{
    BootIdSource, Configuration, Context, HandlerResult, Upgraded, Worker, WorkerBuilder,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Time limit for each step of a test.
const PATIENCE: Duration = Duration::from_mins(1);
/// In each content.
const CANARY: &str = "correct horse battery staple";

async fn eventually<T>(what: &str, mut find: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = find().await {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "timed out waiting for: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn host() -> HostName {
    HostName::new("h1.example.com").unwrap()
}

fn id(text: &str) -> ItemId {
    ItemId::new(text).unwrap()
}

fn applied(name: &str, id: Option<&str>, error: Option<&str>) -> AppliedItem {
    AppliedItem {
        kind: ItemKind::Configuration,
        name: name.to_owned(),
        id: id.map(|id| ItemId::new(id).unwrap()),
        error: error.map(str::to_owned),
        unit: None,
    }
}

#[derive(Default)]
struct Seen {
    calls: Vec<String>,
    /// The names whose handler fails, and those whose handler does not return.
    fails: BTreeSet<&'static str>,
    hangs: BTreeSet<&'static str>,
}

/// Notes what it is called with.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Seen>>);

impl Recorder {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap()
    }

    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.seen().calls)
    }

    async fn note(&self, name: &str, call: String) -> HandlerResult {
        self.seen().calls.push(call);
        if self.seen().hangs.contains(name) {
            std::future::pending::<()>().await;
        }
        if self.seen().fails.contains(name) { Err("out of\norder".into()) } else { Ok(()) }
    }
}

impl Worker for Recorder {
    async fn upgrade(&self, _context: &Context) -> HandlerResult<Upgraded> {
        Ok(Upgraded::Done)
    }

    async fn configure(&self, configuration: &Configuration) -> HandlerResult {
        let content = str::from_utf8(configuration.content())?;
        assert_eq!(content, format!("{CANARY} {}", configuration.id()));
        assert!(configuration.changed().is_empty());
        let name = configuration.name();
        self.note(name, format!("{name} {}", configuration.id())).await
    }

    async fn revoke(&self, name: &str) -> HandlerResult {
        self.note(name, format!("{name} revoked")).await
    }
}

/// A NATS server with a host, and the orchestrator's side of its configurations.
struct Site {
    server: NatsServer,
    client: Client,
    jetstream: jetstream::Context,
    directory: TempDir,
    recorder: Recorder,
    worker: Option<JoinHandle<()>>,
    sequence: u64,
}

impl Site {
    async fn new() -> Self {
        let server = NatsServer::start().await.unwrap();
        let client = async_nats::connect(server.url()).await.unwrap();
        let jetstream = jetstream::new(client.clone());
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("boot-id"), "boot-1").unwrap();
        let (recorder, worker, sequence) = (Recorder::default(), None, 10);
        let site = Self { server, client, jetstream, directory, recorder, worker, sequence };
        for stream in worker_streams() {
            site.create(stream).await;
        }
        site
    }

    async fn with_streams() -> Self {
        let site = Self::new().await;
        site.create(desired_stream()).await;
        site.create(applied_stream()).await;
        site
    }

    async fn create(&self, stream: Config) {
        self.jetstream.create_stream(stream).await.unwrap();
    }

    fn start(&mut self, configures: bool) {
        let builder = WorkerBuilder::new(host().as_str(), "test")
            .unwrap()
            .nats_url(self.server.url())
            .state_dir(self.directory.path().join("state"))
            .boot_id(BootIdSource::File(self.directory.path().join("boot-id")));
        let builder = if configures { builder.configures() } else { builder };
        let recorder = self.recorder.clone();
        self.worker = Some(tokio::spawn(async move { builder.run(recorder).await.unwrap() }));
    }

    /// Ends the worker as a crash would.
    async fn crash(&mut self) {
        let worker = self.worker.take().unwrap();
        worker.abort();
        drop(worker.await);
    }

    async fn last(&self, stream: &str, subject: &str) -> Option<Vec<u8>> {
        let stream = self.jetstream.get_stream(stream).await.unwrap();
        Some(stream.get_last_raw_message_by_subject(subject).await.ok()?.payload.to_vec())
    }

    async fn announcement(&self) -> Option<Announcement> {
        let subject = subject::worker(&ApplicationName::new("test").unwrap(), &host());
        Some(Announcement::parse(&self.last(subject::WORKERS_STREAM, &subject).await?).unwrap())
    }

    async fn key(&self) -> HostKey {
        eventually("a key", async || self.announcement().await?.configures).await
    }

    /// Puts an item into the stream, sealed to `key` at revision 1.
    async fn put(&self, key: &HostKey, name: &str, text: &str, files: Vec<FileEntry>) {
        let content = Content { files, bytes: format!("{CANARY} {text}").into() };
        let host = host();
        let revision = Revision { epoch: 0, sequence: 1 };
        let sealed_for = SealedFor { host: &host, kind: ItemKind::Configuration, name, revision };
        let sealed = seal(key, &sealed_for, &content.to_bytes()).unwrap();
        self.publish(subject::desired_item(&host, &id(text)), sealed).await;
    }

    async fn publish(&self, subject: String, payload: Vec<u8>) {
        self.jetstream.publish(subject, payload.into()).await.unwrap().await.unwrap();
    }

    fn manifest(&mut self, items: &[(&str, &str)]) -> Manifest {
        self.sequence += 1;
        let item = |(name, text): &(&str, &str)| Item {
            kind: ItemKind::Configuration,
            name: (*name).to_owned(),
            id: id(text),
            sealed: Revision { epoch: 0, sequence: 1 },
        };
        let revision = Revision { epoch: 0, sequence: self.sequence };
        Manifest { site: "hall-1".to_owned(), revision, items: items.iter().map(item).collect() }
    }

    async fn desire(&self, manifest: &Manifest) {
        self.publish(subject::desired_manifest(&host()), manifest.to_payload()).await;
        self.hint().await;
    }

    async fn hint(&self) {
        self.client.publish(subject::desired_hint(&host()), "".into()).await.unwrap();
        self.client.flush().await.unwrap();
    }

    /// Waits for a report with these items, at this revision.
    async fn await_report(&self, sequence: u64, items: &[AppliedItem], refused: Option<ManifestRefusal>) {
        let mut last = None;
        let start = Instant::now();
        loop {
            let payload = self.last(subject::APPLIED_STREAM, &subject::applied(&host())).await;
            let report = payload.map(|payload| Applied::parse(&payload).unwrap());
            if let Some(report) = &report
                && (report.revision.sequence, &report.items[..], report.refused) == (sequence, items, refused)
            {
                return assert_eq!(report.site, "hall-1");
            }
            last = report.or(last);
            assert!(start.elapsed() < PATIENCE, "expected {items:?} {refused:?}, reported {last:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// No file of the worker has a content.
    fn assert_no_canary(&self) {
        for entry in fs::read_dir(self.directory.path().join("state")).unwrap() {
            let path = entry.unwrap().path();
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(CANARY), "{}", path.display());
        }
    }
}

#[tokio::test]
async fn hosts_have_what_the_newest_manifest_names() {
    let mut site = Site::with_streams().await;
    site.start(true);
    let key = site.key().await;
    for (name, text) in [("b", "b1"), ("a", "a1"), ("a", "a2"), ("c", "c1")] {
        site.put(&key, name, text, Vec::new()).await;
    }
    let first = site.manifest(&[("b", "b1"), ("a", "a1")]);
    // The worker listens to hints only once it has read that there is no manifest.
    site.desire(&first).await;
    eventually("the manifest to be read", async || {
        site.hint().await;
        (site.recorder.seen().calls.len() == 2).then_some(())
    })
    .await;
    site.await_report(11, &[applied("b", Some("b1"), None), applied("a", Some("a1"), None)], None).await;
    assert_eq!(site.recorder.calls(), ["b b1", "a a1"]);

    let second = site.manifest(&[("c", "c1"), ("a", "a2")]);
    site.desire(&second).await;
    let both = [applied("c", Some("c1"), None), applied("a", Some("a2"), None)];
    site.await_report(12, &both, None).await;
    assert_eq!(site.recorder.calls(), ["b revoked", "c c1", "a a2"]);

    site.desire(&first).await;
    site.await_report(12, &both, Some(ManifestRefusal::Older)).await;
    let other = Manifest { site: "hall-2".to_owned(), ..site.manifest(&[]) };
    site.desire(&other).await;
    site.await_report(12, &both, Some(ManifestRefusal::OtherSite)).await;
    site.publish(subject::desired_manifest(&host()), b"{}".to_vec()).await;
    site.hint().await;
    site.await_report(12, &both, Some(ManifestRefusal::Malformed)).await;
    // So it is for the next process.
    site.crash().await;
    site.start(true);
    assert_eq!(site.key().await, key);
    site.desire(&second).await;
    site.await_report(12, &both, None).await;
    assert_eq!(site.recorder.calls(), Vec::<String>::new());
    site.assert_no_canary();
}

#[tokio::test]
async fn failures_cost_one_item() {
    let mut site = Site::with_streams().await;
    site.recorder.seen().fails.insert("broken");
    site.start(true);
    let key = site.key().await;
    site.put(&key, "broken", "b1", Vec::new()).await;
    site.put(&key, "fine", "f1", Vec::new()).await;
    site.put(&key, "renamed", "r1", Vec::new()).await;
    site.put(&PrivateKey::generate().public(), "foreign", "x1", Vec::new()).await;
    let bytes = format!("{CANARY} p1").len();
    let file = FileEntry { path: "/etc/app.conf".to_owned(), mode: None, user: None, group: None, bytes };
    site.put(&key, "placed", "p1", vec![file]).await;
    let named = [
        ("broken", "b1"),
        ("other-name", "r1"),
        ("foreign", "x1"),
        ("missing", "m1"),
        ("placed", "p1"),
        ("fine", "f1"),
    ];
    let mut manifest = site.manifest(&named);
    let unit = Item { kind: ItemKind::Other, ..manifest.items[0].clone() };
    manifest.items.push(unit);
    site.desire(&manifest).await;
    let sealed = format!(
        "the item cannot be opened with the key {key}: it was sealed to another key or for something else, or it is damaged"
    );
    let unknown = "this worker knows no items of this kind";
    let other = AppliedItem { kind: ItemKind::Other, ..applied("broken", None, Some(unknown)) };
    let expected = |broken: AppliedItem, missing: AppliedItem| {
        [
            broken,
            applied("other-name", None, Some(&sealed)),
            applied("foreign", None, Some(&sealed)),
            missing,
            applied(
                "placed",
                None,
                Some(
                    "/etc/app.conf is not below a root for files (there is none): choose another path, or configure a root for it",
                ),
            ),
            applied("fine", Some("f1"), None),
            other.clone(),
        ]
    };
    let missing = applied("missing", None, Some("the item is not in the stream"));
    let broken = applied("broken", None, Some("out of order"));
    site.await_report(11, &expected(broken, missing), None).await;

    site.recorder.seen().fails.clear();
    site.put(&key, "missing", "m1", Vec::new()).await;
    site.hint().await;
    let now = [("broken", "b1"), ("missing", "m1")].map(|(name, id)| applied(name, Some(id), None));
    let [broken, missing] = now;
    site.await_report(11, &expected(broken, missing), None).await;
    site.assert_no_canary();
}

#[tokio::test]
async fn interrupted_configurations_are_applied_again() {
    let mut site = Site::with_streams().await;
    site.start(true);
    let key = site.key().await;
    for text in ["a1", "a2"] {
        site.put(&key, "a", text, Vec::new()).await;
    }
    let first = site.manifest(&[("a", "a1")]);
    site.desire(&first).await;
    site.await_report(11, &[applied("a", Some("a1"), None)], None).await;
    site.recorder.seen().hangs.insert("a");
    let second = site.manifest(&[("a", "a2")]);
    site.desire(&second).await;
    eventually("it to begin", async || (site.recorder.seen().calls.len() == 2).then_some(())).await;
    site.crash().await;
    assert_eq!(site.recorder.calls(), ["a a1", "a a2"]);
    site.recorder.seen().hangs.clear();
    // It is back at what was in force before, of which the worker cannot know whether it still is.
    let third = site.manifest(&[("a", "a1")]);
    site.desire(&third).await;
    site.start(true);
    site.await_report(13, &[applied("a", Some("a1"), None)], None).await;
    assert_eq!(site.recorder.calls(), ["a a1"]);

    let state = site.directory.path().join("state/h1%2Eexample%2Ecom.desired.json");
    site.crash().await;
    fs::write(&state, "{").unwrap();
    site.start(true);
    eventually("it to be applied", async || (site.recorder.seen().calls.len() == 1).then_some(())).await;
    assert_eq!(fs::read(state.with_extension("json.corrupt")).unwrap(), b"{");
}

/// As on a site whose orchestrators are older, or whose hosts lack the right.
#[tokio::test]
async fn hosts_that_cannot_read_offer_no_key() {
    let mut site = Site::new().await;
    site.start(true);
    let announced = eventually("an announcement", async || site.announcement().await).await;
    assert_eq!(announced.configures, None);
    site.create(desired_stream()).await;
    site.create(applied_stream()).await;
    site.key().await;
}

#[tokio::test]
async fn workers_take_configurations_only_if_they_say_so() {
    let mut site = Site::with_streams().await;
    let manifest = site.manifest(&[("a", "a1")]);
    site.desire(&manifest).await;
    site.start(false);
    let announced = eventually("an announcement", async || site.announcement().await).await;
    assert_eq!(announced.configures, None);
    let names =
        fs::read_dir(site.directory.path().join("state")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: BTreeSet<_> = names.map(|name| name.into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains("key") || name.contains("desired")), "{names:?}");
}
