//! The REST API: `/v1/config/os-upgrade` and `/v1/state/os-upgrade...` as the specification defines them, the health
//! endpoints, FleetLock, and units in fleet's dialects (`fleet`).
//!
//! The routes are declared in `os-upgrade-api-types`. Each group of routes has one file of handlers here, and `routes`
//! registers every handler with its declaration. `bodies` makes bodies of the kernel's types. Shared code is in `http`:
//! `extract` reads requests, `reply` writes responses, `error` is the error policy. Nothing is decided here: a write goes to the
//! instance through
//! [`SiteHandle`](os_upgrade_site::handle::SiteHandle) and is answered once it is durable. Reads of the current state
//! use the same handle. Reads of the past use the projection's [`History`](os_upgrade_store::History), which lags a
//! moment behind; readers wait for it.
//!
//! Bodies are JSON or YAML; see `http::form`. [`os_upgrade_auth`] identifies the caller, and `http::authorization` refuses
//! callers that may not use a route.

mod bodies;
mod context;
mod description;
mod feed;
mod fleet;
mod http;
pub mod offline;
mod resources;
mod router;
mod routes;
mod serve;
mod sites;

pub use self::context::Options;
pub use self::http::listener::{FleetSocket, Limits, SUBSCRIBERS_MAX};
pub use self::router::{description, router};
pub use self::serve::{Listeners, serve};
pub use self::sites::Sites;

#[cfg(test)]
mod tests;
