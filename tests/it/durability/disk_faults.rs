//! Failing disks and files: the store does not delay runs, no acknowledged write is lost, and one clear error names the
//! cause.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use harness::disk;
use harness::orchestrator::Orchestrator;
use harness::programs;
use harness::site::Site;
use harness::streams;
use harness::wait::eventually;
use os_upgrade_protocol::subject;
use reqwest::Method;
use serde_json::json;

/// Waits until the instance is not ready for a reason with this beginning. Returns the whole reason.
async fn await_unready(orchestrator: &Orchestrator, beginning: &str) -> String {
    eventually(&format!("it to say {beginning:?}"), async || {
        orchestrator.readiness().await.filter(|reason| reason.starts_with(beginning))
    })
    .await
}

/// Waits until the journal has the end of the last run.
async fn await_run_end(site: &Site) {
    eventually("the journal to have the end of the run", async || {
        let facts = site.journal().await;
        let last = facts.iter().rfind(|fact| fact["type"] == "run-ended" || fact["type"] == "run-started")?;
        (last["type"] == "run-ended").then_some(())
    })
    .await;
}

#[tokio::test]
async fn full_store_disk_delays_only_history() {
    let site = Site::start().await;
    let hosts = site.hosts(3).await;
    disk::fill(site.orchestrator.pid(), 4_096);
    assert_eq!(site.rest().trigger("").await.0, 204, "the journal is not on that disk");
    await_run_end(&site).await;
    let reason = await_unready(&site.orchestrator, "the store cannot be written: ").await;
    assert!(reason.contains("disk I/O error") || reason.contains("full"), "{reason}");
    for host in &hosts {
        assert_eq!(host.script_log(), ["prepare", "upgrade-begins", "upgrade-ends"]);
    }
    // After a whole run there is space again.
    assert_eq!(site.rest().trigger("").await.0, 204);
    await_run_end(&site).await;
    disk::make_room(site.orchestrator.pid());
    site.orchestrator.ready().await;
    let runs = eventually("the history to have both", async || {
        let runs = site.rest().runs().await;
        (runs.len() == 2 && runs.iter().all(|run| run["result"] == "completed")).then_some(runs)
    })
    .await;
    // The history is complete: an empty store filled from the journal is the same.
    let mut other = Orchestrator::new(&site.nats.url(), "");
    other.start_ready().await;
    for run in runs {
        let id = run["id"].as_str().unwrap();
        assert_eq!(other.rest.await_end(id).await, site.rest().run(id).await);
    }
}

#[tokio::test]
async fn full_nats_disk_loses_nothing() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(2).await;
    let config = |number: usize| {
        json!({ "worker-applications": [{ "name": "os-upgrade-test" }, { "name": format!("a{number}") }] })
            .to_string()
    };
    disk::fill(site.nats.pid(), 32 * 1_024);
    let mut answered = 0;
    let refused = loop {
        let (status, answer) = rest.call(Method::PUT, "/v1/config/os-upgrade", &config(answered + 1)).await;
        if status != 204 {
            break (status, answer);
        }
        answered += 1;
        assert!(answered < 1_000, "the disk is not full");
    };
    assert_eq!(refused.0, 503, "{}", refused.1);
    let text = "the journal does not answer: NATS is overloaded, or its disk is full; its log says which";
    assert_eq!(await_unready(&site.orchestrator, "the journal").await, text);
    assert_eq!(rest.trigger("").await.0, 503);
    assert_eq!(hosts[0].script_log(), [""; 0]);
    // A nats-server that had a full disk must be restarted; the rest recovers automatically.
    site.nats.kill();
    site.nats.start_again().await;
    site.orchestrator.ready().await;
    let applications = rest.get("/v1/config/os-upgrade").await.1["worker-applications"].clone();
    let last: usize = applications[1]["name"].as_str().unwrap()[1..].parse().unwrap();
    // Writes without an answer may have taken effect.
    assert!(last == answered || last == answered + 1, "{last}, {answered} were answered");
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
}

