//! Hosts that are not approved wait and are sent nothing; operators approve and withdraw them.

use std::fs;

use async_nats::jetstream::context::ConsumerInfoErrorKind;
use harness::host::{APPLICATION, Host};
use harness::nats_server::NatsServer;
use harness::orchestrator::{AUTO_APPROVE, Orchestrator};
use harness::site::Site;
use harness::streams;
use harness::wait::eventually;
use nix::sys::signal::Signal;
use os_upgrade_protocol::{ConsumerRequest, HostName, subject};
use reqwest::Method;
use serde_json::{Value, json};

/// A site where hosts need approval, and two waiting hosts with running workers.
async fn site_with_waiting_hosts() -> (Site, Vec<Host>) {
    let mut site = Site::start().await;
    site.orchestrator.remove_environment(AUTO_APPROVE);
    site.orchestrator.terminate().await;
    site.orchestrator.start_ready().await;
    let mut hosts = vec![site.host("h01").reboots(), site.host("h02")];
    for host in &mut hosts {
        host.start();
        await_enrolment(&site.orchestrator, host.name(), "pending").await;
    }
    (site, hosts)
}

async fn await_enrolment(orchestrator: &Orchestrator, host: &str, word: &str) {
    eventually(&format!("{host} to be {word}"), async || {
        (orchestrator.rest.try_host(host).await?["enrolment"] == word).then_some(())
    })
    .await;
}

/// The output of a command, which must succeed.
async fn command_output(orchestrator: &Orchestrator, arguments: &[&str]) -> String {
    let (code, printed, stderr) = orchestrator.ask(arguments, "").await;
    assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
    printed
}

/// The reason why no run starts.
async fn refused(orchestrator: &Orchestrator) -> Value {
    let (status, answer) = orchestrator.rest.trigger("").await;
    assert_eq!(status, 409, "{answer}");
    answer["errors"][0]["error-info"].clone()
}

#[tokio::test]
async fn only_approved_hosts_are_upgraded() {
    let (mut site, _hosts) = site_with_waiting_hosts().await;
    assert_eq!(refused(&site.orchestrator).await, json!({"kind": "none-approved", "hosts": 2}));
    let listed = command_output(&site.orchestrator, &["hosts", "list", "--pending"]).await;
    assert!(listed.contains("h01") && listed.contains("waits for approval"), "{listed}");
    let (_, printed, _) = site.orchestrator.command(&["doctor"]).await;
    let expected = "enrolment: announced hosts: 0 taking part, 0 withdrawn, 2 waiting for approval";
    assert!(printed.contains(expected), "{printed}");

    assert_eq!(command_output(&site.orchestrator, &["hosts", "approve", "h01"]).await, "approved: h01");
    let mistyped = command_output(&site.orchestrator, &["hosts", "approve", "h10", "--new"]).await;
    assert_eq!(mistyped, "approved: h10");
    let removed = ["hosts", "remove", "h10", "--reason", "mistyped"];
    assert_eq!(command_output(&site.orchestrator, &removed).await, "removed: h10");
    let run = site.rest().start_run().await;
    let run = site.rest().await_end(&run).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), [("h01", "upgraded"), ("h02", "skipped")].into());
    assert_eq!(run.reasons()["h02"], "waits for approval: os-upgrade hosts approve h02");

    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    await_enrolment(&site.orchestrator, "h01", "approved").await;
    await_enrolment(&site.orchestrator, "h02", "pending").await;
    assert_eq!(
        command_output(&site.orchestrator, &["hosts", "approve", "--all", "--yes"]).await,
        "approved: h02"
    );
    let again = command_output(&site.orchestrator, &["hosts", "approve", "--all", "--yes"]).await;
    assert_eq!(again, "no host waits for approval");
    let withdrawn =
        command_output(&site.orchestrator, &["hosts", "withdraw", "h01", "--reason", "sold"]).await;
    assert_eq!(withdrawn, "withdrawn: h01");
    let run = site.rest().start_run().await;
    let run = site.rest().await_end(&run).await;
    assert_eq!(run.statuses(), [("h01", "skipped"), ("h02", "upgraded")].into());
    assert!(run.reasons()["h01"].starts_with("withdrawn by api 127."), "{run:?}");

    // Each host got the commands of the one run in which it took part.
    let sent = ["h01 prepare", "h01 upgrade", "h01 reboot", "h02 prepare", "h02 upgrade"];
    assert_eq!(site.commands().await, sent);
    let history = command_output(&site.orchestrator, &["hosts", "history"]).await;
    let did: Vec<&str> =
        history.lines().skip(1).map(|line| line.split_whitespace().nth(3).unwrap()).collect();
    assert_eq!(did, ["withdrew", "approved", "removed", "approved", "approved"], "{history}");
}

