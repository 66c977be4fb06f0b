//! A FleetLock server that answers as the test wants, and remembers what it was asked.

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
pub enum Say {
    /// 200.
    Granted,
    /// As a semaphore of one slot does.
    OneSlot,
    /// A FleetLock error.
    Full,
    /// 202, which grants nothing.
    Accepted,
    /// A redirect to where a slot would be granted.
    Redirect,
    /// 500 with a page for people.
    Page,
    /// Nothing, until it says something else.
    Nothing,
}

#[derive(Debug)]
struct Shared {
    say: watch::Sender<Say>,
    calls: Vec<String>,
    /// Who holds the only slot, with [`Say::OneSlot`].
    holder: Option<String>,
    /// Requests that have come.
    asked: usize,
    limit: Limit,
    /// How many more requests to take a slot back are answered with 500.
    unlocks_to_fail: usize,
    /// The credentials of the last request that had any.
    authorization: Option<String>,
    /// Those that every request must have, if any.
    demanded: Option<String>,
}

/// How many requests are answered; the others are told to come back later.
#[derive(Debug)]
enum Limit {
    None,
    /// One a second, and [`BURST`] at once.
    Rate {
        /// How long the requests so far occupy the server.
        busy_until: Instant,
    },
    /// None before this time.
    Tripped {
        until: Instant,
    },
}

/// How many requests a server with a rate takes at once.
const BURST: u32 = 3;
/// The time for one of them.
const EACH: Duration = Duration::from_secs(1);

impl Limit {
    /// Takes a request that comes `now`, or says how long it should have waited.
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
    fn ask(&mut self, lock: bool, id: &str) -> Say {
        let is_holder = self.holder.as_deref() == Some(id);
        match (lock, &self.holder) {
            (true, Some(_)) if !is_holder => Say::Full,
            (true, _) => {
                self.holder = Some(id.to_owned());
                Say::Granted
            }
            (false, _) => {
                self.holder.take_if(|_| is_holder);
                Say::Granted
            }
        }
    }
}

/// A lock server, which may be stopped and started again on the same address.
#[derive(Debug)]
pub struct LockServer {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    task: Option<JoinHandle<()>>,
}

impl LockServer {
    /// A server that answers so until it is told otherwise.
    pub async fn start(say: Say) -> Self {
        let shared = Arc::new(Mutex::new(Shared {
            say: watch::Sender::new(say),
            calls: Vec::new(),
            holder: None,
            asked: 0,
            limit: Limit::None,
            unlocks_to_fail: 0,
            authorization: None,
            demanded: None,
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

    /// Ends the server: whoever asks finds nobody.
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

    /// The same with the rate that is the default, and with a password in the URL.
    pub fn config_with_default_rate(&self) -> String {
        let url = format!("http://orchestrator:pa%2Dssword@{}/base", self.address);
        format!("[fleet-lock]\nurl = \"{url}\"\nretry-interval = \"1s\"")
    }

    /// From now on it takes one request a second, three at once, and answers 429 to those beyond.
    pub fn limit_rate(&self) {
        self.shared().limit = Limit::Rate { busy_until: Instant::now() };
    }

    /// It answers 429 for so long.
    pub fn trip(&self, pause: Duration) {
        self.shared().limit = Limit::Tripped { until: Instant::now() + pause };
    }

    /// Whether it answers 429 yet, after [`Self::trip`].
    pub fn is_tripped(&self) -> bool {
        matches!(self.shared().limit, Limit::Tripped { until } if Instant::now() < until)
    }

    /// It answers 500 to so many more requests to take a slot back.
    pub fn fail_unlocks(&self, count: usize) {
        self.shared().unlocks_to_fail = count;
    }

    /// How many of them are left.
    pub fn unlocks_to_fail(&self) -> usize {
        self.shared().unlocks_to_fail
    }

    /// It answers 401 to whoever does not send this `user:password`.
    pub fn demand(&self, credentials: &str) {
        self.shared().demanded = Some(format!("Basic {}", BASE64_STANDARD.encode(credentials)));
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }

    /// Answers so from now on.
    pub fn say(&self, say: Say) {
        self.shared().say.send_replace(say);
    }

    /// How many requests have come, answered or not.
    pub fn asked(&self) -> usize {
        self.shared().asked
    }

    /// The credentials of the last request that had any, as they were sent.
    pub fn authorization(&self) -> Option<String> {
        self.shared().authorization.clone()
    }

    /// Who holds the only slot.
    pub fn holder(&self) -> Option<String> {
        self.shared().holder.clone()
    }

    /// What it was asked when that was too much.
    pub fn limited(&self) -> usize {
        self.shared().calls.iter().filter(|call| call.ends_with(": limited")).count()
    }

    /// What it was asked and granted, such as `lock default/h01`; what was refused ends in `: refused`, and counts
    /// once when it was asked again and again.
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
    speaks(&shared).await;
    answer("lock", &shared, &headers, &body)
}

async fn unlock(State(shared): State<Arc<Mutex<Shared>>>, headers: HeaderMap, body: String) -> Response {
    speaks(&shared).await;
    answer("unlock", &shared, &headers, &body)
}

async fn speaks(shared: &Mutex<Shared>) {
    let mut say = {
        let mut shared = shared.lock().unwrap();
        shared.asked += 1;
        shared.say.subscribe()
    };
    say.wait_for(|say| *say != Say::Nothing).await.unwrap();
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
    if shared.demanded.as_ref().is_some_and(|demanded| shown != Some(demanded.as_bytes())) {
        shared.calls.push(format!("{what} {group}/{id}: unauthorized"));
        let body = json!({"kind": "unauthorized", "value": "who are you?"});
        return (StatusCode::UNAUTHORIZED, body.to_string()).into_response();
    }
    if let Err(wait) = shared.limit.take(Instant::now()) {
        shared.calls.push(format!("{what} {group}/{id}: limited"));
        let seconds = wait.as_secs_f64().ceil().to_string();
        return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", seconds)], "later").into_response();
    }
    if what == "unlock" && shared.unlocks_to_fail > 0 {
        shared.unlocks_to_fail -= 1;
        shared.calls.push(format!("{what} {group}/{id}: refused"));
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let say = *shared.say.borrow();
    let say = match say {
        Say::OneSlot => shared.ask(what == "lock", id),
        fixed @ (Say::Granted | Say::Full | Say::Accepted | Say::Redirect | Say::Page | Say::Nothing) => {
            fixed
        }
    };
    let refused = if say == Say::Granted { "" } else { ": refused" };
    shared.calls.push(format!("{what} {group}/{id}{refused}"));
    match say {
        Say::Granted | Say::OneSlot | Say::Nothing => StatusCode::OK.into_response(),
        Say::Full => {
            let body = json!({"kind": "failed_lock_semaphore_full", "value": "semaphore currently full"});
            (StatusCode::CONFLICT, body.to_string()).into_response()
        }
        Say::Accepted => StatusCode::ACCEPTED.into_response(),
        Say::Redirect => (StatusCode::TEMPORARY_REDIRECT, [("location", "/granted")]).into_response(),
        Say::Page => (StatusCode::INTERNAL_SERVER_ERROR, "<h1>Oops</h1>").into_response(),
    }
}
