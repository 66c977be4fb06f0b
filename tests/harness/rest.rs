//! The REST API as an operator's client uses it.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, Identity, Method, RequestBuilder};
use serde_json::{Value, json};

use crate::host::Host;
use crate::http;
use crate::wait::eventually;

/// Timeout of a request, far longer than any answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time that a test follows a stream.
const STREAM_TIMEOUT: Duration = Duration::from_mins(5);
const STATE: &str = "/v1/state/os-upgrade";
const CONFIG: &str = "/v1/config/os-upgrade";

/// Status and body; the body is null when it is empty.
pub type Answer = (u16, Value);

/// A client of one orchestrator.
#[derive(Debug, Clone)]
pub struct Rest {
    http: Client,
    base: String,
    token: Option<String>,
}

impl Rest {
    /// A client of the orchestrator at `address`.
    pub fn new(address: SocketAddr) -> Self {
        Self::with_timeout(address, TIMEOUT)
    }

    /// A client with this timeout.
    pub fn with_timeout(address: SocketAddr, timeout: Duration) -> Self {
        Self::at(format!("http://{address}"), http::builder([]).timeout(timeout))
    }

    /// A client over TLS that trusts the authority in the PEM file `ca` and shows the certificate and key in `identity`.
    pub fn over_tls(address: SocketAddr, ca: &Path, identity: Option<&[PathBuf; 2]>) -> Self {
        let ca = Certificate::from_pem(&fs::read(ca).unwrap()).unwrap();
        let mut builder = http::builder([ca]).timeout(TIMEOUT);
        if let Some(files) = identity {
            let pem = files.iter().flat_map(|file| fs::read(file).unwrap()).collect::<Vec<u8>>();
            builder = builder.identity(Identity::from_pem(&pem).unwrap());
        }
        Self::at(format!("https://{address}"), builder)
    }

    fn at(base: String, builder: ClientBuilder) -> Self {
        Self { http: builder.build().unwrap(), base, token: None }
    }