#[tokio::test]
async fn patterns_are_confirmed_before_they_approve() {
    let (site, _hosts) = site_with_waiting_hosts().await;
    let program = &site.orchestrator;
    for host in ["web-1", "web-2", "web-*"] {
        site.announce(APPLICATION, host).await;
    }
    let pending = async || program.ask(&["hosts", "list", "--pending", "-o", "name"], "").await.1;
    eventually("all hosts are seen", async || (pending().await.lines().count() == 5).then_some(())).await;
    for unconfirmed in
        [&["hosts", "approve", "web-?"][..], &["hosts", "approve", "--all"], &["hosts", "approve", "web-*"]]
    {
        assert_eq!(program.ask(unconfirmed, "y\n").await.0, Some(2), "{unconfirmed:?}");
    }
    assert_eq!(program.ask(&["hosts", "approve", "wbe-1"], "").await.0, Some(5), "a mistyped name");
    let (code, approved, _) = program.ask(&["hosts", "approve", "web-*", "--yes", "-o", "name"], "").await;
    assert_eq!((code, approved.as_str()), (Some(0), "web-*"), "the host with just that name, and no other");
    let (code, approved, _) = program.ask(&["hosts", "approve", "web-?", "--yes", "-o", "name"], "").await;
    assert_eq!((code, approved.as_str()), (Some(0), "web-*\nweb-1\nweb-2"));
    assert_eq!(pending().await, "h01\nh02");
    assert_eq!(program.ask(&["hosts", "approve", "new", "--new"], "").await.0, Some(0));
}

#[tokio::test]
async fn waiting_for_approval_is_not_journaled() {
    let (site, _hosts) = site_with_waiting_hosts().await;
    let before = site.journal().await;
    for number in 0..20 {
        site.announce(APPLICATION, &format!("stranger-{number}")).await;
    }
    await_enrolment(&site.orchestrator, "stranger-19", "pending").await;
    assert_eq!(site.rest().state().await["pending-hosts"], 22);
    assert_eq!(refused(&site.orchestrator).await["hosts"], 22);
    assert_eq!(site.journal().await, before);
}

#[tokio::test]
async fn withdrawn_host_finishes_started_upgrade() {
    let (site, hosts) = site_with_waiting_hosts().await;
    command_output(&site.orchestrator, &["hosts", "approve", "--all", "--yes"]).await;
    hosts[0].hold("upgrade");
    let run = site.rest().start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    let withdrawn =
        command_output(&site.orchestrator, &["hosts", "withdraw", "h01", "--reason", "moved"]).await;
    let expected = "withdrawn: h01\nh01 is upgrading in the active run, and finishes there";
    assert_eq!(withdrawn, expected);
    assert_eq!(
        command_output(&site.orchestrator, &["hosts", "withdraw", "h02", "--reason", "sold"]).await,
        "withdrawn: h02"
    );
    hosts[0].release("upgrade");
    let run = site.rest().await_end(&run).await;
    assert_eq!(run.statuses(), [("h01", "upgraded"), ("h02", "cancelled")].into());
    assert!(run.reasons()["h02"].ends_with(": sold"), "{run:?}");
    assert_eq!(site.commands_to("upgrade").await, ["h01"]);
    assert_eq!(site.commands_to("reboot").await, ["h01"]);
    let (_, slots) = site.rest().get("/v1/state/fleet-lock").await;
    assert_eq!(slots["groups"][0]["holders"], json!([]));
    assert_eq!(refused(&site.orchestrator).await["kind"], "none-approved");
}

