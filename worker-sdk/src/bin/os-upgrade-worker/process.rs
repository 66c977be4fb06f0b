//! Runs a script in its own process group, with its standard error in the log, its standard output bounded, and the last lines
//! of both for operators.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use os_upgrade_worker_sdk::CommandOutput;
use os_upgrade_worker_sdk::limits::VERSIONS_BYTES_MAX;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tracing::{info, warn};

use crate::pipes::{Pipes, Stream};
use crate::script_file;

/// How long a script has between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(5);
/// How much standard output is kept: one byte more than the limit for versions, so that too much is noticed.
const STDOUT_BYTES_MAX: usize = VERSIONS_BYTES_MAX + 1;

/// The result of a script.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    /// Its standard output, truncated to [`STDOUT_BYTES_MAX`].
    pub(crate) stdout: Vec<u8>,
    /// The last non-blank line of its standard error.
    pub(crate) last_line: Option<String>,
    /// It failed, and has line ends of Windows.
    pub(crate) has_carriage_returns: bool,
}

/// A running script. When dropped before it has exited, its whole group is killed.
#[derive(Debug)]
pub(crate) struct Script {
    path: PathBuf,
    name: String,
    child: Child,
    group: Group,
    pipes: Pipes,
    output: CommandOutput,
    last_line: Option<String>,
}

impl Script {
    /// Starts the script at `path`.
    ///
    /// # Errors
    /// It cannot be run.
    pub(crate) fn start(
        path: &Path,
        name: &str,
        environment: &[(&str, String)],
        output: &CommandOutput,
    ) -> Result<Self, script_file::Error> {
        script_file::check(path)?;
        let mut command = Command::new(path);
        Self::prepare(&mut command, path, environment);
        Ok(Self::new(command.stdin(Stdio::null()).spawn()?, path, name, output)?)
    }

    /// As [`Self::start`], but records the process group first. So if this process is killed, the next start can stop
    /// the script before it runs it again.
    pub(crate) async fn start_recorded(
        path: &Path,
        name: &str,
        environment: &[(&str, String)],
        output: &CommandOutput,
        record: impl FnOnce(Pid) -> io::Result<()>,
    ) -> Result<Self, script_file::Error> {
        script_file::check(path)?;
        let mut command = Command::new("sh");
        command.args(["-c", GATED, "sh"]).arg(path);
        Self::prepare(&mut command, path, environment);
        Ok(Self::new(start_gated(&mut command, record).await?, path, name, output)?)
    }

    fn prepare(command: &mut Command, path: &Path, environment: &[(&str, String)]) {
        command
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // It may contain a password.
        command.env_remove(NATS_URL);
        for variable in &ENVIRONMENT {
            if !environment.iter().any(|(name, _)| name == variable) {
                command.env_remove(variable);
            }
        }
        if let Some(directory) = path.parent() {
            command.current_dir(directory);
        }
    }

    fn new(mut child: Child, path: &Path, name: &str, output: &CommandOutput) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            name: name.to_owned(),
            group: Group { id: group_of(&child)?, kill_on_drop: true },
            pipes: Pipes::new(&mut child, STDOUT_BYTES_MAX),
            child,
            output: output.clone(),
            last_line: None,
        })
    }

    /// Keeps the script running when this is dropped.
    pub(crate) const fn leave_on_drop(&mut self) {
        self.group.kill_on_drop = false;
    }

    /// Waits until the script has exited. May be cancelled and called again.
    pub(crate) async fn wait(&mut self) -> io::Result<Finished> {
        let Self { name, child, pipes, output, last_line, .. } = self;
        let status = pipes.wait(child, |stream, line| show(name, output, last_line, stream, line)).await?;
        // Background processes that the script has started may keep running.
        self.group.kill_on_drop = false;
        let (stdout, _) = self.pipes.take_kept();
        let has_carriage_returns = !status.success() && script_file::has_carriage_returns(&self.path);
        Ok(Finished { status, stdout, last_line: self.last_line.take(), has_carriage_returns })
    }

    /// Stops the whole group: SIGTERM, and SIGKILL if that does not suffice.
    pub(crate) async fn stop(mut self) {
        info!(script = self.name, "stopping the script");
        let Self { name, child, group, pipes, output, last_line, .. } = &mut self;
        let ended = end_group(group.id, || async {
            // Reap the script, so that it does not count as running.
            let _ = child.wait().await;
        });
        tokio::select! {
            () = ended => {}
            never = pipes.follow(|stream, line| show(name, output, last_line, stream, line)) => match never {},
        }
        self.group.kill_on_drop = false;
    }
}

