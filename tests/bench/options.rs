//! The command line.

use std::path::{self, PathBuf};

use anyhow::Context as _;
use clap::Parser;

/// Measures the orchestrator against a bare loop on the same nats-server.
///
/// The exit code is 0 when all targets are met, and 3 when a target was missed.
#[derive(Debug, Clone, Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// Rows to measure, separated by commas; all but `growth`, which takes long, unless given.
    #[arg(long, value_delimiter = ',', value_enum)]
    rows: Vec<RowKind>,
    /// Number of hosts of the small site, and of units with a machine each.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(4..=10_000))]
    pub(crate) hosts: u32,
    /// Number of hosts of the large site.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(40..=50_000))]
    pub(crate) many_hosts: u32,
    /// How often the small site is prepared; the large one half as often.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Reads per second in the row for reads.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) reads_per_sec: u32,
    /// Number of one-second turns in which slots are taken and released, for each number of clients.
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) lock_turns: u32,
    /// Number of FleetLock clients that wait for one slot.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(4..=20_000))]
    pub(crate) waiters: u32,
    /// Number of clients that follow events.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) subscribers: u32,
    /// Number of nodes in the row for the reboot queue.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) nodes: u32,
    /// Number of these nodes that are under way at once, of the queue and of the floor.
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) nodes_at_once: u32,
    /// How often each host is polled in the row for unchanged polls.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) poll_rounds: u32,
    /// Number of runs in the row for growth, a multiple of 8.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(8..=1_000_000))]
    pub(crate) runs: u32,
    /// Number of runs that are in the journal when an instance loses its store, in the row for growth.
    #[arg(long, default_value_t = 800, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) kept_runs: u32,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// The orchestrator's program; by default the one beside this program.
    #[arg(long)]
    program: Option<PathBuf>,
    /// The worker's program; by default the one beside this program.
    #[arg(long)]
    worker_program: Option<PathBuf>,
    /// The SDK's example `smallest`; by default the one in `examples` beside this program.
    #[arg(long)]
    smallest_program: Option<PathBuf>,
    /// Directory for all data; by default a temporary one.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}

/// A kind of row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RowKind {
    /// Hosts upgraded one by one.
    OneByOne,
    /// `prepare` to every host.
    Prepare,
    /// The orchestrator's memory.
    Memory,
    /// Reads of the state over HTTP during a run.
    Reads,
    /// Clients that follow the events of a run.
    Subscribers,
    /// A restart during a run.
    Restart,
    /// Slots taken and released by FleetLock clients.
    Locks,
    /// FleetLock clients that wait for one slot.
    Waiters,
    /// The next occurrence of maintenance windows.
    Windows,
    /// The cost of a worker for its host.
    Worker,
    /// A reboot queue of Kubernetes nodes.
    RebootQueue,
    /// Configuration by a provider for as many hosts as the large site has, and unchanged polls.
    Providers,
    /// Units on as many machines as the small site has hosts.
    Units,
    /// What is stored after many runs, and how long starts and takeovers take then. Only measured if it is named.
    Growth,
}

impl RowKind {
    /// What is measured on test beds of a site and a floor.
    pub(crate) const ON_TESTBEDS: [Self; 9] = [
        Self::OneByOne,
        Self::Prepare,
        Self::Memory,
        Self::Reads,
        Self::Subscribers,
        Self::Restart,
        Self::Locks,
        Self::Waiters,
        Self::Worker,
    ];
}

impl Options {
    pub(crate) fn wants(&self, row: RowKind) -> bool {
        self.rows.contains(&row) || self.rows.is_empty() && row != RowKind::Growth
    }

    pub(crate) fn program(&self) -> anyhow::Result<PathBuf> {
        program(self.program.as_ref(), "os-upgrade")
    }

    pub(crate) fn worker_program(&self) -> anyhow::Result<PathBuf> {
        program(self.worker_program.as_ref(), "os-upgrade-worker")
    }

    pub(crate) fn smallest_program(&self) -> anyhow::Result<PathBuf> {
        program(self.smallest_program.as_ref(), "examples/smallest")
    }
}

/// The given program, or the one of this name beside this program.
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
