//! The workers of the demo hosts: one process each, restarted when it ends, as if the machine had booted.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::future::join_all;
use os_upgrade_credentials::Access;
use os_upgrade_platform::child::{self, Child};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::host::DemoHost;

/// The worker application that the demo hosts run.
pub(super) const APPLICATION: &str = "os-upgrade-demo";
const PROGRAM: &str = "os-upgrade-worker";
/// How long a worker may take to end after SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// The pause before a failed worker is restarted. It doubles with each failure in a row, up to [`FAILURE_PAUSE_MAX`].
/// There is no pause after a reboot, which kills the worker.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);
/// See [`FAILURE_PAUSE`].
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(30);

/// The path of the worker program, which is built next to this one.
pub(super) fn find_program() -> anyhow::Result<PathBuf> {
    let this = env::current_exe().context("cannot find out where this program is")?;
    let program = this.with_file_name(PROGRAM);
    if !program.is_file() {
        bail!(
            "{} is missing; build it with `make build` (cargo build --workspace --bins)",
            program.display()
        );
    }
    Ok(program)
}

/// All workers, which run until [`Workers::stop`].
pub(super) struct Workers {
    end: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts a worker for each host, with the entry of `access` at the same index for NATS.
    pub(super) fn start(program: &Path, nats: &str, hosts: &[DemoHost], access: &[Access]) -> Self {
        let end = CancellationToken::new();
        let supervise = |(host, access): (&DemoHost, &Access)| {
            let start = Start {
                program: program.to_owned(),
                nats: nats.to_owned(),
                host: host.clone(),
                access: access.clone(),
            };
            tokio::spawn(supervise(start, end.clone()))
        };
        Self { tasks: hosts.iter().zip(access).map(supervise).collect(), end }
    }

    /// Ends all workers and waits until they have.
    pub(super) async fn stop(self) {
        self.end.cancel();
        join_all(self.tasks).await;
    }
}

/// How a worker is started.
struct Start {
    program: PathBuf,
    nats: String,
    host: DemoHost,
    access: Access,
}

/// Keeps a worker running until `end`.
async fn supervise(start: Start, end: CancellationToken) {
    let mut pause = FAILURE_PAUSE;
    let host = &start.host;
    loop {
        match start.run_once(&end).await {
            Ended::Stopped => return,
            Ended::Rebooted => {
                tracing::info!(host = host.name, "the host reboots");
                pause = FAILURE_PAUSE;
            }
            Ended::Failed(failure) => {
                let log = host.dir.join("worker.log");
                tracing::warn!(host = host.name, log = %log.display(), "the worker has failed: {failure}");
                tokio::select! {
                    () = end.cancelled() => return,
                    () = tokio::time::sleep(pause) => pause = FAILURE_PAUSE_MAX.min(pause * 2),
                }
            }
        }
    }
}

/// Why a worker ended.
enum Ended {
    /// [`Workers::stop`] ended it.
    Stopped,
    /// A signal killed it: its host was rebooted.
    Rebooted,
    /// It could not start, or exited.
    Failed(String),
}

impl Start {
    async fn run_once(&self, end: &CancellationToken) -> Ended {
        let worker = match self.start() {
            Ok(worker) => worker,
            Err(error) => return Ended::Failed(format!("{error:#}")),
        };
        tokio::select! {
            () = end.cancelled() => {
                worker.stop(STOP_GRACE).await;
                Ended::Stopped
            }
            status = worker.exited() => match status.code() {
                Some(_) => Ended::Failed(status.to_string()),
                None => Ended::Rebooted,
            },
        }
    }

    fn start(&self) -> anyhow::Result<Child> {
        let Self { program, nats, host, access } = self;
        let file = |name: &str| host.dir.join(name);
        let log = File::options().create(true).append(true).open(file("worker.log"))?;
        let mut command = child::command(program);
        command
            .args(["exec", "--host", &host.name, "--application", APPLICATION])
            // It may contain a password, and everybody on the machine can read command lines.
            .env("OS_UPGRADE_NATS_URL", nats)
            .arg("--dir")
            .arg(file("scripts"))
            .arg("--state-dir")
            .arg(file("state"))
            .arg("--boot-id-file")
            .arg(file("boot-id"))
            .current_dir(&host.dir)
            .stdout(log.try_clone()?)
            .stderr(log);
        for (name, file) in [
            ("OS_UPGRADE_NATS_CREDENTIALS", &access.credentials),
            ("OS_UPGRADE_NATS_CA", &access.ca),
            ("OS_UPGRADE_NATS_CERTIFICATE", &access.certificate),
            ("OS_UPGRADE_NATS_KEY", &access.key),
        ] {
            match file {
                Some(file) => command.env(name, file),
                // The environment's value is meant for another worker of this machine.
                None => command.env_remove(name),
            };
        }
        let worker = Child::start(command)?;
        // The reboot script kills this process.
        fs::write(file("worker.pid"), worker.pid().to_string())?;
        Ok(worker)
    }
}
