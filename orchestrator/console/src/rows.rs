//! What the API answers, in the columns of tables and in the lines about one thing.

pub mod cluster;
pub mod config;
pub mod drains;
pub mod histories;
pub mod hosts;
mod nodes;
mod providers;
pub mod reboot_queue;
pub mod run_hosts;
pub mod runs;
pub mod slots;
pub mod strongbox;
pub mod units;
pub mod windows;
