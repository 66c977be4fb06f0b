//! Hosts that fail, fall silent, are unreachable or missing, and the effect on the run and on their slots.

use std::collections::BTreeMap;

use harness::host::{APPLICATION, Host};
use harness::lock_server::{LockServer, Mode};
use harness::raw_worker::RawWorker;
use harness::site::{Site, assert_one_by_one};
use harness::wait::eventually;
use os_upgrade_protocol::subject;
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn failed_prepare_prevents_all_upgrades() {
    let locks = LockServer::start(Mode::Granted).await;
    let site = Site::start_with(&locks.config()).await;
    let rest = site.rest();
    let mut hosts = vec![site.host("h01"), site.host("h02"), site.host("h03")];
    hosts[1].fail("prepare", "no space left on /boot");
    site.run(&mut hosts).await;
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("failed"));
    let statuses = [("h01", "not-reached"), ("h02", "failed"), ("h03", "not-reached")];
    assert_eq!(run.statuses(), BTreeMap::from(statuses));
    let reasons = [
        ("h01", "the run was ended by the failure of h02"),
        ("h02", "prepare failed: no space left on /boot"),
        ("h03", "the run was ended by the failure of h02"),
    ];
    assert_eq!(run.reasons(), BTreeMap::from(reasons));
    assert_eq!(site.commands_to("upgrade").await, [""; 0]);
    assert_eq!(locks.calls(), [""; 0]);
    let slots: Vec<String> = run.events().into_iter().filter(|event| event.contains("slot")).collect();
    assert_eq!(slots, [""; 0]);
    assert!(site.script_log().iter().all(|lines| !lines.contains("upgrade")), "{:?}", site.script_log());

    // Once the cause is repaired, a new run succeeds.
    hosts[1].repair();
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
}

#[tokio::test]
async fn failed_host_keeps_slot_and_priority() {
    let site = Site::start().await;
    let rest = site.rest();
    let mut hosts = vec![site.host("h01"), site.host("h02"), site.host("h03")];
    hosts[0].fail("upgrade", "dpkg was interrupted");
    site.run(&mut hosts).await;
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("failed"));
    let statuses = [("h01", "failed"), ("h02", "not-reached"), ("h03", "not-reached")];
    assert_eq!(run.statuses(), BTreeMap::from(statuses));
    assert_eq!(run.reasons()["h01"], "upgrade failed: dpkg was interrupted");
    assert_eq!(run.reasons()["h02"], "the run was ended by the failure of h01");
    assert!(!run.events_of("h01").contains(&"slot-released".to_owned()), "{:?}", run.events());
    assert_eq!(site.commands_to("upgrade").await, ["h01"]);

    hosts[0].repair();
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(site.commands_to("upgrade").await, ["h01", "h01", "h02", "h03"]);
    assert!(run.events_of("h01").contains(&"slot-released".to_owned()), "{:?}", run.events());
    assert_one_by_one(&site.script_log());
}

/// A host that fails each night costs itself its upgrade, and nobody else.
#[tokio::test]
async fn failed_host_keeps_nobody_from_the_next_run() {
    let site = Site::start_with("[fleet-lock.groups]\ndefault = {slots = 1, failed = 1}").await;
    let rest = site.rest();
    let mut hosts = vec![site.host("h01"), site.host("h02"), site.host("h03")];
    hosts[0].fail("upgrade", "dpkg was interrupted");
    site.run(&mut hosts).await;
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("failed"));
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    let statuses = [("h01", "failed"), ("h02", "upgraded"), ("h03", "upgraded")];
    assert_eq!((run.result(), run.statuses()), (Some("failed"), BTreeMap::from(statuses)));
    assert_eq!(site.commands_to("upgrade").await, ["h01", "h02", "h03", "h01"]);
    // Its slot is held all the same, and FleetLock clients are refused.
    let slots = rest.get("/v1/state/fleet-lock").await.1;
    let group = &slots["groups"][0];
    assert_eq!((&group["failed"], &group["held"], &group["excess"]), (&json!(1), &json!(1), &json!(0)));
    let metrics = rest.get_as("/metrics", "*/*").await;
    assert!(metrics.contains("os_upgrade_fleet_lock_kept_holders{group=\"default\"} 1"), "{metrics}");
    assert_eq!(rest.try_fleet_lock("/v1/pre-reboot", "default", "n1").await, Some(409));
    // A client that waits goes before hosts that come later.
    assert_eq!(rest.try_fleet_lock("/v1/steady-state", "default", "n1").await, Some(200));
    hosts[0].repair();
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    assert_one_by_one(&site.script_log());
}

