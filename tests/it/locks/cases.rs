//! The FleetLock conformance cases: our server passes all of them over HTTP, and a server with a defect fails the cases
//! that test for it.

use std::collections::BTreeSet;
use std::time::Duration;

use harness::faulty_lock_server::{Defect, FaultyLockServer};
use harness::programs;
use harness::site::Site;
use harness::wait::{Stopwatch, eventually};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use os_upgrade_conformance::{self as conformance, Level, Options, Report, Verdict};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// Slots of the group in which our server is tested.
const SLOTS: usize = 3;

fn options(url: &str, level: Level, slots: usize) -> Options {
    Options {
        url: url.parse().unwrap(),
        tls: None,
        group: "default".to_owned(),
        level,
        slots: Some(slots),
        slots_max: 16,
    }
}

async fn examine(options: &Options) -> Report {
    let report = conformance::run(options, &CancellationToken::new(), |_| ()).await.unwrap();
    assert!(report.left.is_empty() && !report.interrupted, "{report:?}");
    report
}

fn cases(report: &Report, verdict: Verdict) -> BTreeSet<&'static str> {
    report.rows.iter().filter(|row| row.verdict == verdict).map(|row| row.case).collect()
}

#[tokio::test]
async fn own_server_passes_every_case() {
    let site = Site::start_with(&format!("[fleet-lock.groups]\ndefault = {SLOTS}")).await;
    let address = site.orchestrator.address();
    for base in ["", "/", "/fleetlock", "/fleetlock/"] {
        for level in [Level::Strict, Level::Protocol] {
            let report = examine(&options(&format!("http://{address}{base}"), level, SLOTS)).await;
            let odd: Vec<_> = report.rows.iter().filter(|row| row.verdict == Verdict::Fail).collect();
            assert!(odd.is_empty(), "{base:?} {odd:#?}");
            if level == Level::Strict {
                assert_eq!(cases(&report, Verdict::Skip), BTreeSet::new(), "{base:?}");
            }
        }
    }
    // It leaves neither holders nor waiters behind.
    let (_, state) = site.rest().get("/v1/state/fleet-lock").await;
    let groups = state["groups"].as_array().unwrap();
    assert!(
        groups.iter().all(|group| group["holders"] == json!([]) && group["waiters"] == json!([])),
        "{state}"
    );
}

#[tokio::test]
async fn no_grants_without_bus() {
    let mut site = Site::start().await;
    let url = format!("http://{}", site.orchestrator.address());
    let http = harness::http::builder([]).build().unwrap();
    let send = async |path: &str| {
        let body = r#"{"client_params":{"id":"node-7","group":"default"}}"#;
        let request = http.post(format!("{url}{path}")).header("fleet-lock-protocol", "true").body(body);
        let since = Stopwatch::start();
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        (status, body["kind"].as_str().map(str::to_owned), since)
    };
    assert_eq!(send("/v1/pre-reboot").await.0, 200);
    assert_eq!(send("/v1/steady-state").await.0, 200);
    // The bus hangs, and is killed then. Requests are sent both before and after the orchestrator notices.
    site.nats.signal(Signal::SIGSTOP);
    for hangs in [true, false] {
        for path in
            ["/v1/pre-reboot", "/v1/steady-state", "/fleetlock/v1/pre-reboot", "/fleetlock/v1/steady-state"]
        {
            let (status, kind, took) = send(path).await;
            // Which one depends on whether the orchestrator has noticed the silence.
            let kinds = [Some("backend_unavailable"), Some("outcome_unknown")];
            assert!(status == 503 && kinds.contains(&kind.as_deref()), "{path}: {status} {kind:?}");
            took.assert_below(Duration::from_secs(3));
        }
        if hangs {
            site.nats.kill();
        }
    }
    site.nats.start_again().await;
    eventually("the server to grant again", async || (send("/v1/pre-reboot").await.0 == 200).then_some(()))
        .await;
}

/// The cases that fail when every grant of a server is wrong.
const EVERY_GRANT: &[&str] = &[
    "as Zincati asks",
    "as curl -d asks",
    "as fleetctl asks",
    "as fleetlockctl asks, //v1/",
    "extra fields",
    "full: a holder locks again",
    "full: unlock by another frees nothing",
    "full: a freed slot goes to another",
    "lock",
    "lock again, same id",
    "many at once for the last slot",
    "unlock again",
    "unlock by the holder",
    "unlock, another holds",
    "unlock, nothing held",
];

