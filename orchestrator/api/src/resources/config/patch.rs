//! Patches of the configuration: merge patches (RFC 7396) and JSON Patch (RFC 6902). They are applied here to the
//! configuration that this instance has; the leader checks that it is still the current one.

use axum::http::{HeaderMap, StatusCode};
use json_patch::{CopyOperation, MoveOperation, PatchErrorKind, PatchOperation};
use serde_json::{Value, json};

use crate::http::document::{from_value, parse_value, problem_at};
use crate::http::error::Problem;
use crate::http::extract::Content;
use crate::http::form::Syntax;

/// The value of `Accept-Patch`.
pub(crate) const ACCEPTED: &str =
    "application/merge-patch+json, application/json-patch+json, application/json, application/yaml";

/// Most steps in a JSON Patch.
const STEPS_MAX: usize = 256;
/// Largest document after a step, in bytes, roughly. A step can at most double the document, by copying it into
/// itself, so checking after each step bounds memory.
const SIZE_MAX: usize = 2 * 1024 * 1024;
/// Estimated size of a value without its text, in bytes.
const VALUE_SIZE: usize = 100;
/// Deepest nesting of the document after a step.
const DEPTH_MAX: usize = 64;

/// A patch.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Patch {
    /// The fields to set; `null` removes one.
    Merge(Value),
    /// Steps, applied all or none.
    Steps(Vec<PatchOperation>),
}

impl Patch {
    /// Reads a body in the format that `headers` name.
    pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Self, Problem> {
        match Content::of(headers) {
            Some(Content::Document(syntax)) => Self::merge(body, syntax),
            Some(Content::MergePatch) => Self::merge(body, Syntax::Json),
            Some(Content::JsonPatch) => Self::steps(body),
            None => Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!("patches are in {ACCEPTED}: send one of these as Content-Type"),
            )),
        }
    }

    fn merge(body: &[u8], syntax: Syntax) -> Result<Self, Problem> {
        let value = parse_value(body, syntax)?;
        if !value.is_object() {
            // RFC 7396 would replace the whole configuration by it.
            return Err(Problem::bad_request("a merge patch is an object with the fields that change"));
        }
        Ok(Self::Merge(value))
    }

    fn steps(body: &[u8]) -> Result<Self, Problem> {
        let Value::Array(steps) = parse_value(body, Syntax::Json)? else {
            return Err(Problem::bad_request("a JSON Patch is a list of operations"));
        };
        if steps.len() > STEPS_MAX {
            return Err(Problem::bad_request(format!("a JSON Patch has at most {STEPS_MAX} operations")));
        }
        let steps = steps.into_iter().enumerate().map(|(index, step)| {
            let refused = |message: &str| {
                let message = format!("operation {index}: {message}");
                Problem::bad_request(message).with_info(json!({ "step": index }))
            };
            // The library reads it only where an operation has a source.
            if step.get("from").is_some_and(|from| !from.is_string()) {
                return Err(refused("from: expected a string, a JSON Pointer"));
            }
            from_value(step).map_err(|problem| refused(&problem.into_message()))
        });
        steps.collect::<Result<_, _>>().map(Self::Steps)
    }

    /// `document` with the patch applied. `known` are the paths of all fields.
    ///
    /// # Errors
    /// 412 when a `test` fails, 400 when a step cannot be done, or a merge patch does not fit the document.
    pub(crate) fn apply(&self, mut document: Value, known: &[String]) -> Result<Value, Problem> {
        match self {
            Self::Merge(patch) => {
                check_merge(patch, Some(&document), "", known)?;
                json_patch::merge(&mut document, patch);
            }
            Self::Steps(steps) => {
                for (index, step) in steps.iter().enumerate() {
                    if let Err(error) = json_patch::patch(&mut document, std::slice::from_ref(step)) {
                        let why = explain(&document, step, &error.kind);
                        let message = format!("{:?}: {why}", error.path.as_str());
                        return Err(failed(index, &error.kind, &message));
                    }
                    if !is_bounded(&document, DEPTH_MAX, &mut SIZE_MAX.clone()) {
                        return Err(failed(
                            index,
                            &PatchErrorKind::InvalidPointer,
                            "the document becomes too large",
                        ));
                    }
                }
            }
        }
        Ok(document)
    }
}

