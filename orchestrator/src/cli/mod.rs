//! The command line: arguments, exit codes, logging, and what the commands need around the orchestrator itself.
//!
//! Exit codes: 0 done; 1 it could not run or go on, one line on standard error says why; 2 wrong usage, or a
//! configuration that stays unusable until somebody does something, every error of which is on standard error; 5 a change
//! was certainly not made, as nobody could be asked or the site could not take it; 6 it is not known whether it was made,
//! and it may still come to be. `lock run` ends as its command does.

mod bus;
mod cluster;
mod dev;
mod doctor;
mod facts;
mod hosts;
mod lock;
mod logging;
mod nats_config;
mod output;
mod recovery;
mod reload;
mod rest;
mod shutdown;
mod strongbox;
mod token;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use os_upgrade_credentials::without_empty_variables;
use os_upgrade_protocol::error::with_causes;
use os_upgrade_shell::fleetlock::one_line;
use os_upgrade_shell::not_done::NotDone;

use crate::config;
use crate::server::{Means, Unusable};
use output::{errln, outln};

/// Upgrades the operating systems of the hosts of a site.
///
/// Commands go to a worker on each host over NATS JetStream; hosts are upgraded one by one, each holding a FleetLock
/// slot, and what happened stays in the history.
#[derive(Debug, Parser)]
#[command(name = "os-upgrade", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the orchestrator of a site
    ///
    /// Every key of the configuration can be given as an environment variable too:
    /// `OS_UPGRADE_<SECTION>__<KEY>`. `RUST_LOG` sets what is logged, `info` by default. At SIGHUP the configuration is
    /// read again: slots, reclaiming, what becomes of slots and `auto-approve` change at once, everything else at the next start.
    Serve(Serve),
    /// Try everything on this machine: nats-server, orchestrator, and workers that upgrade demo hosts
    ///
    /// The hosts are directories below DIR; their workers are processes that really change what is in there.
    /// It needs os-upgrade-worker next to this program, and a nats-server (see `make tools`).
    Dev(dev::Options),
    /// Look at the instances of a site
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// The hosts of a site: list them, and say which take part in runs
    #[command(subcommand)]
    Hosts(hosts::Command),
    /// Secrets that the site keeps, and the key to them
    #[command(subcommand)]
    Strongbox(strongbox::Command),
    /// FleetLock slots: run a command under one, list, hold and release them, examine any server
    #[command(subcommand)]
    Lock(lock::Command),
    /// Say who may call the API: make tokens, list and revoke them
    #[command(subcommand)]
    Token(token::Command),
    /// NATS in which no host can speak for another: keys, accounts, certificates, credentials, configurations
    #[command(subcommand)]
    NatsConfig(nats_config::Command),
    /// Look at everything the site needs, and say what is wrong and what to do
    ///
    /// It changes nothing and needs nothing to run; streams are looked at where NATS answers. It ends with 0 when there
    /// is no problem, warnings or not.
    Doctor(doctor::Doctor),
    /// Write everything of a site to one file, while it runs
    ///
    /// History and state are of one moment: everything that had been answered when it began is in it.
    Backup(recovery::Backup),
    /// Go on from a backup, or from the store after NATS has lost data
    ///
    /// No orchestrator of the site may run. An active run ends as failed, and every host that may be at work keeps its
    /// slot. It can be run again when it was cut off.
    Restore(recovery::Restore),
    /// Print a configuration file with every key, its help and its default
    DefaultConfig,
    /// Print the description of the REST API, as it is served at /openapi.json
    Openapi,
}

#[derive(Debug, Args)]
struct Serve {
    /// The configuration, a TOML file; without it every key has its default
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  refused, or it could not run or go on
  2  wrong usage, or an unusable configuration
  5  a change was certainly not made, and asking again is safe
  6  it is not known whether a change was made, and it may still come to be: look at the state";

/// The exit code of a command whose change was certainly not made.
const UNCHANGED: u8 = 5;
/// The exit code of a command of which it is not known whether its change was made.
const UNKNOWN: u8 = 6;

/// Why a command did not do what it should.
#[derive(Debug)]
enum Failure {
    /// Its configuration cannot be used.
    Config(config::Error),
    /// What its configuration names cannot be.
    Unusable(Unusable),
    /// What was asked for makes no sense.
    Usage(String),
    /// It could not run or go on.
    Runtime(anyhow::Error),
    /// It has said why, and ends with this status.
    Status(u8),
}

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Self {
        Self::Config(error)
    }
}

