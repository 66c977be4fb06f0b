//! `make bench`: how fast the orchestrator is, as ratios against a floor.
//!
//! The floor is a bare loop that publishes, consumes, replies and acknowledges by hand, on the same nats-server with
//! the same durability, in the same minute: times alone say more about the machine than about the program. The
//! orchestrator is the real program, a process of its own with its own data directory. Every row is judged by its ratio
//! alone, the median of pairs measured in turns; what both needed is printed beside it.
//!
//! - [`workers`]: the hosts, all in this process, over the raw NATS client; the floor uses the same ones;
//! - [`floor`]: the bare loop;
//! - [`site`]: the orchestrator and what is asked of it over HTTP;
//! - [`testbed`]: a nats-server with a site and a floor;
//! - [`rows`]: what is measured, and how;
//! - [`locks`]: FleetLock clients, and their floor;
//! - [`reads`]: reads of the state, and their floor;
//! - [`worker_process`]: what a worker costs its host;
//! - [`windows`]: when maintenance windows open next, without any of the others;
//! - [`report`]: pairs of measurements, and the table of them.
//!
//! The workers answer at once and keep no state file, so this measures the orchestrator and not the worker SDK.

mod floor;
mod locks;
mod reads;
mod report;
mod rows;
mod site;
mod testbed;
mod windows;
mod worker_process;
mod workers;

use std::io::Write as _;
use std::path::{self, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;

use self::report::Report;
use self::rows::Rows;

/// The exit code when everything was measured and a target was missed.
const TARGET_MISSED: u8 = 3;

/// Measures the orchestrator against a bare loop on the same nats-server.
///
/// Ends with 0 when all targets are met, and with 3 when everything was measured and a target was missed.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// Rows to measure, separated by commas; all unless given.
    #[arg(long, value_delimiter = ',', value_enum)]
    rows: Vec<RowKind>,
    /// Hosts of the small site.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(4..=10_000))]
    hosts: u32,
    /// Hosts of the large site.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(40..=50_000))]
    many_hosts: u32,
    /// How often the small site is prepared; the large one half as often.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Requests per second while reading is measured.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    reads_per_sec: u32,
    /// Turns, of a second, in which slots are taken and given back, with each number of clients.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=100))]
    lock_turns: u32,
    /// FleetLock clients that wait for one slot.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(4..=20_000))]
    waiters: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// The program; by default the one beside this one.
    #[arg(long)]
    program: Option<PathBuf>,
    /// The worker's; by default the one beside this one.
    #[arg(long)]
    worker_program: Option<PathBuf>,
    /// The SDK's example `smallest`; by default the one in `examples` beside this program.
    #[arg(long)]
    smallest_program: Option<PathBuf>,
    /// Where everything is stored meanwhile; by default a temporary directory.
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RowKind {
    /// Hosts upgraded one by one.
    OneByOne,
    /// `prepare` to every host.
    Prepare,
    /// The orchestrator's memory.
    Memory,
    /// The state read over HTTP while a run goes on.
    Reads,
    /// A restart in the middle of a run.
    Restart,
    /// Slots taken and given back by FleetLock clients.
    Locks,
    /// FleetLock clients that wait for one slot.
    Waiters,
    /// When maintenance windows open next.
    Windows,
    /// What a worker costs its host.
    Worker,
}

impl Options {
    pub(crate) fn wants(&self, row: RowKind) -> bool {
        self.rows.is_empty() || self.rows.contains(&row)
    }

    fn program(&self) -> anyhow::Result<PathBuf> {
        program(self.program.as_ref(), "os-upgrade")
    }

    fn worker_program(&self) -> anyhow::Result<PathBuf> {
        program(self.worker_program.as_ref(), "os-upgrade-worker")
    }

    fn smallest_program(&self) -> anyhow::Result<PathBuf> {
        program(self.smallest_program.as_ref(), "examples/smallest")
    }
}

/// The program that was given, or the one of this name beside this program.
fn program(given: Option<&PathBuf>, name: &str) -> anyhow::Result<PathBuf> {
    if let Some(given) = given {
        return Ok(path::absolute(given)?);
    }
    let own = std::env::current_exe().context("cannot find this program")?;
    let beside = own.with_file_name(name);
    anyhow::ensure!(
        beside.is_file(),
        "{} is missing: build it, or name one (--program, --worker-program, --smallest-program)",
        beside.display()
    );
    Ok(beside)
}

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let program = options.program()?;
    let temporary = tempfile::tempdir().context("cannot make a temporary directory")?;
    let directory = options.dir.as_deref().map_or_else(|| Ok(temporary.path().to_owned()), path::absolute)?;
    let json = options.json;
    let mut report = Report::default();
    let measured = Rows { options, program, directory }.measure(&mut report).await;
    // What was measured before something went wrong is worth seeing.
    let text = if json { report.json() } else { report.markdown() };
    writeln!(std::io::stdout(), "{text}")?;
    measured?;
    Ok(if report.met() { ExitCode::SUCCESS } else { ExitCode::from(TARGET_MISSED) })
}

/// Says on standard error what is being done.
pub(crate) fn progress(text: impl std::fmt::Display) {
    // Nobody looks if it cannot be written.
    let _ = writeln!(std::io::stderr(), "bench: {text}");
}
