//! A test kit: plays the controller to a running worker, and reports for each rule of the protocol whether the worker
//! keeps it.
//!
//! It needs no orchestrator, only a nats-server, and the worker may be written in any language: only messages on the wire
//! are judged. So the worker really prepares, upgrades and reboots, several times; use handlers that do no harm, or a
//! host that does not matter.
//!
//! ```no_run
//! use os_upgrade_worker_sdk::testing::{Check, NatsServer};
//! use os_upgrade_worker_sdk::{Context, HandlerResult, Upgraded, Worker, WorkerBuilder};
//!
//! struct MyWorker;
//!
//! impl Worker for MyWorker {
//!     async fn upgrade(&self, _context: &Context) -> HandlerResult<Upgraded> {
//!         Ok(Upgraded::Done)
//!     }
//! }
//!
//! # async fn test() -> Result<(), Box<dyn std::error::Error>> {
//! let server = NatsServer::start().await?;
//! let worker = WorkerBuilder::new("h01", "my-worker")?.nats_url(server.url()).state_dir("target/state");
//! tokio::spawn(worker.run(MyWorker));
//! let report = Check::new("h01")?.run_at(server.url()).await?;
//! assert!(report.count(os_upgrade_worker_sdk::testing::Verdict::Broken) == 0, "{report}");
//! # Ok(())
//! # }
//! ```
//!
//! A worker that announces that it takes configurations gets some, whose names begin with `check-`, and which have no files. It must not have
//! followed a site's manifests before.
//!
//! Rules that need a restart of the worker or a reboot of its host are skipped unless [`Check::on_restart`] and
//! [`Check::on_reboot`] are set. Rules that cannot be observed from outside are not checked: that the state is synced
//! before work begins, and that a handler's error text is not mistaken for success.

mod consumers;
mod controller;
mod error;
mod report;
mod scenario;
mod server;
mod wire;

use std::fmt;
use std::time::Duration;

use async_nats::Client;
use futures::FutureExt;
pub use os_upgrade_credentials::Access;
use os_upgrade_credentials::{Program, without_userinfo};
use os_upgrade_protocol::HostName;
use os_upgrade_protocol::error::with_causes;

use crate::connect;
use controller::Controller;
pub use error::CheckError;
pub use report::{Report, Row, Rule, Verdict};
use scenario::{Scenario, Step};
pub use server::{NatsServer, ServerError};

/// Time limit for steps that need no work.
const PATIENCE_DEFAULT: Duration = Duration::from_secs(30);
/// Time limit for a handler, or for the host's reboot.
const WORK_WAIT_DEFAULT: Duration = Duration::from_mins(10);

/// Connects to a server, as [`WorkerBuilder::nats_url`](crate::WorkerBuilder::nats_url) does, but without waiting for an
/// unreachable one. If hosts have credentials of `os-upgrade nats-config`, `access` must be that of an orchestrator.
///
/// # Errors
/// The URL is invalid, a file of `access` cannot be used, or the server is unreachable or refuses the connection.
pub async fn connect(url: &str, access: Access) -> Result<Client, CheckError> {
    let (addresses, options) = connect::options(url, access.clone(), "os-upgrade-check", None)
        .map_err(|error| CheckError::Nats(with_causes(&error)))?;
    let failed = |error: async_nats::ConnectError| {
        let error = with_causes(&error);
        let advice =
            Program::Worker.advice(&access, &error).map(|advice| format!(": {advice}")).unwrap_or_default();
        let servers: Vec<_> = url.split(',').map(|server| without_userinfo(server.trim())).collect();
        CheckError::Nats(format!("cannot connect to {}: {error}{advice}", servers.join(", ")))
    };
    options.connect(addresses).await.map_err(failed)
}

/// A check of the worker of one host.
pub struct Check {
    host: HostName,
    patience: Duration,
    work_wait: Duration,
    restart: Option<Step>,
    reboot: Option<Step>,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check")
            .field("host", &self.host)
            .field("restarts", &self.restart.is_some())
            .field("reboots", &self.reboot.is_some())
            .finish_non_exhaustive()
    }
}

impl Check {
    /// A check of the worker of `host`.
    ///
    /// # Errors
    /// `host` is not a valid name.
    pub fn new(host: &str) -> Result<Self, CheckError> {
        Ok(Self {
            host: HostName::first_seen(host)?,
            patience: PATIENCE_DEFAULT,
            work_wait: WORK_WAIT_DEFAULT,
            restart: None,
            reboot: None,
        })
    }

    /// Sets how long the worker may take for steps that need no work, 30 s by default: to announce itself, and to
    /// acknowledge commands that it must not execute. Detecting a broken rule can take this long.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how long a handler, such as that of a configuration, or the host's reboot may take; ten minutes by default.
    #[must_use]
    pub const fn work_wait(mut self, wait: Duration) -> Self {
        self.work_wait = wait;
        self
    }

    /// Sets a function that kills the worker, as a crash would, and starts it again, without a reboot of its host. An error
    /// ends the check.
    #[must_use]
    pub fn on_restart<F>(mut self, mut restart: impl FnMut() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.restart = Some(Box::new(move || restart().boxed()));
        self
    }

    /// Sets a function that reboots the host, or simulates it: afterwards the boot id has changed and the worker has been
    /// restarted. It is called once the worker has received the reboot command, so it need do nothing for a worker that
    /// really reboots its host. An error ends the check.
    #[must_use]
    pub fn on_reboot<F>(mut self, mut reboot: impl FnMut() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.reboot = Some(Box::new(move || reboot().boxed()));
        self
    }

    /// Checks the worker through a new connection to `url`, without credentials.
    ///
    /// # Errors
    /// The check itself fails. Broken rules are in the report.
    pub async fn run_at(self, url: &str) -> Result<Report, CheckError> {
        let client = connect(url, Access::default()).await?;
        self.run(client, |_| ()).await
    }

    /// Checks the worker, and calls `row` for each rule as soon as it is judged. The client's user needs all permissions.
    /// A worker that may not create its consumer gets one on request. Missing streams are created.
    ///
    /// # Errors
    /// The check itself fails. Broken rules are in the report.
    pub async fn run(self, client: Client, row: impl FnMut(&Row) + Send) -> Result<Report, CheckError> {
        let controller = Controller::start(client, self.host, self.patience, self.work_wait).await?;
        Scenario::new(controller, self.restart, self.reboot, row).run().await
    }
}
