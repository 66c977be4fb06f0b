//! What a client can ask of the server itself: its version, and the resources that there are.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::resource::ALL;

const VERBS: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

/// The answer to `/version`.
pub(crate) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.2", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "2026-06-01T00:00:00Z", "goVersion": "go1.26", "compiler": "gc", "platform": "linux/amd64",
    })
}

/// The answer to `/api`, `/apis`, `/api/v1` or `/apis/GROUP/VERSION`.
pub(crate) fn describe(path: &str) -> Value {
    match path.trim_matches('/') {
        "api" => json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] }),
        "apis" => groups(),
        path => resources(path.trim_start_matches("apis/").trim_start_matches("api/")),
    }
}

fn groups() -> Value {
    let grouped = ALL.iter().filter(|resource| !resource.group.is_empty());
    let names: BTreeSet<(&str, &str)> = grouped.map(|resource| (resource.group, resource.version)).collect();
    let group = |(name, version): &(&str, &str)| {
        let version = json!({ "groupVersion": format!("{name}/{version}"), "version": version });
        json!({ "name": name, "versions": [version], "preferredVersion": version })
    };
    let groups: Vec<Value> = names.iter().map(group).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

fn resources(group_version: &str) -> Value {
    let mut resources = Vec::new();
    for resource in ALL.iter().filter(|resource| resource.api_version() == group_version) {
        let mut add = |name: String, kind: &str, verbs: &[&str]| {
            resources.push(json!({
                "name": name, "singularName": resource.kind.to_lowercase(), "namespaced": resource.is_namespaced,
                "kind": kind, "verbs": verbs,
            }));
        };
        add(resource.plural.to_owned(), resource.kind, &VERBS);
        if resource.has_status {
            add(format!("{}/status", resource.plural), resource.kind, &["get", "patch", "update"]);
        }
        if resource.plural == "pods" {
            add("pods/eviction".to_owned(), "Eviction", &["create"]);
        }
    }
    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources })
}
