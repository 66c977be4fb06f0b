//! The kernel from outside: tables, stories, properties, and what its formats and its purity are held to.
#![allow(clippy::unwrap_used, reason = "a test may panic, also in what its tests share")]

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
