//! The REST API: `/v1/config/os-upgrade` and `/v1/state/os-upgrade...`, as the specification and its conventions
//! have them, the health endpoints, and FleetLock.
//!
//! The routes are declared in `os-upgrade-api-types`; here is one file of handlers per group of them, each of which is
//! registered with its declaration (`routes`). What they share is in `extract` (what comes in), `reply`
//! (what goes out) and `error` (the error policy). Nothing is decided here: a write goes to the core
//! through [`SiteHandle`] and is answered after it is durable; the present state is read from the same handle, and
//! the past from the projection's [`History`], which is a moment behind and waited for.
//!
//! JSON or YAML in and out, as `form` has it. Whoever may not call a route is refused in `authority`, and who calls is
//! found out in [`os_upgrade_auth`].

mod context;
mod description;
mod http;
pub mod offline;
mod resources;
mod router;
mod routes;
mod serve;
mod sites;

pub use self::context::Options;
pub use self::http::listener::Limits;
pub use self::router::{description, router};
pub use self::serve::serve;
pub use self::sites::Sites;

#[cfg(test)]
mod tests;
