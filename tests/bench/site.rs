//! The measured site: the orchestrator in its own process, and its HTTP client.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use harness::http;
use os_upgrade_platform::child::{self, Child};
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::{Action, Announcement, ApplicationName, subject};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::locks;
use crate::reads::Reader;
use crate::report::mebibytes;
use crate::workers::{Step, Subjects, Workers, context, host};

/// The application of the workers.
pub(crate) const APPLICATION: &str = "bench";
/// Timeout of every step of a measurement.
const PATIENCE: Duration = Duration::from_mins(2);
/// Interval of polls.
const POLL: Duration = Duration::from_millis(2);
/// Number of concurrent announcements.
const ANNOUNCE_AT_ONCE: usize = 256;
/// `timeout` of a run: longer than any measurement.
const RUN_TIMEOUT: &str = "4h";

/// A site with its orchestrator and its workers.
#[derive(Debug)]
pub(crate) struct Site {
    program: PathBuf,
    directory: PathBuf,
    listen: SocketAddr,
    url: String,
    http: reqwest::Client,
    child: Child,
    /// The hosts.
    pub(crate) workers: Workers,
    announced: usize,
}

impl Site {
    /// Starts an orchestrator on the nats-server at `nats`, with its data in `directory`.
    pub(crate) async fn start(program: PathBuf, directory: PathBuf, nats: &str) -> anyhow::Result<Self> {
        fs::create_dir_all(&directory)?;
        // A free port. If another process takes it first, the orchestrator fails visibly.
        let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let config = format!(
            "[site]\nname = \"bench\"\nauto-approve = true\n[api]\nlisten = \"{listen}\"\n[nats]\nurl = \"{nats}\"\n\
             [store]\npath = \"{}\"\n\
             [fleet-lock.groups]\ndefault = 1\n{} = {}\n{} = 1\n{} = 1\n",
            directory.join("data").display(),
            locks::GROUP,
            locks::SLOTS,
            locks::CROWDED,
            locks::QUIET
        );
        fs::write(directory.join("os-upgrade.toml"), config)?;
        let child = launch(&program, &directory)?;
        let url = format!("http://{listen}");
        let http = http::builder([]).build()?;
        ready(&http, &url, &child).await?;
        let subjects = Subjects {
            stream: subject::CONTROL_STREAM.to_owned(),
            command: subject::COMMANDS.trim_end_matches('*').to_owned(),
            reply: subject::REPLIES.trim_end_matches('*').to_owned(),
        };
        let workers = Workers::new(nats, APPLICATION, subjects).await?;
        let site = Self { program, directory, listen, url, http, child, workers, announced: 0 };
        let config = json!({ "worker-applications": [{ "name": APPLICATION }] });
        let put = site.http.put(site.path("/v1/config/os-upgrade")).json(&config).send().await?;
        ensure!(put.status().is_success(), "the configuration was answered {}", put.status());
        Ok(site)
    }

    /// Adds hosts with workers until there are `hosts`, and waits until the orchestrator knows them.
    pub(crate) async fn grow(&mut self, nats: &str, hosts: usize) -> anyhow::Result<()> {
        self.workers.grow(hosts).await?;
        let jetstream = context(managed_nats::connect(nats).await?);
        let application = ApplicationName::new(APPLICATION)?;
        futures::stream::iter(self.announced..hosts)
            .map(async |number| {
                let announcement = Announcement::new(host(number), application.clone());
                let subject = subject::worker(&application, &host(number));
                jetstream.publish(subject, announcement.to_payload().into()).await?.await?;
                anyhow::Ok(())
            })
            .buffer_unordered(ANNOUNCE_AT_ONCE)
            .try_collect::<()>()
            .await?;
        self.announced = self.announced.max(hosts);
        let known = |state: &Value| state["scheduled-workers"].as_array().map_or(0, Vec::len);
        self.until("the orchestrator knows its hosts", |state| known(state) == hosts).await
    }

    /// Starts a run. Returns the time of the request.
    pub(crate) async fn trigger(&self) -> anyhow::Result<Instant> {
        let asked = Instant::now();
        let body = json!({ "timeout": RUN_TIMEOUT });
        self.post("/v1/state/os-upgrade/trigger-upgrade-site", Some(&body)).await?;
        Ok(asked)
    }

