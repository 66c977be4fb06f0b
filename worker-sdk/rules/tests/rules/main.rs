//! The rules as tables, event by event, and as properties over random histories with crashes.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bench;
mod delivery;
mod desired;
mod properties;
mod reboots;
mod rollback;
mod upgrades;
mod world;
