//! What the programs here need of the machine they run on: child processes that end with their parent, nats-servers
//! that are found and started, files that are watched, and the data directory.
//!
//! Nothing here knows of upgrades. The orchestrator, the worker's test kit and the tests share it.

pub mod child;
pub mod data_directory;
pub mod file_lock;
pub mod file_watch;
pub mod managed_nats;
pub mod nats_server;
pub mod plain_file;
pub mod random;