/// Shows a line to operators; one of standard error is logged as well, and kept if it is not blank.
fn show(name: &str, output: &CommandOutput, last_line: &mut Option<String>, stream: Stream, line: &str) {
    output.write(line);
    let text = line.trim();
    if stream == Stream::Stderr && !text.is_empty() {
        info!(script = name, "{text}");
        *last_line = Some(text.to_owned());
    }
}

/// The variable with the bus's address, which no script is given.
const NATS_URL: &str = "OS_UPGRADE_NATS_URL";

/// Every variable that a script may be given; none is inherited from the environment of this process.
pub(crate) const ENVIRONMENT: [&str; 9] = [
    "OS_UPGRADE_HOST",
    "OS_UPGRADE_RUN",
    "OS_UPGRADE_NOT_AFTER",
    "OS_UPGRADE_RESUME",
    "OS_UPGRADE_REBOOTED",
    "OS_UPGRADE_PROGRESS",
    "OS_UPGRADE_CONFIG_FILE",
    "OS_UPGRADE_CONFIG_NAME",
    "OS_UPGRADE_CONFIG_ID",
];

#[derive(Debug)]
struct Group {
    id: Pid,
    kill_on_drop: bool,
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.kill_on_drop {
            // The group may have ended just now.
            let _ = killpg(self.id, Signal::SIGKILL);
        }
    }
}

/// A shell script that executes its arguments once [`start_gated`] sends a line. Redirections may be appended.
pub(crate) const GATED: &str = r#"read -r _ || exit 125; exec "$@" </dev/null"#;

/// Starts a shell that runs [`GATED`], records its process group, and lets it begin, even if recording fails.
pub(crate) async fn start_gated(
    command: &mut Command,
    record: impl FnOnce(Pid) -> io::Result<()>,
) -> io::Result<Child> {
    let mut child = command.stdin(Stdio::piped()).spawn()?;
    if let Err(error) = group_of(&child).and_then(record) {
        warn!("if the worker is killed now, its next start cannot stop this process: {error}");
    }
    let mut gate = child.stdin.take().expect("its standard input is piped");
    // If the shell has already ended, waiting for it reports that.
    let _ = gate.write_all(b"\n").await;
    Ok(child)
}

/// The process group that a child leads; its id is the child's process id.
fn group_of(child: &Child) -> io::Result<Pid> {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    id.map(Pid::from_raw).ok_or_else(|| io::Error::other("the script has no process id"))
}

/// Sends SIGTERM to a group, waits until it is empty, and sends SIGKILL when that takes too long. `leader_exited`
/// resolves when the group's leader has been reaped, or is not a child of this process.
pub(crate) async fn end_group<F: Future<Output = ()>>(group: Pid, leader_exited: impl FnOnce() -> F) {
    const POLL_EVERY: Duration = Duration::from_millis(20);
    if killpg(group, Signal::SIGTERM) == Err(Errno::ESRCH) {
        return;
    }
    let ended = async {
        leader_exited().await;
        while killpg(group, None) != Err(Errno::ESRCH) {
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    if tokio::time::timeout(TERM_GRACE, ended).await.is_err() {
        warn!(%group, "killing a process group that does not end");
        // The group may have ended just now.
        let _ = killpg(group, Signal::SIGKILL);
    }
}
