//! A host whose worker runs in this process with the SDK: cheap, but it cannot be killed.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use os_upgrade_worker_sdk::{
    BootIdSource, CancellationToken, Context, HandlerResult, Upgraded, Worker, WorkerBuilder,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::host::{APPLICATION, runs_log};

/// The host. Its worker stops when it is dropped.
#[derive(Debug)]
pub struct LibraryHost {
    shutdown: CancellationToken,
    task: Option<JoinHandle<()>>,
    _directory: TempDir,
}

struct Quick {
    log: PathBuf,
}

impl Quick {
    fn log_action(&self, context: &Context, what: &str) -> std::io::Result<()> {
        let run = context.run().map(ToString::to_string).unwrap_or_default();
        // One write, so that lines of concurrent writers do not mix.
        let line = format!("{run} {} {what}\n", context.host());
        File::options().create(true).append(true).open(&self.log)?.write_all(line.as_bytes())
    }
}

impl Worker for Quick {
    async fn prepare(&self, context: &Context) -> HandlerResult {
        Ok(self.log_action(context, "prepare")?)
    }

    async fn upgrade(&self, context: &Context) -> HandlerResult<Upgraded> {
        self.log_action(context, if context.is_resumed() { "upgrade-resumed" } else { "upgrade-begins" })?;
        tokio::task::yield_now().await;
        self.log_action(context, "upgrade-ends")?;
        Ok(Upgraded::Done)
    }
}

impl LibraryHost {
    /// Starts a host whose worker logs its actions with the run's id to [`runs_log`] of `log`.
    pub fn start(nats: &str, log: &Path, name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let boot_id = directory.path().join("boot-id");
        std::fs::write(&boot_id, "boot-1\n").unwrap();
        let shutdown = CancellationToken::new();
        let builder = WorkerBuilder::new(name, APPLICATION)
            .unwrap()
            .nats_url(nats)
            .state_dir(directory.path().join("state"))
            .boot_id(BootIdSource::File(boot_id))
            .shutdown(shutdown.clone());
        let worker = Quick { log: runs_log(log) };
        let task = tokio::spawn(async move { builder.run(worker).await.unwrap() });
        Self { shutdown, task: Some(task), _directory: directory }
    }

    /// Stops the worker gracefully.
    pub async fn stop(&mut self) {
        self.shutdown.cancel();
        if let Some(task) = self.task.take() {
            task.await.unwrap();
        }
    }
}

impl Drop for LibraryHost {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}
