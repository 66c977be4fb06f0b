//! Whether the host is well: systemd has come up and has no unit more that failed, and the operator's script has
//! nothing to say.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os_upgrade_systems::systemd::{State, failed_units, newly_failed};
use os_upgrade_systems::text::names;
use os_upgrade_worker_sdk::{Context, HandlerResult};
use tracing::info;

use super::tools::Tools;
use super::{Patience, SystemOptions};
use crate::process::Script;
use crate::scripts::{environment, success};

const SYSTEMCTL: &str = "systemctl";
/// How often the host is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What a host's health is.
#[derive(Debug)]
pub(crate) struct Health {
    script: Option<PathBuf>,
    wait: Duration,
    /// The units that had failed before the upgrade, a line each.
    failed_units: PathBuf,
}

impl Health {
    pub(crate) fn new(options: &SystemOptions, failed_units: PathBuf) -> Self {
        Self { script: options.health_script.clone(), wait: options.health_wait, failed_units }
    }

    /// Notes which units have failed already, unless that is known from before the upgrade was cut off.
    pub(crate) async fn note_failed_units(&self, tools: &Tools, context: &Context) -> HandlerResult {
        if context.is_resumed() && self.failed_units.exists() {
            return Ok(());
        }
        let units: Vec<String> = failed_now(tools).await?.into_iter().collect();
        fs::write(&self.failed_units, units.join("\n"))
            .map_err(|error| format!("cannot write {}: {error}", self.failed_units.display()))?;
        Ok(())
    }

    /// Looks at the host until it is well.
    ///
    /// # Errors
    /// It is not well after the wait: what was wrong last.
    pub(crate) async fn check(&self, tools: &Tools, context: &Context) -> HandlerResult {
        let well = async {
            let patience = Patience::new(self.wait, LOOK_EVERY);
            loop {
                match self.look(tools, context).await {
                    Ok(()) => return Ok(()),
                    Err(error) => {
                        info!("not well yet: {}", error.message());
                        patience.again(error).await?;
                    }
                }
            }
        };
        tokio::select! {
            well = well => well,
            () = context.shutting_down() => Err("the health check was stopped".into()),
        }
    }

    async fn look(&self, tools: &Tools, context: &Context) -> HandlerResult {
        if state(tools).await == State::ComingUp {
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
            Some(path) => ask(path, context).await,
            None => Ok(()),
        }
    }
}

async fn ask(path: &Path, context: &Context) -> HandlerResult {
    let mut script = Script::start(path, "health", &environment(context))
        .map_err(|error| format!("cannot run {}: {error}", path.display()))?;
    success("the health script", &script.wait().await?)
}

/// How systemd is; absent in a root that it does not run.
async fn state(tools: &Tools) -> State {
    if !tools.is_this_machine() {
        return State::Absent;
    }
    // It ends with 1 for all states but one.
    let said = tools.run(SYSTEMCTL, &["is-system-running".to_owned()]).await;
    said.map_or(State::Absent, |said| State::parse(&said.stdout))
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
