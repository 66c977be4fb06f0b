//! What is decided about each kind of pod.

use serde_json::{Value, json};

use super::*;

fn selector(labels: Value) -> LabelSelector {
    serde_json::from_value(labels).unwrap()
}

fn namespaces() -> Namespaces {
    let namespace = |name: &str, team: &str| -> Namespace {
        serde_json::from_value(json!({ "metadata": { "name": name, "labels": { "team": team } } })).unwrap()
    };
    [namespace("shop", "shop"), namespace("os-upgrade", "ops")].into_iter().collect()
}

/// A running pod in `shop`, with changes by a merge of the two levels.
fn pod(metadata: &Value, phase: &str) -> Pod {
    let mut object =
        json!({ "metadata": { "namespace": "shop", "name": "p", "uid": "u" }, "status": { "phase": phase } });
    for (key, value) in metadata.as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn owned(api_version: &str, kind: &str, controller: bool) -> Value {
    let owner =
        json!({ "apiVersion": api_version, "kind": kind, "name": "o", "uid": "o", "controller": controller });
    json!({ "ownerReferences": [owner] })
}

fn with(mut metadata: Value, more: &Value) -> Value {
    metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    metadata
}

fn action(pod: Pod, policy: &Policy) -> Action {
    let planned = plan(vec![pod], &namespaces(), policy);
    assert_eq!(planned.len(), 1);
    assert_eq!(planned[0].has_to_go(), !matches!(planned[0].action, Action::Ignore(_)));
    planned[0].action
}

#[test]
fn kinds_of_pods() {
    let ending = json!({ "deletionTimestamp": "2026-01-02T03:04:05Z" });
    let mirror = json!({ "annotations": { "kubernetes.io/config.mirror": "hash" } });
    let evict = Action::Evict(Fallback::None);
    for (name, metadata, phase, expected) in [
        ("bare", json!({}), "Running", evict),
        ("bare and pending", json!({}), "Pending", evict),
        ("bare and finished", json!({}), "Succeeded", evict),
        ("bare and terminating", ending.clone(), "Running", Action::Await),
        ("replica set", owned("apps/v1", "ReplicaSet", true), "Running", evict),
        ("daemon set", owned("apps/v1", "DaemonSet", true), "Running", Action::Ignore(Ignored::DaemonSet)),
        (
            "daemon set that ends",
            with(owned("apps/v1", "DaemonSet", true), &ending),
            "Running",
            Action::Ignore(Ignored::DaemonSet),
        ),
        ("daemon set of another group", owned("example.org/v1", "DaemonSet", true), "Running", evict),
        ("daemon set that does not control", owned("apps/v1", "DaemonSet", false), "Running", evict),
        ("mirror", mirror.clone(), "Running", Action::Ignore(Ignored::Mirror)),
        (
            "mirror of a node",
            with(owned("v1", "Node", true), &mirror),
            "Running",
            Action::Ignore(Ignored::Mirror),
        ),
        ("job", owned("batch/v1", "Job", true), "Running", Action::WaitForJob),
        ("job out of touch", owned("batch/v1", "Job", true), "Unknown", Action::WaitForJob),
        ("job without a phase", owned("batch/v1", "Job", true), "", Action::WaitForJob),
        ("job that waits", owned("batch/v1", "Job", true), "Pending", Action::Ignore(Ignored::IdleJob)),
        ("job that is done", owned("batch/v1", "Job", true), "Succeeded", Action::Ignore(Ignored::IdleJob)),
        ("job that failed", owned("batch/v1", "Job", true), "Failed", Action::Ignore(Ignored::IdleJob)),
        ("job that ends", with(owned("batch/v1", "Job", true), &ending), "Running", Action::Await),
        ("job of another group", owned("example.org/v1", "Job", true), "Running", evict),
    ] {
        assert_eq!(action(pod(&metadata, phase), &Policy::default()), expected, "{name}");
    }
}

#[test]
fn namespaces_are_protected_unless_labels_say_otherwise() {
    for (selected, namespace, expected) in [
        (None, "shop", Fallback::None),
        (Some(json!({})), "shop", Fallback::None),
        (Some(json!({ "matchLabels": { "team": "shop" } })), "shop", Fallback::None),
        (Some(json!({ "matchLabels": { "team": "ops" } })), "shop", Fallback::Delete),
        (
            Some(json!({ "matchExpressions": [{ "key": "team", "operator": "Exists" }] })),
            "shop",
            Fallback::None,
        ),
        (
            Some(json!({ "matchExpressions": [{ "key": "team", "operator": "NotIn", "values": ["shop"] }] })),
            "shop",
            Fallback::Delete,
        ),
        // What is not known is protected.
        (Some(json!({ "matchLabels": { "team": "ops" } })), "new", Fallback::None),
    ] {
        let policy = Policy::new(selected.clone().map(selector), None).unwrap();
        let pod = pod(&json!({ "namespace": namespace }), "Running");
        assert_eq!(action(pod, &policy), Action::Evict(expected), "{selected:?} {namespace}");
        let selects_some = selected.is_some_and(|selector| selector != json!({}));
        assert_eq!(policy.needs_namespaces(), selects_some);
    }
    let odd =
        selector(json!({ "matchExpressions": [{ "key": "team", "operator": "Like", "values": ["s"] }] }));
    assert!(Policy::new(Some(odd), None).is_err());
}

#[test]
fn jobs_are_protected_unless_labels_say_otherwise() {
    for (selected, expected) in [
        (None, Action::WaitForJob),
        (Some(json!({})), Action::WaitForJob),
        (Some(json!({ "matchLabels": { "kind": "backup" } })), Action::WaitForJob),
        (Some(json!({ "matchLabels": { "kind": "report" } })), Action::Evict(Fallback::None)),
    ] {
        let policy = Policy::new(None, selected.clone().map(selector)).unwrap();
        let metadata = with(owned("batch/v1", "Job", true), &json!({ "labels": { "kind": "backup" } }));
        assert_eq!(action(pod(&metadata, "Running"), &policy), expected, "{selected:?}");
    }
}

/// Whatever they are, and whatever else would become of them.
#[test]
fn pods_are_waited_for_as_labels_say() {
    let awaited = json!({ "matchLabels": { "wait": "yes" } });
    let policy = Policy::default().waiting_for(Some(selector(awaited))).unwrap();
    let labels = json!({ "labels": { "wait": "yes" } });
    let ending = with(labels.clone(), &json!({ "deletionTimestamp": "2026-01-02T03:04:05Z" }));
    let mirror = with(labels.clone(), &json!({ "annotations": { "kubernetes.io/config.mirror": "hash" } }));
    for (name, metadata, phase, expected) in [
        ("bare", labels.clone(), "Running", Action::WaitForPod),
        ("about to start", labels.clone(), "Pending", Action::WaitForPod),
        ("finished", labels.clone(), "Succeeded", Action::Ignore(Ignored::Finished)),
        ("failed", labels.clone(), "Failed", Action::Ignore(Ignored::Finished)),
        ("terminating", ending, "Running", Action::Await),
        ("mirror", mirror, "Running", Action::WaitForPod),
        ("daemon set", with(owned("apps/v1", "DaemonSet", true), &labels), "Running", Action::WaitForPod),
        (
            "job that has not begun",
            with(owned("batch/v1", "Job", true), &labels),
            "Pending",
            Action::WaitForPod,
        ),
        ("without the label", json!({}), "Running", Action::Evict(Fallback::None)),
    ] {
        assert_eq!(action(pod(&metadata, phase), &policy), expected, "{name}");
    }
}

/// Whoever controls them, and wherever they are.
#[test]
fn own_pods_stay() {
    let labelled =
        |name: &str| json!({ "namespace": "shop", "labels": { "app.kubernetes.io/part-of": name } });
    let set = owned("apps/v1", "StatefulSet", true);
    let job = owned("batch/v1", "Job", true);
    for (name, metadata, expected) in [
        ("own", labelled("os-upgrade"), Action::Ignore(Ignored::Own)),
        ("own with a controller", with(set.clone(), &labelled("os-upgrade")), Action::Ignore(Ignored::Own)),
        ("own job", with(job, &labelled("os-upgrade")), Action::Ignore(Ignored::Own)),
        ("of another project", with(set.clone(), &labelled("shop")), Action::Evict(Fallback::None)),
        ("without labels", set, Action::Evict(Fallback::None)),
    ] {
        assert_eq!(action(pod(&metadata, "Running"), &Policy::default()), expected, "{name}");
    }
}
