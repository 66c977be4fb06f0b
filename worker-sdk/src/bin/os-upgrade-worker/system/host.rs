//! What every kind of host does around its own work: it first waits for what an earlier worker began, stops a preparation that
//! is not wanted any more, and reboots through systemd.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os_upgrade_worker_sdk::{Context, Error, HandlerResult, HostName, Upgraded, Versions, Worker};

use super::health::Health;
use super::tools::Tools;
use super::transaction::Transactions;
use super::{SystemOptions, reboot, stopped};
use crate::leftover::Leftover;

/// What all kinds of hosts work with.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) tools: Tools,
    pub(crate) transactions: Transactions,
    pub(crate) health: Health,
    options: SystemOptions,
}

impl Parts {
    /// Those of a host whose system is in `root`, and that waits for others who use its tools for as long as `lock_wait`.
    pub(crate) fn new(
        root: PathBuf,
        lock_wait: Duration,
        options: SystemOptions,
        state_dir: &Path,
        host: &str,
    ) -> Result<Self, Error> {
        let file = |what: &str| state_file(state_dir, host, what);
        Ok(Self {
            tools: Tools::new(root, lock_wait, Leftover::of_host(state_dir, host, "tool")?),
            transactions: Transactions::new(
                file("upgrade.log")?,
                file("upgrade.status")?,
                Leftover::of_host(state_dir, host, "upgrade")?,
            ),
            health: Health::new(&options, file("failed-units")?),
            options,
        })
    }

    /// Before anything else runs: by then the state directory is known to be ours alone.
    async fn after_an_earlier_worker(&self, context: &Context) -> HandlerResult {
        self.transactions.await_leftover(context).await?;
        self.tools.end_leftover().await;
        Ok(())
    }
}

/// A file of a host in the directory of the worker's state.
pub(crate) fn state_file(state_dir: &Path, host: &str, what: &str) -> Result<PathBuf, Error> {
    Ok(state_dir.join(format!(
        "{}.{what}",
        HostName::new(host).map_err(|source| Error::Name { of: "host", source })?.token()
    )))
}

/// What a kind of host does itself. Nothing of an earlier worker runs any more when it is asked to.
pub(crate) trait System: Send + Sync + 'static {
    fn parts(&self) -> &Parts;
    /// Dropped when it is not wanted any more.
    fn prepare(&self, context: &Context) -> impl Future<Output = HandlerResult> + Send;
    fn upgrade(&self, context: &Context) -> impl Future<Output = HandlerResult<Upgraded>> + Send;
    fn health(&self, context: &Context) -> impl Future<Output = HandlerResult> + Send;
    fn versions(&self) -> impl Future<Output = HandlerResult<Versions>> + Send;
}

/// The worker of a kind of host.
#[derive(Debug)]
pub(crate) struct Host<S>(pub(crate) S);

impl<S: System> Worker for Host<S> {
    async fn prepare(&self, context: &Context) -> HandlerResult {
        self.0.parts().after_an_earlier_worker(context).await?;
        tokio::select! {
            prepared = self.0.prepare(context) => prepared,
            cause = context.cancelled() => Err(stopped(cause).into()),
        }
    }

    async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
        self.0.parts().after_an_earlier_worker(context).await?;
        self.0.upgrade(context).await
    }

    async fn reboot(&self, _context: &Context) -> HandlerResult {
        let Parts { tools, options, .. } = self.0.parts();
        reboot::start(tools, options).await
    }

    async fn health(&self, context: &Context) -> HandlerResult {
        self.0.health(context).await
    }

    async fn versions(&self, _context: &Context) -> HandlerResult<Versions> {
        self.0.versions().await
    }
}
