//! The shell's logic without its I/O: inputs in, actions out.
//!
//! It decides when to append, when to send, who leads and what is known; the tokio code in the orchestrator only
//! carries out the actions and brings back what came of them. A simulator drives the same code. The dependencies of
//! this crate keep it free of clocks, randomness, sockets and tasks.

pub mod committed;
pub mod journal;
