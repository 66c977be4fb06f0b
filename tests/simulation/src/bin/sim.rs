//! Runs seeds of the simulator and prints a summary, or the trace of one of them.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::io::{IsTerminal, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use os_upgrade_simulation::{Bug, Digest, Finding, Recording, SEEDS_MAX, Tally, replay, simulate};

/// Simulate sites of every kind under every kind of fault, and check the rules that must always hold
#[derive(Debug, Parser)]
#[command(name = "sim", version)]
struct Options {
    /// How many seeds to run
    #[arg(long, default_value_t = 2_000, conflicts_with = "seed")]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0, conflicts_with = "seed")]
    from: u64,
    /// Print the trace of this one seed
    #[arg(long)]
    seed: Option<u64>,
    /// Print what an outsider sees: of one seed each line, of many a digest of each, and how often each check was made. Two versions of
    /// the code that print the same behave alike
    #[arg(long, conflicts_with = "find_bugs")]
    outside: bool,
    /// Plant a bug: the checker should find it
    #[arg(long, value_name = "NAME", value_parser = bug)]
    bug: Option<Bug>,
    /// Print for each bug the seed that finds it in the fewest steps, as `bug.rs` has it
    #[arg(long, conflicts_with_all = ["seed", "seeds", "from", "bug"])]
    find_bugs: bool,
    /// How many threads to use [default: one for each core]
    #[arg(long)]
    jobs: Option<usize>,
}

impl Options {
    fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.unwrap_or_else(cores)
    }
}

fn bug(name: &str) -> Result<Bug, String> {
    let names = || Bug::ALL.map(Bug::as_str).join(", ");
    Bug::named(name).ok_or_else(|| format!("no such bug; there are {}", names()))
}

fn main() -> ExitCode {
    let options = Options::parse();
    match options.seed {
        Some(seed) => show(seed, options.bug, options.outside),
        None if options.find_bugs => find_bugs(options.jobs()),
        None => run(&options),
    }
}

fn find_bugs(jobs: usize) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for (bug, finding) in Bug::search_all(jobs, Bug::find) {
        match finding {
            Some(Finding { seed, steps }) if seed == bug.seed() => {
                println!("{bug:<40} seed {seed:>4}, {steps:>7} steps");
            }
            Some(Finding { seed, steps }) => {
                println!("{bug:<40} seed {seed:>4}, {steps:>7} steps; bug.rs has seed {}", bug.seed());
            }
            None => {
                println!("{bug:<40} not found within {SEEDS_MAX} seeds");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

fn show(seed: u64, bug: Option<Bug>, outside: bool) -> ExitCode {
    let recording = if outside { Recording::Outside } else { Recording::Trace };
    let outcome = simulate(seed, bug, recording);
    let mut stdout = std::io::stdout().lock();
    // Thousands of lines: a reader in a pipe may stop early.
    if outcome.lines.iter().any(|line| writeln!(stdout, "{line}").is_err()) {
        return ExitCode::FAILURE;
    }
    drop(stdout);
    if let Some(violation) = outcome.violation {
        println!("\nseed {seed}: {violation}");
        return ExitCode::FAILURE;
    }
    println!("\nseed {seed}: no violation in {} steps", outcome.steps);
    ExitCode::SUCCESS
}

fn print_summary(tally: &Tally, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    println!("{tally}");
    #[expect(clippy::cast_precision_loss, reason = "it is only shown")]
    let per_second = tally.steps as f64 / seconds;
    println!("{seconds:.1} s, {per_second:.0} steps a second");
}

fn run(options: &Options) -> ExitCode {
    let show_progress = std::io::stderr().is_terminal();
    let begun = Instant::now();
    let seeds = options.from..options.from.saturating_add(options.seeds);
    let recording = if options.outside { Recording::Outside } else { Recording::Nothing };
    let tally = Tally::of_recorded(seeds, options.bug, recording, options.jobs(), |done| {
        if show_progress && done.is_multiple_of(100) {
            eprint!("\r{done} of {} seeds", options.seeds);
        }
    });
    if show_progress {
        eprintln!();
    }
    for (seed, Digest { lines, hash }) in &tally.outside {
        println!("{seed} {lines} {hash:016x}");
    }
    if options.outside {
        tally.asked.iter().for_each(|(check, times)| println!("{check} {times}"));
    } else {
        print_summary(&tally, begun.elapsed());
    }
    for (seed, violation) in &tally.violations {
        println!("\nseed {seed}: {violation}\n  {}", replay(*seed, options.bug));
    }
    if tally.violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
