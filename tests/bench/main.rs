//! `make bench`: how fast the orchestrator is, as ratios against a floor.
//!
//! The floor is a bare loop that publishes, consumes, replies and acknowledges by hand, on the same nats-server with
//! the same durability, in the same minute: times alone say more about the machine than about the program. The
//! orchestrator is the real program, a process of its own with its own data directory.
//!
//! - [`workers`]: the hosts, all in this process, over the raw NATS client; the floor uses the same ones;
//! - [`floor`]: the bare loop;
//! - [`site`]: the nats-server, the orchestrator and what is asked of it over HTTP;
//! - [`rows`]: what is measured, and how;
//! - [`locks`]: FleetLock clients, and their floor;
//! - [`worker_process`]: what a worker costs its host;
//! - [`windows`]: when maintenance windows open next, without any of the others;
//! - [`report`]: the table.
//!
//! The workers answer at once and keep no state file, so this measures the orchestrator and not the worker SDK.

mod floor;
mod locks;
mod report;
mod rows;
mod site;
mod windows;
mod worker_process;
mod workers;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;

use self::report::Report;
use self::rows::Rows;

/// Measures the orchestrator against a bare loop on the same nats-server.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// Rows to measure; all unless given.
    #[arg(long, value_delimiter = ',', value_enum)]
    rows: Vec<RowKind>,
    /// Hosts of the small site.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(4..=10_000))]
    hosts: u32,
    /// Hosts of the large site.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(4..=50_000))]
    many_hosts: u32,
    /// How often the small site is prepared; the large one half as often.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Requests per second while reading is measured.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    reads_per_sec: u32,
    /// Seconds for which slots are taken and given back, with each number of clients.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=60))]
    lock_secs: u64,
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
        self.program.clone().map_or_else(|| Self::beside("os-upgrade"), Ok)
    }

    fn worker_program(&self) -> anyhow::Result<PathBuf> {
        self.worker_program.clone().map_or_else(|| Self::beside("os-upgrade-worker"), Ok)
    }

    fn beside(name: &str) -> anyhow::Result<PathBuf> {
        let own = std::env::current_exe().context("cannot find this program")?;
        let beside = own.with_file_name(name);
        anyhow::ensure!(
            beside.is_file(),
            "{} is missing: build it, or name one (--program, --worker-program)",
            beside.display()
        );
        Ok(beside)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let program = options.program()?;
    let temporary = tempfile::tempdir().context("cannot make a temporary directory")?;
    let directory = options.dir.clone().unwrap_or_else(|| temporary.path().to_owned());
    let mut report = Report::default();
    let measured = Rows::new(options.clone(), program, &directory).await?.measure(&mut report).await;
    // What was measured before something went wrong is worth seeing.
    let text = if options.json { report.json() } else { report.markdown() };
    writeln!(std::io::stdout(), "{text}")?;
    measured
}

/// Says on standard error what is being done.
pub(crate) fn progress(text: impl std::fmt::Display) {
    // Nobody looks if it cannot be written.
    let _ = writeln!(std::io::stderr(), "bench: {text}");
}
