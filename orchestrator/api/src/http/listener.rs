//! What clients connect to, and everything that happens before any endpoint: who may have how many connections and
//! requests, in what time, with TLS or without.

mod client;
mod connections;
mod early;
mod limit;
mod places;
mod sending;
mod serve;

pub use self::limit::Limits;
pub(crate) use self::limit::within;
pub(crate) use self::serve::{DRAIN_TIMEOUT, serve_router};
