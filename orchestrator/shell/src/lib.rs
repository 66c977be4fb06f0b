//! The shell's logic without its I/O: events in, actions out.
//!
//! It decides when to append, when to send, who leads and what is known; the tokio code in the orchestrator only
//! carries out the actions and brings back what came of them. A simulator drives the same code. The dependencies of
//! this crate keep it free of clocks, randomness, sockets and tasks.
//!
//! [`node::Node`] holds it all together; the other modules are its parts.

pub mod clock;
pub mod control;
pub mod dispatch;
pub mod fleetlock;
pub mod forward;
pub mod inventory;
pub mod jobs;
pub mod journal;
pub mod lease;
pub mod node;
pub mod not_done;
