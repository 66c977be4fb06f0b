//! Tests of the whole router in process, over a small core with a real kernel state and a real store.

mod authorization;
mod configuration;
mod conformance;
mod crowds;
mod enrolment;
mod errors;
mod events;
mod fleet;
mod fleet_socket;
mod forms;
mod hooks;
mod limits;
mod lock_edge;
mod metrics;
mod nodes;
mod openapi;
mod outputs;
mod pause;
mod providers;
mod reads;
mod reboot_queue;
mod run_hosts;
mod schedule;
mod served;
mod sites;
mod slots;
mod storage;
mod strongbox;
mod tls;
mod units;
mod window_places;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use axum::middleware;
use os_upgrade_api_types::body::{Stamp, Why};
use os_upgrade_api_types::route::Dialect;
use os_upgrade_api_types::routes::config::rollout;
use os_upgrade_auth::Authenticator;
use os_upgrade_kernel::Input;
use os_upgrade_protocol::{HostName, Output, Versions};
use os_upgrade_shell::forward::Answered;
use os_upgrade_shell::inventory::HostVersions;
use os_upgrade_shell::journal::Committed;
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_site::call::Call;
use os_upgrade_site::handle::SiteHandle;
use os_upgrade_site::host_reports::{HostReports, KeepsReports, ReportsError, ReportsRead, Stored};
use os_upgrade_site::published_state::{PublishedState, Readiness};
use os_upgrade_site::strongbox::Strongbox;
use os_upgrade_store::{History, Projector, Streams};
use os_upgrade_test_site::{TestSite, host};
use os_upgrade_tls::server_files::Tls;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, mpsc};
use tower::ServiceExt as _;
use tracing::Level;

use crate::context::{Answers, Api};
use crate::description;
use crate::http::form;
use crate::http::listener;
use crate::resources;
use crate::resources::config::patch;
use crate::resources::state;
use crate::router::{DESCRIPTION, Routers, edge_router, failure_level, with_limits, with_timeout};
use crate::*;