#[tokio::test]
async fn lost_worker_state_is_reported() {
    let site = Site::start().await;
    let rest = site.rest();
    let mut hosts = site.hosts(2).await;
    hosts[0].hold("upgrade");
    let id = rest.start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    hosts[1].lose_state().await;
    hosts[0].release("upgrade");
    let run = rest.await_end(&id).await;
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded"), ("h02", "failed")]));
    let reason = "upgrade failed: no prepare was executed since the last upgrade; this worker has done nothing: its state \
                  was lost since, or another worker serves this host as well";
    assert_eq!(run.reasons()["h02"], reason);
    assert_eq!(hosts[1].script_log(), ["prepare"]);

    let run = rest.await_end(&rest.start_run().await).await;
    assert_eq!((run.result(), run.statuses()["h02"]), (Some("completed"), "upgraded"));
}

#[tokio::test]
async fn slot_holder_goes_first() {
    let site = Site::start().await;
    let rest = site.rest();
    let mut late = [site.host("h03")];
    late[0].fail("upgrade", "out of memory");
    site.run(&mut late).await;
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("failed"));

    let mut early = [site.host("h01"), site.host("h02")];
    for host in &mut early {
        host.start();
    }
    rest.await_scheduled(&["h01", "h02", "h03"]).await;
    // While it fails, no other host gets the only slot.
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("failed"));
    assert_eq!(site.commands_to("upgrade").await, ["h03", "h03"]);
    late[0].repair();
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
    assert_eq!(site.commands_to("upgrade").await[2..], ["h03", "h01", "h02"]);
}

#[tokio::test]
async fn failed_reboot_keeps_slot() {
    let site = Site::start().await;
    let rest = site.rest();
    let mut hosts = vec![site.host("h01").reboots(), site.host("h02")];
    hosts[0].fail("reboot", "systemd refused");
    site.run(&mut hosts).await;
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("failed"));
    assert_eq!(run.reasons()["h01"], "reboot failed: systemd refused");
    assert_eq!(run.statuses()["h02"], "not-reached");
    assert!(!run.events().contains(&"h01 slot-released".to_owned()));
}

#[tokio::test]
async fn missing_host_keeps_slot_until_return() {
    let site = Site::start().await;
    let rest = site.rest();
    let mut hosts = vec![site.host("h01").reboots(), site.host("h02")];
    site.run(&mut hosts).await;
    let patch = json!({ "rollout": { "boot-timeout": "1s" } });
    assert_eq!(rest.change_configuration(&rest.configuration_tag().await, &patch).await, 204);
    hosts[0].hold("reboot");
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("failed"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "timed-out"), ("h02", "not-reached")]));
    let hangs = "no reply to reboot within 1s (boot-timeout): it may have hung while booting";
    assert_eq!(run.reasons()["h01"], hangs);
    let is_released = async || {
        let journal = site.journal().await;
        journal.into_iter().find(|fact| fact["type"] == "slot-released" && fact["host"] == "h01")
    };
    assert_eq!(is_released().await, None);
    hosts[0].release("reboot");
    let released = eventually("the slot to be released", is_released).await;
    assert_eq!(released["why"], "late-done");
}

#[tokio::test]
async fn on_failure_release_frees_slot() {
    let site = Site::start_with("[fleet-lock]\non-failure = \"release\"").await;
    let rest = site.rest();
    let mut hosts = vec![site.host("h01"), site.host("h02")];
    hosts[0].fail("upgrade", "no");
    site.run(&mut hosts).await;
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("failed"));
    assert!(run.events().contains(&"h01 slot-released".to_owned()), "{:?}", run.events());
}

