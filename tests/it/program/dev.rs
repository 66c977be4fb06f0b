//! `os-upgrade dev`: a whole site on one machine, which leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use harness::orchestrator::own_address;
use harness::programs;
use harness::rest::Rest;
use harness::secured_nats::SecuredNats;
use harness::wait::eventually;
use os_upgrade_platform::child::{self, Child};
use reqwest::Method;
use serde_json::{Value, json};

fn set_arguments(command: &mut Command, listen: &str, data: &Path, more: &[&str]) {
    command.args(["dev", "--hosts", "2", "--listen", listen, "--data-dir"]).arg(data).args(more);
    command.current_dir(data).env_remove("RUST_LOG");
}

/// The command lines of processes that contain this text.
fn processes_with(text: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("a /proc").flatten();
    let arguments = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = arguments.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(text)).collect()
}

fn processes(directory: &Path) -> Vec<String> {
    processes_with(directory.to_str().expect("a path in UTF-8"))
}

/// The files in `directory` that contain this text. Files that a running server removes in the meantime are left out.
fn files_with(directory: &Path, text: &str) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(files_with(&entry.path(), text));
        } else if fs::read(entry.path()).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text)) {
            found.insert(entry.path());
        }
    }
    found
}

#[tokio::test]
async fn dev_once_upgrades_and_cleans_up() {
    let data = tempfile::tempdir().expect("a directory");
    let listen = own_address().to_string();
    for _ in 0..2 {
        let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
        set_arguments(command.as_std_mut(), &listen, data.path(), &["--once"]);
        let output = command.kill_on_drop(true).stdin(Stdio::null()).output().await.expect("started");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
        assert!(out.contains("h01") && out.contains("h02"), "{out}");
        assert_eq!(processes(data.path()), [""; 0]);
    }
}

/// A site of two hosts, and what its terminal shows.
async fn start(data: &Path, more: &[&str]) -> (Child, Rest) {
    let address = own_address();
    let mut command = child::command(programs::path(programs::ORCHESTRATOR));
    set_arguments(&mut command, &address.to_string(), data, more);
    start_command(command, address, data).await
}

async fn start_command(mut command: Command, address: SocketAddr, directory: &Path) -> (Child, Rest) {
    let log = File::create(directory.join("log")).expect("made");
    command.env("RUST_LOG", "debug").stdout(log.try_clone().expect("cloned")).stderr(log);
    let child = Child::start(command).expect("started");
    let rest = Rest::new(address);
    eventually("the hosts", async || {
        let (_, state) = rest.try_call(Method::GET, "/v1/state/os-upgrade", "").await?;
        (state["scheduled-workers"].as_array()?.len() == 2).then_some(())
    })
    .await;
    (child, rest)
}

#[tokio::test]
async fn dev_prints_what_happens() {
    let data = tempfile::tempdir().expect("a directory");
    let (child, rest) = start(data.path(), &["--speed", "100"]).await;
    let shown = || fs::read_to_string(data.path().join("log")).unwrap_or_default();
    let await_line = async |text: &str| {
        eventually(text, async || shown().lines().any(|line| line.ends_with(text)).then_some(())).await;
    };
    await_line("What happens until then:").await;
    rest.call(Method::POST, "/v1/state/os-upgrade/trigger-upgrade-site", "{}").await;
    await_line(" (2 hosts)").await;
    for host in ["h01", "h02"] {
        await_line(&format!("{host}: prepare sent")).await;
        await_line(&format!("{host}: upgrade sent")).await;
        await_line(&format!("{host} upgraded")).await;
    }
    await_line(" completed").await;
    let reboot = json!({ "nodes": ["h01"] }).to_string();
    assert_eq!(rest.call(Method::POST, "/v1/state/reboot-queue/add", &reboot).await.0, 201);
    await_line("h01 (reboot queue, entry 0) rebooted").await;
    child.kill().await;
}

