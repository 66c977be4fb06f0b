//! Volumes that are in use on a node whose pods are gone.

use std::time::Duration;

use harness::wait::{PATIENCE, eventually};
use os_upgrade_kernel::{NodeOutcome, Volumes};
use os_upgrade_test_kubernetes::Pod;
use os_upgrade_test_kubernetes::resource::NODES;
use serde_json::json;

use super::adapter::{Cluster, NODE, carry_out, check, drain, evict, is_drained};

const VOLUME: &str = "kubernetes.io/csi/driver.example.com^v-1";

fn use_volumes(cluster: &Cluster, volumes: &[&str]) {
    cluster.server.edit(NODES, "", NODE, |node| node["status"]["volumesInUse"] = json!(volumes));
}

fn in_use(volumes: &[&str], staying: usize) -> NodeOutcome {
    let first = volumes.iter().map(|name| (*name).to_owned()).collect();
    NodeOutcome::VolumesInUse { volumes: Volumes { count: volumes.len(), first, staying } }
}

#[tokio::test]
async fn node_is_drained_once_its_volumes_are_not_in_use() {
    let cluster = Cluster::start().await;
    cluster.add("web");
    use_volumes(&cluster, &[VOLUME]);
    assert_eq!(drain(&cluster.adapter(), PATIENCE).await, in_use(&[VOLUME], 0));
    assert_eq!(cluster.evictions(), ["web"]);
    // A drain that begins without pods waits for them, too.
    let adapter = cluster.adapter();
    assert_eq!(carry_out(&adapter, check(true)).await, NodeOutcome::Clear);
    assert_eq!(carry_out(&adapter, evict(true)).await, in_use(&[VOLUME], 0));
    use_volumes(&cluster, &[]);
    assert!(is_drained(&carry_out(&adapter, evict(true)).await));
}

/// Nobody unmounts them. Where the settings say that the pods of such a node are not waited for, its volumes are not either.
#[tokio::test]
async fn volumes_of_a_silent_kubelet_may_be_skipped() {
    let mut cluster = Cluster::start().await;
    use_volumes(&cluster, &[VOLUME]);
    cluster.server.stop_kubelet(NODE);
    cluster.server.lose_node(NODE);
    assert_eq!(carry_out(&cluster.adapter(), evict(false)).await, in_use(&[VOLUME], 0));
    // Not before the kubelet has been silent for that long.
    cluster.config.pace.skip_terminating_after = Some(Duration::from_hours(1));
    assert_eq!(carry_out(&cluster.adapter(), evict(true)).await, in_use(&[VOLUME], 0));
    cluster.config.pace.skip_terminating_after = Some(Duration::ZERO);
    let adapter = cluster.adapter();
    eventually("the time of the kubelet to be over", async || {
        is_drained(&carry_out(&adapter, evict(true)).await).then_some(())
    })
    .await;
}

/// Its kubelet has unmounted the volumes of a pod that has finished: they hide none that is in use.
#[tokio::test]
async fn volumes_of_finished_pods_are_not_counted() {
    let cluster = Cluster::start().await;
    let claim = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "backup" } });
    let job = Pod::new("default", "backup-1").on(NODE).owned_by("Job", "backup").volume(&claim);
    cluster.server.add_pod(&job.phase("Succeeded"));
    use_volumes(&cluster, &[VOLUME]);
    assert_eq!(carry_out(&cluster.adapter(), evict(false)).await, in_use(&[VOLUME], 0));
}

/// An orchestrator in the cluster has a volume, too: a drain of its node would never end.
#[tokio::test]
async fn volumes_of_pods_that_stay_are_not_waited_for() {
    let cluster = Cluster::start().await;
    let claim = json!({ "name": "data", "persistentVolumeClaim": { "claimName": "os-upgrade" } });
    for name in ["os-upgrade-0", "os-upgrade-1"] {
        let own = Pod::new("default", name).on(NODE).label("app.kubernetes.io/part-of", "os-upgrade");
        // They share the claim.
        cluster.server.add_pod(&own.volume(&claim));
    }
    let agent = Pod::new("default", "agent").on(NODE).owned_by("DaemonSet", "agent");
    cluster.server.add_pod(&agent.volume(&json!({ "name": "scratch", "ephemeral": {} })));
    let adapter = cluster.adapter();
    use_volumes(&cluster, &["a", "b", "c"]);
    assert_eq!(carry_out(&adapter, evict(false)).await, in_use(&["a", "b", "c"], 2));
    use_volumes(&cluster, &["a", "b"]);
    assert!(is_drained(&carry_out(&adapter, evict(true)).await));
}
