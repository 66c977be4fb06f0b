//! The shell's logic from outside: events in, actions out.
#![allow(clippy::unwrap_used, reason = "a test may panic, also in what its tests share")]

mod dispatch;
mod journal;
mod lease;
mod loss;
mod readiness;