/// Every defect, and exactly the cases that fail because of it.
const DEFECTS: &[(Defect, &[&str])] = &[
    (
        Defect::GrantsEverybody,
        &[
            "number of slots",
            "full",
            "full: a holder locks again",
            "full: the holder's id in capitals",
            "full: unlock by another frees nothing",
            "full: a freed slot goes to another",
            "many at once for the last slot",
        ],
    ),
    (Defect::FreesAnothersSlot, &["full: unlock by another frees nothing"]),
    (Defect::LooksThenTakes, &["many at once for the last slot"]),
    (Defect::FailsWhenBusy, &["many at once for the last slot"]),
    (Defect::Accepts, EVERY_GRANT),
    (
        Defect::SendsToLogin,
        &[
            "GET",
            "GET with a body",
            "PUT",
            "a list",
            "as Zincati asks",
            "as curl -d asks",
            "as fleetctl asks",
            "as fleetlockctl asks, //v1/",
            "empty body",
            "empty group",
            "empty id",
            "extra fields",
            "half a body",
            "header TRUE",
            "header false",
            "header missing",
            "lock",
            "text after the body",
            "no client_params",
            "no group",
            "no id",
            "numeric id",
            "unlock, nothing held",
        ],
    ),
    (Defect::EmptyBody, EVERY_GRANT),
    (
        Defect::PageWhenFull,
        &[
            "full",
            "full: the holder's id in capitals",
            "full: unlock by another frees nothing",
            "full: a freed slot goes to another",
        ],
    ),
    (Defect::TakesMissingHeader, &["header TRUE", "header false", "header missing"]),
    (Defect::TakesGet, &["GET with a body", "PUT"]),
    (Defect::RedirectsSlashes, &["as fleetlockctl asks, //v1/"]),
    (
        Defect::RefusesIdleUnlock,
        &[
            "full: unlock by another frees nothing",
            "many at once for the last slot",
            "unlock again",
            "unlock, another holds",
            "unlock, nothing held",
        ],
    ),
    (Defect::NotRecursive, &["full: a holder locks again", "lock again, same id", "unlock, another holds"]),
    (Defect::IgnoresCase, &["full: the holder's id in capitals"]),
    (Defect::TakesTrailing, &["text after the body"]),
    (Defect::KeepsSlots, &["full: a freed slot goes to another"]),
    (
        Defect::OneTooMany,
        &[
            "number of slots",
            "full",
            "full: a holder locks again",
            "full: the holder's id in capitals",
            "full: unlock by another frees nothing",
            "full: a freed slot goes to another",
            "many at once for the last slot",
        ],
    ),
    (
        Defect::GrantsLate,
        &[
            "as Zincati asks",
            "as curl -d asks",
            "as fleetctl asks",
            "as fleetlockctl asks, //v1/",
            "extra fields",
            "lock",
        ],
    ),
];

#[tokio::test]
async fn each_defect_fails_its_own_cases() {
    let right = FaultyLockServer::start(2, Defect::None).await;
    let report = examine(&options(&right.url(), Level::Protocol, 2)).await;
    assert!(report.is_good(), "{report:#?}");
    assert_eq!(right.holders(), [""; 0]);
    for (defect, expected) in DEFECTS {
        let server = FaultyLockServer::start(2, *defect).await;
        let report = examine(&options(&server.url(), Level::Protocol, 2)).await;
        let expected: BTreeSet<_> = expected.iter().copied().collect();
        assert_eq!(cases(&report, Verdict::Fail), expected, "{defect:?}");
        eventually("the server to be done", async || (server.working() == 0).then_some(())).await;
        if *defect != Defect::KeepsSlots {
            assert_eq!(server.holders(), [""; 0], "{defect:?}: all its slots are released");
        }
    }
}

#[tokio::test]
async fn check_leaves_foreign_slots_held() {
    let server = FaultyLockServer::start(3, Defect::None).await;
    server.occupy("node-1");
    let unknown = Options { slots: None, ..options(&server.url(), Level::Protocol, 0) };
    let report = examine(&unknown).await;
    assert_eq!(cases(&report, Verdict::Fail), BTreeSet::new());
    assert!(cases(&report, Verdict::Pass).contains("full"));
    assert_eq!(server.holders(), ["node-1"]);
    // With more free slots than the check may take, a full group cannot be tested.
    let few = Options { slots_max: 1, ..unknown.clone() };
    let report = examine(&few).await;
    assert!(cases(&report, Verdict::Skip).contains("full") && cases(&report, Verdict::Pass).contains("lock"));
    // Without a free slot hardly anything can be tested, and the report explains it.
    server.occupy("node-2");
    server.occupy("node-3");
    let report = examine(&unknown).await;
    assert!(cases(&report, Verdict::Fail).contains("lock"));
    let full = report.rows.iter().find(|row| row.case == "full").unwrap();
    assert_eq!(full.got, "the group has no free slot to try it with: 409 full: in words: full");
    assert_eq!(server.holders(), ["node-1", "node-2", "node-3"]);
}

