//! The adapter's drains at a server: which pods go, which stay, and what is said of those that do.

use std::time::Duration;

use chrono::Utc;
use harness::wait::{PATIENCE, eventually};
use os_upgrade_adapters::cluster::{self, ClusterConfig};
use os_upgrade_adapters::kubernetes::drain::Pace;
use os_upgrade_adapters::kubernetes::plan::Policy;
use os_upgrade_kernel::{NodeOutcome, PodObstacle};
use os_upgrade_shell::fleet_lock::RetryAfter;
use os_upgrade_test_kubernetes::resource::{BUDGETS, NODES, PODS};
use os_upgrade_test_kubernetes::{Fault, Pod};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::adapter::{
    Cluster, NODE, carry_out, check, drain, drain_on, evict, forbidden, is_drained, job, left, names,
    outcome, requests_per_second, selector,
};

const EVICTIONS: &str = "pods/eviction";

/// Makes the first eviction slow that follows a dry run of this many pods, and waits until it has begun.
async fn slow_eviction_begins(cluster: &Cluster, pods: usize) {
    cluster.server.plan(Fault::Slow(Duration::ZERO), "create", EVICTIONS, pods);
    cluster.server.plan(Fault::Slow(Duration::from_millis(300)), "create", EVICTIONS, 1);
    eventually("the eviction", async || (cluster.evictions().len() == 1).then_some(())).await;
}

#[tokio::test]
async fn drained_node_keeps_what_would_come_back() {
    let cluster = Cluster::start().await;
    let pod = |name: &str| Pod::new("default", name).on(NODE);
    let server = &cluster.server;
    server.add_pod(&pod("bare"));
    server.add_pod(&pod("finished").phase("Succeeded"));
    server.add_pod(&pod("pending").phase("Pending"));
    server.add_pod(&pod("db-0").owned_by("StatefulSet", "db"));
    server.add_pod(&pod("agent").owned_by("DaemonSet", "agent"));
    server.add_pod(&pod("static").mirror());
    server.add_pod(&Pod::new("default", "elsewhere").on("m"));
    assert!(is_drained(&cluster.drain().await));
    assert_eq!(cluster.evictions(), ["bare", "db-0", "finished", "pending"]);
    for name in ["agent", "static", "elsewhere"] {
        assert!(cluster.is_there(name), "{name}");
    }
    // Nothing is deleted but by evictions.
    assert_eq!(cluster.called("delete", "pods"), [""; 0]);
}

/// Whether a namespace is protected decides what follows a budget's refusal.
#[tokio::test]
async fn budgets_hold_in_protected_namespaces() {
    let shop = json!({ "matchLabels": { "team": "shop" } });
    let other = json!({ "matchLabels": { "team": "other" } });
    for (protected, can_be_drained) in
        [(None, false), (Some(json!({})), false), (Some(shop), false), (Some(other), true)]
    {
        let cluster = Cluster::start().await.protecting(protected.clone());
        cluster.server.add_namespace("shop", &json!({ "team": "shop" }));
        cluster
            .server
            .add_pod(&Pod::new("shop", "web").on(NODE).owned_by("ReplicaSet", "web").label("app", "web"));
        cluster.forbid("shop", "web");
        let preview = cluster.preview().await;
        let begin = Utc::now();
        let outcome = cluster.drain().await;
        if can_be_drained {
            assert_eq!((preview.blocked.len(), preview.deleted[0].name.as_str()), (0, "web"));
            assert!(is_drained(&outcome));
            assert_eq!(cluster.deletions(), ["web"]);
            continue;
        }
        assert_eq!((names(&preview.blocked), preview.deleted), (vec!["web"], vec![]));
        let [web] = left(&outcome) else { panic!("{protected:?} {outcome:?}") };
        assert_eq!((web.namespace.as_str(), web.owner.as_deref()), ("shop", Some("ReplicaSet/web")));
        assert_eq!(web.obstacle, forbidden("web"));
        assert!(begin <= web.since, "{web:?}");
        assert_eq!(cluster.pod_writes(), 0);
    }
}

