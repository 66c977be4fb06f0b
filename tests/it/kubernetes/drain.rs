//! The adapter's drains at a server: which pods go, which stay, and what is said of those that do.

use std::time::Duration;

use chrono::Utc;
use harness::kubernetes::Fault;
use harness::kubernetes::objects::Pod;
use harness::kubernetes::resource::{BUDGETS, NODES, PODS};
use harness::wait::{PATIENCE, eventually};
use kube::core::Selector;
use os_upgrade_adapters::kubernetes::drain::{DrainOutcome, Pace, Reason};
use os_upgrade_adapters::kubernetes::error::Error;
use os_upgrade_adapters::kubernetes::mark::Standing;
use os_upgrade_adapters::kubernetes::permit::{Interrupted, Permit, Stop};
use os_upgrade_adapters::kubernetes::plan::{Controller, OwnPods, Policy};
use os_upgrade_adapters::kubernetes::rights::GET_NODE;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::adapter::{Cluster, NODE, USER, claim, names, permit, selector};

const EVICTIONS: &str = "pods/eviction";

/// The reason of a refusal by the budget of `Cluster::forbid`.
fn refused(app: &str) -> Reason {
    let message = format!("The disruption budget {app}-budget needs 1 healthy pods and has 1 currently");
    Reason::Budget { budgets: vec![format!("{app}-budget")], message, unread: None }
}

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
    let report = cluster.drain().await;
    assert_eq!((report.outcome, report.remaining), (DrainOutcome::Drained, vec![]));
    assert_eq!((report.evicted, report.deleted), (4, 0));
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
    for (protected, is_drained) in
        [(None, false), (Some(json!({})), false), (Some(shop), false), (Some(other), true)]
    {
        let cluster = Cluster::start().await.protecting(protected.clone());
        cluster.server.add_namespace("shop", &json!({ "team": "shop" }));
        cluster
            .server
            .add_pod(&Pod::new("shop", "web").on(NODE).owned_by("ReplicaSet", "web").label("app", "web"));
        cluster.forbid("shop", "web");
        let preview = cluster.dry_run().await.unwrap();
        let begin = Utc::now();
        let report = cluster.drain().await;
        if is_drained {
            assert_eq!(preview.blocked, []);
            assert_eq!((report.outcome, report.remaining), (DrainOutcome::Drained, vec![]));
            assert_eq!((report.evicted, report.deleted), (0, 1));
            continue;
        }
        assert_eq!(names(&preview.blocked), ["web"]);
        assert_eq!(report.outcome, DrainOutcome::Blocked, "{protected:?}");
        assert_eq!((report.evicted, report.deleted, report.remaining.len()), (0, 0, 1));
        let web = &report.remaining[0];
        let owner =
            Controller { group: "apps".to_owned(), kind: "ReplicaSet".to_owned(), name: "web".to_owned() };
        assert_eq!((web.controller.as_ref(), &web.reason), (Some(&owner), &refused("web")));
        assert!(begin <= web.since.unwrap(), "{web:?}");
        assert_eq!((cluster.evictions().len(), cluster.called("delete", "pods").len()), (0, 0));
    }
}

#[tokio::test]
async fn running_job_blocks() {
    let cluster = Cluster::start().await;
    cluster.add("web");
    cluster.server.add_pod(&Pod::new("default", "backup").on(NODE).owned_by("Job", "backup"));
    assert_eq!(names(&cluster.dry_run().await.unwrap().blocked), ["backup"]);
    let report = cluster.drain().await;
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::Blocked, 0));
    assert_eq!(names(&report.remaining), ["backup", "web"]);
    assert_eq!(report.remaining[0].reason, Reason::JobRunning);
    assert_eq!(report.remaining[1].reason, Reason::NotTried);
    assert_eq!(cluster.writes(), 0);
}

