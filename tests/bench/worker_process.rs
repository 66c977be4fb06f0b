//! What a worker costs its host: the program that ships, started as on a host, with nothing to do.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use os_upgrade_platform::child::{self, Child};
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::{ApplicationName, HostName, subject};

use crate::report::{Quantity, Report, Row, Target};
use crate::rows::mebibytes;
use crate::site::resident_and_highest;

/// Until it has announced itself, in milliseconds.
const START_MAX: f64 = 100.0;
/// Its memory when it waits for commands, in MiB.
const MEMORY_MAX: f64 = 15.0;
/// The program without symbols, in MiB.
const DISK_MAX: f64 = 12.0;
/// How often it is started; the median counts.
const STARTS: usize = 9;
/// How long anything may take before the measurement is given up.
const PATIENCE: Duration = Duration::from_mins(2);

/// Measures `program`, which is started with its state in `directory` at the nats-server at `nats`, where the streams are.
pub(crate) async fn measure(
    program: &Path,
    directory: &Path,
    nats: &str,
    report: &mut Report,
) -> anyhow::Result<()> {
    let application = ApplicationName::new("bench-worker")?;
    let client = managed_nats::connect(nats).await?;
    let mut starts = Vec::new();
    for number in 0..STARTS {
        let host = HostName::new(&format!("worker-{number}"))?;
        let mut announced = client.subscribe(subject::worker(&application, &host)).await?;
        let mut heartbeats = client.subscribe(subject::presence(&host)).await?;
        client.flush().await?;
        let started = Instant::now();
        let worker = launch(program, directory, nats, &application, &host)?;
        within(announced.next()).await?.context("no announcement")?;
        starts.push(started.elapsed());
        if number + 1 == STARTS {
            // Two of them lie ten seconds apart: by then it does nothing but wait.
            for _ in 0..2 {
                within(heartbeats.next()).await?.context("no heartbeat")?;
            }
            let (now, _) = resident_and_highest(worker.pid())?;
            let now = Quantity::Mebibytes(mebibytes(now));
            report.push(row("a worker's memory while it waits", now, MEMORY_MAX));
        }
        worker.kill().await;
    }
    starts.sort();
    let start = Quantity::of(starts[STARTS / 2]);
    report.push(row("start of a worker until it has announced itself", start, START_MAX));
    report.push(row("a worker's program without symbols", stripped(program, directory)?, DISK_MAX));
    Ok(())
}

fn row(what: &str, ours: Quantity, most: f64) -> Row {
    let most = match ours {
        Quantity::Millis(_) => Quantity::Millis(most),
        Quantity::Mebibytes(_) => Quantity::Mebibytes(most),
        Quantity::PerSecond(_) => Quantity::PerSecond(most),
    };
    Row { what: what.to_owned(), floor: None, ours, target: Target::AtMost(most) }
}

fn launch(
    program: &Path,
    directory: &Path,
    nats: &str,
    application: &ApplicationName,
    host: &HostName,
) -> anyhow::Result<Child> {
    let mut command = child::command(program);
    command.args(["exec", "--host", host.as_str(), "--application", application.as_str()]);
    // There is a password in it, and a command line can be read by everybody on the machine.
    command.env("OS_UPGRADE_NATS_URL", nats);
    command.arg("--dir").arg(directory).arg("--state-dir").arg(directory.join(host.as_str()));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Child::start(command)?)
}

async fn within<T>(future: impl Future<Output = T>) -> anyhow::Result<T> {
    tokio::time::timeout(PATIENCE, future).await.context("the worker does not do what it should")
}

/// The size of the program as it is shipped.
fn stripped(program: &Path, directory: &Path) -> anyhow::Result<Quantity> {
    let stripped = directory.join("stripped");
    let mut strip = std::process::Command::new("strip");
    let status =
        strip.arg("-o").arg(&stripped).arg(program).status().context("cannot run strip, of binutils")?;
    ensure!(status.success(), "strip ended with {status}");
    Ok(Quantity::Mebibytes(mebibytes(std::fs::metadata(&stripped)?.len())))
}
