//! Events of Kubernetes about nodes.

use harness::wait::{PATIENCE, eventually};
use os_upgrade_adapters::kubernetes::mark::ANNOTATION;
use os_upgrade_adapters::kubernetes::rights::{CREATE_EVENT, RIGHTS, Right};
use os_upgrade_kernel::{NodeOrder, NodeOutcome};
use os_upgrade_test_kubernetes::resource::{BUDGETS, EVENTS};
use serde_json::Value;

use super::adapter::{
    Cluster, NODE, OWNER, SITE, USER, carry_out, check, drain_on, evict, is_drained, left, names, rules,
};

/// The reasons of the events so far, in the order of the alphabet, once there are this many.
async fn reasons(cluster: &Cluster, number: usize) -> Vec<String> {
    let mut reasons = eventually("the events", async || {
        let events = cluster.server.objects(EVENTS, "default");
        (events.len() >= number).then(|| events.iter().map(reason).collect::<Vec<_>>())
    })
    .await;
    reasons.sort();
    reasons
}

fn reason(event: &Value) -> String {
    event["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn node_has_an_event_for_each_step_once() {
    let cluster = Cluster::start().await;
    cluster.add("web");
    cluster.forbid("default", "web");
    let adapter = cluster.adapter();
    assert_eq!(names(left(&carry_out(&adapter, check(false)).await)), ["web"]);
    assert_eq!(reasons(&cluster, 2).await, ["Cordoned", "DrainRefused"]);
    let events = cluster.server.objects(EVENTS, "default");
    let refused = events.iter().find(|event| event["reason"] == "DrainRefused").unwrap();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("default/web") && message.contains("web-budget"), "{message}");
    assert!(message.contains(SITE) && message.contains(OWNER), "{message}");
    let node = cluster.node();
    let about = &refused["involvedObject"];
    assert_eq!(
        (&about["kind"], &about["name"], &about["uid"]),
        (&Value::from("Node"), &Value::from(NODE), &node["metadata"]["uid"],)
    );
    let mark = node["metadata"]["annotations"][ANNOTATION].as_str().unwrap();
    assert!(mark.contains("since") && mark.contains("drained in run"), "{mark}");

    cluster.server.remove(BUDGETS, "default", "web-budget");
    assert!(is_drained(&drain_on(&adapter, PATIENCE).await));
    // What is looked at again, here by an instance that knows nothing, is not told again.
    assert!(is_drained(&carry_out(&cluster.adapter(), evict(true)).await));
    let uncordon = NodeOrder::Uncordon { ready: false, left: None, is_ours: true, takes_over: None };
    for _ in 0..2 {
        assert_eq!(carry_out(&adapter, uncordon.clone()).await, NodeOutcome::Uncordoned);
    }
    assert_eq!(reasons(&cluster, 4).await, ["Cordoned", "DrainRefused", "Drained", "Uncordoned"]);
}

#[tokio::test]
async fn drain_does_not_depend_on_events() {
    let cluster = Cluster::start().await;
    let others: Vec<Right> = RIGHTS.into_iter().filter(|right| *right != CREATE_EVENT).collect();
    cluster.server.grant(USER, rules(&others));
    cluster.add("web");
    assert!(is_drained(&cluster.drain().await));
    eventually("a refused event", async || cluster.calls("create", "events").pop()).await;
    assert_eq!(cluster.server.objects(EVENTS, "default"), Vec::<Value>::new());
}
