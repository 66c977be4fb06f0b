//! Problems at startup: each is reported in one line or waited for, and none is ignored.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::wait::{PATIENCE, eventually};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixDatagram};

/// Starts an instance that fails. Returns its exit code and error lines, without its log.
async fn start_failing(mut orchestrator: Orchestrator) -> (Option<i32>, Vec<String>) {
    orchestrator.start();
    let (code, output) = orchestrator.exited().await;
    let is_logged = |line: &str| line.starts_with(|first: char| first.is_ascii_digit());
    let stderr = output.lines().filter(|line| !is_logged(line)).map(str::to_owned).collect();
    (code, stderr)
}

fn line(text: String) -> (Option<i32>, Vec<String>) {
    (Some(1), vec![text])
}

#[tokio::test]
async fn all_configuration_errors_are_reported_together() {
    let more = "[site]\nname = \"\"\ntimezon = \"UTC\"\n[fleet-lock]\non-failure = \"keep\"\n[bus]\n";
    let mut orchestrator = Orchestrator::new("nats://127.0.0.1:4222", more);
    orchestrator.start();
    let (code, stderr) = orchestrator.exited().await;
    let expected = r#"error: os-upgrade.toml:6:8: site.name: expected a name, found "": a name must not be empty
error: os-upgrade.toml:7:1: unknown key "timezon" in [site]; did you mean "timezone"?
error: os-upgrade.toml:9:14: fleet-lock.on-failure: expected "hold" or "release", found "keep"
error: os-upgrade.toml:10:2: unknown section [bus]; there are [site], [api], [api.tls], [api.oidc], [nats], [strongbox], [store], [history], [fleet-lock], [reboot], [kubernetes]
"#;
    assert_eq!((code, stderr.as_str()), (Some(2), expected));
    let entries = fs::read_dir(orchestrator.directory()).expect("a directory");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["log", "os-upgrade.toml"]);
}

#[tokio::test]
async fn port_in_use_is_one_line() {
    let nats = NatsServer::start().await;
    let orchestrator = Orchestrator::new(&nats.url(), "");
    let address = orchestrator.address();
    let _taken = TcpListener::bind(address).await.expect("a free port");
    let text = format!("error: cannot listen on {address}: Address already in use (os error 98)");
    assert_eq!(start_failing(orchestrator).await, (Some(2), vec![text]));
}

#[tokio::test]
async fn kubeconfig_that_cannot_be_used_is_one_line() {
    let nats = NatsServer::start().await;
    let more = "[site]\nname = \"hall-1\"\n[kubernetes]\nkubeconfig = \"k.yaml\"\n";
    let (code, stderr) = start_failing(Orchestrator::new(&nats.url(), more)).await;
    let expected = "error: cannot use the cluster of [kubernetes]: the kubeconfig k.yaml cannot be used: ";
    assert!(code == Some(2) && stderr.len() == 1 && stderr[0].starts_with(expected), "{code:?} {stderr:?}");
    let more = "[site]\nname = \"hall-1\"\n[kubernetes]\nin-cluster = true\n";
    let text = "error: cannot use the cluster of [kubernetes]: there is no cluster around this process: the environment variable \
                KUBERNETES_SERVICE_HOST is missing";
    assert_eq!(start_failing(Orchestrator::new(&nats.url(), more)).await, (Some(2), vec![text.to_owned()]));
}

