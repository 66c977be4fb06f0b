//! The fields of a body, from its schema: what a client may select by name.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::parts::SCHEMAS;
use crate::route::with_own;

/// The paths of all fields of `T`. `rollout/unreachable` is a field below `rollout`, which may be an object or a list
/// of objects; `*` is any name.
///
/// # Panics
/// Never: schemas have string keys and no fallible part.
pub fn fields_of<T: ToSchema>() -> Vec<String> {
    let mut components = Vec::new();
    with_own::<T>(&mut components);
    let value = |schema| serde_json::to_value(schema).expect("a schema has string keys and no fallible part");
    let schemas: BTreeMap<String, Value> =
        components.into_iter().map(|(name, schema)| (name, value(schema))).collect();
    let mut found = Vec::new();
    add(&schemas, &schemas[T::name().as_ref()], "", &mut found);
    found
}

fn add(schemas: &BTreeMap<String, Value>, schema: &Value, parent: &str, found: &mut Vec<String>) {
    let Some(schema) = schema.as_object() else { return };
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        add(schemas, &schemas[name.trim_start_matches(SCHEMAS)], parent, found);
    }
    for part in ["allOf", "oneOf", "anyOf"].iter().filter_map(|key| schema.get(*key)?.as_array()).flatten() {
        add(schemas, part, parent, found);
    }
    if let Some(items) = schema.get("items") {
        add(schemas, items, parent, found);
    }
    let named = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter);
    let free = schema.get("additionalProperties").filter(|other| **other != Value::Bool(false));
    for (name, below) in named.map(|(name, below)| (name.as_str(), below)).chain(free.map(|any| ("*", any))) {
        let path = if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") };
        if !found.contains(&path) {
            found.push(path.clone());
        }
        add(schemas, below, &path, found);
    }
}
