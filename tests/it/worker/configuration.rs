//! Configurations of workers with scripts, which the test publishes as orchestrators do. What is about the library alone is in
//! `worker-sdk/tests/sdk/configuration.rs`.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use async_nats::{Client, jetstream};
use harness::host::APPLICATION;
use harness::nats_server::NatsServer;
use harness::secured_nats::SecuredNats;
use harness::wait::eventually;
use harness::worker::WorkerHost;
use os_upgrade_jetstream::{applied_stream, desired_stream};
use os_upgrade_protocol::{
    Announcement, ApplicationName, Applied, Content, FileEntry, HostKey, HostName, Item, ItemId, ItemKind,
    Manifest, Revision, subject,
};
use os_upgrade_sealing::{SealedFor, seal};

/// In each content.
const CANARY: &str = "correct-horse-battery-staple";

/// The orchestrator's side of a host's configurations.
struct Desired {
    host: HostName,
    client: Client,
    jetstream: jetstream::Context,
    sequence: u64,
}

impl Desired {
    fn new(host: &str, client: Client) -> Self {
        let jetstream = jetstream::new(client.clone());
        Self { host: HostName::new(host).unwrap(), client, jetstream, sequence: 0 }
    }

    async fn last(&self, stream: &str, subject: &str) -> Option<Vec<u8>> {
        let stream = self.jetstream.get_stream(stream).await.ok()?;
        Some(stream.get_last_raw_message_by_subject(subject).await.ok()?.payload.to_vec())
    }

    async fn announcement(&self) -> Option<Announcement> {
        let subject = subject::worker(&ApplicationName::new(APPLICATION).unwrap(), &self.host);
        Some(Announcement::parse(&self.last(subject::WORKERS_STREAM, &subject).await?).unwrap())
    }

    async fn key(&self) -> HostKey {
        eventually("a key", async || self.announcement().await?.configures).await
    }

    async fn publish(&self, subject: String, payload: Vec<u8>) {
        self.jetstream.publish(subject, payload.into()).await.unwrap().await.unwrap();
    }

    /// Publishes configurations, each with its name and its id, and waits until they are all that the host reports to be in force.
    async fn apply(&mut self, items: &[(&str, &str)]) {
        self.desire(items).await;
        self.await_applied(items).await;
    }

    async fn await_applied(&self, items: &[(&str, &str)]) {
        eventually("a report of them", async || {
            let report =
                Applied::parse(&self.last(subject::APPLIED_STREAM, &subject::applied(&self.host)).await?);
            let report = report.unwrap();
            let in_force: Vec<_> = report
                .items
                .iter()
                .map(|item| {
                    (item.name.clone(), item.id.as_ref().map(ToString::to_string).unwrap_or_default())
                })
                .collect();
            let expected: Vec<_> =
                items.iter().map(|(name, id)| ((*name).to_owned(), (*id).to_owned())).collect();
            (report.revision.sequence == self.sequence && in_force == expected).then_some(())
        })
        .await;
    }

    async fn desire(&mut self, items: &[(&str, &str)]) {
        self.desire_at(None, items).await;
    }

    /// As [`Self::desire`], each in a file below `root`, if there is one.
    async fn desire_at(&mut self, root: Option<&Path>, items: &[(&str, &str)]) {
        self.sequence += 1;
        let key = self.key().await;
        let revision = Revision { epoch: 0, sequence: self.sequence };
        let mut manifest = Manifest { site: "hall-1".to_owned(), revision, items: Vec::new() };
        for (name, text) in items {
            let id = ItemId::new(text).unwrap();
            let bytes = format!("{CANARY}-{text}").into_bytes();
            let file = |root: &Path| FileEntry {
                path: root.join(format!("{name}.d/own.conf")).display().to_string(),
                mode: Some(0o640),
                user: None,
                group: None,
                bytes: bytes.len(),
            };
            let content = Content { files: root.map(file).into_iter().collect(), bytes };
            let kind = ItemKind::Configuration;
            let sealed_for = SealedFor { host: &self.host, kind, name, revision };
            let sealed = seal(&key, &sealed_for, &content.to_bytes()).unwrap();
            self.publish(subject::desired_item(&self.host, &id), sealed).await;
            manifest.items.push(Item { kind, name: (*name).to_owned(), id, sealed: revision });
        }
        self.publish(subject::desired_manifest(&self.host), manifest.to_payload()).await;
        self.client.publish(subject::desired_hint(&self.host), "".into()).await.unwrap();
        self.client.flush().await.unwrap();
    }
}

