//! The site's secrets, with the whole program: they are encrypted wherever they are stored, opened only with the key, and
//! sent to the lock server in the clear.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use harness::files::content;
use harness::host::{APPLICATION, Host};
use harness::lock_server::{LockServer, Mode};
use harness::nats_server::NatsServer;
use harness::orchestrator::{CommandResult, Orchestrator};
use harness::wait::eventually;
use reqwest::Method;
use serde_json::{Value, json};

const SECRETS: &str = "/v1/config/strongbox/secrets";
const STRONGBOX: &str = "/v1/state/strongbox";
const UNSEAL: &str = "/v1/state/strongbox/unseal";
const KEY_FILE: &str = "OS_UPGRADE_STRONGBOX__KEY_FILE";

/// The lock server's credentials. The password contains a colon.
const CREDENTIALS: &str = "orchestrator:not-in-the-clear:pässword";
/// A secret that is not used.
const OTHER: &str = "of-somebody-else";

/// A new key, as the program prints it, and a file with it.
async fn new_key(orchestrator: &Orchestrator, name: &str) -> (String, PathBuf) {
    let (code, key, stderr) = orchestrator.run(&["strongbox", "key"], "").await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let path = orchestrator.directory().join(name);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path).unwrap();
    writeln!(file, "{key}").unwrap();
    (key, path)
}

fn printed(text: &str) -> CommandResult {
    (Some(0), text.to_owned(), String::new())
}

fn message(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["errors"][0]["error-message"].as_str().unwrap_or_default())
}

async fn unseal(orchestrator: &Orchestrator, key: &str) -> u16 {
    let body = json!({ "key": key }).to_string();
    orchestrator.rest.call(Method::POST, UNSEAL, &body).await.0
}

async fn put(orchestrator: &Orchestrator, name: &str) -> (u16, Value) {
    let body = json!({ "value": OTHER }).to_string();
    orchestrator.rest.call(Method::PUT, &format!("{SECRETS}/{name}"), &body).await
}

async fn is_sealed(orchestrator: &Orchestrator) -> bool {
    let (status, strongbox) = orchestrator.rest.get(STRONGBOX).await;
    assert_eq!(status, 200, "{strongbox}");
    strongbox["sealed"].as_bool().unwrap()
}

