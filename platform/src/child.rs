//! Child processes that never outlive this one, however it ends.
//!
//! The kernel kills them when this process dies, even by SIGKILL (`PR_SET_PDEATHSIG`). This module is only the mechanism:
//! callers decide what to start, and what its end means.
//!
//! - `setpriv`, of util-linux, sets the signal on itself and then executes the program. Setting it here would need
//!   code between fork and exec, which is unsafe.
//! - If the parent dies before the signal is set, the kernel sends none. So a line of shell then compares the parent
//!   with the expected one.
//! - The signal is sent when the *thread* that started the child ends. So one thread, which lives as long as the
//!   process, starts all children.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use tokio::sync::watch;

/// Executes the program `$1 ...` if the parent is still `$0`.
const EXEC: &str = r#"[ "$PPID" = "$0" ] || exit 125; exec "$@""#;

/// The command for `program`, to be completed with arguments, environment, directory and output, and passed to
/// [`Child::start`]. Standard input is empty; output is discarded unless redirected.
///
/// The child leads its own process group, so that Ctrl-C in a terminal reaches only this process, which then ends its
/// children gracefully.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "sh", "-c", EXEC])
        .arg(std::process::id().to_string())
        .arg(program)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// What signals reach, and what ends with a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The child.
    Process,
    /// Its process group.
    Group,
}

impl Scope {
    /// Sends `signal`, if there is still somebody to receive it.
    fn signal(self, pid: u32, signal: Signal) {
        let _ = match self {
            Self::Process => kill(as_pid(pid), signal),
            Self::Group => killpg(as_pid(pid), signal),
        };
    }
}

/// A running or ended child process. Dropping it kills the process, and waits for its end unless it has a group.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    scope: Scope,
    /// Locked while a signal is sent and while the process is reaped, so that no signal reaches a reused pid.
    process: Arc<Mutex<std::process::Child>>,
    exit: watch::Receiver<Option<ExitStatus>>,
    reaper: Option<thread::JoinHandle<()>>,
}

impl Child {
    /// Starts a command made by [`command`].
    ///
    /// # Errors
    /// `setpriv` is missing, or the system cannot start more processes or threads. If the *program* cannot be
    /// started, the child ends with exit status 126 or 127.
    pub fn start(command: Command) -> io::Result<Self> {
        Self::start_with(command, Scope::Process)
    }

    /// The same, but signals reach the whole process group, and whatever the child leaves behind in it is killed when the child
    /// ends. What has left the group lives on. If this process is killed, only the child is killed with it.
    ///
    /// Dropping it kills the group and does not wait, so that a runtime's thread can.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn start_group(command: Command) -> io::Result<Self> {
        Self::start_with(command, Scope::Group)
    }

    fn start_with(command: Command, scope: Scope) -> io::Result<Self> {
        let process = spawn_on_lasting_thread(command)?;
        let pid = process.id();
        let process = Arc::new(Mutex::new(process));
        let (sender, exit) = watch::channel(None);
        let reaper = thread::Builder::new().name(format!("reap-{pid}")).spawn({
            let process = Arc::clone(&process);
            move || reap(pid, scope, &process, &sender)
        })?;
        Ok(Self { pid, scope, process, exit, reaper: Some(reaper) })
    }

    /// The process id; it may be reused after the process has ended.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The exit status; `None` while the process runs.
    pub fn status(&self) -> Option<ExitStatus> {
        *self.exit.borrow()
    }

    /// Resolves when the process has ended. It does not borrow this handle.
    pub fn exited(&self) -> impl Future<Output = ExitStatus> + Send + 'static {
        let mut exit = self.exit.clone();
        async move {
            match exit.wait_for(Option::is_some).await.map(|status| *status) {
                Ok(Some(status)) => status,
                // The reaper always sends before it ends, unless it could not learn the status.
                Ok(None) | Err(_) => std::future::pending().await,
            }
        }
    }

    /// Sends `signal` unless the process has ended.
    pub fn signal(&self, signal: Signal) {
        let process = lock(&self.process);
        if self.exit.borrow().is_none() {
            self.scope.signal(process.id(), signal);
        }
    }

    /// Sends SIGTERM, and SIGKILL if the process has not ended after `grace`.
    pub async fn stop(&self, grace: Duration) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        match tokio::time::timeout(grace, self.exited()).await {
            Ok(status) => status,
            Err(_) => self.kill().await,
        }
    }

    /// Sends SIGKILL.
    pub async fn kill(&self) -> ExitStatus {
        self.signal(Signal::SIGKILL);
        self.exited().await
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        // Not bounded: a process that survives SIGKILL is stuck in the kernel, and its files are still in use.
        if let Some(reaper) = self.reaper.take().filter(|_| self.scope == Scope::Process) {
            let _ = reaper.join();
        }
    }
}

fn lock(process: &Mutex<std::process::Child>) -> MutexGuard<'_, std::process::Child> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

fn as_pid(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap_or(i32::MAX))
}

/// Waits for the end without reaping, then reaps and reports under the lock.
fn reap(
    pid: u32,
    scope: Scope,
    process: &Mutex<std::process::Child>,
    sender: &watch::Sender<Option<ExitStatus>>,
) {
    let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    while waitid(Id::Pid(as_pid(pid)), ended) == Err(Errno::EINTR) {}
    let mut process = lock(process);
    // The group keeps its id at least until its leader is reaped.
    if scope == Scope::Group {
        scope.signal(pid, Signal::SIGKILL);
    }
    match process.wait() {
        Ok(status) => {
            sender.send_replace(Some(status));
        }
        Err(error) => tracing::error!(pid, %error, "cannot learn how a child process ended"),
    }
}

