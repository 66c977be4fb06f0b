//! FleetLock: slots for external clients, `POST /v1/pre-reboot` and `/v1/steady-state`, also below `/fleetlock`.

mod claim;

use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

pub use self::claim::{Claim, ClaimBody, ClaimError, REQUEST_BYTES_MAX};
use crate::route::{Access, Answer, Method, Route, Shape, Tag};

/// The header that marks requests to a FleetLock server. It shows that a request was not redirected here.
pub const PROTOCOL_HEADER: &str = "fleet-lock-protocol";

/// The paths are also served below this prefix, and all requests below it are answered in FleetLock's dialect.
pub const PREFIX: &str = "/fleetlock";

/// Take a slot: 200 once the grant is durable.
pub const LOCK: Route<ClaimBody> = Route::new(
    Method::Post,
    "/v1/pre-reboot",
    Access::LockGroup,
    Tag::FleetLock,
    "pre-reboot",
    "Take a slot",
)
.body::<ClaimBody>(claim)
.headers::<Protocol>()
.answers(&[Answer::json("the client holds a slot", Shape::of::<Granted>(), || json!({}))]);

/// Release a slot: 200 once it is durable that the client holds none.
pub const UNLOCK: Route<ClaimBody> = Route::new(
    Method::Post,
    "/v1/steady-state",
    Access::LockGroup,
    Tag::FleetLock,
    "steady-state",
    "Release a slot",
)
.body::<ClaimBody>(claim)
.headers::<Protocol>()
.answers(&[Answer::json("the client holds no slot", Shape::of::<Granted>(), || json!({}))]);

fn claim() -> Value {
    json!({"client_params": {"id": "c988d2509fdf5cdcbed39037c56406fb", "group": "default"}})
}

/// The request is granted.
#[derive(Debug, ToSchema)]
pub struct Granted {}

/// The header of every request.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
pub struct Protocol {
    /// Marks the request as meant for a FleetLock server.
    #[param(rename = "fleet-lock-protocol", value_type = Meant)]
    pub protocol: String,
}

/// The only value of the header.
#[derive(Debug, ToSchema)]
pub enum Meant {
    #[schema(rename = "true")]
    True,
}

/// The path below [`PREFIX`] at which a request for `path` is answered; `None` if `path` is not FleetLock's. Clients join paths to
/// their base URL with too few or too many slashes, so any number of slashes is accepted. A path that denotes no route is kept whole.
pub fn nested_path(path: &str) -> Option<String> {
    let requested = segments(path);
    let below = requested.strip_prefix(&[PREFIX.trim_start_matches('/')]);
    let ends_with = |route: &&str| requested.ends_with(&segments(route));
    // A client below a wrong base reads FleetLock's errors alone.
    let route = [LOCK.path(), UNLOCK.path()].into_iter().find(ends_with);
    let denoted = route.filter(|route| segments(route) == below.unwrap_or(&requested));
    (below.is_some() || route.is_some()).then(|| format!("{PREFIX}{}", denoted.unwrap_or(path)))
}

fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised() {
        for base in ["", "/", "//", "/fleetlock", "/fleetlock/", "//fleetlock//"] {
            for (path, expected) in [
                ("/v1/pre-reboot", LOCK.path()),
                ("/v1/pre-reboot/", LOCK.path()),
                ("/v1//steady-state//", UNLOCK.path()),
            ] {
                let path = format!("{base}{path}");
                assert_eq!(nested_path(&path), Some(format!("{PREFIX}{expected}")), "{path}");
            }
        }
        for path in [
            "/fleetlock",
            "/fleetlock/",
            "/fleetlock/v1",
            "/fleetlock/v1/pre-reboot/x",
            "/fleetlock/fleetlock/v1/pre-reboot",
            "/x/v1/pre-reboot",
            "/fleetlocks/v1//steady-state/",
        ] {
            assert_eq!(nested_path(path), Some(format!("{PREFIX}{path}")), "{path}");
        }
        for path in ["", "*", "/", "/v1", "/v1/pre-reboot/x", "/v1/state/fleet-lock", "/V1/pre-reboot"] {
            assert_eq!(nested_path(path), None, "{path}");
        }
    }
}
