//! `os-upgrade doctor`: each fault is a row with advice, and the check changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use async_nats::jetstream::{self, stream};
use futures::StreamExt as _;
use harness::nats_server::NatsServer;
use harness::orchestrator::Orchestrator;
use harness::site::Site;
use harness::wait::eventually;
use os_upgrade_kernel::format::NEWEST;
use os_upgrade_protocol::subject;
use os_upgrade_test_kubernetes::{ApiServer, Rules};
use serde_json::{Value, json};

/// Every check by its name: verdict and finding. Checks with a problem must have advice.
async fn run_doctor(orchestrator: &Orchestrator) -> (Option<i32>, BTreeMap<String, (String, String)>) {
    let (code, printed, _) = orchestrator.command(&["doctor", "--output", "json"]).await;
    let rows: Vec<Value> = serde_json::from_str(&printed).unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = rows.iter().map(|row| {
        assert_eq!(row["verdict"] == "ok", row.get("advice").is_none(), "{row}");
        (text(row, "check"), (text(row, "verdict"), text(row, "found")))
    });
    (code, rows.collect())
}

fn content(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(content(&path));
        } else if !path.to_string_lossy().ends_with("-shm") {
            // Not content: SQLite keeps its current readers there.
            all.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    all.sort();
    all
}

#[tokio::test]
async fn healthy_site_has_no_problems() {
    let mut site = Site::start().await;
    let hosts = site.hosts(1).await;
    let id = site.rest().start_run().await;
    site.rest().await_end(&id).await;
    drop(hosts);
    let (code, mut rows) = run_doctor(&site.orchestrator).await;
    assert_eq!(code, Some(0), "{rows:?}");
    // Whether this machine's are old is not the site's fault.
    assert!(rows.remove("time zone data").is_some(), "{rows:?}");
    assert!(rows.values().all(|(verdict, _)| verdict == "ok"), "{rows:?}");
    let found = |name: &str| rows[name].1.as_str();
    assert_eq!(
        found("used by"),
        format!("process {}, an orchestrator or a restoration", site.orchestrator.pid())
    );
    assert_eq!(found("lease"), format!("instance {} leads", site.orchestrator.instance()));
    let last = site.last_sequence(subject::JOURNAL_STREAM).await;
    let readable = format!("readable up to its end, message {last}; its newest format is {NEWEST}");
    assert_eq!(found("journal"), readable);
    assert_eq!(found("acknowledged data"), "everything that the store has is in the streams");
    assert!(found("store").starts_with("site site, "), "{rows:?}");
    for stream in ["journal", "control", "versions", "workers"] {
        let of = format!("os-upgrade:{stream}");
        let mut stored = jetstream::new(site.nats.client().await).get_stream(&of).await.unwrap();
        let state = &stored.info().await.unwrap().state;
        let stored = format!("{} bytes, {} messages", state.bytes, state.messages);
        assert_eq!(found(&format!("storage of {of}")), stored);
    }
    assert!(found("storage of history").ends_with(" facts, 1 runs"), "{rows:?}");
    for stream in ["journal", "control", "versions", "workers"] {
        assert_eq!(found(&format!("stream os-upgrade:{stream}")), "configured as needed");
    }
    assert_eq!(found("stream KV_os-upgrade-lease"), "configured as needed");
    site.orchestrator.terminate().await;
    let before = content(&site.orchestrator.directory().join("data"));
    let (code, rows) = run_doctor(&site.orchestrator).await;
    assert_eq!((code, rows["used by"].1.as_str()), (Some(0), "no process"));
    assert_eq!(content(&site.orchestrator.directory().join("data")), before, "looking changes nothing");
}

