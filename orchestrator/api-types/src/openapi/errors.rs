//! The errors that any route may answer, in the dialect of the specification. A declaration says what is special about its
//! route: its 404, 409 and 412.

use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};

use crate::route::{Access, Declaration, Method};

/// The body of an error.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the server writes it; here is its shape")]
pub(super) struct Errors {
    errors: Vec<ErrorEntry>,
}

/// One thing that is wrong.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
#[expect(dead_code, reason = "as above")]
pub(super) struct ErrorEntry {
    /// What is wrong, and what to do about it, for people.
    error_message: String,
    /// The same for programs, where there is something to be said.
    #[schema(value_type = Object, required = false)]
    error_info: serde_json::Value,
}

/// Status, when, and what is said for example.
type Common = (u16, &'static str, &'static str);

const TO_ALL: [Common; 2] = [
    (
        429,
        "too many requests come from this address; `Retry-After` says when to ask again",
        "too many requests come from this address: ask again later, and less often",
    ),
    (500, "a fault of the orchestrator; its log has the cause", "internal error; the log has its cause"),
];

const TO_QUERIES: Common =
    (400, "the request cannot be meant", "unknown query parameter \"x\"; known here: validate");

const UNAVAILABLE: Common = (
    503,
    "nothing can be done now, or nobody knows what became of it; ask again later. `outcome` in the `error-info` says of a \
     change whether it was certainly not made, `unchanged`, or may still come to be, `unknown`",
    "the bus is away",
);

const TO_TOKENS: [Common; 2] = [
    (401, "there is no valid token", "this needs a token: send it as Authorization: Bearer <token>"),
    (403, "the token may not do this", "this needs the role operator"),
];

const TO_BODIES: [Common; 3] = [
    (408, "the body did not arrive in time", "the body did not arrive in time"),
    (413, "the body is too large", "the body exceeds 1048576 bytes"),
    (
        415,
        "the body's type is not understood",
        "only JSON and YAML are supported: send Content-Type application/json or application/yaml",
    ),
];

/// Adds to `operation` what may happen to it as to any other, and gives every error its body.
pub(super) fn add(route: &Declaration, operation: &mut Operation) {
    let mut common: Vec<Common> = TO_ALL.to_vec();
    common.push(TO_QUERIES);
    common.push(UNAVAILABLE);
    if route.access != Access::Anybody {
        common.extend(TO_TOKENS);
    }
    if operation.request_body.is_some() {
        common.extend(TO_BODIES);
    }
    let responses = &mut operation.responses.responses;
    for (status, when, _) in &common {
        responses
            .entry(status.to_string())
            .or_insert_with(|| RefOr::T(ResponseBuilder::new().description(*when).build()));
    }
    for (status, response) in responses {
        let RefOr::T(response) = response else { continue };
        let outcome = (status == "503" && route.method != Method::Get).then_some("unchanged");
        let is_error = status.starts_with(['4', '5']);
        if is_error && response.content.is_empty() {
            let said = common.iter().find(|(common, ..)| common.to_string() == *status);
            let said = said.map_or_else(|| response.description.clone(), |(.., said)| (*said).to_owned());
            fill(response, &said, outcome);
        }
    }
}

fn fill(response: &mut Response, said: &str, outcome: Option<&str>) {
    let entry = match outcome {
        None => json!({ "error-message": said }),
        Some(outcome) => json!({
            "error-message": format!("{said}; nothing was changed"),
            "error-info": { "outcome": outcome, "why": said },
        }),
    };
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Errors")))
        .example(Some(json!({ "errors": [entry] })));
    response.content.insert("application/json".to_owned(), RefOr::T(content.build()));
}