type Request = (Command, mpsc::SyncSender<io::Result<std::process::Child>>);

/// The channel to the thread that starts all children; see the module.
static STARTER: LazyLock<io::Result<mpsc::Sender<Request>>> = LazyLock::new(|| {
    let (sender, requests) = mpsc::channel::<Request>();
    thread::Builder::new().name("start-children".to_owned()).spawn(move || {
        for (mut command, answer) in requests {
            let _ = answer.send(command.spawn());
        }
    })?;
    Ok(sender)
});

fn spawn_on_lasting_thread(command: Command) -> io::Result<std::process::Child> {
    let starter = STARTER.as_ref().map_err(|error| io::Error::from(error.kind()))?;
    let (answer, spawned) = mpsc::sync_channel(1);
    let ended = || io::Error::other("the thread that starts child processes has ended");
    starter.send((command, answer)).map_err(|_| ended())?;
    spawned.recv().map_err(|_| ended())?.map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            let message = "setpriv, of util-linux, is not installed (or the child's directory is missing)";
            io::Error::new(error.kind(), message)
        } else {
            error
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn sleeper() -> Command {
        let mut command = command("sleep");
        command.arg("600");
        command
    }

    #[tokio::test]
    async fn exit_status_is_the_programs() {
        let mut exits = command("sh");
        exits.args(["-c", "exit 3"]);
        let child = Child::start(exits).unwrap();
        assert_eq!(child.exited().await.code(), Some(3));
        assert_eq!(child.status().and_then(|status| status.code()), Some(3));
        child.signal(Signal::SIGKILL);

        let missing = Child::start(command("/nowhere/at-all")).unwrap();
        assert_eq!(missing.exited().await.code(), Some(127));
    }

    #[tokio::test]
    async fn stop_terminates_then_kills() {
        let polite = Child::start(sleeper()).unwrap();
        assert_eq!(polite.stop(Duration::from_secs(30)).await.signal(), Some(Signal::SIGTERM as i32));

        let mut deaf = command("sh");
        deaf.args(["-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"]);
        deaf.stdout(Stdio::piped());
        let deaf = Child::start(deaf).unwrap();
        let output = lock(&deaf.process).stdout.take().unwrap();
        assert_eq!(BufReader::new(output).lines().next().unwrap().unwrap(), "ready");
        assert_eq!(deaf.stop(Duration::from_millis(10)).await.signal(), Some(Signal::SIGKILL as i32));
    }

    #[test]
    fn drop_kills_the_child() {
        let child = Child::start(sleeper()).unwrap();
        let pid = as_pid(child.pid());
        drop(child);
        assert_eq!(kill(pid, None), Err(Errno::ESRCH));
    }

    /// A shell whose own child writes its pid to the output and lives on.
    fn parent_in_group(then: &str) -> (Child, Pid) {
        let mut parent = command("sh");
        parent.args(["-c", &format!("sleep 600 & echo $!; {then}")]);
        let (reader, writer) = io::pipe().unwrap();
        parent.stdout(writer);
        let parent = Child::start_group(parent).unwrap();
        let line = BufReader::new(reader).lines().next().unwrap().unwrap();
        (parent, as_pid(line.parse().unwrap()))
    }

    fn await_end(pid: Pid) {
        while kill(pid, None).is_ok() && !is_zombie(pid.as_raw().cast_unsigned()) {
            thread::yield_now();
        }
    }

    #[tokio::test]
    async fn group_ends_with_its_leader() {
        let (parent, left) = parent_in_group("exit 3");
        assert_eq!(parent.exited().await.code(), Some(3));
        await_end(left);
        let (parent, left) = parent_in_group("wait");
        assert_eq!(parent.stop(Duration::from_secs(30)).await.signal(), Some(Signal::SIGTERM as i32));
        await_end(left);
        let (parent, left) = parent_in_group("wait");
        drop(parent);
        await_end(left);
    }

    #[test]
    fn child_outlives_the_starting_thread() {
        let child = thread::spawn(|| Child::start(sleeper()).unwrap()).join().unwrap();
        assert_eq!(kill(as_pid(child.pid()), None), Ok(()));
        assert_eq!(child.status(), None);
    }

    /// Run by the test below in its own process: starts a child, prints its pid, and waits to be killed.
    #[test]
    #[ignore = "the parent in `children_end_with_a_killed_parent`"]
    fn parent_of_one_child() {
        let child = Child::start(sleeper()).unwrap();
        println!("child {}", child.pid());
        loop {
            thread::park();
        }
    }

    #[test]
    fn children_end_with_a_killed_parent() {
        let mut parent = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::tests::parent_of_one_child", "--ignored", "--nocapture"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = BufReader::new(parent.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("child ").and_then(|(_, pid)| pid.parse().ok()))
            .unwrap();
        assert_eq!(kill(as_pid(pid), None), Ok(()));
        parent.kill().unwrap();
        parent.wait().unwrap();
        await_end(as_pid(pid));
    }

    /// Without an init process, as in many containers, an ended orphan stays a zombie.
    fn is_zombie(pid: u32) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
    }
}