/// The messages of the control stream, without those of leaders at their start.
async fn control(site: &Site) -> Vec<(u64, String)> {
    let messages = site.control("os-upgrade:control.*.*").await;
    messages.into_iter().map(|message| (message.sequence, message.subject.to_string())).collect()
}

#[tokio::test]
async fn silent_worker_times_out() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let silent = RawWorker::start(site.nats.client().await, "h01").await;
    let absent = RawWorker::start(site.nats.client().await, "h02").await;
    let prompt = RawWorker::start(site.nats.client().await, "h03").await;
    rest.await_scheduled(&["h01", "h02", "h03"]).await;
    assert_eq!(rest.trigger(r#"{"timeout":"3s"}"#).await, (204, Value::Null));
    let id = rest.newest_run().await;
    let received = silent.expect("prepare").await;
    prompt.answer("prepare", "done").await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("timed-out"));
    let statuses = [("h01", "timed-out"), ("h02", "timed-out"), ("h03", "not-reached")];
    assert_eq!(run.statuses(), BTreeMap::from(statuses));
    let reasons = [
        ("h01", "no reply to prepare before not-after"),
        ("h02", "no reply to prepare before not-after"),
        ("h03", "the run timed out before its turn: h01 and 1 other host had not answered prepare"),
    ];
    assert_eq!(run.reasons(), BTreeMap::from(reasons));
    let (ended, limit) = (run.0["end-time"].as_str(), run.0["not-after"].as_str());
    assert!(ended >= limit, "{ended:?} is before {limit:?}");

    // An undelivered command is deleted, so that a worker which knows only the specification does not begin it later.
    eventually("the undelivered command to be deleted", async || {
        let commands = site.commands().await;
        (commands == ["h01 prepare", "h03 prepare"] || commands == ["h03 prepare", "h01 prepare"])
            .then_some(())
    })
    .await;
    let before = control(&site).await;
    // Late answers change nothing, and neither does a restart.
    silent.reply("prepare", "done").await;
    received.ack().await;
    site.orchestrator.kill_and_start().await;
    site.orchestrator.ready().await;
    assert_eq!(rest.run(&id).await.statuses(), BTreeMap::from(statuses));
    assert_eq!(rest.trigger("validate").await.0, 400);
    let replies = subject::reply(&"h01".parse().expect("a name"));
    let after: Vec<_> = control(&site).await.into_iter().filter(|(_, subject)| *subject != replies).collect();
    assert_eq!(after, before.into_iter().filter(|(_, subject)| *subject != replies).collect::<Vec<_>>());
    drop(absent);
}

#[tokio::test]
async fn silent_host_keeps_slot_until_done() {
    let site = Site::start().await;
    let rest = site.rest();
    let mut hosts = vec![site.host("h01"), site.host("h02")];
    hosts[0].hold("upgrade");
    site.run(&mut hosts).await;
    assert_eq!(rest.trigger(r#"{"timeout":"4s"}"#).await, (204, Value::Null));
    let id = rest.newest_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("timed-out"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "timed-out"), ("h02", "not-reached")]));
    assert_eq!(run.reasons()["h01"], "no reply to upgrade before not-after");
    assert!(!run.events().contains(&"h01 slot-released".to_owned()));

    hosts[0].release("upgrade");
    eventually("the late done to release the slot", async || {
        let run = rest.run(&id).await;
        run.events().contains(&"h01 slot-released".to_owned()).then_some(())
    })
    .await;
    assert_eq!(hosts[0].script_log(), ["prepare", "upgrade-begins", "upgrade-ends"]);
    assert_eq!(hosts[1].script_log(), ["prepare"]);
    let id = rest.start_run().await;
    assert_eq!(rest.await_end(&id).await.result(), Some("completed"));
}

