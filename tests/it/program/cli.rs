//! Operators at work with the command line alone.

use std::process::Stdio;

use harness::host::APPLICATION;
use harness::orchestrator::AUTO_APPROVE;
use harness::programs;
use harness::site::Site;
use harness::wait::eventually;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

const START: [&str; 3] = ["run", "start", "--watch"];

#[tokio::test]
async fn watched_runs_exit_with_their_result() {
    let site = Site::start().await;
    let program = &site.orchestrator;
    let hosts = site.hosts(2).await;
    let (code, printed, stderr) = program.ask(&START, "").await;
    assert_eq!(code, Some(0), "{printed}\n{stderr}");
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("started: "), "{printed}");
    assert!(lines.contains(&"h01: upgraded") && lines.contains(&"h02: upgraded"), "{printed}");
    assert!(printed.ends_with(": 2 upgraded"), "{printed}");
    let id = lines[0].strip_prefix("started: ").unwrap();

    let (code, printed, _) = program.ask(&["run", "show", &id[..13], "-o", "json"], "").await;
    let shown: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (code, shown["id"].as_str(), shown["result"].as_str()),
        (Some(0), Some(id), Some("completed"))
    );
    assert_eq!(program.ask(&["run", "list", "-o", "name"], "").await.1, id);
    let (code, _, said) = program.ask(&["run", "watch"], "").await;
    assert_eq!(code, Some(0), "a run that has ended is not waited for");
    assert!(said.starts_with(&format!("run {id} has been over since ")), "{said}");
    assert_eq!(program.ask(&["run", "watch", "--quiet"], "").await.2, "");
    for format in ["json", "yaml"] {
        let shown = program.done(&["run", "show", "-o", format]).await;
        assert_eq!(program.done(&["run", "watch", "-o", format]).await, shown, "only the run is printed");
    }
    let (_, status, _) = program.ask(&["status", "--utc"], "").await;
    assert!(status.contains("completed after") && status.contains(": 2 upgraded"), "{status}");
    assert!(!status.contains("NEEDS A PERSON") && !status.contains("WAITING"), "{status}");

    hosts[0].hold("prepare");
    let cancelled = async {
        let started = async || {
            let (_, status, _) = program.ask(&["status"], "").await;
            (status.starts_with("run ") && status.contains("AT WORK\n  h01: preparing")).then_some(())
        };
        eventually("the run is shown", started).await;
        let rest = "no further host is started, and hosts that hold a slot finish";
        assert_eq!(
            program.done(&["run", "cancel", "--reason", "wrong kernel"]).await,
            format!("cancelled: {rest}")
        );
        hosts[0].release("prepare");
    };
    let ((code, printed, stderr), ()) = tokio::join!(program.ask(&START, ""), cancelled);
    assert_eq!(code, Some(4), "{printed}\n{stderr}");

    hosts[0].fail("upgrade", "no space left");
    let (code, printed, stderr) = program.ask(&START, "").await;
    assert_eq!(code, Some(1), "{printed}\n{stderr}");
    assert!(
        printed.contains("no space left") && stderr.contains("os-upgrade run show"),
        "{printed}\n{stderr}"
    );
    let (_, status, _) = program.ask(&["status"], "").await;
    assert!(status.contains("h01 holds a slot of group default"), "{status}");

    hosts[0].repair();
    hosts[0].hold("upgrade");
    let timed_out = [&START[..], &["--timeout", "3s", "-o", "json"]].concat();
    let (code, printed, stderr) = program.ask(&timed_out, "").await;
    assert_eq!(code, Some(3), "{printed}\n{stderr}");
    let run: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(run["result"], "timed-out", "{printed}");
    hosts[0].release("upgrade");
}

/// Ctrl-C ends what watches a run, and says that the run goes on.
#[tokio::test]
async fn interrupted_watch_leaves_the_run() {
    let site = Site::start().await;
    let hosts = site.hosts(1).await;
    hosts[0].hold("upgrade");
    let deny = json!({
        "worker-applications": [{ "name": APPLICATION }], "deny-windows": [{ "cron": "0 0 0 * * *", "duration": "24h" }],
    });
    assert_eq!(site.rest().call(Method::PUT, "/v1/config/os-upgrade", &deny.to_string()).await.0, 204);
    let url = format!("http://{}", site.orchestrator.address());
    let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
    command
        .args(START)
        .args(["--url", &url])
        .kill_on_drop(true)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut watching = command.spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    while lines.next_line().await.unwrap().expect("it goes on") != "h01: upgrading" {}
    kill(Pid::from_raw(watching.id().unwrap().cast_signed()), Signal::SIGINT).unwrap();
    let ended = watching.wait_with_output().await.unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    let id = site.rest().newest_run().await;
    let expected = format!("the run goes on: `os-upgrade run watch {id}` shows it again");
    assert!(said.contains(&expected), "{said}");
    assert!(said.contains("a deny window is in force until"), "{said}");
    assert_eq!(site.rest().state().await["current-upgrade-info"]["id"], json!(id));

    // Quiet is about what led to the result.
    let program = &site.orchestrator;
    let watched = program.ask(&["run", "watch", "--quiet"], "");
    let ((code, printed, said), ()) = tokio::join!(watched, async { hosts[0].release("upgrade") });
    assert_eq!((code, printed.lines().count(), said.as_str()), (Some(0), 1, ""), "{printed}");
    assert!(printed.starts_with("completed after") && printed.ends_with(": 1 upgraded"), "{printed}");
}

