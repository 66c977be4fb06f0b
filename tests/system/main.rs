//! The tests that need a whole system: root, Debian's archive, a container engine. `make test-system` runs them.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod alerts;
mod clocks;
mod config_hooks;
mod debian;
mod debian_faults;
mod debian_hooks;
mod debian_reboot;
mod debian_sources;
mod docker;