#[tokio::test]
async fn running_job_blocks() {
    let cluster = Cluster::start().await;
    cluster.add("web");
    cluster.server.add_pod(&Pod::new("default", "backup").on(NODE).owned_by("Job", "backup"));
    let preview = cluster.preview().await;
    assert_eq!((names(&preview.blocked), preview.evicted[0].name.as_str()), (vec!["backup"], "web"));
    cluster.server.forget_calls();
    let outcome = cluster.drain().await;
    assert_eq!(names(left(&outcome)), ["backup"]);
    assert_eq!(left(&outcome)[0].obstacle, PodObstacle::JobRunning);
    // Not even a dry run is asked for.
    assert_eq!(cluster.calls("create", EVICTIONS).len(), 0);
}

#[tokio::test]
async fn job_that_is_not_protected_is_evicted() {
    let mut cluster = Cluster::start().await;
    let protected = selector(json!({ "matchLabels": { "job": "backup" } }));
    cluster.config.policy = Policy::new(None, Some(protected)).unwrap();
    let job = |name: &str| Pod::new("default", name).on(NODE).owned_by("Job", name).label("job", name);
    cluster.server.add_pod(&job("report"));
    assert!(is_drained(&cluster.drain().await));
    assert_eq!(cluster.evictions(), ["report"]);
    cluster.server.add_pod(&job("backup"));
    assert_eq!(names(left(&cluster.drain().await)), ["backup"]);
}

#[tokio::test]
async fn idle_pods_of_jobs_stay() {
    let cluster = Cluster::start().await;
    let uid = |name: &str| cluster.server.object(PODS, "default", name).unwrap()["metadata"]["uid"].clone();
    let phases = ["Pending", "Succeeded", "Failed"];
    for phase in phases {
        cluster.server.add_pod(&Pod::new("default", phase).on(NODE).owned_by("Job", phase).phase(phase));
    }
    let before = phases.map(uid);
    assert!(is_drained(&cluster.drain().await));
    assert_eq!(phases.map(uid), before);
    assert_eq!(cluster.pod_writes(), 0);
}

#[tokio::test]
async fn refused_dry_run_evicts_nothing() {
    let cluster = Cluster::start().await;
    for name in ["a", "b", "c", "d"] {
        cluster.add(name);
    }
    cluster.forbid("default", "b");
    let preview = cluster.preview().await;
    assert_eq!((names(&preview.blocked), &preview.blocked[0].obstacle), (vec!["b"], &forbidden("b")));
    assert_eq!(preview.evicted.len(), 3);
    assert_eq!(cluster.calls("create", EVICTIONS).len(), 4);
    let outcome = cluster.drain().await;
    // The others keep nothing from being drained.
    assert_eq!(names(left(&outcome)), ["b"]);
    // Each was asked for once more.
    assert_eq!((cluster.calls("create", EVICTIONS).len(), cluster.pod_writes()), (8, 0));
}

/// Some controllers relax a budget once they see the cordon.
#[tokio::test]
async fn budget_may_relax_under_the_cordon() {
    let mut cluster = Cluster::start().await;
    cluster.config.pace.retries = 1000;
    cluster.add("a");
    cluster.add("b");
    cluster.forbid("default", "b");
    let relax = async {
        eventually("two dry runs", async || (cluster.called("create", EVICTIONS).len() >= 4).then_some(()))
            .await;
        assert_eq!(cluster.pod_writes(), 0);
        cluster.server.remove(BUDGETS, "default", "b-budget");
    };
    let (outcome, ()) = tokio::join!(cluster.drain(), relax);
    assert!(is_drained(&outcome));

    // A job that begins meanwhile ends the wait.
    cluster.add("b");
    cluster.forbid("default", "b");
    cluster.server.forget_calls();
    let begin = async {
        eventually("a dry run", async || (!cluster.called("create", EVICTIONS).is_empty()).then_some(()))
            .await;
        cluster.server.add_pod(&Pod::new("default", "job").on(NODE).owned_by("Job", "job"));
    };
    let (outcome, ()) = tokio::join!(cluster.drain(), begin);
    assert_eq!((names(left(&outcome)), cluster.pod_writes()), (vec!["b", "job"], 0));
}

/// A webhook that does not support dry runs refuses them all.
#[tokio::test]
async fn webhook_that_refuses_dry_runs_blocks_none() {
    let cluster = Cluster::start().await;
    cluster.add("web");
    cluster.server.plan(Fault::Status(400), "create", EVICTIONS, 1);
    assert!(is_drained(&cluster.drain().await));
}

