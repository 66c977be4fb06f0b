//! The suites with real parts that need neither root nor Debian's archive: one binary, a module for each subject.
//!
//! Each test has servers, ports and directories of its own and waits on conditions. `make test` runs them.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod access;
mod cluster;
mod durability;
mod locks;
mod process;
mod program;
mod runs;
mod worker;
