//! `versions`: the kernel, the release, and the packages that the operator chose.

use std::collections::BTreeMap;
use std::fs;

use os_upgrade_systems::debian::release;
use os_upgrade_systems::debian::version::compare;
use os_upgrade_worker_sdk::{HandlerResult, Versions};

use super::Debian;
use super::apt;
use super::reboot_need::{kernels, running};

impl Debian {
    pub(super) async fn all_versions(&self) -> HandlerResult<Versions> {
        let root = self.parts.tools.root();
        let mut versions = BTreeMap::new();
        let kernel = if self.parts.tools.is_this_machine() {
            Some(running()?.release)
        } else {
            kernels(root).into_iter().max_by(|a, b| compare(a, b))
        };
        versions.extend(kernel.map(|kernel| ("linux".to_owned(), kernel)));
        let text = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
        let release = release::version(&text("etc/os-release"), &text("etc/debian_version"));
        versions.extend(release.map(|release| ("os-release".to_owned(), release)));
        if !self.settings.packages.is_empty() {
            let packages = apt::packages_named(&self.parts.tools, &self.settings.packages).await?;
            let installed = packages.into_iter().filter(|package| !package.version.is_empty());
            versions.extend(installed.map(|package| (package.name, package.version)));
        }
        Ok(Versions(versions))
    }
}
