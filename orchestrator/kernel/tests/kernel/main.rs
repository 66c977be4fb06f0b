//! Tests of the kernel's interface: tables, stories, properties and the on-disk formats.
#![allow(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod apply;
mod cke_cases;
mod common;
mod desired;
mod format;
mod hooks;
mod properties;
mod reboot_queue;
mod restoration;
mod sixty_hosts;
mod stories;
mod unit;
mod waiters;
mod warnings;
