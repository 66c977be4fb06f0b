//! A test kit: plays the controller to a running worker, and says of each rule of the protocol whether it was kept.
//!
//! It needs no orchestrator, only a nats-server, and the worker may be written in any language: everything is judged by
//! what goes over the wire. So the worker really prepares, upgrades, and reboots, several times; give it handlers that
//! do no harm, or a host that may be harmed.
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
//! What needs the worker to be restarted, or its host to be rebooted, is skipped unless [`Check::on_restart`] and
//! [`Check::on_reboot`] say how. What cannot be seen from outside at all is not judged: that the state is synced before
//! anything is done, and that a handler's error text is not taken for success.

mod consumers;
mod controller;
mod course;
mod error;
mod report;
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

use crate::bus;
use controller::Controller;
use course::{Act, Course};
pub use error::CheckError;
pub use report::{Report, Row, Rule, Verdict};
pub use server::{NatsServer, ServerError};

/// How long anything may take that needs no work.
const PATIENCE_DEFAULT: Duration = Duration::from_secs(30);
/// How long a handler, or the host's reboot, may take.
const WORK_WAIT_DEFAULT: Duration = Duration::from_mins(10);

/// Connects to a server, as [`WorkerBuilder::nats_url`](crate::WorkerBuilder::nats_url) does; but it has to be there.
/// `access` is what it is shown: where hosts have credentials of `os-upgrade nats-config`, those of an orchestrator.
///
/// # Errors
/// The URL is none, what is to be shown cannot be read, or nothing answers there.
pub async fn connect(url: &str, access: Access) -> Result<Client, CheckError> {
    let (addresses, options) = bus::options(url, access.clone(), "os-upgrade-check", None)
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
    restart: Option<Act>,
    reboot: Option<Act>,
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
    /// It is not a host's name.
    pub fn new(host: &str) -> Result<Self, CheckError> {
        Ok(Self {
            host: HostName::new(host)?,
            patience: PATIENCE_DEFAULT,
            work_wait: WORK_WAIT_DEFAULT,
            restart: None,
            reboot: None,
        })
    }

    /// How long the worker may take for what needs no work, 30 s by default: to be there, and to acknowledge what it
    /// must not do. A rule that is broken takes so long to be found out.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How long a handler, or the host's reboot, may take; ten minutes by default.
    #[must_use]
    pub const fn work_wait(mut self, wait: Duration) -> Self {
        self.work_wait = wait;
        self
    }

    /// How to end the worker, as a crash would, and start it again, without a reboot of its host. An error ends the
    /// check.
    #[must_use]
    pub fn on_restart<F>(mut self, mut restart: impl FnMut() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.restart = Some(Box::new(move || restart().boxed()));
        self
    }

    /// How to reboot the host, or to make the worker believe it: its boot id is another one afterwards, and the worker
    /// has been started again. Called once the worker was told to reboot, so it does nothing for a worker that really
    /// reboots its host. An error ends the check.
    #[must_use]
    pub fn on_reboot<F>(mut self, mut reboot: impl FnMut() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        self.reboot = Some(Box::new(move || reboot().boxed()));
        self
    }

    /// Checks the worker, through a connection of its own to `url`, as whoever needs no credentials there.
    ///
    /// # Errors
    /// The check cannot be made; a rule that is broken is in the report.
    pub async fn run_at(self, url: &str) -> Result<Report, CheckError> {
        let client = connect(url, Access::default()).await?;
        self.run(client, |_| ()).await
    }

    /// Checks the worker, and tells `row` of each rule as soon as it is judged. The client's user must be allowed
    /// everything; a worker that may not make its consumer gets one when it asks. The streams are made if they are not there.
    ///
    /// # Errors
    /// The check cannot be made; a rule that is broken is in the report.
    pub async fn run(self, client: Client, row: impl FnMut(&Row) + Send) -> Result<Report, CheckError> {
        let controller = Controller::start(client, self.host, self.patience, self.work_wait).await?;
        Course::new(controller, self.restart, self.reboot, row).run().await
    }
}
