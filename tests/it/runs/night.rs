//! A night in which some hosts are bad: each costs itself alone, and is upgraded alone once it is mended.

use std::collections::BTreeMap;

use harness::host::Host;
use harness::site::Site;
use harness::wait::eventually;
use serde_json::json;

#[tokio::test]
async fn bad_hosts_cost_themselves() {
    let site = Site::start_with("[fleet-lock.groups]\ndefault = {slots = 4, failed = 4}").await;
    let rest = site.rest();
    let mut hosts: Vec<Host> = (1..=9).map(|number| site.host(&format!("h{number:02}"))).collect();
    hosts[0].fail("prepare", "no space left on /boot");
    hosts[3].fail("upgrade", "dpkg was interrupted");
    hosts[6] = site.host("h07").reboots();
    hosts[6].hold("reboot");
    site.run(&mut hosts).await;
    let rollout = json!({
        "max-concurrent": 4, "max-failures": "50%", "max-preparing": 3, "boot-timeout": "1s",
        "retries": {"prepare": 1, "backoff": "1s"},
    });
    let patch = json!({ "rollout": rollout });
    assert_eq!(rest.change_configuration(&rest.configuration_tag().await, &patch).await, 204);
    site.orchestrator.done(&["hosts", "defer", "h09", "--reason", "the quarter closes"]).await;

    let id = rest.start_run().await;
    let run = rest.await_end(&id).await;
    assert_eq!(run.result(), Some("completed"), "{:?}", run.reasons());
    let mut expected: BTreeMap<_, _> =
        ["h02", "h03", "h05", "h06", "h08"].map(|host| (host, "upgraded")).into();
    expected.extend([("h01", "failed"), ("h04", "failed"), ("h07", "timed-out"), ("h09", "skipped")]);
    assert_eq!(run.statuses(), expected, "{:?}", run.reasons());
    assert_eq!(run.reasons()["h09"], "deferred by api 127.0.0.1: the quarter closes");
    assert!(run.events_of("h01").contains(&"prepare-failed".to_owned()), "{:?}", run.events());
    assert_eq!(hosts[0].script_log(), ["prepare-fails", "prepare-fails"]);

    // The one that comes back late has been upgraded after all, so that two are left.
    hosts[0].repair();
    hosts[3].repair();
    hosts[6].release("reboot");
    eventually("h07 to be back", async || {
        let host = rest.try_host("h07").await?;
        (host["last-result"]["late-answer"]["result"] == "done").then_some(())
    })
    .await;
    let reason = ["--reason", "they are mended"];
    let again =
        site.orchestrator.done(&[&["run", "start", "--failed", "-o", "name"], &reason[..]].concat()).await;
    let run = rest.await_end(again.trim()).await;
    assert_eq!(run.statuses(), BTreeMap::from([("h01", "upgraded"), ("h04", "upgraded")]));
    let status = site.orchestrator.done(&["status"]).await;
    assert!(status.contains("\nlast:") && status.contains("\nthen:"), "{status}");
    let history = site.orchestrator.done(&["hosts", "history", "h01"]).await;
    let words: Vec<&str> =
        history.lines().skip(1).filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(words, ["upgraded", "failed"], "{history}");

    // A deferred host that is named is an error, and one that only matches is left out.
    let (code, _, said) = site.orchestrator.ask(&["run", "start", "h09"], "").await;
    assert!(code != Some(0) && said.contains("h09 is deferred"), "{said}");
    let (code, _, said) = site.orchestrator.ask(&["run", "start", "h0[8-9]", "h*9"], "").await;
    assert!(code != Some(0), "{said}");
    site.orchestrator.done(&["hosts", "defer", "--end", "h09"]).await;
    let last = site.orchestrator.done(&["run", "start", "h*9", "-o", "name"]).await;
    assert_eq!(rest.await_end(last.trim()).await.statuses(), BTreeMap::from([("h09", "upgraded")]));
    let listed = site.orchestrator.done(&["run", "list", "--limit", "1"]).await;
    assert!(listed.contains("chosen hosts"), "{listed}");
    let events = site.orchestrator.done(&["events", "--run", last.trim()]).await;
    assert!(
        events.contains("for chosen hosts (1 host)") && events.contains("completed: 1 upgraded"),
        "{events}"
    );
}