    /// The same client with a bearer token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self.clone() }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        self.token.iter().fold(request, RequestBuilder::bearer_auth)
    }

    /// Sends a FleetLock request with this group and id. Returns the status, or `None` without an answer.
    pub async fn try_fleet_lock(&self, path: &str, group: &str, id: &str) -> Option<u16> {
        let body = json!({ "client_params": { "group": group, "id": id } });
        let request = self.request(Method::POST, path).header("fleet-lock-protocol", "true");
        let response = request.json(&body).send().await.ok()?;
        Some(response.status().as_u16())
    }

    /// Sends a request and returns the answer, or `None` without one. `body` is sent unchanged.
    pub async fn try_call(&self, method: Method, path: &str, body: &str) -> Option<Answer> {
        self.try_send(method, path, "application/json", body).await
    }

    /// The same with a body of another type.
    pub async fn try_send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &str,
    ) -> Option<Answer> {
        let request = self.request(method, path).header("content-type", content_type).body(body.to_owned());
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let body = response.bytes().await.ok()?;
        let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
        Some((status, body))
    }

    /// Sends a request, which must be answered.
    pub async fn call(&self, method: Method, path: &str, body: &str) -> Answer {
        let shown = format!("{method} {path}");
        self.try_call(method, path, body).await.unwrap_or_else(|| panic!("{shown}: no answer"))
    }

    /// `GET`.
    pub async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, "").await
    }

    /// Requests a stream of events after the event `last`, or from now on.
    pub async fn stream(&self, path: &str, last: &str) -> reqwest::Response {
        let request = self.request(Method::GET, path).timeout(STREAM_TIMEOUT);
        let response = request.header("last-event-id", last).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response
    }

    /// Configures the site to upgrade hosts with workers of `application`.
    pub async fn configure(&self, application: &str) {
        let body = json!({ "worker-applications": [{ "name": application }] }).to_string();
        let (status, answer) = self.call(Method::PUT, CONFIG, &body).await;
        assert!(status == 201 || status == 204, "{status} {answer}");
    }

    /// `GET` in a format other than JSON. Returns a line with status and content type, followed by the body.
    pub async fn get_as(&self, path: &str, accept: &str) -> String {
        let response = self.request(Method::GET, path).header("accept", accept).send().await.unwrap();
        let content_type =
            response.headers().get("content-type").map(|value| value.to_str().unwrap().to_owned());
        let status = response.status().as_u16();
        format!("{status} {}\n{}", content_type.unwrap_or_default(), response.text().await.unwrap())
    }

    /// The entity tag of the configuration.
    pub async fn configuration_tag(&self) -> String {
        let response = self.request(Method::GET, CONFIG).send().await.unwrap();
        response.headers()["etag"].to_str().unwrap().to_owned()
    }

    /// Patches the configuration if it has `tag`. Returns the status. An instance that can do nothing now, and says that nothing was
    /// changed, is asked again: on a busy machine leadership may change.
    pub async fn change_configuration(&self, tag: &str, patch: &Value) -> u16 {
        eventually("the change to be answered", async || {
            let request = self.request(Method::PATCH, CONFIG).json(patch);
            let response = request.header("if-match", tag).send().await.unwrap();
            let status = response.status().as_u16();
            let body: Value = response.json().await.unwrap_or_default();
            (body["errors"][0]["error-info"]["outcome"] != "unchanged").then_some(status)
        })
        .await
    }

    /// Sends a trigger with this body.
    pub async fn trigger(&self, body: &str) -> Answer {
        self.call(Method::POST, &format!("{STATE}/trigger-upgrade-site"), body).await
    }

    /// Starts a run without a deadline, and returns its id.
    pub async fn start_run(&self) -> String {
        assert_eq!(self.trigger("").await, (204, Value::Null));
        self.newest_run().await
    }

    /// Starts a run that will time out while the upgrade of `host` is held, and returns its id once that upgrade has begun.
    /// If a run times out before, the next attempt has twice as much time.
    pub async fn start_run_timing_out(&self, host: &Host) -> String {
        let mut timeout = Duration::from_secs(8);
        loop {
            let body = json!({ "timeout": format!("{}s", timeout.as_secs()) });
            assert_eq!(self.trigger(&body.to_string()).await, (204, Value::Null));
            let id = self.newest_run().await;
            let begun = eventually("the upgrade to begin, or the run to end", async || {
                let begun = host.script_log().iter().any(|line| line == "upgrade-begins");
                (begun || self.run(&id).await.result().is_some()).then_some(begun)
            });
            if begun.await {
                return id;
            }
            timeout *= 2;
        }
    }

    /// Cancels the run.
    pub async fn cancel(&self) -> Answer {
        self.call(Method::POST, &format!("{STATE}/cancel"), "").await
    }

    /// `/v1/state/os-upgrade`.
    pub async fn state(&self) -> Value {
        let (status, state) = self.get(STATE).await;
        assert_eq!(status, 200, "{state}");
        state
    }

    /// A host of `/v1/state/os-upgrade/hosts`, if it is known.
    pub async fn try_host(&self, name: &str) -> Option<Value> {
        let (status, host) = self.try_call(Method::GET, &format!("{STATE}/hosts/{name}"), "").await?;
        (status == 200).then_some(host)
    }

    /// The runs in the history, the newest first.
    pub async fn runs(&self) -> Vec<Value> {
        let (status, page) = self.get(&format!("{STATE}/runs")).await;
        assert_eq!(status, 200, "{page}");
        page["items"].as_array().unwrap().clone()
    }

    /// The id of the current or last run; `None` without one, or without an answer.
    pub async fn newest_run_or_none(&self) -> Option<String> {
        let (_, state) = self.try_call(Method::GET, STATE, "").await?;
        let run = state.get("current-upgrade-info").or_else(|| state.get("last-upgrade-info"))?;
        run["id"].as_str().map(str::to_owned)
    }

    /// The id of the current or last run.
    pub async fn newest_run(&self) -> String {
        self.newest_run_or_none().await.unwrap()
    }

    /// A run from the history; empty while the history does not have it.
    pub async fn run(&self, id: &str) -> Run {
        match self.try_call(Method::GET, &format!("{STATE}/runs/{id}"), "").await {
            Some((200, run)) => Run(run),
            _ => Run(Value::Null),
        }
    }

    /// Waits until the history has the end of the run, and returns the run.
    pub async fn await_end(&self, id: &str) -> Run {
        eventually("the end of the run", async || {
            let run = self.run(id).await;
            run.result().is_some().then_some(run)
        })
        .await
    }

    /// Waits until a host of the current run has this status.
    pub async fn await_status(&self, host: &str, status: &str) {
        eventually(&format!("{host} to be {status}"), async || {
            let (_, state) = self.try_call(Method::GET, STATE, "").await?;
            let hosts = state["current-upgrade-info"]["hosts"].as_array()?.clone();
            hosts.iter().any(|entry| entry["hostname"] == host && entry["status"] == status).then_some(())
        })
        .await;
    }

    /// Waits until a host waits for a reason of this kind, and returns its text.
    pub async fn await_reason(&self, host: &str, kind: &str) -> String {
        eventually(&format!("{host} to wait because of {kind}"), async || {
            let (_, entry) = self.try_call(Method::GET, &format!("{STATE}/hosts/{host}"), "").await?;
            (entry["why"]["kind"] == kind).then(|| entry["why"]["text"].as_str().unwrap().to_owned())
        })
        .await
    }

    /// Waits until exactly these hosts would take part in a run.
    pub async fn await_scheduled(&self, hosts: &[&str]) {
        eventually(&format!("{hosts:?} to be scheduled"), async || {
            let (_, state) = self.try_call(Method::GET, STATE, "").await?;
            let scheduled = state["scheduled-workers"].as_array()?.clone();
            let mut names: Vec<&str> = scheduled.iter().filter_map(|entry| entry["host"].as_str()).collect();
            names.dedup();
            (names == hosts).then_some(())
        })
        .await;
    }
}

