//! A client of the REST API, with the calls that an upgrade needs. [`super::upgrade`] decides which to make, and when.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use os_upgrade_api_types::body::Page;
use os_upgrade_api_types::route::Call;
use os_upgrade_api_types::routes::runs::{self, Run, RunInFull, Trigger};
use os_upgrade_api_types::routes::state::{self, State};
use os_upgrade_api_types::routes::{config, health};
use os_upgrade_cli::rest;
use os_upgrade_kernel::Config;
use os_upgrade_kernel::config::WorkerApplication;
use os_upgrade_protocol::ApplicationName;
use os_upgrade_settings::HttpUrl;
use os_upgrade_tls::http_client;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The outcome of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Triggered {
    /// A new run has started.
    Started,
    /// A run was already active.
    Active,
}

/// A client of the orchestrator's API.
#[derive(Debug, Clone)]
pub(super) struct Api {
    http: Client,
    base: HttpUrl,
}

impl Api {
    /// A client of the orchestrator that listens on `address`.
    pub(super) fn new(address: SocketAddr) -> anyhow::Result<Self> {
        let reachable = match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
        };
        let base = format!("http://{}", SocketAddr::new(reachable, address.port()));
        let base: HttpUrl = base.parse().map_err(|why: String| anyhow!(why))?;
        let http = http_client::builder(base.url()).timeout(REQUEST_TIMEOUT).build()?;
        Ok(Self { http, base })
    }

    /// The address of the API.
    pub(super) const fn base(&self) -> &HttpUrl {
        &self.base
    }

    /// Whether the instance takes writes.
    pub(super) async fn ready(&self) -> bool {
        let response = self.send(&health::READY.call(), None::<&()>).await;
        response.is_ok_and(|(status, _)| status == StatusCode::OK)
    }

    /// The state of the site.
    pub(super) async fn state(&self) -> anyhow::Result<State<'static>> {
        self.get(&state::READ.call()).await
    }

    /// Makes `application` the only one whose hosts are upgraded. The windows, and whatever else is configured, stay. Returns
    /// the applications that were configured instead, if there was a configuration with others.
    pub(super) async fn configure(&self, application: &str) -> anyhow::Result<Option<Vec<String>>> {
        let before = self.applications().await?;
        if before.as_deref() == Some(&[application.to_owned()]) {
            return Ok(None);
        }
        let name = ApplicationName::new(application)?;
        let config = Config { worker_applications: vec![WorkerApplication { name }], ..Config::default() };
        let applications = json!({ "worker-applications": config.worker_applications });
        let (mut status, mut answer) = self.send(&config::CHANGE.call(), Some(&applications)).await?;
        if status == StatusCode::NOT_FOUND {
            (status, answer) = self.send(&config::REPLACE.call(), Some(&config)).await?;
        }
        if !status.is_success() {
            bail!("cannot configure: {status}: {answer}");
        }
        Ok(before)
    }

    /// The configured applications; `None` without a configuration.
    async fn applications(&self) -> anyhow::Result<Option<Vec<String>>> {
        let (status, answer) = self.send(&config::READ.call(), None::<&()>).await?;
        match status {
            StatusCode::OK => {
                let config: Config = serde_json::from_str(&answer).context("an unexpected configuration")?;
                let names = config.worker_applications.iter().map(|entry| entry.name.to_string());
                Ok(Some(names.collect()))
            }
            StatusCode::NOT_FOUND => Ok(None),
            _ => bail!("cannot read the configuration: {status}: {answer}"),
        }
    }

    /// Starts a run that may take `timeout`.
    pub(super) async fn trigger(&self, timeout: &str) -> anyhow::Result<Triggered> {
        let body = Trigger { timeout: Some(timeout.parse()?), ..Trigger::default() };
        match self.send(&runs::TRIGGER.call(), Some(&body)).await? {
            (StatusCode::NO_CONTENT, _) => Ok(Triggered::Started),
            (StatusCode::CONFLICT, _) => Ok(Triggered::Active),
            (status, answer) => bail!("cannot start a run: {status}: {answer}"),
        }
    }

    /// The id of the newest run, if there is any.
    pub(super) async fn newest_run(&self) -> anyhow::Result<Option<String>> {
        let page: Page<Run<'_>> = self.get(&runs::LIST.call().with("limit", "1")).await?;
        Ok(page.items.into_iter().next().map(|run| run.id.into_owned()))
    }

    /// A run with its hosts.
    pub(super) async fn run(&self, id: &str) -> anyhow::Result<RunInFull<'static>> {
        self.get(&runs::READ.named([id])).await
    }

    async fn get<T: DeserializeOwned>(&self, call: &Call) -> anyhow::Result<T> {
        let (status, answer) = self.send(call, None::<&()>).await?;
        let path = call.segments().join("/");
        if status != StatusCode::OK {
            bail!("GET /{path}: {status}: {answer}");
        }
        serde_json::from_str(&answer).with_context(|| format!("GET /{path}: unexpected response"))
    }

    async fn send<B: Serialize>(
        &self,
        call: &Call<B>,
        body: Option<&B>,
    ) -> anyhow::Result<(StatusCode, String)> {
        let method = Method::from_bytes(call.method().as_str().as_bytes())?;
        let request = self.http.request(method, rest::url(self.base.url(), call)?);
        let response = body.into_iter().fold(request, RequestBuilder::json).send().await?;
        Ok((response.status(), response.text().await?))
    }
}