/// Corrupts the pages that contain this text: the file still opens, and fails when they are read.
async fn corrupt_pages(store: &Path, text: &str) {
    // First moves everything into one file: the write-ahead log would have copies of the pages.
    let copy = store.with_extension("copy");
    assert!(os_upgrade_store::copy(store, "site", &copy).await.unwrap());
    for suffix in ["db-wal", "db-shm"] {
        let _ = fs::remove_file(store.with_extension(suffix));
    }
    let mut content = fs::read(&copy).unwrap();
    let mut torn = 0;
    // The first page identifies the file.
    for page in content.chunks_exact_mut(4_096).skip(1) {
        if page.windows(text.len()).any(|window| window == text.as_bytes()) {
            page.fill(0xA5);
            torn += 1;
        }
    }
    assert!(torn > 0, "there is such a page");
    fs::write(store, content).unwrap();
}

#[tokio::test]
async fn corrupt_store_is_rebuilt_during_run() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(1).await;
    let first = rest.start_run().await;
    let history = rest.await_end(&first).await;
    site.orchestrator.terminate().await;
    let store = site.orchestrator.store_file();
    let whole = store.with_extension("whole");
    assert!(os_upgrade_store::copy(&store, "site", &whole).await.unwrap());
    let created = site.jetstream().get_stream(subject::JOURNAL_STREAM).await.unwrap().cached_info().created;
    // The pages with its position, which are read at the start.
    corrupt_pages(&site.orchestrator.store_file(), &created.format("%Y-%m-%dT%H:%M:%S%.9fZ").to_string())
        .await;
    site.orchestrator.start();
    let (code, stderr) = site.orchestrator.exited().await;
    assert_eq!(code, Some(1));
    let text = "error: cannot read the store: the store is damaged; it can be rebuilt from the journal: move it away";
    assert!(stderr.lines().last().unwrap().starts_with(text), "{stderr}");
    // The pages with the facts, which are read later.
    fs::copy(whole, &store).unwrap();
    fs::remove_file(store.with_extension("copy")).unwrap();
    corrupt_pages(&site.orchestrator.store_file(), "run-started").await;
    site.orchestrator.start();
    let text = "it can be rebuilt from the journal: move it away and start again";
    let reason = await_unready(&site.orchestrator, "the history has stopped: the store is damaged; ").await;
    assert!(reason.contains(text), "{reason}");
    rest.await_scheduled(&["h01"]).await;
    assert_eq!(rest.trigger("").await.0, 204, "runs go on");
    await_run_end(&site).await;
    assert_eq!(hosts[0].script_log().len(), 6);
    let (code, _, _) = site.orchestrator.command(&["doctor"]).await;
    assert_eq!(code, Some(1));
    // As the message says.
    site.orchestrator.terminate().await;

    fs::rename(&store, store.with_extension("torn")).unwrap();
    site.orchestrator.start_ready().await;
    assert_eq!(rest.await_end(&first).await, history);
    assert_eq!(rest.runs().await.len(), 2);
}

/// The history would go on in a file that nobody finds again.
#[tokio::test]
async fn deleted_store_is_reported_while_running() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let _hosts = site.hosts(1).await;
    let first = rest.start_run().await;
    let history = rest.await_end(&first).await;
    let store = site.orchestrator.store_file();
    for suffix in ["db", "db-wal", "db-shm"] {
        fs::remove_file(store.with_extension(suffix)).unwrap();
    }
    await_unready(&site.orchestrator, "the store was deleted or replaced while it was in use: ").await;
    let (code, printed, _) = site.orchestrator.command(&["doctor"]).await;
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("problem  store: data/os-upgrade.db does not exist or is empty, and "),
        "{printed}"
    );
    assert!(printed.contains("the store was deleted or replaced while it was in use: "), "{printed}");
    // Runs go on, and what is missing comes from the journal.
    assert_eq!(rest.trigger("").await.0, 204);
    await_run_end(&site).await;
    site.orchestrator.terminate().await;
    site.orchestrator.start_ready().await;
    assert_eq!(rest.await_end(&first).await, history);
    assert_eq!(rest.runs().await.len(), 2);
}

/// Starts an instance as a user without write access. It fails; returns its one-line error.
fn refused_without_rights(orchestrator: &Orchestrator) -> String {
    let directory = orchestrator.directory();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    let program = programs::path(programs::ORCHESTRATOR);
    let mut command = if nix::unistd::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.args(["serve", "--config", "os-upgrade.toml"]).current_dir(directory).env("RUST_LOG", "off");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap().trim_end().to_owned()
}