#[tokio::test]
async fn blocked_pod_holds_up_no_other() {
    let cluster = Cluster::start().await;
    cluster.add_limited("a", 2);
    for name in ["b", "c", "d"] {
        cluster.add(name);
    }
    let outcome = cluster.drain_in_vain().await;
    let [last] = left(&outcome) else { panic!("{outcome:?}") };
    assert_eq!((last.name.as_str(), &last.obstacle), ("a-01", &forbidden("a")));
    // Pauses and times are kept from one round to the next.
    assert!(last.since < Utc::now() - Duration::from_millis(200), "{last:?}");
    let tries = cluster.evictions().iter().filter(|name| *name == "a-01").count();
    assert!((2..=12).contains(&tries), "{tries}");
    assert!(cluster.calls("list", "pods").len() > tries);
}

#[tokio::test]
async fn blocked_pods_are_named_first_and_counted() {
    let cluster = Cluster::start().await;
    cluster.server.end_pods(NODE, false);
    for index in 0..8 {
        cluster.add(&format!("slow-{index}"));
    }
    cluster.add_limited("web", 2);
    let adapter = cluster.adapter();
    assert_eq!(carry_out(&adapter, check(false)).await, NodeOutcome::Clear);
    carry_out(&adapter, evict(true)).await;
    let outcome = carry_out(&adapter, evict(true)).await;
    let NodeOutcome::Remaining { pods } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(
        (pods.count, names(&pods.first)),
        (10, vec!["web-01", "slow-0", "slow-1", "slow-2", "slow-3"])
    );
    assert_eq!(pods.first[1].obstacle, PodObstacle::Terminating);
}

#[tokio::test]
async fn budget_that_can_never_allow_is_named() {
    let cluster = Cluster::start().await;
    cluster.server.add_pod(&Pod::new("default", "bare").on(NODE).label("app", "bare"));
    for (key, value) in [("maxUnavailable", json!(1)), ("minAvailable", json!("50%"))] {
        let mut spec = json!({ "selector": { "matchLabels": { "app": "bare" } } });
        spec[key] = value;
        cluster.server.add_budget("default", "bare", &spec);
        let outcome = cluster.drain().await;
        assert_eq!(left(&outcome)[0].obstacle, PodObstacle::UncountedPods { budget: "bare".to_owned() });
        cluster.server.remove(BUDGETS, "default", "bare");
    }
}

#[tokio::test]
async fn budgets_that_cannot_be_read_hold_up_no_other() {
    let cluster = Cluster::start().await;
    cluster.add_limited("a", 2);
    cluster.add("b");
    cluster.server.plan(Fault::Status(500), "list", "poddisruptionbudgets", usize::MAX);
    let outcome = cluster.drain_in_vain().await;
    let [pod] = left(&outcome) else { panic!("{outcome:?}") };
    let PodObstacle::UnreadBudget { message } = &pod.obstacle else { panic!("{outcome:?}") };
    assert!(message.contains("a-budget"), "{message}");
}

#[tokio::test]
async fn job_that_begins_later_is_waited_for() {
    let cluster = Cluster::start().await;
    cluster.server.add_pod(&Pod::new("default", "job").on(NODE).owned_by("Job", "job").phase("Pending"));
    cluster.add("slow");
    cluster.server.end_pods(NODE, false);
    let adapter = cluster.adapter();
    let phase = |phase: &'static str| {
        cluster.server.edit(PODS, "default", "job", |pod| pod["status"]["phase"] = json!(phase));
    };
    assert_eq!(carry_out(&adapter, check(false)).await, NodeOutcome::Clear);
    assert_eq!(names(left(&carry_out(&adapter, evict(true)).await)), ["slow"]);
    phase("Running");
    cluster.server.end_pods(NODE, true);
    for _ in 0..3 {
        let outcome = carry_out(&adapter, evict(true)).await;
        assert_eq!(left(&outcome).last().unwrap().obstacle, PodObstacle::JobRunning);
    }
    phase("Succeeded");
    assert!(is_drained(&drain_on(&adapter, PATIENCE).await));
    assert!(cluster.is_there("job"));
}

#[tokio::test]
async fn slow_pod_is_waited_for() {
    let cluster = Cluster::start().await;
    cluster.add("slow");
    cluster.server.end_pods(NODE, false);
    let adapter = cluster.adapter();
    let outcome = drain(&adapter, Duration::from_millis(500)).await;
    assert_eq!(left(&outcome)[0].obstacle, PodObstacle::Terminating);
    // It is evicted once.
    assert_eq!(cluster.evictions(), ["slow"]);
    cluster.server.end_pod("default", "slow");
    assert!(is_drained(&carry_out(&adapter, evict(true)).await));
    assert_eq!(cluster.evictions(), ["slow"]);
}

