//! The table of FleetLock cases: our server does all of it, over HTTP; and whoever makes a mistake fails the case that
//! is about it.

use std::collections::BTreeSet;
use std::time::Duration;

use harness::programs;
use harness::site::Site;
use harness::wait::{Stopwatch, eventually};
use harness::wrong_lock_server::{Mistake, WrongLockServer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use os_upgrade_conformance::{self as conformance, Level, Options, Report, Verdict};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// Slots of the group in which our server is examined.
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
async fn our_server_does_every_case_as_it_is_written_down() {
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
    // Nothing is left of it: neither holders nor waiters.
    let (_, state) = site.rest().get("/v1/state/fleet-lock").await;
    let groups = state["groups"].as_array().unwrap();
    assert!(
        groups.iter().all(|group| group["holders"] == json!([]) && group["waiters"] == json!([])),
        "{state}"
    );
}

#[tokio::test]
async fn without_the_bus_nothing_is_granted_and_the_answer_comes_within_three_seconds() {
    let mut site = Site::start().await;
    let url = format!("http://{}", site.orchestrator.address());
    let http = harness::http::builder([]).build().unwrap();
    let ask = async |path: &str| {
        let body = r#"{"client_params":{"id":"node-7","group":"default"}}"#;
        let request = http.post(format!("{url}{path}")).header("fleet-lock-protocol", "true").body(body);
        let asked = Stopwatch::start();
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        (status, body["kind"].as_str().map(str::to_owned), asked)
    };
    assert_eq!(ask("/v1/pre-reboot").await.0, 200);
    assert_eq!(ask("/v1/steady-state").await.0, 200);
    // It hangs, and then it is gone: at once, before anybody has noticed, and later.
    site.nats.signal(Signal::SIGSTOP);
    for hangs in [true, false] {
        for path in
            ["/v1/pre-reboot", "/v1/steady-state", "/fleetlock/v1/pre-reboot", "/fleetlock/v1/steady-state"]
        {
            let (status, kind, took) = ask(path).await;
            // Whether it is asked before the silence is noticed, or after, is a matter of chance.
            let kinds = [Some("backend_unavailable"), Some("outcome_unknown")];
            assert!(status == 503 && kinds.contains(&kind.as_deref()), "{path}: {status} {kind:?}");
            took.assert_below(Duration::from_secs(3));
        }
        if hangs {
            site.nats.kill();
        }
    }
    site.nats.start_again().await;
    eventually("the server to grant again", async || (ask("/v1/pre-reboot").await.0 == 200).then_some(()))
        .await;
}

/// Where a grant is all that is wrong with a server, every case that is granted something fails.
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

/// Every mistake, and the cases that fail because of it, and no others.
const MISTAKES: &[(Mistake, &[&str])] = &[
    (
        Mistake::GrantsEverybody,
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
    (Mistake::FreesAnothersSlot, &["full: unlock by another frees nothing"]),
    (Mistake::LooksThenTakes, &["many at once for the last slot"]),
    (Mistake::FailsWhenBusy, &["many at once for the last slot"]),
    (Mistake::Accepts, EVERY_GRANT),
    (
        Mistake::SendsToLogin,
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
    (Mistake::EmptyBody, EVERY_GRANT),
    (
        Mistake::PageWhenFull,
        &[
            "full",
            "full: the holder's id in capitals",
            "full: unlock by another frees nothing",
            "full: a freed slot goes to another",
        ],
    ),
    (Mistake::TakesMissingHeader, &["header TRUE", "header false", "header missing"]),
    (Mistake::TakesGet, &["GET with a body", "PUT"]),
    (Mistake::RedirectsSlashes, &["as fleetlockctl asks, //v1/"]),
    (
        Mistake::RefusesIdleUnlock,
        &[
            "full: unlock by another frees nothing",
            "many at once for the last slot",
            "unlock again",
            "unlock, another holds",
            "unlock, nothing held",
        ],
    ),
    (Mistake::NotRecursive, &["full: a holder locks again", "lock again, same id", "unlock, another holds"]),
    (Mistake::IgnoresCase, &["full: the holder's id in capitals"]),
    (Mistake::TakesTrailing, &["text after the body"]),
    (Mistake::KeepsSlots, &["full: a freed slot goes to another"]),
    (
        Mistake::OneTooMany,
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
        Mistake::GrantsLate,
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
async fn each_mistake_fails_the_cases_that_are_about_it() {
    let right = WrongLockServer::start(2, Mistake::Nothing).await;
    let report = examine(&options(&right.url(), Level::Protocol, 2)).await;
    assert!(report.is_good(), "{report:#?}");
    assert_eq!(right.holders(), [""; 0]);
    for (mistake, expected) in MISTAKES {
        let server = WrongLockServer::start(2, *mistake).await;
        let report = examine(&options(&server.url(), Level::Protocol, 2)).await;
        let expected: BTreeSet<_> = expected.iter().copied().collect();
        assert_eq!(cases(&report, Verdict::Fail), expected, "{mistake:?}");
        eventually("the server to be done", async || (server.working() == 0).then_some(())).await;
        if *mistake != Mistake::KeepsSlots {
            assert_eq!(server.holders(), [""; 0], "{mistake:?}: what it took is given back");
        }
    }
}

#[tokio::test]
async fn what_others_hold_stays_theirs() {
    let server = WrongLockServer::start(3, Mistake::Nothing).await;
    server.occupy("node-1");
    let unknown = Options { slots: None, ..options(&server.url(), Level::Protocol, 0) };
    let report = examine(&unknown).await;
    assert_eq!(cases(&report, Verdict::Fail), BTreeSet::new());
    assert!(cases(&report, Verdict::Pass).contains("full"));
    assert_eq!(server.holders(), ["node-1"]);
    // With more free slots than may be taken, a full group cannot be tried.
    let few = Options { slots_max: 1, ..unknown.clone() };
    let report = examine(&few).await;
    assert!(cases(&report, Verdict::Skip).contains("full") && cases(&report, Verdict::Pass).contains("lock"));
    // Without a free one, hardly anything; and it says why.
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
async fn the_command_prints_a_row_for_each_case_and_says_how_it_went() {
    let right = WrongLockServer::start(1, Mistake::Nothing).await;
    let (code, printed, said) = command(&["--url", &right.url(), "--slots", "1"]).await;
    assert_eq!((code, said.as_str()), (Some(0), ""), "{printed}");
    let rows: Vec<_> = printed.lines().filter(|line| line.starts_with("PASS  ")).collect();
    let summary = printed.lines().last().unwrap();
    assert!(summary.starts_with(&format!("{} passed, 0 failed, ", rows.len())), "{printed}");
    assert!(rows[0].contains("lock ") && rows[0].ends_with("200 {}"), "{printed}");

    let wrong = WrongLockServer::start(1, Mistake::TakesMissingHeader).await;
    let (code, printed, said) = command(&["--url", &wrong.url(), "--output", "json"]).await;
    assert_eq!((code, said.as_str()), (Some(1), "error: 3 cases failed"), "{printed}");
    let report: Value = serde_json::from_str(&printed).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["case"] == "header missing").unwrap();
    let expected = json!({
        "verdict": "fail", "case": "header missing",
        "expected": "pre-reboot: 4xx, kind and value", "got": "200 {}",
    });
    assert_eq!((row, &report["failed"]), (&expected, &json!(3)));

    let nobody = format!("http://{}", harness::orchestrator::own_address());
    let (code, printed, said) = command(&["--url", &nobody]).await;
    assert_eq!((code, printed.as_str()), (Some(1), ""));
    assert!(said.starts_with(&format!("error: cannot reach {nobody}/: ")), "{said}");
    assert_eq!(command(&["--url", "nats://x"]).await.0, Some(2));
}

/// A signal in the middle of it: everything is given back all the same.
#[tokio::test]
async fn a_signal_ends_it_and_nothing_stays_held() {
    let server = WrongLockServer::start(200, Mistake::Nothing).await;
    let mut command = Command::new(programs::path(programs::ORCHESTRATOR));
    command.args(["lock", "conformance", "--slots", "200", "--url", &server.url()]);
    command.kill_on_drop(true).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    eventually("many slots to be taken", async || (server.holders().len() > 20).then_some(())).await;
    kill(Pid::from_raw(child.id().unwrap().try_into().unwrap()), Signal::SIGTERM).unwrap();
    let output = child.wait_with_output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), said.trim_end()),
        (Some(1), "error: interrupted before all cases were tried")
    );
    assert_eq!(server.holders(), [""; 0]);
}

/// A lock that is under way is not left behind by its unlock, whatever ends the examination.
#[tokio::test]
async fn a_lock_under_way_is_waited_for() {
    let server = WrongLockServer::start(3, Mistake::Slow).await;
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let mut command = programs::with_default_signals(programs::path(programs::ORCHESTRATOR));
        command.args(["lock", "conformance", "--url", &server.url()]);
        command.kill_on_drop(true).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        let child = command.spawn().unwrap();
        eventually("a lock to be under way", async || (server.working() == 1).then_some(())).await;
        kill(Pid::from_raw(child.id().unwrap().try_into().unwrap()), signal).unwrap();
        let output = child.wait_with_output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = "error: interrupted before all cases were tried";
        assert_eq!((output.status.code(), said.trim_end()), (Some(1), expected), "{signal}");
        eventually("the server to be done", async || (server.working() == 0).then_some(())).await;
        assert_eq!(server.holders(), [""; 0], "{signal}");
    }
}

/// A server that has no time now and then is asked again when it says, and passes.
#[tokio::test]
async fn a_busy_server_is_left_alone_as_long_as_it_wants() {
    let server = WrongLockServer::start(2, Mistake::Busy).await;
    let report = examine(&options(&server.url(), Level::Protocol, 2)).await;
    assert!(report.is_good(), "{report:#?}");
    assert!(server.too_early() > 3, "{}", server.too_early());
    assert_eq!(server.holders(), [""; 0]);
}

/// As the table has it, in our server's own state: no method but POST.
#[tokio::test]
async fn the_kit_and_the_rest_of_the_api_do_not_meet() {
    let site = Site::start().await;
    let rest = site.rest();
    let (status, body) = rest.call(Method::GET, "/v1/pre-reboot", "").await;
    assert_eq!((status, &body["kind"]), (405, &json!("method_not_allowed")));
    let (status, body) = rest.call(Method::POST, "/v1/pre-reboots", "").await;
    assert_eq!((status, body["errors"].is_array()), (404, true));
}