/// Checks that a merge patch removes only what a configuration may have: a misspelt field would remove nothing. Unknown fields with a value
/// are refused with the patched configuration. Nor does it name an entry of a list, which `document` has there: the list would be lost.
fn check_merge(
    patch: &Value,
    document: Option<&Value>,
    parent: &str,
    known: &[String],
) -> Result<(), Problem> {
    for (name, value) in patch.as_object().into_iter().flatten() {
        let field = if parent.is_empty() { name.clone() } else { format!("{parent}/{name}") };
        let current = document.and_then(|document| document.get(name.as_str()));
        if value.is_object() && current.is_some_and(Value::is_array) {
            let message = format!(
                "a list is replaced as a whole: give [...] with all its entries; to change one, send a JSON Patch \
                 (application/json-patch+json), such as [{{\"op\":\"remove\",\"path\":\"/{field}/0\"}}], or use `os-upgrade config edit`"
            );
            return Err(problem_at(&field, &message));
        }
        if value.is_null() && !known.contains(&field) {
            return Err(problem_at(&field, "there is no such field"));
        }
        check_merge(value, current, &field, known)?;
    }
    Ok(())
}

/// Explains why `step` cannot be applied to `document`, and what to do.
fn explain(document: &Value, step: &PatchOperation, kind: &PatchErrorKind) -> String {
    let is_addition =
        matches!(step, PatchOperation::Add(_) | PatchOperation::Copy(_) | PatchOperation::Move(_));
    match (kind, step) {
        (
            PatchErrorKind::InvalidFromPointer,
            PatchOperation::Copy(CopyOperation { from, .. })
            | PatchOperation::Move(MoveOperation { from, .. }),
        ) => explain_missing(document, from.as_str(), false),
        (PatchErrorKind::InvalidPointer, _) => explain_missing(document, step.path().as_str(), is_addition),
        (kind, _) => kind.to_string(),
    }
}

/// Explains what is missing in `document` at `path`. An addition needs only the parent to exist.
fn explain_missing(document: &Value, path: &str, is_addition: bool) -> String {
    let ends = path.match_indices('/').map(|(end, _)| end).filter(|end| *end > 0);
    let mut prefixes = ends.map(|end| path.split_at(end));
    if let Some((missing, rest)) = prefixes.find(|(prefix, _)| document.pointer(prefix).is_none()) {
        let last = rest.rsplit('/').next().unwrap_or_default();
        let is_list = rest.matches('/').count() == 1 && (last == "-" || last.parse::<usize>().is_ok());
        let (what, value) = if is_list { ("list", "[]") } else { ("object", "{}") };
        return format!(
            "nothing exists at {missing:?}; add the {what} first: \
             {{\"op\":\"add\",\"path\":{missing:?},\"value\":{value}}}"
        );
    }
    let parent = path.rsplit_once('/').and_then(|(parent, _)| document.pointer(parent));
    match parent {
        Some(Value::Array(items)) => {
            let most = if is_addition { items.len() } else { items.len().saturating_sub(1) };
            if items.is_empty() && !is_addition {
                "the list is empty".to_owned()
            } else {
                format!("the index must be 0 to {most}, or - to append with add")
            }
        }
        Some(Value::Object(_)) => "nothing exists there; add creates it".to_owned(),
        _ => "its parent is neither a list nor an object".to_owned(),
    }
}

fn failed(index: usize, kind: &PatchErrorKind, message: &str) -> Problem {
    let is_test = matches!(kind, PatchErrorKind::TestFailed);
    let status = if is_test { StatusCode::PRECONDITION_FAILED } else { StatusCode::BAD_REQUEST };
    Problem::new(status, format!("operation {index}: {message}")).with_info(json!({ "step": index }))
}