#[tokio::test]
async fn pods_have_their_own_time_to_end_or_the_one_that_is_set() {
    let other = json!({ "matchLabels": { "team": "other" } });
    for (set, expected) in [(None, 600), (Some(Duration::from_secs(7)), 7)] {
        let mut cluster = Cluster::start().await.protecting(Some(other.clone()));
        cluster.config.pace.grace = set;
        cluster.server.end_pods(NODE, false);
        for name in ["evicted", "deleted"] {
            let pod = Pod::new("default", name).on(NODE).owned_by("ReplicaSet", name).label("app", name);
            cluster.server.add_pod(&pod.grace_secs(600));
        }
        cluster.forbid("default", "deleted");
        let adapter = cluster.adapter();
        assert_eq!(carry_out(&adapter, check(false)).await, NodeOutcome::Clear);
        carry_out(&adapter, evict(true)).await;
        for name in ["evicted", "deleted"] {
            let pod = cluster.server.object(PODS, "default", name).expect("a pod that ends");
            assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], json!(expected), "{name}");
        }
    }
}

#[tokio::test]
async fn pods_that_arrive_later_are_evicted() {
    let cluster = Cluster::start().await;
    cluster.add("slow");
    cluster.server.end_pods(NODE, false);
    let arrival = async {
        let evicted = async |name: &str| {
            let name = name.to_owned();
            eventually("the eviction", async || cluster.evictions().contains(&name).then_some(())).await;
        };
        evicted("slow").await;
        cluster.add("late");
        evicted("late").await;
        cluster.server.end_pods(NODE, true);
    };
    let (outcome, ()) = tokio::join!(cluster.drain(), arrival);
    assert!(is_drained(&outcome));
}

#[tokio::test]
async fn throttling_is_no_budget() {
    // Were it taken for a budget's refusal, the pod would be deleted.
    let cluster = Cluster::start().await.protecting(Some(json!({ "matchLabels": { "team": "other" } })));
    cluster.add("web");
    // In the dry run, and afterwards.
    for fault in [Fault::Throttled, Fault::Slow(Duration::ZERO), Fault::Throttled] {
        cluster.server.plan(fault, "create", EVICTIONS, 1);
    }
    let begin = Instant::now();
    assert!(is_drained(&cluster.drain().await));
    assert!(begin.elapsed() >= Duration::from_secs(2), "the server's wish is passed on");
    assert_eq!(cluster.called("create", EVICTIONS).len(), 4);
    assert_eq!(cluster.called("delete", "pods"), [""; 0]);
}

#[tokio::test]
async fn budget_in_the_making_is_waited_for() {
    let cluster = Cluster::start().await;
    cluster.add("a");
    cluster.add("web");
    let make = async {
        slow_eviction_begins(&cluster, 2).await;
        cluster.server.freeze_disruption_controller(true);
        cluster.forbid("default", "web");
    };
    let adapter = cluster.adapter();
    let (outcome, ()) = tokio::join!(drain(&adapter, Duration::from_secs(2)), make);
    assert_eq!(names(left(&outcome)), ["web"]);
    awaits_budget(&left(&outcome)[0].obstacle);
    // The server asks for ten seconds.
    assert_eq!((cluster.evictions(), cluster.deletions()), (vec!["a".to_owned(), "web".to_owned()], vec![]));
}

/// Were it taken for a refusal, the pod would be deleted, whatever the budget then says.
#[tokio::test]
async fn dry_run_waits_for_a_budget_in_the_making() {
    let cluster = Cluster::start().await.protecting(Some(json!({ "matchLabels": { "team": "other" } })));
    cluster.add("a");
    cluster.add("web");
    cluster.server.freeze_disruption_controller(true);
    cluster.forbid("default", "web");
    let adapter = cluster.adapter();
    let report = adapter.carry_out(job(check(false)), || true).await;
    // Other nodes are not held up.
    let Some(RetryAfter::Slot(pause)) = report.retry_after else { panic!("{report:?}") };
    assert!((Duration::from_secs(8)..=Duration::from_secs(10)).contains(&pause), "{pause:?}");
    let outcome = outcome(report);
    assert_eq!(names(left(&outcome)), ["web"]);
    awaits_budget(&left(&outcome)[0].obstacle);
    assert_eq!(names(&cluster.preview().await.blocked), ["web"]);
    assert_eq!(cluster.pod_writes(), 0);
    cluster.server.freeze_disruption_controller(false);
    assert_eq!(carry_out(&adapter, check(true)).await, NodeOutcome::Clear);
    assert!(is_drained(&drain_on(&adapter, PATIENCE).await));
    assert_eq!(cluster.deletions(), ["web"]);
}

