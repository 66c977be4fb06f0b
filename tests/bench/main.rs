//! `make bench`: how fast the orchestrator is, as ratios against a floor.
//!
//! The floor is a bare loop that publishes, consumes, replies and acknowledges on the same nats-server with the same
//! durability, in the same minute, because absolute times depend more on the machine than on the program. The orchestrator
//! is the real program in its own process with its own data directory. Every row is judged by its ratio alone, the median
//! of pairs measured in turns; the absolute values are printed beside it.
//!
//! - [`workers`]: the hosts, all in this process, over the raw NATS client; the floor uses the same ones;
//! - [`floor`]: the bare loop;
//! - [`instance`]: the orchestrator and its HTTP client;
//! - [`site`]: the orchestrator with its hosts;
//! - [`testbed`]: a nats-server with a site and a floor;
//! - [`rows`]: the measurements;
//! - [`locks`]: FleetLock clients, and their floor;
//! - [`reads`]: reads of the state, and their floor;
//! - [`reboot_queue`]: Kubernetes nodes that are drained and rebooted, and their floor;
//! - [`providers`]: configuration of hosts by a provider; [`bare_provider`]: its floor;
//! - [`units`]: units on machines; [`unit_machines`]: the machines; [`unit_floor`]: the floor;
//! - [`extent`]: how much a stream has;
//! - [`cpu_time`]: the CPU time of a process and of a thread;
//! - [`worker_process`]: the cost of a worker for its host;
//! - [`growth`]: what is stored after many runs, and what that costs;
//! - [`windows`]: the next occurrence of maintenance windows, computed without a server;
//! - [`report`]: pairs of measurements, and the table of them;
//! - [`options`]: the command line.
//!
//! The workers answer at once and keep no state file, so that the orchestrator is measured and not the worker SDK.

mod bare_provider;
mod cpu_time;
mod extent;
mod floor;
mod growth;
mod instance;
mod locks;
mod options;
mod providers;
mod reads;
mod reboot_queue;
mod report;
mod rows;
mod site;
mod subscribers;
mod testbed;
mod unit_floor;
mod unit_machines;
mod units;
mod windows;
mod worker_process;
mod workers;

use std::io::Write as _;
use std::path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;

use self::options::Options;
use self::report::Report;
use self::rows::Rows;

/// The exit code when a target was missed.
const TARGET_MISSED: u8 = 3;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let program = options.program()?;
    let temporary = tempfile::tempdir().context("cannot make a temporary directory")?;
    let directory = options.dir.as_deref().map_or_else(|| Ok(temporary.path().to_owned()), path::absolute)?;
    let json = options.json;
    let mut report = Report::default();
    let measured = Rows { options, program, directory }.measure(&mut report).await;
    // After an error the rows measured so far are still printed.
    let text = if json { report.json() } else { report.markdown() };
    writeln!(std::io::stdout(), "{text}")?;
    measured?;
    Ok(if report.met() { ExitCode::SUCCESS } else { ExitCode::from(TARGET_MISSED) })
}
