//! Deletions: graceful ones of pods, with finalizers, preconditions and dry runs.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::failure::{Failure, about};
use crate::resource::{NAMESPACES, PODS, Resource};
use crate::store::{Key, Store};

/// The grace period of a pod that names none.
const GRACE_SECS: i64 = 30;

/// A time as objects have it.
pub(crate) fn timestamp(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The options of a deletion.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    grace_secs: Option<i64>,
    uid: Option<String>,
    /// The version that the object must have.
    pub(crate) resource_version: Option<String>,
    /// Whether nothing may be changed.
    pub(crate) is_dry_run: bool,
}

impl Options {
    /// Reads `DeleteOptions`, or null for none.
    pub(crate) fn of(options: &Value, is_dry_run: bool) -> Self {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            grace_secs: options["gracePeriodSeconds"].as_i64(),
            uid: text(&options["preconditions"]["uid"]),
            resource_version: text(&options["preconditions"]["resourceVersion"]),
            is_dry_run,
        }
    }

    /// The same with the grace period of a query, unless it has one.
    pub(crate) fn or_grace(mut self, secs: Option<u64>) -> Self {
        self.grace_secs = self.grace_secs.or_else(|| secs.and_then(|secs| i64::try_from(secs).ok()));
        self
    }

    /// Refuses an object that is not the one that is meant.
    pub(crate) fn check(&self, object: &Value, key: &Key) -> Result<(), Failure> {
        let metadata = &object["metadata"];
        for (name, asked, actual, since) in [
            ("UID", &self.uid, &metadata["uid"], "deleted and then recreated"),
            ("ResourceVersion", &self.resource_version, &metadata["resourceVersion"], "modified"),
        ] {
            let actual = actual.as_str().unwrap_or_default();
            if let Some(asked) = asked.as_deref().filter(|asked| *asked != actual) {
                let why = format!(
                    "the {name} in the precondition ({asked}) does not match the {name} in record ({actual}). \
                     The object might have been {since}"
                );
                return Err(Failure::precondition(&key.resource, &key.name, &why));
            }
        }
        Ok(())
    }
}

/// Whether an object that is being deleted has nothing left to wait for.
pub(crate) fn is_complete(object: &Value, resource: &Resource) -> bool {
    let metadata = &object["metadata"];
    let is_held = metadata["finalizers"].as_array().is_some_and(|names| !names.is_empty());
    let is_stopped = *resource != PODS || metadata["deletionGracePeriodSeconds"] == json!(0);
    !metadata["deletionTimestamp"].is_null() && !is_held && is_stopped
}

/// Deletes an object, or begins to. Returns the object as it then is.
pub(crate) fn delete(
    store: &mut Store,
    key: &Key,
    options: &Options,
    now: DateTime<Utc>,
) -> Result<Value, Failure> {
    let object = store.get(key).ok_or_else(|| Failure::not_found(&key.resource, &key.name))?;
    options.check(&object, key)?;
    let mut after = Value::clone(&object);
    let grace_secs = if key.resource == PODS { grace_secs(&object, options.grace_secs) } else { 0 };
    let metadata = &mut after["metadata"];
    let before = metadata["deletionGracePeriodSeconds"].as_i64();
    // A deletion under way can be hurried, not delayed.
    if before.is_none_or(|before| grace_secs < before) {
        metadata["deletionTimestamp"] = json!(timestamp(now + TimeDelta::seconds(grace_secs)));
        metadata["deletionGracePeriodSeconds"] = json!(grace_secs);
    }
    if options.is_dry_run {
        return Ok(after);
    }
    if key.resource != PODS && is_complete(&after, &key.resource) {
        remove(store, key);
        return Ok(after);
    }
    Ok(finish(store, key, after))
}

/// Writes a pod that is being deleted, and removes it if it waits for nothing: watches see both.
fn finish(store: &mut Store, key: &Key, object: Value) -> Value {
    let written = Value::clone(&store.put(key, object));
    if is_complete(&written, &key.resource) {
        store.remove(key);
    }
    written
}

/// How long a pod is given: nothing when it was never started or has ended.
fn grace_secs(pod: &Value, asked: Option<i64>) -> i64 {
    let is_assigned = pod["spec"]["nodeName"].as_str().is_some_and(|name| !name.is_empty());
    let has_ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !is_assigned || has_ended {
        return 0;
    }
    let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64();
    asked.or(own).unwrap_or(GRACE_SECS).max(0)
}

/// Removes an object, and what a namespace contains.
fn remove(store: &mut Store, key: &Key) {
    store.remove(key);
    if key.resource == NAMESPACES {
        let inside = |inner: &&Key| inner.resource.is_namespaced && inner.namespace == key.name;
        let keys: Vec<Key> = store.objects().keys().filter(inside).cloned().collect();
        for key in keys {
            store.remove(&key);
        }
    }
}

/// What a kubelet does once the containers of a terminating pod have ended.
pub(crate) fn confirm(store: &mut Store, key: &Key) {
    let Some(pod) = store.get(key) else { return };
    let mut pod = Value::clone(&pod);
    pod["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    if !is_complete(&pod, &key.resource) {
        pod["status"]["phase"] = json!("Succeeded");
    }
    finish(store, key, pod);
}

/// The answer to a deletion: pods are shown as they then are, of others only what was deleted.
pub(crate) fn answer(object: Value, resource: &Resource) -> Value {
    if *resource == PODS || !is_complete(&object, resource) {
        return object;
    }
    let mut details =
        about(resource, resource.plural, object["metadata"]["name"].as_str().unwrap_or_default());
    details["uid"] = object["metadata"]["uid"].clone();
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}