/// Why a host is not moving, as the command line says it.
fn sentence(host: &Value) -> String {
    let also = host["also"].as_array().into_iter().flatten();
    let texts = [&host["why"]].into_iter().chain(also).map(|why| why["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("; ")
}

/// A router, the instance behind it, and its store.
struct TestApi {
    router: Router,
    site: SiteHandle,
    history: History,
    directory: TempDir,
    /// The state that the instance publishes.
    shown: Arc<ArcSwap<PublishedState>>,
    /// The strongbox in which the instance looks up secrets, as the driver does.
    strongbox: Arc<ArcSwap<Strongbox>>,
}

fn published(site: &TestSite) -> PublishedState {
    let versions = Versions([("linux".to_owned(), "6.12.9".to_owned())].into_iter().collect());
    let reported = HostVersions { versions, published_at: "2026-11-20T12:00:00Z".parse().unwrap() };
    PublishedState {
        state: site.state.clone(),
        view: site.view.clone(),
        versions: [(host("h01"), reported)].into_iter().collect(),
        readiness: Readiness::Ready,
        ..PublishedState::default()
    }
}

async fn store() -> (TempDir, Projector) {
    let directory = TempDir::new().unwrap();
    let projector = Projector::open(&directory.path().join("store.sqlite"), "site").await.unwrap();
    (directory, projector)
}

fn streams() -> Streams {
    let created: chrono::DateTime<chrono::Utc> = "2026-11-01T00:00:00Z".parse().unwrap();
    Streams { journal_created_at: created, control_created_at: created }
}

/// Appends `records` to the store.
async fn project(projector: &mut Projector, records: &[Committed]) {
    let streams = streams();
    let follows = projector.position().await.unwrap().map(|position| position.sequence);
    projector.apply(&streams, follows, records).await.unwrap();
}

/// Answers every call, each in its own batch, once it is in the store.
async fn core(
    mut site: TestSite,
    mut projector: Projector,
    shown: Arc<ArcSwap<PublishedState>>,
    strongbox: Arc<ArcSwap<Strongbox>>,
    mut calls: mpsc::Receiver<Call>,
) {
    let update_sealed =
        |site: &mut TestSite| site.view.sealed = strongbox.load().blocks_slots(&site.state.strongbox);
    while let Some(call) = calls.recv().await {
        update_sealed(&mut site);
        let (committed, mut answers) = site.decide(&[Input::Request(call.request)]);
        project(&mut projector, &[committed]).await;
        update_sealed(&mut site);
        shown.store(Arc::new(published(&site)));
        let _ = call.answer.send(Ok(Answered { answer: answers.remove(0), sequence: 0 }));
    }
}

/// What is kept of the reports of every host.
#[derive(Debug)]
struct Kept {
    outputs: Result<Vec<Stored<Output>>, ReportsError>,
    versions: Result<Vec<Stored<Bytes>>, ReportsError>,
}

impl KeepsReports for Kept {
    fn outputs<'a>(&'a self, _host: &'a HostName) -> ReportsRead<'a, Output> {
        Box::pin(std::future::ready(self.outputs.clone()))
    }

    fn versions<'a>(&'a self, _host: &'a HostName) -> ReportsRead<'a, Bytes> {
        Box::pin(std::future::ready(self.versions.clone()))
    }
}

impl TestApi {
    /// The same, over `kept` reports of hosts.
    fn with_reports(self, kept: Kept) -> Self {
        let options = Options { reports: HostReports::new(kept), ..Options::default() };
        let router = router(self.site.clone(), self.history.clone(), Authenticator::default(), &options);
        Self { router, ..self }
    }

    /// An API over `site`, whose journal holds `records`.
    async fn new(site: TestSite, records: &[Committed]) -> Self {
        let (directory, mut projector) = store().await;
        project(&mut projector, records).await;
        let history = projector.history().await.unwrap();
        let shown = Arc::new(ArcSwap::from_pointee(published(&site)));
        let (sender, calls) = mpsc::channel(8);
        let handle = SiteHandle::new(Arc::clone(&shown), sender);
        let api = Self { shown, ..Self::over(handle, history, directory) };
        tokio::spawn(core(site, projector, Arc::clone(&api.shown), Arc::clone(&api.strongbox), calls));
        api
    }

    fn over(site: SiteHandle, history: History, directory: TempDir) -> Self {
        Self {
            router: router(site.clone(), history.clone(), Authenticator::default(), &Options::default()),
            site,
            history,
            directory,
            shown: Arc::default(),
            strongbox: Arc::default(),
        }
    }

    /// An API over an instance that never answers. The receiver keeps the instance's end open.
    async fn silent(readiness: Readiness) -> (Self, mpsc::Receiver<Call>) {
        let (directory, projector) = store().await;
        let shown =
            Arc::new(ArcSwap::from_pointee(PublishedState { readiness, ..PublishedState::default() }));
        let (sender, calls) = mpsc::channel(8);
        let handle = SiteHandle::new(shown, sender).with_timeout(Duration::from_millis(20));
        (Self::over(handle, projector.history().await.unwrap(), directory), calls)
    }

    async fn send(&self, request: Request<Body>) -> (u16, HeaderMap, String) {
        let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        conformance::check(&method, &path, status, &headers, &body);
        // Some files of the page are binary.
        (status, headers, String::from_utf8_lossy(&body).into_owned())
    }

    /// `request` is `<method> <path>`; the body, if there is any, is sent as JSON.
    async fn call(&self, request: &str, body: &str) -> (u16, Value) {
        let (status, _, body) = self.send(build(request, "application/json", body)).await;
        let body = if body.is_empty() { Value::Null } else { serde_json::from_str(&body).unwrap() };
        (status, body)
    }

    /// The body of the answer to `request`, a read, as clients read it.
    async fn read<T: DeserializeOwned>(&self, request: &str) -> T {
        let (status, body) = self.call(request, "").await;
        assert_eq!(status, 200, "{request}: {body}");
        serde_json::from_value(body).unwrap()
    }
}

fn build(request: &str, content_type: &str, body: &str) -> Request<Body> {
    let (method, path) = request.split_once(' ').unwrap();
    let request = Request::builder().method(method).uri(path).header("content-type", content_type);
    request.body(Body::from(body.to_owned())).unwrap()
}

/// A time as bodies have it.
fn stamp(text: &str) -> Stamp {
    Stamp(text.parse().unwrap())
}

/// The body of an error.
fn error(message: &str) -> Value {
    json!({ "errors": [{ "error-message": message }] })
}

/// The body of an error in fleet's dialects.
fn fleet_error(status: u16, message: &str) -> Value {
    json!({ "error": { "code": status, "message": message } })
}

/// The body of a change that was not done.
fn not_done(not_done: &NotDone) -> Value {
    error_with(&not_done.to_string(), &json!(not_done))
}

fn error_with(message: &str, info: &Value) -> Value {
    json!({ "errors": [{ "error-message": message, "error-info": info }] })
}