    /// Starts a run and waits until every host is prepared: then a worker receives the first `upgrade`, and waits for
    /// permission to answer. Returns how long that took.
    pub(crate) async fn prepare(&mut self) -> anyhow::Result<Duration> {
        self.workers.forget();
        let asked = self.trigger().await?;
        let upgrading = self.workers.wait(Action::Upgrade, Step::Received, 1).await?;
        Ok(upgrading.duration_since(asked))
    }

    /// Cancels the run, lets its upgrading host answer, and waits until it has ended.
    pub(crate) async fn cancel(&self) -> anyhow::Result<()> {
        self.post("/v1/state/os-upgrade/cancel", None).await?;
        self.workers.allow_upgrades(1);
        self.idle().await
    }

    /// Waits until no run is active.
    pub(crate) async fn idle(&self) -> anyhow::Result<()> {
        self.until("the run has ended", |state| state["status"] == "idle").await
    }

    /// `hosts` steps of the run, from the answer of one host to the answer of the next. Returns how long a step took.
    pub(crate) async fn upgrade(&mut self, hosts: usize) -> anyhow::Result<Duration> {
        let started = Instant::now();
        self.workers.allow_upgrades(hosts);
        let ended = self.workers.wait(Action::Upgrade, Step::Received, hosts).await?;
        Ok(ended.duration_since(started) / u32::try_from(hosts)?)
    }

    /// Kills the orchestrator and starts it again. Returns how long it took until it accepted writes.
    pub(crate) async fn restart(&mut self) -> anyhow::Result<Duration> {
        let killed = Instant::now();
        self.child.kill().await;
        self.child = launch(&self.program, &self.directory)?;
        // A new client: the old one's connections are closed.
        let http = http::builder([]).build()?;
        ready(&http, &self.url, &self.child).await?;
        let took = killed.elapsed();
        self.http = http;
        Ok(took)
    }

    /// A reader of the state.
    pub(crate) fn reader(&self) -> Reader {
        Reader { http: self.http.clone(), url: self.path("/v1/state/os-upgrade") }
    }

    /// The orchestrator's address.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.listen
    }

    /// The orchestrator's memory.
    pub(crate) fn memory(&self) -> anyhow::Result<Memory> {
        Memory::of(self.child.pid())
    }

    fn path(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    async fn post(&self, path: &str, body: Option<&Value>) -> anyhow::Result<()> {
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

    async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> anyhow::Result<()> {
        let given_up = Instant::now() + PATIENCE;
        loop {
            let state = self.http.get(self.path("/v1/state/os-upgrade")).send().await?;
            if holds(&state.error_for_status()?.json().await?) {
                return Ok(());
            }
            ensure!(Instant::now() < given_up, "timed out waiting until {what}");
            tokio::time::sleep(10 * POLL).await;
        }
    }
}

/// The resident memory of a process, in mebibytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    pub(crate) now: f64,
    pub(crate) highest: f64,
}

impl Memory {
    pub(crate) fn of(pid: u32) -> anyhow::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let mebibytes = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")).map(str::trim);
            let kibibytes: u64 = kibibytes.with_context(|| format!("no {key}"))?.parse()?;
            anyhow::Ok(mebibytes(kibibytes * 1_024))
        };
        Ok(Self { now: mebibytes("VmRSS:")?, highest: mebibytes("VmHWM:")? })
    }
}

fn launch(program: &Path, directory: &Path) -> anyhow::Result<Child> {
    let log = File::options().create(true).append(true).open(directory.join("os-upgrade.log"))?;
    let mut command = child::command(program);
    command.arg("serve").arg("--config").arg(directory.join("os-upgrade.toml"));
    command.current_dir(directory).stdout(log.try_clone()?).stderr(log);
    Ok(Child::start(command)?)
}

async fn ready(http: &reqwest::Client, url: &str, child: &Child) -> anyhow::Result<()> {
    let given_up = Instant::now() + PATIENCE;
    loop {
        let answer = http.get(format!("{url}/readyz")).send().await;
        if answer.is_ok_and(|answer| answer.status() == StatusCode::OK) {
            return Ok(());
        }
        if let Some(status) = child.status() {
            bail!("the orchestrator has ended ({status})");
        }
        ensure!(Instant::now() < given_up, "the orchestrator does not become ready");
        tokio::time::sleep(POLL).await;
    }
}
