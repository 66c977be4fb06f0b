//! Configuration of hosts: from a file server, through the orchestrator, to files on the host.

use std::fs;
use std::path::Path;

use harness::authority::Authority;
use harness::file_server::{Answers, FileServer};
use harness::host::{APPLICATION, Host};
use harness::site::Site;
use harness::wait::eventually;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

/// In each content.
const CANARY: &str = "correct-horse-battery-staple";

/// A site with a host that takes files below a directory, and a file server.
struct Configured {
    site: Site,
    host: Host,
    root: TempDir,
    files: FileServer,
}

impl Configured {
    async fn start() -> Self {
        let (site, root, files) =
            (Site::start().await, tempfile::tempdir().unwrap(), FileServer::start().await);
        let mut host = site.host("h01").with_arguments(&["--config-root", root.path().to_str().unwrap()]);
        host.start();
        site.rest().await_scheduled(&["h01"]).await;
        Self { site, host, root, files }
    }

    /// The provider `app` of the file `app.conf`, with `more`.
    fn app(&self, more: Value) -> Value {
        let mut provider = json!({
            "name": "app", "kind": "http", "url": self.files.url("/{host}/app.conf"),
            "path": self.root.path().join("app.conf"), "poll-interval": "10s", "on-removal": "remove",
        });
        let Value::Object(more) = more else { panic!("{more}") };
        provider.as_object_mut().unwrap().extend(more);
        provider
    }

    async fn configure(&self, providers: &[Value]) {
        let config =
            json!({ "worker-applications": [{ "name": APPLICATION }], "config-providers": providers });
        let (status, answer) =
            self.site.rest().call(Method::PUT, "/v1/config/os-upgrade", &config.to_string()).await;
        assert!(status < 300, "{answer}");
    }

    async fn await_file(&self, expected: Option<&str>) {
        let path = self.root.path().join("app.conf");
        eventually(&format!("{} to have {expected:?}", path.display()), async || {
            (fs::read_to_string(&path).ok().as_deref() == expected).then_some(())
        })
        .await;
    }
}

/// Whether a file below `directory` has the canary.
fn has_canary(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            has_canary(&path)
        } else {
            let content = fs::read(&path).unwrap_or_default();
            content.windows(CANARY.len()).any(|window| window == CANARY.as_bytes())
        }
    })
}

