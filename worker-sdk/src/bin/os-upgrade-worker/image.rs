//! The worker of an image-based host: bootc or rpm-ostree stages the next deployment, and a reboot boots it.

mod commands;
mod options;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use os_upgrade_systems::debian::release;
use os_upgrade_systems::image::Status;
use os_upgrade_worker_sdk::{Context, Error, HandlerResult, Upgraded, Versions};
use tracing::info;

use crate::system::SystemOptions;
use crate::system::host::{Parts, System, state_file};
use commands::Downloaded;
pub(crate) use options::ImageArgs;
use options::{Kind, Settings};

/// Recorded by `prepare` when it found nothing newer.
const NOTHING: &str = "nothing";
/// Recorded by `prepare` when the upgrade determines what is newer. Otherwise `prepare` records the downloaded image's id.
const LATER: &str = "later";

/// An image-based host.
#[derive(Debug)]
pub(crate) struct Image {
    settings: Settings,
    parts: Parts,
    /// The file in which `prepare` records its result.
    prepared: PathBuf,
    /// The file with the id of the deployment that the host should run after the reboot.
    target: PathBuf,
}

impl Image {
    pub(crate) fn new(
        settings: Settings,
        options: SystemOptions,
        state_dir: &Path,
        host: &str,
    ) -> Result<Self, Error> {
        Ok(Self {
            parts: Parts::new(PathBuf::from("/"), settings.lock_wait, options, state_dir, host)?,
            prepared: state_file(state_dir, host, "prepared")?,
            target: state_file(state_dir, host, "target")?,
            settings,
        })
    }

    /// The tool that upgrades this host, and the host's deployments.
    async fn status(&self) -> HandlerResult<(Kind, Status)> {
        if let Some(kind) = self.settings.tool {
            return Ok((kind, kind.status(&self.parts.tools).await?));
        }
        let bootc = match Kind::Bootc.status(&self.parts.tools).await {
            Ok(status) => return Ok((Kind::Bootc, status)),
            Err(error) => error,
        };
        match Kind::RpmOstree.status(&self.parts.tools).await {
            Ok(status) => Ok((Kind::RpmOstree, status)),
            Err(error) => {
                let (bootc, rpm_ostree) = (bootc.message(), error.message());
                Err(format!("neither bootc nor rpm-ostree upgrades this host: {bootc}; {rpm_ostree}").into())
            }
        }
    }

    async fn prepare_all(&self, context: &Context) -> HandlerResult {
        remove(&self.prepared)?;
        let (kind, before) = self.status().await?;
        let found = match kind.download(&self.parts.tools, context, self.settings.lock_wait).await? {
            Downloaded::Description => LATER.to_owned(),
            Downloaded::All if kind == Kind::RpmOstree => LATER.to_owned(),
            Downloaded::All => {
                let (_, after) = self.status().await?;
                after.next.as_ref().map_or_else(|| NOTHING.to_owned(), |next| next.id.clone())
            }
        };
        info!("{} runs; prepared: {found}", before.booted.name());
        write(&self.prepared, &found)
    }

    async fn upgrade_all(&self, context: &Context) -> HandlerResult<Upgraded> {
        let prepared = read(&self.prepared);
        if prepared.is_empty() {
            return Err("nothing is prepared; start a run, which prepares first".into());
        }
        let (kind, status) = self.status().await?;
        if status.booted.id == prepared || (prepared == NOTHING && status.next.is_none()) {
            info!("nothing to upgrade: {} runs", status.booted.name());
            return Ok(Upgraded::Done);
        }
        if context.has_rebooted() && status.next.is_none() && status.booted.id == read(&self.target) {
            return Ok(Upgraded::Done);
        }
        self.parts.health.record_failed_units(&self.parts.tools, context).await?;
        let later = prepared == LATER;
        if status.next.is_none() && !later {
            let message =
                "the prepared image no longer exists, because the host was rebooted since; start another run";
            return Err(message.into());
        }
        // If the upgrade determines what is newer, the next deployment may be an older one that was staged long ago.
        if later || status.next_is_locked {
            let downloaded = if later { Downloaded::Description } else { Downloaded::All };
            kind.stage(
                &self.parts.tools,
                &self.parts.transactions,
                context,
                downloaded,
                self.settings.lock_wait,
            )
            .await?;
        }
        let (_, status) = self.status().await?;
        match status.next {
            None => {
                info!("nothing to upgrade: {} runs", status.booted.name());
                Ok(Upgraded::Done)
            }
            Some(next) if status.next_is_locked => {
                Err(format!("{} is still only downloaded after {} upgrade", next.name(), kind.program())
                    .into())
            }
            Some(next) => {
                write(&self.target, &next.id)?;
                info!("a reboot is required: from {} to {}", status.booted.name(), next.name());
                Ok(Upgraded::RebootRequired)
            }
        }
    }

    /// Checks that the host runs the deployment it was upgraded to.
    async fn check_target(&self) -> HandlerResult {
        let target = read(&self.target);
        let (_, status) = self.status().await?;
        if target.is_empty() || status.booted.id == target {
            return Ok(());
        }
        let runs = status.booted.name();
        Err(format!("the host runs {runs} and not {target}, which it was upgraded to: it did not boot, or was rolled back").into())
    }
}

impl System for Image {
    fn parts(&self) -> &Parts {
        &self.parts
    }

    async fn prepare(&self, context: &Context) -> HandlerResult {
        self.prepare_all(context).await
    }

    async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
        self.upgrade_all(context).await
    }

    async fn health(&self, context: &Context) -> HandlerResult {
        // Waiting would not change this, so it is checked once.
        self.check_target().await?;
        self.parts.health.check(&self.parts.tools, context).await
    }

    async fn versions(&self) -> HandlerResult<Versions> {
        let (_, status) = self.status().await?;
        let kernel = nix::sys::utsname::uname()?.release().to_string_lossy().into_owned();
        let release = release::version(&fs::read_to_string("/etc/os-release").unwrap_or_default(), "");
        let all = [
            ("linux", Some(kernel)),
            ("os-release", release),
            ("image", status.booted.image),
            ("image-version", status.booted.version),
            ("image-id", Some(status.booted.id)),
        ];
        let known = all.into_iter().filter_map(|(name, version)| Some((name.to_owned(), version?)));
        Ok(Versions(known.collect::<BTreeMap<_, _>>()))
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn write(path: &Path, text: &str) -> HandlerResult {
    // Atomically, because a partial id would be mistaken for another image.
    let new = path.with_extension("new");
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    Ok(written.map_err(|error| format!("cannot write {}: {error}", path.display()))?)
}

fn remove(path: &Path) -> HandlerResult {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", path.display()).into())
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
