//! The tests with real processes that need neither root nor Debian's archive: one binary, a module for each subject.
//!
//! Each test has its own servers, ports and directories, and waits for conditions. `make test` runs them.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod access;
mod cluster;
mod durability;
mod kubernetes;
mod locks;
mod process;
mod program;
mod runs;
mod units;
mod worker;