/// Neither windows nor anything else is lost by a restart. That the application is set again is said.
#[tokio::test]
async fn restart_of_dev_keeps_configuration() {
    const CONFIG: &str = "/v1/config/os-upgrade";
    let data = tempfile::tempdir().expect("a directory");
    let (child, rest) = start(data.path(), &[]).await;
    let window = json!({"maintenance-windows": [{ "days-of-week": "Saturday", "start-time": "02:00", "duration": "4h" }]});
    assert_eq!(rest.call(Method::PATCH, CONFIG, &window.to_string()).await, (204, Value::Null));
    let (_, before) = rest.get(CONFIG).await;
    child.kill().await;
    let (child, rest) = start(data.path(), &[]).await;
    assert_eq!(rest.get(CONFIG).await.1, before);
    let said = "The kept configuration had";
    let shown = || fs::read_to_string(data.path().join("log")).expect("a log");
    let await_line = async |line: &str| {
        eventually(line, async || shown().lines().any(|shown| shown.ends_with(line)).then_some(())).await;
    };
    await_line("What happens until then:").await;
    assert!(!shown().contains(said), "nothing was to be changed");
    let own = json!({"worker-applications": [{ "name": "own" }]});
    assert_eq!(rest.call(Method::PATCH, CONFIG, &own.to_string()).await, (204, Value::Null));
    child.kill().await;
    let (child, rest) = start(data.path(), &[]).await;
    await_line(&format!("{said} own: its application is os-upgrade-demo again, and the rest stays")).await;
    assert_eq!(rest.get(CONFIG).await.1, before);
    child.kill().await;
}

/// As the README says.
#[tokio::test]
async fn demo_host_fails_when_told_to() {
    let data = tempfile::tempdir().expect("a directory");
    let (child, rest) = start(data.path(), &["--speed", "100"]).await;
    let fail = data.path().join("hosts/h02/fail");
    File::create(&fail).expect("made");
    let run = rest.await_end(&rest.start_run().await).await;
    assert_eq!(run.result(), Some("failed"));
    fs::remove_file(&fail).expect("removed");
    let run = rest.await_end(&rest.start_run().await).await;
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded"), ("h02", "upgraded")]));
    child.kill().await;
}

