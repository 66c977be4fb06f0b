//! Writes to an object that is there: patches and replacements.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::deletion;
use crate::failure::{Failure, about};
use crate::request::Request;
use crate::resource::{BUDGETS, NODES, Resource};
use crate::store::{Key, Store};

/// What the server sets in the metadata, whatever a write says.
const KEPT: [&str; 5] =
    ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"];

/// Carries out a patch or a replacement. Returns the object as it is afterwards, or would be after a dry run.
pub(crate) fn write(store: &mut Store, request: &Request, key: &Key) -> Result<Value, Failure> {
    let before = store.get(key).ok_or_else(|| Failure::not_found(&key.resource, &key.name))?;
    let body = request.json()?;
    let asked = if request.verb == "update" { body } else { patched(&before, &request.content_type, body)? };
    check(&before, &asked, key, request.verb)?;
    let is_status = request.target.subresource.as_deref() == Some("status");
    let mut after = if is_status && key.resource.has_status {
        let mut after = Value::clone(&before);
        after["status"] = asked["status"].clone();
        after
    } else {
        asked
    };
    keep(&before, &mut after, &key.resource, is_status);
    if request.is_dry_run() {
        return Ok(after);
    }
    if deletion::is_complete(&after, &key.resource) {
        // It goes with its last finalizer, as it was before.
        store.remove(key);
        return Ok(after);
    }
    Ok(Value::clone(&store.put(key, after)))
}

fn patched(before: &Value, content_type: &str, patch: Value) -> Result<Value, Failure> {
    let mut after = before.clone();
    match content_type {
        "application/merge-patch+json" => json_patch::merge(&mut after, &patch),
        "application/json-patch+json" => {
            let operations: Vec<Value> = serde_json::from_value(patch)
                .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
            // An operation that there is not is one that does not apply.
            let operations: json_patch::Patch = serde_json::from_value(Value::Array(operations))
                .map_err(|_| Failure::patch_does_not_apply())?;
            json_patch::patch(&mut after, &operations).map_err(|_| Failure::patch_does_not_apply())?;
        }
        _ => {
            let code = StatusCode::UNSUPPORTED_MEDIA_TYPE.as_u16();
            let message = format!("{code}: Unsupported Media Type");
            return Err(Failure::new(code, "UnsupportedMediaType", message).details(json!({})));
        }
    }
    Ok(after)
}

/// The version and the uid are preconditions where a write has them; the name must be that of the object.
fn check(before: &Value, asked: &Value, key: &Key, verb: &str) -> Result<(), Failure> {
    let (was, is) = (&before["metadata"], &asked["metadata"]);
    if is["name"] != was["name"] {
        let message = format!(
            "the name of the object ({}) does not match the name on the URL ({})",
            is["name"].as_str().unwrap_or_default(),
            key.name
        );
        return Err(Failure::bad_request(message));
    }
    if !is["uid"].is_null() && is["uid"] != was["uid"] {
        return Err(other_uid(&is["uid"], &was["uid"], key, verb));
    }
    if !is["resourceVersion"].is_null() && is["resourceVersion"] != was["resourceVersion"] {
        return Err(Failure::stale(&key.resource, &key.name));
    }
    Ok(())
}

/// The uid is a precondition of a replacement, and cannot be patched.
fn other_uid(asked: &Value, actual: &Value, key: &Key, verb: &str) -> Failure {
    let (asked, actual) = (asked.as_str().unwrap_or_default(), actual.as_str().unwrap_or_default());
    let Key { resource, namespace, name } = key;
    if verb == "update" {
        let plural = if *resource == NODES { "minions" } else { resource.plural };
        let place = if namespace.is_empty() { plural.to_owned() } else { format!("{plural}/{namespace}") };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{place}/{name}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {asked}, UID in object meta: {actual}"
        );
        return Failure::conflict(resource, name, &why);
    }
    let why = format!("Invalid value: \"{asked}\": field is immutable");
    let cause = json!({ "reason": "FieldValueInvalid", "message": why, "field": "metadata.uid" });
    Failure::new(422, "Invalid", format!("{} \"{name}\" is invalid: metadata.uid: {why}", resource.kind))
        .details(about(resource, resource.kind, name))
        .details(json!({ "causes": [cause] }))
}

fn keep(before: &Value, after: &mut Value, resource: &Resource, is_status: bool) {
    for name in ["apiVersion", "kind"] {
        after[name] = before[name].clone();
    }
    if resource.has_status && !is_status {
        keep_field(before, after, "status");
    }
    after["metadata"]["uid"] = before["metadata"]["uid"].clone();
    for name in KEPT {
        keep_field(&before["metadata"], &mut after["metadata"], name);
    }
    if *resource == BUDGETS && before["spec"] != after["spec"] {
        let generation = before["metadata"]["generation"].as_u64().unwrap_or_default();
        after["metadata"]["generation"] = (generation + 1).into();
    }
}

/// Gives a field the value that it had, or removes it.
fn keep_field(before: &Value, after: &mut Value, name: &str) {
    match (before.get(name), after.as_object_mut()) {
        (Some(value), _) => after[name] = value.clone(),
        (None, Some(fields)) => {
            fields.remove(name);
        }
        (None, None) => {}
    }
}
