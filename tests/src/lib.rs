//! What the suites with real parts share: a NATS server of their own, worker processes, and waiting on conditions.
//!
//! It is test code: what goes wrong here ends the test.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

pub mod nats_server;
pub mod wait;
pub mod worker;
