//! The eviction of a pod: what budgets say, then a deletion.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::budget;
use crate::deletion::{self, Options, timestamp};
use crate::failure::Failure;
use crate::request::Request;
use crate::store::{Key, Store};

/// Evicts a pod.
pub(crate) fn evict(
    store: &mut Store,
    request: &Request,
    key: &Key,
    now: DateTime<Utc>,
) -> Result<Value, Failure> {
    // `deleteOptions` is the only name of the options: the server ignores unknown fields, so a misspelt one is no option.
    let body = request.json()?;
    let mut options = Options::of(&body["deleteOptions"], request.is_dry_run());
    if body["metadata"]["name"] != key.name {
        return Err(Failure::bad_request("name in URL does not match name in Eviction object"));
    }
    let namespace = &body["metadata"]["namespace"];
    if !namespace.is_null() && namespace != &key.namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(message));
    }
    let pod = store.get(key).ok_or_else(|| Failure::not_found(&key.resource, &key.name))?;
    let is_terminating = !pod["metadata"]["deletionTimestamp"].is_null();
    let is_running = !matches!(pod["status"]["phase"].as_str(), Some("Pending" | "Succeeded" | "Failed"));
    if is_running && !is_terminating {
        // The deletion comes later and has the preconditions, so one that fails has spent the budget.
        budget::take(store, &pod, options.is_dry_run, now)?;
    }
    options.check(&pod, key)?;
    if !options.is_dry_run {
        add_condition(store, key, now);
        options.resource_version = None;
    }
    deletion::delete(store, key, &options, now)?;
    Ok(json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 }))
}

/// Says on a pod why it ends.
fn add_condition(store: &mut Store, key: &Key, now: DateTime<Utc>) {
    let Some(pod) = store.get(key) else { return };
    let mut pod = Value::clone(&pod);
    let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    if conditions.iter().any(|condition| condition["type"] == "DisruptionTarget") {
        return;
    }
    conditions.push(json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": timestamp(now),
    }));
    pod["status"]["conditions"] = json!(conditions);
    store.put(key, pod);
}
