//! The library and its program with a nats-server.
#![allow(clippy::unwrap_used, reason = "tests may panic, also in shared helpers")]

mod configuration;
mod connection;
mod spans;
