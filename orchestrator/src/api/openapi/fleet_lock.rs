//! FleetLock, described. Its requests are answered by `api/fleet_lock`, before the router; the functions here are
//! never called.

use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};

use super::tag;
use super::types::{ClientText, GroupText};

/// The endpoints of FleetLock.
#[derive(utoipa::OpenApi)]
#[openapi(paths(pre_reboot, steady_state), components(schemas(Meant)))]
pub(super) struct Described;

/// Who asks for a slot, or gives it back. Further fields are ignored.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is read by `Claim`; here is its shape")]
struct ClaimBody {
    client_params: ClientParams,
}

/// The client, and the group of its slot.
#[derive(ToSchema)]
#[expect(dead_code, reason = "as above")]
struct ClientParams {
    #[schema(value_type = ClientText)]
    id: String,
    #[schema(value_type = GroupText)]
    group: String,
}

/// It is granted.
#[derive(ToSchema)]
struct Granted {}

/// The only value of the header.
#[derive(ToSchema)]
#[expect(dead_code, reason = "as above")]
enum Meant {
    #[schema(rename = "true")]
    True,
}

/// An error of FleetLock.
#[derive(ToSchema)]
#[schema(as = LockError)]
#[expect(dead_code, reason = "it is written by `LockError`; here is its shape")]
pub(in crate::api) struct LockErrorBody {
    /// A word of a small fixed set; docs/fleetlock.md has them all.
    kind: String,
    /// What is wrong, for people.
    value: String,
}

/// Once the answer is there it is durable that the client holds the slot. The `Content-Type` and the query are not
/// looked at.
#[utoipa::path(
    post, path = "/v1/pre-reboot", operation_id = "pre-reboot", tag = tag::FLEET_LOCK,
    summary = "Take a slot",
    params(("fleet-lock-protocol" = Meant, Header, description = "that the request is meant for such a server")),
    request_body = ClaimBody,
    responses((status = 200, description = "the client holds a slot", body = Granted))
)]
#[expect(dead_code, reason = "only its description is used")]
fn pre_reboot() {}

/// Once the answer is there it is durable that the client holds no slot. The `Content-Type` and the query are not
/// looked at.
#[utoipa::path(
    post, path = "/v1/steady-state", operation_id = "steady-state", tag = tag::FLEET_LOCK,
    summary = "Give a slot back",
    params(("fleet-lock-protocol" = Meant, Header, description = "that the request is meant for such a server")),
    request_body = ClaimBody,
    responses((status = 200, description = "the client holds no slot", body = Granted))
)]
#[expect(dead_code, reason = "only its description is used")]
fn steady_state() {}

/// What may go wrong: status, when, `kind` and `value`.
const ERRORS: [(&str, &str, &str, &str); 9] = [
    ("400", "the request cannot be meant", "unknown_group", "there is no group \"rack-9\""),
    (
        "401",
        "the credentials are missing, wrong or expired",
        "unauthorized",
        "credentials are needed: those of a token, with HTTP Basic",
    ),
    (
        "403",
        "the credentials are not for this group",
        "forbidden",
        "these credentials are not for group default",
    ),
    ("408", "the body did not arrive in time", "body_timeout", "the body did not arrive within 10 s"),
    (
        "409",
        "there is no slot to be had here now",
        "failed_lock_semaphore_full",
        "all 1 slots of group default are held: h02",
    ),
    ("413", "the body is too large", "body_too_large", "the body exceeds 65536 bytes"),
    (
        "429",
        "too many requests come from this address",
        "too_many_requests",
        "too many requests come from this address: ask again later, and less often",
    ),
    (
        "500",
        "a fault of the orchestrator; its log has the cause",
        "internal",
        "internal error; the log has its cause",
    ),
    (
        "503",
        "nothing could be asked, or nobody can say now whether the slot is held: ask again",
        "backend_unavailable",
        "not leading: the bus is away; nothing was changed",
    ),
];

/// Adds to `operation` what may go wrong with it.
pub(super) fn add(operation: &mut Operation) {
    for (status, when, kind, value) in ERRORS {
        let content = ContentBuilder::new()
            .schema(Some(Ref::from_schema_name(LockErrorBody::name())))
            .example(Some(json!({ "kind": kind, "value": value })));
        let response = ResponseBuilder::new().description(when).content("application/json", content.build());
        operation.responses.responses.insert(status.to_owned(), RefOr::T(response.build()));
    }
}