#[tokio::test]
async fn job_that_is_not_protected_is_evicted() {
    let mut cluster = Cluster::start().await;
    let protected = selector(json!({ "matchLabels": { "job": "backup" } }));
    cluster.policy = Policy::new(None, Some(protected), Vec::new()).unwrap();
    let job = |name: &str| Pod::new("default", name).on(NODE).owned_by("Job", name).label("job", name);
    cluster.server.add_pod(&job("report"));
    assert_eq!(cluster.drain().await.outcome, DrainOutcome::Drained);
    assert_eq!(cluster.evictions(), ["report"]);
    cluster.server.add_pod(&job("backup"));
    assert_eq!(cluster.drain().await.outcome, DrainOutcome::Blocked);
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
    assert_eq!(cluster.drain().await.outcome, DrainOutcome::Drained);
    assert_eq!(phases.map(uid), before);
    assert_eq!(cluster.writes(), 0);
}

#[tokio::test]
async fn refused_dry_run_evicts_nothing() {
    let cluster = Cluster::start().await;
    for name in ["a", "b", "c", "d"] {
        cluster.add(name);
    }
    cluster.forbid("default", "b");
    let preview = cluster.dry_run().await.unwrap();
    assert_eq!((names(&preview.blocked), &preview.blocked[0].reason), (vec!["b"], &refused("b")));
    assert_eq!(cluster.calls("create", EVICTIONS).len(), 4);
    let report = cluster.drain().await;
    assert_eq!((report.outcome, report.evicted, report.deleted), (DrainOutcome::Blocked, 0, 0));
    assert_eq!(names(&report.remaining), ["a", "b", "c", "d"]);
    assert_eq!(report.remaining[0].reason, Reason::NotTried);
    assert_eq!(report.remaining[1].reason, refused("b"));
    // Each was asked for once.
    assert_eq!((cluster.called("create", EVICTIONS).len(), cluster.writes()), (4, 0));
}

/// Some controllers relax a budget once they see the cordon.
#[tokio::test]
async fn budget_may_relax_under_the_cordon() {
    let mut cluster = Cluster::start().await;
    cluster.pace.retries = 1000;
    cluster.add("a");
    cluster.add("b");
    cluster.forbid("default", "b");
    let relax = async {
        eventually("two dry runs", async || (cluster.called("create", EVICTIONS).len() >= 4).then_some(()))
            .await;
        assert_eq!(cluster.writes(), 0);
        cluster.server.remove(BUDGETS, "default", "b-budget");
    };
    let (report, ()) = tokio::join!(cluster.drain(), relax);
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::Drained, 2));

    // A job that begins meanwhile ends the wait.
    cluster.add("b");
    cluster.forbid("default", "b");
    let begin = async {
        eventually("a dry run", async || (!cluster.called("create", EVICTIONS).is_empty()).then_some(()))
            .await;
        cluster.server.add_pod(&Pod::new("default", "job").on(NODE).owned_by("Job", "job"));
    };
    let (report, ()) = tokio::join!(cluster.drain(), begin);
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::Blocked, 0));
    assert_eq!(names(&report.remaining), ["b", "job"]);
}

/// A webhook that does not support dry runs refuses them all.
#[tokio::test]
async fn webhook_that_refuses_dry_runs_blocks_none() {
    let cluster = Cluster::start().await;
    cluster.add("web");
    cluster.server.plan(Fault::Status(400), "create", EVICTIONS, 1);
    let report = cluster.drain().await;
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::Drained, 1));
}

#[tokio::test]
async fn blocked_pod_holds_up_no_other() {
    let cluster = Cluster::start().await;
    cluster.add_limited("a", 2);
    for name in ["b", "c", "d"] {
        cluster.add(name);
    }
    let report = cluster.drain_in_vain().await;
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::TimedOut, 4));
    assert_eq!(names(&report.remaining), ["a-01"]);
    let web = &report.remaining[0];
    assert!(matches!(&web.reason, Reason::Budget { budgets, .. } if *budgets == ["a-budget"]), "{web:?}");
    assert!(web.since.unwrap() < Utc::now() - Duration::from_millis(200), "{web:?}");
    assert!(cluster.evictions().len() >= 6, "it is tried again");
}

