//! The orchestrator: the adapters around the shell's logic, its API and its command line.
//!
//! What decides lives in `os-upgrade-kernel`, what drives it without I/O in `os-upgrade-shell`.

pub mod adapters;
pub mod api;
pub mod auth;
pub mod bus;
pub mod call;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod conformance;
pub mod doctor;
pub mod driver;
pub mod fleetlock;
pub mod followed;
pub mod http_client;
pub mod loss;
pub mod nats_config;
pub mod pem_file;
pub mod plain_file;
pub mod recovery;
pub mod server;
pub mod site;
pub mod store;
pub mod strongbox;

#[cfg(test)]
mod testing;
