//! The errors that a route of FleetLock may answer, in its dialect.

use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};

/// An error of FleetLock.
#[derive(ToSchema)]
#[expect(dead_code, reason = "serialized by the server; only the schema is used")]
#[schema(as = LockError)]
pub(crate) struct LockErrorBody {
    /// The kind of error, one of a small fixed set, which docs/fleetlock.md lists.
    kind: String,
    /// What is wrong, for people.
    value: String,
}

/// The errors: status, description, and an example of `kind` and `value`.
const ERRORS: [(&str, &str, &str, &str); 9] = [
    ("400", "the request is invalid", "unknown_group", "there is no group rack-9"),
    (
        "401",
        "the credentials are missing, wrong or expired",
        "unauthorized",
        "HTTP Basic credentials or a client certificate are needed",
    ),
    (
        "403",
        "the credentials are not for this group, or, without tokens, the request comes from a page of another web site or was sent to a name other than \
         localhost",
        "forbidden",
        "token rack may not request slots of the group default",
    ),
    ("408", "the body did not arrive in time", "body_timeout", "the body did not arrive within 10 s"),
    (
        "409",
        "no slot is available here now",
        "failed_lock_semaphore_full",
        "the only slot is held by h02 since 2026-11-21T01:00:00Z",
    ),
    ("413", "the body is too large", "body_too_large", "the body exceeds 65536 bytes"),
    (
        "429",
        "too many requests come from this address",
        "too_many_requests",
        "too many requests come from this address: try again later, and less often",
    ),
    (
        "500",
        "a fault of the orchestrator; its log has the cause",
        "internal",
        "internal error; the log has its cause",
    ),
    (
        "503",
        "the request could not be processed, or it is not known whether the slot is held: try again",
        "backend_unavailable",
        "not leading: NATS is unreachable; nothing was changed",
    ),
];

/// Adds the errors to `operation`.
pub(super) fn add(operation: &mut Operation) {
    for (status, when, kind, value) in ERRORS {
        let content = ContentBuilder::new()
            .schema(Some(Ref::from_schema_name(LockErrorBody::name())))
            .example(Some(json!({ "kind": kind, "value": value })));
        let response = ResponseBuilder::new().description(when).content("application/json", content.build());
        operation.responses.responses.insert(status.to_owned(), RefOr::T(response.build()));
    }
}
