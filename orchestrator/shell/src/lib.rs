//! The shell's logic without its I/O: events in, actions out.
//!
//! It decides when to append, when to send and who leads. The tokio code in the orchestrator only carries out the
//! actions and returns their outcomes. The simulator drives the same code. It uses no clock, randomness, socket or
//! task, and neither do its dependencies (`tests/tidy/src/purity.rs`).
//!
//! The entry point is [`instance::Instance`]; the other modules are its parts.

pub mod clock;
pub mod control_stream;
pub mod delivery;
pub mod dispatch;
pub mod fleet_lock;
pub mod forward;
pub mod instance;
pub mod inventory;
pub mod jobs;
pub mod journal;
pub mod lease;
pub mod not_done;
pub mod storage;
