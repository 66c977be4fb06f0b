//! The worker of a Debian host: runs APT and dpkg, and reports their progress and errors to operators.
//!
//! `os-upgrade-systems` interprets the tools' output; this module decides which commands are run, and when.

mod apt;
mod awaited;
mod boot;
mod options;
mod prepare;
mod reboot_need;
mod upgrade;
mod versions;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use os_upgrade_systems::debian::decide::Allowed;
use os_upgrade_systems::debian::package;
use os_upgrade_worker_sdk::{BootIdSource, Context, Error, HandlerResult, Upgraded, Versions};
use tracing::warn;

use crate::system::SystemOptions;
use crate::system::before::Before;
use crate::system::host::{Parts, System, state_file};
use apt::Apt;
use awaited::AwaitedKernels;
pub(crate) use options::DebianArgs;
use options::Settings;

/// A file in the cache directory, written once everything is downloaded; `upgrade` refuses to start without it. It
/// contains the names of the packages to install newly, one per line.
const PREPARED: &str = "prepared";

/// A Debian host.
#[derive(Debug)]
pub(crate) struct Debian {
    settings: Settings,
    apt: Apt,
    awaited: AwaitedKernels,
    parts: Parts,
}

impl Debian {
    pub(crate) fn new(
        settings: Settings,
        options: SystemOptions,
        state_dir: &Path,
        host: &str,
        boot_id: BootIdSource,
    ) -> Result<Self, Error> {
        Ok(Self {
            apt: Apt::new(&settings.root, &settings.cache_dir),
            awaited: AwaitedKernels::new(state_file(state_dir, host, "kernels")?, boot_id.clone()),
            parts: Parts::new(settings.root.clone(), settings.lock_wait, options, state_dir, host, boot_id)?,
            settings,
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
}

impl System for Debian {
    fn parts(&self) -> &Parts {
        &self.parts
    }

    async fn prepare(&self, context: &Context) -> HandlerResult {
        self.prepare_all(context).await
    }

    async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
        self.upgrade_all(context).await
    }

    async fn check_once(&self, context: &Context, _before: Option<&Before>) -> HandlerResult {
        // The host is upgraded as far as it can be, which a failure would hide.
        match self.missed_by_reboot().await {
            Ok(Some(missed)) => {
                warn!("{missed}");
                context.output().write(&missed);
            }
            Ok(None) => {}
            Err(error) => warn!("it is not known what the last reboot has brought: {}", error.message()),
        }
        Ok(())
    }

    async fn unfinished_packages(&self) -> HandlerResult<BTreeSet<String>> {
        let packages = apt::packages(&self.parts.tools).await?;
        Ok(package::unfinished(&packages).into_iter().map(str::to_owned).collect())
    }

    async fn versions(&self) -> HandlerResult<Versions> {
        self.all_versions().await
    }

    async fn reboot_required(&self) -> HandlerResult<Option<String>> {
        self.required_reboot().await
    }

    async fn reboot_ineffective(&self) -> HandlerResult<Option<String>> {
        self.missed_by_reboot().await
    }
}
