//! Tests of the kernel's interface: tables, stories, properties, the on-disk formats and the purity.
#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod apply;
mod common;
mod documented;
mod format;
mod properties;
mod purity;
mod restoration;
mod stories;
mod waiters;
mod windows;
