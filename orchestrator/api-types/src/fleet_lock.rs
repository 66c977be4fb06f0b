//! FleetLock: slots for clients from outside, `POST /v1/pre-reboot` and `/v1/steady-state`, also below `/fleetlock`.

mod claim;

use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

pub use self::claim::{Claim, ClaimBody, ClaimError, REQUEST_BYTES_MAX};
use crate::route::{Access, Answer, Dialect, Method, Route, Shape, Tag};

/// It shows that a request is meant for a FleetLock server, and has not come here by a redirect.
pub const PROTOCOL_HEADER: &str = "fleet-lock-protocol";

/// What the paths are also served below, with everything else there.
const BELOW: &str = "fleetlock";

/// A slot, answered with 200 once it is durable that the client holds it.
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

/// No slot any more, answered with 200 once it is durable that the client holds none.
pub const UNLOCK: Route<ClaimBody> = Route::new(
    Method::Post,
    "/v1/steady-state",
    Access::LockGroup,
    Tag::FleetLock,
    "steady-state",
    "Give a slot back",
)
.body::<ClaimBody>(claim)
.headers::<Protocol>()
.answers(&[Answer::json("the client holds no slot", Shape::of::<Granted>(), || json!({}))]);

fn claim() -> Value {
    json!({"client_params": {"id": "c988d2509fdf5cdcbed39037c56406fb", "group": "default"}})
}

/// It is granted.
#[derive(Debug, ToSchema)]
pub struct Granted {}

/// The header of every request.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Header)]
pub struct Protocol {
    /// that the request is meant for such a server
    #[param(rename = "fleet-lock-protocol", value_type = Meant)]
    pub protocol: String,
}

/// The only value of the header.
#[derive(Debug, ToSchema)]
pub enum Meant {
    #[schema(rename = "true")]
    True,
}

/// The path of the route that a request for `path` means. Clients join a path to their base URL with too few slashes or
/// too many, so any number of them is taken.
pub fn meant(path: &str) -> Option<&'static str> {
    let asked = segments(path);
    let asked = asked.strip_prefix(&[BELOW]).unwrap_or(&asked);
    [LOCK.path(), UNLOCK.path()].into_iter().find(|known| segments(known) == asked)
}

/// The dialect of whatever is asked for at `path`, a route or not.
pub fn dialect_of(path: &str) -> Dialect {
    if meant(path).is_some() || segments(path).first() == Some(&BELOW) {
        Dialect::FleetLock
    } else {
        Dialect::Specification
    }
}

fn segments(path: &str) -> Vec<&str> {
    path.split('/').filter(|segment| !segment.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for base in ["", "/", "//", "/fleetlock", "/fleetlock/", "//fleetlock//"] {
            for (path, expected) in [
                ("/v1/pre-reboot", LOCK.path()),
                ("/v1/pre-reboot/", LOCK.path()),
                ("/v1//steady-state//", UNLOCK.path()),
            ] {
                let path = format!("{base}{path}");
                assert_eq!((meant(&path), dialect_of(&path)), (Some(expected), Dialect::FleetLock), "{path}");
            }
        }
        for path in [
            "/fleetlock",
            "/fleetlock/",
            "/fleetlock/v1",
            "/fleetlock/v1/pre-reboot/x",
            "/fleetlock/fleetlock/v1/pre-reboot",
        ] {
            assert_eq!((meant(path), dialect_of(path)), (None, Dialect::FleetLock), "{path}");
        }
        for path in [
            "",
            "*",
            "/",
            "/v1",
            "/v1/pre-reboot/x",
            "/v1/state/fleet-lock",
            "/V1/pre-reboot",
            "/x/v1/pre-reboot",
            "/fleetlocks/v1/pre-reboot",
        ] {
            assert_eq!((meant(path), dialect_of(path)), (None, Dialect::Specification), "{path}");
        }
    }
}