#[tokio::test]
async fn approvals_survive_failover() {
    let nats = NatsServer::start().await;
    let mut instances = [0, 1].map(|_| Orchestrator::new(&nats.url(), ""));
    for instance in &mut instances {
        instance.remove_environment(AUTO_APPROVE);
        instance.start_ready().await;
    }
    let [leader, follower] = &mut instances;
    leader.await_leading().await;
    follower.await_following(leader).await;
    leader.rest.configure(APPLICATION).await;
    let directory = tempfile::tempdir().unwrap();
    let mut host = Host::new(&nats.url(), &directory.path().join("said"), "h01");
    host.start();
    for instance in [&*leader, &*follower] {
        await_enrolment(instance, "h01", "pending").await;
    }
    assert_eq!(command_output(follower, &["hosts", "approve", "h01"]).await, "approved: h01");
    await_enrolment(leader, "h01", "approved").await;
    leader.kill().await;
    follower.await_leading().await;
    await_enrolment(follower, "h01", "approved").await;
    let run = follower.rest.start_run().await;
    assert_eq!(follower.rest.await_end(&run).await.statuses(), [("h01", "upgraded")].into());
}

#[tokio::test]
async fn window_waits_for_approval() {
    let (site, _hosts) = site_with_waiting_hosts().await;
    let days = "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday";
    let body = json!({
        "worker-applications": [{ "name": APPLICATION }],
        "maintenance-windows": [{ "days-of-week": days, "start-time": "00:00", "duration": "1d" }],
    });
    let (status, answer) = site.rest().call(Method::PUT, "/v1/config/os-upgrade", &body.to_string()).await;
    assert_eq!(status, 204, "{answer}");
    eventually("the window to be kept back", async || {
        (site.rest().state().await["next-upgrade-why"]["kind"] == "none-approved").then_some(())
    })
    .await;
    assert_eq!(site.rest().newest_run_or_none().await, None);
    // The setting is reloaded like others.
    let file = site.orchestrator.directory().join("os-upgrade.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("{text}\n[site]\nauto-approve = true\n")).unwrap();
    site.orchestrator.signal(Signal::SIGHUP);
    let run = eventually("the window to start a run", async || site.rest().newest_run_or_none().await).await;
    let run = site.rest().await_end(&run).await;
    assert_eq!(run.statuses(), [("h01", "upgraded"), ("h02", "upgraded")].into());
    await_enrolment(&site.orchestrator, "h01", "auto").await;
}

#[tokio::test]
async fn hosts_leave_by_pattern_once_confirmed() {
    let site = Site::start().await;
    let program = &site.orchestrator;
    for host in ["db-1", "web-1", "web-2"] {
        site.announce(APPLICATION, host).await;
        await_enrolment(program, host, "auto").await;
    }
    let enrolments = async || {
        let (_, hosts) = site.rest().get("/v1/state/os-upgrade/hosts").await;
        let of = |host: &Value| {
            format!("{} {}", host["hostname"].as_str().unwrap(), host["enrolment"].as_str().unwrap())
        };
        hosts.as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    for act in ["withdraw", "remove"] {
        let before = enrolments().await;
        let words = ["hosts", act, "web-*", "--reason", "sold"];
        let (code, printed, said) = program.ask(&words, "").await;
        assert_eq!((code, printed.as_str()), (Some(2), ""), "{said}");
        assert!(said.starts_with("web-1\nweb-2\n") && said.ends_with("confirm with --yes"), "{said}");
        let (code, _, said) = program.ask(&["hosts", act, "x*", "--reason", "sold", "--yes"], "").await;
        assert_eq!(code, Some(5), "{said}");
        assert!(said.contains("no host matches x*"), "{said}");
        assert_eq!(enrolments().await, before, "nothing was done");
        let done = if act == "withdraw" { "withdrawn" } else { "removed" };
        let printed = program.done(&[&words[..], &["--yes"]].concat()).await;
        assert_eq!(printed, format!("{done}: web-1\n{done}: web-2"));
        let expected: &[&str] = match act {
            "withdraw" => &["db-1 auto", "web-1 withdrawn", "web-2 withdrawn"],
            _ => &["db-1 auto"],
        };
        eventually("the hosts to leave", async || (enrolments().await == expected).then_some(())).await;
    }
}

/// The site approves hosts automatically.
#[tokio::test]
async fn removed_host_is_gone_until_it_announces_itself() {
    let mut site = Site::start().await;
    let _hosts = site.hosts(1).await;
    let name = HostName::new("old").unwrap();
    site.announce(APPLICATION, "old").await;
    for (subject, text) in
        [(subject::versions(&name), r#"{"linux":"6.1"}"#), (subject::output(&name), "Unpacking linux")]
    {
        site.jetstream().publish(subject, text.into()).await.unwrap().await.unwrap();
    }
    let control = site.jetstream().get_stream(subject::CONTROL_STREAM).await.unwrap();
    os_upgrade_jetstream::consumer::create(&control, &name, &ConsumerRequest::default()).await.unwrap();
    eventually("the host and its versions to be seen", async || {
        let host = site.rest().try_host("old").await?;
        (host["enrolment"] == "auto" && host["versions"]["linux"] == "6.1").then_some(())
    })
    .await;

    let (code, _, refused) =
        site.orchestrator.ask(&["hosts", "remove", "h01", "--reason", "scrapped"], "").await;
    assert_eq!(code, Some(5), "{refused}");
    assert!(refused.contains("h01 is running"), "{refused}");
    let removed = ["hosts", "remove", "old", "--reason", "scrapped"];
    assert_eq!(command_output(&site.orchestrator, &removed).await, "removed: old");
    let rest = site.rest();
    let is_gone = async || rest.try_host("old").await.is_none().then_some(());
    eventually("the host to be gone", is_gone).await;
    eventually("the journal to say so", async || {
        site.journal().await.iter().any(|fact| fact["type"] == "host-purged").then_some(())
    })
    .await;
    for (stream, subjects) in [
        (subject::WORKERS_STREAM, subject::workers_of(&name)),
        (subject::VERSIONS_STREAM, subject::versions(&name)),
    ] {
        let left = streams::stored(site.jetstream(), stream, &subjects).await;
        assert!(left.iter().all(|message| message.payload.is_empty()), "{left:?}");
    }

    let outputs = streams::stored(site.jetstream(), subject::OUTPUT_STREAM, &subject::output(&name)).await;
    assert!(outputs.is_empty(), "{outputs:?}");
    let consumer = control.consumer_info(subject::consumer(&name)).await.unwrap_err();
    assert_eq!(consumer.kind(), ConsumerInfoErrorKind::NotFound);

    // Another process reads it from no stream.
    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    await_enrolment(&site.orchestrator, "h01", "auto").await;
    assert_eq!(is_gone().await, Some(()));
    // Somebody takes its name.
    site.announce(APPLICATION, "old").await;
    await_enrolment(&site.orchestrator, "old", "pending").await;
    let approved = command_output(&site.orchestrator, &["hosts", "approve", "old"]).await;
    assert_eq!(approved, "approved: old");
    let history = command_output(&site.orchestrator, &["hosts", "history"]).await;
    assert!(history.contains("removed") && history.contains("scrapped"), "{history}");
}
