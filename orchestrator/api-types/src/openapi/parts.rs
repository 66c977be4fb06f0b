//! Partial answers, for the parameter `fields`: copies of their schemas in which nothing is required.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub(super) const SCHEMAS: &str = "#/components/schemas/";

/// Lets every answer to a read with the parameter `fields` be partial.
pub(super) fn allow(document: &mut Value) {
    let mut wanted = BTreeSet::new();
    let items = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    for operation in items.filter_map(|item| item.get_mut("get")).filter(|operation| has_fields(operation)) {
        let contents = operation["responses"]["200"]["content"].as_object_mut();
        for content in contents.into_iter().flat_map(Map::values_mut) {
            loosen(&mut content["schema"], &mut wanted);
        }
    }
    while let Some(name) = wanted.pop_first() {
        let copy = format!("{name}InPart");
        let schemas = &mut document["components"]["schemas"];
        if schemas.get(&copy).is_none() {
            let mut schema = schemas[&name].clone();
            loosen(&mut schema, &mut wanted);
            schemas[&copy] = schema;
        }
    }
}

fn has_fields(operation: &Value) -> bool {
    let mut parameters = operation["parameters"].as_array().into_iter().flatten();
    parameters.any(|parameter| parameter["name"] == "fields")
}

/// Requires nothing in `schema`, and adds to `wanted` the schemas of which it now references copies.
fn loosen(schema: &mut Value, wanted: &mut BTreeSet<String>) {
    for inner in schema.as_array_mut().into_iter().flatten() {
        loosen(inner, wanted);
    }
    let Some(fields) = schema.as_object_mut() else { return };
    if fields.get("required").is_some_and(Value::is_array) {
        fields.remove("required");
    }
    // Without required fields, a value may match several alternatives.
    if let Some(kinds) = fields.remove("oneOf") {
        fields.insert("anyOf".to_owned(), kinds);
    }
    for (key, inner) in fields.iter_mut() {
        match (key.as_str(), inner) {
            ("$ref", Value::String(reference)) => {
                if let Some(name) = reference.strip_prefix(SCHEMAS) {
                    wanted.insert(name.to_owned());
                    reference.push_str("InPart");
                }
            }
            ("default" | "enum" | "example" | "examples", _) => {}
            (_, inner) => loosen(inner, wanted),
        }
    }
}
