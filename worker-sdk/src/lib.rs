//! The worker side of OS upgrades: the program on each host that carries out `prepare`, `upgrade` and `reboot`.
//!
//! ```no_run
//! use os_upgrade_worker_sdk::{Context, HandlerResult, Upgraded, Worker, WorkerBuilder};
//!
//! struct MyWorker;
//!
//! impl Worker for MyWorker {
//!     async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
//!         context.progress(50, "half way through");
//!         Ok(Upgraded::RebootRequired)
//!     }
//!
//!     async fn reboot(&self, _context: &Context) -> HandlerResult {
//!         let status = std::process::Command::new("systemctl").arg("reboot").status()?;
//!         if status.success() { Ok(()) } else { Err("systemctl could not reboot".into()) }
//!     }
//! }
//!
//! # async fn run() -> Result<(), os_upgrade_worker_sdk::Error> {
//! WorkerBuilder::new("h01", "my-worker")?.nats_url("nats://127.0.0.1:4222").run(MyWorker).await
//! # }
//! ```
//!
//! Implement [`Worker`] and pass it to [`WorkerBuilder::run`]; `examples/` range from a minimal worker to a full one. The
//! library enforces all rules of the protocol: a command is executed once whatever crashes, nothing starts after its
//! `not-after`, the host reboots only when its upgrade required it, and no reply is lost while NATS is away.
//!
//! Log lines written while a handler runs are in a span `command` with the host, the run, the action and the command's
//! stream sequence.
//!
//! The decisions are in `os-upgrade-worker-rules`, without any I/O. This crate carries them out: the state directory
//! (`store`), files of the host's configuration (`files`), NATS (`bus`), and the loop between them (`driver`).
//!
//! With the feature `testing`, the module `testing` checks any worker, in any language, against all these rules.

mod boot_id;
mod builder;
mod bus;
mod configuration;
mod connect;
mod driver;
mod error;
mod files;
mod output;
mod progress;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod worker;

pub use boot_id::BootIdSource;
pub use builder::WorkerBuilder;
pub use configuration::Configuration;
pub use error::Error;
pub use os_upgrade_protocol::{
    ApplicationName, GroupName, HostName, ItemId, LongToken, NameError, RunId, Versions, limits,
};
pub use os_upgrade_worker_rules::Upgraded;
pub use output::CommandOutput;
pub use tokio_util::sync::CancellationToken;
pub use worker::{Cause, Context, HandlerError, HandlerResult, VersionsNotifier, Worker};
