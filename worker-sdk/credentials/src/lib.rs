//! How orchestrators and workers authenticate to NATS and verify its servers: credentials files, TLS certificates, and
//! the user in a URL. Credentials files are read for every connection, so that new ones need no restart.

mod access;
mod connect_diagnostics;
mod file;
mod log_throttle;
#[cfg(feature = "cli")]
mod safe_fields;
#[cfg(feature = "cli")]
mod variables;

pub use access::{Access, Error, address_for_client};
pub use connect_diagnostics::{ConnectDiagnostics, Program, without_userinfo};
pub use file::{CredentialsFile, FileError};
pub use log_throttle::LogThrottle;
#[cfg(feature = "cli")]
pub use safe_fields::SafeFields;
#[cfg(feature = "cli")]
pub use variables::without_empty_variables;

/// The user name in the orchestrators' credentials, as `os-upgrade nats-config` creates them.
pub const ORCHESTRATOR: &str = "orchestrator";
/// The user name in the credentials with which `os-upgrade nats-config` pushes accounts to servers.
pub const SYSTEM: &str = "system";