#[tokio::test]
async fn write_errors_are_one_line() {
    let mut site = Site::start().await;
    site.orchestrator.terminate().await;
    let data = site.orchestrator.directory().join("data");
    let allow = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    allow(&data, 0o777);
    for name in ["lock", "instance"] {
        allow(&data.join(name), 0o666);
    }
    let store = site.orchestrator.store_file();
    allow(&store, 0o444);
    let message = refused_without_rights(&site.orchestrator);
    let expected = "error: store data/os-upgrade.db cannot be written: error returned from database: (code: 8) attempt to \
                    write a readonly database";
    assert!(message.starts_with(expected), "{message}");
    allow(&store, 0o000);
    let message = refused_without_rights(&site.orchestrator);
    assert!(message.starts_with("error: store data/os-upgrade.db cannot be written: "), "{message}");
    allow(&data.join("lock"), 0o444);
    let message = refused_without_rights(&site.orchestrator);
    assert_eq!(message, "error: cannot use the data directory data: Permission denied (os error 13)");
    allow(&data, 0o000);
    let message = refused_without_rights(&site.orchestrator);
    assert_eq!(message, "error: cannot use the data directory data: Permission denied (os error 13)");
    allow(&data, 0o755);
}

#[tokio::test]
async fn newer_journal_is_refused_untouched() {
    let moon = r#"{"at":"2026-11-21T01:00:00Z","control":1,"facts":[{"type":"moon-landed"}]}"#;
    let more = r#"{"at":"2026-11-21T01:00:00Z","control":1,"facts":[],"moon":1}"#;
    for (format, payload, expected) in [
        ("12", "{}", "its format, 12, is newer than those that this version reads, up to 11"),
        ("3", more, "the payload cannot be used: it has moon, which this version does not know"),
        ("2", moon, "the payload cannot be used: it is not valid: unknown fact `moon-landed` at line 1 "),
    ] {
        let mut site = Site::start().await;
        site.orchestrator.terminate().await;
        let sequence = streams::append_record(site.jetstream(), format, payload).await;
        site.orchestrator.start();
        let reason = await_unready(&site.orchestrator, &format!("journal message {sequence} ")).await;
        let unreadable = format!("journal message {sequence} cannot be read: {expected}");
        assert!(reason.starts_with(&unreadable), "{reason}");
        let advice = "; upgrade this instance to the version that wrote it, or a newer one";
        assert!(reason.ends_with(advice), "{reason}");
        let (_, answer) = site.rest().get("/readyz").await;
        assert_eq!(answer["errors"][0]["error-info"], json!({ "kind": "other-version" }));
        // Before anybody stops it: in the status, in the metrics and in `doctor`.
        let (_, cluster) = site.rest().get("/v1/state/cluster").await;
        let own = &cluster["instances"][0];
        assert_eq!(own["not-ready-reason"], json!(reason), "{cluster}");
        // It has not folded what it cannot read.
        assert_eq!((&own["position"], &own["reads-format"]), (&json!(sequence - 1), &json!(11)));
        let metrics = site.rest().get_as("/metrics", "*/*").await;
        assert!(metrics.contains("os_upgrade_halted{kind=\"other-version\"} 1"), "{metrics}");
        let (code, found, _) = site.orchestrator.command(&["doctor"]).await;
        assert_eq!(code, Some(1));
        let advice = "upgrade this instance to the version that wrote it, or a newer one";
        assert!(
            found.contains(&format!("problem  journal: {unreadable}")) && found.contains(advice),
            "{found}"
        );
        assert_eq!(site.rest().trigger("").await.0, 503);
        assert_eq!(site.last_sequence(subject::JOURNAL_STREAM).await, sequence);
        site.orchestrator.terminate().await;
        // Nor are records of a newer version reported as damage.
        let (code, _, stderr) = site.orchestrator.command(&["restore", "--from-store", "--yes"]).await;
        assert_eq!(code, Some(5));
        assert!(stderr.starts_with(&format!("error: {unreadable}")), "{stderr}");
        assert_eq!(site.last_sequence(subject::JOURNAL_STREAM).await, sequence);
    }
}