/// Whoever can write the keys can sign the token of an admin.
#[tokio::test]
async fn provider_keys_that_others_may_write_are_one_line() {
    let nats = NatsServer::start().await;
    let more = "[api.oidc]\nissuer = \"i\"\naudience = \"a\"\njwks = \"keys.json\"\n";
    let orchestrator = Orchestrator::new(&nats.url(), more);
    let keys = orchestrator.directory().join("keys.json");
    fs::write(&keys, r#"{"keys":[]}"#).expect("written");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o664)).expect("its mode set");
    let text = "error: cannot use the identity provider of [api.oidc]: keys.json, the `jwks` of [api.oidc], can be written by \
                others (mode 664): run chmod go-w on it, and check its contents";
    assert_eq!(start_failing(orchestrator).await, (Some(2), vec![text.to_owned()]));
}

#[tokio::test]
async fn missing_lock_server_file_is_one_line() {
    let nats = NatsServer::start().await;
    let more = "[fleet-lock]\nurl = \"https://u:secret@h\"\ncertificate = \"c.pem\"\nkey = \"k.pem\"\n";
    let text = "error: cannot use the lock server: cannot read c.pem, the `certificate` of [fleet-lock]: \
                No such file or directory (os error 2)";
    assert_eq!(start_failing(Orchestrator::new(&nats.url(), more)).await, (Some(2), vec![text.to_owned()]));
    // Reading a pipe without a writer would block permanently.
    let orchestrator = Orchestrator::new(&nats.url(), more);
    let pipe = orchestrator.directory().join("c.pem");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("a pipe").success());
    let text = "error: cannot use the lock server: cannot read c.pem, the `certificate` of [fleet-lock]: it is not a file";
    assert_eq!(start_failing(orchestrator).await, (Some(2), vec![text.to_owned()]));
}

/// A data directory of a version without a password for the managed nats-server, or whose password is lost.
#[tokio::test]
async fn changed_managed_password_is_reported() {
    let mut orchestrator = Orchestrator::managed();
    let line = "the managed nats-server has a new password";
    orchestrator.start_ready().await;
    assert!(!orchestrator.log().contains(line), "at the first start nobody has another one");
    let before = orchestrator.managed_nats();
    orchestrator.terminate().await;
    fs::remove_file(orchestrator.directory().join("data/nats/url")).expect("removed");
    orchestrator.start_ready().await;
    let log = orchestrator.log();
    assert!(log.lines().any(|message| message.contains(line) && message.contains("data/nats/url")), "{log}");
    for url in [before, orchestrator.managed_nats()] {
        let password = url.split([':', '@']).nth(2).expect("a password").to_owned();
        assert!(!log.contains(&password), "{log}");
    }
}

#[tokio::test]
async fn store_path_that_is_file_is_one_line() {
    let nats = NatsServer::start().await;
    let orchestrator = Orchestrator::new(&nats.url(), "");
    fs::write(orchestrator.directory().join("data"), "mine").expect("written");
    let text = "error: cannot use the data directory data: Not a directory (os error 20)";
    assert_eq!(start_failing(orchestrator).await, line(text.to_owned()));
}

#[tokio::test]
async fn foreign_store_is_left_untouched() {
    let nats = NatsServer::start().await;
    for content in ["not a database, but longer than the header of one would be".repeat(20), String::new()] {
        let orchestrator = Orchestrator::new(&nats.url(), "");
        let data = orchestrator.directory().join("data");
        let store = orchestrator.store_file();
        if content.is_empty() {
            fs::create_dir_all(&store).expect("made");
        } else {
            fs::create_dir(&data).expect("made");
            fs::write(&store, &content).expect("written");
        }
        let (code, stderr) = start_failing(orchestrator).await;
        assert_eq!((code, stderr.len()), (Some(1), 1), "{stderr:?}");
        assert!(stderr[0].starts_with("error: "), "{stderr:?}");
        assert!(stderr[0].contains("data/"), "it names the file: {stderr:?}");
    }
}

#[tokio::test]
async fn a_data_directory_in_use_is_one_line() {
    let site = Site::start().await;
    let second = Orchestrator::new(&site.nats.url(), "");
    let data = site.orchestrator.directory().join("data");
    std::os::unix::fs::symlink(&data, second.directory().join("data")).expect("linked");
    let text = "error: the data directory data is in use by another orchestrator";
    assert_eq!(start_failing(second).await, line(text.to_owned()));
    // The instance that uses it is not disturbed.
    site.orchestrator.ready().await;
}

/// Waits until an instance waits for NATS for a reason that contains `why`. Returns the whole reason.
async fn await_waiting(orchestrator: &Orchestrator, why: &str) -> String {
    eventually("it to wait for NATS", async || {
        let message = orchestrator.readiness().await?;
        (message.starts_with("waiting for NATS since 20") && message.contains(why)).then_some(message)
    })
    .await
}

