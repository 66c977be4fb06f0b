//! A worker that uses all features: it downloads, reports progress, stops when asked, resumes after it was cut off,
//! reboots, checks the host's health, and publishes versions.
//!
//! `OS_UPGRADE_NATS_URL=nats://127.0.0.1:4222 cargo run --example full -- h01 DIRECTORY`
//!
//! It installs "packages", which are files in DIRECTORY, so it can be tried anywhere, also with
//! `os-upgrade-worker check`. If DIRECTORY contains a file `boot-id`, that is the boot id, and nothing is rebooted.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use os_upgrade_worker_sdk::{
    BootIdSource, CancellationToken, Cause, Context, HandlerResult, Upgraded, Versions, Worker, WorkerBuilder,
};

const PACKAGES: [&str; 4] = ["kernel", "libc", "shell", "tools"];
const WANTED: &str = "2.0";

struct Full {
    directory: PathBuf,
    /// The boot id is a file, so the host is not really rebooted.
    is_trial: bool,
}

impl Full {
    fn downloaded(&self, package: &str) -> PathBuf {
        self.directory.join(format!("{package}.download"))
    }

    fn installed(&self, package: &str) -> PathBuf {
        self.directory.join(package)
    }

    fn version(&self, package: &str) -> io::Result<String> {
        match std::fs::read_to_string(self.installed(package)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok("1.0".to_owned()),
            read => read,
        }
    }

    async fn download(&self, context: &Context) -> HandlerResult {
        for (done, package) in PACKAGES.iter().enumerate() {
            context.progress(percent(done), &format!("downloading {package}"));
            tokio::time::sleep(Duration::from_millis(20)).await;
            tokio::fs::write(self.downloaded(package), WANTED).await?;
        }
        Ok(())
    }
}

fn percent(done: usize) -> u8 {
    u8::try_from(done * 100 / PACKAGES.len()).unwrap_or(100)
}

impl Worker for Full {
    /// Changes nothing in the running system, so it may be stopped at any point.
    async fn prepare(&self, context: &Context) -> HandlerResult {
        tokio::select! {
            downloaded = self.download(context) => downloaded,
            cause = context.cancelled() => Err(match cause {
                Cause::Cancelled | Cause::RunFailed | Cause::Hint => "the run was stopped",
                Cause::NotAfter => "the download took longer than the run",
                Cause::Shutdown => "the worker is shutting down",
            }.into()),
        }
    }

    /// Each step can be repeated, so a resumed upgrade need not know where it was cut off. It does not stop when asked,
    /// because half an upgrade is worse than a late one.
    async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
        if context.is_resumed() {
            tracing::info!(rebooted = context.has_rebooted(), "resuming an upgrade that was cut off");
        }
        for (done, package) in PACKAGES.iter().enumerate() {
            context.progress(percent(done), &format!("installing {package}"));
            tokio::time::sleep(Duration::from_millis(50)).await;
            if self.downloaded(package).exists() {
                tokio::fs::rename(self.downloaded(package), self.installed(package)).await?;
            } else if self.version(package)? != WANTED {
                return Err(format!("{package} is neither downloaded nor installed").into());
            }
        }
        Ok(Upgraded::RebootRequired)
    }

    fn can_reboot(&self) -> bool {
        true
    }

    /// Returns once the reboot is under way; the library detects it by the boot id.
    async fn reboot(&self, _context: &Context) -> HandlerResult {
        if self.is_trial {
            return Ok(());
        }
        let status = tokio::process::Command::new("systemctl").arg("reboot").status().await?;
        if status.success() { Ok(()) } else { Err(format!("systemctl reboot: {status}").into()) }
    }

    async fn health(&self, _context: &Context) -> HandlerResult {
        for package in PACKAGES {
            // Accept any version: a reboot command may arrive before anything was upgraded.
            let version = self.version(package)?;
            if version.is_empty() {
                return Err(format!("{package} is broken").into());
            }
        }
        Ok(())
    }

    async fn versions(&self, _context: &Context) -> HandlerResult<Versions> {
        let version = |package: &str| Ok((package.to_owned(), self.version(package)?));
        Ok(Versions(PACKAGES.into_iter().map(version).collect::<io::Result<_>>()?))
    }
}

/// Ctrl-C ends the worker gracefully: a handler has ten seconds to finish, and is resumed at the next start.
fn shutdown_on_ctrl_c() -> CancellationToken {
    let shutdown = CancellationToken::new();
    let token = shutdown.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            token.cancel();
        }
    });
    shutdown
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, directory] = &args[..] else { return Err("usage: full HOST DIRECTORY".into()) };
    // The URL may contain a password, and other users can read arguments.
    let url = std::env::var("OS_UPGRADE_NATS_URL")
        .map_err(|_| "set OS_UPGRADE_NATS_URL to the URL of NATS, such as nats://127.0.0.1:4222")?;
    let directory = Path::new(directory);
    let boot_id = directory.join("boot-id");
    let is_trial = boot_id.exists();
    let mut builder = WorkerBuilder::new(host, "full-example")?
        .nats_url(&url)
        .state_dir(directory.join("state"))
        .label("made-of", "files")
        .shutdown(shutdown_on_ctrl_c());
    if is_trial {
        builder = builder.boot_id(BootIdSource::File(boot_id));
    }
    Ok(builder.run(Full { directory: directory.to_owned(), is_trial }).await?)
}
