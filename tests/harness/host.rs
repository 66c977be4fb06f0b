//! A host of a site: a worker process with scripts, restarted whenever it ends, as an init system would. Each script logs
//! a line to a file that all hosts of a site share, so that executions can be counted.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
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

/// The beginning of every script. A file `hold-NAME` in the host's directory holds the script of that name.
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

/// The file beside `log` whose lines begin with the run's id.
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
    program: PathBuf,
    group: Option<&'static str>,
    arguments: Vec<String>,
    supervisor: Option<JoinHandle<()>>,
}

impl Host {
    /// A host whose scripts succeed and write to `log`. Its worker does not run yet.
    pub fn new(nats: &str, log: &Path, name: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (nats, log) = (nats.to_owned(), log.to_owned());
        let (name, program) = (name.to_owned(), programs::path(programs::WORKER));
        let (group, arguments, supervisor) = (None, Vec::new(), None);
        let host = Self { name, directory, nats, log, program, group, arguments, supervisor };
        fs::create_dir(host.path("scripts")).unwrap();
        fs::write(host.path("version"), "1\n").unwrap();
        fs::write(host.path("boot-id"), "boot-1\n").unwrap();
        host.script("prepare", PREPARE);
        host.script("upgrade", UPGRADE);
        host.script("reboot", REBOOT);
        host.script("versions", VERSIONS);
        host
    }

    /// Its host name.
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

    /// Sets the group of its slots.
    #[must_use]
    pub fn of_group(mut self, group: &'static str) -> Self {
        self.group = Some(group);
        self
    }

    /// Runs the worker by another program.
    #[must_use]
    pub fn with_program(mut self, program: PathBuf) -> Self {
        self.program = program;
        self
    }

    /// Adds arguments to the worker's command line.
    #[must_use]
    pub fn with_arguments(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }

    /// Makes its upgrade request a reboot.
    #[must_use]
    pub fn reboots(self) -> Self {
        self.script("upgrade", &format!("{UPGRADE}exit 194"));
        self
    }

    /// Makes its upgrade take this many seconds, and request a reboot.
    #[must_use]
    pub fn reboots_after(self, seconds: &str) -> Self {
        self.script("upgrade", &format!("sleep {seconds}\n{UPGRADE}exit 194"));
        self
    }

    /// Makes its upgrade take this many seconds.
    #[must_use]
    pub fn takes(self, seconds: &str) -> Self {
        self.script("upgrade", &format!("sleep {seconds}\n{UPGRADE}"));
        self
    }

    /// Adds a health script, which logs that it ran.
    #[must_use]
    pub fn with_health_script(self) -> Self {
        self.script("health", HEALTH);
        self
    }

    /// Adds scripts for configurations, which log them.
    #[must_use]
    pub fn with_configuration_scripts(self) -> Self {
        self.script(
            "configure",
            "say \"configure $OS_UPGRADE_CONFIG_NAME $(cat \"$OS_UPGRADE_CONFIG_FILE\")\"",
        );
        self.script("revoke", "say \"revoke $OS_UPGRADE_CONFIG_NAME\"");
        self
    }

    /// Makes `script` log that it runs, and fail with this message.
    pub fn fail(&self, script: &str, message: &str) {
        self.script(script, &format!("say {script}-fails\nheld {script}\necho '{message}' >&2\nexit 1"));
    }

    /// Makes its prepare and upgrade succeed, without a reboot.
    pub fn repair(&self) {
        self.script("prepare", PREPARE);
        self.script("upgrade", UPGRADE);
    }

    /// Holds the script of this name after its first log line.
    pub fn hold(&self, script: &str) {
        fs::write(self.path(&format!("hold-{script}")), "").unwrap();
    }

    /// Lets a held script continue.
    pub fn release(&self, script: &str) {
        fs::remove_file(self.path(&format!("hold-{script}"))).unwrap();
    }

    /// Starts the worker and keeps it running.
    pub fn start(&mut self) {
        let program = self.program.clone();
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

    /// Kills the worker process with SIGKILL, but not its scripts. It is restarted.
    pub fn kill_worker(&self) {
        let pid = fs::read_to_string(self.path("worker.pid")).unwrap();
        let killed = kill(Pid::from_raw(pid.parse().unwrap()), Signal::SIGKILL);
        // A reboot may have just ended it.
        assert!(matches!(killed, Ok(()) | Err(Errno::ESRCH)), "{killed:?}");
    }

    /// Stops the worker permanently.
    pub async fn stop(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.abort();
            drop(supervisor.await);
        }
    }

    /// Stops the worker once it has settled its command, and starts one without the state of the first. Returns when the
    /// new one reads commands: it alone receives those sent from then on.
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

    /// The log of this host's scripts.
    pub fn script_log(&self) -> Vec<String> {
        let prefix = format!("{} ", self.name);
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().filter_map(|line| line.strip_prefix(&prefix)).map(str::to_owned).collect()
    }

    /// Waits until its scripts have logged this.
    pub async fn await_script(&self, what: &str) {
        let waited = format!("{} to log {what}", self.name);
        eventually(&waited, async || self.script_log().iter().any(|line| line == what).then_some(())).await;
    }

    /// The log of its worker.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// The installed version.
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