/// A worker with scripts that note what they are called with in `calls`, and the content. Hosts have names of their own here, because
/// the content of a host's configuration is in one place of the machine.
async fn scripted(server: &NatsServer, name: &str) -> (WorkerHost, Desired) {
    let jetstream = jetstream::new(server.client().await);
    for stream in [desired_stream(), applied_stream()] {
        jetstream.create_stream(stream).await.unwrap();
    }
    let host = WorkerHost::new(server, name).await;
    host.script(
        "configure",
        r#"
        set -eu
        echo "$OS_UPGRADE_HOST $OS_UPGRADE_CONFIG_NAME $OS_UPGRADE_CONFIG_ID $(stat -c %a "$OS_UPGRADE_CONFIG_FILE")" >>../calls
        cat "$OS_UPGRADE_CONFIG_FILE" >../content
        echo "$OS_UPGRADE_CONFIG_FILE" >../path
        while [ -e ../hold ]; do sleep 0.02; done
        if [ -e ../fail ]; then echo out of order >&2; exit 1; fi"#,
    );
    host.script("revoke", r#"echo "revoke $OS_UPGRADE_CONFIG_NAME ${OS_UPGRADE_CONFIG_FILE-}" >>../calls"#);
    (host, Desired::new(name, server.client().await))
}

fn content_path(host: &WorkerHost) -> String {
    std::fs::read_to_string(host.path("path")).unwrap().trim().to_owned()
}

/// No file of the worker has a content, nor has its log.
fn assert_no_canary(host: &WorkerHost) {
    assert!(!host.log().contains(CANARY));
    for entry in std::fs::read_dir(host.path("state")).unwrap() {
        let path = entry.unwrap().path();
        assert!(
            !String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(CANARY),
            "{}",
            path.display()
        );
    }
}

#[tokio::test]
async fn scripts_apply_configurations() {
    let server = NatsServer::with_streams().await;
    let (mut host, mut desired) = scripted(&server, "configured-1").await;
    host.start();
    desired.apply(&[("net", "n1"), ("app", "a1")]).await;
    host.await_log(&format!("key={}", desired.key().await)).await;
    assert_eq!(host.lines("calls"), ["configured-1 net n1 600", "configured-1 app a1 600"]);
    assert_eq!(host.lines("content"), [format!("{CANARY}-a1")]);
    assert!(!Path::new(&content_path(&host)).exists());
    let key = host.path("state/configured-1.key");
    assert_eq!(std::fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);

    // A failure is reported, and retried.
    host.touch("fail");
    desired.desire(&[("app", "a2")]).await;
    eventually("the failure to be reported", async || {
        let payload = desired.last(subject::APPLIED_STREAM, &subject::applied(&desired.host)).await?;
        String::from_utf8(payload).unwrap().contains(r#""error":"out of order""#).then_some(())
    })
    .await;
    std::fs::remove_file(host.path("fail")).unwrap();
    desired.apply(&[("app", "a2")]).await;
    assert!(host.lines("calls").contains(&"revoke net ".to_owned()), "{:?}", host.lines("calls"));
    assert_no_canary(&host);

    // Commands are carried out as ever.
    host.prepared("r1").await;
}

#[tokio::test]
async fn interrupted_scripts_are_run_again() {
    let server = NatsServer::with_streams().await;
    let (mut host, mut desired) = scripted(&server, "configured-2").await;
    host.touch("hold");
    host.start();
    desired.desire(&[("app", "a1")]).await;
    host.await_file("path").await;
    // A killed worker leaves its script and the content behind.
    host.kill();
    assert!(Path::new(&content_path(&host)).exists());
    std::fs::remove_file(host.path("path")).unwrap();
    host.start();
    host.await_file("path").await;
    // One that is stopped does not.
    assert!(host.terminate().await.success());
    assert!(!Path::new(&content_path(&host)).exists());
    assert_eq!(host.lines("calls"), ["configured-2 app a1 600"; 2]);
    std::fs::remove_file(host.path("hold")).unwrap();
    // Without the script the worker takes no configurations any more.
    std::fs::rename(host.scripts().join("configure"), host.path("configure")).unwrap();
    host.start();
    eventually("no key", async || desired.announcement().await.filter(|said| said.configures.is_none()))
        .await;
    host.kill();
    std::fs::rename(host.path("configure"), host.scripts().join("configure")).unwrap();
    host.start();
    desired.apply(&[("app", "a1")]).await;
    assert_no_canary(&host);
}

/// Whatever kind of worker it is: the library puts the files. One that somebody has changed is theirs.
#[tokio::test]
async fn configurations_have_files_below_roots() {
    let server = NatsServer::with_streams().await;
    let jetstream = jetstream::new(server.client().await);
    for stream in [desired_stream(), applied_stream()] {
        jetstream.create_stream(stream).await.unwrap();
    }
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let mut host = WorkerHost::new(&server, "configured-4")
        .await
        .with_options(&["--config-root", root.to_str().unwrap()]);
    let mut desired = Desired::new("configured-4", server.client().await);
    host.start();
    let read = |name: &str| std::fs::read_to_string(root.join(format!("{name}.d/own.conf"))).ok();
    let both = [("app", "a1"), ("net", "n1")];
    desired.desire_at(Some(&root), &both).await;
    desired.await_applied(&both).await;
    assert_eq!([read("app"), read("net")], ["a1", "n1"].map(|text| Some(format!("{CANARY}-{text}"))));
    let mode = std::fs::metadata(root.join("app.d/own.conf")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);

    host.kill();
    std::fs::write(root.join("net.d/own.conf"), "by hand").unwrap();
    host.start();
    desired.desire_at(Some(&root), &[("app", "a2")]).await;
    eventually("the changed file to be reported", async || {
        let payload = desired.last(subject::APPLIED_STREAM, &subject::applied(&desired.host)).await?;
        String::from_utf8(payload).unwrap().contains("has been changed by somebody else").then_some(())
    })
    .await;
    eventually("the other one to be changed", async || {
        (read("app") == Some(format!("{CANARY}-a2"))).then_some(())
    })
    .await;
    assert_eq!(read("net"), Some("by hand".to_owned()));
    std::fs::remove_file(root.join("net.d/own.conf")).unwrap();
    desired.desire_at(Some(&root), &[]).await;
    desired.await_applied(&[]).await;
    assert_eq!([read("app"), read("net")], [None, None]);
    assert_no_canary(&host);
}

/// With an account of its own the host reads under other subjects, and only what is for it.
#[tokio::test]
async fn hosts_with_credentials_take_configurations() {
    let nats = SecuredNats::start(1).await;
    let directory = tempfile::tempdir().unwrap();
    let mut orchestrator = nats.orchestrator();
    orchestrator.start_ready().await;
    let client = nats.client(&nats.issued().orchestrator_credentials()).await;
    let mut desired = Desired::new("configured-3", client);
    let mut host =
        nats.host(&directory.path().join("log"), "configured-3").await.with_configuration_scripts();
    eventually("the streams", async || desired.jetstream.get_stream(subject::APPLIED_STREAM).await.ok())
        .await;
    // The test plays its part.
    orchestrator.kill().await;
    host.start();
    desired.apply(&[("app", "a1")]).await;
    desired.apply(&[]).await;
    assert_eq!(host.script_log(), [format!("configure app {CANARY}-a1"), "revoke app".to_owned()]);
    assert!(!host.log().contains(CANARY));
}
