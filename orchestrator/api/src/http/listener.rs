//! The listener, and everything before the endpoints: TLS, timeouts, and limits of connections and requests per
//! client.

mod client;
mod connections;
mod early;
mod limit;
mod permits;
mod sending;
mod serve;

pub use self::limit::Limits;
pub(crate) use self::limit::enforce;
pub(crate) use self::serve::{DRAIN_TIMEOUT, serve_router};