async fn command(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(programs::path(programs::ORCHESTRATOR));
    let output =
        command.args(["lock", "conformance"]).args(arguments).kill_on_drop(true).output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn command_prints_row_per_case() {
    let right = FaultyLockServer::start(1, Defect::None).await;
    let (code, printed, stderr) = command(&["--url", &right.url(), "--slots", "1"]).await;
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{printed}");
    let rows: Vec<_> = printed.lines().filter(|line| line.starts_with("PASS  ")).collect();
    let summary = printed.lines().last().unwrap();
    assert!(summary.starts_with(&format!("{} passed, 0 failed, ", rows.len())), "{printed}");
    assert!(rows[0].contains("lock ") && rows[0].ends_with("200 {}"), "{printed}");

    let wrong = FaultyLockServer::start(1, Defect::TakesMissingHeader).await;
    let (code, printed, stderr) = command(&["--url", &wrong.url(), "--output", "json"]).await;
    assert_eq!((code, stderr.as_str()), (Some(1), "error: 3 cases failed"), "{printed}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["case"] == "header missing").unwrap();
    let expected = json!({
        "verdict": "fail", "case": "header missing",
        "expected": "pre-reboot: 4xx, kind and value", "got": "200 {}",
    });
    assert_eq!((row, &report["failed"]), (&expected, &json!(3)));

    let unreachable = format!("http://{}", harness::orchestrator::own_address());
    let (code, printed, stderr) = command(&["--url", &unreachable]).await;
    assert_eq!((code, printed.as_str()), (Some(1), ""));
    assert!(stderr.starts_with(&format!("error: cannot reach {unreachable}/: ")), "{stderr}");
    assert_eq!(command(&["--url", "nats://x"]).await.0, Some(2));
}

/// A signal during the check: all slots are still released.
#[tokio::test]
async fn signal_ends_check_and_releases_slots() {
    let server = FaultyLockServer::start(200, Defect::None).await;
    let mut command = Command::new(programs::path(programs::ORCHESTRATOR));
    command.args(["lock", "conformance", "--slots", "200", "--url", &server.url()]);
    command.kill_on_drop(true).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    eventually("many slots to be taken", async || (server.holders().len() > 20).then_some(())).await;
    kill(Pid::from_raw(child.id().unwrap().try_into().unwrap()), Signal::SIGTERM).unwrap();
    let output = child.wait_with_output().await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), stderr.trim_end()),
        (Some(1), "error: interrupted before all cases were tried")
    );
    assert_eq!(server.holders(), [""; 0]);
}

/// The check waits for a pending lock before it unlocks, whatever signal ends it.
#[tokio::test]
async fn signal_waits_for_pending_lock() {
    let server = FaultyLockServer::start(3, Defect::Slow).await;
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let mut command = programs::with_default_signals(programs::path(programs::ORCHESTRATOR));
        command.args(["lock", "conformance", "--url", &server.url()]);
        command.kill_on_drop(true).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        eventually("a lock to be pending", async || (server.working() == 1).then_some(())).await;
        kill(Pid::from_raw(child.id().unwrap().try_into().unwrap()), signal).unwrap();
        let output = child.wait_with_output().await.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = "error: interrupted before all cases were tried";
        assert_eq!((output.status.code(), stderr.trim_end()), (Some(1), expected), "{signal}");
        eventually("the server to be done", async || (server.working() == 0).then_some(())).await;
        assert_eq!(server.holders(), [""; 0], "{signal}");
    }
}

/// A server that is sometimes busy gets the request again when it says so, and passes.
#[tokio::test]
async fn retry_after_is_respected() {
    let server = FaultyLockServer::start(2, Defect::Busy).await;
    let report = examine(&options(&server.url(), Level::Protocol, 2)).await;
    assert!(report.is_good(), "{report:#?}");
    assert!(server.busy_refusals() > 3, "{}", server.busy_refusals());
    assert_eq!(server.holders(), [""; 0]);
}

/// FleetLock paths answer with FleetLock errors, also to other methods than POST; other paths with errors of the API.
#[tokio::test]
async fn fleet_lock_and_api_errors_differ() {
    let site = Site::start().await;
    let rest = site.rest();
    let (status, body) = rest.call(Method::GET, "/v1/pre-reboot", "").await;
    assert_eq!((status, &body["kind"]), (405, &json!("method_not_allowed")));
    let (status, body) = rest.call(Method::POST, "/v1/pre-reboots", "").await;
    assert_eq!((status, body["errors"].is_array()), (404, true));
}
