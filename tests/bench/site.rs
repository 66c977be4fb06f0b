//! The measured site: an instance of the orchestrator, and its hosts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use futures::{StreamExt as _, TryStreamExt as _};
use os_upgrade_platform::managed_nats;
use os_upgrade_protocol::{Action, Announcement, ApplicationName, HostKey, subject};
use serde_json::{Value, json};

use crate::instance::Instance;
use crate::reads::Reader;
use crate::workers::{Machines, Step, Subjects, Workers, context, host};

/// The application of the workers.
pub(crate) const APPLICATION: &str = "bench";
/// Number of concurrent announcements.
const ANNOUNCE_AT_ONCE: usize = 256;
/// `timeout` of a run: longer than any measurement.
const RUN_TIMEOUT: &str = "4h";
const STATE: &str = "/v1/state/os-upgrade";

/// A site with its orchestrator and its workers.
#[derive(Debug)]
pub(crate) struct Site {
    /// The orchestrator.
    pub(crate) instance: Instance,
    /// The hosts.
    pub(crate) workers: Workers,
    announced: usize,
}

impl Site {
    /// Starts an orchestrator, as [`Instance::start`].
    pub(crate) async fn start(
        program: PathBuf,
        directory: PathBuf,
        nats: &str,
        more: &str,
    ) -> anyhow::Result<Self> {
        Self::start_on(None, program, directory, nats, more).await
    }

    /// The same with workers on machines.
    pub(crate) async fn start_on(
        machines: Option<Arc<dyn Machines>>,
        program: PathBuf,
        directory: PathBuf,
        nats: &str,
        more: &str,
    ) -> anyhow::Result<Self> {
        let instance = Instance::start(program, directory, nats, more).await?;
        let subjects = Subjects {
            stream: subject::CONTROL_STREAM.to_owned(),
            command: subject::COMMANDS.trim_end_matches('*').to_owned(),
            reply: subject::REPLIES.trim_end_matches('*').to_owned(),
        };
        let workers = Workers::new(nats, APPLICATION, subjects, machines).await?;
        let site = Self { instance, workers, announced: 0 };
        site.configure(&json!([])).await?;
        Ok(site)
    }

    /// Configures the workers' application, with these `config-providers`.
    pub(crate) async fn configure(&self, providers: &Value) -> anyhow::Result<()> {
        let config =
            json!({ "worker-applications": [{ "name": APPLICATION }], "config-providers": providers });
        let url = self.instance.path("/v1/config/os-upgrade");
        let put = self.instance.http().put(url).json(&config).send().await?;
        ensure!(put.status().is_success(), "the configuration was answered {}", put.status());
        Ok(())
    }

    /// Adds hosts with workers until there are `hosts`, and waits until the orchestrator knows them.
    pub(crate) async fn grow(&mut self, nats: &str, hosts: usize) -> anyhow::Result<()> {
        self.workers.grow(hosts).await?;
        self.announce(nats, hosts, None).await?;
        let known = |state: &Value| state["scheduled-workers"].as_array().map_or(0, Vec::len);
        self.instance.until(STATE, "the orchestrator knows its hosts", |state| known(state) == hosts).await
    }

    /// Announces hosts until there are `hosts`. With a key they take configuration. Only [`Self::grow`] gives them workers.
    pub(crate) async fn announce(
        &mut self,
        nats: &str,
        hosts: usize,
        key: Option<HostKey>,
    ) -> anyhow::Result<()> {
        let jetstream = context(managed_nats::connect(nats).await?);
        let application = ApplicationName::new(APPLICATION)?;
        let workers = &self.workers;
        futures::stream::iter(self.announced..hosts)
            .map(async |number| {
                let announcement = Announcement { configures: key, ..workers.announcement(host(number)) };
                let subject = subject::worker(&application, &host(number));
                jetstream.publish(subject, announcement.to_payload().into()).await?.await?;
                anyhow::Ok(())
            })
            .buffer_unordered(ANNOUNCE_AT_ONCE)
            .try_collect::<()>()
            .await?;
        self.announced = self.announced.max(hosts);
        Ok(())
    }

    /// Starts a run. Returns the time of the request.
    pub(crate) async fn trigger(&self) -> anyhow::Result<Instant> {
        let asked = Instant::now();
        let body = json!({ "timeout": RUN_TIMEOUT });
        self.instance.post("/v1/state/os-upgrade/trigger-upgrade-site", Some(&body)).await?;
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

    /// A whole run, whose hosts answer at once. Returns how long it took.
    pub(crate) async fn run(&mut self) -> anyhow::Result<Duration> {
        self.workers.forget();
        self.workers.allow_upgrades(self.announced);
        let asked = self.trigger().await?;
        self.workers.wait(Action::Upgrade, Step::Settled, self.announced).await?;
        self.idle().await?;
        Ok(asked.elapsed())
    }

    /// Cancels the run, lets its upgrading host answer, and waits until it has ended.
    pub(crate) async fn cancel(&self) -> anyhow::Result<()> {
        self.instance.post("/v1/state/os-upgrade/cancel", None).await?;
        self.workers.allow_upgrades(1);
        self.idle().await
    }

    /// Waits until no run is active.
    pub(crate) async fn idle(&self) -> anyhow::Result<()> {
        let status = format!("{STATE}?fields=status");
        self.instance.until(&status, "the run has ended", |state| state["status"] == "idle").await
    }

    /// `hosts` steps of the run, from the answer of one host to the answer of the next. Returns how long a step took.
    pub(crate) async fn upgrade(&mut self, hosts: usize) -> anyhow::Result<Duration> {
        let started = Instant::now();
        self.workers.allow_upgrades(hosts);
        let ended = self.workers.wait(Action::Upgrade, Step::Received, hosts).await?;
        Ok(ended.duration_since(started) / u32::try_from(hosts)?)
    }

    /// A reader of the state.
    pub(crate) fn reader(&self) -> Reader {
        Reader { http: self.instance.http().clone(), url: self.instance.path(STATE) }
    }
}
