//! The errors that any route may answer, in the dialect of the specification. Errors of a single route, such as 404,
//! 409 and 412, are in its declaration.

use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};

use crate::route::{Access, Declaration, Method};

/// The body of an error.
#[derive(ToSchema)]
#[expect(dead_code, reason = "serialized by the server; only the schema is used")]
pub(super) struct Errors {
    errors: Vec<ErrorEntry>,
}

/// An error.
#[derive(ToSchema)]
#[schema(rename_all = "kebab-case")]
#[expect(dead_code, reason = "as above")]
pub(super) struct ErrorEntry {
    /// What is wrong, and what to do about it, for people.
    error_message: String,
    /// Details for programs; absent if there are none.
    #[schema(value_type = Object, required = false)]
    error_info: serde_json::Value,
}

/// Status, description, and an example of the message.
type Common = (u16, &'static str, &'static str);

const ALL_ROUTES: [Common; 2] = [
    (
        429,
        "too many requests come from this address; try again after `Retry-After`",
        "too many requests come from this address: try again later, and less often",
    ),
    (500, "a fault of the orchestrator; its log has the cause", "internal error; the log has its cause"),
];

const INVALID: Common =
    (400, "the request is invalid", "unknown query parameter \"x\"; known here: validate");

const UNAVAILABLE: Common = (
    503,
    "the request cannot be handled now, or its outcome is unknown; try again later. For a change, `outcome` in the \
    `error-info` is `unchanged` if it was certainly not made, and `unknown` if it may still be made",
    "NATS is unreachable",
);

const PROTECTED_ROUTES: [Common; 2] = [
    (401, "no valid token was sent", "this needs a token: send it as Authorization: Bearer <token>"),
    (
        403,
        "the token may not do this; or, without tokens, the request comes from a page of another web site or was sent to a \
         name other than localhost",
        "this needs the role operator",
    ),
];

const OPEN_ROUTES: [Common; 1] = [(
    403,
    "without tokens, the request comes from a page of another web site or was sent to a name other than localhost",
    "the request comes from a page of another site, or was sent to another name than localhost; without tokens only \
    programs on this machine may call: set [api] tokens",
)];

const CALL_BACKS: [Common; 3] = [
    (401, "no valid call-back token was sent; an access token of this API is none", "the token is not valid"),
    LATE_BODY,
    LARGE_BODY,
];

const LATE_BODY: Common = (408, "the body did not arrive in time", "the body did not arrive in time");

const LARGE_BODY: Common = (413, "the body is too large", "the body exceeds 1048576 bytes");

const ROUTES_WITH_BODY: [Common; 3] = [
    LATE_BODY,
    LARGE_BODY,
    (
        415,
        "the content type of the body is not supported",
        "only JSON and YAML are supported: send Content-Type application/json or application/yaml",
    ),
];

/// Adds the errors that any route may answer, and gives every error a body.
pub(super) fn add(route: &Declaration, operation: &mut Operation) {
    let mut common: Vec<Common> = ALL_ROUTES.to_vec();
    common.push(INVALID);
    common.push(UNAVAILABLE);
    match route.access {
        Access::Anybody => common.extend(OPEN_ROUTES),
        Access::Role(_) | Access::LockGroup => common.extend(PROTECTED_ROUTES),
        Access::CallBack => common.extend(OPEN_ROUTES.into_iter().chain(CALL_BACKS)),
    }
    if operation.request_body.is_some() && route.access != Access::CallBack {
        common.extend(ROUTES_WITH_BODY);
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
            let message = common.iter().find(|(common, ..)| common.to_string() == *status);
            let message =
                message.map_or_else(|| response.description.clone(), |(.., message)| (*message).to_owned());
            fill(response, &message, outcome);
        }
    }
}

fn fill(response: &mut Response, message: &str, outcome: Option<&str>) {
    let entry = match outcome {
        None => json!({ "error-message": message }),
        Some(outcome) => json!({
            "error-message": format!("{message}; nothing was changed"),
            "error-info": { "outcome": outcome, "why": message },
        }),
    };
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Errors")))
        .example(Some(json!({ "errors": [entry] })));
    response.content.insert("application/json".to_owned(), RefOr::T(content.build()));
}
