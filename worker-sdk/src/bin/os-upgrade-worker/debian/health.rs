//! `health`: dpkg is consistent, systemd has no unit more that failed, and the operator's script has nothing to say.

use std::collections::BTreeSet;
use std::fs;

use os_upgrade_systems::systemd::{failed_units, newly_failed};
use os_upgrade_systems::text::names;
use os_upgrade_worker_sdk::{Context, HandlerResult};

use super::Debian;
use crate::process::Script;
use crate::scripts::{environment, success};

const SYSTEMCTL: &str = "systemctl";

impl Debian {
    pub(super) async fn is_healthy(&self, context: &Context) -> HandlerResult {
        self.is_finished(None).await?;
        let before = fs::read_to_string(&self.failed_units).unwrap_or_default();
        let new = newly_failed(&failed_units(&before), &self.failed_now().await?);
        if !new.is_empty() {
            return Err(format!(
                "units have failed since the upgrade began: {}; see systemctl status",
                names(new)
            )
            .into());
        }
        self.ask_script(context).await
    }

    /// Notes which units have failed already.
    pub(super) async fn note_failed_units(&self) -> HandlerResult {
        let units: Vec<String> = self.failed_now().await?.into_iter().collect();
        fs::write(&self.failed_units, units.join("\n"))
            .map_err(|error| format!("cannot write {}: {error}", self.failed_units.display()))?;
        Ok(())
    }

    /// The units that have failed; none where systemd does not run the root.
    async fn failed_now(&self) -> HandlerResult<BTreeSet<String>> {
        if !self.tools.is_this_machine() || !self.tools.root().join("run/systemd/system").exists() {
            return Ok(BTreeSet::new());
        }
        let words = ["list-units", "--state=failed", "--plain", "--no-legend", "--no-pager"];
        let listed = self.tools.query(SYSTEMCTL, &words.map(str::to_owned)).await?;
        Ok(failed_units(&listed))
    }

    async fn ask_script(&self, context: &Context) -> HandlerResult {
        let Some(path) = &self.settings.health_script else {
            return Ok(());
        };
        let mut script = Script::start(path, "health", &environment(context))
            .map_err(|error| format!("cannot run {}: {error}", path.display()))?;
        tokio::select! {
            finished = script.wait() => success("the health script", &finished?),
            () = context.shutting_down() => Err("the health script was stopped".into()),
        }
    }
}
