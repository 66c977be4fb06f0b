//! Whole runs without faults, with worker processes, and their history.

use std::collections::BTreeMap;

use harness::host::APPLICATION;
use harness::raw_worker::RawWorker;
use harness::site::{Site, assert_one_by_one};
use harness::wait::eventually;
use os_upgrade_protocol::subject;
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn hosts_upgrade_sequentially_history_survives_restart() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let mut hosts = vec![site.host("h01"), site.host("h02").reboots(), site.host("h03")];
    site.run(&mut hosts).await;
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;

    assert_eq!(run.result(), Some("completed"));
    let upgraded = ["h01", "h02", "h03"].map(|host| (host, "upgraded"));
    assert_eq!(run.statuses(), BTreeMap::from(upgraded));
    let plain = ["prepare", "upgrade-begins", "upgrade-ends"];
    assert_eq!(hosts[0].script_log(), plain);
    assert_eq!(hosts[1].script_log(), ["prepare", "upgrade-begins", "upgrade-ends", "reboot"]);
    assert_eq!(hosts[2].script_log(), plain);
    assert_one_by_one(&site.script_log());
    let events = ["command-sent prepare", "prepared", "slot-granted", "command-sent upgrade", "upgraded"];
    let released = [&events[..], &["slot-released"]].concat();
    assert_eq!(run.events_of("h01"), released);
    let reboot = ["reboot-required", "command-sent reboot", "upgraded", "slot-released"];
    assert_eq!(run.events_of("h02"), [&events[..4], &reboot].concat());
    assert_eq!(run.events_of("h03"), released);
    let all = run.events();
    let place = |event: &str| all.iter().position(|other| other == event).unwrap();
    assert_eq!(place("run-started"), 0);
    assert!(place("h03 prepared") < place("run-upgrading"));
    assert!(place("run-upgrading") < place("h01 slot-granted"));
    assert!(place("h01 upgraded") < place("h02 slot-granted"));
    assert!(place("h02 upgraded") < place("h03 slot-granted"));
    assert!(place("h03 upgraded") < place("run-ended"));

    let state = rest.state().await;
    assert_eq!(state["status"], "idle");
    assert_eq!(state["worker-applications"], json!([{ "name": APPLICATION }]));
    let last = &state["last-upgrade-info"];
    assert_eq!(last["result"], "completed");
    assert_eq!(last["counts"], json!({ "upgraded": 3 }));
    assert_eq!(last["hosts"].as_array().unwrap().len(), 3);
    for host in &hosts {
        let name = host.name();
        eventually("the new version", async || {
            (rest.try_host(name).await?["versions"] == json!({ "linux": "2" })).then_some(())
        })
        .await;
        assert_eq!(host.version(), "2");
    }

    let runs = rest.runs().await;
    assert_eq!(site.orchestrator.terminate().await.code(), Some(0));
    site.orchestrator.start_ready().await;
    assert_eq!(rest.run(&id).await, run);
    assert_eq!(rest.runs().await, runs);
    assert_eq!(rest.state().await["last-upgrade-info"], *last);
    for host in ["h01", "h02", "h03"] {
        eventually("the versions", async || {
            (rest.try_host(host).await?["versions"] == json!({ "linux": "2" })).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn lost_history_is_rebuilt_from_journal() {
    let mut site = Site::start().await;
    let rest = site.rest();
    let _hosts = site.hosts(2).await;
    let first = rest.start_run().await;
    let first = rest.await_end(&first).await;
    let second = rest.start_run().await;
    let second = rest.await_end(&second).await;
    assert_eq!(second.result(), Some("completed"));

    site.orchestrator.terminate().await;
    std::fs::remove_file(site.orchestrator.store_file()).expect("removed");
    site.orchestrator.start_ready().await;
    for run in [first, second] {
        let id = run.0["id"].as_str().unwrap();
        assert_eq!(rest.await_end(id).await, run);
    }
    assert_eq!(rest.runs().await.len(), 2);
}

#[tokio::test]
async fn specification_only_worker_works() {
    let site = Site::start().await;
    let rest = site.rest();
    let plain = RawWorker::start(site.nats.client().await, "h01").await;
    let rebooting = RawWorker::start(site.nats.client().await, "h02").await;
    rest.await_scheduled(&["h01", "h02"]).await;
    let id = rest.start_run().await;

    let first = async {
        let prepare = plain.answer("prepare", "done").await;
        assert_eq!(prepare["hosts"], json!(["h01"]));
        assert!(prepare["not-after"].as_str().unwrap().ends_with('Z'), "{prepare}");
        let upgrade = plain.answer("upgrade", "done").await;
        assert_eq!(upgrade["host"], "h01");
    };
    let second = async {
        rebooting.answer("prepare", "done").await;
        rebooting.answer("upgrade", "reboot-required").await;
        let reboot = rebooting.answer("reboot", "done").await;
        assert_eq!(reboot["host"], "h02");
    };
    tokio::join!(first, second);

    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded"), ("h02", "upgraded")]));
    assert_eq!(site.commands().await[2..], ["h01 upgrade", "h02 upgrade", "h02 reboot"]);
    for reply in site.control(subject::REPLIES).await {
        assert!(reply.headers.is_empty(), "{:?}", reply.headers);
    }
}

#[tokio::test]
async fn host_names_are_escaped_in_subjects() {
    let site = Site::start().await;
    let rest = site.rest();
    let names = ["a>b", "h1.example.com", "häst", "x y"];
    let mut hosts = names.map(|name| site.host(name));
    site.run(&mut hosts).await;
    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(run.statuses(), names.map(|name| (name, "upgraded")).into());
    for host in &hosts {
        assert_eq!(host.script_log(), ["prepare", "upgrade-begins", "upgrade-ends"], "{}", host.name());
    }
    for path in ["a%3Eb", "h1.example.com", "h%C3%A4st", "x%20y"] {
        eventually("the versions", async || {
            (rest.try_host(path).await?["versions"] == json!({ "linux": "2" })).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn rollout_upgrades_groups_in_parallel() {
    let site = Site::start_with("[fleet-lock.groups]\ndefault = 1\nweb = 1").await;
    let rest = site.rest();
    let body = json!({
        "worker-applications": [{ "name": APPLICATION }],
        "rollout": { "max-concurrent": 2 },
    });
    let put = rest.call(Method::PUT, "/v1/config/os-upgrade", &body.to_string()).await;
    assert_eq!(put, (204, Value::Null));
    let mut hosts = vec![site.host("h01"), site.host("h02"), site.host("h03").of_group("web")];
    hosts[0].hold("upgrade");
    hosts[2].hold("upgrade");
    site.run(&mut hosts).await;
    let id = rest.start_run().await;
    // h02 waits for its own group; h03, of the other group, does not.
    hosts[0].await_script("upgrade-begins").await;
    hosts[2].await_script("upgrade-begins").await;
    assert_eq!(hosts[1].script_log(), ["prepare"]);
    hosts[2].release("upgrade");
    hosts[2].await_script("upgrade-ends").await;
    rest.await_reason("h02", "slot-denied").await;
    hosts[0].release("upgrade");
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"));
    assert_eq!(rest.state().await["last-upgrade-info"]["counts"], json!({ "upgraded": 3 }));
}
