//! Checks every answer in a test against the document: its status, and its body, which may have no field that is not
//! described. Fleet's dialects are not in the document; there it checks errors, and headers.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use jsonschema::Validator;
use os_upgrade_api_types::fleet::error::ErrorBody;
use os_upgrade_api_types::fleet::version::Version;

use super::*;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(description()).unwrap());

/// The description of `method` at `path`; `None` if the document does not contain it.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let fits = |template: &str| {
        let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
        let fit = |(template, segment): (&&str, &&str)| {
            template == segment || (template.starts_with('{') && !segment.is_empty())
        };
        template.len() == path.len() && template.iter().zip(&path).all(fit)
    };
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let mut found: Vec<&String> = paths.keys().filter(|template| fits(template)).collect();
    found.sort_by_key(|template| template.matches('{').count());
    paths[*found.first()?].get(method.to_ascii_lowercase())
}

/// Forbids fields that `schema` does not name. A schema that is a `part` of a composition stays open; the composition
/// is closed.
fn close(schema: &mut Value, part: bool) {
    for inner in schema.as_array_mut().into_iter().flatten() {
        close(inner, false);
    }
    let Some(fields) = schema.as_object_mut() else { return };
    for (key, inner) in fields.iter_mut() {
        match key.as_str() {
            "allOf" | "oneOf" => {
                for inner in inner.as_array_mut().into_iter().flatten() {
                    close(inner, true);
                }
            }
            "properties" => {
                for inner in inner.as_object_mut().unwrap().values_mut() {
                    close(inner, false);
                }
            }
            "default" | "enum" | "example" | "examples" => {}
            _ => close(inner, false),
        }
    }
    let closes = ["$ref", "properties", "allOf", "oneOf"].iter().any(|key| fields.contains_key(*key));
    if closes && !part && !fields.contains_key("additionalProperties") {
        fields.insert("unevaluatedProperties".to_owned(), json!(false));
    }
}

/// The document's components. They stay open, because they may be parts; references to them are closed.
static COMPONENTS: LazyLock<Value> = LazyLock::new(|| {
    let mut components = DOCUMENT["components"].clone();
    for component in components["schemas"].as_object_mut().unwrap().values_mut() {
        close(component, true);
    }
    components
});

/// The validator of `schema`, compiled once: compiling takes far longer than validating.
fn validator(schema: &Value) -> Arc<Validator> {
    static COMPILED: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let compile = || {
        let mut schema = schema.clone();
        close(&mut schema, false);
        schema["components"] = COMPONENTS.clone();
        Arc::new(jsonschema::draft202012::new(&schema).unwrap())
    };
    Arc::clone(COMPILED.lock().unwrap().entry(schema.to_string()).or_insert_with(compile))
}

/// What is wrong with `body` by `schema`, of the document's or of its own.
pub(super) fn faults(schema: &Value, body: &Value) -> Vec<String> {
    validator(schema).iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Panics unless the document has this answer to `method` at `path`.
pub(super) fn check(method: &str, path: &str, status: u16, headers: &HeaderMap, body: &[u8]) {
    if Version::ALL.iter().any(|version| path.starts_with(version.prefix())) {
        return check_fleet(method, path, status, headers, body);
    }
    // FleetLock is also served below a path of its own.
    let Some(operation) = operation(method, path.strip_prefix("/fleetlock").unwrap_or(path)) else {
        assert!(status >= 400 || method == "HEAD", "{method} {path} is not in the document");
        return;
    };
    let described = operation["responses"].get(status.to_string());
    let described = described.unwrap_or_else(|| panic!("{method} {path}: {status} is not in the document"));
    let contents = described.get("content").and_then(Value::as_object);
    let Some(contents) = contents else {
        assert!(body.is_empty(), "{method} {path} {status}: a body that is not in the document");
        return;
    };
    let kind = headers["content-type"].to_str().unwrap();
    let essence = |kind: &str| match kind.split(';').next().unwrap().trim() {
        // Aliases, which are not described individually.
        "application/x-yaml" | "text/yaml" | "text/x-yaml" => "application/yaml".to_owned(),
        essence => essence.to_owned(),
    };
    let content = contents.iter().find(|(known, _)| essence(known) == essence(kind));
    let (_, content) =
        content.unwrap_or_else(|| panic!("{method} {path} {status}: {kind} is not in the document"));
    if kind == "application/json" {
        let body: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(faults(&content["schema"], &body), [""; 0], "{method} {path} {status}: {body}");
    }
}

/// Panics unless an error is fleet's entity, and a success has JSON, or nothing and no headers besides those that HTTP and security need.
fn check_fleet(method: &str, path: &str, status: u16, headers: &HeaderMap, body: &[u8]) {
    let what = format!("{method} {path}: {status} {headers:?}");
    let is_json = headers.get("content-type").is_some_and(|kind| kind == "application/json");
    if status >= 400 {
        assert!(is_json, "{what}");
        if method != "HEAD" {
            let error: ErrorBody = serde_json::from_slice(body).unwrap();
            assert_eq!(error.error.code, status, "{what}");
            assert!(!error.error.message.is_empty(), "{what}");
        }
        return;
    }
    let mut needed = vec!["content-length", "x-content-type-options"];
    if status == 200 {
        assert!(is_json, "{what}");
        needed.push("content-type");
    } else {
        assert!(body.is_empty(), "{what}");
    }
    assert!(headers.keys().all(|name| needed.contains(&name.as_str())), "{what}");
}