/// Contents are in no stream, history, log or state file; only the host has them.
#[tokio::test]
async fn a_plain_file_server_configures_hosts() {
    let configured = Configured::start().await;
    let content = |number: u32| format!("password={CANARY}-{number}\n");
    configured.files.put("/h01/app.conf", content(1));
    configured.configure(&[configured.app(json!({ "mode": "0640" }))]).await;
    configured.await_file(Some(&content(1))).await;
    configured.files.put("/h01/app.conf", content(2));
    configured.await_file(Some(&content(2))).await;
    // What is unchanged costs nothing.
    let journal = configured.site.last_sequence("os-upgrade:journal").await;
    let (_, unchanged) = configured.files.count(304);
    eventually("polls that bring nothing new", async || {
        (configured.files.count(304).1 >= unchanged + 2).then_some(())
    })
    .await;
    assert_eq!(configured.site.last_sequence("os-upgrade:journal").await, journal);
    // While the server is out of order, the host keeps what it has.
    configured.files.answer(Answers::Status(500));
    configured.configure(&[configured.app(json!({ "mode": "0600" }))]).await;
    eventually("a failure", async || (configured.files.count(500).1 > 0).then_some(())).await;
    configured.await_file(Some(&content(2))).await;
    configured.files.answer(Answers::Files);
    configured.files.remove("/h01/app.conf");
    configured.await_file(None).await;
    let metrics = eventually("the report of the host", async || {
        let metrics = configured.site.rest().get_as("/metrics", "*/*").await;
        metrics.contains(r#"os_upgrade_provider_hosts{provider="app",state="nothing"} 1"#).then_some(metrics)
    })
    .await;
    assert!(!metrics.contains(CANARY));
    // In a backup too, which is below the directory.
    configured.site.orchestrator.unpacked_backup().await;
    assert!(!has_canary(configured.site.orchestrator.directory()));
    assert!(!configured.site.orchestrator.log().contains(CANARY));
    assert!(!configured.host.log().contains(CANARY));
}

/// The output of a command that must succeed.
async fn printed(site: &Site, arguments: &[&str], input: &str) -> String {
    let (code, printed, stderr) = site.orchestrator.ask(arguments, input).await;
    assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
    printed
}

/// A provider gets its secret, and nobody else does. With the key of the strongbox, a new leader seals nothing anew.
#[tokio::test]
async fn providers_get_the_secret_that_is_for_them() {
    let mut configured = Configured::start().await;
    let files = &configured.files;
    files.put("/h01/app.conf", CANARY);
    files.require("Bearer not-for-others");
    let (_, key, _) = configured.site.orchestrator.run(&["strongbox", "key"], "").await;
    printed(&configured.site, &["strongbox", "unseal"], &key).await;
    printed(&configured.site, &["strongbox", "put", "files"], "not-for-others").await;
    configured.configure(&[configured.app(json!({ "credentials": "files" }))]).await;
    let failure = "the secret files of `credentials` is not for the provider's origin";
    eventually("a failure without a request", async || {
        let list = printed(&configured.site, &["providers", "list"], "").await;
        list.contains(failure).then_some(())
    })
    .await;
    assert_eq!(configured.files.count(401).0, 0, "nothing was sent");
    let put = ["strongbox", "put", "files", "--origin", &configured.files.origin()];
    printed(&configured.site, &put, "not-for-others").await;
    configured.await_file(Some(CANARY)).await;
    eventually("the report", async || {
        let shown = printed(&configured.site, &["providers", "show", "app"], "").await;
        (shown.contains("applied on 1 of 1 hosts") && shown.contains("applied  ")).then_some(())
    })
    .await;
    let stored = async |site: &Site| {
        let facts = site.journal().await;
        facts.iter().filter(|fact| fact["type"] == "item-stored").count()
    };
    assert_eq!(stored(&configured.site).await, 1);
    configured.site.orchestrator.kill_and_start().await;
    configured.site.orchestrator.ready().await;
    printed(&configured.site, &["strongbox", "unseal"], &key).await;
    let (before, _) = configured.files.count(200);
    assert_eq!(
        printed(&configured.site, &["providers", "poll", "app", "--host", "h01"], "").await,
        "asked: app"
    );
    eventually("a question of the new leader", async || {
        (configured.files.count(200).0 > before).then_some(())
    })
    .await;
    eventually("its answer", async || {
        let (_, list) = configured.site.rest().get("/v1/state/config-providers").await;
        (list["providers"][0]["confirmed"] == 1).then_some(())
    })
    .await;
    assert_eq!(stored(&configured.site).await, 1, "what the host has is known again");
    assert!(!has_canary(configured.site.orchestrator.directory()));
    let (_, withheld) = configured.site.rest().get("/v1/state/desired").await;
    assert_eq!(withheld, json!({ "hosts": [] }));
}

/// A provider that is away keeps a host that needs it from a run for a while, and no longer.
#[tokio::test]
async fn required_configuration_is_waited_for() {
    let configured = Configured::start().await;
    configured.files.put("/h01/app.conf", "v1");
    configured.files.answer(Answers::Status(503));
    let rest = configured.site.rest();
    let wait = async |provider_wait: &str| {
        let config = json!({
            "worker-applications": [{ "name": APPLICATION }],
            "config-providers": [configured.app(json!({ "required": true }))],
            "rollout": { "provider-wait": provider_wait },
        });
        let (status, answer) = rest.call(Method::PUT, "/v1/config/os-upgrade", &config.to_string()).await;
        assert!(status < 300, "{answer}");
    };
    wait("1s").await;
    let run = rest.await_end(&rest.start_run().await).await;
    assert_eq!(run.statuses(), [("h01", "skipped")].into());
    let reason = run.reasons()["h01"];
    assert!(reason.starts_with("lacks configuration of app: the provider has not confirmed it"), "{reason}");
    let need = "provider app fails for every host";
    let status = printed(&configured.site, &["status"], "").await;
    assert!(status.contains(need), "{status}");
    let test = ["providers", "test", "app", "--host", "h01"];
    let (code, tested, stderr) = configured.site.orchestrator.ask(&test, "").await;
    assert_eq!((code, tested.contains("503")), (Some(1), true), "{tested} {stderr}");
    configured.files.answer(Answers::Files);
    assert!(printed(&configured.site, &test, "").await.starts_with("a content of 2 bytes in "));
    wait("1h").await;
    printed(&configured.site, &["providers", "poll", "app"], "").await;
    let run = rest.await_end(&rest.start_run().await).await;
    assert_eq!((run.result(), run.statuses()), (Some("completed"), [("h01", "upgraded")].into()));
    configured.await_file(Some("v1")).await;
    eventually("the provider to have recovered", async || {
        (!printed(&configured.site, &["status"], "").await.contains(need)).then_some(())
    })
    .await;
    let facts = configured.site.journal().await;
    let about =
        |fact: &&Value| fact["provider"] == "app" && fact["type"].as_str().unwrap().starts_with("provider-");
    let told: Vec<_> = facts.iter().filter(about).map(|fact| fact["type"].as_str().unwrap()).collect();
    assert_eq!(told, ["provider-failed", "provider-recovered"]);
    let shown = printed(&configured.site, &["hosts", "show", "h01"], "").await;
    assert!(
        shown.lines().any(|line| line.starts_with("configuration") && line.ends_with("app applied")),
        "{shown}"
    );
}

/// "A file server" of docs/configuration.md, over TLS with a private authority, at a server that asks for a token and a client certificate.
#[tokio::test]
async fn a_private_server_is_asked_over_tls() {
    let (servers, clients) = (Authority::new("servers"), Authority::new("clients"));
    let mut configured = Configured::start().await;
    configured.files = FileServer::start_with_tls(&servers, Some(&clients)).await;
    let (site, files) = (&configured.site, &configured.files);
    files.put("/h01/app.conf", CANARY);
    files.require("Bearer not-for-others");
    let (_, key, _) = site.orchestrator.run(&["strongbox", "key"], "").await;
    printed(site, &["strongbox", "unseal"], &key).await;
    let put = async |name: &str, secret: &str| {
        printed(site, &["strongbox", "put", name, "--origin", &files.origin()], secret).await
    };
    put("files", "not-for-others").await;
    let with = |ca: &str| {
        configured.app(json!({ "credentials": "files", "client-certificate": "orchestrator", "ca": ca }))
    };
    let fails = async |failure: &str| {
        eventually(&format!("the failure {failure:?}"), async || {
            printed(site, &["providers", "list"], "").await.contains(failure).then_some(())
        })
        .await;
    };
    // Each mistake of the how-to is told in words, and nothing is sent.
    configured.configure(&[with(&clients.pem)]).await;
    fails("the secret orchestrator of `client-certificate` is not stored").await;
    let (certificate, private_key) = clients.certify("orchestrator");
    put("orchestrator", &certificate).await;
    fails("the secret orchestrator of `client-certificate` is no certificate with its one private key").await;
    put("orchestrator", &format!("{certificate}{private_key}")).await;
    fails("its certificate is from an authority that is not trusted").await;
    assert_eq!(files.count(200), (0, 0));
    configured.configure(&[with(&servers.pem)]).await;
    configured.await_file(Some(CANARY)).await;
    eventually("the report", async || {
        let shown = printed(site, &["providers", "show", "app"], "").await;
        shown.contains("applied on 1 of 1 hosts").then_some(())
    })
    .await;
    let secret = private_key.lines().nth(1).unwrap();
    assert!(!site.orchestrator.log().contains(secret));
}
