//! Answers that refuse: a `Status` as the API server words it, or plain text when it throttles.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use serde_json::{Map, Value, json};

use crate::resource::Resource;

/// A refusal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    code: u16,
    body: Text,
    retry_after_secs: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
enum Text {
    Status(Value),
    Plain(&'static str),
}

impl Failure {
    /// A `Status` without details.
    pub(crate) fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        let message: String = message.into();
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code,
        });
        if !reason.is_empty() {
            status["reason"] = json!(reason);
        }
        Self { code, body: Text::Status(status), retry_after_secs: None }
    }

    /// The same with `details`, which are added to those it has.
    pub(crate) fn details(mut self, details: Value) -> Self {
        if let (Text::Status(status), Value::Object(details)) = (&mut self.body, details) {
            let before = status.as_object_mut().unwrap().entry("details").or_insert_with(|| json!({}));
            before.as_object_mut().unwrap().extend(details);
        }
        self
    }

    /// The same with a time to wait, in the header and in the details.
    pub(crate) fn retry_after(mut self, secs: u32) -> Self {
        self.retry_after_secs = Some(secs);
        self.details(json!({ "retryAfterSeconds": secs }))
    }

    /// The same with a continue token in the metadata.
    pub(crate) fn continue_token(mut self, token: &str) -> Self {
        if let Text::Status(status) = &mut self.body {
            status["metadata"] = json!({ "continue": token });
        }
        self
    }

    /// 400.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 405.
    pub(crate) fn no_such_method() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).details(json!({}))
    }

    /// 404 for a path that is of no group's, which is not a `Status`.
    pub(crate) fn no_such_page() -> Self {
        Self { code: 404, body: Text::Plain("404 page not found\n"), retry_after_secs: None }
    }

    /// 401.
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 404 for a path that nothing is served at.
    pub(crate) fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").details(json!({}))
    }

    /// 404 for an object.
    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Self::new(404, "NotFound", message).details(about(resource, resource.plural, name))
    }

    /// 409 for an object whose name is taken.
    pub(crate) fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(409, "AlreadyExists", message).details(about(resource, resource.plural, name))
    }

    /// 409 for a write based on another version of the object.
    pub(crate) fn stale(resource: &Resource, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 409 for a write that what is stored does not allow.
    pub(crate) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::new(409, "Conflict", message).details(about(resource, resource.plural, name))
    }

    /// 409 for a precondition of a deletion.
    pub(crate) fn precondition(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.kind);
        Self::new(409, "Conflict", message).details(about(resource, resource.kind, name))
    }

    /// 422 for a JSON patch that does not apply.
    pub(crate) fn patch_does_not_apply() -> Self {
        Self::new(422, "Invalid", "the server rejected our request due to an error in our request")
            .details(json!({}))
    }

    /// 429 of a disruption budget.
    pub(crate) fn budget(message: &str) -> Self {
        let cause = json!({ "reason": "DisruptionBudget", "message": message });
        Self::new(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
            .details(json!({ "causes": [cause] }))
    }

    /// 429 of a server that throttles, which is not a `Status`.
    pub(crate) fn throttled() -> Self {
        let text = "Too many requests, please try again later.\n";
        Self { code: 429, body: Text::Plain(text), retry_after_secs: Some(1) }
    }

    /// The body of a `Status`; null for plain text.
    pub(crate) fn status(&self) -> Value {
        match &self.body {
            Text::Status(status) => status.clone(),
            Text::Plain(_) => Value::Null,
        }
    }

    /// The answer.
    pub(crate) fn into_response(self) -> Response {
        let (kind, text) = match self.body {
            Text::Status(status) => ("application/json", status.to_string()),
            Text::Plain(text) => ("text/plain; charset=utf-8", text.to_owned()),
        };
        let mut response = Response::builder()
            .status(StatusCode::from_u16(self.code).unwrap())
            .header(header::CONTENT_TYPE, kind);
        if let Some(secs) = self.retry_after_secs {
            response = response.header(header::RETRY_AFTER, secs);
        }
        response.body(Body::from(text)).unwrap()
    }
}

/// The details that name an object. `kind` is a plural in most answers and a kind in some.
pub(crate) fn about(resource: &Resource, kind: &str, name: &str) -> Value {
    let mut details = Map::new();
    if !name.is_empty() {
        details.insert("name".to_owned(), json!(name));
    }
    if !resource.group.is_empty() {
        details.insert("group".to_owned(), json!(resource.group));
    }
    details.insert("kind".to_owned(), json!(kind));
    Value::Object(details)
}
