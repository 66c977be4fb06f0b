//! The `OpenAPI` document: complete, and usable by programs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use os_upgrade_api_types::route::Access;

use super::*;
use crate::resources;

fn document() -> Value {
    serde_json::from_str(description()).unwrap()
}

/// Every operation: its method and path, and its description.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |path: &str, method: &str| format!("{} {path}", method.to_uppercase());
    let operations = paths.iter().flat_map(|(path, item)| {
        let methods = ["get", "put", "post", "delete", "options", "head", "patch"].into_iter();
        methods.filter_map(move |method| Some((of_path(path, method), item.get(method)?)))
    });
    operations.collect()
}

/// Who may call an operation, as docs/api.md says it.
fn caller(access: Access) -> String {
    match access {
        Access::Anybody => "anybody".to_owned(),
        Access::Role(role) => role.to_string(),
        Access::LockGroup => "a client of the group".to_owned(),
        Access::CallBack => "a provider".to_owned(),
    }
}

/// docs/api.md: every operation with its caller, its query parameters and an example of its body.
fn list() -> String {
    let document = document();
    let mut list = "# API\n\nEvery route, as its declaration in `orchestrator/api-types` has it; `/docs/` of an instance \
                    shows fields, answers\nand errors, and `/openapi.json` or `os-upgrade openapi` has them for programs. \
                    `UPDATE_EXPECTED=1 make test\nTESTS='package(os-upgrade-api)'` writes this page.\n\n\
                    Names in a path are percent-encoded. Clients and proxies take the names `.` and `..` out of it, \
                    also as `%2E`: write\n`%7F.` and `%7F..` for them, as `os-upgrade` does.\n\n\
                    | route | caller | what it does |\n|---|---|---|\n"
        .to_owned();
    for declaration in resources::declarations() {
        let (method, path) = (declaration.method.as_str(), declaration.path);
        let described = &document["paths"][path][method.to_lowercase()];
        let parameters = described["parameters"].as_array().into_iter().flatten();
        let query = parameters.filter(|parameter| parameter["in"] == "query");
        let query: Vec<String> =
            query.map(|parameter| format!("`{}`", parameter["name"].as_str().unwrap())).collect();
        let example = described["requestBody"]["content"]["application/json"].get("example");
        let what = [
            Some(described["summary"].as_str().unwrap().to_owned()),
            example.map(|example| format!("body `{example}`")),
            (!query.is_empty()).then(|| format!("query {}", query.join(", "))),
        ];
        let what: Vec<String> = what.into_iter().flatten().collect();
        let caller = caller(declaration.access);
        writeln!(list, "| `{method} {path}` | {caller} | {} |", what.join("; ").replace('|', "\\|")).unwrap();
    }
    list
}

#[test]
fn page_lists_every_route() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api.md");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(path, list()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), list(), "UPDATE_EXPECTED=1 writes docs/api.md");
}

#[tokio::test]
async fn document_is_served() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let (status, headers, body) = api.send(build("GET /openapi.json", "", "")).await;
    assert_eq!((status, headers["content-type"].to_str().unwrap()), (200, "application/json"));
    assert_eq!(serde_json::from_str::<Value>(&body).unwrap(), document());
    assert_eq!(document()["openapi"], json!("3.1.0"));
}

#[test]
fn every_operation_is_described_in_full() {
    let document = document();
    let operations = operations(&document);
    let names: BTreeSet<&str> =
        operations.iter().map(|(_, described)| described["operationId"].as_str().unwrap()).collect();
    assert_eq!(names.len(), operations.len(), "operation ids are unique");
    for (operation, described) in operations {
        assert!(described["summary"].is_string(), "{operation} has no summary");
        assert_eq!(described["tags"].as_array().map(Vec::len), Some(1), "{operation}");
        let parameters = described["parameters"].as_array().into_iter().flatten();
        let in_path = parameters.filter(|parameter| parameter["in"] == "path");
        let described_names: Vec<String> =
            in_path.map(|name| format!("{{{}}}", name["name"].as_str().unwrap())).collect();
        let names: Vec<&str> = operation.split('/').filter(|segment| segment.starts_with('{')).collect();
        assert_eq!(described_names, names, "{operation}");
        let bodies = described["requestBody"]["content"].as_object().into_iter().flatten();
        for (status, response) in described["responses"].as_object().unwrap() {
            assert!(!response["description"].as_str().unwrap().is_empty(), "{operation} {status}");
            for (kind, content) in response["content"].as_object().into_iter().flatten() {
                assert!(content["schema"].is_object(), "{operation} {status} {kind}: no schema");
                let is_text = !kind.contains("json");
                assert!(
                    is_text || content.get("example").is_some(),
                    "{operation} {status} {kind}: no example"
                );
            }
        }
        for (kind, content) in bodies {
            assert!(content.get("example").is_some(), "{operation} {kind}: no example of its body");
        }
    }
}

#[test]
fn fleet_lock_is_described() {
    let document = document();
    for path in ["/v1/pre-reboot", "/v1/steady-state"] {
        let described = &document["paths"][path]["post"];
        assert_eq!(described["parameters"][0]["name"], json!("fleet-lock-protocol"), "{path}");
        assert_eq!(described["security"], json!([{"accessToken": []}, {"fleetLock": []}]), "{path}");
    }
}

#[test]
fn references_resolve() {
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(ToOwned::to_owned));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = document();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

#[test]
fn examples_match_their_schemas() {
    for (operation, described) in operations(&document()) {
        let bodies = std::iter::once(&described["requestBody"]);
        let answers = described["responses"].as_object().unwrap().values();
        for body in bodies.chain(answers) {
            for content in body["content"].as_object().into_iter().flat_map(|content| content.values()) {
                if let Some(example) = content.get("example") {
                    assert_eq!(
                        conformance::faults(&content["schema"], example),
                        [""; 0],
                        "{operation}: {example}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn documentation_page_is_served() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let pages = [
        ("/docs/", "text/html", "swagger-ui-bundle.js"),
        ("/docs/index.html", "text/html", "swagger-ui-bundle.js"),
        ("/docs/swagger-initializer.js", "text/javascript", "../openapi.json"),
    ];
    for ((path, kind, part), coding) in pages.iter().flat_map(|page| [(*page, "identity"), (*page, "gzip")]) {
        let mut request = build(&format!("GET {path}"), "", "");
        request.headers_mut().insert("accept-encoding", coding.parse().unwrap());
        let response = api.router.clone().oneshot(request).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &kind.parse().unwrap())
        );
        assert!(response.headers().contains_key("content-security-policy"), "{path}");
        let is_compressed = response.headers().get("content-encoding").is_some_and(|coding| coding == "gzip");
        // The initializer is made for this site, and short.
        assert_eq!(is_compressed, coding == "gzip" && !path.ends_with("initializer.js"), "{path}");
        assert_eq!(response.headers().contains_key("vary"), !path.ends_with("initializer.js"), "{path}");
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let mut text = String::new();
        if is_compressed {
            std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&*body), &mut text).unwrap();
        } else {
            text = String::from_utf8(body.to_vec()).unwrap();
        }
        assert!(text.contains(part), "{path}: {text}");
        assert!(
            !text.contains("http://") && !text.contains("https://"),
            "{path} loads from elsewhere: {text}"
        );
    }
    let (status, headers, _) = api.send(build("GET /docs", "", "")).await;
    assert_eq!((status, headers["location"].to_str().unwrap()), (308, "docs/"));
    assert_eq!(api.call("GET /docs/x", "").await, (404, error("the page has no file \"x\"")));
}
