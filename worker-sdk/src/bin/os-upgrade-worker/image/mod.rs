//! The worker of a host that runs an image: bootc or rpm-ostree lays out the next one beside it, and a reboot takes it.

mod commands;
mod options;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use os_upgrade_systems::debian::release;
use os_upgrade_systems::image::Status;
use os_upgrade_worker_sdk::{Context, Error, HandlerResult, HostName, Upgraded, Versions, Worker};
use tracing::info;

use crate::leftover::Leftover;
use crate::system::health::Health;
use crate::system::tools::Tools;
use crate::system::transaction::Transactions;
use crate::system::{SystemOptions, reboot, stopped};
use commands::Downloaded;
pub(crate) use options::ImageArgs;
use options::{Kind, Settings};

/// What `prepare` notes where nothing newer was found, and where the download is left to the upgrade. Otherwise it is
/// the id of what was downloaded.
const NOTHING: &str = "nothing";
const LATER: &str = "later";

/// A host that runs an image.
#[derive(Debug)]
pub(crate) struct Image {
    settings: Settings,
    options: SystemOptions,
    tools: Tools,
    transactions: Transactions,
    health: Health,
    /// What `prepare` found.
    prepared: PathBuf,
    /// The id of what the host is to run after the reboot.
    target: PathBuf,
}

impl Image {
    pub(crate) fn new(
        settings: Settings,
        options: SystemOptions,
        state_dir: &Path,
        host: &str,
    ) -> Result<Self, Error> {
        let token = HostName::new(host)?.token();
        let file = |what: &str| state_dir.join(format!("{token}.{what}"));
        Ok(Self {
            tools: Tools::new(
                PathBuf::from("/"),
                settings.lock_wait,
                Leftover::of_host(state_dir, host, "tool")?,
            ),
            transactions: Transactions::new(
                file("upgrade.log"),
                file("upgrade.status"),
                Leftover::of_host(state_dir, host, "upgrade")?,
            ),
            health: Health::new(&options, file("failed-units")),
            prepared: file("prepared"),
            target: file("target"),
            settings,
            options,
        })
    }

    /// What upgrades this host, and what it says.
    async fn look(&self) -> HandlerResult<(Kind, Status)> {
        if let Some(kind) = self.settings.tool {
            return Ok((kind, kind.status(&self.tools).await?));
        }
        let bootc = match Kind::Bootc.status(&self.tools).await {
            Ok(status) => return Ok((Kind::Bootc, status)),
            Err(error) => error,
        };
        match Kind::RpmOstree.status(&self.tools).await {
            Ok(status) => Ok((Kind::RpmOstree, status)),
            Err(error) => {
                let (bootc, rpm_ostree) = (bootc.message(), error.message());
                Err(format!("neither bootc nor rpm-ostree upgrades this host: {bootc}; {rpm_ostree}").into())
            }
        }
    }

    async fn after_an_earlier_worker(&self, context: &Context) -> HandlerResult {
        self.transactions.await_leftover(context).await?;
        self.tools.end_leftover().await;
        Ok(())
    }

    async fn prepare_all(&self, context: &Context) -> HandlerResult {
        forget(&self.prepared)?;
        let (kind, before) = self.look().await?;
        let found = match kind.download(&self.tools, context, self.settings.lock_wait).await? {
            Downloaded::Description => LATER.to_owned(),
            Downloaded::All if kind == Kind::RpmOstree => LATER.to_owned(),
            Downloaded::All => {
                let (_, after) = self.look().await?;
                after.next.as_ref().map_or_else(|| NOTHING.to_owned(), |next| next.id.clone())
            }
        };
        info!("{} runs; prepared: {found}", before.booted.name());
        note(&self.prepared, &found)
    }

    async fn upgrade_all(&self, context: &Context) -> HandlerResult<Upgraded> {
        let prepared = read(&self.prepared);
        if prepared.is_empty() {
            return Err("nothing is prepared; start a run, which prepares first".into());
        }
        let (kind, status) = self.look().await?;
        if status.booted.id == prepared || (prepared == NOTHING && status.next.is_none()) {
            info!("nothing to upgrade: {} runs", status.booted.name());
            return Ok(Upgraded::Done);
        }
        if context.has_rebooted() && status.next.is_none() && status.booted.id == read(&self.target) {
            return Ok(Upgraded::Done);
        }
        self.health.note_failed_units(&self.tools, context).await?;
        if status.next.is_none() && prepared != LATER {
            let message = "what was prepared is not there any more, because the host was booted since; start another run";
            return Err(message.into());
        }
        if status.next.is_none() || status.next_is_locked {
            let downloaded = if prepared == LATER { Downloaded::Description } else { Downloaded::All };
            kind.apply(&self.tools, &self.transactions, context, downloaded, self.settings.lock_wait).await?;
        }
        let (_, status) = self.look().await?;
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
                note(&self.target, &next.id)?;
                info!("a reboot is required: {} is to run, and {} runs", next.name(), status.booted.name());
                Ok(Upgraded::RebootRequired)
            }
        }
    }

    /// Whether the host runs what it was upgraded to.
    async fn runs_its_target(&self) -> HandlerResult {
        let target = read(&self.target);
        let (_, status) = self.look().await?;
        if target.is_empty() || status.booted.id == target {
            return Ok(());
        }
        let runs = status.booted.name();
        Err(format!("the host runs {runs} and not {target}, which it was upgraded to: it did not boot, or was rolled back").into())
    }
}

impl Worker for Image {
    async fn prepare(&self, context: &Context) -> HandlerResult {
        self.after_an_earlier_worker(context).await?;
        tokio::select! {
            prepared = self.prepare_all(context) => prepared,
            cause = context.cancelled() => Err(stopped(cause).into()),
        }
    }

    async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
        self.after_an_earlier_worker(context).await?;
        self.upgrade_all(context).await
    }

    async fn reboot(&self, _context: &Context) -> HandlerResult {
        reboot::start(&self.tools, &self.options).await
    }

    async fn health(&self, context: &Context) -> HandlerResult {
        // That does not come right by itself.
        self.runs_its_target().await?;
        self.health.check(&self.tools, context).await
    }

    async fn versions(&self, _context: &Context) -> HandlerResult<Versions> {
        let (_, status) = self.look().await?;
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

fn note(path: &Path, text: &str) -> HandlerResult {
    // In one step: what is torn would be taken for another image.
    let new = path.with_extension("new");
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    Ok(written.map_err(|error| format!("cannot write {}: {error}", path.display()))?)
}

fn forget(path: &Path) -> HandlerResult {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", path.display()).into())
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
