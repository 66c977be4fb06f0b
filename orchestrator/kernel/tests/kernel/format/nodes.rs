//! The Kubernetes nodes of hosts as JSON.

use os_upgrade_kernel::{
    Node, NodeFence, NodeStage, NodeStep, NodeWait, Pod, PodObstacle, Pods, RunHost, Slot, Volumes,
};

use super::*;

fn pods(obstacle: PodObstacle) -> Pods {
    let pod = Pod {
        namespace: "shop".to_owned(),
        name: "db-0".to_owned(),
        owner: Some("StatefulSet/db".to_owned()),
        obstacle,
        since: start(),
    };
    Pods { count: 2, first: vec![pod], kubelet_silent: false }
}

macro_rules! pods_with {
    ($obstacle:literal) => {
        concat!(
            r#"{"count":2,"first":[{"namespace":"shop","name":"db-0","owner":"StatefulSet/db","obstacle":"#,
            $obstacle,
            r#","since":"2026-11-21T01:00:00Z"}]}"#,
        )
    };
}

fn steps() -> Vec<(NodeStep, &'static str)> {
    let fence = NodeFence { restored: 0, sequence: 7 };
    vec![
        (
            NodeStep::Cordoned { fence, was_unschedulable: false },
            r#"{"kind":"cordoned","fence":{"restored":0,"sequence":7}}"#,
        ),
        (
            NodeStep::Cordoned { fence, was_unschedulable: true },
            r#"{"kind":"cordoned","fence":{"restored":0,"sequence":7},"was-unschedulable":true}"#,
        ),
        (NodeStep::EvictionBegan, r#"{"kind":"eviction-began"}"#),
        (NodeStep::RecheckBegan, r#"{"kind":"recheck-began"}"#),
        (
            NodeStep::Waiting { waits: NodeWait::NotReady },
            r#"{"kind":"waiting","waits":{"kind":"not-ready"}}"#,
        ),
        (NodeStep::Drained { boot_id: None }, r#"{"kind":"drained"}"#),
        (NodeStep::Drained { boot_id: Some("one".to_owned()) }, r#"{"kind":"drained","boot-id":"one"}"#),
        (NodeStep::UncordonDue { release: None, reason: None }, r#"{"kind":"uncordon-due"}"#),
        (
            NodeStep::UncordonDue {
                release: Some(ReleaseCause::DrainGivenUp),
                reason: Some(Reason::ClusterUnseen),
            },
            r#"{"kind":"uncordon-due","release":"drain-given-up","reason":{"kind":"cluster-unseen"}}"#,
        ),
        (
            NodeStep::UncordonRequested { actor: "eve".to_owned(), reason: "mended".to_owned() },
            r#"{"kind":"uncordon-requested","actor":"eve","reason":"mended"}"#,
        ),
        (NodeStep::Uncordoned, r#"{"kind":"uncordoned"}"#),
    ]
}

#[test]
fn node_steps() {
    let variant = |step: &NodeStep| match step {
        NodeStep::Cordoned { .. } => 0,
        NodeStep::EvictionBegan => 1,
        NodeStep::RecheckBegan => 2,
        NodeStep::Waiting { .. } => 3,
        NodeStep::Drained { .. } => 4,
        NodeStep::UncordonDue { .. } => 5,
        NodeStep::UncordonRequested { .. } => 6,
        NodeStep::Uncordoned => 7,
    };
    let table = steps();
    check(&table, variant, 8);
    for (step, json) in &table {
        assert!(json.starts_with(&format!(r#"{{"kind":"{}""#, step.name())), "{json}");
    }
}

#[test]
fn node_waits() {
    let budgets = || vec!["db".to_owned()];
    let table = [
        (NodeWait::NotReady, r#"{"kind":"not-ready"}"#),
        (
            NodeWait::Unreachable { why: NoAnswer::TimedOut },
            r#"{"kind":"unreachable","why":{"kind":"timed-out"}}"#,
        ),
        (NodeWait::Refused { detail: "no".to_owned() }, r#"{"kind":"refused","detail":"no"}"#),
        (
            NodeWait::Pods { pods: Pods { count: 2, first: Vec::new(), kubelet_silent: true } },
            r#"{"kind":"pods","pods":{"count":2,"first":[],"kubelet-silent":true}}"#,
        ),
        (
            NodeWait::ForeignMark { fence: NodeFence { restored: 0, sequence: 7 } },
            r#"{"kind":"foreign-mark","fence":{"restored":0,"sequence":7}}"#,
        ),
        (
            NodeWait::Pods { pods: pods(PodObstacle::Requested) },
            concat!(r#"{"kind":"pods","pods":"#, pods_with!(r#"{"kind":"requested"}"#), "}"),
        ),
        (
            NodeWait::Volumes { volumes: Volumes { count: 2, first: vec!["v".to_owned()], staying: 0 } },
            r#"{"kind":"volumes","volumes":{"count":2,"first":["v"],"staying":0}}"#,
        ),
    ];
    let variant = |wait: &NodeWait| match wait {
        NodeWait::NotReady => 0,
        NodeWait::Unreachable { .. } => 1,
        NodeWait::Refused { .. } => 2,
        NodeWait::Pods { .. } => 3,
        NodeWait::Volumes { .. } => 4,
        NodeWait::ForeignMark { .. } => 5,
    };
    check(&table, variant, 6);

    let detail = || "no".to_owned();
    let table = [
        (PodObstacle::NotTried, r#"{"kind":"not-tried"}"#),
        (PodObstacle::Requested, r#"{"kind":"requested"}"#),
        (PodObstacle::Terminating, r#"{"kind":"terminating"}"#),
        (PodObstacle::JobRunning, r#"{"kind":"job-running"}"#),
        (PodObstacle::Budget { budgets: budgets() }, r#"{"kind":"budget","budgets":["db"]}"#),
        (
            PodObstacle::UncountedPods { budget: "db".to_owned() },
            r#"{"kind":"uncounted-pods","budget":"db"}"#,
        ),
        (
            PodObstacle::SeveralBudgets { budgets: budgets() },
            r#"{"kind":"several-budgets","budgets":["db"]}"#,
        ),
        (PodObstacle::Denied { detail: detail() }, r#"{"kind":"denied","detail":"no"}"#),
        (PodObstacle::MissingRight { detail: detail() }, r#"{"kind":"missing-right","detail":"no"}"#),
        (PodObstacle::NamespaceEnds, r#"{"kind":"namespace-ends"}"#),
        (PodObstacle::Failed { detail: detail() }, r#"{"kind":"failed","detail":"no"}"#),
        (
            PodObstacle::BudgetPending { message: "wait".to_owned(), until: start() },
            r#"{"kind":"budget-pending","message":"wait","until":"2026-11-21T01:00:00Z"}"#,
        ),
        (PodObstacle::Awaited, r#"{"kind":"awaited"}"#),
        (
            PodObstacle::UnreadBudget { message: "no".to_owned() },
            r#"{"kind":"unread-budget","message":"no"}"#,
        ),
        (
            PodObstacle::Finalizers { finalizers: vec!["f".to_owned()] },
            r#"{"kind":"finalizers","finalizers":["f"]}"#,
        ),
    ];
    let variant = |obstacle: &PodObstacle| match obstacle {
        PodObstacle::NotTried => 0,
        PodObstacle::Requested => 1,
        PodObstacle::Terminating => 2,
        PodObstacle::JobRunning => 3,
        PodObstacle::Budget { .. } => 4,
        PodObstacle::UncountedPods { .. } => 5,
        PodObstacle::SeveralBudgets { .. } => 6,
        PodObstacle::Denied { .. } => 7,
        PodObstacle::MissingRight { .. } => 8,
        PodObstacle::NamespaceEnds => 9,
        PodObstacle::Failed { .. } => 10,
        PodObstacle::BudgetPending { .. } => 11,
        PodObstacle::Awaited => 12,
        PodObstacle::UnreadBudget { .. } => 13,
        PodObstacle::Finalizers { .. } => 14,
    };
    check(&table, variant, 15);
}

/// A state with everything that a node can have, as a snapshot keeps it.
#[test]
fn nodes() {
    let fence = Some(NodeFence { restored: 1, sequence: 7 });
    let node = |stage| Node {
        stage,
        since: start(),
        fence,
        boot_id: None,
        left: None,
        waits: None,
        was_unschedulable: false,
        takes_over: None,
    };
    let table = [
        (node(NodeStage::Checking), r#""stage":{"kind":"checking"}"#),
        (node(NodeStage::Evicting), r#""stage":{"kind":"evicting"}"#),
        (node(NodeStage::Drained), r#""stage":{"kind":"drained"}"#),
        (node(NodeStage::Rechecking), r#""stage":{"kind":"rechecking"}"#),
        (
            node(NodeStage::Uncordoning {
                release: Some(ReleaseCause::Upgraded),
                reason: Some(Reason::CordonLost { detail: "gone".to_owned() }),
            }),
            r#""stage":{"kind":"uncordoning","release":"upgraded","reason":{"kind":"cordon-lost","detail":"gone"}}"#,
        ),
        (node(NodeStage::Uncordoning { release: None, reason: None }), r#""stage":{"kind":"uncordoning"}"#),
    ];
    let stages = |node: &Node| match node.stage {
        NodeStage::Checking => 0,
        NodeStage::Evicting => 1,
        NodeStage::Drained => 2,
        NodeStage::Rechecking => 3,
        NodeStage::Uncordoning { .. } => 4,
    };
    assert_eq!(table.iter().map(|(node, _)| stages(node)).collect::<BTreeSet<_>>(), (0..5).collect());
    for (node, stage) in table {
        let full = Node {
            boot_id: Some("one".to_owned()),
            left: Some("one".to_owned()),
            waits: Some(NodeWait::NotReady),
            ..node
        };
        let json = format!(
            "{{{stage},{},{}}}",
            r#""since":"2026-11-21T01:00:00Z","fence":{"restored":1,"sequence":7}"#,
            r#""boot-id":"one","left":"one","waits":{"kind":"not-ready"}"#,
        );
        check(&[(full.clone(), json.as_str())], |_| 0, 1);
        let taken_over = Node {
            was_unschedulable: true,
            takes_over: Some(NodeFence { restored: 0, sequence: 9 }),
            ..full
        };
        let nodes = [(host("h1"), taken_over)].into_iter().collect();
        let state = State { nodes, restored: 1, ..State::default() };
        check_words("State", &serde_json::to_value(&state).unwrap());
    }
}

/// What a run's host keeps of drains that were given up, and a slot of why it is released.
#[test]
fn drains_of_runs() {
    let host: RunHost = serde_json::from_value(json!({
        "application": "debian", "group": "default", "status": "draining", "since": "2026-11-21T01:00:00Z",
        "reason": null, "backoff": { "count": 2, "until": "2026-11-21T01:00:00Z" }, "command": null,
    }))
    .unwrap();
    assert_eq!(serde_json::to_value(&host).unwrap()["backoff"]["count"], 2);
    let slot: Slot = serde_json::from_value(json!({
        "group": "default", "provider": "external", "since": "2026-11-21T01:00:00Z", "run": "r1",
        "standing": { "releasing": { "why": "drain-given-up" } }, "command": null, "begun": false,
        "unsent-at-fence": null,
    }))
    .unwrap();
    let state = State { slots: [(self::host("h1"), slot)].into_iter().collect(), ..State::default() };
    check_words("State", &serde_json::to_value(&state).unwrap());
}
