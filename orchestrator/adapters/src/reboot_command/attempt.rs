//! One attempt: a process, its end, and the end of what it prints.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::pin::pin;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use os_upgrade_platform::child::{self, Child};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

/// What is kept of each output.
const TAIL_BYTES_MAX: usize = 2 * 1024;
/// How long a process that has left the group may keep the outputs open after the end.
const OUTPUT_GRACE: Duration = Duration::from_millis(500);
/// The shell's exit status for a program that is there, and cannot be executed.
const CANNOT_EXECUTE: i32 = 126;
/// The pause before a program is tried again that is just being written.
const BUSY_PAUSE: Duration = Duration::from_millis(100);
/// Variables of the environment with what only an orchestrator should know, or use.
const PRIVATE: [&str; 2] = ["CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET"];
/// How long a killed process is waited for: one that waits for a dead disk does not end.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// Why an attempt brought nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The program says that it has failed. 126 and 127 are the shell's: the program cannot be executed, or is not there.
    #[error("the command ended with exit status {exit}")]
    Exit {
        /// Its exit status.
        exit: i32,
        /// The end of what it printed.
        tail: String,
    },
    /// A signal has ended the program.
    #[error("the command was ended by signal {signal}")]
    Signal {
        /// The signal's number.
        signal: i32,
        /// The end of what it printed.
        tail: String,
    },
    /// The time was up, and the program was killed.
    #[error("the command was killed after {} ms", .limit.as_millis())]
    TimedOut {
        limit: Duration,
        /// The end of what it printed.
        tail: String,
    },
    /// The system cannot start a process. Nothing was run.
    #[error("the command cannot be started: {detail}")]
    CannotStart {
        /// The causes.
        detail: String,
    },
    /// A program would take the node for an option. Nothing was run.
    #[error("{node:?} begins with -, which a program takes for an option")]
    Option {
        /// The node's name.
        node: String,
    },
    /// Another instance may lead by now. No attempt is begun any more.
    #[error("the lease is running out")]
    NotLeading,
}

/// Whether a program that failed may have done all the same what it was to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It may have.
    Unknown,
    /// It says that it has not.
    Denied,
    /// It was not run.
    Impossible,
}

impl Failure {
    /// What the program has done.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Signal { .. } | Self::TimedOut { .. } => Effect::Unknown,
            // The shell's own statuses are a program's as well.
            Self::Exit { .. } => Effect::Denied,
            Self::CannotStart { .. } | Self::Option { .. } | Self::NotLeading => Effect::Impossible,
        }
    }

    /// The end of what the program printed.
    pub fn tail(&self) -> &str {
        match self {
            Self::Exit { tail, .. } | Self::Signal { tail, .. } | Self::TimedOut { tail, .. } => tail,
            Self::CannotStart { .. } | Self::Option { .. } | Self::NotLeading => "",
        }
    }

    /// Whether the program is just being written, as by an update, so that the shell could not execute it.
    fn is_busy(&self) -> bool {
        matches!(self, Self::Exit { exit: CANNOT_EXECUTE, tail } if tail.contains("Text file busy"))
    }
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum End {
    /// With exit status 0, and this on standard output.
    Success(Output),
    /// Otherwise.
    Failure(Failure),
}

/// The end of an output, without white space around it.
#[derive(Debug)]
pub(super) struct Output {
    /// The text; bytes that are no UTF-8 are replaced.
    pub(super) text: String,
    /// Whether nothing was printed before.
    pub(super) is_complete: bool,
}

/// The last bytes of an output.
#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let excess = self.bytes.len().saturating_sub(TAIL_BYTES_MAX);
        self.is_cut |= excess > 0;
        self.bytes.drain(..excess);
    }

    /// Reads on until the end, since a full pipe would stop who writes to it.
    async fn read(&mut self, mut pipe: Receiver) {
        let mut buffer = [0; TAIL_BYTES_MAX];
        while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
            self.push(&buffer[..read]);
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}

/// Runs a program in a process group of its own, and kills the group when the time is up or the future is dropped. One that
/// is just being written is tried again until then.
pub(super) async fn run<'a>(
    program: &str,
    arguments: impl Iterator<Item = &'a str> + Clone,
    limit: Duration,
) -> End {
    let begin = Instant::now();
    loop {
        let left = limit.saturating_sub(begin.elapsed());
        let end = match start(program, arguments.clone()) {
            Ok(running) => running.end(left).await,
            Err(error) => End::Failure(Failure::CannotStart { detail: error.to_string() }),
        };
        match end {
            End::Failure(failure) if failure.is_busy() && left > BUSY_PAUSE => {
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            // The limit of the whole.
            End::Failure(Failure::TimedOut { tail, .. }) => {
                return End::Failure(Failure::TimedOut { limit, tail });
            }
            end @ (End::Success(_) | End::Failure(_)) => return end,
        }
    }
}

/// A process, and where its output arrives.
struct Running {
    child: Child,
    stdout: Receiver,
    stderr: Receiver,
}

fn start<'a>(program: &str, arguments: impl Iterator<Item = &'a str>) -> io::Result<Running> {
    let (stdout, to_stdout) = io::pipe()?;
    let (stderr, to_stderr) = io::pipe()?;
    let mut command = child::command(program);
    command.args(arguments).stdout(to_stdout).stderr(to_stderr);
    let ours = |name: &OsString| name.to_string_lossy().starts_with("OS_UPGRADE_");
    for name in env::vars_os().map(|(name, _)| name).filter(ours).chain(PRIVATE.map(OsString::from)) {
        command.env_remove(name);
    }
    Ok(Running {
        stdout: Receiver::from_owned_fd(OwnedFd::from(stdout))?,
        stderr: Receiver::from_owned_fd(OwnedFd::from(stderr))?,
        child: Child::start_group(command)?,
    })
}

impl Running {
    async fn end(self, limit: Duration) -> End {
        let Self { child, stdout, stderr } = self;
        let (mut printed, mut complained) = (Tail::default(), Tail::default());
        let status = {
            let mut reading = pin!(async { tokio::join!(printed.read(stdout), complained.read(stderr)) });
            let mut exited = pin!(tokio::time::timeout(limit, child.exited()));
            let mut is_read = false;
            let status = loop {
                tokio::select! {
                    status = &mut exited => break status.ok(),
                    _ = &mut reading, if !is_read => is_read = true,
                }
            };
            if status.is_none() {
                let _ = tokio::time::timeout(KILL_GRACE, child.kill()).await;
            }
            if !is_read {
                let _ = tokio::time::timeout(OUTPUT_GRACE, reading).await;
            }
            status
        };
        let Some(status) = status else {
            return End::Failure(Failure::TimedOut { limit, tail: complaint(&complained, &printed) });
        };
        if status.success() {
            return End::Success(Output { text: printed.text(), is_complete: !printed.is_cut });
        }
        End::Failure(failure(status, complaint(&complained, &printed)))
    }
}

/// What an operator is shown of both outputs: errors, if there are any.
fn complaint(stderr: &Tail, stdout: &Tail) -> String {
    let text = stderr.text();
    if text.is_empty() { stdout.text() } else { text }
}

fn failure(status: ExitStatus, tail: String) -> Failure {
    match (status.code(), status.signal()) {
        (Some(exit), _) => Failure::Exit { exit, tail },
        (None, signal) => Failure::Signal { signal: signal.unwrap_or_default(), tail },
    }
}
