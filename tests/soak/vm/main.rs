//! Virtual machines that are upgraded and rebooted, with power losses in between: `make test-vm`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed unwrap is a failed test, and this is its output"
)]

mod cut;
mod outcome;
mod scenario;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use harness::random::Random;
use harness::rounds::Rounds;
use harness::vm;
use harness::vm::accelerator::Accelerator;

use cut::Cut;
use scenario::Scenario;

/// Upgrades two virtual machines with Debian and the worker's package, one by one with a real reboot each, while one of them
/// loses power or the bus. Problems are printed, and make the exit code 1.
///
/// `make test-vm` makes the package and the disk that it needs. `OS_UPGRADE_TEST_SEED` repeats the moments.
#[derive(Debug, Parser)]
struct Arguments {
    /// The worker's package
    #[arg(long, value_name = "FILE")]
    package: PathBuf,
    /// Repetitions of all scenarios
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// The faults of each run, for the guest that is upgraded first and for the other
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Cut::USUAL)]
    faults: Vec<Cut>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let package = std::fs::read(&arguments.package).unwrap();
    let accelerator = Accelerator::best(&vm::image()).await;
    println!("guests run under {accelerator}");
    let mut random = Random::from_environment();
    let mut rounds = Rounds::default();
    let mut reference = None;
    for round in 1..=arguments.rounds {
        for faults in arguments.faults.chunks(2) {
            let shown: Vec<_> = faults.iter().map(ToString::to_string).collect();
            println!("round {round}: {}", shown.join("; then, for the other guest, "));
            let faults: Vec<_> = faults.iter().map(|cut| (*cut, cut.moment(&mut random))).collect();
            let mut scenario = Scenario::begin(accelerator, &package).await;
            rounds.record(&scenario.run(&faults, &mut reference).await);
        }
    }
    rounds.exit_code()
}