/// The leader's settings apply, so different settings would move windows with the lease.
#[tokio::test]
async fn differing_instance_settings_are_reported() {
    let site = Site::start().await;
    let (_, rows) = run_doctor(&site.orchestrator).await;
    assert_eq!(rows["instances"], ("ok".to_owned(), "1 heard".to_owned()));
    let mut other = Orchestrator::new(&site.nats.url(), "[site]\ntimezone = \"Europe/Stockholm\"");
    other.start();
    other.await_following(&site.orchestrator).await;
    let (us, them) = (site.orchestrator.instance(), other.instance());
    let difference = "instances have different values for [site] timezone (the leader's applies):";
    for asked in [&site.orchestrator, &other] {
        let expected = format!("{difference} Europe/Stockholm ({them}), UTC ({us})");
        let status = eventually("both heartbeats", async || {
            asked.cluster_status().await.filter(|status| status["warnings"][0] == expected.as_str())
        })
        .await;
        let zones: Vec<_> =
            status["instances"].as_array().unwrap().iter().map(|row| &row["timezone"]).collect();
        assert!(zones.contains(&&"UTC".into()) && zones.contains(&&"Europe/Stockholm".into()), "{status}");
    }
    let (_, shown, _) = other.ask(&["cluster", "status"], "").await;
    assert!(shown.contains(&format!("\nwarning: {difference} ")), "{shown}");
    let (code, rows) = run_doctor(&other).await;
    let expected = format!("2 heard; {difference} Europe/Stockholm ({them}, this configuration), UTC ({us})");
    assert_eq!((code, &rows["instances"]), (Some(0), &("warning".to_owned(), expected)));
}

/// A cluster can be found and asked, and has nodes of hosts; or it says what is missing.
#[tokio::test]
async fn cluster_is_asked_for_its_nodes() {
    const CHECK: &str = "Kubernetes cluster";
    let (nats, cluster) = (NatsServer::start().await, ApiServer::start().await);
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    let with_token = |token: &str| fs::write(&kubeconfig, cluster.kubeconfig(token).to_string()).unwrap();
    let settings =
        format!("[site]\nname = \"hall-1\"\n[kubernetes]\nkubeconfig = \"{}\"", kubeconfig.display());
    let orchestrator = Orchestrator::new(&nats.url(), &settings);
    let row = |verdict: &str, found: &str| (verdict.to_owned(), found.to_owned());

    let (code, rows) = run_doctor(&orchestrator).await;
    assert_eq!((code, rows[CHECK].0.as_str()), (Some(1), "problem"), "{rows:?}");
    assert!(rows[CHECK].1.contains("No such file"), "{rows:?}");
    with_token(&cluster.grant("nobody", Rules::default()));
    let (code, rows) = run_doctor(&orchestrator).await;
    assert_eq!((code, rows[CHECK].0.as_str()), (Some(1), "problem"), "{rows:?}");
    assert!(rows[CHECK].1.contains("lacks the right to list nodes"), "{rows:?}");
    let rules = json!([{ "apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"] }]);
    with_token(&cluster.grant("reader", Rules::of_cluster_role(&rules)));
    let (code, rows) = run_doctor(&orchestrator).await;
    // Those that config/kubernetes/rbac.yaml leaves to administrators are not missed.
    let missing = "missing rights: list pods, create pods/eviction, list poddisruptionbudgets of policy";
    assert_eq!((code, &rows[CHECK]), (Some(1), &row("problem", missing)));
    with_token(cluster.admin_token());
    let (code, rows) = run_doctor(&orchestrator).await;
    assert_eq!((code, &rows[CHECK]), (Some(0), &row("warning", "none of its nodes is that of a host")));
    for name in ["h01", "h02", "h03", "h04"] {
        cluster.add_node(name);
    }
    let (code, rows) = run_doctor(&orchestrator).await;
    let found = "nodes of hosts: 4 (h01, h02, h03, ...), 4 ready, 0 API servers";
    assert_eq!((code, &rows[CHECK]), (Some(0), &row("ok", found)));
}

