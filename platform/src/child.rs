//! Child processes that never outlive this one, however it ends.
//!
//! The kernel kills them when this process dies, also by SIGKILL (`PR_SET_PDEATHSIG`). Here is the mechanism only:
//! what is started, and what its end means, is the caller's.
//!
//! - `setpriv`, of util-linux, sets the signal on itself and becomes the program. Setting it from here would need
//!   code between fork and exec, which is unsafe.
//! - A parent that died before the signal was set goes unnoticed by the kernel; a line of shell compares the parent
//!   with the expected one afterwards.
//! - The signal comes when the *thread* that started the child ends, so one thread, which lives as long as the
//!   process, starts all of them.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use tokio::sync::watch;

/// Becomes the program `$1 ...` if the parent is still `$0`.
const BECOME: &str = r#"[ "$PPID" = "$0" ] || exit 125; exec "$@""#;

/// The command for `program`, to be completed with arguments, environment, directory and output, and handed to
/// [`Child::start`]. Standard input is empty; output is discarded unless redirected.
///
/// The child leads a process group of its own, so that Ctrl-C in a terminal reaches this process only, which then
/// ends its children in the order it wants.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "sh", "-c", BECOME])
        .arg(std::process::id().to_string())
        .arg(program)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// A running or ended child process. Dropping it kills the process and waits until it is gone.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    /// Locked while a signal is sent and while the process is reaped, so that no signal reaches a reused pid.
    process: Arc<Mutex<std::process::Child>>,
    exit: watch::Receiver<Option<ExitStatus>>,
    reaper: Option<thread::JoinHandle<()>>,
}

impl Child {
    /// Starts a command made by [`command`].
    ///
    /// # Errors
    /// `setpriv` is missing, or the system starts no more processes or threads. That the *program* cannot be
    /// started shows as exit status 126 or 127.
    pub fn start(command: Command) -> io::Result<Self> {
        let process = spawn_on_lasting_thread(command)?;
        let pid = process.id();
        let process = Arc::new(Mutex::new(process));
        let (sender, exit) = watch::channel(None);
        let reaper = thread::Builder::new().name(format!("reap-{pid}")).spawn({
            let process = Arc::clone(&process);
            move || reap(pid, &process, &sender)
        })?;
        Ok(Self { pid, process, exit, reaper: Some(reaper) })
    }

    /// The process id; another process may have it after this one has ended.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its exit status, if it has ended.
    pub fn status(&self) -> Option<ExitStatus> {
        *self.exit.borrow()
    }

    /// Resolves when the process has ended; independent of this handle's life.
    pub fn exited(&self) -> impl Future<Output = ExitStatus> + Send + 'static {
        let mut exit = self.exit.clone();
        async move {
            match exit.wait_for(Option::is_some).await.map(|status| *status) {
                Ok(Some(status)) => status,
                // The reaper always sends before it ends; were it lost, nothing would be known of the process.
                Ok(None) | Err(_) => std::future::pending().await,
            }
        }
    }

    /// Sends `signal` unless the process has ended.
    pub fn signal(&self, signal: Signal) {
        let process = lock(&self.process);
        if self.exit.borrow().is_none() {
            // It may have ended without having been reaped yet; there is nothing to signal then.
            let _ = kill(as_pid(process.id()), signal);
        }
    }

    /// Asks the process to end (SIGTERM), and kills it if it has not after `grace`.
    pub async fn stop(&self, grace: Duration) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        match tokio::time::timeout(grace, self.exited()).await {
            Ok(status) => status,
            Err(_) => self.kill().await,
        }
    }

    /// Ends the process at once (SIGKILL).
    pub async fn kill(&self) -> ExitStatus {
        self.signal(Signal::SIGKILL);
        self.exited().await
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
        // Not bounded: a process that SIGKILL does not end is stuck in the kernel, and its files are still in use.
        if let Some(reaper) = self.reaper.take() {
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
fn reap(pid: u32, process: &Mutex<std::process::Child>, sender: &watch::Sender<Option<ExitStatus>>) {
    let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    while waitid(Id::Pid(as_pid(pid)), ended) == Err(Errno::EINTR) {}
    let mut process = lock(process);
    match process.wait() {
        Ok(status) => {
            sender.send_replace(Some(status));
        }
        Err(error) => tracing::error!(pid, %error, "cannot learn how a child process ended"),
    }
}

type Request = (Command, mpsc::SyncSender<io::Result<std::process::Child>>);

/// The thread that starts all children; see the module.
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
    async fn the_exit_status_is_the_programs() {
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
    async fn stop_asks_first_and_kills_after_the_grace() {
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
    fn a_dropped_child_is_gone() {
        let child = Child::start(sleeper()).unwrap();
        let pid = as_pid(child.pid());
        drop(child);
        assert_eq!(kill(pid, None), Err(Errno::ESRCH));
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let child = thread::spawn(|| Child::start(sleeper()).unwrap()).join().unwrap();
        assert_eq!(kill(as_pid(child.pid()), None), Ok(()));
        assert_eq!(child.status(), None);
    }

    /// Run by the test below in a process of its own: starts a child, says its pid, and never ends by itself.
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
        while kill(as_pid(pid), None).is_ok() && !is_zombie(pid) {
            thread::yield_now();
        }
    }

    /// An orphan stays a zombie where nothing plays init, as in many containers.
    fn is_zombie(pid: u32) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
    }
}
