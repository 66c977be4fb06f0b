//! The worker of a Debian host: APT and dpkg do the work, and what they say is told to operators.
//!
//! What the texts of the tools mean is decided in `os-upgrade-systems`; here is which commands are run, and when.

mod apt;
mod options;
mod prepare;
mod upgrade;
mod versions;

use std::path::{Path, PathBuf};

use os_upgrade_systems::debian::decide::Allowed;
use os_upgrade_worker_sdk::{Context, Error, HandlerResult, HostName, Upgraded, Versions, Worker};

use crate::leftover::Leftover;
use crate::system::health::Health;
use crate::system::tools::Tools;
use crate::system::transaction::Transactions;
use crate::system::{SystemOptions, reboot, stopped};
use apt::Apt;
pub(crate) use options::DebianArgs;
use options::Settings;

/// In the cache directory once everything is downloaded: without it an upgrade would find nothing to do. It holds the
/// names of the packages that come new, a line each.
const PREPARED: &str = "prepared";

/// A Debian host.
#[derive(Debug)]
pub(crate) struct Debian {
    settings: Settings,
    tools: Tools,
    apt: Apt,
    transactions: Transactions,
    health: Health,
    options: SystemOptions,
}

impl Debian {
    pub(crate) fn new(
        settings: Settings,
        options: SystemOptions,
        state_dir: &Path,
        host: &str,
    ) -> Result<Self, Error> {
        let token = HostName::new(host)?.token();
        let file = |what: &str| state_dir.join(format!("{token}.{what}"));
        Ok(Self {
            tools: Tools::new(
                settings.root.clone(),
                settings.lock_wait,
                Leftover::of_host(state_dir, host, "tool")?,
            ),
            apt: Apt::new(&settings.root, &settings.cache_dir),
            transactions: Transactions::new(
                file("upgrade.log"),
                file("upgrade.status"),
                Leftover::of_host(state_dir, host, "upgrade")?,
            ),
            health: Health::new(&options, file("failed-units")),
            settings,
            options,
        })
    }

    const fn allowed(&self) -> Allowed {
        Allowed {
            removals: self.settings.removals_max,
            essential_removals: self.settings.allow_essential_removals,
            held: !self.settings.refuse_held,
        }
    }

    fn prepared(&self) -> PathBuf {
        self.apt.directory().join(PREPARED)
    }

    /// Before anything else runs: by then the state directory is known to be ours alone.
    async fn after_an_earlier_worker(&self, context: &Context) -> HandlerResult {
        self.transactions.await_leftover(context).await?;
        self.tools.end_leftover().await;
        Ok(())
    }
}

impl Worker for Debian {
    async fn prepare(&self, context: &Context) -> HandlerResult {
        self.after_an_earlier_worker(context).await?;
        tokio::select! {
            prepared = self.prepare_all(context) => prepared,
            cause = context.cancelled() => Err(stopped(cause).into()),
        }
    }

    async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
        self.after_an_earlier_worker(context).await?;
        self.upgrade_all(context).await
    }

    async fn reboot(&self, _context: &Context) -> HandlerResult {
        reboot::start(&self.tools, &self.options).await
    }

    async fn health(&self, context: &Context) -> HandlerResult {
        self.is_healthy(context).await
    }

    async fn versions(&self, _context: &Context) -> HandlerResult<Versions> {
        self.all_versions().await
    }
}
