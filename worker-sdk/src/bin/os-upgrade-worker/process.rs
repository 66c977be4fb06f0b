//! Runs a script in its own process group, with its standard error in the log, its standard output bounded, and the last lines
//! of both for operators.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{AccessFlags, Pid, access};
use os_upgrade_worker_sdk::CommandOutput;
use os_upgrade_worker_sdk::limits::{MESSAGE_BYTES_MAX, VERSIONS_BYTES_MAX};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tracing::{Instrument, info, warn};

/// How long a script has between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(5);
/// How long output is read after the script has exited; background processes may keep the pipes open.
const DRAIN_MAX: Duration = Duration::from_secs(1);
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
}

/// A running script. When dropped before it has exited, its whole group is killed.
#[derive(Debug)]
pub(crate) struct Script {
    name: String,
    child: Child,
    group: Group,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Option<String>>,
}

impl Script {
    pub(crate) fn start(
        path: &Path,
        name: &str,
        environment: &[(&str, String)],
        output: &CommandOutput,
    ) -> io::Result<Self> {
        let mut command = Command::new(path);
        Self::prepare(&mut command, path, environment);
        Self::new(command.stdin(Stdio::null()).spawn()?, name, output)
    }

    /// As [`Self::start`], but records the process group first. So if this process is killed, the next start can stop
    /// the script before it runs it again.
    pub(crate) async fn start_recorded(
        path: &Path,
        name: &str,
        environment: &[(&str, String)],
        output: &CommandOutput,
        record: impl FnOnce(Pid) -> io::Result<()>,
    ) -> io::Result<Self> {
        access(path, AccessFlags::X_OK)?;
        let mut command = Command::new("sh");
        command.args(["-c", GATED, "sh"]).arg(path);
        Self::prepare(&mut command, path, environment);
        Self::new(start_gated(&mut command, record).await?, name, output)
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

    fn new(mut child: Child, name: &str, output: &CommandOutput) -> io::Result<Self> {
        let id = group_of(&child)?;
        let stdout = child.stdout.take().expect("the standard output is piped");
        let stderr = child.stderr.take().expect("the standard error is piped");
        Ok(Self {
            name: name.to_owned(),
            child,
            group: Group { id, kill_on_drop: true },
            stdout: tokio::spawn(keep(BufReader::new(stdout), output.clone())),
            stderr: tokio::spawn(
                stream_into_log(BufReader::new(stderr), name.to_owned(), output.clone()).in_current_span(),
            ),
        })
    }

    /// Keeps the script running when this is dropped.
    pub(crate) const fn leave_on_drop(&mut self) {
        self.group.kill_on_drop = false;
    }

    /// Waits until the script has exited. May be cancelled and called again.
    pub(crate) async fn wait(&mut self) -> io::Result<Finished> {
        let status = self.child.wait().await?;
        // Background processes that the script has started may keep running.
        self.group.kill_on_drop = false;
        let stdout = tokio::time::timeout(DRAIN_MAX, &mut self.stdout).await;
        let last_line = tokio::time::timeout(DRAIN_MAX, &mut self.stderr).await;
        Ok(Finished {
            status,
            stdout: stdout.ok().and_then(Result::ok).unwrap_or_default(),
            last_line: last_line.ok().and_then(Result::ok).flatten(),
        })
    }

    /// Stops the whole group: SIGTERM, and SIGKILL if that does not suffice.
    pub(crate) async fn stop(mut self) {
        info!(script = self.name, "stopping the script");
        end_group(self.group.id, || async {
            // Reap the script, so that it does not count as running.
            let _ = self.child.wait().await;
        })
        .await;
        self.group.kill_on_drop = false;
    }
}

/// The variable with the bus's address, which no script is given.
const NATS_URL: &str = "OS_UPGRADE_NATS_URL";

/// Every variable that a script may be given; none is inherited from the environment of this process.
pub(crate) const ENVIRONMENT: [&str; 6] = [
    "OS_UPGRADE_HOST",
    "OS_UPGRADE_RUN",
    "OS_UPGRADE_NOT_AFTER",
    "OS_UPGRADE_RESUME",
    "OS_UPGRADE_REBOOTED",
    "OS_UPGRADE_PROGRESS",
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

/// Reads to the end, keeping a bounded part, and passes each line to `shown`.
async fn keep(mut output: impl AsyncBufRead + Unpin, shown: CommandOutput) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut line = Vec::new();
    // All of it is read, so that the script does not block on a full pipe.
    while read_line(&mut output, &mut line, |bytes| {
        let room = STDOUT_BYTES_MAX - kept.len();
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    })
    .await
    {
        shown.write(&String::from_utf8_lossy(&line));
    }
    kept
}

/// Logs each line, passes it to `shown`, and returns the last non-blank one. Lines are truncated to [`MESSAGE_BYTES_MAX`].
async fn stream_into_log(
    mut output: impl AsyncBufRead + Unpin,
    script: String,
    shown: CommandOutput,
) -> Option<String> {
    let mut last = None;
    let mut line = Vec::new();
    while read_line(&mut output, &mut line, |_| ()).await {
        let text = String::from_utf8_lossy(&line);
        shown.write(&text);
        let text = text.trim();
        if !text.is_empty() {
            info!(script, "{text}");
            last = Some(text.to_owned());
        }
    }
    last
}

/// Reads one line into `line`, with its end, truncated to [`MESSAGE_BYTES_MAX`]; false when there is none. All bytes are passed
/// to `read`.
async fn read_line(
    output: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
    mut read: impl FnMut(&[u8]),
) -> bool {
    line.clear();
    loop {
        let Ok(bytes) = output.fill_buf().await else {
            return !line.is_empty();
        };
        if bytes.is_empty() {
            return !line.is_empty();
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let part = &bytes[..end.map_or(bytes.len(), |end| end + 1)];
        let room = MESSAGE_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        read(part);
        let used = part.len();
        output.consume(used);
        if end.is_some() {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn last_non_blank_line_is_returned() {
        let long = "x".repeat(MESSAGE_BYTES_MAX * 3);
        for (text, expected) in [
            ("", None),
            ("\n \n", None),
            ("one\ntwo\n\n  \n", Some("two")),
            ("one\ntwo", Some("two")),
            (long.as_str(), Some(&long[..MESSAGE_BYTES_MAX])),
        ] {
            let output = BufReader::with_capacity(7, text.as_bytes());
            let last = stream_into_log(output, "t".to_owned(), CommandOutput::default()).await;
            assert_eq!(last.as_deref(), expected);
        }
    }

    #[tokio::test]
    async fn output_is_bounded() {
        let text = "x".repeat(VERSIONS_BYTES_MAX * 2);
        assert_eq!(keep(text.as_bytes(), CommandOutput::default()).await.len(), VERSIONS_BYTES_MAX + 1);
    }
}