/// The obstacle is a budget in the making, with the time of the next attempt.
fn awaits_budget(obstacle: &PodObstacle) {
    let PodObstacle::BudgetPending { message, until } = obstacle else { panic!("{obstacle:?}") };
    assert!(message.contains("web-budget"), "{message}");
    let now = Utc::now();
    assert!(now < *until && *until <= now + Duration::from_secs(10), "{until}");
}

/// What an admission webhook refuses in the dry run, it would refuse later too, and pods would have been evicted in vain.
#[tokio::test]
async fn pod_that_a_webhook_denies_ends_the_check() {
    let cluster = Cluster::start().await.protecting(Some(json!({ "matchLabels": { "team": "other" } })));
    cluster.add("a");
    cluster.add("web");
    cluster.server.plan(Fault::Slow(Duration::ZERO), "create", EVICTIONS, 1);
    cluster.server.plan(Fault::Status(403), "create", EVICTIONS, 1);
    let outcome = cluster.drain().await;
    assert_eq!(names(left(&outcome)), ["web"]);
    assert!(matches!(left(&outcome)[0].obstacle, PodObstacle::Denied { .. }), "{outcome:?}");
    assert_eq!(cluster.pod_writes(), 0);
}

/// A webhook that refuses for now, as that of `KubeVirt` does while it moves the machine of a pod away, says so in the dry run too.
#[tokio::test]
async fn pod_that_a_webhook_moves_away_is_waited_for() {
    let cluster = Cluster::start().await;
    cluster.add("a");
    cluster.add("web");
    // One dry run, and the first eviction.
    cluster.server.plan(Fault::Status(429), "create", EVICTIONS, 1);
    cluster.server.plan(Fault::Slow(Duration::ZERO), "create", EVICTIONS, 1);
    cluster.server.plan(Fault::Status(429), "create", EVICTIONS, 1);
    assert!(is_drained(&cluster.drain().await));
}

#[tokio::test]
async fn cut_connections_are_survived() {
    for fault in [Fault::CutBefore, Fault::CutAfter, Fault::Status(500), Fault::Status(503)] {
        for (verb, resource) in [("create", EVICTIONS), ("list", "pods"), ("get", "nodes")] {
            let cluster = Cluster::start().await;
            cluster.add("a");
            cluster.add("b");
            cluster.server.plan(fault, verb, resource, 2);
            assert!(is_drained(&cluster.drain().await), "{fault:?} {verb} {resource}");
        }
    }
}

/// What it says of the node cannot be written on, so that nothing is begun, and the drain goes on once it tells the truth.
#[tokio::test]
async fn server_that_lies_about_versions_is_not_believed() {
    let cluster = Cluster::start().await;
    cluster.add("web");
    cluster.server.plan(Fault::WrongVersion, "get", "nodes", usize::MAX);
    let adapter = cluster.adapter();
    let outcome = carry_out(&adapter, check(false)).await;
    let NodeOutcome::Refused { detail } = &outcome else { panic!("{outcome:?}") };
    assert!(detail.contains("changed"), "{detail}");
    let node = cluster.server.object(NODES, "", NODE).unwrap();
    assert_eq!((&node["spec"]["unschedulable"], cluster.evictions().len()), (&Value::Null, 0));
    cluster.server.heal();
    assert!(is_drained(&cluster.drain().await));
    assert_eq!(cluster.evictions(), ["web"]);
}

/// What cannot be asked about one pod is not asked about the next one, but another one has the first turn of the next round.
#[tokio::test]
async fn pod_that_gets_no_answer_holds_up_no_other() {
    let cluster = Cluster::start().await;
    for name in ["a", "b"] {
        cluster.add(name);
    }
    let adapter = cluster.adapter();
    assert_eq!(carry_out(&adapter, check(false)).await, NodeOutcome::Clear);
    cluster.server.plan(Fault::CutBefore, "create", EVICTIONS, 1);
    let outcome = carry_out(&adapter, evict(true)).await;
    assert!(matches!(outcome, NodeOutcome::Unreachable { .. }), "{outcome:?}");
    carry_out(&adapter, evict(true)).await;
    assert_eq!(cluster.evictions(), ["a", "b", "a"]);
}

