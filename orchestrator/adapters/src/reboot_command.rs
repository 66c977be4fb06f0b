//! An operator's commands: one reboots a node, the other one says whether the node has booted since.
//!
//! Each attempt has a limit, and nothing that it has started outlives it, unless it has left the process group: a command ends
//! when its time is up, and when the instance that runs it does not lead any more, which drops the future.

mod attempt;
mod from_settings;

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};
use nix::unistd::{AccessFlags, access};
use os_upgrade_kernel::{CommandJob, CommandOrder, CommandOutcome, Job, JobDone};
use os_upgrade_protocol::limits::bounded;
use os_upgrade_shell::jobs::JobReport;

pub use self::attempt::Failure;
use self::attempt::{Effect, End, Output};

/// What a job takes beyond its commands: to start and end processes.
const SLACK: Duration = Duration::from_secs(30);
/// The most bytes of what is told of a failure.
const DETAIL_BYTES_MAX: usize = 1024;

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    program: String,
    arguments: Vec<String>,
}

impl CommandLine {
    /// The program is the first of `words`; none if there is no word.
    pub fn new(words: impl IntoIterator<Item = String>) -> Option<Self> {
        let mut words = words.into_iter();
        let program = words.next()?;
        Some(Self { program, arguments: words.collect() })
    }

    /// The program, as the settings name it.
    pub fn program(&self) -> &str {
        &self.program
    }

    /// The file that is executed: the named one, or the first of that name on the `PATH`. `None` if this user can execute none.
    pub fn executable(&self) -> Option<PathBuf> {
        let is_executable = |path: &Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
        if self.program.contains('/') {
            return Some(PathBuf::from(&self.program)).filter(|path| is_executable(path));
        }
        let path = env::var_os("PATH")?;
        env::split_paths(&path)
            .map(|directory| directory.join(&self.program))
            .find(|path| is_executable(path))
    }

    /// Runs it once, with more arguments.
    async fn run(&self, more: &[&str], limit: Duration) -> End {
        let arguments = self.arguments.iter().map(String::as_str).chain(more.iter().copied());
        attempt::run(&self.program, arguments, limit).await
    }
}

/// How often a command is tried, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    /// The limit of one attempt.
    pub timeout: Duration,
    /// The most attempts after the first one.
    pub retries: u32,
    /// The pause before each of these.
    pub interval: Duration,
}

/// Why a node does not count as booted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotYet {
    /// The command has succeeded and printed something else than `true`.
    #[error("the command says {said:?}")]
    Said {
        /// The end of what it printed.
        said: String,
    },
    /// The last attempt failed.
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// The operator's commands. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebootCommands {
    /// Reboots a node, which is appended as the last argument.
    pub reboot: CommandLine,
    /// Says whether a node has booted: the node and a Unix time in seconds are appended as the last arguments. `None` if the boot
    /// that is reported tells.
    pub boot_check: Option<CommandLine>,
    /// How often each is tried.
    pub attempts: Attempts,
    /// How long all attempts take at most, once the first has begun.
    pub within: Duration,
}

impl RebootCommands {
    /// How long a job takes at most.
    pub fn within(&self) -> Duration {
        self.within + SLACK
    }

    /// Carries `job` out. `may_write` says right before each reboot whether this instance still leads; during one, whoever waits for
    /// the future drops it.
    pub async fn carry_out(&self, job: CommandJob, may_write: impl Fn() -> bool) -> JobReport {
        let CommandJob { order, host, node, .. } = &job;
        let outcome = match order {
            CommandOrder::Reboot { .. } => match self.reboot_in_next_second(node, may_write).await {
                Ok(()) => CommandOutcome::Succeeded,
                Err(Failure::NotLeading) => {
                    tracing::info!(%host, node, "the reboot command is not begun: the lease is running out");
                    return JobDone::NotBegun(Job::RebootCommand(job)).into();
                }
                Err(failure) => {
                    let detail = bounded(&failure.to_string(), DETAIL_BYTES_MAX);
                    let output = bounded(failure.tail(), DETAIL_BYTES_MAX);
                    match failure.effect() {
                        Effect::Unknown => CommandOutcome::Unknown { detail, output },
                        Effect::Denied => CommandOutcome::Failed { detail, output },
                        Effect::Impossible => CommandOutcome::NotStarted { detail },
                    }
                }
            },
            CommandOrder::CheckBoot { since } => match self.check_boot(node, *since).await {
                Ok(()) => CommandOutcome::Booted,
                Err(why) => {
                    tracing::debug!(%host, node, %why, "the node has not booted, as far as is known");
                    CommandOutcome::NotBooted
                }
            },
        };
        JobDone::RebootCommand(job, outcome).into()
    }