async fn names(orchestrator: &Orchestrator) -> Vec<String> {
    let (status, list) = orchestrator.rest.get(SECRETS).await;
    assert_eq!(status, 200, "{list}");
    assert!(!list.to_string().contains(OTHER), "{list}");
    let secrets = list["secrets"].as_array().unwrap();
    secrets.iter().map(|secret| secret["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until it leads, but `/readyz` answers 503 with a message that begins with `reason`.
async fn await_leading_unready(orchestrator: &Orchestrator, reason: &str) {
    let what = format!("/readyz to report {reason:?}");
    eventually(&what, async || {
        let (_, cluster) = orchestrator.rest.try_call(Method::GET, "/v1/state/cluster", "").await?;
        let leads = cluster["instances"][0]["role"] == "leader";
        (leads && orchestrator.readiness().await?.starts_with(reason)).then_some(())
    })
    .await;
}

/// Fails if a file below `directory` holds a secret, or the key.
fn assert_unreadable(directory: &Path, key: &str) {
    let files = content(directory);
    let holder = |text: &[u8]| {
        let found = files.iter().find(|(_, bytes)| bytes.windows(text.len()).any(|window| window == text));
        found.map(|(path, _)| path)
    };
    assert!(holder(b"lock-server").is_some(), "{}: the secret's name is there", directory.display());
    let key_bytes = BASE64_STANDARD.decode(key).unwrap();
    for text in [CREDENTIALS, "not-in-the-clear", OTHER, key] {
        assert_eq!(holder(text.as_bytes()), None, "{text}");
    }
    for text in [CREDENTIALS, "not-in-the-clear:pässword", OTHER] {
        let encoded = BASE64_STANDARD.encode(text);
        assert_eq!(holder(encoded.trim_end_matches('=').as_bytes()), None, "{text} in base64");
    }
    assert_eq!(holder(&key_bytes), None, "the key itself");
}

#[tokio::test]
async fn secrets_are_encrypted_until_sent() {
    let locks = LockServer::start(Mode::OneSlot).await;
    locks.require_credentials(CREDENTIALS);
    let mut nats = NatsServer::start().await;
    let settings = format!("{}\ncredentials-secret = \"lock-server\"", locks.config());
    let mut orchestrator = Orchestrator::new(&nats.url(), &settings);
    let (key, key_file) = new_key(&orchestrator, "strongbox.key").await;
    orchestrator.set_environment(KEY_FILE, key_file.to_str().unwrap());
    orchestrator.start();
    await_leading_unready(&orchestrator, "the strongbox has no secret lock-server").await;
    let kept = orchestrator.ask(&["strongbox", "put", "lock-server"], &format!("{CREDENTIALS}\n")).await;
    assert_eq!(kept, printed("stored: lock-server"));
    orchestrator.ready().await;
    assert_eq!(put(&orchestrator, "webhook").await, (201, Value::Null));

    orchestrator.rest.configure(APPLICATION).await;
    let mut host = Host::new(&nats.url(), &orchestrator.directory().join("said"), "h01");
    host.start();
    orchestrator.rest.await_scheduled(&["h01"]).await;
    let id = orchestrator.rest.start_run().await;
    assert_eq!(orchestrator.rest.await_end(&id).await.result(), Some("completed"));
    eventually("the slot to be released", async || locks.holder().is_none().then_some(())).await;
    assert_eq!(locks.calls(), ["lock default/h01", "unlock default/h01"], "nothing else was sent first");

    let unpacked = orchestrator.unpacked_backup().await;
    assert_eq!(orchestrator.terminate().await.code(), Some(0));
    nats.kill();
    for directory in [nats.directory(), &orchestrator.directory().join("data"), &unpacked] {
        assert_unreadable(directory, &key);
    }
    let log = orchestrator.log();
    assert!(![CREDENTIALS, "not-in-the-clear", OTHER, &key].iter().any(|text| log.contains(text)), "{log}");

    // The same key file opens them again.
    nats.start_again().await;
    orchestrator.start_ready().await;
    assert!(!is_sealed(&orchestrator).await);
    let status = orchestrator.ask(&["strongbox", "status"], "").await;
    assert_eq!(status, printed("2 secrets; not sealed"));

    // Without the key only what needs the secrets is unavailable.
    orchestrator.terminate().await;
    orchestrator.remove_environment(KEY_FILE);
    orchestrator.start();
    await_leading_unready(&orchestrator, "the strongbox is sealed: ").await;
    assert!(is_sealed(&orchestrator).await);
    assert_eq!(names(&orchestrator).await, ["lock-server", "webhook"]);
    for answer in [orchestrator.rest.trigger("").await, put(&orchestrator, "webhook").await] {
        let (status, text) = message(&answer);
        assert!(status == 503 && text.starts_with("the strongbox is sealed: "), "{answer:?}");
    }
    let (other_key, _) = new_key(&orchestrator, "other.key").await;
    let (code, _, stderr) = orchestrator.ask(&["strongbox", "unseal"], &other_key).await;
    assert_eq!((code, stderr.as_str()), (Some(5), "error: this is not the key of the strongbox"));
    let unsealed = orchestrator.ask(&["strongbox", "unseal"], &format!("{key}\n")).await;
    assert_eq!(unsealed, printed("unsealed"));
    orchestrator.ready().await;

    // A run that loses the key continues when it is given again.
    host.hold("prepare");
    let id = orchestrator.rest.start_run().await;
    host.await_script("prepare").await;
    orchestrator.kill_and_start().await;
    await_leading_unready(&orchestrator, "the strongbox is sealed: ").await;
    host.release("prepare");
    let reason = orchestrator.rest.await_reason("h01", "slot-unreachable").await;
    assert!(reason.contains("the strongbox is sealed: "), "{reason}");
    assert_eq!(unseal(&orchestrator, &key).await, 204);
    assert_eq!(orchestrator.rest.await_end(&id).await.result(), Some("completed"));
    eventually("the slot to be released", async || locks.holder().is_none().then_some(())).await;
    assert!(!locks.calls().iter().any(|call| call.ends_with(": unauthorized")), "{:?}", locks.calls());
}

#[tokio::test]
async fn each_instance_needs_its_own_key() {
    let nats = NatsServer::start().await;
    let [mut first, mut second] = [(); 2].map(|()| Orchestrator::new(&nats.url(), ""));
    let (key, key_file) = new_key(&first, "strongbox.key").await;
    first.set_environment(KEY_FILE, key_file.to_str().unwrap());
    first.start_ready().await;
    assert_eq!(put(&first, "webhook").await.0, 201);
    second.start();
    second.await_following(&first).await;
    eventually("the second to have the secret", async || is_sealed(&second).await.then_some(())).await;
    assert_eq!(second.rest.get("/readyz").await.1["sealed"], true, "it is ready although sealed");
    assert_eq!(put(&second, "webhook").await.0, 503);
    assert_eq!(names(&second).await, ["webhook"]);

    let (other_key, _) = new_key(&second, "other.key").await;
    assert_eq!(unseal(&second, &other_key).await, 403);
    assert!(is_sealed(&second).await);
    assert_eq!(unseal(&second, &key).await, 204);
    assert_eq!(second.rest.get("/readyz").await.1.get("sealed"), None);
    assert_eq!(put(&second, "webhook").await.0, 204);
    first.kill().await;
    second.await_leading().await;
    assert_eq!(put(&second, "lock-server").await.0, 201);
    let (code, list, _) = second.ask(&["strongbox", "list"], "").await;
    assert!(code == Some(0) && list.contains("lock-server") && list.contains("webhook"), "{list}");
    assert!(!list.contains(OTHER), "{list}");
    let removed = second.ask(&["strongbox", "remove", "webhook"], "").await;
    assert_eq!(removed, printed("removed: webhook"));
    first.start_ready().await;
    assert!(!is_sealed(&first).await);
    eventually("the first to have the change", async || {
        (names(&first).await == ["lock-server"]).then_some(())
    })
    .await;

    // A backup contains the secret, but not the key.
    second.unpacked_backup().await;
    let file = second.directory().join("site.tar.gz");
    let nats = NatsServer::start().await;
    let mut elsewhere = Orchestrator::new(&nats.url(), "");
    let (code, _, stderr) = elsewhere.command(&["restore", file.to_str().unwrap(), "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    elsewhere.start_ready().await;
    assert_eq!(names(&elsewhere).await, ["lock-server"]);
    assert!(is_sealed(&elsewhere).await);
    assert_eq!(unseal(&elsewhere, &other_key).await, 403);
    assert_eq!(unseal(&elsewhere, &key).await, 204);
    assert!(!is_sealed(&elsewhere).await);
}

/// A window is always open, and the second instance never gets the key.
#[tokio::test]
async fn only_the_leader_needs_the_key() {
    let locks = LockServer::start(Mode::OneSlot).await;
    locks.require_credentials(CREDENTIALS);
    let nats = NatsServer::start().await;
    let settings = format!("{}\ncredentials-secret = \"lock-server\"", locks.config());
    let [mut first, mut second] = [(); 2].map(|()| Orchestrator::new(&nats.url(), &settings));
    first.start();
    await_leading_unready(&first, "the strongbox is sealed: it is empty and has no key yet").await;
    let configuration = json!({
        "worker-applications": [{ "name": APPLICATION }],
        // Not on the last day of a leap year.
        "maintenance-windows": [{ "cron": "0 0 0 1 1 *", "duration": "365d" }],
    });
    let configured = first.rest.call(Method::PUT, "/v1/config/os-upgrade", &configuration.to_string()).await;
    assert_eq!(configured, (201, Value::Null));
    let mut host = Host::new(&nats.url(), &first.directory().join("said"), "h01");
    host.start();
    first.rest.await_scheduled(&["h01"]).await;
    eventually("the run to be blocked", async || {
        let (_, state) = first.rest.try_call(Method::GET, "/v1/state/os-upgrade", "").await?;
        (state["next-upgrade-why"]["kind"] == "strongbox-sealed").then_some(())
    })
    .await;
    second.start();
    second.await_following(&first).await;
    // A follower shows the leader's reason, and not a run that is due.
    eventually("the second to show what blocks the run", async || {
        let (_, state) = second.rest.try_call(Method::GET, "/v1/state/os-upgrade", "").await?;
        let why = state["hosts"][0]["also"][0]["text"].as_str()?;
        let explains =
            why.contains("the strongbox is sealed") && why.contains("the instance that leads needs it");
        (state["next-upgrade-why"]["kind"] == "strongbox-sealed" && explains).then_some(())
    })
    .await;
    for asked in [&first, &second] {
        let answer = asked.rest.trigger("").await;
        let (status, text) = message(&answer);
        assert!(status == 503 && text.contains("the instance that leads needs it"), "{answer:?}");
    }
    let (key, _) = new_key(&first, "strongbox.key").await;
    assert_eq!(unseal(&first, &key).await, 204);
    eventually("the first to want the secret", async || {
        first.readiness().await?.starts_with("the strongbox has no secret lock-server").then_some(())
    })
    .await;
    assert!(first.rest.runs().await.is_empty());
    let kept = first.ask(&["strongbox", "put", "lock-server"], &format!("{CREDENTIALS}\n")).await;
    assert_eq!(kept, printed("stored: lock-server"));
    let id = eventually("a run", async || first.rest.newest_run_or_none().await).await;
    let run = first.rest.await_end(&id).await;
    assert_eq!((run.result(), &run.0["trigger"]), (Some("completed"), &json!("window")));

    eventually("the second to have the secret", async || is_sealed(&second).await.then_some(())).await;
    assert_eq!(second.rest.get("/readyz").await.1["sealed"], true, "it forwards requests");
    assert_eq!(second.rest.trigger("").await, (204, Value::Null));
    eventually("a second run", async || (first.rest.runs().await.len() == 2).then_some(())).await;
    let id = first.rest.newest_run().await;
    assert_eq!(first.rest.await_end(&id).await.result(), Some("completed"));
}
