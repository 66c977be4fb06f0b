//! A FleetLock server that answers as the test wants, and records its requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::orchestrator::own_address;

/// How the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// 200.
    Granted,
    /// Like a semaphore with one slot.
    OneSlot,
    /// 409, all slots are held.
    Full,
    /// 202, which grants nothing.
    Accepted,
    /// A redirect to a URL that would grant a slot.
    Redirect,
    /// 500 with an HTML page.
    Page,
    /// No answer until the mode changes.
    Nothing,
}

#[derive(Debug)]
struct Shared {
    mode: watch::Sender<Mode>,
    calls: Vec<String>,
    /// The holder of the only slot, with [`Mode::OneSlot`].
    holder: Option<String>,
    /// Number of received requests.
    requests: usize,
    limit: Limit,
    /// How many more unlock requests are answered with 500.
    failing_unlocks: usize,
    /// The `authorization` header of the last request that had one.
    authorization: Option<String>,
    /// The `authorization` header that every request must have, if any.
    required: Option<String>,
}

/// The rate limit. Requests beyond it are answered with 429.
#[derive(Debug)]
enum Limit {
    None,
    /// One request a second, and [`BURST`] at once.
    Rate {
        /// Until when the requests so far occupy the server.
        busy_until: Instant,
    },
    /// No requests before this time.
    Tripped {
        until: Instant,
    },
}

/// How many requests a server with a rate limit accepts at once.
const BURST: u32 = 3;
/// The time that each of them occupies.
const EACH: Duration = Duration::from_secs(1);

impl Limit {
    /// Accepts a request that arrives `now`, or returns how long it should have waited.
    fn take(&mut self, now: Instant) -> Result<(), Duration> {
        match self {
            Self::None => Ok(()),
            Self::Rate { busy_until } => {
                let then = now.max(*busy_until) + EACH;
                let wait = then.saturating_duration_since(now + EACH * BURST);
                if wait.is_zero() {
                    *busy_until = then;
                }
                if wait.is_zero() { Ok(()) } else { Err(wait) }
            }
            Self::Tripped { until } => {
                let wait = until.saturating_duration_since(now);
                if wait.is_zero() { Ok(()) } else { Err(wait) }
            }
        }
    }
}

impl Shared {
    fn decide(&mut self, lock: bool, id: &str) -> Mode {
        let is_holder = self.holder.as_deref() == Some(id);
        match (lock, &self.holder) {
            (true, Some(_)) if !is_holder => Mode::Full,
            (true, _) => {
                self.holder = Some(id.to_owned());
                Mode::Granted
            }
            (false, _) => {
                self.holder.take_if(|_| is_holder);
                Mode::Granted
            }
        }
    }
}

/// A lock server, which can be stopped and started again on the same address.
#[derive(Debug)]
pub struct LockServer {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    task: Option<JoinHandle<()>>,
}

impl LockServer {
    /// Starts a server in this mode.
    pub async fn start(mode: Mode) -> Self {
        let shared = Arc::new(Mutex::new(Shared {
            mode: watch::Sender::new(mode),
            calls: Vec::new(),
            holder: None,
            requests: 0,
            limit: Limit::None,
            failing_unlocks: 0,
            authorization: None,
            required: None,
        }));
        let mut server = Self { address: own_address(), shared, task: None };
        server.start_again().await;
        server
    }

