//! Transactions: tools that change the system. They are not stopped when this process ends, because an interrupted dpkg
//! leaves packages half installed. So their output goes to files, and the next start waits until they have ended.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use os_upgrade_systems::debian::progress::{self, Status};
use os_upgrade_worker_sdk::{Context, HandlerResult};
use tracing::info;

use super::tools::{Tools, cannot_run, command, log_command};
use crate::leftover::Leftover;
use crate::process::{GATED, start_gated};

/// How often the output is read.
const POLL_EVERY: Duration = Duration::from_millis(200);
/// How long to wait for a transaction that an earlier worker started.
const LEFTOVER_MAX: Duration = Duration::from_hours(2);
/// How long to wait for processes that a transaction left behind. A daemon that a package has started may never end; a dpkg
/// that has lost its APT holds dpkg's lock.
const LEFT_BEHIND_MAX: Duration = Duration::from_secs(10);
/// How much output is read at a time, and kept for the error message.
const READ_BYTES_MAX: u64 = 1024 * 1024;

/// The result of a transaction.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit: ExitStatus,
    /// The end of its output.
    pub(crate) output: String,
    /// The end of APT's status file; empty for other tools.
    pub(crate) status: String,
}

/// The output files of transactions, and the record of the running one.
#[derive(Debug)]
pub(crate) struct Transactions {
    output: PathBuf,
    status: PathBuf,
    leftover: Leftover,
}

impl Transactions {
    pub(crate) const fn new(output: PathBuf, status: PathBuf, leftover: Leftover) -> Self {
        Self { output, status, leftover }
    }

    /// Waits for a transaction that an earlier worker started, if one still runs.
    pub(crate) async fn await_leftover(&self, context: &Context) -> HandlerResult {
        let Some(group) = self.leftover.running() else {
            return Ok(());
        };
        info!(%group, "waiting for what an earlier worker began; it writes to {}", self.output.display());
        let ended = async {
            while self.leftover.running_leader().is_some() {
                tokio::time::sleep(POLL_EVERY).await;
            }
            let left_behind = async {
                while self.leftover.running().is_some() {
                    tokio::time::sleep(POLL_EVERY).await;
                }
            };
            if tokio::time::timeout(LEFT_BEHIND_MAX, left_behind).await.is_err() {
                info!(%group, "what an earlier worker began has ended; a process that it left behind still runs");
            }
        };
        tokio::select! {
            () = ended => {
                self.leftover.clear();
                Ok(())
            }
            () = context.shutting_down() => Err("what an earlier worker began still runs".into()),
            () = tokio::time::sleep(LEFTOVER_MAX) => {
                Err(format!("process {group}, which an earlier worker began, does not end; check it").into())
            }
        }
    }

    /// Runs a tool and waits for it. Each line of output is logged, shown to operators and passed to `step`. The tool's descriptor 3 is the
    /// status file.
    pub(crate) async fn run(
        &self,
        tools: &Tools,
        context: &Context,
        program: &str,
        arguments: &[String],
        step: impl Fn(&str) + Sync,
    ) -> HandlerResult<Ended> {
        log_command(program, arguments, context.output());
        let output = File::create(&self.output).map_err(|error| self.cannot_write(&error))?;
        let errors = output.try_clone().map_err(|error| self.cannot_write(&error))?;
        File::create(&self.status).map_err(|error| self.cannot_write(&error))?;
        let mut words =
            vec!["-c".to_owned(), format!("{GATED} 3>>\"$0\""), self.status.display().to_string()];
        words.extend(tools.command_line(program, arguments));
        let mut command = command("sh", &words);
        command.stdout(output).stderr(errors);
        let mut child = start_gated(&mut command, |group| self.leftover.record(group))
            .await
            .map_err(|error| cannot_run("sh", &error))?;
        let step = |line: &str| {
            context.output().write(line);
            step(line);
        };
        let mut output = LineReader::new(&self.output);
        let mut status_lines = LineReader::new(&self.status);
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                () = context.shutting_down() => {
                    // The record stays for the next start.
                    return Err(format!("{program} continues without the worker").into());
                }
                () = tokio::time::sleep(POLL_EVERY) => {
                    log_new_lines(&mut output, &step);
                    report_progress(&mut status_lines, context);
                }
            }
        };
        log_new_lines(&mut output, &step);
        self.leftover.clear();
        Ok(Ended { exit: status, output: tail(&self.output), status: tail(&self.status) })
    }

    fn cannot_write(&self, error: &io::Error) -> String {
        format!("cannot write in {}: {error}", self.output.parent().unwrap_or(&self.output).display())
    }
}

/// Logs the new lines of the output.
fn log_new_lines(output: &mut LineReader<'_>, step: &impl Fn(&str)) {
    output.lines(|line| {
        if !line.trim().is_empty() {
            info!("{line}");
            step(line);
        }
    });
}

/// Reports APT's progress from its status file.
fn report_progress(status: &mut LineReader<'_>, context: &Context) {
    let mut last = None;
    status.lines(|line| last = progress::parse(line).or(last.take()));
    if let Some(Status::Progress { percent, text }) = last {
        context.progress(percent, &text);
    }
}

/// Reads new lines of a growing file.
#[derive(Debug)]
struct LineReader<'a> {
    path: &'a PathBuf,
    /// Where the next line begins, in bytes.
    offset: u64,
}

impl<'a> LineReader<'a> {
    const fn new(path: &'a PathBuf) -> Self {
        Self { path, offset: 0 }
    }

    /// Passes the complete lines since the last call to `take`.
    fn lines(&mut self, mut take: impl FnMut(&str)) {
        while let Some(bytes) = read_from(self.path, self.offset) {
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            // A line longer than one read is passed in pieces.
            let full = u64::try_from(bytes.len()).is_ok_and(|length| length == READ_BYTES_MAX);
            let Some(end) = whole.or(full.then_some(bytes.len())) else {
                return;
            };
            let text = String::from_utf8_lossy(&bytes[..end]);
            text.lines().for_each(&mut take);
            self.offset += u64::try_from(end).unwrap_or(u64::MAX);
        }
    }
}

/// At most [`READ_BYTES_MAX`] bytes of the file from `offset` on; `None` at its end.
fn read_from(path: &PathBuf, offset: u64) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}

/// The last [`READ_BYTES_MAX`] bytes of a file.
fn tail(path: &PathBuf) -> String {
    let length = fs::metadata(path).map(|metadata| metadata.len()).unwrap_or_default();
    let bytes = read_from(path, length.saturating_sub(READ_BYTES_MAX)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