/// What the settings name, and nothing uses before the first reboot.
#[tokio::test]
async fn nodes_and_commands_that_are_not_there_are_found() {
    let (nats, cluster) = (NatsServer::start().await, ApiServer::start().await);
    cluster.add_node("node-1");
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    fs::write(&kubeconfig, cluster.kubeconfig(cluster.admin_token()).to_string()).unwrap();
    let settings = format!(
        "[site]\nname = \"hall-1\"\n[reboot]\nreboot-command = \"/nowhere/reboot --soft\"\ncommand-timeout = \"1m\"\n\
         boot-check-command = \"true\"\n[kubernetes]\nkubeconfig = \"{}\"\nnode-from = \"mapping\"\n\
         [kubernetes.nodes]\nh01 = \"node-1\"\nh02 = \"node-9\"",
        kubeconfig.display()
    );
    let mut orchestrator = Orchestrator::new(&nats.url(), &settings);
    let (code, rows) = run_doctor(&orchestrator).await;
    assert_eq!(code, Some(1), "{rows:?}");
    orchestrator.start();
    let warning = "[reboot] reboot-command: /nowhere/reboot cannot be executed by this user, or is not there";
    eventually("the warning", async || orchestrator.log().contains(warning).then_some(())).await;
    let (verdict, found) = &rows["[reboot] reboot-command"];
    assert!(
        verdict == "problem" && found.starts_with("/nowhere/reboot cannot be executed by this user"),
        "{rows:?}"
    );
    let (verdict, found) = &rows["[reboot] boot-check-command"];
    assert!(verdict == "ok" && found.ends_with("/true can be executed by this user"), "{rows:?}");
    let (verdict, found) = &rows["Kubernetes cluster"];
    assert!(
        verdict == "warning" && found == "it lacks 1 nodes that [kubernetes.nodes] names: node-9 (h02)",
        "{rows:?}"
    );
}

#[tokio::test]
async fn doctor_creates_nothing() {
    let nats = NatsServer::start().await;
    let client = nats.client().await;
    // NATS also tells of streams that are deleted at once.
    let mut created = client.subscribe("$JS.EVENT.ADVISORY.STREAM.>").await.unwrap();
    client.flush().await.unwrap();
    let orchestrator = Orchestrator::new(&nats.url(), "");
    let (code, rows) = run_doctor(&orchestrator).await;
    assert_eq!(code, Some(0), "{rows:?}");
    assert_eq!(rows["data directory"].0, "warning");
    assert_eq!(rows["stream os-upgrade:journal"].1, "does not exist yet");
    assert!(
        rows["storage of the servers"].1.starts_with("NATS tells it only to its administrators"),
        "{rows:?}"
    );
    let jetstream = jetstream::new(client);
    let own = stream::Config { name: "own".to_owned(), ..stream::Config::default() };
    jetstream.create_stream(own).await.unwrap();
    assert_eq!(created.next().await.unwrap().subject.as_str(), "$JS.EVENT.ADVISORY.STREAM.CREATED.own");
    assert_eq!(jetstream.query_account().await.unwrap().streams, 1);
    let managed = Orchestrator::managed();
    let (code, rows) = run_doctor(&managed).await;
    assert_eq!(code, Some(0), "{rows:?}");
    assert_eq!(rows["NATS"], ("warning".to_owned(), "the managed nats-server is not running".to_owned()));
    assert!(rows["nats-server"].1.contains("nats-server 2."), "{rows:?}");
    for directory in [orchestrator.directory(), managed.directory()] {
        let names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["os-upgrade.toml"]);
    }
}

/// Damages a site whose orchestrator does not run.
type Fault = fn(&mut Site);

fn store(site: &Site) -> PathBuf {
    site.orchestrator.store_file()
}

