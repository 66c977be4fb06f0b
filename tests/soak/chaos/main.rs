//! The chaos test with real processes, for as many runs as wanted: `make chaos ROUNDS=50`.

use std::process::ExitCode;

use clap::Parser;
use futures::future::join_all;
use harness::chaos::faults::Fault;
use harness::chaos::report::Report;
use harness::chaos::{self, Options};
use harness::random::Random;

/// Kills, pauses and cuts off parts of a site during its runs, and checks the invariants.
///
/// Three nats-servers, orchestrators and workers are started, each with its own ports and directories. Every
/// violation is printed; any makes the exit code 1. `OS_UPGRADE_TEST_SEED` repeats a run as far as the machine's timing
/// allows.
#[derive(Debug, Parser)]
struct Arguments {
    /// Total number of runs
    #[arg(long, default_value_t = 50)]
    runs: usize,
    /// Hosts of each run
    #[arg(long, default_value_t = 20)]
    hosts: usize,
    /// Hosts with a worker process; the workers of the others run in this process
    #[arg(long, default_value_t = 6)]
    processes: usize,
    /// Orchestrators of each site
    #[arg(long, default_value_t = 3)]
    orchestrators: usize,
    /// Faults in each run
    #[arg(long, default_value_t = 8)]
    faults: usize,
    /// Sites tested at the same time, which share the runs
    #[arg(long, default_value_t = 3)]
    sites: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut random = Random::from_environment();
    let sites = (0..arguments.sites).map(|site| {
        let share = arguments.runs / arguments.sites + usize::from(site < arguments.runs % arguments.sites);
        let options = Options {
            runs: share,
            hosts: arguments.hosts,
            processes: arguments.processes.clamp(1, arguments.hosts),
            orchestrators: arguments.orchestrators,
            faults: arguments.faults,
            kinds: Fault::ALL.to_vec(),
            progress_prefix: Some(format!("site {}: ", site + 1)),
        };
        let random = Random::new(random.below(u64::MAX));
        chaos::run(options, random)
    });
    let reports = join_all(sites).await;
    let report = reports.into_iter().fold(Report::default(), Report::merge);
    #[expect(clippy::print_stdout, reason = "the output of this program")]
    {
        println!("\n{report}");
    }
    if report.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
