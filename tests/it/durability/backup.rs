//! Backups of running sites, restored elsewhere and in place; and invalid backup files.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::files::content;
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use os_upgrade_protocol::subject;
use reqwest::Method;
use serde_json::{Value, json};

const CONFIG: &str = "/v1/config/os-upgrade";

/// Writes a backup next to the orchestrator's configuration. Returns its manifest.
async fn backup(orchestrator: &Orchestrator, file: &str) -> Value {
    let (code, printed, stderr) = orchestrator.command(&["backup", file, "--output", "json"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    serde_json::from_str::<Value>(&printed).unwrap()["manifest"].clone()
}

fn path(orchestrator: &Orchestrator, file: &str) -> String {
    orchestrator.directory().join(file).to_str().unwrap().to_owned()
}

/// Everything an operator can read of a site's history: its configuration, and every run with its events, but for the part of their
/// ids that names the journal, which is another one after a restoration.
async fn history_of(orchestrator: &Orchestrator) -> (Value, Vec<Value>) {
    let rest = &orchestrator.rest;
    let config = rest.get(CONFIG).await.1;
    let mut runs = Vec::new();
    for run in rest.runs().await {
        let mut run = rest.run(run["id"].as_str().unwrap()).await.0;
        for event in run["events"].as_array_mut().unwrap() {
            event["id"] = event["id"].as_str().unwrap().split_once('.').unwrap().1.into();
        }
        runs.push(run);
    }
    (config, runs)
}

/// A site with one completed run.
async fn site_with_history() -> Site {
    let site = Site::start().await;
    let hosts = site.hosts(2).await;
    let id = site.rest().start_run().await;
    site.rest().await_end(&id).await;
    drop(hosts);
    site
}

#[tokio::test]
async fn idle_site_backup_restores_identically() {
    let site = site_with_history().await;
    let manifest = backup(&site.orchestrator, "site.tar.gz").await;
    assert_eq!(manifest["position"]["journal"], site.last_sequence(subject::JOURNAL_STREAM).await);
    let metrics = site.rest().get_as("/metrics", "*/*").await;
    let is_recorded = |line: &str| line.starts_with("os_upgrade_last_backup_timestamp_seconds 1");
    assert!(metrics.lines().any(is_recorded), "{metrics}");
    let before = history_of(&site.orchestrator).await;

    let nats = NatsServer::start().await;
    let mut elsewhere = Orchestrator::new(&nats.url(), "");
    let file = path(&site.orchestrator, "site.tar.gz");
    let (code, _, stderr) = elsewhere.command(&["restore", &file, "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    elsewhere.start_ready().await;
    elsewhere.await_leading().await;
    assert_eq!(history_of(&elsewhere).await, before);
    // Messages of one site are never mistaken for the other's.
    let stream = async_nats::jetstream::new(nats.client().await);
    let control = stream.get_stream(subject::CONTROL_STREAM).await.unwrap();
    let first = control.cached_info().state.first_sequence;
    assert!(first > manifest["position"]["control-end"].as_u64().unwrap(), "{first}");
}

#[tokio::test]
async fn backup_under_load_contains_acknowledged_writes() {
    let site = Site::start().await;
    let mut hosts: Vec<_> = (1..=6).map(|number| site.host(&format!("h{number:02}"))).collect();
    hosts[2].hold("upgrade");
    site.run(&mut hosts).await;
    let run = site.rest().start_run().await;
    hosts[2].await_script("upgrade-begins").await;
    // Operators who change the configuration as fast as they can.
    let stop = Arc::new(AtomicBool::new(false));
    let load = tokio::spawn({
        let (rest, stop) = (site.rest(), Arc::clone(&stop));
        async move {
            let mut answered = 0;
            while !stop.load(Ordering::Relaxed) {
                answered += 1;
                let config = json!({
                    "worker-applications": [{ "name": "os-upgrade-test" }, { "name": format!("a{answered}") }],
                });
                let (status, answer) = rest.call(Method::PUT, CONFIG, &config.to_string()).await;
                assert_eq!(status, 204, "{answer}");
            }
            answered
        }
    });
    let mut manifests = Vec::new();
    for round in 0..3 {
        let before = site.last_sequence(subject::JOURNAL_STREAM).await;
        let file = format!("{round}.tar.gz");
        let manifest = backup(&site.orchestrator, &file).await;
        assert!(manifest["position"]["journal"].as_u64().unwrap() >= before, "{manifest}");
        manifests.push((file, manifest));
    }
    stop.store(true, Ordering::Relaxed);
    assert!(load.await.unwrap() > 3, "there was some load");

    for (file, manifest) in manifests {
        let nats = NatsServer::start().await;
        let mut elsewhere = Orchestrator::new(&nats.url(), "");
        let file = path(&site.orchestrator, &file);
        let (code, printed, stderr) =
            elsewhere.command(&["restore", &file, "--yes", "--output", "json"]).await;
        assert_eq!(code, Some(0), "{stderr}");
        let done: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(done["plan"]["known-to"], manifest["position"]["journal"]);
        assert_eq!(done["plan"]["held"], json!(["h03"]), "it was being upgraded");
        elsewhere.start_ready().await;
        elsewhere.await_leading().await;
        let restored = elsewhere.rest.await_end(&run).await;
        assert_eq!(restored.result(), Some("failed"));
        // Its history is a prefix of the running site's.
        let events = restored.events();
        let ending = events.iter().position(|event| event == "h03 failed").unwrap();
        assert_eq!(events[..ending], site.rest().run(&run).await.events()[..ending]);
        let config = elsewhere.rest.get(CONFIG).await.1;
        assert_eq!(config["worker-applications"][0]["name"], "os-upgrade-test");
    }
    hosts[2].release("upgrade");
    assert_eq!(site.rest().await_end(&run).await.result(), Some("completed"), "the site has not noticed");
}

#[tokio::test]
async fn replacing_site_needs_flag_and_saves_it() {
    let mut site = site_with_history().await;
    let before = history_of(&site.orchestrator).await;
    backup(&site.orchestrator, "old.tar.gz").await;
    let (code, _, stderr) = site.orchestrator.command(&["backup", "old.tar.gz"]).await;
    assert_eq!((code, stderr.as_str()), (Some(1), "error: old.tar.gz exists; `--force` replaces it"));
    assert_eq!(site.orchestrator.command(&["backup", "old.tar.gz", "--force"]).await.0, Some(0));

    site.rest().configure("something-else").await;
    let after = history_of(&site.orchestrator).await;
    let journal = site.last_sequence(subject::JOURNAL_STREAM).await;
    site.orchestrator.terminate().await;
    let (code, _, stderr) = site.orchestrator.command(&["restore", "old.tar.gz", "--yes"]).await;
    assert_eq!(code, Some(5));
    let text = format!(
        "error: the site is not empty (its journal has messages up to {journal}, its store is not empty): `--replace` \
         saves that to a file, then replaces it"
    );
    assert_eq!(stderr, text);
    let restore = async |orchestrator: &Orchestrator, file: &str| {
        let arguments = ["restore", file, "--replace", "--yes", "--output", "json"];
        let (code, printed, stderr) = orchestrator.command(&arguments).await;
        assert_eq!(code, Some(0), "{stderr}");
        serde_json::from_str::<Value>(&printed).unwrap()
    };
    let done = restore(&site.orchestrator, "old.tar.gz").await;
    assert_eq!(done["plan"]["control-kept"], true);
    assert!(done["plan"]["journal-from"].as_u64().unwrap() > journal, "no sequence is used twice");
    site.orchestrator.start_ready().await;
    site.orchestrator.await_leading().await;
    assert_eq!(history_of(&site.orchestrator).await, before);
    // The replaced site can be restored.
    site.orchestrator.terminate().await;
    restore(&site.orchestrator, done["saved"].as_str().unwrap()).await;
    site.orchestrator.start_ready().await;
    site.orchestrator.await_leading().await;
    assert_eq!(history_of(&site.orchestrator).await, after);
}

/// A site with a managed nats-server can be backed up without a running orchestrator.
#[tokio::test]
async fn managed_site_backs_up_running_or_stopped() {
    let mut orchestrator = Orchestrator::managed();
    orchestrator.start_ready().await;
    orchestrator.await_leading().await;
    orchestrator.rest.configure("os-upgrade-test").await;
    let running = backup(&orchestrator, "running.tar.gz").await;
    orchestrator.terminate().await;
    let stopped = backup(&orchestrator, "stopped.tar.gz").await;
    assert!(stopped["position"]["journal"].as_u64() >= running["position"]["journal"].as_u64());
    let other = Orchestrator::managed();
    let (code, _, stderr) =
        other.command(&["restore", &path(&orchestrator, "running.tar.gz"), "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
}

/// The backup with a changed manifest.
fn repacked(file: &str, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let tar = |arguments: &[&str]| {
        assert!(Command::new("tar").args(arguments).current_dir(&directory).status().unwrap().success());
    };
    tar(&["xzf", file]);
    let manifest = directory.path().join("manifest.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    change(&mut json);
    fs::write(&manifest, json.to_string()).unwrap();
    tar(&["czf", "new.tar.gz", "manifest.json", "settings.txt", "state.json", "store.db"]);
    fs::read(directory.path().join("new.tar.gz")).unwrap()
}

/// The unpacked content of `bytes`, if gzip accepts them.
fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    let unpacked = Command::new("gzip").args(["-dc"]).stdin(file.reopen().unwrap()).output().unwrap();
    unpacked.status.success().then_some(unpacked.stdout)
}

#[tokio::test]
async fn invalid_backup_changes_nothing() {
    let site = site_with_history().await;
    backup(&site.orchestrator, "good.tar.gz").await;
    let file = path(&site.orchestrator, "good.tar.gz");
    let good = fs::read(&file).unwrap();
    let nats = NatsServer::start().await;
    let elsewhere = Orchestrator::new(&nats.url(), "");
    let bad = path(&elsewhere, "bad.tar.gz");
    let mut cases: Vec<(String, Vec<u8>, &str)> = vec![
        ("empty".to_owned(), Vec::new(), "is not a backup of os-upgrade"),
        ("text".to_owned(), b"Lorem ipsum".repeat(99), "is not a backup of os-upgrade"),
        (
            "newer".to_owned(),
            repacked(&file, |manifest| manifest["format"] = json!(3)),
            "has format 3; this version reads format 2",
        ),
        (
            "other site".to_owned(),
            repacked(&file, |manifest| manifest["site"] = json!("lund")),
            "belongs to site \"lund\", not \"site\"",
        ),
        (
            "other content".to_owned(),
            repacked(&file, |manifest| manifest["files"]["state.json"]["size"] = json!(1)),
            " bytes, and by its manifest 1",
        ),
        ("more after the end".to_owned(), [&good[..good.len() - 8], &[0; 8]].concat(), "is damaged: "),
    ];
    for part in 1..10 {
        cases.push((format!("cut at {part}/10"), good[..good.len() * part / 10].to_vec(), "is damaged: "));
    }
    cases.push(("the last byte missing".to_owned(), good[..good.len() - 1].to_vec(), "is damaged: "));
    for part in 1..32 {
        let mut flipped = good.clone();
        // After gzip's own header, whose time and file system do not matter.
        let place = 10 + (good.len() - 10) * part / 32;
        flipped[place] ^= 1 << (part % 8);
        // Some bits are padding: changed, they leave the same backup.
        if unpacked(&flipped) == unpacked(&good) {
            continue;
        }
        cases.push((format!("a bit of byte {place} flipped"), flipped, ""));
    }
    fs::create_dir(elsewhere.directory().join("data")).unwrap();
    elsewhere.command(&["restore", "missing.tar.gz", "--yes"]).await;
    let before = content(&elsewhere.directory().join("data"));
    for (name, bytes, expected) in cases {
        fs::write(&bad, bytes).unwrap();
        let (code, printed, stderr) = elsewhere.command(&["restore", &bad, "--yes"]).await;
        assert_eq!((code, printed.as_str()), (Some(5), ""), "{name}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.lines().count() == 1, "{name}: {stderr}");
        assert!(stderr.contains(&bad) && stderr.contains(expected), "{name}: {stderr}");
        assert_eq!(content(&elsewhere.directory().join("data")), before, "{name}");
    }
    let streams = async_nats::jetstream::new(nats.client().await);
    for stream in [subject::JOURNAL_STREAM, subject::CONTROL_STREAM] {
        assert!(streams.get_stream(stream).await.is_err(), "{stream} has not been made");
    }
    // The unchanged file is valid. A dry run of it changes nothing either.
    let (code, planned, stderr) = elsewhere.command(&["restore", &file, "--dry-run"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(planned.contains("good.tar.gz"), "{planned}");
    assert_eq!(content(&elsewhere.directory().join("data")), before);
    let (code, _, stderr) = elsewhere.command(&["restore", &file, "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
}