    /// Starts the server that was stopped.
    pub async fn start_again(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        let router = Router::new()
            .route("/base/v1/pre-reboot", post(lock))
            .route("/base/v1/steady-state", post(unlock))
            .route("/granted", post(async || StatusCode::OK).get(async || StatusCode::OK))
            .with_state(Arc::clone(&self.shared));
        self.task = Some(tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }));
    }

    /// Stops the server: connections are refused.
    pub async fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            drop(task.await);
        }
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}/base", self.address)
    }

    /// The section of the orchestrator's configuration that makes it use this server.
    pub fn config(&self) -> String {
        let quick = "retry-interval = \"100ms\"\nrequest-interval = \"10ms\"";
        format!("[fleet-lock]\nurl = \"{}\"\n{quick}", self.url())
    }

    /// The same with the default rate, and with a password in the URL.
    pub fn config_with_default_rate(&self) -> String {
        let url = format!("http://orchestrator:pa%2Dssword@{}/base", self.address);
        format!("[fleet-lock]\nurl = \"{url}\"\nretry-interval = \"1s\"")
    }

    /// Accepts one request a second, three at once, from now on, and answers the others with 429.
    pub fn limit_rate(&self) {
        self.shared().limit = Limit::Rate { busy_until: Instant::now() };
    }

    /// Answers all requests with 429 during `pause`.
    pub fn trip(&self, pause: Duration) {
        self.shared().limit = Limit::Tripped { until: Instant::now() + pause };
    }

    /// Whether it still answers 429 after [`Self::trip`].
    pub fn is_tripped(&self) -> bool {
        matches!(self.shared().limit, Limit::Tripped { until } if Instant::now() < until)
    }

    /// Answers the next `count` unlock requests with 500.
    pub fn fail_unlocks(&self, count: usize) {
        self.shared().failing_unlocks = count;
    }

    /// How many of these failures are left.
    pub fn failing_unlocks(&self) -> usize {
        self.shared().failing_unlocks
    }

    /// Answers 401 to requests without this `user:password`.
    pub fn require_credentials(&self, credentials: &str) {
        self.shared().required = Some(format!("Basic {}", BASE64_STANDARD.encode(credentials)));
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }

    /// Changes the mode.
    pub fn set_mode(&self, mode: Mode) {
        self.shared().mode.send_replace(mode);
    }

    /// Number of requests received, answered or not.
    pub fn request_count(&self) -> usize {
        self.shared().requests
    }

    /// The `authorization` header of the last request that had one.
    pub fn authorization(&self) -> Option<String> {
        self.shared().authorization.clone()
    }

    /// The holder of the only slot.
    pub fn holder(&self) -> Option<String> {
        self.shared().holder.clone()
    }

    /// Number of requests answered with 429.
    pub fn limited_count(&self) -> usize {
        self.shared().calls.iter().filter(|call| call.ends_with(": limited")).count()
    }

    /// The requests that it granted, such as `lock default/h01`. Refused ones end in `: refused`; repetitions of them are
    /// listed once.
    pub fn calls(&self) -> Vec<String> {
        let mut calls = self.shared().calls.clone();
        calls.dedup_by(|next, last| next == last && next.ends_with(": refused"));
        calls
    }
}

impl Drop for LockServer {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

async fn lock(State(shared): State<Arc<Mutex<Shared>>>, headers: HeaderMap, body: String) -> Response {
    until_answering(&shared).await;
    answer("lock", &shared, &headers, &body)
}

async fn unlock(State(shared): State<Arc<Mutex<Shared>>>, headers: HeaderMap, body: String) -> Response {
    until_answering(&shared).await;
    answer("unlock", &shared, &headers, &body)
}

async fn until_answering(shared: &Mutex<Shared>) {
    let mut mode = {
        let mut shared = shared.lock().unwrap();
        shared.requests += 1;
        shared.mode.subscribe()
    };
    mode.wait_for(|mode| *mode != Mode::Nothing).await.unwrap();
}

fn answer(what: &str, shared: &Mutex<Shared>, headers: &HeaderMap, body: &str) -> Response {
    assert_eq!(headers["fleet-lock-protocol"], "true");
    let body: Value = serde_json::from_str(body).unwrap();
    let params = &body["client_params"];
    let (group, id) = (params["group"].as_str().unwrap(), params["id"].as_str().unwrap());
    let mut shared = shared.lock().unwrap();
    if let Some(value) = headers.get("authorization") {
        shared.authorization = Some(value.to_str().unwrap().to_owned());
    }
    let shown = headers.get("authorization").map(HeaderValue::as_bytes);
    if shared.required.as_ref().is_some_and(|required| shown != Some(required.as_bytes())) {
        shared.calls.push(format!("{what} {group}/{id}: unauthorized"));
        let body = json!({"kind": "unauthorized", "value": "who are you?"});
        return (StatusCode::UNAUTHORIZED, body.to_string()).into_response();
    }
    if let Err(wait) = shared.limit.take(Instant::now()) {
        shared.calls.push(format!("{what} {group}/{id}: limited"));
        let seconds = wait.as_secs_f64().ceil().to_string();
        return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", seconds)], "later").into_response();
    }
    if what == "unlock" && shared.failing_unlocks > 0 {
        shared.failing_unlocks -= 1;
        shared.calls.push(format!("{what} {group}/{id}: refused"));
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let mode = *shared.mode.borrow();
    let mode = match mode {
        Mode::OneSlot => shared.decide(what == "lock", id),
        fixed @ (Mode::Granted
        | Mode::Full
        | Mode::Accepted
        | Mode::Redirect
        | Mode::Page
        | Mode::Nothing) => fixed,
    };
    let refused = if mode == Mode::Granted { "" } else { ": refused" };
    shared.calls.push(format!("{what} {group}/{id}{refused}"));
    match mode {
        Mode::Granted | Mode::OneSlot | Mode::Nothing => StatusCode::OK.into_response(),
        Mode::Full => {
            let body = json!({"kind": "failed_lock_semaphore_full", "value": "semaphore currently full"});
            (StatusCode::CONFLICT, body.to_string()).into_response()
        }
        Mode::Accepted => StatusCode::ACCEPTED.into_response(),
        Mode::Redirect => (StatusCode::TEMPORARY_REDIRECT, [("location", "/granted")]).into_response(),
        Mode::Page => (StatusCode::INTERNAL_SERVER_ERROR, "<h1>Oops</h1>").into_response(),
    }
}
