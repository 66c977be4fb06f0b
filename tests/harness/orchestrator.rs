//! An `os-upgrade serve` process, which can be killed and started again on the same data directory.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use os_upgrade_platform::child::Child;
use reqwest::Method;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;

use crate::disk;
use crate::files::copy_all;
use crate::programs;
use crate::rest::Rest;
use crate::wait::{self, PATIENCE, eventually};

/// How long a graceful stop may take.
const GRACE: Duration = PATIENCE;

/// The variable that lets hosts take part without an operator's approval, which most tests set.
pub const AUTO_APPROVE: &str = "OS_UPGRADE_SITE__AUTO_APPROVE";

/// The result of a command: its exit code, standard output and standard error.
pub type CommandResult = (Option<i32>, String, String);

/// An address that no other test process uses: Linux has the whole of 127/8 on loopback, so each test process takes its
/// own address, and ports below those of outgoing connections.
pub fn own_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(8646);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let ip = IpAddr::V4(Ipv4Addr::new(127, 64 | high, middle, low));
    SocketAddr::new(ip, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// An instance with its data directory and its configuration.
#[derive(Debug)]
pub struct Orchestrator {
    directory: TempDir,
    address: SocketAddr,
    /// A client of its API.
    pub rest: Rest,
    environment: Vec<(&'static str, String)>,
    /// The program of its next process.
    program: PathBuf,
    child: Option<Child>,
}

impl Orchestrator {
    /// An instance that uses the servers at `nats`, with `more` in its configuration. It does not run yet.
    pub fn new(nats: &str, more: &str) -> Self {
        Self::with_config(&format!("[nats]\nurl = \"{nats}\"\n{more}\n"))
    }

    /// An instance with a managed nats-server. It does not run yet.
    pub fn managed() -> Self {
        Self::with_config("[nats]\nmanaged = true\n")
    }

    /// The URL of its managed nats-server, with user and password.
    pub fn managed_nats(&self) -> String {
        fs::read_to_string(self.directory().join("data/nats/url")).unwrap().trim().to_owned()
    }

    fn with_config(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let address = own_address();
        let config = format!("[api]\nlisten = \"{address}\"\n{config}");
        fs::write(directory.path().join("os-upgrade.toml"), config).unwrap();
        // The same time zone data on every machine: what is compiled in.
        let environment = vec![(AUTO_APPROVE, "true".to_owned()), ("TZDIR", "/nonexistent".to_owned())];
        let program = programs::path(programs::ORCHESTRATOR);
        Self { rest: Rest::new(address), directory, address, environment, program, child: None }
    }

    /// Sets the program, perhaps one of another version, from its next start on.
    pub fn set_program(&mut self, program: PathBuf) {
        self.program = program;
    }

    /// Sets an environment variable, from its next start on.
    pub fn set_environment(&mut self, name: &'static str, value: &str) {
        self.environment.push((name, value.to_owned()));
    }

    /// Removes an environment variable, from its next start on.
    pub fn remove_environment(&mut self, name: &str) {
        self.environment.retain(|(known, _)| *known != name);
    }

    /// Its directory, with its configuration `os-upgrade.toml`, its `log`, and `data`.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The database file of its history.
    pub fn store_file(&self) -> PathBuf {
        self.directory().join("data/os-upgrade.db")
    }

    /// Copies its data directory to `to`. The process must not run.
    pub fn save_data(&self, to: &Path) {
        assert!(self.child.is_none(), "files of a running process cannot be copied");
        copy_all(&self.directory().join("data"), to);
    }

    /// Replaces its data directory by that copy. The process must not run.
    pub fn restore_data(&self, from: &Path) {
        assert!(self.child.is_none(), "a running process would overwrite them");
        fs::remove_dir_all(self.directory().join("data")).unwrap();
        copy_all(from, &self.directory().join("data"));
    }

    /// The address of its API.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its instance name, once it has run.
    pub fn instance(&self) -> String {
        fs::read_to_string(self.directory().join("data/instance")).unwrap()
    }

    fn log_file(&self) -> PathBuf {
        self.directory().join("log")
    }

    /// Its log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Starts the process; use [`Self::ready`] to wait for it.
    pub fn start(&mut self) {
        let log = File::options().create(true).append(true).open(self.log_file()).unwrap();
        let mut command = disk::command(&self.program);
        command.args(["serve", "--config", "os-upgrade.toml"]).current_dir(self.directory());
        command
            .env("RUST_LOG", "info,os_upgrade=debug,os_upgrade_api=off")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stderr(log);
        self.child = Some(Child::start(command).unwrap());
    }

    /// Starts the process and waits until it accepts writes.
    pub async fn start_ready(&mut self) {
        self.start();
        self.ready().await;
    }

    /// Waits until it accepts writes.
    pub async fn ready(&self) {
        eventually("the orchestrator to be ready", async || {
            if let Some(status) = self.child.as_ref().and_then(Child::status) {
                panic!("the orchestrator has ended: {status}");
            }
            self.readiness().await?.is_empty().then_some(())
        })
        .await;
    }

    /// Runs another command of the program with this instance's configuration.
    pub async fn command(&self, arguments: &[&str]) -> CommandResult {
        self.run(&[arguments, &["--config", "os-upgrade.toml"]].concat(), "").await
    }

    /// Makes a backup, and unpacks it below the directory.
    pub async fn unpacked_backup(&self) -> PathBuf {
        let (code, _, stderr) = self.command(&["backup", "site.tar.gz"]).await;
        assert_eq!(code, Some(0), "{stderr}");
        let directory = self.directory().join("unpacked");
        fs::create_dir(&directory).unwrap();
        let mut tar = std::process::Command::new("tar");
        tar.args(["xzf", "../site.tar.gz"]).current_dir(&directory);
        assert!(tar.status().unwrap().success());
        directory
    }

    /// Runs a command that sends requests to this instance, with `input` on standard input.
    pub async fn ask(&self, arguments: &[&str], input: &str) -> CommandResult {
        let url = format!("http://{}", self.address);
        self.run(&[arguments, &["--url", &url]].concat(), input).await
    }

    /// What a command that sends requests to this instance prints. It must succeed.
    pub async fn done(&self, arguments: &[&str]) -> String {
        let (code, printed, stderr) = self.ask(arguments, "").await;
        assert_eq!(code, Some(0), "{arguments:?}: {printed}\n{stderr}");
        printed
    }

    /// Runs the program in this instance's directory and environment, with `input` on standard input.
    pub async fn run(&self, arguments: &[&str], input: &str) -> CommandResult {
        let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
        command.args(arguments).current_dir(self.directory()).kill_on_drop(true);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that does not read its input may have ended already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes()).await;
        let output = child.wait_with_output().await.unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Its role, `leader` or `follower`, and the leader's name; `None` while it is not ready.
    pub async fn role(&self) -> Option<(String, String)> {
        let (status, body) = self.rest.try_call(Method::GET, "/readyz", "").await?;
        let text = |key: &str| body[key].as_str().map(str::to_owned);
        (status == 200).then(|| Some((text("role")?, text("leader")?))).flatten()
    }

    /// Waits until it leads.
    pub async fn await_leading(&self) {
        let leads = ("leader".to_owned(), self.instance());
        eventually("the orchestrator to lead", async || (self.role().await? == leads).then_some(())).await;
    }

    /// Waits until it follows `leader`.
    pub async fn await_following(&self, leader: &Self) {
        let follows = ("follower".to_owned(), leader.instance());
        eventually("the orchestrator to follow", async || (self.role().await? == follows).then_some(()))
            .await;
    }

    /// The output of `os-upgrade cluster status`; `None` when it fails.
    pub async fn cluster_status(&self) -> Option<Value> {
        let url = format!("http://{}", self.address);
        let mut command = tokio::process::Command::new(programs::path(programs::ORCHESTRATOR));
        command.args(["cluster", "status", "--output", "json", "--url", &url]);
        let output = command.output().await.unwrap();
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    /// Why it does not accept writes, empty when it does; `None` while it does not answer.
    pub async fn readiness(&self) -> Option<String> {
        let (status, body) = self.rest.try_call(Method::GET, "/readyz", "").await?;
        let message = body["errors"][0]["error-message"].as_str();
        Some(if status == 200 { String::new() } else { message.unwrap().to_owned() })
    }

    /// Kills it with SIGKILL.
    pub async fn kill(&mut self) {
        if let Some(child) = self.child.take() {
            child.kill().await;
        }
    }

    /// Restarts it if it has ended, as an init system would.
    pub fn restart_if_ended(&mut self) {
        if self.child.as_ref().is_some_and(|child| child.status().is_some()) {
            self.start();
        }
    }

    /// Kills it and starts it again.
    pub async fn kill_and_start(&mut self) {
        self.kill().await;
        self.start();
    }

    /// Stops it with SIGTERM, and waits until it has ended.
    pub async fn terminate(&mut self) -> ExitStatus {
        self.child.take().unwrap().stop(GRACE).await
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().pid()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        wait::signal(self.child.as_ref().unwrap(), signal);
    }

    /// Waits until it has ended, and returns its exit code and standard error.
    pub async fn exited(&mut self) -> (Option<i32>, String) {
        let child = self.child.take().unwrap();
        let status = tokio::time::timeout(PATIENCE, child.exited()).await.unwrap();
        (status.code(), self.log())
    }
}

impl Drop for Orchestrator {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[expect(clippy::print_stderr, reason = "the test has failed; this says why")]
            {
                eprintln!("--- log of the orchestrator at {}\n{}", self.address, self.log());
            }
        }
    }
}
