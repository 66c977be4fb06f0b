//! A FleetLock server with at most one defect, to test that the conformance check finds it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::orchestrator::own_address;

/// How long it works on a request, so that several are pending at once.
const WORK: Duration = Duration::from_millis(3);
/// How long a lock takes with [`Defect::Slow`].
const SLOW: Duration = Duration::from_millis(500);
/// With [`Defect::Busy`] one of this number of requests is refused.
const BUSY_EACH: usize = 40;

/// The one defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// No defect.
    None,
    /// Grants every request.
    GrantsEverybody,
    /// Frees some slot when a client releases one that it does not hold.
    FreesAnothersSlot,
    /// Checks whether a slot is free, and takes it later.
    LooksThenTakes,
    /// Fails on concurrent requests.
    FailsWhenBusy,
    /// Answers a grant with 202.
    Accepts,
    /// Sends clients without credentials to a page where they can log in.
    SendsToLogin,
    /// Answers 200 without a body.
    EmptyBody,
    /// Answers 500 with an HTML page when all slots are held.
    PageWhenFull,
    /// Accepts requests without the protocol's header.
    TakesMissingHeader,
    /// Accepts GET in place of POST.
    TakesGet,
    /// Redirects paths with two slashes.
    RedirectsSlashes,
    /// Refuses to release a slot that is not held.
    RefusesIdleUnlock,
    /// Refuses a client that holds a slot already.
    NotRecursive,
    /// Ignores the case of ids.
    IgnoresCase,
    /// Ignores what follows the first JSON value.
    TakesTrailing,
    /// Never releases a slot.
    KeepsSlots,
    /// Grants one slot too many.
    OneTooMany,
    /// Locks slowly, even if the client no longer waits.
    Slow,
    /// Answers that a lock failed, and grants it later.
    GrantsLate,
    /// Refuses one request of many, and those of the next second, with `retry-after`. This conforms to the protocol.
    Busy,
}

#[derive(Debug)]
struct Shared {
    defect: Defect,
    slots: usize,
    holders: Mutex<BTreeSet<String>>,
    busy: Mutex<usize>,
    refused: AtomicUsize,
    unlocked: AtomicUsize,
    requests: AtomicUsize,
    busy_until: Mutex<Option<Instant>>,
    busy_refusals: AtomicUsize,
}

/// The server. It stops when dropped.
#[derive(Debug)]
pub struct FaultyLockServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl FaultyLockServer {
    /// A server of a group `default` with this number of slots, and this defect.
    pub async fn start(slots: usize, defect: Defect) -> Self {
        let shared = Arc::new(Shared {
            defect,
            slots,
            holders: Mutex::default(),
            busy: Mutex::default(),
            refused: AtomicUsize::default(),
            unlocked: AtomicUsize::default(),
            requests: AtomicUsize::default(),
            busy_until: Mutex::default(),
            busy_refusals: AtomicUsize::default(),
        });
        let address = own_address();
        let listener = TcpListener::bind(address).await.unwrap();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared, task }
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}/base", self.address)
    }

    /// The holders of slots.
    pub fn holders(&self) -> Vec<String> {
        self.shared.holders.lock().unwrap().iter().cloned().collect()
    }

    /// Number of answers that all slots are held.
    pub fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Number of released slots.
    pub fn unlocked(&self) -> usize {
        self.shared.unlocked.load(Ordering::Relaxed)
    }

    /// Number of requests in progress, including those whose client no longer waits.
    pub fn working(&self) -> usize {
        *self.shared.busy.lock().unwrap()
    }

    /// Number of requests refused by [`Defect::Busy`].
    pub fn busy_refusals(&self) -> usize {
        self.shared.busy_refusals.load(Ordering::Relaxed)
    }

    /// Gives a slot to this id.
    pub fn occupy(&self, id: &str) {
        self.shared.holders.lock().unwrap().insert(id.to_owned());
    }
}

