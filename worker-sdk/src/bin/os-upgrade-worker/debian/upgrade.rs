//! `upgrade`: finishes an earlier installation, installs what was prepared, and checks the outcome.

use std::fs;

use os_upgrade_systems::debian::{decide, failure, package};
use os_upgrade_systems::text::{names, one_line};
use os_upgrade_worker_sdk::{Context, HandlerResult, Upgraded};
use tracing::{info, warn};

use super::Debian;
use super::apt::{self, APT_GET, DPKG};
use super::boot::Boot;
use super::prepare::DIST_UPGRADE;
use crate::system::host::check_health;
use crate::system::transaction::Ended;

const FIX_BROKEN: [&str; 2] = ["--fix-broken", "install"];

impl Debian {
    pub(super) async fn upgrade_all(&self, context: &Context) -> HandlerResult<Upgraded> {
        if !self.prepared().exists() {
            let directory = self.apt.directory().display();
            return Err(
                format!("nothing is prepared in {directory}; start a run, which prepares first").into()
            );
        }
        apt::check_database(&self.parts.tools).await?;
        self.parts.health.before_upgrade(&self.parts.tools, context).await?;
        let recovery_error = self.recover(context).await?;
        let plan = self.checked_plan().await?;
        info!("{}", plan.summary());
        let ended = self.change(context, APT_GET, &self.apt.change_arguments(&DIST_UPGRADE)).await?;
        if !ended.exit.success() {
            return Err(describe("the upgrade", &ended).into());
        }
        if context.is_resumed() {
            self.install_missing(context).await?;
        }
        self.check_finished(recovery_error).await?;
        self.clean().await;
        if let Some(reason) = self.required_reboot().await? {
            info!("a reboot is required: {reason}");
            return Ok(Upgraded::RebootRequired);
        }
        check_health(self, context).await?;
        Ok(Upgraded::Done)
    }

    /// Finishes an interrupted installation. If that fails, the upgrade itself may still repair it, for example with a
    /// newer version of a package that cannot be configured; so the message is returned, and not as an error.
    async fn recover(&self, context: &Context) -> HandlerResult<Option<String>> {
        let unfinished = async || {
            let packages = apt::packages(&self.parts.tools).await?;
            let open =
                !package::unfinished(&packages).is_empty() || apt::is_interrupted(self.parts.tools.root());
            HandlerResult::Ok(open)
        };
        let mut failure = None;
        if unfinished().await? {
            info!("an earlier installation did not finish");
            let ended = self.change(context, DPKG, &apt::configure_arguments()).await?;
            failure = (!ended.exit.success()).then(|| describe("dpkg --configure --pending", &ended));
        }
        let check = self.parts.tools.run(APT_GET, &self.apt.read_only_arguments(&["check"])).await?;
        if !check.status.success() || unfinished().await? {
            let plan = self.apt.simulate(&self.parts.tools, &FIX_BROKEN).await?;
            if let Some(refusal) =
                decide::refusal(&plan, &apt::packages(&self.parts.tools).await?, self.allowed())
            {
                return Err(refusal.into());
            }
            let ended = self.change(context, APT_GET, &self.apt.change_arguments(&FIX_BROKEN)).await?;
            failure = (!ended.exit.success()).then(|| describe("apt-get --fix-broken install", &ended));
        }
        if let Some(failure) = &failure {
            warn!("{failure}");
        }
        Ok(failure)
    }

    /// Installs planned new packages that are still missing. APT installs recommended packages only together with the
    /// upgrade of the package that recommends them, and the upgrade may have been cut off in between.
    async fn install_missing(&self, context: &Context) -> HandlerResult {
        let planned = fs::read_to_string(self.prepared()).unwrap_or_default();
        let packages = apt::packages(&self.parts.tools).await?;
        let missing = package::missing(planned.lines(), &packages);
        if missing.is_empty() {
            return Ok(());
        }
        info!("installing prepared packages that are still missing: {}", names(&missing));
        let mut more = vec!["--mark-auto", "install"];
        more.extend(missing);
        let ended = self.change(context, APT_GET, &self.apt.change_arguments(&more)).await?;
        if ended.exit.success() { Ok(()) } else { Err(describe("the upgrade", &ended).into()) }
    }

    /// Runs a command that changes the system, as soon as no other process holds the locks.
    async fn change(&self, context: &Context, program: &str, arguments: &[String]) -> HandlerResult<Ended> {
        let mut wait = self.parts.tools.lock_wait();
        let mut boot = Boot::new(&self.parts.tools);
        loop {
            let ended = tokio::select! {
                ended = self.parts.transactions.run(&self.parts.tools, context, program, arguments, |_| ()) => ended?,
                never = boot.watch() => match never {},
            };
            boot.finish().await;
            if ended.exit.success() || wait.is_over(&ended.output).await? {
                return Ok(ended);
            }
        }
    }

    /// Checks that every package is fully installed. `earlier_failure` is added to the error.
    async fn check_finished(&self, earlier_failure: Option<String>) -> HandlerResult {
        let packages = apt::packages(&self.parts.tools).await?;
        let unfinished = package::unfinished(&packages);
        if unfinished.is_empty() {
            return Ok(());
        }
        let cause = earlier_failure.map(|failure| format!(": {failure}")).unwrap_or_default();
        Err(format!("packages are not fully installed: {}{cause}; see dpkg --audit", names(unfinished))
            .into())
    }

    /// Removes the downloaded packages after their installation.
    async fn clean(&self) {
        match self.parts.tools.run(APT_GET, &self.apt.read_only_arguments(&["clean"])).await {
            Ok(finished) if finished.status.success() => {}
            Ok(finished) => warn!("cannot remove the downloaded packages: {}", one_line(&finished.all())),
            Err(error) => warn!("cannot remove the downloaded packages: {}", error.message()),
        }
    }
}

fn describe(what: &str, ended: &Ended) -> String {
    failure::describe(what, &ended.output, &ended.status)
}
