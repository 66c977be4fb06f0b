//! The scripts on a real host directory, and an upgrade against a fake API.

use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Json, Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post, put};
use clap::Parser;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::worker::APPLICATION;
use super::*;

/// What a host takes for a step in tests.
const NO_TIME: Duration = Duration::ZERO;

fn script(host: &DemoHost, name: &str) -> Output {
    // Run through sh: a script just written may still be open for writing in a process forked meanwhile.
    Command::new("sh").arg(host.dir.join("scripts").join(name)).output().unwrap()
}

fn outcome(host: &DemoHost, name: &str) -> (Option<i32>, String) {
    let output = script(host, name);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap().trim().to_owned())
}

#[test]
fn scripts_upgrade_a_host() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = DemoHost::create_all(dir.path(), 2, NO_TIME).unwrap();
    let host = &hosts[1];
    assert_eq!((host.name.as_str(), host.release().as_str()), ("h02", "1.0.0"));
    assert_eq!(outcome(host, "upgrade"), (Some(1), "no release has been prepared".to_owned()));
    for (from, to) in [("1.0.0", "1.1.0"), ("1.1.0", "1.2.0")] {
        assert_eq!(outcome(host, "versions"), (Some(0), format!("{{\"demo-os\":\"{from}\"}}")));
        assert_eq!(outcome(host, "prepare").0, Some(0));
        assert_eq!(outcome(host, "prepare").0, Some(0), "prepare may be repeated");
        assert_eq!(host.release(), from);
        assert_eq!(outcome(host, "health"), (Some(1), format!("runs {from} and not {to}")));
        assert_eq!(outcome(host, "upgrade").0, Some(194));
        assert_eq!(outcome(host, "upgrade").0, Some(194), "a cut upgrade may be repeated");
        assert_eq!(outcome(host, "health").0, Some(0));
        assert_eq!(host.release(), to);
    }
    assert!(host.dir.join("releases/1.0.0/version").is_file(), "earlier releases stay");
    assert_eq!(hosts[0].release(), "1.0.0", "other hosts are not touched");
    let again = DemoHost::create_all(dir.path(), 2, NO_TIME).unwrap();
    assert_eq!((again[1].release(), again[1].boot_id()), (host.release(), host.boot_id()));
}

#[test]
fn hosts_report_their_steps() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = DemoHost::create_all(dir.path(), 1, NO_TIME).unwrap();
    let progress = dir.path().join("progress");
    let mut command = Command::new("sh");
    command.arg(hosts[0].dir.join("scripts/work")).args(["one step", "another"]);
    let output = command.env("OS_UPGRADE_PROGRESS", &progress).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "one step\nanother\n");
    assert_eq!(std::fs::read_to_string(progress).unwrap(), "0 one step\n50 another\n");
}

#[test]
fn hosts_take_their_time_unless_once() {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }
    let step = |arguments: &[&str]| {
        let line = Line::try_parse_from([&["dev"], arguments].concat()).ok()?;
        Some(STEP.div_f64(line.options.speed))
    };
    assert_eq!(step(&[]), Some(Duration::from_secs(1)));
    assert_eq!(step(&["--speed", "4"]), Some(Duration::from_millis(250)));
    assert_eq!(step(&["--once"]), Some(Duration::from_millis(1)));
    assert_eq!(step(&["--once", "--speed", "0.5"]), Some(Duration::from_secs(2)));
    for wrong in ["0", "-1", "1001", "NaN", "inf", "fast"] {
        assert_eq!(step(&[&format!("--speed={wrong}")]), None, "{wrong}");
    }
}

#[test]
fn reboot_changes_boot_id_and_ends_worker() {
    use std::os::unix::process::ExitStatusExt;
    let dir = tempfile::tempdir().unwrap();
    let hosts = DemoHost::create_all(dir.path(), 1, NO_TIME).unwrap();
    let boot_id = hosts[0].boot_id();
    let mut worker = Command::new("sleep").arg("600").spawn().unwrap();
    std::fs::write(hosts[0].dir.join("worker.pid"), worker.id().to_string()).unwrap();
    assert_eq!(outcome(&hosts[0], "reboot").0, Some(0));
    assert_eq!(worker.wait().unwrap().signal(), Some(9));
    assert_ne!(hosts[0].boot_id(), boot_id);
}

