//! The program `os-upgrade`: its command line, and the commands that run an orchestrator.
//!
//! Exit codes: 0 done; 1 failed, with the reason in one line on standard error; 2 wrong usage, or a configuration that
//! stays unusable until somebody corrects it, with every error on standard error; 3 and 4 a run that was watched timed out
//! or was cancelled; 5 a change was certainly not made, as no
//! instance could be reached or the site could not take it; 6 a change may have been made, or may still be made. `lock run`
//! exits with the status of its command.

mod dev;
mod driver;
mod logging;
mod serve;
mod shared;
mod shutdown;

use std::env::vars_os;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use os_upgrade_cli::arguments::with_globals_last;
use os_upgrade_cli::output::outln;
use os_upgrade_cli::{self as cli, Failure};
use os_upgrade_credentials::without_empty_variables;
use os_upgrade_platform::manual;
use os_upgrade_settings as settings;

use self::serve::{Setup, reload, with_nats};

/// Upgrades the operating systems of the hosts of a site.
///
/// Commands go to a worker on each host over NATS JetStream. Hosts are upgraded one at a time by default, each holding
/// a FleetLock slot. The history records what happened.
#[derive(Debug, Parser)]
#[command(name = "os-upgrade", version, max_term_width = 100, after_help = cli::HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the orchestrator of a site
    ///
    /// Every key of the configuration can also be given as an environment variable: `OS_UPGRADE_<SECTION>__<KEY>`.
    /// `RUST_LOG` sets what is logged, `info` by default. SIGHUP reloads the configuration: `auto-approve` and, of
    /// `[fleet-lock]`, `default-group`, `on-failure`, `reclaim`, `stuck-after` and `groups` change at once, everything else
    /// at the next start.
    #[command(after_help = "\
Examples:
  os-upgrade serve
  os-upgrade serve --config /etc/os-upgrade/os-upgrade.toml")]
    Serve(Serve),
    /// Try everything on this machine: nats-server, orchestrator, and workers that upgrade demo hosts
    ///
    /// The hosts are directories in `--data-dir`; their workers are real processes that change these directories. It needs
    /// os-upgrade-worker next to this program, and a nats-server on `PATH`, or the one that `OS_UPGRADE_NATS_SERVER` names.
    #[command(after_help = "\
Examples:
  os-upgrade dev
  os-upgrade dev --hosts 3 --once --data-dir target/demo")]
    Dev(dev::Options),
    #[command(flatten)]
    Other(Box<cli::Command>),
    /// Print the description of the REST API, which instances serve at /openapi.json
    #[command(after_help = "Examples:\n  os-upgrade openapi")]
    Openapi,
    /// Print what a shell needs to complete commands, with the names of hosts and runs
    ///
    /// Names come from the instance that the command would call; while none answers within 2 seconds there are none. A name that a shell
    /// would not take for a plain word, such as one with a $, is left out. Write the file anew with each new version.
    #[command(after_help = "\
Examples:
  os-upgrade completion bash > ~/.local/share/bash-completion/completions/os-upgrade
  os-upgrade completion zsh > ~/.zfunc/_os-upgrade
  os-upgrade completion fish > ~/.config/fish/completions/os-upgrade.fish")]
    Completion {
        /// The shell
        shell: manual::Shell,
    },
    /// Write a manual page for each command, and the completions of each shell, as packages ship them
    #[command(hide = true, after_help = "Examples:\n  os-upgrade manual target/manual")]
    Manual {
        /// The directory, which is created
        directory: PathBuf,
    },
}

#[derive(Debug, Args)]
struct Serve {
    /// The configuration, a TOML file; without it every key has its default
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

fn main() -> ExitCode {
    manual::complete(Cli::command);
    // Ends the process itself for `--help`, `--version` and wrong usage.
    let command = without_empty_variables(Cli::command());
    let arguments = with_globals_last(std::env::args_os(), &command);
    let arguments = command.get_matches_from(arguments);
    let cli = Cli::from_arg_matches(&arguments).unwrap_or_else(|error| error.exit());
    run(cli.command).map_or_else(Failure::report, |()| ExitCode::SUCCESS)
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(serve) => {
            let left_out = logging::start_paced(logging::SERVER);
            let settings = settings::load(serve.config.as_deref(), vars_os())?;
            block_on(async {
                let setup = Setup::from_settings(&settings).await?;
                let changes = reload::on_hangup(serve.config, settings.clone())?;
                let shutdown = shutdown::within(shutdown::LIMIT)?;
                tokio::spawn(left_out.report(shutdown.clone()));
                Ok(with_nats::run(settings, setup, changes, shutdown).await?)
            })
        }
        Command::Dev(options) => {
            let left_out = logging::start_paced("warn");
            let settings = options.settings(settings::load(None, vars_os())?);
            block_on(async {
                let shutdown = shutdown::on_signal()?;
                tokio::spawn(left_out.report(shutdown.clone()));
                dev::run(settings, &options, shutdown).await
            })
        }
        Command::Other(command) => {
            if let Some(level) = command.log_level() {
                logging::start(level);
            }
            block_on(cli::run(*command))
        }
        Command::Openapi => {
            outln!("{}", os_upgrade_api::description());
            Ok(())
        }
        Command::Completion { shell } => {
            manual::print_completions(shell, &Cli::command());
            Ok(())
        }
        Command::Manual { directory } => {
            let written = manual::write(&directory, &Cli::command());
            Ok(written.with_context(|| format!("cannot write {}", directory.display()))?)
        }
    }
}

/// Runs `future` on a runtime with one worker thread: a step of a run is a chain of short tasks that wait for the bus, and
/// passing one to another thread would cost more than its work. Large API responses and SQLite use threads of their own.
fn block_on<E: From<anyhow::Error>>(future: impl Future<Output = Result<(), E>>) -> Result<(), E> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = built.context("cannot start the runtime")?;
    let result = runtime.block_on(future);
    // A thread that hangs, for example in a system call, must not keep the process alive.
    runtime.shutdown_timeout(shutdown::THREADS_WITHIN);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands below `command` that can be run, with their words.
    fn leaves(command: &clap::Command, words: &str) -> Vec<(String, clap::Command)> {
        let words = format!("{words}{} ", command.get_name());
        let below: Vec<_> = command.get_subcommands().flat_map(|command| leaves(command, &words)).collect();
        if below.is_empty() { vec![(words.trim_end().to_owned(), command.clone())] } else { below }
    }

    /// The examples in the help of a command, as arguments.
    fn examples(command: &mut clap::Command) -> Vec<Vec<String>> {
        let help = command.render_long_help().to_string();
        let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        let examples = lines.map_while(|line| line.strip_prefix("  "));
        // What comes after is the shell's.
        examples.map(|line| shlex::split(line.split(" > ").next().unwrap()).unwrap()).collect()
    }

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn manual_pages_have_examples() {
        let directory = tempfile::tempdir().unwrap();
        manual::write(directory.path(), &Cli::command()).unwrap();
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        assert!(read("os-upgrade-hosts-approve.1").contains("Examples:"));
        assert!(read("os-upgrade.1").contains("Exit codes:"));
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        for (words, mut command) in leaves(&Cli::command(), "") {
            let examples = examples(&mut command);
            assert!(!examples.is_empty(), "`{words}` has no examples");
            for example in examples {
                let line = example.join(" ");
                assert!(line.starts_with(&words), "`{words}` has an example of another command: {line}");
                let parsed = Cli::command().try_get_matches_from(&example);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
