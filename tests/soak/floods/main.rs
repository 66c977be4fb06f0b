//! Floods of one host, each of 60 s, while 20 other hosts are upgraded: `make floods`.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum as _};
use harness::floods::{self, Flood, Kind};
use harness::rounds::Rounds;

/// Lets one host send as many messages as it can, one kind after the other, and prints what that costs.
///
/// Each kind has its own nats-server, orchestrator and workers. A cost beyond its bound makes the exit code 1.
#[derive(Debug, Parser)]
struct Arguments {
    /// The kinds of messages; all by default
    #[arg(long, value_enum, value_delimiter = ',')]
    kinds: Vec<Kind>,
    /// Seconds of each flood
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Messages a second, instead of the usual number of each kind
    #[arg(long)]
    per_second: Option<u32>,
    /// Hosts that are upgraded meanwhile
    #[arg(long, default_value_t = 20)]
    hosts: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { kinds, seconds, per_second, hosts } = Arguments::parse();
    let kinds = if kinds.is_empty() { Kind::value_variants() } else { &kinds };
    let mut rounds = Rounds::default();
    print(floods::HEAD);
    for kind in kinds {
        let per_second = per_second.unwrap_or_else(|| kind.per_second());
        let flood = Flood { kind: *kind, lasts: Duration::from_secs(seconds), per_second, hosts };
        let cost = floods::run(flood).await;
        print(&cost.to_string());
        rounds.record(&cost.excesses());
    }
    rounds.exit_code()
}

#[expect(clippy::print_stdout, reason = "the output of this program")]
fn print(line: &str) {
    println!("{line}");
}
