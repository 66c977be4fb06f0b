//! Every route, a file for each resource: method, path, role, bodies and answers.

pub mod cluster;
pub mod config;
pub mod documentation;
pub mod drains;
pub mod events;
pub mod fleet_lock;
pub mod health;
pub mod hooks;
pub mod hosts;
pub mod outputs;
pub mod pause;
pub mod providers;
pub mod reboot_queue;
pub mod run_hosts;
pub mod runs;
pub mod slots;
pub mod state;
pub mod strongbox;
pub mod units;
pub mod windows;
