//! What programs need from the machine they run on: child processes that end with their parent, nats-servers, watched
//! files, the data directory, sockets for programs on it, and manual pages.
//!
//! Nothing here depends on upgrades. The orchestrator, the worker's test kit and the tests use it.

pub mod child;
pub mod data_directory;
pub mod file_lock;
pub mod file_watch;
pub mod local_socket;
pub mod managed_nats;
#[cfg(feature = "manual")]
pub mod manual;
pub mod nats_server;
pub mod plain_file;
pub mod random;
