//! Whether the host is healthy: systemd has started, no further unit has failed, and the operator's health script
//! succeeds.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os_upgrade_systems::systemd::{State, failed_units, newly_failed};
use os_upgrade_systems::text::names;
use os_upgrade_worker_sdk::{Context, HandlerResult};
use tracing::info;

use super::tools::Tools;
use super::{Retry, SystemOptions};
use crate::process::Script;
use crate::scripts::{environment, success};

const SYSTEMCTL: &str = "systemctl";
/// How often the host is checked.
const POLL_EVERY: Duration = Duration::from_secs(5);

/// The health check of a host.
#[derive(Debug)]
pub(crate) struct Health {
    script: Option<PathBuf>,
    wait: Duration,
    /// The file with the units that had failed before the upgrade, one per line.
    failed_units: PathBuf,
}

impl Health {
    pub(crate) fn new(options: &SystemOptions, failed_units: PathBuf) -> Self {
        Self { script: options.health_script.clone(), wait: options.health_wait, failed_units }
    }

    /// Records which units have already failed; a resumed upgrade keeps its earlier record.
    pub(crate) async fn record_failed_units(&self, tools: &Tools, context: &Context) -> HandlerResult {
        if context.is_resumed() && self.failed_units.exists() {
            return Ok(());
        }
        let units: Vec<String> = failed_now(tools).await?.into_iter().collect();
        fs::write(&self.failed_units, units.join("\n"))
            .map_err(|error| format!("cannot write {}: {error}", self.failed_units.display()))?;
        Ok(())
    }

    /// Checks the host until it is healthy.
    ///
    /// # Errors
    /// The last problem, if the host is not healthy after the wait.
    pub(crate) async fn check(&self, tools: &Tools, context: &Context) -> HandlerResult {
        let healthy = async {
            let retry = Retry::new(self.wait, POLL_EVERY);
            loop {
                match self.check_once(tools, context).await {
                    Ok(()) => return Ok(()),
                    Err(error) => {
                        info!("not healthy yet: {}", error.message());
                        retry.pause_or_fail(error).await?;
                    }
                }
            }
        };
        tokio::select! {
            healthy = healthy => healthy,
            () = context.shutting_down() => Err("the health check was stopped".into()),
        }
    }

    async fn check_once(&self, tools: &Tools, context: &Context) -> HandlerResult {
        if state(tools).await == State::Starting {
            return Err("systemd is still starting units; see systemctl list-jobs".into());
        }
        let before = fs::read_to_string(&self.failed_units).unwrap_or_default();
        let new = newly_failed(&failed_units(&before), &failed_now(tools).await?);
        if !new.is_empty() {
            let names = names(new);
            return Err(
                format!("units have failed since the upgrade began: {names}; see systemctl status").into()
            );
        }
        match &self.script {
            Some(path) => run_script(path, context).await,
            None => Ok(()),
        }
    }
}

async fn run_script(path: &Path, context: &Context) -> HandlerResult {
    let mut script = Script::start(path, "health", &environment(context), context.output())
        .map_err(|error| format!("cannot run {}: {error}", path.display()))?;
    success("the health script", &script.wait().await?)
}

/// The state of systemd; absent if the root is not this machine's.
async fn state(tools: &Tools) -> State {
    if !tools.is_this_machine() {
        return State::Absent;
    }
    // The exit status is ignored: it is 0 only for the state `running`.
    let finished = tools.run(SYSTEMCTL, &["is-system-running".to_owned()]).await;
    finished.map_or(State::Absent, |finished| State::parse(&finished.stdout))
}

/// The units that have failed.
async fn failed_now(tools: &Tools) -> HandlerResult<BTreeSet<String>> {
    if state(tools).await == State::Absent {
        return Ok(BTreeSet::new());
    }
    let words = ["list-units", "--state=failed", "--plain", "--no-legend", "--no-pager"];
    let listed = tools.query(SYSTEMCTL, &words.map(str::to_owned)).await?;
    Ok(failed_units(&listed))
}