impl From<Unusable> for Failure {
    fn from(unusable: Unusable) -> Self {
        Self::Unusable(unusable)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Runtime(error)
    }
}

/// Runs the program.
pub fn main() -> ExitCode {
    // Ends the process itself for `--help`, `--version` and wrong usage.
    let arguments = without_empty_variables(Cli::command()).get_matches();
    let cli = Cli::from_arg_matches(&arguments).unwrap_or_else(|error| error.exit());
    match run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Config(error)) => {
            for line in error.to_string().lines() {
                errln!("error: {line}");
            }
            ExitCode::from(2)
        }
        Err(Failure::Unusable(unusable)) => {
            errln!("error: {}", one_line(&with_causes(&unusable), usize::MAX));
            ExitCode::from(if unusable.may_pass() { 1 } else { 2 })
        }
        Err(Failure::Usage(wrong)) => {
            errln!("error: {wrong}");
            ExitCode::from(2)
        }
        Err(Failure::Runtime(error)) => {
            errln!("error: {}", one_line(&format!("{error:#}"), usize::MAX));
            match error.downcast_ref() {
                Some(NotDone::Unchanged { .. }) => ExitCode::from(UNCHANGED),
                Some(NotDone::Unknown { .. }) => ExitCode::from(UNKNOWN),
                None => ExitCode::FAILURE,
            }
        }
        Err(Failure::Status(status)) => ExitCode::from(status),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(serve) => {
            // The client library says each failed attempt to connect; this program says what is new.
            logging::start("info,async_nats=off");
            let settings = config::load(serve.config.as_deref(), std::env::vars_os())?;
            block_on(async {
                let means = Means::of_settings(&settings).await?;
                let changes = reload::on_hangup(serve.config, settings.clone())?;
                Ok(bus::run(settings, means, changes, shutdown::within(shutdown::LIMIT)?).await?)
            })
        }
        Command::Dev(options) => {
            logging::start("warn");
            let settings = options.settings(config::load(None, std::env::vars_os())?);
            Ok(block_on(async { dev::run(settings, &options, shutdown::on_signal()?).await })?)
        }
        Command::Cluster(command) => Ok(block_on(cluster::run(command))?),
        Command::Hosts(command) => Ok(block_on(hosts::run(command))?),
        Command::Strongbox(command) => Ok(block_on(strongbox::run(command))?),
        Command::Lock(command) => {
            logging::start("warn");
            block_on(lock::run(command))
        }
        Command::Token(command) => {
            logging::start("warn");
            token::run(command)
        }
        Command::NatsConfig(command) => {
            logging::start("off");
            block_on(nats_config::run(command))
        }
        Command::Doctor(options) => {
            logging::start("off");
            let settings = config::load(options.config.as_deref(), std::env::vars_os());
            Ok(block_on(doctor::run(settings, options))?)
        }
        Command::Backup(options) => {
            logging::start("warn");
            let settings = config::load(options.config.as_deref(), std::env::vars_os())?;
            Ok(block_on(recovery::back_up(settings, options))?)
        }
        Command::Restore(options) => {
            logging::start("warn");
            let settings = config::load(options.config.as_deref(), std::env::vars_os())?;
            Ok(block_on(recovery::restore(settings, options))?)
        }
        Command::Openapi => {
            outln!("{}", crate::api::description());
            Ok(())
        }
        Command::DefaultConfig => {
            outln!("{}", config::default_file().trim_end());
            Ok(())
        }
    }
}

/// One worker thread: a step of a run is a chain of short tasks that wait for the bus, and every hand-over to another
/// thread would cost more than its work. Large answers are written out, and SQLite works, on threads of their own.
fn block_on<E: From<anyhow::Error>>(future: impl Future<Output = Result<(), E>>) -> Result<(), E> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = built.context("cannot start the runtime")?;
    let result = runtime.block_on(future);
    // A thread that hangs, in a system call say, must not keep the process.
    runtime.shutdown_timeout(shutdown::THREADS_WITHIN);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
