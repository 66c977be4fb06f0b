//! Writes to an object that is there: patches and replacements.

use axum::http::StatusCode;
use serde_json::Value;

use super::deletion;
use super::failure::Failure;
use super::request::Request;
use super::resource::{BUDGETS, Resource};
use super::store::{Key, Store};

/// What the server sets in the metadata, whatever a write says.
const KEPT: [&str; 5] =
    ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"];

/// Carries out a patch or a replacement. Returns the object as it is afterwards, or would be after a dry run.
pub(super) fn write(store: &mut Store, request: &Request, key: &Key) -> Result<Value, Failure> {
    let before = store.get(key).ok_or_else(|| Failure::not_found(&key.resource, &key.name))?;
    let body = request.json()?;
    let asked = if request.verb == "update" { body } else { patched(&before, &request.content_type, body)? };
    check(&before, &asked, key)?;
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
    let written = store.put(key, after);
    if deletion::is_complete(&written, &key.resource) {
        store.remove(key);
    }
    Ok(Value::clone(&written))
}

fn patched(before: &Value, content_type: &str, patch: Value) -> Result<Value, Failure> {
    let mut after = before.clone();
    match content_type {
        "application/merge-patch+json" => json_patch::merge(&mut after, &patch),
        "application/json-patch+json" => {
            let operations: json_patch::Patch = serde_json::from_value(patch)
                .map_err(|error| Failure::bad_request(format!("error decoding patch: {error}")))?;
            json_patch::patch(&mut after, &operations).map_err(|_| Failure::patch_does_not_apply())?;
        }
        other => {
            let message = format!("the body of the request was in an unknown format: {other:?}");
            let code = StatusCode::UNSUPPORTED_MEDIA_TYPE.as_u16();
            return Err(Failure::new(code, "UnsupportedMediaType", message));
        }
    }
    Ok(after)
}

/// The version and the uid are preconditions where a write has them; the name must be that of the object.
fn check(before: &Value, asked: &Value, key: &Key) -> Result<(), Failure> {
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
        let why = format!(
            "Precondition failed: UID in precondition: {}, UID in object meta: {}",
            is["uid"], was["uid"]
        );
        return Err(Failure::precondition(&key.resource, &key.name, &why));
    }
    if !is["resourceVersion"].is_null() && is["resourceVersion"] != was["resourceVersion"] {
        return Err(Failure::stale(&key.resource, &key.name));
    }
    Ok(())
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
