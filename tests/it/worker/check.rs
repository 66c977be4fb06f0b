//! The test kit for workers: it passes workers that keep the rules, and finds every broken rule.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use harness::faulty_worker::{Fault, FaultyWorker};
use harness::nats_server::NatsServer;
use harness::secured_nats::{SecuredNats, Settings};
use harness::worker::{WorkerHost, worker_binary, worker_example};
use os_upgrade_protocol::Reply;
use os_upgrade_worker_sdk::testing::{self, Access, Check, CheckError, Report, Rule, Verdict};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::supervised::{PYTHON_WORKER, Supervised, VERSIONS, python};

/// How many faulty workers are checked concurrently: a check mostly waits, but of too many at once a restart comes too late to cut an upgrade.
const AT_ONCE: usize = 16;
/// Timeout of the checks of faulty workers. A missing action takes this long to be found.
const SHORT: Duration = Duration::from_secs(5);

/// Checks a worker that can be restarted and rebooted.
async fn check_worker(fault: Option<Fault>, wait: Duration) -> Report {
    let server = testing::NatsServer::start().await.unwrap();
    let worker = FaultyWorker::start(server.url(), "h01", fault);
    check_of(&worker, wait).run_at(server.url()).await.unwrap()
}

fn check_of(worker: &Arc<FaultyWorker>, wait: Duration) -> Check {
    let worker = Arc::clone(worker);
    let restarted = Arc::clone(&worker);
    let rebooted = Arc::clone(&worker);
    Check::new("h01")
        .unwrap()
        .patience(wait)
        .work_wait(wait)
        .on_restart(move || {
            let worker = Arc::clone(&restarted);
            async move {
                worker.restart().await;
                Ok(())
            }
        })
        .on_reboot(move || {
            let worker = Arc::clone(&rebooted);
            async move {
                worker.reboot().await;
                Ok(())
            }
        })
}

#[tokio::test]
async fn compliant_worker_passes() {
    let report = check_worker(None, Duration::from_mins(1)).await;
    assert!(report.all_hold(), "{report}");
    assert_eq!(report.rows.len(), Rule::ALL.len());
}

#[tokio::test]
async fn every_broken_rule_is_found() {
    let others =
        [Fault::UnconfirmedReplies, Fault::SkipsCommands, Fault::AnnouncesAnother, Fault::RepeatsVersions];
    let faults = Rule::ALL.into_iter().map(Fault::Of).chain(others);
    let checks = futures::stream::iter(faults).map(|fault| async move {
        let report = check_worker(Some(fault), SHORT).await;
        let verdict = report.row(fault.breaks()).map(|row| row.verdict);
        (verdict != Some(Verdict::Broken)).then(|| format!("{fault:?}\n{report}"))
    });
    let missed: Vec<_> = checks.buffer_unordered(AT_ONCE).filter_map(async |missed| missed).collect().await;
    assert!(missed.is_empty(), "not found:\n{}", missed.join("\n"));
}

#[tokio::test]
async fn check_needs_worker_and_no_orchestrator() {
    let server = NatsServer::with_streams().await;
    let check = || Check::new("h01").unwrap().patience(Duration::from_millis(200));
    let report = check().run_at(&server.url()).await.unwrap();
    assert_eq!(report.count(Verdict::Holds), 0, "{report}");
    assert_eq!(report.row(Rule::DurableConsumer).unwrap().verdict, Verdict::Broken);
    assert_eq!(report.row(Rule::Prepare).unwrap().verdict, Verdict::Skipped);

    let jetstream = async_nats::jetstream::new(server.client().await);
    let journal = async_nats::jetstream::stream::Config {
        name: "os-upgrade:journal".to_owned(),
        ..async_nats::jetstream::stream::Config::default()
    };
    jetstream.create_stream(journal).await.unwrap();
    assert!(matches!(check().run_at(&server.url()).await, Err(CheckError::InUse)));
    let unreachable = check().run_at("nats://127.0.0.1:1").await;
    assert!(matches!(unreachable, Err(CheckError::Nats(_))), "{unreachable:?}");
}

#[tokio::test]
async fn check_says_what_it_waits_for() {
    let server = NatsServer::with_streams().await;
    let mut check = check(&server.url(), &["--patience", "1m"]);
    let started = check.stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut said = BufReader::new(started.stderr.unwrap()).lines();
    while let Some(line) = said.next_line().await.unwrap() {
        if line.ends_with("waiting for a worker of h01 and its consumer, for at most 60 s") {
            return;
        }
    }
    panic!("the check has ended without a word");
}