/// The log lines about waiting.
fn lines_about_waiting(orchestrator: &Orchestrator) -> Vec<String> {
    orchestrator.log().lines().filter(|line| line.contains("waiting for NATS: ")).map(str::to_owned).collect()
}

#[tokio::test]
async fn unreachable_bus_is_awaited() {
    let mut nats = NatsServer::start().await;
    let url = nats.url();
    nats.kill();
    let mut orchestrator = Orchestrator::new(&url, "");
    orchestrator.start();
    let said = await_waiting(&orchestrator, "cannot connect to NATS").await;
    assert!(said.contains(&format!("Z: cannot connect to NATS at {url}: ")), "{said}");
    let rest = orchestrator.rest.clone();
    let message = |(status, body): (u16, Value)| {
        (status, body["errors"][0]["error-message"].as_str().map(str::to_owned))
    };
    assert_eq!(rest.get("/healthz").await.0, 200);
    // Only the data in the store can be shown.
    for path in ["/v1/state/os-upgrade", "/v1/config/os-upgrade", "/v1/state/fleet-lock"] {
        assert_eq!(message(rest.get(path).await), (503, Some(said.clone())), "{path}");
    }
    assert_eq!(rest.get("/v1/state/os-upgrade/runs").await.0, 200);
    let info = |(status, body): (u16, Value)| (status, body["errors"][0]["error-info"].clone());
    let refused = (503, json!({ "outcome": "unchanged", "why": said }));
    assert_eq!(info(rest.trigger("").await), refused);
    let body = r#"{"worker-applications":[]}"#;
    assert_eq!(info(rest.call(Method::PUT, "/v1/config/os-upgrade", body).await), refused);
    let shown = orchestrator.cluster_status().await.expect("an answer");
    assert_eq!(shown["instances"][0]["not-ready-reason"], said.as_str());
    // Requests to other sites are unavailable.
    assert_eq!(rest.get("/v1/state/os-upgrade?site=lund").await.0, 503);

    nats.start_again().await;
    orchestrator.ready().await;
    rest.configure("os-upgrade-demo").await;
    assert!(orchestrator.log().contains("NATS can be used"), "{}", orchestrator.log());
    // And an instance that has a store, after the site has changed in the meantime.
    orchestrator.kill().await;
    nats.kill();
    orchestrator.start();
    await_waiting(&orchestrator, "cannot connect to NATS").await;
    nats.start_again().await;
    orchestrator.ready().await;
    assert_eq!(rest.get("/v1/config/os-upgrade").await.0, 200);
    assert_eq!(orchestrator.terminate().await.code(), Some(0));
}

#[tokio::test]
async fn waiting_instance_logs_once_and_stops() {
    // A listener that accepts connections and closes them.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("nats://{}", listener.local_addr().expect("an address"));
    let mut orchestrator = Orchestrator::new(&url, "");
    orchestrator.start();
    for _ in 0..4 {
        drop(listener.accept().await.expect("a connection"));
    }
    let lines = lines_about_waiting(&orchestrator);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(orchestrator.terminate().await.code(), Some(0));
}

/// `systemctl start` neither fails nor blocks permanently.
#[tokio::test]
async fn waiting_instance_reports_ready_to_systemd() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    let mut nats = NatsServer::start().await;
    nats.kill();
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.set_environment("NOTIFY_SOCKET", path.to_str().expect("a path"));
    orchestrator.set_environment("WATCHDOG_USEC", "400000");
    orchestrator.start();
    let mut heard = Vec::new();
    let mut hear = async |wanted: &str| {
        let found = |heard: &[String]| heard.iter().any(|line| line.starts_with(wanted));
        while !found(&heard) {
            let mut buffer = [0; 4096];
            let received = tokio::time::timeout(PATIENCE, socket.recv(&mut buffer)).await;
            let length = received.expect("something to be said").expect("a message");
            heard.extend(String::from_utf8_lossy(&buffer[..length]).lines().map(str::to_owned));
        }
        std::mem::take(&mut heard)
    };
    let before = hear("READY=1").await;
    assert!(before.iter().any(|line| line.starts_with("STATUS=waiting for NATS since ")), "{before:?}");
    assert!(before.iter().filter(|line| *line == "WATCHDOG=1").count() > 5, "{before:?}");
    nats.start_again().await;
    let after = hear("STATUS=ready").await;
    assert!(!after.contains(&"READY=1".to_owned()), "it is said once: {after:?}");
}

