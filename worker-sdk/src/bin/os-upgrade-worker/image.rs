//! The worker of an image-based host: bootc or rpm-ostree stages the next deployment, and a reboot boots it.

mod commands;
mod options;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use os_upgrade_systems::debian::release;
use os_upgrade_systems::image::Status;
use os_upgrade_worker_sdk::{BootIdSource, Context, Error, HandlerResult, Upgraded, Versions};
use tracing::info;

use crate::system::SystemOptions;
use crate::system::before::{Before, replace};
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
}

/// What `prepare` has recorded, a line each.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Prepared {
    /// The id of the downloaded image, or [`NOTHING`] or [`LATER`].
    found: String,
    /// The id of the deployment that ran.
    booted: String,
    /// The ids of those that a rollback would have booted.
    earlier: Vec<String>,
}

impl Prepared {
    /// Reads it; `None` if nothing is prepared.
    fn read(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut lines = text.lines().map(|line| line.trim().to_owned());
        let found = lines.next().filter(|found| !found.is_empty())?;
        Some(Self { found, booted: lines.next()?, earlier: lines.collect() })
    }

    fn write(&self, path: &Path) -> HandlerResult {
        let mut lines = vec![self.found.as_str(), &self.booted];
        lines.extend(self.earlier.iter().map(String::as_str));
        replace(path, (lines.join("\n") + "\n").as_bytes())
    }
}

impl Image {
    pub(crate) fn new(
        settings: Settings,
        options: SystemOptions,
        state_dir: &Path,
        host: &str,
        boot_id: BootIdSource,
    ) -> Result<Self, Error> {
        Ok(Self {
            parts: Parts::new(PathBuf::from("/"), settings.lock_wait, options, state_dir, host, boot_id)?,
            prepared: state_file(state_dir, host, "prepared")?,
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
        Prepared { found, booted: before.booted.id, earlier: before.earlier }.write(&self.prepared)
    }

    async fn upgrade_all(&self, context: &Context) -> HandlerResult<Upgraded> {
        let Some(prepared) = Prepared::read(&self.prepared) else {
            return Err("nothing is prepared; start a run, which prepares first".into());
        };
        let (kind, status) = self.status().await?;
        if status.booted.id == prepared.found || (prepared.found == NOTHING && status.next.is_none()) {
            info!("nothing to upgrade: {} runs", status.booted.name());
            return Ok(Upgraded::Done);
        }
        let Parts { tools, health, .. } = &self.parts;
        let target = health.recorded(context)?.and_then(|before| before.target);
        if context.has_rebooted() && status.next.is_none() && target == Some(status.booted.id.clone()) {
            return Ok(Upgraded::Done);
        }
        let later = prepared.found == LATER;
        if status.next.is_none() && !later {
            let runs = status.booted.name();
            if prepared.earlier.contains(&status.booted.id) {
                return Err(format!(
                    "the host was rolled back since it was prepared, and runs {runs}; start another run"
                )
                .into());
            }
            if status.booted.id != prepared.booted {
                let upgraded = format!(
                    "nothing to upgrade: somebody else changed the host meanwhile, and it runs {runs}"
                );
                info!("{upgraded}");
                context.output().write(&upgraded);
                return Ok(Upgraded::Done);
            }
            return Err(format!(
                "the prepared image no longer exists, because the host was rebooted since, and runs {runs}; start another run"
            )
            .into());
        }
        health.before_upgrade(tools, context).await?;
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
                health.set_target(context, &next.id)?;
                info!("a reboot is required: from {} to {}", status.booted.name(), next.name());
                Ok(Upgraded::RebootRequired)
            }
        }
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

    /// Checks that the host runs the deployment that this run has upgraded it to. What an earlier run wanted no longer counts: the
    /// host may have been upgraded by somebody else since.
    async fn check_once(&self, _context: &Context, before: Option<&Before>) -> HandlerResult {
        let Some(target) = before.and_then(|before| before.target.as_ref()) else { return Ok(()) };
        // Soon after a boot the tool may not answer yet; what it answers does not change.
        let retry = self.parts.health.retry();
        let (_, status) = loop {
            match self.status().await {
                Ok(status) => break status,
                Err(error) => retry.pause_or_fail(error).await?,
            }
        };
        if status.booted.id == *target {
            return Ok(());
        }
        let runs = status.booted.name();
        Err(format!(
            "the host runs {runs} and not {target}, which it was upgraded to: it did not boot, was rolled back, or was upgraded \
             by somebody else meanwhile"
        )
        .into())
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

fn remove(path: &Path) -> HandlerResult {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", path.display()).into())
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
