//! A host of a site: a worker process with scripts, started again whenever it ends, as an init system would. What the
//! scripts do is one line each in a file that all hosts of a site share, so that executions can be counted.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use os_upgrade_platform::child::{self, Child};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::programs;
use crate::wait::eventually;

/// The application of every worker here.
pub const APPLICATION: &str = "os-upgrade-test";

/// What every script begins with. A file `hold-NAME` in the host's directory holds the script of that name.
const PROLOGUE: &str = r#"#!/bin/sh
set -eu
cd "$(dirname "$0")/.."
say() {
    echo "$OS_UPGRADE_HOST $1" >>'LOG'
    echo "${OS_UPGRADE_RUN:-} $OS_UPGRADE_HOST $1" >>'LOG.runs'
}
held() { while [ -e "hold-$1" ]; do sleep 0.02; done; }
"#;
const PREPARE: &str = "say prepare\nheld prepare";
const UPGRADE: &str = r#"
if [ "${OS_UPGRADE_RESUME:-}" = 1 ]; then say upgrade-resumed; else say upgrade-begins; fi
held upgrade
echo 2 >version
say upgrade-ends
"#;
const REBOOT: &str = r#"
say reboot
held reboot
cat /proc/sys/kernel/random/uuid >boot-id.new
mv boot-id.new boot-id
kill -KILL "$(cat worker.pid)"
"#;
const HEALTH: &str = "say healthy";
const VERSIONS: &str = r#"printf '{"linux":"%s"}' "$(cat version)""#;

/// The file beside `log` whose lines begin with the run.
pub fn runs_log(log: &Path) -> PathBuf {
    let mut name = log.as_os_str().to_owned();
    name.push(".runs");
    name.into()
}

/// A host with its worker.
#[derive(Debug)]
pub struct Host {
    name: String,
    directory: TempDir,
    nats: String,
    log: PathBuf,
    group: Option<&'static str>,
    arguments: Vec<String>,
    supervisor: Option<JoinHandle<()>>,
}

impl Host {
    /// A host whose scripts succeed and write to `log`. Its worker does not run yet.
    pub fn new(nats: &str, log: &Path, name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (nats, log) = (nats.to_owned(), log.to_owned());
        let name = name.to_owned();
        let host = Self { name, directory, nats, log, group: None, arguments: Vec::new(), supervisor: None };
        fs::create_dir(host.path("scripts")).unwrap();
        fs::write(host.path("version"), "1\n").unwrap();
        fs::write(host.path("boot-id"), "boot-1\n").unwrap();
        host.script("prepare", PREPARE);
        host.script("upgrade", UPGRADE);
        host.script("reboot", REBOOT);
        host.script("versions", VERSIONS);
        host
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn script(&self, name: &str, body: &str) {
        let path = self.path("scripts").join(name);
        let prologue = PROLOGUE.replace("LOG", self.log.to_str().unwrap());
        // Replaced in one step, as a worker may be about to run it.
        let new = self.path("new-script");
        fs::write(&new, format!("{prologue}{body}\n")).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// Has it take its slots from this group.
    #[must_use]
    pub fn of_group(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }

    /// Has its worker started with more arguments.
    #[must_use]
    pub fn with_arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// Has its upgrade ask for a reboot.
    #[must_use]
    pub fn reboots(self) -> Self {
        self.script("upgrade", &format!("{UPGRADE}exit 3"));
        self
    }

    /// Has it say when it is well after a reboot.
    #[must_use]
    pub fn says_healthy(self) -> Self {
        self.script("health", HEALTH);
        self
    }

    /// Has `script` fail with this message, after it has said that it runs.
    pub fn fail(&self, script: &str, message: &str) {
        self.script(script, &format!("say {script}-fails\nheld {script}\necho '{message}' >&2\nexit 1"));
    }

    /// Has its upgrade succeed, without a reboot.
    pub fn mend(&self) {
        self.script("prepare", PREPARE);
        self.script("upgrade", UPGRADE);
    }

    /// Holds the script of this name where it is about to do its work.
    pub fn hold(&self, script: &str) {
        fs::write(self.path(&format!("hold-{script}")), "").unwrap();
    }

    /// Lets it go on.
    pub fn let_go(&self, script: &str) {
        fs::remove_file(self.path(&format!("hold-{script}"))).unwrap();
    }

    /// Starts the worker and keeps it running.
    pub fn start(&mut self) {
        let program = programs::path(programs::WORKER);
        let arguments = ["exec", "--nats", &self.nats, "--application", APPLICATION, "--host", &self.name];
        let group = self.group.into_iter().flat_map(|group| ["--group", group]);
        let more = self.arguments.iter().map(String::as_str);
        let arguments: Vec<_> = arguments.into_iter().chain(group).chain(more).map(str::to_owned).collect();
        let directory = self.directory.path().to_owned();
        self.supervisor = Some(tokio::spawn(async move {
            loop {
                let log = File::options().create(true).append(true).open(directory.join("log")).unwrap();
                let mut command = child::command(&program);
                command
                    .args(&arguments)
                    .args(["--dir", "scripts", "--state-dir", "state", "--boot-id-file", "boot-id"])
                    .current_dir(&directory)
                    .env("RUST_LOG", "debug,async_nats=info")
                    .stderr(log);
                let worker = Child::start(command).unwrap();
                fs::write(directory.join("worker.pid"), worker.pid().to_string()).unwrap();
                worker.exited().await;
            }
        }));
    }

    /// Kills the worker process with SIGKILL, its scripts not included; it is started again.
    pub fn kill_worker(&self) {
        let pid = fs::read_to_string(self.path("worker.pid")).unwrap();
        kill(Pid::from_raw(pid.parse().unwrap()), Signal::SIGKILL).unwrap();
    }

    /// Ends the worker for good.
    pub async fn stop(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.abort();
            drop(supervisor.await);
        }
    }

    /// Ends the worker once it has settled what it was told, and starts one that finds none of what the first had kept.
    /// Returns when that one reads commands: what comes then is for it alone.
    pub async fn lose_state(&mut self) {
        let file = self.path("state").join(format!("{}.json", self.name));
        eventually("the worker to have settled its command", async || {
            let state: Value = serde_json::from_str(&fs::read_to_string(&file).ok()?).ok()?;
            (state["settled"].is_object() && state["current"].is_null()).then_some(())
        })
        .await;
        self.stop().await;
        fs::remove_dir_all(self.path("state")).unwrap();
        let before = self.log().matches("commands are read").count();
        self.start();
        eventually("the new worker to read commands", async || {
            (self.log().matches("commands are read").count() > before).then_some(())
        })
        .await;
    }

    /// What this host's scripts have said.
    pub fn said(&self) -> Vec<String> {
        let prefix = format!("{} ", self.name);
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().filter_map(|line| line.strip_prefix(&prefix)).map(str::to_owned).collect()
    }

    /// Waits until its scripts have said this.
    pub async fn await_said(&self, what: &str) {
        let waited = format!("{} to say {what}", self.name);
        eventually(&waited, async || self.said().iter().any(|said| said == what).then_some(())).await;
    }

    /// What its worker has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// The version on its disk.
    pub fn version(&self) -> String {
        fs::read_to_string(self.path("version")).unwrap().trim().to_owned()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.abort();
        }
        if std::thread::panicking() {
            let log = self.log();
            #[expect(clippy::print_stderr, reason = "the test has failed; this says why")]
            {
                eprintln!("--- log of the worker of {}\n{log}", self.name);
            }
        }
    }
}
