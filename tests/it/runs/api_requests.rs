//! How many requests an API server gets for a node of the reboot queue: orchestrator and worker as processes, and an API server
//! over HTTP.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use harness::wait::eventually;
use os_upgrade_test_kubernetes::Call;

use super::drain::Hall;

const PODS: usize = 10;

/// A node with ten pods to evict, whose entry is in the queue. Calls before that are forgotten.
async fn queued(pods_end: bool) -> Hall {
    let hall = Hall::start(1, "").await;
    // Pods that a list of all pods would show.
    hall.cluster.add_node("other");
    hall.add_pod("of-other", "other");
    for number in 0..PODS {
        hall.add_pod(&format!("web-{number}"), "h01");
    }
    hall.cluster.end_pods("h01", pods_end);
    hall.await_reboots_on_request().await;
    hall.hosts[0].hold("reboot");
    hall.cluster.forget_calls();
    hall.site.orchestrator.done(&["reboot-queue", "add", "h01"]).await;
    hall
}

/// What a call is, with the node that a list of pods is about.
fn kind(call: &Call) -> String {
    let name = if call.resource == "nodes" { call.name.as_deref() } else { None };
    let about = [name.unwrap_or_default(), &call.field_selector].join("");
    let dry_run = if call.is_dry_run { "dry run" } else { "" };
    let words = [call.verb, &call.full_resource(), &about, dry_run];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// How often each kind of call was made.
fn counted(hall: &Hall) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for call in hall.cluster.calls() {
        *counts.entry(kind(&call)).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn requests_of_a_queued_reboot_are_bounded() {
    let hall = queued(true).await;
    let begin = Instant::now();
    hall.hosts[0].await_script("reboot").await;
    hall.cluster.reboot_node("h01");
    hall.hosts[0].release("reboot");
    hall.await_empty_queue().await;
    let mut counts = counted(&hall);
    // The nodes are looked at all the time, for the whole queue.
    let looks = counts.remove("list nodes").unwrap_or_default();
    assert!(
        looks as u64 <= begin.elapsed().as_secs() / 10 + 2,
        "{looks} lists of nodes in {:?}",
        begin.elapsed()
    );
    // One each for the cordon, the drain and the end of the cordon, in the background.
    assert!(counts.remove("create events").unwrap_or_default() <= 3);
    let expected = [
        // Before the check, before the evictions, before the reboot, and before the end of the cordon.
        ("get nodes h01", 4),
        // The cordon and its end.
        ("patch nodes h01", 2),
        // Of the check, before the evictions, and the one that shows that all pods are gone.
        ("list pods spec.nodeName=h01", 3),
        ("create pods/eviction dry run", PODS),
        ("create pods/eviction", PODS),
    ];
    let expected = expected.map(|(kind, count)| (kind.to_owned(), count));
    assert_eq!(counts, BTreeMap::from(expected));
}

#[tokio::test]
async fn looks_at_a_node_become_rare_while_nothing_changes() {
    let hall = queued(false).await;
    eventually("the evictions", async || {
        (counted(&hall).get("create pods/eviction") == Some(&PODS)).then_some(())
    })
    .await;
    let begin = Instant::now();
    eventually("four looks at pods that stay", async || {
        (counted(&hall).get("list pods spec.nodeName=h01") >= Some(&6)).then_some(())
    })
    .await;
    // A second after the evictions, and another one, since the pods terminate now; then two and four more. The last eviction was
    // seen a moment late.
    assert!(begin.elapsed() >= Duration::from_millis(7_500), "{:?}", begin.elapsed());
    assert_eq!(counted(&hall)["create pods/eviction"], PODS, "nothing is evicted twice within 10 s");
    hall.cluster.end_pods("h01", true);
    hall.hosts[0].await_script("reboot").await;
}
