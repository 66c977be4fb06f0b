//! The cost of a worker for its host: the shipped program, started as on a host, idle. The floor is the smallest program
//! that links the SDK.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use async_nats::{Client, Subscriber};
use futures::StreamExt as _;
use harness::memory::Memory;
use os_upgrade_platform::child::{self, Child};
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::{ApplicationName, HostName, subject};

use crate::report::{Pairs, Report, Target, Unit, mebibytes};

/// Limits of the worker relative to the smallest program: its memory while it waits for commands, the time until it has
/// announced itself, and its size.
const MEMORY_MAX: f64 = 2.0;
const START_MAX: f64 = 1.5;
const SIZE_MAX: f64 = 2.5;
/// Number of starts of each.
const STARTS: usize = 9;
/// Timeout of every step of a measurement.
const PATIENCE: Duration = Duration::from_mins(2);

/// The programs, and their environment.
#[derive(Debug)]
pub(crate) struct Programs<'a> {
    /// The shipped worker.
    pub(crate) worker: PathBuf,
    /// The SDK's example `smallest`.
    pub(crate) smallest: PathBuf,
    /// The directory for their state.
    pub(crate) directory: &'a Path,
    /// The URL of a nats-server with the streams.
    pub(crate) nats: String,
}

/// A started program.
#[derive(Debug)]
struct Started {
    child: Child,
    heartbeats: Subscriber,
    /// Time until it had announced itself.
    took: Duration,
}

impl Programs<'_> {
    pub(crate) async fn measure(&self, report: &mut Report) -> anyhow::Result<()> {
        let client = managed_nats::connect(&self.nats).await?;
        let mut starts = Pairs::default();
        let mut started = Vec::new();
        for number in 0..STARTS {
            let floor = self.start_smallest(&client, &format!("smallest-{number}")).await?;
            let ours = self.start_worker(&client, &format!("worker-{number}")).await?;
            starts.push_times(floor.took, ours.took);
            started.push((floor, ours));
        }
        let mut memory = Pairs::default();
        for (floor, ours) in &mut started {
            memory.push(floor.memory().await?, ours.memory().await?);
        }
        let sizes = Pairs::once(self.stripped(&self.smallest)?, self.stripped(&self.worker)?);
        let start = "start of a worker until it has announced itself";
        report.push("a worker's memory while it waits", Unit::Mebibytes, memory, Target::AtMost(MEMORY_MAX));
        report.push(start, Unit::Millis, starts, Target::AtMost(START_MAX));
        report.push("a worker's program without symbols", Unit::Mebibytes, sizes, Target::AtMost(SIZE_MAX));
        Ok(())
    }

    async fn start_smallest(&self, client: &Client, host: &str) -> anyhow::Result<Started> {
        self.start(client, &self.smallest, "smallest", host, &[host]).await
    }

    async fn start_worker(&self, client: &Client, host: &str) -> anyhow::Result<Started> {
        const APPLICATION: &str = "bench-worker";
        let host_arguments = ["exec", "--host", host, "--application", APPLICATION];
        let arguments = [&host_arguments[..], &["--dir", ".", "--state-dir", "state"]].concat();
        self.start(client, &self.worker, APPLICATION, host, &arguments).await
    }

    async fn start(
        &self,
        client: &Client,
        program: &Path,
        application: &str,
        host: &str,
        arguments: &[&str],
    ) -> anyhow::Result<Started> {
        let home = self.directory.join(host);
        fs::create_dir_all(&home)?;
        let host = HostName::new(host)?;
        let mut announced =
            client.subscribe(subject::worker(&ApplicationName::new(application)?, &host)).await?;
        let heartbeats = client.subscribe(subject::presence(&host)).await?;
        client.flush().await?;
        let mut command = child::command(program);
        // The URL has a password, and everybody on the machine can read a command line.
        command.args(arguments).current_dir(home).env("OS_UPGRADE_NATS_URL", &self.nats);
        let asked = Instant::now();
        let child = Child::start(command)?;
        within(announced.next()).await?.context("no announcement")?;
        Ok(Started { child, heartbeats, took: asked.elapsed() })
    }

    /// The size of the program without symbols, in mebibytes.
    fn stripped(&self, program: &Path) -> anyhow::Result<f64> {
        let stripped = self.directory.join("stripped");
        let mut strip = std::process::Command::new("strip");
        strip.arg("-o").arg(&stripped).arg(program);
        let status = strip.status().context("cannot run strip, of binutils")?;
        ensure!(status.success(), "strip ended with {status}");
        Ok(mebibytes(fs::metadata(&stripped)?.len()))
    }
}

impl Started {
    /// Its memory once it is idle, in mebibytes.
    async fn memory(&mut self) -> anyhow::Result<f64> {
        // Two heartbeats are ten seconds apart: by then it is idle.
        for _ in 0..2 {
            within(self.heartbeats.next()).await?.context("no heartbeat")?;
        }
        Ok(mebibytes(Memory::of(self.child.pid())?.now))
    }
}

async fn within<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    tokio::time::timeout(PATIENCE, future).await.context("the worker did not respond in time")
}