impl Drop for FaultyLockServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn error(status: u16, kind: &str) -> Response {
    let body = json!({ "kind": kind, "value": format!("in words: {kind}") });
    (StatusCode::from_u16(status).unwrap(), axum::Json(body)).into_response()
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let defect = shared.defect;
    if defect == Defect::Busy && !shared.is_available() {
        return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")], "later").into_response();
    }
    let path = uri.path();
    if defect == Defect::RedirectsSlashes && path.contains("//") {
        return (StatusCode::MOVED_PERMANENTLY, [("location", path.replace("//", "/"))]).into_response();
    }
    if defect == Defect::SendsToLogin {
        return (StatusCode::FOUND, [("location", "/login")]).into_response();
    }
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let lock = match segments[..] {
        ["base", "v1", "pre-reboot"] => true,
        ["base", "v1", "steady-state"] => false,
        _ => return error(404, "not_found"),
    };
    if method != Method::POST && defect != Defect::TakesGet {
        return error(405, "method_not_allowed");
    }
    let has_header = headers.get("fleet-lock-protocol").is_some_and(|value| value == "true");
    if !has_header && defect != Defect::TakesMissingHeader {
        return error(400, "missing_header");
    }
    let read = if defect == Defect::TakesTrailing {
        serde_json::Deserializer::from_slice(&body).into_iter::<Value>().next().and_then(Result::ok)
    } else {
        serde_json::from_slice::<Value>(&body).ok()
    };
    let params = read.unwrap_or_default()["client_params"].clone();
    let text = |key: &str| params[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let (Some(id), Some(group)) = (text("id"), text("group")) else {
        return error(400, "bad_request");
    };
    if group != "default" {
        return error(400, "unknown_group");
    }
    let id = if defect == Defect::IgnoresCase { id.to_lowercase() } else { id };
    shared.decide(lock, id).await
}

impl Shared {
    fn is_available(&self) -> bool {
        let mut until = self.busy_until.lock().unwrap();
        let now = Instant::now();
        let is_available = until.is_none_or(|until| until <= now)
            && !(self.requests.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(BUSY_EACH);
        if is_available {
            *until = None;
        } else {
            self.busy_refusals.fetch_add(1, Ordering::Relaxed);
            until.get_or_insert(now + Duration::from_secs(1));
        }
        is_available
    }

    /// A lock that is carried out whether or not the client still waits.
    async fn decide_late(self: Arc<Self>, id: String) -> Response {
        *self.busy.lock().unwrap() += 1;
        let shared = Arc::clone(&self);
        let done = tokio::spawn(async move {
            tokio::time::sleep(SLOW).await;
            let answer = shared.lock(id).await;
            *shared.busy.lock().unwrap() -= 1;
            answer
        });
        if self.has(Defect::GrantsLate) { error(503, "unavailable") } else { done.await.unwrap() }
    }

    async fn decide(self: Arc<Self>, lock: bool, id: String) -> Response {
        if lock && (self.has(Defect::Slow) || self.has(Defect::GrantsLate)) {
            return self.decide_late(id).await;
        }
        *self.busy.lock().unwrap() += 1;
        // Lets the other pending requests run in between.
        tokio::time::sleep(WORK).await;
        let others = {
            let mut busy = self.busy.lock().unwrap();
            *busy -= 1;
            *busy
        };
        if self.defect == Defect::FailsWhenBusy && others > 0 {
            return error(500, "failed");
        }
        if lock { self.lock(id).await } else { self.unlock(&id) }
    }

    fn has(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    fn admits(&self, holders: &BTreeSet<String>, id: &str) -> bool {
        let slots = self.slots + usize::from(self.has(Defect::OneTooMany));
        let again = holders.contains(id);
        let free = holders.len() < slots;
        self.has(Defect::GrantsEverybody)
            || if self.has(Defect::NotRecursive) { free && !again } else { free || again }
    }

    async fn lock(&self, id: String) -> Response {
        if self.has(Defect::LooksThenTakes) {
            if !self.admits(&self.holders.lock().unwrap(), &id) {
                return error(409, "full");
            }
            tokio::time::sleep(WORK).await;
            self.holders.lock().unwrap().insert(id);
            return self.granted();
        }
        let mut holders = self.holders.lock().unwrap();
        if self.admits(&holders, &id) {
            holders.insert(id);
            self.granted()
        } else if self.has(Defect::PageWhenFull) {
            (StatusCode::INTERNAL_SERVER_ERROR, "<h1>Oops</h1>").into_response()
        } else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            error(409, "full")
        }
    }

    fn unlock(&self, id: &str) -> Response {
        let mut holders = self.holders.lock().unwrap();
        if self.has(Defect::KeepsSlots) {
            return self.granted();
        }
        let held = holders.remove(id);
        self.unlocked.fetch_add(1, Ordering::Relaxed);
        if !held && self.has(Defect::FreesAnothersSlot) {
            holders.pop_first();
        }
        if !held && self.has(Defect::RefusesIdleUnlock) {
            return error(409, "not_held");
        }
        self.granted()
    }

    fn granted(&self) -> Response {
        if self.has(Defect::Accepts) {
            (StatusCode::ACCEPTED, axum::Json(json!({}))).into_response()
        } else if self.has(Defect::EmptyBody) {
            StatusCode::OK.into_response()
        } else {
            axum::Json(json!({})).into_response()
        }
    }
}