#[tokio::test]
async fn replaced_pod_is_listed_before_it_is_evicted() {
    let cluster = Cluster::start().await;
    let pod = Pod::new("default", "db-0").on(NODE).owned_by("StatefulSet", "db");
    cluster.server.add_pod(&pod);
    let replace = async {
        slow_eviction_begins(&cluster, 1).await;
        cluster.server.remove(PODS, "default", "db-0");
        cluster.server.add_pod(&pod);
    };
    cluster.cordon().await;
    let (outcome, ()) = tokio::join!(cluster.drain(), replace);
    assert!(is_drained(&outcome));
    let mut calls = cluster.server.calls();
    calls.retain(|call| call.resource != "events");
    let what: Vec<String> =
        calls.iter().map(|call| format!("{} {}", call.verb, call.full_resource())).collect();
    // The cordon is looked at first.
    let round = ["get nodes", "list pods"];
    let evicting = [&round[..], &["create pods/eviction"]].concat();
    // The dry run comes first.
    assert_eq!(what, [&evicting[..], &evicting, &evicting, &round].concat());
}

#[tokio::test]
async fn pod_of_two_budgets_is_named() {
    // Not even where pods may be deleted.
    let cluster = Cluster::start().await.protecting(Some(json!({ "matchLabels": { "team": "other" } })));
    cluster.add("web");
    cluster.add("other");
    let spec = json!({ "minAvailable": 0, "selector": { "matchLabels": { "app": "web" } } });
    for name in ["first", "second"] {
        cluster.server.add_budget("default", name, &spec);
    }
    let expected = PodObstacle::SeveralBudgets { budgets: vec!["first".to_owned(), "second".to_owned()] };
    let outcome = cluster.drain().await;
    assert_eq!((names(left(&outcome)), &left(&outcome)[0].obstacle), (vec!["web"], &expected));
    assert_eq!(cluster.pod_writes(), 0);

    // The second budget may come later, and go again.
    cluster.server.remove(BUDGETS, "default", "second");
    cluster.server.forget_calls();
    let add = async {
        slow_eviction_begins(&cluster, 2).await;
        cluster.server.add_budget("default", "second", &spec);
    };
    let adapter = cluster.adapter();
    let (outcome, ()) = tokio::join!(drain(&adapter, Duration::from_secs(1)), add);
    assert_eq!((names(left(&outcome)), &left(&outcome)[0].obstacle), (vec!["web"], &expected));
    assert_eq!(cluster.called("delete", "pods"), [""; 0]);
    cluster.server.remove(BUDGETS, "default", "second");
    assert!(is_drained(&drain_on(&adapter, PATIENCE).await));
}

#[tokio::test]
async fn own_pods_are_named_and_stay() {
    let cluster = Cluster::start().await;
    let nats = Pod::new("default", "nats-0").on(NODE).owned_by("StatefulSet", "nats");
    cluster.server.add_pod(&nats.label("app.kubernetes.io/part-of", "os-upgrade"));
    cluster.add("web");
    let preview = cluster.preview().await;
    assert_eq!((preview.blocked.len(), preview.own[0].name.as_str()), (0, "nats-0"));
    assert_eq!(preview.own[0].owner.as_deref(), Some("StatefulSet/nats"));
    assert!(is_drained(&cluster.drain().await));
    assert_eq!(cluster.evictions(), ["web"]);
}

#[tokio::test]
async fn preview_changes_nothing_and_tells_pods_apart() {
    let cluster = Cluster::start().await;
    cluster.server.end_pods(NODE, false);
    cluster.add("ending");
    cluster.cordon().await;
    assert_eq!(names(left(&carry_out(&cluster.adapter(), evict(true)).await)), ["ending"]);
    cluster.add("web");
    let before = cluster.writes();
    let preview = cluster.preview().await;
    assert_eq!((preview.evicted[0].name.as_str(), preview.evicted.len()), ("web", 1));
    assert_eq!((preview.awaited[0].name.as_str(), preview.awaited.len()), ("ending", 1));
    assert_eq!((preview.deleted.len(), preview.blocked.len(), preview.own.len()), (0, 0, 0));
    assert_eq!(cluster.writes(), before);
}

