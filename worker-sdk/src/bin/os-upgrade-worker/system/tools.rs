//! Runs the system's tools in its root and reads their output.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use os_upgrade_systems::debian::lock::{self, HeldLock};
use os_upgrade_systems::text::one_line;
use os_upgrade_worker_sdk::{CommandOutput, HandlerResult};
use tokio::process::{Child, Command};
use tracing::{debug, info};

use crate::leftover::Leftover;
use crate::pipes::Pipes;
use crate::process::{GATED, start_gated};

/// How much of a tool's output is kept; a simulation of ten thousand packages prints some 2 MiB.
const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How often a tool is tried again while a lock is held.
const LOCK_EVERY: Duration = Duration::from_secs(2);
/// The variables that tools inherit from this process. The others may be credentials that tools must not have.
const INHERITED: [&str; 9] = [
    "APT_CONFIG",
    "NEEDRESTART_MODE",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];
/// Appended to this process's PATH; dpkg requires these directories.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Variables for all tools: they must ask no questions, and print messages in the language of the parsers.
const ENVIRONMENT: [(&str, &str); 7] = [
    ("HOME", "/root"),
    ("LC_ALL", "C.UTF-8"),
    ("TERM", "dumb"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    ("UCF_FORCE_CONFFOLD", "1"),
    // List only: it would otherwise restart services, including the worker itself.
    ("NEEDRESTART_MODE", "l"),
];

/// The result of a tool.
#[derive(Debug)]
pub(crate) struct ToolOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ToolOutput {
    /// Its standard output and standard error.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// Runs tools in the root.
#[derive(Debug)]
pub(crate) struct Tools {
    root: PathBuf,
    lock_wait: Duration,
    leftover: Leftover,
}

impl Tools {
    /// Tools in `root`; the running one is recorded in `leftover`.
    pub(crate) const fn new(root: PathBuf, lock_wait: Duration, leftover: Leftover) -> Self {
        Self { root, lock_wait, leftover }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the root is that of this machine.
    pub(crate) fn is_this_machine(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The command line that runs `program` in the root.
    pub(crate) fn command_line(&self, program: &str, arguments: &[String]) -> Vec<String> {
        let mut words = Vec::new();
        if !self.is_this_machine() {
            words.extend(["chroot".to_owned(), self.root.display().to_string()]);
        }
        words.push(program.to_owned());
        words.extend_from_slice(arguments);
        words
    }

    /// Stops a tool that an earlier worker left running.
    pub(crate) async fn end_leftover(&self) {
        self.leftover.end().await;
    }

    /// Runs a tool and waits for it. It is killed when this future is dropped.
    pub(crate) async fn run(&self, program: &str, arguments: &[String]) -> HandlerResult<ToolOutput> {
        let child = self.spawn(program, arguments)?;
        collect_output(child, |_| ()).await
    }

    /// As [`Self::run`], for long-running tools, one at a time: if this process is killed, the next start stops the tool.
    /// Each line is logged, written to `output` and passed to `step` immediately.
    pub(crate) async fn run_recorded(
        &self,
        program: &str,
        arguments: &[String],
        output: &CommandOutput,
        step: impl Fn(&str) + Sync,
    ) -> HandlerResult<ToolOutput> {
        log_command(program, arguments, output);
        let mut words = ["-c", GATED, "sh"].map(str::to_owned).to_vec();
        words.extend(self.command_line(program, arguments));
        let mut command = command("sh", &words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let child = start_gated(&mut command, |group| self.leftover.record(group))
            .await
            .map_err(|error| cannot_run("sh", &error))?;
        let finished = collect_output(child, |line| {
            if !line.trim().is_empty() {
                info!("{line}");
                output.write(line);
                step(line);
            }
        });
        let finished = finished.await;
        self.leftover.clear();
        finished
    }

    fn spawn(&self, program: &str, arguments: &[String]) -> HandlerResult<Child> {
        debug!("running {program} {}", arguments.join(" "));
        let words = self.command_line(program, arguments);
        let mut command = command(&words[0], &words[1..]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Ok(command.spawn().map_err(|error| cannot_run(&words[0], &error))?)
    }

    /// Runs a tool that must succeed, and returns its standard output.
    pub(crate) async fn query(&self, program: &str, arguments: &[String]) -> HandlerResult<String> {
        let finished = self.run(program, arguments).await?;
        if finished.status.success() {
            return Ok(finished.stdout);
        }
        Err(format!("{program} failed ({}): {}", finished.status, one_line(&finished.all())).into())
    }

    /// A wait for locks that other processes hold, for repeating a command until it gets them.
    pub(crate) fn lock_wait(&self) -> LockWait {
        LockWait { since: Instant::now(), limit: self.lock_wait, logged: false }
    }
}

/// A wait for locks of other processes.
#[derive(Debug)]
pub(crate) struct LockWait {
    since: Instant,
    limit: Duration,
    logged: bool,
}

impl LockWait {
    /// Whether a tool with this output did not fail because of a held lock. If it did, pauses and returns false, so that
    /// the tool is tried again.
    ///
    /// # Errors
    /// The lock is still held after the time limit.
    pub(crate) async fn is_over(&mut self, output: &str) -> HandlerResult<bool> {
        let Some(held) = lock::find_held(output) else {
            return Ok(true);
        };
        if self.since.elapsed() >= self.limit {
            let message = format!(
                "{} is held by {}, for longer than {}; end that, or wait longer with --lock-wait",
                held.lock,
                holder(&held),
                humantime::format_duration(self.limit)
            );
            return Err(message.into());
        }
        if !self.logged {
            info!("waiting for {}, held by {}", held.lock, holder(&held));
            self.logged = true;
        }
        tokio::time::sleep(LOCK_EVERY.min(self.limit)).await;
        Ok(false)
    }
}

/// A command without terminal and credentials, in its own process group.
pub(crate) fn command(program: &str, arguments: &[impl AsRef<OsStr>]) -> Command {
    let path = std::env::var("PATH").map_or_else(|_| PATH.to_owned(), |path| format!("{path}:{PATH}"));
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(ENVIRONMENT).env("PATH", path);
    command.stdin(Stdio::null()).process_group(0);
    for name in INHERITED {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// Logs a command that is about to run, and writes it to `output`, before its own.
pub(crate) fn log_command(program: &str, arguments: &[String], output: &CommandOutput) {
    let arguments = arguments.join(" ");
    info!("running {program} {arguments}");
    output.write(&format!("$ {program} {arguments}"));
}

pub(crate) fn cannot_run(program: &str, error: &io::Error) -> String {
    format!("cannot run {program}: {error}")
}

fn holder(held: &HeldLock) -> String {
    let Some(process) = held.process else {
        return "another process".to_owned();
    };
    // The process may have ended since.
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let line = words.join(" ");
    match line.trim() {
        "" => format!("process {process}"),
        line => format!("process {process} ({})", one_line(line)),
    }
}

/// Waits for a tool, and passes each line that it prints to `line` immediately.
async fn collect_output(mut child: Child, mut line: impl FnMut(&str)) -> HandlerResult<ToolOutput> {
    let mut pipes = Pipes::new(&mut child, OUTPUT_BYTES_MAX);
    let status = pipes.wait(&mut child, |_, text| line(text)).await?;
    let (stdout, stderr) = pipes.take_kept();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(ToolOutput { status, stdout: text(stdout), stderr: text(stderr) })
}
