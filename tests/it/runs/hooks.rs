//! The provider of kind `hooks` that docs/configuration.md shows, a program in Python, with a whole site: what it is told, what it answers,
//! and its call-backs.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;

use harness::host::{APPLICATION, Host};
use harness::orchestrator::own_address;
use harness::site::Site;
use harness::wait::eventually;
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::{Child, Command};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/hook_provider.py");

/// The provider, which ends when it is dropped.
struct Provider {
    address: SocketAddr,
    directory: TempDir,
    _process: Child,
}

impl Provider {
    fn start() -> Self {
        let (address, directory) = (own_address(), tempfile::tempdir().unwrap());
        let hosts = directory.path().join("hosts");
        fs::create_dir(&hosts).unwrap();
        let log = File::create(directory.path().join("log")).unwrap();
        let mut command = Command::new("python3");
        command.arg(PROGRAM).arg(hosts).arg(address.to_string());
        // A proxy of the machine does not reach addresses of the tests.
        command.env("no_proxy", "*").env_remove("HOOKS_SECRET");
        command.stdout(log.try_clone().unwrap()).stderr(log).kill_on_drop(true);
        Self { address, directory, _process: command.spawn().unwrap() }
    }

    /// What h01 is to have from now on.
    fn give(&self, content: Option<&str>) {
        let file = self.directory.path().join("hosts/h01");
        match content {
            Some(content) => {
                // In one step: half a file would be called back, too.
                let new = self.directory.path().join("new");
                fs::write(&new, content).unwrap();
                fs::rename(new, file).unwrap();
            }
            None => fs::remove_file(file).unwrap(),
        }
    }

    /// Waits until the program has printed this.
    async fn await_printed(&self, text: &str) {
        let log = self.directory.path().join("log");
        eventually(&format!("the provider to print {text:?}"), async || {
            fs::read_to_string(&log).unwrap().contains(text).then_some(())
        })
        .await;
    }
}

async fn await_file(path: &Path, expected: Option<&str>) {
    eventually(&format!("{} to have {expected:?}", path.display()), async || {
        (fs::read_to_string(path).ok().as_deref() == expected).then_some(())
    })
    .await;
}

async fn await_applied(site: &Site) {
    eventually("the report of the host", async || {
        let shown = site.orchestrator.done(&["providers", "show", "app"]).await;
        shown.contains("applied on 1 of 1 hosts").then_some(())
    })
    .await;
}

/// A site with h01, which takes files below a directory, and has the file `app.conf` there of `provider`.
async fn configured(provider: &Provider) -> (Site, Host, TempDir) {
    let (site, root) = (Site::start().await, tempfile::tempdir().unwrap());
    let mut host = site.host("h01").with_arguments(&["--config-root", root.path().to_str().unwrap()]);
    host.start();
    site.rest().await_scheduled(&["h01"]).await;
    let app = json!({
        "name": "app", "kind": "hooks", "url": format!("http://{}/", provider.address),
        "path": root.path().join("app.conf"),
    });
    let config = json!({ "worker-applications": [{ "name": APPLICATION }], "config-providers": [app] });
    let (status, answer) = site.rest().call(Method::PUT, "/v1/config/os-upgrade", &config.to_string()).await;
    assert!(status < 300, "{answer}");
    (site, host, root)
}

/// Nothing is polled here: the interval is an hour.
#[tokio::test]
async fn a_provider_in_python_is_told_and_calls_back() {
    let provider = Provider::start();
    provider.give(Some("v1"));
    let (site, _host, root) = configured(&provider).await;
    let file = root.path().join("app.conf");
    await_file(&file, Some("v1")).await;
    provider.give(Some("v2"));
    await_file(&file, Some("v2")).await;
    let accepted = r#"called back: {"accepted":[{"config-name":"app","device-names":["h01"]}],"refused":[]}"#;
    provider.await_printed(accepted).await;
    // What is known to be there is not given again.
    await_applied(&site).await;
    site.orchestrator.done(&["providers", "poll", "app"]).await;
    provider.await_printed("\" 304 -").await;
    await_file(&file, Some("v2")).await;

    let rotate = ["providers", "rotate-token", "app"];
    assert_eq!(site.orchestrator.done(&rotate).await, "rotated: app");
    provider.give(Some("v3"));
    provider.await_printed("cannot call back: HTTP Error 401").await;
    site.orchestrator.done(&["providers", "poll", "app"]).await;
    await_file(&file, Some("v3")).await;
    provider.give(Some("v4"));
    await_file(&file, Some("v4")).await;

    await_applied(&site).await;
    provider.give(None);
    await_file(&file, None).await;
    eventually("nothing to be pending", async || {
        let shown = site.orchestrator.done(&["providers", "show", "app"]).await;
        shown.contains("0 events pending; call-back tokens: ").then_some(())
    })
    .await;
    let facts = site.journal().await;
    let count = |kind: &str| facts.iter().filter(|fact| fact["type"] == kind).count();
    assert_eq!(count("hook-tokens-revoked"), 1);
    assert!(count("hook-token-drawn") >= 2, "{facts:?}");
    assert!(count("callback-received") >= 3, "{facts:?}");
    assert!(!site.orchestrator.log().contains("callback_token"));
}