#[tokio::test]
async fn budget_that_can_never_allow_is_named() {
    let cluster = Cluster::start().await;
    cluster.server.add_pod(&Pod::new("default", "bare").on(NODE).label("app", "bare"));
    let spec = json!({ "maxUnavailable": 1, "selector": { "matchLabels": { "app": "bare" } } });
    cluster.server.add_budget("default", "bare", &spec);
    let preview = cluster.dry_run().await.unwrap();
    assert_eq!(preview.blocked[0].reason, Reason::UncountedPods { budget: "bare".to_owned() });
}

#[tokio::test]
async fn budgets_that_cannot_be_read_hold_up_no_other() {
    let cluster = Cluster::start().await;
    cluster.add_limited("a", 2);
    cluster.add("b");
    cluster.server.plan(Fault::Status(500), "list", "poddisruptionbudgets", usize::MAX);
    let report = cluster.drain_in_vain().await;
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::TimedOut, 2));
    let reason = &report.remaining[0].reason;
    let Reason::Budget { budgets, unread: Some(Error::ServerFailed { .. }), .. } = reason else {
        panic!("{reason:?}")
    };
    assert_eq!(*budgets, [""; 0]);
}

#[tokio::test]
async fn job_that_begins_later_is_waited_for() {
    let cluster = Cluster::start().await;
    cluster.server.add_pod(&Pod::new("default", "job").on(NODE).owned_by("Job", "job").phase("Pending"));
    cluster.add("slow");
    cluster.server.end_pods(NODE, false);
    let cancellation = CancellationToken::new();
    let phase = |phase: &'static str| {
        cluster.server.edit(PODS, "default", "job", |pod| pod["status"]["phase"] = json!(phase));
    };
    let begin = async {
        eventually("the eviction", async || (cluster.writes() > 0).then_some(())).await;
        phase("Running");
        cluster.server.end_pods(NODE, true);
        let lists = cluster.calls("list", "pods").len();
        eventually("more lists", async || (cluster.calls("list", "pods").len() >= lists + 3).then_some(()))
            .await;
        cancellation.cancel();
    };
    let permit = Permit::new(Instant::now() + PATIENCE, cancellation.clone(), &|| true);
    let (report, ()) = tokio::join!(cluster.drain_with(&permit), begin);
    assert_eq!((report.outcome, names(&report.remaining)), (DrainOutcome::Cancelled, vec!["job"]));
    assert_eq!(report.remaining[0].reason, Reason::JobRunning);
    phase("Succeeded");
    assert_eq!(cluster.drain().await.outcome, DrainOutcome::Drained);
    assert!(cluster.is_there("job"));
}

#[tokio::test]
async fn slow_pod_is_waited_for() {
    let cluster = Cluster::start().await;
    cluster.add("slow");
    cluster.server.end_pods(NODE, false);
    let report = cluster.drain_in_vain().await;
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::TimedOut, 1));
    let reason = &report.remaining[0].reason;
    assert!(matches!(reason, Reason::Terminating { until } if *until > Utc::now()), "{reason:?}");
    // It is evicted once.
    assert_eq!(cluster.evictions(), ["slow"]);

    let end = async {
        eventually("a list", async || (!cluster.calls("list", "pods").is_empty()).then_some(())).await;
        cluster.server.end_pod("default", "slow");
    };
    let (report, ()) = tokio::join!(cluster.drain(), end);
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::Drained, 0));
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
    let (report, ()) = tokio::join!(cluster.drain(), arrival);
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::Drained, 2));
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
    let report = cluster.drain().await;
    assert_eq!((report.outcome, report.evicted, report.deleted), (DrainOutcome::Drained, 1, 0));
    assert!(begin.elapsed() >= Duration::from_secs(2), "it waits as long as the server asks for");
    assert_eq!(cluster.called("create", EVICTIONS).len(), 4);
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
    let permit = permit(Duration::from_secs(2));
    let (report, ()) = tokio::join!(cluster.drain_with(&permit), make);
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::TimedOut, 1));
    let reason = &report.remaining[0].reason;
    assert!(matches!(reason, Reason::Budget { budgets, .. } if *budgets == ["web-budget"]), "{reason:?}");
    // The server asks for ten seconds.
    assert_eq!(cluster.evictions(), ["a", "web"]);
}

