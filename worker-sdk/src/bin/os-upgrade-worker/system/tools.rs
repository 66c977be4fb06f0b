//! Running the tools of the system in its root, and reading what they say.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use os_upgrade_systems::debian::lock::{self, Held};
use os_upgrade_systems::text::one_line;
use os_upgrade_worker_sdk::HandlerResult;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tracing::{debug, info};

use crate::leftover::Leftover;
use crate::process::{GATED, start_gated};

/// What of a tool's output is kept; a simulation of ten thousand packages prints some 2 MiB.
const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How often a lock is tried.
const LOCK_EVERY: Duration = Duration::from_secs(2);
/// What tools get from the environment of this process, which holds credentials that they must not have.
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
/// Where they are found, behind what the path of this process has: dpkg insists on these.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What they get besides: nobody is there to answer questions, and messages are in the language they are read in.
const ENVIRONMENT: [(&str, &str); 7] = [
    ("HOME", "/root"),
    ("LC_ALL", "C.UTF-8"),
    ("TERM", "dumb"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    ("UCF_FORCE_CONFFOLD", "1"),
    // It lists, and restarts nothing: the worker itself would be among it.
    ("NEEDRESTART_MODE", "l"),
];

/// What a tool said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Said {
    /// Everything that it printed.
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
    /// What runs is noted in `leftover`.
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

    /// The words that run `program` in the root.
    pub(crate) fn words(&self, program: &str, arguments: &[String]) -> Vec<String> {
        let mut words = Vec::new();
        if !self.is_this_machine() {
            words.extend(["chroot".to_owned(), self.root.display().to_string()]);
        }
        words.push(program.to_owned());
        words.extend_from_slice(arguments);
        words
    }

    /// What ran when an earlier worker was killed is ended.
    pub(crate) async fn end_leftover(&self) {
        self.leftover.end().await;
    }

    /// Runs a tool to its end. It is killed when this future is dropped.
    pub(crate) async fn run(&self, program: &str, arguments: &[String]) -> HandlerResult<Said> {
        let child = self.spawn(program, arguments)?;
        said(child, |_| ()).await
    }

    /// The same for one that takes long: should this process be killed meanwhile, the next start ends the tool. One at
    /// a time. Each line that it prints goes into the log and to `step`, when it comes.
    pub(crate) async fn run_noted(
        &self,
        program: &str,
        arguments: &[String],
        step: impl Fn(&str) + Sync,
    ) -> HandlerResult<Said> {
        info!("runs {program} {}", arguments.join(" "));
        let mut words = ["-c", GATED, "sh"].map(str::to_owned).to_vec();
        words.extend(self.words(program, arguments));
        let mut command = command("sh", &words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let child = start_gated(&mut command, |group| self.leftover.note(group))
            .await
            .map_err(|error| cannot_run("sh", &error))?;
        let said = said(child, |line| {
            if !line.trim().is_empty() {
                info!("{line}");
                step(line);
            }
        });
        let said = said.await;
        self.leftover.clear();
        said
    }

    fn spawn(&self, program: &str, arguments: &[String]) -> HandlerResult<Child> {
        debug!("runs {program} {}", arguments.join(" "));
        let words = self.words(program, arguments);
        let mut command = command(&words[0], &words[1..]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Ok(command.spawn().map_err(|error| cannot_run(&words[0], &error))?)
    }

    /// Runs a tool that must succeed, and returns what it printed.
    pub(crate) async fn query(&self, program: &str, arguments: &[String]) -> HandlerResult<String> {
        let said = self.run(program, arguments).await?;
        if said.status.success() {
            return Ok(said.stdout);
        }
        Err(format!("{program} failed ({}): {}", said.status, one_line(&said.all())).into())
    }

    /// For running something until nobody else holds the locks that it needs, or it has waited long enough.
    pub(crate) fn lock_wait(&self) -> LockWait {
        LockWait { since: Instant::now(), most: self.lock_wait, told: false }
    }
}

/// The wait for somebody else's locks.
#[derive(Debug)]
pub(crate) struct LockWait {
    since: Instant,
    most: Duration,
    told: bool,
}

impl LockWait {
    /// Whether a tool that failed is not to be tried again, by what it printed. It is, after a pause, if a lock was held.
    ///
    /// # Errors
    /// Somebody has held the lock for too long.
    pub(crate) async fn is_over(&mut self, output: &str) -> HandlerResult<bool> {
        let Some(held) = lock::held(output) else {
            return Ok(true);
        };
        if self.since.elapsed() >= self.most {
            let message = format!(
                "{} is held by {}, for longer than {}; end that, or wait longer with --lock-wait",
                held.lock,
                holder(&held),
                humantime::format_duration(self.most)
            );
            return Err(message.into());
        }
        if !self.told {
            info!("waits for {}, held by {}", held.lock, holder(&held));
            self.told = true;
        }
        tokio::time::sleep(LOCK_EVERY.min(self.most)).await;
        Ok(false)
    }
}

/// A command without terminal and credentials, in a process group of its own.
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

pub(crate) fn cannot_run(program: &str, error: &io::Error) -> String {
    format!("cannot run {program}: {error}")
}

fn holder(held: &Held) -> String {
    let Some(process) = held.process else {
        return "another process".to_owned();
    };
    // It may have ended since.
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let line = words.join(" ");
    match line.trim() {
        "" => format!("process {process}"),
        line => format!("process {process} ({})", one_line(line)),
    }
}

async fn said(mut child: Child, line: impl Fn(&str) + Sync) -> HandlerResult<Said> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (status, stdout, stderr) = tokio::join!(child.wait(), keep(stdout, &line), keep(stderr, &line));
    Ok(Said { status: status?, stdout, stderr })
}

/// What it prints, as far as it is kept, and each line of that when it comes.
async fn keep(output: Option<impl AsyncRead + Unpin>, line: &(impl Fn(&str) + Sync)) -> String {
    let Some(output) = output else {
        return String::new();
    };
    let mut output = BufReader::new(output);
    let mut kept = Vec::new();
    while kept.len() < OUTPUT_BYTES_MAX {
        let (begin, room) = (kept.len(), u64::try_from(OUTPUT_BYTES_MAX - kept.len()).unwrap_or(u64::MAX));
        match (&mut output).take(room).read_until(b'\n', &mut kept).await {
            Ok(0) | Err(_) => break,
            Ok(_) => line(String::from_utf8_lossy(&kept[begin..]).trim_end_matches('\n')),
        }
    }
    // A tool must not block because nobody reads on.
    let _ = tokio::io::copy(&mut output, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}
