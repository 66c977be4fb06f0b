//! What the programs here need of the machine they run on: child processes that end with their parent, and nats-servers
//! that are found and started.
//!
//! Nothing here knows of upgrades. The orchestrator, the worker's test kit and the tests share it.

pub mod child;
pub mod file_lock;
pub mod managed_nats;
pub mod nats_server;
pub mod random;