#[tokio::test]
async fn cut_connections_are_survived() {
    for fault in [Fault::CutBefore, Fault::CutAfter, Fault::Status(500), Fault::Status(503)] {
        for (verb, resource) in [("create", EVICTIONS), ("list", "pods"), ("get", "nodes")] {
            let cluster = Cluster::start().await;
            cluster.add("a");
            cluster.add("b");
            cluster.cordon().await;
            cluster.server.plan(fault, verb, resource, 2);
            let report = cluster.drainer().drain(NODE, &claim(), &super::adapter::lasting()).await;
            assert_eq!(report.outcome, DrainOutcome::Drained, "{fault:?} {verb} {resource}");
        }
    }
}

#[tokio::test]
async fn unanswered_server_leaves_the_node_unknown() {
    let cluster = Cluster::start().await;
    cluster.add("web");
    cluster.cordon().await;
    cluster.server.plan(Fault::CutBefore, "*", "*", usize::MAX);
    let permit = permit(Duration::from_millis(300));
    let report = cluster.drainer().drain(NODE, &claim(), &permit).await;
    assert!(matches!(report.outcome, DrainOutcome::Unknown(Error::Unreachable { .. })), "{report:?}");
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
    let permit = super::adapter::lasting();
    let (drainer, claim) = (cluster.drainer(), claim());
    let (report, ()) = tokio::join!(drainer.drain(NODE, &claim, &permit), replace);
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::Drained, 1));
    let calls = cluster.server.calls();
    let what: Vec<String> =
        calls.iter().map(|call| format!("{} {}", call.verb, call.full_resource())).collect();
    let round = ["get nodes", "list pods"];
    let evicting = [&round[..], &["create pods/eviction"]].concat();
    // The dry run comes first.
    assert_eq!(what, [&evicting[..], &evicting, &evicting, &round].concat());
}

#[tokio::test]
async fn pod_of_two_budgets_is_named_and_not_asked_for_again() {
    // Not even where pods may be deleted.
    let cluster = Cluster::start().await.protecting(Some(json!({ "matchLabels": { "team": "other" } })));
    cluster.add("web");
    cluster.add("other");
    let spec = json!({ "minAvailable": 0, "selector": { "matchLabels": { "app": "web" } } });
    for name in ["first", "second"] {
        cluster.server.add_budget("default", name, &spec);
    }
    let expected = Reason::SeveralBudgets { budgets: vec!["first".to_owned(), "second".to_owned()] };
    let preview = cluster.dry_run().await.unwrap();
    assert_eq!((names(&preview.blocked), &preview.blocked[0].reason), (vec!["web"], &expected));
    let report = cluster.drain().await;
    assert_eq!((report.outcome, report.evicted, report.deleted), (DrainOutcome::Blocked, 0, 0));
    assert_eq!(report.remaining[1].reason, expected);

    // The second budget may come later.
    cluster.server.remove(BUDGETS, "default", "second");
    let add = async {
        slow_eviction_begins(&cluster, 2).await;
        cluster.server.add_budget("default", "second", &spec);
    };
    let permit = super::adapter::lasting();
    cluster.server.forget_calls();
    let (drainer, claim) = (cluster.drainer(), claim());
    let (report, ()) = tokio::join!(drainer.drain(NODE, &claim, &permit), add);
    assert_eq!((report.outcome, report.evicted, report.deleted), (DrainOutcome::Blocked, 1, 0));
    assert_eq!((names(&report.remaining), &report.remaining[0].reason), (vec!["web"], &expected));
    assert_eq!(cluster.evictions(), ["other", "web"]);
}

