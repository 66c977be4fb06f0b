//! The worker side of OS upgrades: what runs on each host and carries out `prepare`, `upgrade` and `reboot`.
//!
//! Implement [`Worker`] and hand it to [`WorkerBuilder::run`]; `examples/minimal.rs` is a whole worker. The library
//! keeps all rules of the protocol: a command is executed once whatever crashes, nothing starts after its time, the
//! host reboots only when its upgrade asked for it, and no reply is lost while NATS is away.
//!
//! The decisions are in `os-upgrade-worker-rules`, without any I/O; here is what carries them out: the state
//! directory (`store`), NATS (`bus`), and the loop between them (`driver`).
//!
//! With the feature `testing`, the module `testing` checks any worker, in any language, against all these rules.

mod boot_id;
mod builder;
mod bus;
mod driver;
mod error;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod worker;

pub use boot_id::BootIdSource;
pub use builder::WorkerBuilder;
pub use error::Error;
pub use os_upgrade_protocol::{ApplicationName, GroupName, HostName, NameError, RunId, Versions, limits};
pub use os_upgrade_worker_rules::Upgraded;
pub use tokio_util::sync::CancellationToken;
pub use worker::{Cause, Context, HandlerError, HandlerResult, VersionsNotifier, Worker};