#[tokio::test]
async fn lists_are_complete_and_fresh() {
    let cluster = Cluster::start().await;
    for index in 0..300 {
        let name = format!("agent-{index:03}");
        cluster.server.add_pod(&Pod::new("default", &name).on(NODE).owned_by("DaemonSet", "agent"));
    }
    // The cache does not know of the last pod, nor of its end.
    cluster.server.stall_cache(true);
    cluster.add("web");
    assert!(is_drained(&cluster.drain().await));
    assert_eq!(cluster.evictions(), ["web"]);
}

#[tokio::test]
async fn list_begins_anew_when_its_token_expires() {
    let cluster = Cluster::start().await;
    for index in 0..300 {
        let name = format!("agent-{index:03}");
        cluster.server.add_pod(&Pod::new("default", &name).on(NODE).owned_by("DaemonSet", "agent"));
    }
    cluster.add("web");
    cluster.server.plan(Fault::Slow(Duration::ZERO), "list", "pods", 1);
    cluster.server.plan(Fault::Slow(Duration::from_millis(300)), "list", "pods", 1);
    let expire = async {
        eventually("the page", async || (cluster.calls("list", "pods").len() == 2).then_some(())).await;
        cluster.server.expire_continue_tokens();
    };
    let (outcome, ()) = tokio::join!(cluster.drain(), expire);
    assert!(is_drained(&outcome));
    // The first list twice, two others once, two pages each.
    assert_eq!(cluster.calls("list", "pods").len(), 8);
}

#[tokio::test]
async fn requests_are_paced_and_all_pods_have_their_turn() {
    let mut cluster = Cluster::start().await;
    let pause = Duration::from_millis(25);
    cluster.config.pace = Pace { retry: pause, ..cluster.config.pace };
    cluster.config.requests = requests_per_second(40);
    cluster.add_limited("web", 40);
    let adapter = cluster.adapter();
    assert_eq!(carry_out(&adapter, check(false)).await, NodeOutcome::Clear);
    cluster.server.forget_calls();
    let begin = Instant::now();
    for round in 1..=2_u32 {
        carry_out(&adapter, evict(true)).await;
        // No list is old.
        assert_eq!(cluster.evictions().len(), 20 * usize::try_from(round).unwrap());
        assert!(begin.elapsed() >= pause * 21 * round, "{:?}", begin.elapsed());
    }
    let mut tried = cluster.evictions();
    tried.sort();
    tried.dedup();
    assert_eq!(tried.len(), 40);
}

/// Nobody ends a pod whose kubelet is silent. It is waited for, unless the settings say how long.
#[tokio::test]
async fn silent_kubelet_is_named_and_its_pods_may_be_skipped() {
    let mut cluster = Cluster::start().await;
    cluster.config.pace = Pace { grace: Some(Duration::from_secs(1)), ..cluster.config.pace };
    cluster.add("web");
    let adapter = cluster.adapter();
    assert_eq!(carry_out(&adapter, check(false)).await, NodeOutcome::Clear);
    cluster.server.stop_kubelet(NODE);
    // A kubelet that has just stopped may be restarted.
    let is_silent = |outcome: &NodeOutcome| {
        let NodeOutcome::Remaining { pods } = outcome else { panic!("{outcome:?}") };
        pods.kubelet_silent
    };
    assert!(!is_silent(&carry_out(&adapter, evict(true)).await));
    cluster.server.lose_node(NODE);
    let outcome = carry_out(&adapter, evict(true)).await;
    assert!(is_silent(&outcome));
    assert_eq!(left(&outcome)[0].obstacle, PodObstacle::Terminating);

    let skipping = async |after: Duration| {
        let config = cluster.config.clone();
        let pace = Pace { skip_terminating_after: Some(after), ..config.pace };
        let adapter = cluster::Cluster::new(ClusterConfig { pace, ..config });
        carry_out(&adapter, evict(true)).await
    };
    assert!(is_silent(&skipping(Duration::from_hours(1)).await));
    eventually("the pod's time is over", async || is_drained(&skipping(Duration::ZERO).await).then_some(()))
        .await;
    // Only there: a kubelet that speaks ends its pods.
    cluster.server.ready_node(NODE);
    assert!(!is_silent(&skipping(Duration::ZERO).await));
}