#[tokio::test]
async fn missed_deadline_ends_run_on_return() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let hosts = site.hosts(2).await;
    for host in &hosts {
        host.hold("prepare");
    }
    assert_eq!(rest.trigger(r#"{"timeout":"2s"}"#).await, (204, Value::Null));
    let id = rest.newest_run().await;
    hosts[0].await_script("prepare").await;
    hosts[1].await_script("prepare").await;
    let limit = rest.state().await["current-upgrade-info"]["not-after"].as_str().map(str::to_owned);
    let limit: chrono::DateTime<chrono::Utc> = limit.expect("a time").parse().expect("a time");
    site.orchestrator.kill().await;
    for host in &hosts {
        host.release("prepare");
    }
    eventually("not-after to pass", async || (chrono::Utc::now() > limit).then_some(())).await;
    site.orchestrator.start();
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("timed-out"));
    assert_eq!(site.commands_to("upgrade").await, [""; 0]);
}

#[tokio::test]
async fn hosts_without_worker_are_excluded() {
    let site = Site::start().await;
    let rest = site.rest();
    assert_eq!(rest.trigger("").await.0, 409, "nobody could take part");
    let worker = RawWorker::start(site.nats.client().await, "h01").await;
    let leaving = RawWorker::start(site.nats.client().await, "h02").await;
    rest.await_scheduled(&["h01", "h02"]).await;
    // A host that only sends heartbeats, one that only publishes versions, one of another application.
    let client = site.nats.client().await;
    let publish = async |subject: &str, payload: &str| {
        let sent = site.jetstream().publish(subject.to_owned(), payload.to_owned().into()).await;
        sent.expect("sent").await.expect("stored");
    };
    client.publish("os-upgrade.presence.h03", "".into()).await.expect("sent");
    publish("os-upgrade:versions.h04", r#"{"linux":"1"}"#).await;
    let other = r#"{"host":"h05","application":"os-upgrade-other"}"#;
    publish("os-upgrade:workers.os-upgrade-other.h05", other).await;
    // Invalid announcements: not JSON, and of another host than the subject names.
    publish("os-upgrade:workers.os-upgrade-test.h06", "{").await;
    let foreign = r#"{"host":"h01","application":"os-upgrade-test"}"#;
    publish("os-upgrade:workers.os-upgrade-test.h07", foreign).await;
    leaving.announce("").await;
    rest.await_scheduled(&["h01"]).await;
    eventually("the versions of h04", async || rest.try_host("h04").await).await;

    let id = rest.start_run().await;
    worker.answer("prepare", "done").await;
    worker.answer("upgrade", "done").await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded")]));
    assert_eq!(site.commands().await, ["h01 prepare", "h01 upgrade"]);
}

#[tokio::test]
async fn unreachable_host_is_skipped_with_reason() {
    let site = Site::start().await;
    let rest = site.rest();
    let unreachable = RawWorker::start(site.nats.client().await, "h01").await;
    unreachable.heartbeat().await;
    let mut hosts: [Host; 1] = [site.host("h02")];
    hosts[0].start();
    rest.await_scheduled(&["h01", "h02"]).await;
    eventually("h01 to be unreachable", async || {
        (rest.try_host("h01").await?["reachability"] == "unreachable").then_some(())
    })
    .await;
    assert_eq!(rest.try_host("h02").await.expect("a host")["reachability"], "reachable");
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "skipped"), ("h02", "upgraded")]));
    let reason = "unreachable: no heartbeat when the run started";
    assert_eq!(run.reasons(), BTreeMap::from([("h01", reason)]));
    assert_eq!(site.commands().await, ["h02 prepare", "h02 upgrade"]);

    // Unless the rollout makes it fail the run.
    let body = json!({
        "worker-applications": [{ "name": APPLICATION }],
        "rollout": { "unreachable": "fail" },
    });
    let put = rest.call(Method::PUT, "/v1/config/os-upgrade", &body.to_string()).await;
    assert_eq!(put, (204, Value::Null));
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("failed"));
    assert_eq!(run.statuses()["h02"], "not-reached");
    assert_eq!(site.commands_to("upgrade").await, ["h02"]);
}

