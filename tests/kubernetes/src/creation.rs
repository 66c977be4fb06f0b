//! New objects, with what the server fills in.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::deletion::timestamp;
use crate::failure::Failure;
use crate::resource::{BUDGETS, NAMESPACES, NODES, PODS, Resource};
use crate::store::{Key, Store};

/// The taint of a node that was created, until it is ready.
pub(crate) const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";

/// Where an object is created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The resource.
    pub(crate) resource: Resource,
    /// The namespace, for a resource that has any.
    pub(crate) namespace: Option<&'a str>,
}

/// Creates an object. A dry run returns what would be created.
pub(crate) fn create(
    store: &mut Store,
    place: Place<'_>,
    mut object: Value,
    now: DateTime<Utc>,
    is_dry_run: bool,
) -> Result<Value, Failure> {
    let (resource, namespace) = (place.resource, place.namespace.unwrap_or_default());
    if !object["metadata"].is_object() {
        return Err(Failure::bad_request("the body of the request has no metadata"));
    }
    if resource.is_namespaced && store.get(&Key::new(NAMESPACES, "", namespace)).is_none() {
        return Err(Failure::not_found(&NAMESPACES, namespace));
    }
    let metadata = &mut object["metadata"];
    if metadata["namespace"].as_str().is_some_and(|named| named != namespace) {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(message));
    }
    if let Some(prefix) = metadata["generateName"].as_str().filter(|_| metadata["name"].is_null()) {
        metadata["name"] = json!(format!("{prefix}{:.5}", Uuid::new_v4().simple().to_string()));
    }
    let Some(name) = metadata["name"].as_str().filter(|name| !name.is_empty()).map(str::to_owned) else {
        let message = format!(
            "{} \"\" is invalid: metadata.name: Required value: name or generateName is required",
            resource.kind
        );
        return Err(Failure::new(422, "Invalid", message));
    };
    if resource.is_namespaced {
        metadata["namespace"] = json!(namespace);
    }
    fill_in(&mut object, &resource, &name);
    let key = Key::new(resource, namespace, &name);
    if store.get(&key).is_some() {
        return Err(Failure::already_exists(&resource, &name));
    }
    if is_dry_run {
        return Ok(object);
    }
    Ok(Value::clone(&store.create(key, object, &timestamp(now))))
}

/// Creates a pod with the status that it has, as scheduler and kubelet would have written it by now.
pub(crate) fn create_running(store: &mut Store, pod: &Value, now: DateTime<Utc>) -> Result<(), Failure> {
    let place = Place { resource: PODS, namespace: pod["metadata"]["namespace"].as_str() };
    let mut created = create(store, place, pod.clone(), now, false)?;
    created["status"] = pod["status"].clone();
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
    store.put(&Key::new(PODS, text("namespace"), text("name")), created);
    Ok(())
}

fn fill_in(object: &mut Value, resource: &Resource, name: &str) {
    if *resource == PODS {
        object["status"] = json!({ "phase": "Pending" });
        if object["spec"]["terminationGracePeriodSeconds"].is_null() {
            object["spec"]["terminationGracePeriodSeconds"] = json!(30);
        }
    } else if *resource == NODES {
        for part in ["spec", "status"] {
            object[part] = if object[part].is_object() { object[part].take() } else { json!({}) };
        }
        if !object["spec"]["taints"].is_array() {
            object["spec"]["taints"] = json!([]);
        }
        let taints = object["spec"]["taints"].as_array_mut().unwrap();
        if !taints.iter().any(|taint| taint["key"] == NOT_READY_TAINT) {
            taints.push(json!({ "key": NOT_READY_TAINT, "effect": "NoSchedule" }));
        }
    } else if *resource == BUDGETS {
        object["metadata"]["generation"] = json!(1);
        object["status"] = json!({});
    } else if *resource == NAMESPACES {
        object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
        object["status"] = json!({ "phase": "Active" });
    }
}
