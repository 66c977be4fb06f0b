//! The workers of the demo hosts: a process each, started again when it ends, as a machine boots again.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::future::join_all;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::APPLICATION;
use super::host::DemoHost;
use crate::child::{self, Child};

const PROGRAM: &str = "os-upgrade-worker";
/// How long a worker may take to end after SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// The pause before a worker that has failed is started again. One that was killed, by a reboot, waits for nothing.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// The worker program, which is built next to this one.
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

/// All workers, until [`Workers::stop`].
pub(super) struct Workers {
    end: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts a worker for each host.
    pub(super) fn start(program: &Path, nats: &str, hosts: &[DemoHost]) -> Self {
        let end = CancellationToken::new();
        let supervise = |host: &DemoHost| {
            tokio::spawn(supervise(
                program.to_owned(),
                nats.to_owned(),
                host.clone(),
                end.clone(),
            ))
        };
        Self {
            tasks: hosts.iter().map(supervise).collect(),
            end,
        }
    }

    /// Ends all workers and waits until they have.
    pub(super) async fn stop(self) {
        self.end.cancel();
        join_all(self.tasks).await;
    }
}

/// Keeps the worker of `host` running until `end`.
async fn supervise(program: PathBuf, nats: String, host: DemoHost, end: CancellationToken) {
    loop {
        let failed = match start(&program, &nats, &host) {
            Ok(worker) => tokio::select! {
                () = end.cancelled() => {
                    worker.stop(STOP_GRACE).await;
                    return;
                }
                status = worker.exited() => {
                    tracing::info!(host = host.name, %status, "a worker has ended, starting it again");
                    status.code().is_some()
                }
            },
            Err(error) => {
                tracing::error!(
                    host = host.name,
                    error = format!("{error:#}"),
                    "cannot start a worker"
                );
                true
            }
        };
        if failed {
            tracing::warn!(host = host.name, log = %host.dir.join("worker.log").display(), "a worker failed");
            tokio::select! {
                () = end.cancelled() => return,
                () = tokio::time::sleep(FAILURE_PAUSE) => {}
            }
        }
    }
}

fn start(program: &Path, nats: &str, host: &DemoHost) -> anyhow::Result<Child> {
    let file = |name: &str| host.dir.join(name);
    let log = File::options()
        .create(true)
        .append(true)
        .open(file("worker.log"))?;
    let mut command = child::command(program);
    command
        .args([
            "exec",
            "--nats",
            nats,
            "--host",
            &host.name,
            "--application",
            APPLICATION,
        ])
        .arg("--dir")
        .arg(file("scripts"))
        .arg("--state-dir")
        .arg(file("state"))
        .arg("--boot-id-file")
        .arg(file("boot-id"))
        .current_dir(&host.dir)
        .stdout(log.try_clone()?)
        .stderr(log);
    let worker = Child::start(command)?;
    // The reboot script ends the process that it finds here.
    fs::write(file("worker.pid"), worker.pid().to_string())?;
    Ok(worker)
}