#[tokio::test]
async fn own_pods_are_named_and_stay() {
    let labels = Selector::from_iter([("app", "nats")]);
    let controller = Some("StatefulSet".to_owned());
    let own = OwnPods { namespace: "os-upgrade".to_owned(), controller, labels };
    let cluster = Cluster::start().await.owning(own);
    cluster.server.add_namespace("os-upgrade", &json!({}));
    let nats = Pod::new("os-upgrade", "nats-0").on(NODE).owned_by("StatefulSet", "nats").label("app", "nats");
    cluster.server.add_pod(&nats);
    cluster.add("web");
    let preview = cluster.dry_run().await.unwrap();
    assert_eq!((preview.blocked.len(), preview.own[0].name.as_str()), (0, "nats-0"));
    let report = cluster.drain().await;
    assert_eq!((report.outcome, report.own), (DrainOutcome::Drained, preview.own));
    assert_eq!(cluster.evictions(), ["web"]);
}

#[tokio::test]
async fn drain_stops_when_it_is_told_to() {
    let cluster = Cluster::start().await;
    cluster.add_limited("web", 2);
    let cancellation = CancellationToken::new();
    let soon = Instant::now() + Duration::from_mins(1);
    let permit = Permit::new(soon, cancellation.clone(), &|| true);
    let cancel = async {
        eventually("a refusal", async || (cluster.evictions().len() >= 3).then_some(())).await;
        cancellation.cancel();
    };
    cluster.cordon().await;
    let (drainer, claim) = (cluster.drainer(), claim());
    let (report, ()) = tokio::join!(drainer.drain(NODE, &claim, &permit), cancel);
    assert_eq!((report.outcome, names(&report.remaining)), (DrainOutcome::Cancelled, vec!["web-01"]));

    cluster.server.forget_calls();
    let report = drainer.drain(NODE, &claim, &permit).await;
    assert_eq!(report.outcome, DrainOutcome::Cancelled);
    let deposed = Permit::new(soon, CancellationToken::new(), &|| false);
    assert_eq!(drainer.drain(NODE, &claim, &deposed).await.outcome, DrainOutcome::NotLeading);
    assert_eq!(drainer.dry_run(NODE, &deposed).await, Err(Interrupted::Stopped(Stop::NotLeading)));
    let late = Permit::new(Instant::now(), CancellationToken::new(), &|| true);
    assert_eq!(drainer.drain(NODE, &claim, &late).await.outcome, DrainOutcome::TimedOut);
    assert_eq!(cluster.writes(), 0);
}

#[tokio::test]
async fn empty_node_is_drained_however_late() {
    let cluster = Cluster::start().await;
    let report = cluster.drain_with(&permit(Duration::ZERO)).await;
    assert_eq!(report.outcome, DrainOutcome::Drained);
}

#[tokio::test]
async fn only_a_node_of_ours_is_drained() {
    let cluster = Cluster::start().await;
    cluster.add("web");
    let permit = super::adapter::lasting();
    let report = cluster.drainer().drain(NODE, &claim(), &permit).await;
    assert_eq!(report.outcome, DrainOutcome::NotCordoned(Standing::Unmarked));
    assert_eq!(cluster.writes(), 0);

    cluster.server.end_pods(NODE, false);
    cluster.cordon().await;
    let uncordon = async {
        eventually("the eviction", async || (cluster.writes() > 0).then_some(())).await;
        cluster.server.edit(NODES, "", NODE, |node| node["spec"]["unschedulable"] = json!(false));
    };
    let (drainer, claim) = (cluster.drainer(), claim());
    let (report, ()) = tokio::join!(drainer.drain(NODE, &claim, &permit), uncordon);
    assert_eq!(report.outcome, DrainOutcome::NotCordoned(Standing::ForeignUncordon));
}

