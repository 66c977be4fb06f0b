//! `upgrade`: what an earlier one left is ended, what was prepared is installed, and the outcome looked at.

use std::fs;
use std::path::Path;

use os_upgrade_systems::debian::kernel::{self, Running};
use os_upgrade_systems::debian::{decide, failure, package};
use os_upgrade_systems::text::{names, one_line};
use os_upgrade_worker_sdk::{Context, HandlerResult, Upgraded};
use tracing::{info, warn};

use super::Debian;
use super::apt::{self, APT_GET, DPKG};
use super::boot::Boot;
use super::prepare::DIST_UPGRADE;
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
        self.parts.health.note_failed_units(&self.parts.tools, context).await?;
        let unrecovered = self.recover(context).await?;
        let plan = self.checked_plan().await?;
        info!("{}", plan.summary());
        let ended = self.change(context, APT_GET, &self.apt.words_to_change(&DIST_UPGRADE)).await?;
        if !ended.exit.success() {
            return Err(trouble("the upgrade", &ended).into());
        }
        self.install_missing(context).await?;
        self.is_finished(unrecovered).await?;
        self.clean().await;
        if let Some(reason) = self.reboot_reason().await? {
            info!("a reboot is required: {reason}");
            return Ok(Upgraded::RebootRequired);
        }
        self.is_healthy(context).await?;
        Ok(Upgraded::Done)
    }

    /// Ends what was begun before and not ended. What stays wrong may be put right by the upgrade itself, such as by a
    /// newer version of a package that cannot be configured; so it is returned and not yet an error.
    async fn recover(&self, context: &Context) -> HandlerResult<Option<String>> {
        let unfinished = async || {
            let packages = apt::packages(&self.parts.tools).await?;
            let open =
                !package::unfinished(&packages).is_empty() || apt::is_interrupted(self.parts.tools.root());
            HandlerResult::Ok(open)
        };
        let mut wrong = None;
        if unfinished().await? {
            info!("an earlier installation did not end");
            let ended = self.change(context, DPKG, &apt::configure_words()).await?;
            wrong = (!ended.exit.success()).then(|| trouble("dpkg --configure --pending", &ended));
        }
        let check = self.parts.tools.run(APT_GET, &self.apt.words_to_read(&["check"])).await?;
        if !check.status.success() || unfinished().await? {
            let plan = self.apt.simulate(&self.parts.tools, &FIX_BROKEN).await?;
            if let Some(refusal) =
                decide::refusal(&plan, &apt::packages(&self.parts.tools).await?, self.allowed())
            {
                return Err(refusal.into());
            }
            let ended = self.change(context, APT_GET, &self.apt.words_to_change(&FIX_BROKEN)).await?;
            wrong = (!ended.exit.success()).then(|| trouble("apt-get --fix-broken install", &ended));
        }
        if let Some(wrong) = &wrong {
            warn!("{wrong}");
        }
        Ok(wrong)
    }

    /// Installs what was to come new and did not: what a package only recommends comes with its upgrade or never, and the
    /// upgrade may have been cut off between the two.
    async fn install_missing(&self, context: &Context) -> HandlerResult {
        let planned = fs::read_to_string(self.prepared()).unwrap_or_default();
        let packages = apt::packages(&self.parts.tools).await?;
        let missing = package::missing(planned.lines(), &packages);
        if missing.is_empty() {
            return Ok(());
        }
        info!("installs what was prepared and is still missing: {}", names(&missing));
        let mut more = vec!["--mark-auto", "install"];
        more.extend(missing);
        let ended = self.change(context, APT_GET, &self.apt.words_to_change(&more)).await?;
        if ended.exit.success() { Ok(()) } else { Err(trouble("the upgrade", &ended).into()) }
    }

    /// Runs what changes the system, when nobody else does.
    async fn change(&self, context: &Context, program: &str, words: &[String]) -> HandlerResult<Ended> {
        let mut wait = self.parts.tools.lock_wait();
        let mut boot = Boot::new(&self.parts.tools);
        loop {
            let ended = tokio::select! {
                ended = self.parts.transactions.run(&self.parts.tools, context, program, words, |_| ()) => ended?,
                never = boot.watch() => match never {},
            };
            boot.finish().await;
            if ended.exit.success() || wait.is_over(&ended.output).await? {
                return Ok(ended);
            }
        }
    }

    /// Whether every package is installed whole.
    async fn is_finished(&self, wrong: Option<String>) -> HandlerResult {
        let packages = apt::packages(&self.parts.tools).await?;
        let unfinished = package::unfinished(&packages);
        if unfinished.is_empty() {
            return Ok(());
        }
        let wrong = wrong.map(|wrong| format!(": {wrong}")).unwrap_or_default();
        Err(format!("packages are not installed whole: {}{wrong}; see dpkg --audit", names(unfinished))
            .into())
    }

    pub(super) async fn is_healthy(&self, context: &Context) -> HandlerResult {
        // That does not come right by itself.
        self.is_finished(None).await?;
        self.parts.health.check(&self.parts.tools, context).await
    }

    /// Removes the packages that are installed now.
    async fn clean(&self) {
        match self.parts.tools.run(APT_GET, &self.apt.words_to_read(&["clean"])).await {
            Ok(said) if said.status.success() => {}
            Ok(said) => warn!("the downloaded packages stay: {}", one_line(&said.all())),
            Err(error) => warn!("the downloaded packages stay: {}", error.message()),
        }
    }

    /// Why the host has to be rebooted, if it has to.
    async fn reboot_reason(&self) -> HandlerResult<Option<String>> {
        let root = self.parts.tools.root();
        if root.join("run/reboot-required").exists() {
            let packages = fs::read_to_string(root.join("run/reboot-required.pkgs")).unwrap_or_default();
            let by = if packages.trim().is_empty() {
                String::new()
            } else {
                format!(" by {}", one_line(&packages))
            };
            return Ok(Some(format!("/run/reboot-required was made{by}")));
        }
        if !self.parts.tools.is_this_machine() {
            return Ok(None);
        }
        let running = running()?;
        let image = [format!("linux-image-{}", running.release)];
        let packages = apt::packages_named(&self.parts.tools, &image).await?;
        let package =
            packages.first().map(|package| package.version.as_str()).filter(|version| !version.is_empty());
        Ok(kernel::other_than_running(&running, &kernels(root), package))
    }
}

fn trouble(what: &str, ended: &Ended) -> String {
    failure::trouble(what, &ended.output, &ended.status)
}

/// The kernel that runs.
pub(super) fn running() -> HandlerResult<Running> {
    let names = nix::sys::utsname::uname()?;
    let text = |value: &std::ffi::OsStr| value.to_string_lossy().into_owned();
    Ok(Running { release: text(names.release()), build: text(names.version()) })
}

/// The releases of the kernels that may be booted.
pub(super) fn kernels(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root.join("boot")).into_iter().flatten().filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix("vmlinuz-").map(str::to_owned)).collect()
}
