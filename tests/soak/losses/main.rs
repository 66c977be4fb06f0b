//! What a lost part costs, in 50 runs: `make losses`.

use std::process::ExitCode;

use clap::{Parser, ValueEnum as _};
use harness::losses::{self, Loss, LossySite};
use harness::random::Random;
use harness::rounds::Rounds;

/// Kills or restarts one part in each run of a site, and prints what that costs.
///
/// A cost beyond its bound makes the exit code 1. `OS_UPGRADE_TEST_SEED` repeats the moments as far as the machine's timing
/// allows.
#[derive(Debug, Parser)]
struct Arguments {
    /// What to lose; everything by default
    #[arg(long, value_enum, value_delimiter = ',')]
    losses: Vec<Loss>,
    /// Runs, divided among the losses
    #[arg(long, default_value_t = 50)]
    runs: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { losses, runs } = Arguments::parse();
    let losses = if losses.is_empty() { Loss::value_variants() } else { &losses };
    let mut rounds = Rounds::default();
    let mut site = LossySite::start(Random::from_environment()).await;
    print(&format!("an undisturbed run takes {:.1} s\n{}", site.undisturbed().as_secs_f64(), losses::HEAD));
    for loss in losses {
        let costs = site.measure(*loss, runs.div_ceil(losses.len())).await;
        print(&costs.to_string());
        for excess in costs.excesses() {
            rounds.record(excess.as_slice());
        }
    }
    rounds.exit_code()
}

#[expect(clippy::print_stdout, reason = "the output of this program")]
fn print(line: &str) {
    println!("{line}");
}
