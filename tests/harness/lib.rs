//! Shared by the suites that run real processes: servers, programs, clients, and waiting for conditions.
//!
//! Test code: any failure here fails the test.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

pub mod chaos;
pub mod clock;
pub mod cluster;
pub mod debian;
pub mod disk;
pub mod docker;
pub mod events;
pub mod faulty_lock_server;
pub mod faulty_worker;
pub mod file_server;
pub mod files;
pub mod floods;
pub mod hook_server;
pub mod host;
pub mod http;
pub mod identity_provider;
pub mod library_host;
pub mod lock_server;
pub mod losses;
pub mod memory;
pub mod nats_cluster;
pub mod nats_server;
pub mod orchestrator;
pub mod programs;
pub mod proxy;
pub mod random;
pub mod raw_worker;
pub mod rest;
pub mod rounds;
pub mod secured_nats;
pub mod site;
pub mod streams;
pub mod terminal;
pub mod unit_agent;
pub mod vm;
pub mod wait;
pub mod worker;

pub use os_upgrade_test_site::authority;