#[tokio::test]
async fn site_without_a_leader_is_shown_as_last_known() {
    let mut site = Site::start().await;
    let _hosts = site.hosts(1).await;
    assert_eq!(site.orchestrator.ask(&["hosts", "list"], "").await.2, "");
    site.nats.kill();
    let program = &site.orchestrator;
    let unled = async || (program.cluster_status().await?["leader"].is_null()).then_some(());
    eventually("nobody to lead", unled).await;
    let trouble = "no instance leads (NATS is unreachable): nothing goes on; last known:";
    for words in [&["hosts", "list"][..], &["hosts", "show", "h01"]] {
        let (code, printed, said) = program.ask(words, "").await;
        assert_eq!((code, said.as_str()), (Some(0), trouble), "{words:?}");
        assert!(printed.contains("h01"), "{printed}");
    }
    let (code, printed, _) = program.ask(&["doctor"], "").await;
    assert_eq!(code, Some(1), "{printed}");
    for line in
        ["problem  cluster: no instance leads", "ok       site: last known: ", "ok       slots: last known: "]
    {
        assert!(printed.contains(line), "{printed}");
    }
}

#[tokio::test]
async fn contexts_name_the_instance() {
    let mut site = Site::start().await;
    let directory = tempfile::tempdir().unwrap();
    site.orchestrator.set_environment("XDG_CONFIG_HOME", directory.path().to_str().unwrap());
    // A setting of the server has `doctor` check this machine.
    site.orchestrator.remove_environment(AUTO_APPROVE);
    let program = &site.orchestrator;
    let address = format!("http://{}", program.address());
    let run = async |arguments: &[&str]| program.run(arguments, "").await;
    let (code, _, stderr) = run(&["context", "add", "here", "--url", &address]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(run(&["hosts", "list", "-o", "json"]).await, (Some(0), "[]".to_owned(), String::new()));
    assert_eq!(run(&["hosts", "list", "--context", "there"]).await.0, Some(2));
    // A filter that matches nothing is no error; a name that nothing has is one.
    for (list, note) in [
        (&["hosts", "list", "--label", "rack=r9"][..], "no host to show"),
        (&["hosts", "list", "--pending"], "no host to show"),
        (&["run", "list", "--host", "h99"], "no run to show\nthere is no host h99"),
        (&["events", "--run", "last"], "there has been no run"),
        (&["events", "--host", "h99"], "there is no such event\nthere is no host h99"),
        (&["lock", "list", "--group", "x", "--url", &address], "there is no such group"),
    ] {
        assert_eq!(run(list).await, (Some(0), String::new(), note.to_owned()), "{list:?}");
        let quiet = [list, &["--quiet"]].concat();
        assert_eq!(run(&quiet).await, (Some(0), String::new(), String::new()), "{list:?}");
    }
    assert_eq!(run(&["hosts", "show", "h99"]).await.0, Some(1));
    let (code, printed, said) = run(&["doctor"]).await;
    assert!(code == Some(0) && printed.starts_with("ok       instance: ready, leader"), "{printed}");
    assert_eq!(said, "checking the instance of context here; --config checks this machine");
    let (code, printed, said) = program.command(&["doctor"]).await;
    assert!(code == Some(0) && printed.starts_with("ok       configuration: site site, as "), "{printed}");
    assert_eq!(said, "checking this machine: --config names os-upgrade.toml");
    let locked = ["lock", "run", "--id", "backup", "--wait", "10s", "--", "sh", "-c", "echo locked"];
    let (code, printed, said) = run(&locked).await;
    assert_eq!((code, printed.as_str()), (Some(0), "locked"), "{said}");
    let elsewhere = [&locked[..2], &["--context", "there"], &locked[2..]].concat();
    assert_eq!(run(&elsewhere).await.0, Some(2));
    assert_eq!(run(&["context", "list", "-o", "name"]).await.1, "here");
}