#[tokio::test]
async fn participants_are_fixed_at_start() {
    let site = Site::start().await;
    let rest = site.rest();
    let first = RawWorker::start(site.nats.client().await, "h01").await;
    rest.await_scheduled(&["h01"]).await;
    let id = rest.start_run().await;
    let received = first.expect("prepare").await;
    // One host is added and another removed: neither affects this run.
    let late = RawWorker::start(site.nats.client().await, "h02").await;
    first.announce("").await;
    rest.await_scheduled(&["h02"]).await;
    first.reply("prepare", "done").await;
    received.ack().await;
    first.answer("upgrade", "done").await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded")]));
    let id = rest.start_run().await;
    late.answer("prepare", "done").await;
    late.answer("upgrade", "done").await;
    assert_eq!(rest.await_end(&id).await.statuses(), BTreeMap::from([("h02", "upgraded")]));
}

/// The output of an operator's command, which must succeed.
async fn command_output(site: &Site, arguments: &[&str]) -> String {
    let (code, printed, stderr) = site.orchestrator.ask(arguments, "").await;
    assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
    printed
}

#[tokio::test]
async fn run_continues_without_abandoned_host() {
    let site = Site::start().await;
    let rest = site.rest();
    let mut hosts = vec![site.host("h01"), site.host("h02"), site.host("h03")];
    hosts[0].hold("upgrade");
    hosts[2].hold("prepare");
    site.run(&mut hosts).await;
    let id = rest.start_run().await;
    // All hosts wait for the one that does not answer prepare.
    hosts[2].await_script("prepare").await;
    let given_up = ["run", "give-up", "h03", "--reason", "its disk is full"];
    assert_eq!(command_output(&site, &given_up).await, "given up: h03");
    hosts[0].await_script("upgrade-begins").await;
    hosts[0].stop().await;
    // The orchestrator may not have read the command back from the stream yet.
    let printed = eventually("h01 to be given up", async || {
        let arguments = ["run", "give-up", "h01", "--reason", "it burnt"];
        let (code, printed, _) = site.orchestrator.ask(&arguments, "").await;
        (code == Some(0)).then_some(printed)
    })
    .await;
    let release = ["lock", "release", "--group=default", "--id=h01", "--reason=it burnt"];
    let advice = format!("os-upgrade {} --reason=TEXT", release[..4].join(" "));
    assert!(printed.starts_with("given up: h01\n") && printed.ends_with(&advice), "{printed}");
    // Its slot is kept, because it may be upgrading.
    let why = rest.await_reason("h02", "slot-denied").await;
    assert!(why.contains("h01; ") || why.contains("h01 since"), "{why}");
    eventually("the slot to be released", async || {
        (site.orchestrator.ask(&release, "").await.0 == Some(0)).then_some(())
    })
    .await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), [("h01", "timed-out"), ("h02", "upgraded"), ("h03", "cancelled")].into());
    let reasons = run.reasons();
    assert!(reasons["h01"].starts_with("given up by api 127."), "{reasons:?}");
    assert!(reasons["h03"].ends_with(": its disk is full"), "{reasons:?}");
    let (_, shown) = rest.get(&format!("/v1/state/os-upgrade/runs/{id}")).await;
    let events = shown["events"].as_array().unwrap().iter();
    let by_operators = events.filter(|event| event["kind"] == "host" && event["actor"].is_string());
    let given_up: Vec<&str> = by_operators.map(|event| event["host"].as_str().unwrap()).collect();
    assert_eq!(given_up, ["h03", "h01"]);

    // It is back, finishes its upgrade, and takes part in the next run like the others.
    hosts[2].release("prepare");
    hosts[0].release("upgrade");
    hosts[0].start();
    rest.await_scheduled(&["h01", "h02", "h03"]).await;
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), [("h01", "upgraded"), ("h02", "upgraded"), ("h03", "upgraded")].into());
}