/// The error that keeps the check from creating a consumer is reported with the missing consumer.
#[tokio::test]
async fn failed_consumer_creation_is_reported() {
    let server = NatsServer::with_streams().await;
    let client = server.client().await;
    let requests = async {
        loop {
            let answer = client.request("os-upgrade.consumer.h01", r#"{"from":"the first"}"#.into()).await;
            if answer.is_ok() {
                std::future::pending::<()>().await;
            }
        }
    };
    let check = Check::new("h01").unwrap().patience(Duration::from_secs(1));
    let url = server.url();
    let report = tokio::select! {
        report = check.run_at(&url) => report.unwrap(),
        () = requests => unreachable!("it never ends"),
    };
    let row = report.row(Rule::DurableConsumer).unwrap();
    assert_eq!(row.verdict, Verdict::Broken);
    assert!(row.seen.starts_with("no consumer within 1 s; the requested one was not created: "), "{report}");
}

/// Runs the check command with all rules, which must hold, those about configurations too. `access` is the check's own access to NATS.
async fn assert_passes(worker: &Supervised, url: &str, access: &[&str]) {
    let [restart, reboot] = worker.commands();
    let more = ["--restart-command", &restart, "--reboot-command", &reboot, "--output", "json"];
    let (code, text) = check_command(url, &[&more, access].concat()).await;
    assert_eq!(code, 0, "{text}\n{}", worker.log());
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["holds"], Rule::ALL.len());
    assert!(!text.contains("it does not announce configures"), "{text}");
}

/// The command `os-upgrade-worker check` with these options.
fn check(url: &str, more: &[&str]) -> Command {
    let mut command = Command::new(worker_binary());
    command.args(["check", "--nats", url, "--host", "h01"]).args(more).env_remove("RUST_LOG");
    command
}

async fn check_command(url: &str, more: &[&str]) -> (i32, String) {
    let output = check(url, more).output().await.unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

const EXEC: &str =
    "exec --host h01 --application test --dir scripts --state-dir state --boot-id-file boot-id";
/// Takes longer than half the redelivery time of a command, once.
const SLOW: (&str, &str) = ("prepare", "[ -e ../slow ] || { touch ../slow; sleep 16; }");
const SLOW_IN_PYTHON: (&str, &str) = ("prepare", "[ -e ../slow ] || { touch ../slow; sleep 6; }");
const UPGRADE: (&str, &str) = ("upgrade", "sleep 0.3; exit 194");
const REBOOT: (&str, &str) = ("reboot", "true");
const CONFIGURE: (&str, &str) = ("configure", "true");
const REVOKE: (&str, &str) = ("revoke", "true");

/// All scripts, with this `prepare`.
const fn with_scripts(prepare: (&'static str, &'static str)) -> [(&'static str, &'static str); 6] {
    [prepare, UPGRADE, REBOOT, VERSIONS, CONFIGURE, REVOKE]
}

#[tokio::test]
async fn sdk_worker_passes() {
    let server = NatsServer::start().await;
    let worker = format!("{} {EXEC} --nats {}", worker_binary().display(), server.url());
    let worker = Supervised::start(&worker, &with_scripts(SLOW));
    assert_passes(&worker, &server.url(), &[]).await;

    // Without the restart and reboot commands some rules are skipped.
    let (code, text) = check_command(&server.url(), &[]).await;
    assert_eq!(code, 1, "{text}");
    assert!(text.lines().last().unwrap().contains(" 0 broken, "), "{text}");
    assert!(text.contains("SKIPPED  rebooted") && !text.contains('\u{1b}'), "{text}");
    let (code, text) = check_command(&server.url(), &["--allow-skipped"]).await;
    assert_eq!(code, 0, "{text}");
}

#[tokio::test]
async fn full_example_passes() {
    let server = NatsServer::start().await;
    let example = worker_example("full");
    let worker = format!("OS_UPGRADE_NATS_URL={} {} h01 .", server.url(), example.display());
    let worker = Supervised::start(&worker, &[]);
    let [restart, reboot] = worker.commands();
    let more = ["--restart-command", &restart, "--reboot-command", &reboot];
    let (_, text) = check_command(&server.url(), &more).await;
    let end = "37 hold, 0 broken, 1 skipped";
    assert!(text.contains("SKIPPED  in-progress") && text.trim_end().ends_with(end), "{text}");
}

/// It has no reboots, no versions and no long handlers; all other rules hold.
#[tokio::test]
async fn smallest_example_passes() {
    let server = NatsServer::start().await;
    let example = worker_example("smallest");
    let worker = format!("OS_UPGRADE_NATS_URL={} {} h01", server.url(), example.display());
    let worker = Supervised::start(&worker, &[]);
    let [restart, _] = worker.commands();
    let (code, text) =
        check_command(&server.url(), &["--restart-command", &restart, "--allow-skipped"]).await;
    assert_eq!(code, 0, "{text}");
    let skipped: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("SKIPPED  ")).collect();
    let names: Vec<_> = skipped.iter().filter_map(|line| line.split(' ').next()).collect();
    let reboots = ["reboot-pending", "restart-is-no-reboot", "rebooted", "reboot-twice"];
    assert_eq!(names, [&reboots[..], &["in-progress", "versions"]].concat(), "{text}");
}

