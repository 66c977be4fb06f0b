//! The library and its program beside a nats-server.
#![allow(clippy::unwrap_used, reason = "a test may panic, also in what its tests share")]

mod connection;
mod spans;
