//! How orchestrators and workers show NATS who they are, and know that it is NATS they speak to: credentials files, which
//! are read at every connection so that new ones need no restart, certificates, and the user in a URL.

mod access;
mod connect_diagnostics;
mod file;
mod log_throttle;
#[cfg(feature = "cli")]
mod variables;

pub use access::{Access, Error, address_for_client};
pub use connect_diagnostics::{ConnectDiagnostics, Program, without_userinfo};
pub use file::{CredentialsFile, FileError};
pub use log_throttle::LogThrottle;
#[cfg(feature = "cli")]
pub use variables::without_empty_variables;

/// The name in the credentials of orchestrators, as `os-upgrade nats-config` makes them.
pub const ORCHESTRATOR: &str = "orchestrator";
/// The name in the credentials by which it tells servers of accounts.
pub const SYSTEM: &str = "system";
