//! Why the host must reboot, and what its last reboot should have brought but did not. A boot loader may be set to an older
//! kernel, and then no number of reboots brings a newer one.

use std::fs;
use std::path::Path;

use os_upgrade_systems::debian::kernel::{self, Pending, Running};
use os_upgrade_systems::debian::package;
use os_upgrade_systems::text::one_line;
use os_upgrade_worker_sdk::HandlerResult;

use super::Debian;
use super::apt;

/// What a reboot is good for.
#[derive(Debug)]
enum RebootNeed {
    Unneeded,
    /// The host must reboot: why.
    Required(String),
    /// A reboot did not bring the kernel that it should have brought, in one line. Another would not either.
    Ineffective(String),
}

impl Debian {
    async fn reboot_need(&self) -> HandlerResult<RebootNeed> {
        // First, because a kernel's installation may also have created the file.
        let by_kernel =
            if self.parts.tools.is_this_machine() { self.kernel_need().await? } else { RebootNeed::Unneeded };
        Ok(requested(self.parts.tools.root()).map_or(by_kernel, RebootNeed::Required))
    }

    /// Why the host must reboot; `None` if it need not, or another reboot would not help.
    pub(super) async fn required_reboot(&self) -> HandlerResult<Option<String>> {
        Ok(match self.reboot_need().await? {
            RebootNeed::Required(reason) => Some(reason),
            RebootNeed::Unneeded | RebootNeed::Ineffective(_) => None,
        })
    }

    /// What the last reboot should have brought and did not.
    pub(super) async fn missed_by_reboot(&self) -> HandlerResult<Option<String>> {
        Ok(match self.reboot_need().await? {
            RebootNeed::Ineffective(missed) => Some(missed),
            RebootNeed::Unneeded | RebootNeed::Required(_) => None,
        })
    }

    async fn kernel_need(&self) -> HandlerResult<RebootNeed> {
        let running = running()?;
        let installed = kernels(self.parts.tools.root());
        let pending = self.pending_kernels(&running, &installed).await?;
        let Some(newest) = pending.first() else {
            // `/boot` may just not be mounted.
            if installed.contains(&running.release) {
                self.awaited.clear()?;
            }
            return Ok(RebootNeed::Unneeded);
        };
        let attainable = self.awaited.attainable(&pending)?;
        let Some(first) = attainable.first() else {
            return Ok(RebootNeed::Ineffective(format!(
                "{} even after a reboot; check which kernel the boot loader starts, then reboot the host",
                newest.reason
            )));
        };
        // Until everything is configured, the boot loader may not know the kernel yet.
        if package::unfinished(&apt::packages(&self.parts.tools).await?).is_empty() {
            self.awaited.add(&attainable, &installed)?;
        }
        Ok(RebootNeed::Required(first.reason.clone()))
    }

    async fn pending_kernels(&self, running: &Running, installed: &[String]) -> HandlerResult<Vec<Pending>> {
        let image = [format!("linux-image-{}", running.release)];
        let packages = apt::packages_named(&self.parts.tools, &image).await?;
        let package =
            packages.first().map(|package| package.version.as_str()).filter(|version| !version.is_empty());
        Ok(kernel::pending(running, installed, package))
    }
}

/// Why a package has requested a reboot, if one has.
fn requested(root: &Path) -> Option<String> {
    if !root.join("run/reboot-required").exists() {
        return None;
    }
    let packages = fs::read_to_string(root.join("run/reboot-required.pkgs")).unwrap_or_default();
    let by = if packages.trim().is_empty() { String::new() } else { format!(" by {}", one_line(&packages)) };
    Some(format!("/run/reboot-required was created{by}"))
}

/// The running kernel.
pub(super) fn running() -> HandlerResult<Running> {
    let names = nix::sys::utsname::uname()?;
    let text = |value: &std::ffi::OsStr| value.to_string_lossy().into_owned();
    Ok(Running { release: text(names.release()), build: text(names.version()) })
}

/// The releases of the kernels in /boot.
pub(super) fn kernels(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root.join("boot")).into_iter().flatten().filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    // Some architectures do not compress them.
    let release = |name: String| {
        let release = name.strip_prefix("vmlinuz-").or_else(|| name.strip_prefix("vmlinux-"));
        release.map(str::to_owned)
    };
    names.filter_map(release).collect()
}