/// A fault, the check that must find it, and its expected finding.
const FAULTS: &[(&str, Fault, &str, &str)] = &[
    (
        "a configuration with a mistake",
        |site| {
            let file = site.orchestrator.directory().join("os-upgrade.toml");
            fs::write(&file, fs::read_to_string(&file).unwrap() + "\n[bus]\n").unwrap();
        },
        "configuration",
        "unknown section [bus]",
    ),
    (
        "a data directory that is a file",
        |site| {
            let data = site.orchestrator.directory().join("data");
            fs::remove_dir_all(&data).unwrap();
            fs::write(&data, "mine").unwrap();
        },
        "data directory",
        "data is not a directory",
    ),
    (
        "a store that is text",
        |site| fs::write(store(site), "Lorem ipsum dolor sit amet ".repeat(200)).unwrap(),
        "store",
        "is damaged or not an SQLite database",
    ),
    (
        "half a store",
        |site| {
            let bytes = fs::read(store(site)).unwrap();
            fs::write(store(site), &bytes[..bytes.len() / 2]).unwrap();
        },
        "store",
        "damaged",
    ),
    (
        "an authority of the lock server that is not there",
        |site| {
            let file = site.orchestrator.directory().join("os-upgrade.toml");
            let lock_server = "\n[fleet-lock]\nurl = \"https://user:secret@h\"\nca = \"ca.pem\"\n";
            fs::write(&file, fs::read_to_string(&file).unwrap() + lock_server).unwrap();
        },
        "lock server",
        "cannot read ca.pem, the `ca` of [fleet-lock]: No such file or directory (os error 2)",
    ),
    ("no NATS", |site| site.nats.kill(), "NATS", "cannot connect to NATS at "),
];

#[tokio::test]
async fn each_fault_is_found() {
    for (name, fault, check, expected) in FAULTS {
        let mut site = Site::start().await;
        site.orchestrator.terminate().await;
        // Everything in the write-ahead log is now in the file.
        let copy = store(&site).with_extension("copy");
        assert!(os_upgrade_store::copy(&store(&site), "site", &copy).await.unwrap());
        for suffix in ["db-wal", "db-shm"] {
            let _ = fs::remove_file(store(&site).with_extension(suffix));
        }
        fs::rename(copy, store(&site)).unwrap();
        fault(&mut site);
        let (code, rows) = run_doctor(&site.orchestrator).await;
        assert_eq!(code, Some(1), "{name}: {rows:?}");
        let (verdict, found) = &rows[*check];
        assert!(verdict == "problem" && found.contains(expected), "{name}: {rows:?}");
    }
}

#[tokio::test]
async fn damaged_or_foreign_streams_are_found() {
    let mut site = Site::start().await;
    site.orchestrator.terminate().await;
    let stream = site.jetstream().get_stream(subject::CONTROL_STREAM).await.unwrap();
    let mut config = stream.cached_info().config.clone();
    config.deny_delete = true;
    site.jetstream().update_stream(config).await.unwrap();
    let (code, rows) = run_doctor(&site.orchestrator).await;
    let (verdict, found) = &rows["stream os-upgrade:control"];
    assert_eq!((code, verdict.as_str()), (Some(1), "problem"), "{rows:?}");
    assert!(found.contains("deny-delete = true; false is needed"), "{found}");

    site.jetstream().delete_stream(subject::JOURNAL_STREAM).await.unwrap();
    let (code, rows) = run_doctor(&site.orchestrator).await;
    let (verdict, found) = &rows["acknowledged data"];
    assert_eq!((code, verdict.as_str()), (Some(1), "problem"), "{rows:?}");
    assert!(found.starts_with("the journal is not there, messages up to "), "{found}");

    let other = Orchestrator::new(&site.nats.url(), "[site]\nname = \"lund\"");
    std::os::unix::fs::symlink(site.orchestrator.directory().join("data"), other.directory().join("data"))
        .unwrap();
    let (code, rows) = run_doctor(&other).await;
    assert_eq!(code, Some(1));
    assert!(rows["store"].1.contains("belongs to site \"site\", not \"lund\""), "{rows:?}");
    let control = &rows["stream os-upgrade:control"].1;
    assert!(control.contains("belongs to site \"site\", not \"lund\""), "{rows:?}");
    // As text, the advice is below.
    let (_, printed, stderr) = other.command(&["doctor"]).await;
    assert!(printed.contains("\n         check [store] path and [site] name"), "{printed}");
    assert!(stderr.ends_with("problems found"), "{stderr}");
}