/// A run from the history with its hosts and facts.
#[derive(Debug, Clone, PartialEq)]
pub struct Run(pub Value);

impl Run {
    /// Its result, if it has ended.
    pub fn result(&self) -> Option<&str> {
        self.0["result"].as_str()
    }

    /// The status of each host.
    pub fn statuses(&self) -> BTreeMap<&str, &str> {
        self.hosts().map(|host| (text(host, "hostname"), text(host, "status"))).collect()
    }

    /// The reasons of the hosts that have one.
    pub fn reasons(&self) -> BTreeMap<&str, &str> {
        let reasons = self.hosts().filter(|host| host.get("why").is_some());
        reasons.map(|host| (text(host, "hostname"), text(&host["why"], "text"))).collect()
    }

    fn hosts(&self) -> impl Iterator<Item = &Value> {
        self.0["hosts"].as_array().into_iter().flatten()
    }

    /// The events in order, each as text such as `h01 command-sent upgrade` or `run-ended`.
    pub fn events(&self) -> Vec<String> {
        let events = self.0["events"].as_array().into_iter().flatten();
        events.map(describe).collect()
    }

    /// The events of one host.
    pub fn events_of(&self, host: &str) -> Vec<String> {
        let prefix = format!("{host} ");
        let events = self.events().into_iter();
        events.filter_map(|event| event.strip_prefix(&prefix).map(str::to_owned)).collect()
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn describe(event: &Value) -> String {
    let what = if event["kind"] == "host" { text(event, "step") } else { text(event, "kind") };
    let parts = [text(event, "host"), what, text(event, "action")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