#[tokio::test]
async fn python_worker_passes() {
    assert!(std::fs::read_to_string(PYTHON_WORKER).unwrap().lines().count() <= 85);
    let server = NatsServer::start().await;
    let url = server.url();
    let worker = Supervised::start(&python(&url), &with_scripts(SLOW_IN_PYTHON));
    assert_passes(&worker, &url, &[]).await;
    // A repaired worker is checked again.
    let again = check(&url, &[]).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut rows = BufReader::new(again.stdout.unwrap()).lines();
    while let Some(row) = rows.next_line().await.unwrap() {
        assert!(row.starts_with("HOLDS"), "{row}");
        if row.contains("upgrade-unprepared") {
            return;
        }
    }
    panic!("the check has ended too early");
}

/// A reboot script that ends the worker but not the boot would otherwise run again at each redelivery.
#[tokio::test]
async fn python_worker_bounds_reboots_ignores_unknown() {
    let server = NatsServer::with_streams().await;
    let host = WorkerHost::new(&server, "h01").await;
    let reboot = ("reboot", "echo >>../reboots; kill -9 $PPID");
    let worker = Supervised::start(&python(&server.url()), &[("prepare", "true"), UPGRADE, reboot, VERSIONS]);
    let unknown = [r#"{"host":"h01"}"#, r#"{"action":"dance","host":"h01"}"#].map(str::to_owned);
    let known =
        [("r1", host.prepare("")), ("r2", host.upgrade()), ("r1", host.upgrade()), ("r1", host.reboot())];
    for (run, command) in unknown.map(|command| ("r1", command)).into_iter().chain(known) {
        host.await_acked(host.send(run, &command).await).await;
    }
    let replies = host.replies().await.into_iter().map(|reply| Reply::parse(&reply.payload).unwrap());
    let results: Vec<_> = replies.map(|reply| reply.result.as_str().to_owned()).collect();
    assert_eq!(results, ["done", "reboot-required", "the host does not reboot"]);
    assert_eq!(std::fs::read(worker.directory.path().join("reboots")).unwrap().len(), 3);
}

/// A NATS with accounts, the environment of the worker of `h01`, and the check's command-line options.
async fn secured(settings: Settings) -> (SecuredNats, String, [String; 4]) {
    let nats = SecuredNats::start_with(1, settings).await;
    let [own, ca] = [nats.admit("h01").await, nats.issued().ca()].map(|path| path.display().to_string());
    let environment = format!("OS_UPGRADE_NATS_CREDENTIALS='{own}' OS_UPGRADE_NATS_CA='{ca}'");
    let orchestrator = nats.issued().orchestrator_credentials().display().to_string();
    let access = ["--credentials".to_owned(), orchestrator, "--tls-ca".to_owned(), ca];
    (nats, environment, access)
}

/// A worker that cannot read back its versions may publish them once after each start, but not at other times, even if
/// that is less often than it starts.
#[tokio::test]
async fn late_versions_are_found() {
    let nats = SecuredNats::start(1).await;
    let access = |credentials| Access {
        credentials: Some(credentials),
        ca: Some(nats.issued().ca()),
        ..Access::default()
    };
    let own = access(nats.admit("h01").await);
    let everything = access(nats.issued().orchestrator_credentials());
    let worker = FaultyWorker::start_with(&nats.urls(), own, "h01", Some(Fault::RepeatsVersions));
    let client = testing::connect(&nats.urls(), everything).await.unwrap();
    let report = check_of(&worker, SHORT).run(client, |_| ()).await.unwrap();
    assert_eq!(report.row(Rule::Versions).unwrap().verdict, Verdict::Broken, "{report}");
    assert_eq!(report.count(Verdict::Holds), Rule::ALL.len() - 1, "{report}");
}

#[tokio::test]
async fn sdk_worker_passes_with_credentials() {
    let (nats, environment, access) = secured(Settings::default()).await;
    let worker = format!("{environment} {} {EXEC} --nats {}", worker_binary().display(), nats.urls());
    let worker = Supervised::start(&worker, &with_scripts(SLOW));
    assert_passes(&worker, &nats.urls(), &access.each_ref().map(String::as_str)).await;
    // The check works neither without credentials nor with those of a host.
    let (code, text) = check_command(&nats.urls(), &["--tls-ca", &access[3]]).await;
    assert_eq!((code, text.as_str()), (1, ""));
    let of_host = nats.issued().host_credentials("h01").display().to_string();
    let (code, text) =
        check_command(&nats.urls(), &["--tls-ca", &access[3], "--credentials", &of_host]).await;
    assert_eq!((code, text.as_str()), (1, ""));
}

#[tokio::test]
async fn python_worker_passes_with_credentials() {
    let long = Settings { long_acks: true, domain: Some("hub") };
    let (nats, environment, access) = secured(long).await;
    let worker = format!("{environment} {}", python(&nats.urls()));
    let worker = Supervised::start(&worker, &with_scripts(SLOW_IN_PYTHON));
    assert_passes(&worker, &nats.urls(), &access.each_ref().map(String::as_str)).await;
}
