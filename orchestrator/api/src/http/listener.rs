//! The listeners, and everything before the endpoints: TLS, timeouts, and limits of connections and requests per
//! client.

mod client;
mod connections;
mod fleet_socket;
mod limit;
mod permits;
mod sending;
mod serve;
mod subscribers;

pub use self::fleet_socket::FleetSocket;
pub use self::limit::Limits;
pub(crate) use self::limit::{Endless, enforce};
pub(crate) use self::serve::{DRAIN_TIMEOUT, Listener, serve_router};
pub use self::subscribers::SUBSCRIBERS_MAX;
pub(crate) use self::subscribers::{CutOff, Full, SUBSCRIBERS_OF_ADDRESS_MAX, Seat, SubscriberCounts};