#[tokio::test]
async fn killed_workers_are_restarted_until_stop() {
    let dir = tempfile::tempdir().unwrap();
    let hosts = DemoHost::create_all(dir.path(), 1, NO_TIME).unwrap();
    // A fake worker: it records its start and waits. The URL comes in the environment, since it may hold a password and
    // others can read arguments.
    let program = dir.path().join("worker");
    let text = "#!/bin/sh\\necho \"$$ $OS_UPGRADE_NATS_URL $*\" >>starts; exec sleep 600\\n";
    let write = format!("printf '{text}' >\"$0\" && chmod +x \"$0\"");
    assert!(Command::new("sh").args(["-c", &write]).arg(&program).status().unwrap().success());
    let starts = || -> Vec<(i32, String)> {
        let text = std::fs::read_to_string(hosts[0].dir.join("starts")).unwrap_or_default();
        let parse =
            |line: &str| line.split_once(' ').map(|(pid, args)| (pid.parse().unwrap(), args.to_owned()));
        text.lines().filter_map(parse).collect()
    };
    let started = async |count| {
        while starts().len() < count {
            tokio::task::yield_now().await;
        }
    };
    let workers = Workers::start(&program, "nats://x", &hosts, &[Access::default()]);
    started(1).await;
    let pid_file = || std::fs::read_to_string(hosts[0].dir.join("worker.pid")).unwrap_or_default();
    while pid_file() != starts()[0].0.to_string() {
        tokio::task::yield_now().await;
    }
    assert_eq!(outcome(&hosts[0], "reboot").0, Some(0));
    started(2).await;
    let home = hosts[0].dir.display();
    let expected = format!(
        "nats://x exec --host h01 --application os-upgrade-demo --dir {home}/scripts --state-dir {home}/state \
         --boot-id-file {home}/boot-id"
    );
    assert!(starts().iter().all(|(_, arguments)| *arguments == expected), "{:?}", starts());
    workers.stop().await;
    let pid = nix::unistd::Pid::from_raw(starts()[1].0);
    assert_eq!(nix::sys::signal::kill(pid, None), Err(nix::errno::Errno::ESRCH));
    assert_eq!(starts().len(), 2);
}

/// A fake API: the requests it received, the statuses that the host goes through, and the result of the run.
struct FakeApi {
    requests: Vec<String>,
    statuses: Vec<&'static str>,
    result: &'static str,
}

type Shared = Arc<Mutex<FakeApi>>;

async fn readyz(State(api): State<Shared>) -> StatusCode {
    let mut api = api.lock().unwrap();
    api.requests.push("ready".to_owned());
    if api.requests.len() < 3 { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK }
}

async fn configure(State(api): State<Shared>, Json(body): Json<Value>) -> StatusCode {
    api.lock().unwrap().requests.push(body.to_string());
    StatusCode::CREATED
}

async fn trigger(State(api): State<Shared>, Json(body): Json<Value>) -> StatusCode {
    api.lock().unwrap().requests.push(body.to_string());
    StatusCode::NO_CONTENT
}

async fn state() -> Json<Value> {
    Json(json!({
        "status": "idle",
        "scheduled-workers": [{ "host": "h01", "application": APPLICATION }],
    }))
}

/// When something began or ended.
const TIME: &str = "2026-11-21T01:00:00Z";

fn run(id: &str, result: Option<&str>) -> Value {
    json!({
        "id": id, "trigger": "operator", "result": result, "start-time": TIME, "not-after": TIME, "phase": "upgrading",
        "rollout": {}, "counts": {},
    })
}

/// The newest run is an old one until the trigger is requested.
async fn runs(State(api): State<Shared>) -> Json<Value> {
    let triggered = api.lock().unwrap().requests.iter().any(|request| request.contains("timeout"));
    let id = if triggered { "r2" } else { "r1" };
    Json(json!({ "items": [run(id, Some("completed"))], "next": null }))
}

async fn one_run(State(api): State<Shared>, Path(id): Path<String>) -> Json<Value> {
    let mut api = api.lock().unwrap();
    let status = if api.statuses.len() > 1 { api.statuses.remove(0) } else { api.statuses[0] };
    let result = (api.statuses.len() == 1).then_some(api.result);
    let mut run = run(&id, result);
    run["hosts"] = json!([{
        "hostname": "h01", "application": APPLICATION, "group": "default", "status": status, "since": TIME, "reason": null,
    }]);
    run["events"] = json!([]);
    Json(run)
}

async fn upgrade_against(result: &'static str) -> (anyhow::Result<()>, Vec<String>) {
    let fake = Arc::new(Mutex::new(FakeApi {
        requests: Vec::new(),
        statuses: vec!["preparing", "upgrading", "upgraded"],
        result,
    }));
    let router = Router::new()
        .route("/readyz", get(readyz))
        .route(
            "/v1/config/os-upgrade",
            put(configure).patch(async || StatusCode::NOT_FOUND).get(async || StatusCode::NOT_FOUND),
        )
        .route("/v1/state/os-upgrade", get(state))
        .route("/v1/state/os-upgrade/trigger-upgrade-site", post(trigger))
        .route("/v1/state/os-upgrade/runs", get(runs))
        .route("/v1/state/os-upgrade/runs/{id}", get(one_run))
        .with_state(Arc::clone(&fake));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let api = Api::new(listener.local_addr().unwrap()).unwrap();
    let _task = AbortOnDropHandle::new(tokio::spawn(async move { axum::serve(listener, router).await }));
    let dir = tempfile::tempdir().unwrap();
    let hosts = DemoHost::create_all(dir.path(), 1, NO_TIME).unwrap();
    upgrade::set_up(&api, &hosts).await.unwrap();
    let outcome = upgrade::once(&api, &hosts).await;
    let requests = fake.lock().unwrap().requests.clone();
    (outcome, requests)
}

#[tokio::test]
async fn upgrade_is_triggered_and_watched() {
    let (outcome, requests) = upgrade_against("completed").await;
    outcome.unwrap();
    let configured = r#"{"worker-applications":[{"name":"os-upgrade-demo"}]}"#;
    assert_eq!(requests, ["ready", "ready", "ready", configured, r#"{"timeout":"10m"}"#]);

    let (outcome, _) = upgrade_against("failed").await;
    assert_eq!(outcome.unwrap_err().to_string(), "the run has ended failed");
}