    /// Boots are checked in whole seconds since the job was due, rounded up: this one must not be earlier. That holds as
    /// long as the clocks of all instances agree.
    async fn reboot_in_next_second(&self, node: &str, may_write: impl Fn() -> bool) -> Result<(), Failure> {
        if self.boot_check.is_some() {
            let second = Duration::from_secs(1);
            let into_second = Duration::from_nanos(Utc::now().timestamp_subsec_nanos().into());
            tokio::time::sleep(second.saturating_sub(into_second)).await;
        }
        self.reboot(node, may_write).await
    }

    /// Runs the command for a node until it succeeds, while `may_write`. An attempt that may have succeeded is not repeated here.
    ///
    /// # Errors
    /// The last attempt failed. Unless the failure leaves that open, nothing has begun.
    async fn reboot(&self, node: &str, may_write: impl Fn() -> bool) -> Result<(), Failure> {
        let ends = |attempt, failure: &Failure| {
            tracing::warn!(node, attempt, %failure, "the reboot command fails");
            failure.effect() == Effect::Unknown
        };
        self.repeat(&self.reboot, &[node], may_write, ends).await.map(drop)
    }

    /// Asks whether a node has booted in this second or later. An attempt with an answer is not repeated here.
    ///
    /// # Errors
    /// It has not, as far as is known.
    async fn check_boot(&self, node: &str, since: DateTime<Utc>) -> Result<(), NotYet> {
        let Some(command) = &self.boot_check else {
            return Err(NotYet::Said { said: String::new() });
        };
        let since = since.timestamp().to_string();
        answer(self.repeat(command, &[node, &since], || true, |_, _| false).await?)
    }

    /// Runs a command until it succeeds, as often as the settings say, while it `may_begin`, or until `ends` says so of an attempt and
    /// its failure.
    ///
    /// # Errors
    /// The last attempt failed.
    async fn repeat(
        &self,
        command: &CommandLine,
        more: &[&str],
        may_begin: impl Fn() -> bool,
        ends: impl Fn(u32, &Failure) -> bool,
    ) -> Result<Output, Failure> {
        // Names of hosts may begin so, and those of nodes may not.
        if let Some(node) = more.iter().find(|word| word.starts_with('-')) {
            return Err(Failure::Option { node: (*node).to_owned() });
        }
        let (mut attempt, mut last_run) = (0, None);
        loop {
            if !may_begin() {
                return Err(Failure::NotLeading);
            }
            let failure = match command.run(more, self.attempts.timeout).await {
                End::Success(output) => return Ok(output),
                End::Failure(failure) => failure,
            };
            let has_ended = ends(attempt, &failure) || attempt == self.attempts.retries;
            if failure.effect() != Effect::Impossible {
                last_run = Some(failure.clone());
            }
            if has_ended {
                // What was run before counts, though nothing can be run any more.
                return Err(last_run.unwrap_or(failure));
            }
            attempt += 1;
            tokio::time::sleep(self.attempts.interval).await;
        }
    }
}

fn answer(stdout: Output) -> Result<(), NotYet> {
    if stdout.is_complete && stdout.text == "true" { Ok(()) } else { Err(NotYet::Said { said: stdout.text }) }
}

#[cfg(test)]
mod tests;
