//! What changes the system: it is not stopped when this process ends, because a dpkg that is stopped in the middle
//! leaves packages half installed. So it writes into files, and the next start waits until it has ended.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use os_upgrade_systems::debian::progress::{self, Status};
use os_upgrade_worker_sdk::{Context, HandlerResult};
use tracing::info;

use super::tools::{Tools, cannot_run, command};
use crate::leftover::Leftover;
use crate::process::{GATED, start_gated};

/// How often its output is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long one that an earlier worker started is waited for.
const LEFTOVER_MAX: Duration = Duration::from_hours(2);
/// What is read of its output at a time, and looked at when it has failed.
const READ_BYTES_MAX: u64 = 1024 * 1024;

/// How one ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit: ExitStatus,
    /// The end of what it printed.
    pub(crate) output: String,
    /// The end of what APT wrote into its status file.
    pub(crate) status: String,
}

/// Where they write, and the note of which one runs.
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

    /// Waits for the one that an earlier worker started and that still runs, if there is one.
    pub(crate) async fn await_leftover(&self, context: &Context) -> HandlerResult {
        let Some(group) = self.leftover.running() else {
            return Ok(());
        };
        info!(%group, "waits for what an earlier worker began; it writes to {}", self.output.display());
        let ended = async {
            while self.leftover.running().is_some() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            () = ended => {
                self.leftover.clear();
                Ok(())
            }
            () = context.shutting_down() => Err("what an earlier worker began still runs".into()),
            () = tokio::time::sleep(LEFTOVER_MAX) => {
                Err(format!("process {group}, which an earlier worker began, does not end; look at it").into())
            }
        }
    }

    /// Runs a tool to its end. Each line that it prints goes into the log and to `step`. Its third descriptor is the
    /// status file.
    pub(crate) async fn run(
        &self,
        tools: &Tools,
        context: &Context,
        program: &str,
        arguments: &[String],
        step: impl Fn(&str) + Sync,
    ) -> HandlerResult<Ended> {
        info!("runs {program} {}", arguments.join(" "));
        let output = File::create(&self.output).map_err(|error| self.cannot_write(&error))?;
        let errors = output.try_clone().map_err(|error| self.cannot_write(&error))?;
        File::create(&self.status).map_err(|error| self.cannot_write(&error))?;
        let mut words =
            vec!["-c".to_owned(), format!("{GATED} 3>>\"$0\""), self.status.display().to_string()];
        words.extend(tools.words(program, arguments));
        let mut command = command("sh", &words);
        command.stdout(output).stderr(errors);
        let mut child = start_gated(&mut command, |group| self.leftover.note(group))
            .await
            .map_err(|error| cannot_run("sh", &error))?;
        let mut shown = New::of(&self.output);
        let mut steps = New::of(&self.status);
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                () = context.shutting_down() => {
                    // The note stays, for the next start.
                    return Err(format!("{program} goes on without the worker").into());
                }
                () = tokio::time::sleep(LOOK_EVERY) => {
                    show(&mut shown, &step);
                    report(&mut steps, context);
                }
            }
        };
        show(&mut shown, &step);
        self.leftover.clear();
        Ok(Ended { exit: status, output: tail(&self.output), status: tail(&self.status) })
    }

    fn cannot_write(&self, error: &io::Error) -> String {
        format!("cannot write in {}: {error}", self.output.parent().unwrap_or(&self.output).display())
    }
}

/// Logs the lines that have come.
fn show(output: &mut New<'_>, step: &impl Fn(&str)) {
    output.lines(|line| {
        if !line.trim().is_empty() {
            info!("{line}");
            step(line);
        }
    });
}

/// Tells how far APT is.
fn report(status: &mut New<'_>, context: &Context) {
    let mut last = None;
    status.lines(|line| last = progress::parse(line).or(last.take()));
    if let Some(Status::Progress { percent, text }) = last {
        context.progress(percent, &text);
    }
}

/// What comes into a file.
#[derive(Debug)]
struct New<'a> {
    path: &'a PathBuf,
    upto: u64,
}

impl<'a> New<'a> {
    const fn of(path: &'a PathBuf) -> Self {
        Self { path, upto: 0 }
    }

    /// The whole lines that have come since.
    fn lines(&mut self, mut take: impl FnMut(&str)) {
        while let Some(bytes) = read_from(self.path, self.upto) {
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
            // A line longer than what is read at a time is shown in pieces.
            let full = u64::try_from(bytes.len()).is_ok_and(|length| length == READ_BYTES_MAX);
            let Some(end) = whole.or(full.then_some(bytes.len())) else {
                return;
            };
            let text = String::from_utf8_lossy(&bytes[..end]);
            text.lines().for_each(&mut take);
            self.upto += u64::try_from(end).unwrap_or(u64::MAX);
        }
    }
}

/// Some bytes of the file from `offset` on; `None` at its end.
fn read_from(path: &PathBuf, offset: u64) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    file.seek(SeekFrom::Start(offset)).ok()?;
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}

/// The end of a file.
fn tail(path: &PathBuf) -> String {
    let length = fs::metadata(path).map(|metadata| metadata.len()).unwrap_or_default();
    let bytes = read_from(path, length.saturating_sub(READ_BYTES_MAX)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
