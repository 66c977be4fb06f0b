//! One measured instance of the orchestrator: its own process, its own data directory, and its HTTP client.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use harness::http;
use harness::memory::Memory;
use nix::sys::signal::Signal;
use os_upgrade_platform::child::{self, Child};
use reqwest::StatusCode;
use serde_json::Value;

use crate::cpu_time;
use crate::report::mebibytes;

/// The end of a configuration with which nothing is deleted from the journal while a measurement lasts.
pub(crate) const KEPT: &str = "sync-interval = \"1d\"\n";
/// Timeout of every step of a measurement.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);
/// Interval of polls.
const POLL: Duration = Duration::from_millis(2);

/// An instance that runs, unless it was killed.
#[derive(Debug)]
pub(crate) struct Instance {
    program: PathBuf,
    directory: PathBuf,
    listen: SocketAddr,
    http: reqwest::Client,
    child: Child,
}

impl Instance {
    /// Starts an instance on the nats-server at `nats`, with its data in `directory`, and waits until it is ready. `more` is
    /// the end of its configuration, and begins in the section `[nats]`.
    pub(crate) async fn start(
        program: PathBuf,
        directory: PathBuf,
        nats: &str,
        more: &str,
    ) -> anyhow::Result<Self> {
        fs::create_dir_all(&directory)?;
        // A free port. If another process takes it first, the orchestrator fails visibly.
        let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let config = format!(
            "[site]\nname = \"bench\"\nauto-approve = true\n[api]\nlisten = \"{listen}\"\n\
             [store]\npath = \"{}\"\n[nats]\nurl = \"{nats}\"\n{more}",
            data(&directory).display(),
        );
        fs::write(directory.join("os-upgrade.toml"), config)?;
        let child = launch(&program, &directory)?;
        let instance = Self { program, directory, listen, http: http::builder([]).build()?, child };
        instance.ready().await?;
        Ok(instance)
    }

    /// Kills it.
    pub(crate) async fn kill(&self) {
        self.child.kill().await;
    }

    /// Starts it again after it was killed. Returns how long it took until it accepted writes.
    pub(crate) async fn start_again(&mut self) -> anyhow::Result<Duration> {
        let started = Instant::now();
        self.child = launch(&self.program, &self.directory)?;
        // A new client: the old one's connections are closed.
        self.http = http::builder([]).build()?;
        self.ready().await?;
        Ok(started.elapsed())
    }

    /// Kills it and starts it again. Returns how long it took until it accepted writes.
    pub(crate) async fn restart(&mut self) -> anyhow::Result<Duration> {
        let killed = Instant::now();
        self.kill().await;
        self.start_again().await?;
        Ok(killed.elapsed())
    }

    /// Stops it in its tracks, until it is resumed.
    pub(crate) fn pause(&self) {
        self.child.signal(Signal::SIGSTOP);
    }

    pub(crate) fn resume(&self) {
        self.child.signal(Signal::SIGCONT);
    }

    /// Waits until it is ready and has this role.
    pub(crate) async fn until_role(&self, role: &str) -> anyhow::Result<()> {
        let given_up = Instant::now() + PATIENCE;
        loop {
            let answer = self.http.get(self.path("/readyz")).send().await?;
            if answer.status() == StatusCode::OK && answer.json::<Value>().await?["role"] == role {
                return Ok(());
            }
            ensure!(Instant::now() < given_up, "timed out waiting for a {role}");
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until this holds of the answer to `path`, an object.
    pub(crate) async fn until(
        &self,
        path: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<()> {
        until(what, async || anyhow::Ok(holds(&self.get(path).await?))).await
    }

    /// The answer to `path`, whatever its status.
    pub(crate) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        Ok(self.http.get(self.path(path)).send().await?.json().await?)
    }

    pub(crate) async fn post(&self, path: &str, body: Option<&Value>) -> anyhow::Result<()> {
        let mut request = self.http.post(self.path(path));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        if !status.is_success() {
            bail!("{path} was answered {status}: {}", answer.text().await.unwrap_or_default());
        }
        Ok(())
    }

    pub(crate) const fn http(&self) -> &reqwest::Client {
        &self.http
    }

    pub(crate) fn path(&self, path: &str) -> String {
        format!("http://{}{path}", self.listen)
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.listen
    }

    /// Its resident memory, in mebibytes.
    pub(crate) fn memory(&self) -> anyhow::Result<f64> {
        Ok(mebibytes(Memory::of(self.child.pid())?.now))
    }

    /// Its resident memory at its highest, in mebibytes.
    pub(crate) fn highest_memory(&self) -> anyhow::Result<f64> {
        Ok(mebibytes(Memory::of(self.child.pid())?.highest))
    }

    /// The CPU time of its process so far.
    pub(crate) fn cpu_time(&self) -> anyhow::Result<Duration> {
        cpu_time::of_process(self.child.pid())
    }

    /// The files of its history: the database and what SQLite has beside it.
    pub(crate) fn history_files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let files = fs::read_dir(data(&self.directory))?.map(|entry| Ok(entry?.path()));
        let files = files.collect::<anyhow::Result<Vec<_>>>()?;
        let is_history = |path: &PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(DATABASE))
        };
        Ok(files.into_iter().filter(is_history).collect())
    }

    async fn ready(&self) -> anyhow::Result<()> {
        let given_up = Instant::now() + PATIENCE;
        loop {
            let answer = self.http.get(self.path("/readyz")).send().await;
            if answer.is_ok_and(|answer| answer.status() == StatusCode::OK) {
                return Ok(());
            }
            if let Some(status) = self.child.status() {
                bail!("the orchestrator has ended ({status})");
            }
            ensure!(Instant::now() < given_up, "the orchestrator does not become ready");
            tokio::time::sleep(POLL).await;
        }
    }
}

/// Waits until this holds.
pub(crate) async fn until(
    what: &str,
    mut holds: impl AsyncFnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let given_up = Instant::now() + PATIENCE;
    while !holds().await? {
        ensure!(Instant::now() < given_up, "timed out waiting until {what}");
        tokio::time::sleep(10 * POLL).await;
    }
    Ok(())
}

/// The name of the database in the data directory.
const DATABASE: &str = "os-upgrade.db";

fn data(directory: &Path) -> PathBuf {
    directory.join("data")
}

fn launch(program: &Path, directory: &Path) -> anyhow::Result<Child> {
    let log = File::options().create(true).append(true).open(directory.join("os-upgrade.log"))?;
    let mut command = child::command(program);
    command.arg("serve").arg("--config").arg(directory.join("os-upgrade.toml"));
    command.current_dir(directory).stdout(log.try_clone()?).stderr(log);
    Ok(Child::start(command)?)
}
