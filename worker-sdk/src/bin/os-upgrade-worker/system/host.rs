//! What every kind of host does around its own work: it first waits for work that an earlier worker began, stops a
//! preparation that is no longer wanted, and reboots through systemd.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os_upgrade_worker_sdk::{
    BootIdSource, Context, Error, HandlerResult, HostName, Upgraded, Versions, Worker,
};
use tracing::{debug, info, warn};

use super::before::{Before, Change};
use super::health::Health;
use super::tools::Tools;
use super::transaction::Transactions;
use super::{SystemOptions, reboot, stop_error};
use crate::leftover::Leftover;

/// What all kinds of hosts use.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) tools: Tools,
    pub(crate) transactions: Transactions,
    pub(crate) health: Health,
    options: SystemOptions,
}

impl Parts {
    /// The parts of a host whose system is in `root`. `lock_wait` limits the wait for other users of its tools.
    pub(crate) fn new(
        root: PathBuf,
        lock_wait: Duration,
        options: SystemOptions,
        state_dir: &Path,
        host: &str,
        boot_id: BootIdSource,
    ) -> Result<Self, Error> {
        let file = |what: &str| state_file(state_dir, host, what);
        Ok(Self {
            tools: Tools::new(root, lock_wait, Leftover::of_host(state_dir, host, "tool")?),
            transactions: Transactions::new(
                file("upgrade.log")?,
                file("upgrade.status")?,
                Leftover::of_host(state_dir, host, "upgrade")?,
            ),
            health: Health::new(&options, file("before")?, file("seen")?, boot_id),
            options,
        })
    }

    /// Waits for an earlier worker's transaction and stops its tools. Runs before anything else; by then this process has
    /// locked the state directory.
    async fn finish_earlier_work(&self, context: &Context) -> HandlerResult {
        self.transactions.await_leftover(context).await?;
        self.tools.end_leftover().await;
        Ok(())
    }
}

/// The path of a host's file in the worker's state directory.
pub(crate) fn state_file(state_dir: &Path, host: &str, what: &str) -> Result<PathBuf, Error> {
    Ok(state_dir.join(format!(
        "{}.{what}",
        HostName::new(host).map_err(|source| Error::Name { of: "host", source })?.token()
    )))
}

/// The work that is specific to a kind of host. When it is called, nothing of an earlier worker runs any more.
pub(crate) trait System: Send + Sync + 'static {
    fn parts(&self) -> &Parts;
    /// Its future is dropped when the preparation is no longer wanted.
    fn prepare(&self, context: &Context) -> impl Future<Output = HandlerResult> + Send;
    fn upgrade(&self, context: &Context) -> impl Future<Output = HandlerResult<Upgraded>> + Send;
    /// Checks what waiting would not change.
    fn check_once(
        &self,
        context: &Context,
        before: Option<&Before>,
    ) -> impl Future<Output = HandlerResult> + Send {
        let _ = (context, before);
        std::future::ready(Ok(()))
    }
    /// The packages that are not fully installed.
    fn unfinished_packages(&self) -> impl Future<Output = HandlerResult<BTreeSet<String>>> + Send {
        std::future::ready(Ok(BTreeSet::new()))
    }
    fn versions(&self) -> impl Future<Output = HandlerResult<Versions>> + Send;
    fn reboot_required(&self) -> impl Future<Output = HandlerResult<Option<String>>> + Send {
        std::future::ready(Ok(None))
    }
    fn reboot_ineffective(&self) -> impl Future<Output = HandlerResult<Option<String>>> + Send {
        std::future::ready(Ok(None))
    }
}

/// Checks a host after an upgrade or a reboot.
///
/// # Errors
/// It is not healthy.
pub(crate) async fn check_health(system: &impl System, context: &Context) -> HandlerResult {
    let health = &system.parts().health;
    let before = health.before(context)?;
    let checked = tokio::select! {
        checked = check_all(system, context, before.as_ref()) => checked,
        () = context.shutting_down() => return Err("the health check was stopped".into()),
    };
    if let Some(before) = before {
        health.set_judged(before);
    }
    checked
}

async fn check_all(system: &impl System, context: &Context, before: Option<&Before>) -> HandlerResult {
    let Parts { tools, health, .. } = system.parts();
    system.check_once(context, before).await?;
    let retry = health.retry();
    while let Err(error) = health.check(tools, context, before, system.unfinished_packages()).await {
        info!("not healthy yet: {}", error.message());
        retry.pause_or_fail(error).await?;
    }
    Ok(())
}

/// The worker of a kind of host.
#[derive(Debug)]
pub(crate) struct Host<S>(pub(crate) S);

impl<S: System> Host<S> {
    /// The packages to record as unfinished; `None` if they cannot be listed. A damaged database may be what an operator wants to
    /// repair after the reboot, and must not prevent it.
    async fn recorded_packages(&self) -> Option<BTreeSet<String>> {
        match self.0.unfinished_packages().await {
            Ok(unfinished) => Some(unfinished),
            Err(error) => {
                warn!("unfinished packages cannot be recorded: {}", error.message());
                None
            }
        }
    }
}

impl<S: System> Worker for Host<S> {
    async fn prepare(&self, context: &Context) -> HandlerResult {
        self.0.parts().finish_earlier_work(context).await?;
        tokio::select! {
            prepared = self.0.prepare(context) => prepared,
            cause = context.cancelled() => Err(stop_error(cause).into()),
        }
    }

    async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
        let parts = self.0.parts();
        parts.finish_earlier_work(context).await?;
        let upgraded = self.0.upgrade(context).await?;
        if upgraded == Upgraded::RebootRequired {
            parts.health.after_upgrade(&parts.tools, context).await?;
        }
        Ok(upgraded)
    }

    async fn reboot(&self, context: &Context) -> HandlerResult {
        let Parts { tools, options, health, .. } = self.0.parts();
        if !tools.is_this_machine() {
            let root = tools.root().display();
            return Err(
                format!("{root} is not the root of this machine, so there is nothing to reboot").into()
            );
        }
        // Also before waiting, in case the host leaves its boot meanwhile.
        health.before_reboot(tools, context, self.recorded_packages().await, Change::Reboot).await?;
        reboot::await_release(tools, options, context).await?;
        health.before_reboot(tools, context, self.recorded_packages().await, Change::RebootBegun).await?;
        reboot::start(tools).await
    }

    async fn health(&self, context: &Context) -> HandlerResult {
        check_health(&self.0, context).await
    }

    async fn versions(&self, _context: &Context) -> HandlerResult<Versions> {
        self.0.versions().await
    }

    fn can_reboot(&self) -> bool {
        true
    }

    /// Also records what is seen of the host, as this is asked at the start, after each handler and every five minutes.
    async fn reboot_required(&self) -> HandlerResult<Option<String>> {
        let Parts { tools, health, .. } = self.0.parts();
        let required = self.0.reboot_required().await;
        if tools.is_this_machine()
            && let Err(error) = health.see(tools, self.recorded_packages().await).await
        {
            debug!("what the worker sees of the host cannot be recorded: {}", error.message());
        }
        required
    }

    async fn reboot_ineffective(&self) -> HandlerResult<Option<String>> {
        self.0.reboot_ineffective().await
    }
}
