//! The REST API as a client sees it: the calls that an upgrade needs. Which, in what order, is [`super::upgrade`]'s.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, bail};
use reqwest::{Client, Method, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::http_client;

const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// What `GET /v1/state/os-upgrade` says that is of use here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(super) struct State {
    pub(super) scheduled_workers: Vec<ScheduledWorker>,
}

/// A host that would be upgraded.
#[derive(Debug, Deserialize)]
pub(super) struct ScheduledWorker {
    pub(super) host: String,
}

/// A page of runs, the newest first.
#[derive(Debug, Deserialize)]
struct Page {
    items: Vec<RunItem>,
}

#[derive(Debug, Deserialize)]
struct RunItem {
    id: String,
}

/// A run. `result` is absent while it goes on.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Run {
    #[serde(default)]
    pub(super) result: Option<String>,
    #[serde(default)]
    pub(super) hosts: Vec<RunHost>,
}

/// How a host fares in a run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct RunHost {
    pub(super) hostname: String,
    pub(super) status: String,
    #[serde(default)]
    pub(super) reason: Option<Value>,
}

impl RunHost {
    /// Status and reason in words.
    pub(super) fn words(&self) -> String {
        match &self.reason {
            None | Some(Value::Null) => self.status.clone(),
            Some(Value::String(reason)) => format!("{} ({reason})", self.status),
            Some(reason) => format!("{} ({reason})", self.status),
        }
    }
}

/// Whether a run was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Triggered {
    /// A new one.
    Started,
    /// One is under way already.
    Active,
}

/// A client of the orchestrator's API.
#[derive(Debug, Clone)]
pub(super) struct Api {
    http: Client,
    base: String,
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
        let http = http_client::builder(&Url::parse(&base)?).timeout(REQUEST_TIMEOUT).build()?;
        Ok(Self { http, base })
    }

    /// The address of the API.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Whether the instance takes writes.
    pub(super) async fn ready(&self) -> bool {
        let sent = self.http.get(format!("{}/readyz", self.base)).send().await;
        sent.is_ok_and(|response| response.status() == StatusCode::OK)
    }

    /// The state of the site.
    pub(super) async fn state(&self) -> anyhow::Result<State> {
        self.get("/v1/state/os-upgrade").await
    }

    /// Makes `application` the only one whose hosts are upgraded.
    pub(super) async fn configure(&self, application: &str) -> anyhow::Result<()> {
        let body = json!({ "worker-applications": [{ "name": application }] });
        let path = "/v1/config/os-upgrade";
        let (status, answer) = self.send(Method::PUT, path, body).await?;
        if !status.is_success() {
            bail!("PUT {path}: {status}: {answer}");
        }
        Ok(())
    }

    /// Starts a run that may take `timeout`.
    pub(super) async fn trigger(&self, timeout: &str) -> anyhow::Result<Triggered> {
        let path = "/v1/state/os-upgrade/trigger-upgrade-site";
        match self.send(Method::POST, path, json!({ "timeout": timeout })).await? {
            (StatusCode::NO_CONTENT, _) => Ok(Triggered::Started),
            (StatusCode::CONFLICT, _) => Ok(Triggered::Active),
            (status, answer) => bail!("POST {path}: {status}: {answer}"),
        }
    }

    /// The id of the newest run, if there is any.
    pub(super) async fn newest_run(&self) -> anyhow::Result<Option<String>> {
        let page: Page = self.get("/v1/state/os-upgrade/runs?limit=1").await?;
        Ok(page.items.into_iter().next().map(|run| run.id))
    }

    /// A run with its hosts.
    pub(super) async fn run(&self, id: &str) -> anyhow::Result<Run> {
        self.get(&format!("/v1/state/os-upgrade/runs/{id}")).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let response = self.http.get(format!("{}{path}", self.base)).send().await?;
        let status = response.status();
        let body = response.bytes().await?;
        if status != StatusCode::OK {
            bail!("GET {path}: {status}: {}", String::from_utf8_lossy(&body));
        }
        serde_json::from_slice(&body).with_context(|| format!("GET {path}: an unexpected answer"))
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> anyhow::Result<(StatusCode, String)> {
        let request = self.http.request(method, format!("{}{path}", self.base)).json(&body);
        let response = request.send().await?;
        Ok((response.status(), response.text().await?))
    }
}