#[tokio::test]
async fn refused_credentials_are_awaited() {
    let mut nats = NatsServer::start_with("authorization { user: \"o\", password: \"other\" }").await;
    let address = nats.address();
    let mut orchestrator = Orchestrator::new(&format!("nats://o:secret@{address}"), "");
    orchestrator.start();
    let message = await_waiting(&orchestrator, "authorization violation").await;
    let expected = format!("NATS at nats://{address} refuses this orchestrator");
    assert!(message.contains(&expected) && message.contains("[nats]"), "{message}");
    assert!(!orchestrator.log().contains("secret"), "{message}");
    nats.restart_with("").await;
    orchestrator.ready().await;
}

#[tokio::test]
async fn missing_jetstream_is_awaited() {
    let account = |jetstream: &str| {
        format!("accounts: {{ A: {{ {jetstream} users: [{{ user: o, password: p }}] }} }}\nno_auth_user: o")
    };
    let mut nats = NatsServer::start_with(&account("")).await;
    let mut orchestrator = Orchestrator::new(&nats.url(), "");
    orchestrator.start();
    let message = await_waiting(&orchestrator, "JetStream").await;
    let expected =
        "JetStream is not enabled: enable it in the configuration of the server, and for this account";
    assert!(message.ends_with(expected), "{message}");
    nats.restart_with(&account("jetstream: enabled,")).await;
    orchestrator.ready().await;
}

#[tokio::test]
async fn unusable_credentials_file_is_one_line() {
    let nats = NatsServer::start().await;
    for content in [None, Some("not one")] {
        let orchestrator = Orchestrator::new(&nats.url(), "credentials = \"o.creds\"");
        if let Some(content) = content {
            fs::write(orchestrator.directory().join("o.creds"), content).expect("written");
        }
        let (code, stderr) = start_failing(orchestrator).await;
        assert_eq!((code, stderr.len()), (Some(2), 1), "{stderr:?}");
        assert!(stderr[0].starts_with("error: cannot use the NATS credentials in o.creds: "), "{stderr:?}");
    }
}

/// A server that reports this version and answers pings.
async fn fake_nats(version: &str) -> (String, tokio::task::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let info = format!(
        "INFO {{\"server_id\":\"S\",\"server_name\":\"old\",\"version\":\"{version}\",\"go\":\"go\",\"host\":\"{}\",\
         \"port\":{},\"headers\":true,\"max_payload\":1048576,\"proto\":1,\"jetstream\":true}}\r\n",
        address.ip(),
        address.port(),
    );
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = vec![0; 4096];
            let _ = stream.write_all(info.as_bytes()).await;
            while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                if buffer[..read].windows(4).any(|word| word == b"PING") {
                    let _ = stream.write_all(b"PONG\r\n").await;
                }
            }
        }
    });
    (format!("nats://{address}"), task)
}

#[tokio::test]
async fn outdated_bus_is_awaited() {
    let (url, server) = fake_nats("2.9.0").await;
    let mut orchestrator = Orchestrator::new(&url, "");
    orchestrator.start();
    let message = await_waiting(&orchestrator, "2.9.0").await;
    let expected = format!("Z: the nats-server at {url} has version 2.9.0; at least 2.11 is needed");
    assert!(message.ends_with(&expected), "{message}");
    assert_eq!(orchestrator.terminate().await.code(), Some(0));
    server.abort();
}

#[tokio::test]
async fn other_sites_store_is_one_line() {
    let mut site = Site::start().await;
    site.orchestrator.terminate().await;
    let second = Orchestrator::new(&site.nats.url(), "[site]\nname = \"other\"");
    let data = site.orchestrator.directory().join("data");
    std::os::unix::fs::symlink(&data, second.directory().join("data")).expect("linked");
    let (code, stderr) = start_failing(second).await;
    assert_eq!((code, stderr.len()), (Some(1), 1), "{stderr:?}");
    assert!(stderr[0].contains("other"), "{stderr:?}");
}