#[tokio::test]
async fn node_that_is_gone_is_not_drained() {
    let cluster = Cluster::start().await;
    cluster.add("web");
    cluster.server.end_pods(NODE, false);
    cluster.cordon().await;
    let remove = async {
        eventually("the eviction", async || (cluster.writes() > 0).then_some(())).await;
        cluster.server.remove(NODES, "", NODE);
    };
    let permit = super::adapter::lasting();
    let (drainer, claim) = (cluster.drainer(), claim());
    let (report, ()) = tokio::join!(drainer.drain(NODE, &claim, &permit), remove);
    let is_gone = |error: &Error| matches!(error, Error::NotFound { right: GET_NODE, .. });
    assert!(matches!(&report.outcome, DrainOutcome::Unknown(error) if is_gone(error)), "{report:?}");
    let error = cluster.dry_run().await.unwrap_err();
    assert!(matches!(&error, Interrupted::Failed(error) if is_gone(error)), "{error:?}");
}

#[tokio::test]
async fn expired_token_ends_a_drain() {
    let cluster = Cluster::start().await;
    cluster.add("web");
    cluster.server.end_pods(NODE, false);
    cluster.cordon().await;
    let expire = async {
        eventually("the eviction", async || (cluster.writes() > 0).then_some(())).await;
        cluster.server.renew_token(USER);
    };
    let permit = super::adapter::lasting();
    let (drainer, claim) = (cluster.drainer(), claim());
    let (report, ()) = tokio::join!(drainer.drain(NODE, &claim, &permit), expire);
    assert_eq!(report.outcome, DrainOutcome::Unknown(Error::Unauthorized));
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
    let report = cluster.drain().await;
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::Drained, 1));
}

#[tokio::test]
async fn list_begins_anew_when_its_token_expires() {
    let cluster = Cluster::start().await;
    for index in 0..300 {
        let name = format!("agent-{index:03}");
        cluster.server.add_pod(&Pod::new("default", &name).on(NODE).owned_by("DaemonSet", "agent"));
    }
    cluster.add("web");
    cluster.cordon().await;
    cluster.server.plan(Fault::Slow(Duration::ZERO), "list", "pods", 1);
    cluster.server.plan(Fault::Slow(Duration::from_millis(300)), "list", "pods", 1);
    let expire = async {
        eventually("the page", async || (cluster.calls("list", "pods").len() == 2).then_some(())).await;
        cluster.server.expire_continue_tokens();
    };
    let permit = super::adapter::lasting();
    let (drainer, claim) = (cluster.drainer(), claim());
    let (report, ()) = tokio::join!(drainer.drain(NODE, &claim, &permit), expire);
    assert_eq!((report.outcome, report.evicted), (DrainOutcome::Drained, 1));
    // The first list twice, two others once, two pages each.
    assert_eq!(cluster.calls("list", "pods").len(), 8);
}

#[tokio::test]
async fn requests_are_paced() {
    let mut cluster = Cluster::start().await;
    let pause = Duration::from_millis(25);
    cluster.pace = Pace { request: pause, round: pause, retry: pause, retries: 0 };
    cluster.add_limited("web", 40);
    let cancellation = CancellationToken::new();
    let cancel = async {
        eventually("evictions", async || (cluster.evictions().len() >= 60).then_some(())).await;
        cancellation.cancel();
    };
    let permit = Permit::new(Instant::now() + PATIENCE, cancellation.clone(), &|| true);
    cluster.cordon().await;
    let begin = Instant::now();
    let (drainer, claim) = (cluster.drainer(), claim());
    let (report, ()) = tokio::join!(drainer.drain(NODE, &claim, &permit), cancel);
    let calls = u32::try_from(cluster.server.calls().len()).unwrap();
    assert!(begin.elapsed() >= pause * (calls - 1), "{calls} calls in {:?}", begin.elapsed());
    // All pods have their turn, and no list is old.
    assert_eq!((report.outcome, report.remaining.len()), (DrainOutcome::Cancelled, 39));
    let untried: Vec<_> = report.remaining.iter().filter(|pod| pod.reason == Reason::NotTried).collect();
    assert!(untried.is_empty(), "{untried:?}");
    assert!(cluster.calls("list", "pods").len() >= 4);
}
