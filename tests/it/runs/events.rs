//! Events of runs: in order, and each exactly once, whatever happens to the instance that a client follows.

use std::collections::BTreeSet;

use harness::cluster::ClusterSite;
use harness::events::Events;
use harness::site::Site;
use harness::wait::Stopwatch;
use os_upgrade_shell::instance::STOP_WITHIN;
use serde_json::Value;

/// What happened to the run, as a client is told.
fn course(events: &[Value]) -> Vec<String> {
    let told = |event: &Value| match event["kind"].as_str().unwrap() {
        "host" => format!("{} {}", event["host"].as_str().unwrap(), event["step"].as_str().unwrap()),
        "slot-released" => format!("{} released", event["host"].as_str().unwrap()),
        kind => kind.to_owned(),
    };
    events.iter().map(told).collect()
}

#[tokio::test]
async fn subscriber_sees_a_run_in_order() {
    let mut site = Site::start().await;
    let hosts = site.hosts(1).await;
    let mut events = Events::follow(&site.rest(), "?host=h01", "").await;
    let mut all = Events::follow(&site.rest(), "", "").await;
    let id = site.rest().start_run().await;
    assert!(all.until("run-ended").await);
    assert_eq!(
        course(&all.read),
        [
            "run-started",
            "h01 command-sent",
            "h01 prepared",
            "run-upgrading",
            "h01 slot-granted",
            "h01 command-sent",
            "h01 upgraded",
            "h01 released",
            "run-ended",
        ]
    );
    assert!(all.read.iter().all(|event| event["run"] == id.as_str()), "{:?}", all.read);
    assert!(events.until("slot-released").await);
    let of_host: Vec<&str> = all.ids()[1..8].iter().filter(|id| **id != all.ids()[3]).copied().collect();
    assert_eq!(events.ids(), of_host);
    // A stop ends every stream.
    let stopping = Stopwatch::start();
    let (_, (), ()) = tokio::join!(site.orchestrator.terminate(), events.until_end(), all.until_end());
    stopping.assert_below(STOP_WITHIN * 2);
    drop(hosts);
}

/// A client goes on where it was: at the instance that was killed, and at the other one.
#[tokio::test]
async fn resumed_stream_has_each_event_once() {
    let mut site = ClusterSite::start(2, "").await;
    let hosts = site.hosts(3).await;
    let of = |site: &ClusterSite, member: usize| site.members[member].orchestrator.rest.clone();
    for host in &hosts {
        host.hold("upgrade");
    }
    let mut witness = Events::follow(&of(&site, 1), "", "").await;
    let start = witness.id.clone();
    let mut client = Events::follow(&of(&site, 0), "", "").await;
    of(&site, 1).start_run().await;
    hosts[0].await_script("upgrade-begins").await;
    assert!(client.until("run-upgrading").await);
    let mut seen: Vec<String> = client.ids().into_iter().map(ToOwned::to_owned).collect();
    // The other instance, and then the one that was killed.
    let mut resumed = Events::follow(&of(&site, 1), "", &client.id).await;
    site.members[0].orchestrator.kill().await;
    for host in &hosts {
        host.release("upgrade");
    }
    assert!(resumed.until("slot-released").await);
    seen.extend(resumed.ids().into_iter().map(ToOwned::to_owned));
    site.members[0].orchestrator.start_ready().await;
    let mut last = Events::follow(&of(&site, 0), "", &resumed.id).await;
    assert!(last.until("run-ended").await);
    seen.extend(last.ids().into_iter().map(ToOwned::to_owned));
    assert!(witness.until("run-ended").await);
    assert_eq!(seen, witness.ids());
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len());
    // From the beginning, and after an id of no journal.
    let mut again = Events::follow(&of(&site, 0), "", &start).await;
    assert!(again.until("run-ended").await);
    assert_eq!(again.ids(), witness.ids());
    let mut reset = Events::follow(&of(&site, 0), "", "1.1.0").await;
    assert!(reset.until("run-ended").await);
    assert_eq!(reset.read[0]["kind"], "reset");
    assert_eq!(reset.read[0]["earliest"], reset.read[1]["id"]);
    drop(hosts);
}