/// The provider of docs/configuration.md is tried as it says there: its file reaches the host, as does a change, and its removal.
#[tokio::test]
async fn a_provider_is_tried_with_dev() {
    const CONFIGURATION: &str = include_str!("../../../docs/configuration.md");
    const PROVIDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/hook_provider.py");
    let data = tempfile::tempdir().expect("a directory");
    let files = tempfile::tempdir().expect("a directory");
    let given = files.path().join("h01");
    fs::write(&given, "level=1\n").expect("written");
    let provider_address = own_address().to_string();
    let mut provider = tokio::process::Command::new("python3");
    provider.arg(PROVIDER).arg(files.path()).arg(&provider_address);
    // A proxy of the machine does not reach addresses of the tests.
    provider.env("no_proxy", "*").env_remove("HOOKS_SECRET").kill_on_drop(true);
    let _provider = provider.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started");

    let address = own_address();
    let mut command = child::command(programs::path(programs::ORCHESTRATOR));
    set_arguments(&mut command, &address.to_string(), data.path(), &["--speed", "100"]);
    let (child, rest) = start_command(command, address, data.path()).await;
    let shown =
        |prefix: &'static str| CONFIGURATION.lines().filter_map(move |line| line.strip_prefix(prefix));
    let commands: Vec<&str> = shown("target/debug/os-upgrade ").collect();
    let [configure, show, end] = commands[..] else { panic!("{commands:?}") };
    let run = async |line: &str| {
        let mut arguments =
            shlex::split(&line.replace("127.0.0.1:9000", &provider_address)).expect("a command");
        arguments.extend(line.starts_with("config set").then(|| "--yes".to_owned()));
        let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
        command.args(&arguments).env("OS_UPGRADE_URL", format!("http://{address}"));
        let output = command.env("XDG_CONFIG_HOME", data.path()).stdin(Stdio::null()).output().await;
        let output = output.expect("started");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    run(configure).await;
    run(show).await;
    let file = data.path().join(shown("cat data/dev/").next().expect("the file that is shown"));
    let await_file = async |expected: Option<&str>| {
        eventually(&format!("{expected:?} in the host's file"), async || {
            (fs::read_to_string(&file).ok().as_deref() == expected).then_some(())
        })
        .await;
    };
    await_file(Some("level=1\n")).await;
    fs::write(&given, "level=2\n").expect("written");
    await_file(Some("level=2\n")).await;
    fs::remove_file(&given).expect("removed");
    await_file(None).await;
    run(end).await;
    assert_eq!(rest.get("/v1/config/os-upgrade").await.1["config-providers"], Value::Null);
    child.kill().await;
}

#[tokio::test]
async fn doctor_finds_dev() {
    let directory = tempfile::tempdir().expect("a directory");
    let address = own_address();
    let mut command = child::command(programs::path(programs::ORCHESTRATOR));
    command.args(["dev", "--hosts", "2", "--listen", &address.to_string()]).current_dir(directory.path());
    let (child, _) = start_command(command, address, directory.path()).await;
    let doctor = async || {
        let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
        let output = command.args(["doctor", "-o", "json"]).current_dir(directory.path()).output().await;
        let output = output.expect("started");
        let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("checks");
        let row = |row: &Value| Some((row["check"].as_str()?.to_owned(), row["found"].as_str()?.to_owned()));
        let rows: BTreeMap<_, _> = rows.iter().filter_map(row).collect();
        assert_eq!(output.status.code(), Some(0), "{rows:?}");
        rows
    };
    let rows = doctor().await;
    assert_eq!(rows["configuration"], "site site, as data/dev/os-upgrade.toml has it");
    assert_eq!(rows["instances"], "1 heard", "the same settings as those of dev");
    assert_eq!(rows["enrolment"], "announced hosts: 2 taking part, 0 withdrawn");
    child.kill().await;
    eventually("dev to end", async || (doctor().await["configuration"] == "site site").then_some(())).await;
}

#[tokio::test]
async fn killed_dev_leaves_nothing_and_hides_password() {
    let data = tempfile::tempdir().expect("a directory");
    let (child, _) = start(data.path(), &[]).await;
    assert!(processes(data.path()).len() >= 4, "{:?}", processes(data.path()));

    // A second one on its own port gets an error that names what else it needs.
    let mut second = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
    set_arguments(second.as_std_mut(), &own_address().to_string(), data.path(), &[]);
    let output = second.kill_on_drop(true).stdin(Stdio::null()).output().await.expect("started");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.trim_end().ends_with("give this one a directory of its own with --data-dir"), "{stderr}");

    // The password of its nats-server must be neither in arguments, which others can read, nor in logs.
    let url = fs::read_to_string(data.path().join("nats/url")).expect("a URL");
    let password = url.split([':', '@']).nth(2).expect("a password");
    assert_eq!(processes_with(password), [""; 0]);
    let known = ["nats/nats-server.conf", "nats/url"].map(|file| data.path().join(file));
    assert_eq!(files_with(data.path(), password), BTreeSet::from(known));
    for log in ["log", "hosts/h01/worker.log", "nats/nats-server.log"] {
        assert!(fs::metadata(data.path().join(log)).expect("a log").len() > 0, "{log}");
    }
    child.kill().await;
    eventually("all processes to end", async || processes(data.path()).is_empty().then_some(())).await;
}

#[tokio::test]
async fn dev_passes_credentials_to_hosts() {
    let nats = SecuredNats::start(1).await;
    nats.admit("h01").await;
    let ca = nats.issued().ca();
    let site = ca.parent().and_then(Path::to_str).expect("a directory");
    let data = tempfile::tempdir().expect("a directory");
    let listen = own_address().to_string();
    let run = async |environment: &[(&str, &str)], more: &[&str]| -> Output {
        let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
        set_arguments(command.as_std_mut(), &listen, data.path(), &[&["--once"], more].concat());
        command.envs(environment.iter().copied()).kill_on_drop(true).stdin(Stdio::null());
        command.output().await.expect("started")
    };
    let refused = async |environment: &[(&str, &str)], more: &[&str], what: &str| {
        let output = run(environment, more).await;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && stderr.contains(what), "{stderr}");
    };
    let urls = nats.urls();
    let url = ("OS_UPGRADE_NATS__URL", urls.as_str());
    let credentials = nats.issued().orchestrator_credentials().display().to_string();
    let own = ("OS_UPGRADE_NATS__CREDENTIALS", credentials.as_str());
    let option = ["--nats-config", site];
    refused(&[url, own], &[], "the hosts would have no credentials for this NATS").await;
    refused(&[], &option, "set OS_UPGRADE_NATS__URL").await;
    let advice = format!("os-upgrade nats-config host h02 --dir {site} --nats {urls}");
    refused(&[url], &option, &advice).await;

    nats.admit("h02").await;
    let output = run(&[url], &option).await;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
    assert!(out.contains("h01: upgraded") && out.contains("h02: upgraded"), "{out}");
}