/// Whether `value` is at most `depth` deep and takes at most `left` bytes, which are subtracted.
fn is_bounded(value: &Value, depth: usize, left: &mut usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let text = match value {
        Value::String(text) => text.len(),
        Value::Object(fields) => fields.keys().map(String::len).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => 0,
    };
    let Some(rest) = left.checked_sub(VALUE_SIZE + text) else { return false };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| is_bounded(item, depth, left)),
        Value::Object(fields) => fields.values().all(|field| is_bounded(field, depth, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header::CONTENT_TYPE;

    use super::*;

    fn patched(content_type: &str, patch: &str) -> Result<Value, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
        let document = json!({"a": [{"name": "x"}, {"name": "y"}], "b": {"c": 1, "d": 2}});
        let patch = Patch::read(&headers, patch.as_bytes()).map_err(Problem::into_message)?;
        let known = ["a", "a/name", "b", "b/c", "b/d", "b/e", "e", "f"].map(ToOwned::to_owned);
        patch.apply(document, &known).map_err(Problem::into_message)
    }

    #[test]
    fn merge_patches() {
        for content_type in ["application/json", "application/merge-patch+json", "application/yaml"] {
            let patch = r#"{"a": [{"name": "z"}], "b": {"c": null, "e": 3}, "f": null}"#;
            let expected = json!({"a": [{"name": "z"}], "b": {"d": 2, "e": 3}});
            assert_eq!(patched(content_type, patch), Ok(expected), "{content_type}");
        }
        let yaml = "a:\n  - name: z\nb:\n  c: ~\n";
        assert_eq!(patched("text/yaml", yaml), Ok(json!({"a": [{"name": "z"}], "b": {"d": 2}})));
        for (patch, message) in [
            ("[]", "a merge patch is an object with the fields that change"),
            ("null", "a merge patch is an object with the fields that change"),
            (r#"{"b":{"c":1,"c":2}}"#, "b: \"c\" is given twice at line 1 column 15"),
            (r#"{"b":{"g":null}}"#, "b/g: there is no such field"),
            (
                r#"{"a":{"x":null}}"#,
                "a: a list is replaced as a whole: give [...] with all its entries; to change one, send a JSON Patch \
                 (application/json-patch+json), such as [{\"op\":\"remove\",\"path\":\"/a/0\"}], or use `os-upgrade config edit`",
            ),
        ] {
            assert_eq!(patched("application/merge-patch+json", patch), Err(message.to_owned()), "{patch}");
        }
    }

    #[test]
    fn json_patches() {
        let patched = |patch: &Value| patched("application/json-patch+json", &patch.to_string());
        let steps = json!([
            {"op": "test", "path": "/b/c", "value": 1},
            {"op": "replace", "path": "/a/0/name", "value": "z"},
            {"op": "add", "path": "/a/-", "value": {"name": "end"}},
            {"op": "remove", "path": "/b/c"},
            {"op": "move", "from": "/b/d", "path": "/e"},
            {"op": "copy", "from": "/e", "path": "/f"},
        ]);
        let expected = json!({"a": [{"name": "z"}, {"name": "y"}, {"name": "end"}], "b": {}, "e": 2, "f": 2});
        assert_eq!(patched(&steps), Ok(expected));
        for (patch, message) in [
            (json!({}), "a JSON Patch is a list of operations"),
            (json!([{"op": "remove", "path": "/b/c"}, {"op": "jump", "path": "/b"}]), "operation 1: "),
            (json!([{"op": "remove"}]), "operation 0: "),
            (json!([{"op": "copy", "from": 1, "path": "/e"}]), "operation 0: from: expected a string"),
            (json!([{"op": "remove", "from": null, "path": "/b/c"}]), "operation 0: from: expected a string"),
            (json!([{"op": "remove", "path": "b"}]), "operation 0: "),
            (
                json!([{"op": "test", "path": "/b/c", "value": 2}]),
                "operation 0: \"/b/c\": value did not match",
            ),
            (
                json!([{"op": "remove", "path": "/b/c"}, {"op": "remove", "path": "/b/c"}]),
                "operation 1: \"/b/c\": nothing exists there; add creates it",
            ),
            (
                json!([{"op": "add", "path": "/list/-", "value": 1}]),
                "operation 0: \"/list/-\": nothing exists at \"/list\"; add the list first: \
                 {\"op\":\"add\",\"path\":\"/list\",\"value\":[]}",
            ),
            (
                json!([{"op": "replace", "path": "/b/x/y", "value": 1}]),
                "operation 0: \"/b/x/y\": nothing exists at \"/b/x\"; add the object first: \
                 {\"op\":\"add\",\"path\":\"/b/x\",\"value\":{}}",
            ),
            (
                json!([{"op": "remove", "path": "/a/2"}]),
                "operation 0: \"/a/2\": the index must be 0 to 1, or - to append with add",
            ),
            (
                json!([{"op": "add", "path": "/b/c/d", "value": 1}]),
                "operation 0: \"/b/c/d\": its parent is neither",
            ),
            (json!([{"op": "copy", "from": "/x", "path": "/y"}]), "operation 0: "),
            (
                json!(vec![json!({"op": "test", "path": "/b/c", "value": 1}); 257]),
                "a JSON Patch has at most 256 operations",
            ),
        ] {
            let problem = patched(&patch).unwrap_err();
            assert!(problem.starts_with(message), "{problem}");
        }
    }

    /// Each step doubles the document.
    #[test]
    fn exponential_patch_is_refused() {
        for path in ["/x", "/a/-", "/b/c"] {
            let steps = json!(vec![json!({"op": "copy", "from": "", "path": path}); 256]).to_string();
            let problem = patched("application/json-patch+json", &steps).unwrap_err();
            assert!(problem.ends_with("the document becomes too large"), "{problem}");
        }
        // Few values with much text.
        let text = json!({"op": "add", "path": "/x", "value": ["x".repeat(900_000)]});
        let copy = json!({"op": "copy", "from": "/x", "path": "/x/-"});
        let steps = json!([text, copy, copy, copy, copy]).to_string();
        let problem = patched("application/json-patch+json", &steps).unwrap_err();
        assert!(
            problem.starts_with("operation 2") && problem.ends_with("the document becomes too large"),
            "{problem}"
        );
    }
}
