//! A FleetLock server that does everything right but one thing, to see whether that is noticed.

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

/// How long it works at a request, so that several are under way at once.
const WORK: Duration = Duration::from_millis(3);
/// How long it takes for a lock when it is slow.
const SLOW: Duration = Duration::from_millis(500);
/// Which requests it has no time for, when that is its mistake: the last of so many.
const BUSY_EACH: usize = 40;

/// The one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// None.
    Nothing,
    /// Grants whoever asks.
    GrantsEverybody,
    /// Frees some slot when somebody gives back what he does not hold.
    FreesAnothersSlot,
    /// Looks whether a slot is free, and takes it later.
    LooksThenTakes,
    /// Fails when several ask at once.
    FailsWhenBusy,
    /// 202 for a grant.
    Accepts,
    /// Sends clients without credentials to a page where they can log in.
    SendsToLogin,
    /// 200 without a body.
    EmptyBody,
    /// 500 with a page for people when all slots are held.
    PageWhenFull,
    /// Does not look at the protocol's header.
    TakesMissingHeader,
    /// Takes a GET for a POST.
    TakesGet,
    /// Redirects paths with two slashes.
    RedirectsSlashes,
    /// Refuses to let go what is not held.
    RefusesIdleUnlock,
    /// Refuses whoever holds a slot already.
    NotRecursive,
    /// Takes ids as the same that differ in capitals.
    IgnoresCase,
    /// Reads the first JSON value and nothing behind it.
    TakesTrailing,
    /// Never lets go.
    KeepsSlots,
    /// Counts one slot more than there are.
    OneTooMany,
    /// Takes long for a lock, and does it also when nobody waits for the answer any more.
    Slow,
    /// Says of a lock that it has failed, and does it later.
    GrantsLate,
    /// Has no time for one request of many and for a second after it, and says so: that is no mistake.
    Busy,
}

#[derive(Debug)]
struct Shared {
    mistake: Mistake,
    slots: usize,
    holders: Mutex<BTreeSet<String>>,
    busy: Mutex<usize>,
    refused: AtomicUsize,
    unlocked: AtomicUsize,
    asked: AtomicUsize,
    busy_until: Mutex<Option<Instant>>,
    too_early: AtomicUsize,
}

/// The server, until it is dropped.
#[derive(Debug)]
pub struct WrongLockServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl WrongLockServer {
    /// A server of a group `default` with so many slots, and with this mistake.
    pub async fn start(slots: usize, mistake: Mistake) -> Self {
        let shared = Arc::new(Shared {
            mistake,
            slots,
            holders: Mutex::default(),
            busy: Mutex::default(),
            refused: AtomicUsize::default(),
            unlocked: AtomicUsize::default(),
            asked: AtomicUsize::default(),
            busy_until: Mutex::default(),
            too_early: AtomicUsize::default(),
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

    /// Who holds a slot.
    pub fn holders(&self) -> Vec<String> {
        self.shared.holders.lock().unwrap().iter().cloned().collect()
    }

    /// How often somebody was told that all slots are held.
    pub fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// How often somebody has given a slot back.
    pub fn unlocked(&self) -> usize {
        self.shared.unlocked.load(Ordering::Relaxed)
    }

    /// How many requests are being worked at, also when nobody waits for their answer any more.
    pub fn working(&self) -> usize {
        *self.shared.busy.lock().unwrap()
    }

    /// How many requests it had no time for.
    pub fn too_early(&self) -> usize {
        self.shared.too_early.load(Ordering::Relaxed)
    }

    /// Gives a slot to somebody.
    pub fn occupy(&self, id: &str) {
        self.shared.holders.lock().unwrap().insert(id.to_owned());
    }
}

impl Drop for WrongLockServer {
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
    let mistake = shared.mistake;
    if mistake == Mistake::Busy && !shared.has_time() {
        return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")], "later").into_response();
    }
    let path = uri.path();
    if mistake == Mistake::RedirectsSlashes && path.contains("//") {
        return (StatusCode::MOVED_PERMANENTLY, [("location", path.replace("//", "/"))]).into_response();
    }
    if mistake == Mistake::SendsToLogin {
        return (StatusCode::FOUND, [("location", "/login")]).into_response();
    }
    let segments: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let lock = match segments[..] {
        ["base", "v1", "pre-reboot"] => true,
        ["base", "v1", "steady-state"] => false,
        _ => return error(404, "not_found"),
    };
    if method != Method::POST && mistake != Mistake::TakesGet {
        return error(405, "method_not_allowed");
    }
    let meant = headers.get("fleet-lock-protocol").is_some_and(|value| value == "true");
    if !meant && mistake != Mistake::TakesMissingHeader {
        return error(400, "missing_header");
    }
    let read = if mistake == Mistake::TakesTrailing {
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
    let id = if mistake == Mistake::IgnoresCase { id.to_lowercase() } else { id };
    shared.decide(lock, id).await
}

impl Shared {
    fn has_time(&self) -> bool {
        let mut until = self.busy_until.lock().unwrap();
        let now = Instant::now();
        let has_time = until.is_none_or(|until| until <= now)
            && !(self.asked.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(BUSY_EACH);
        if has_time {
            *until = None;
        } else {
            self.too_early.fetch_add(1, Ordering::Relaxed);
            until.get_or_insert(now + Duration::from_secs(1));
        }
        has_time
    }

    /// A lock that is done whether somebody waits for its answer or not.
    async fn decide_late(self: Arc<Self>, id: String) -> Response {
        *self.busy.lock().unwrap() += 1;
        let shared = Arc::clone(&self);
        let done = tokio::spawn(async move {
            tokio::time::sleep(SLOW).await;
            let answer = shared.lock(id).await;
            *shared.busy.lock().unwrap() -= 1;
            answer
        });
        if self.makes(Mistake::GrantsLate) { error(503, "unavailable") } else { done.await.unwrap() }
    }

    async fn decide(self: Arc<Self>, lock: bool, id: String) -> Response {
        if lock && (self.makes(Mistake::Slow) || self.makes(Mistake::GrantsLate)) {
            return self.decide_late(id).await;
        }
        *self.busy.lock().unwrap() += 1;
        // Everybody else who has asked comes in between.
        tokio::time::sleep(WORK).await;
        let others = {
            let mut busy = self.busy.lock().unwrap();
            *busy -= 1;
            *busy
        };
        if self.mistake == Mistake::FailsWhenBusy && others > 0 {
            return error(500, "failed");
        }
        if lock { self.lock(id).await } else { self.unlock(&id) }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == mistake
    }

    fn admits(&self, holders: &BTreeSet<String>, id: &str) -> bool {
        let slots = self.slots + usize::from(self.makes(Mistake::OneTooMany));
        let again = holders.contains(id);
        let free = holders.len() < slots;
        self.makes(Mistake::GrantsEverybody)
            || if self.makes(Mistake::NotRecursive) { free && !again } else { free || again }
    }

    async fn lock(&self, id: String) -> Response {
        if self.makes(Mistake::LooksThenTakes) {
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
        } else if self.makes(Mistake::PageWhenFull) {
            (StatusCode::INTERNAL_SERVER_ERROR, "<h1>Oops</h1>").into_response()
        } else {
            self.refused.fetch_add(1, Ordering::Relaxed);
            error(409, "full")
        }
    }

    fn unlock(&self, id: &str) -> Response {
        let mut holders = self.holders.lock().unwrap();
        if self.makes(Mistake::KeepsSlots) {
            return self.granted();
        }
        let held = holders.remove(id);
        self.unlocked.fetch_add(1, Ordering::Relaxed);
        if !held && self.makes(Mistake::FreesAnothersSlot) {
            holders.pop_first();
        }
        if !held && self.makes(Mistake::RefusesIdleUnlock) {
            return error(409, "not_held");
        }
        self.granted()
    }

    fn granted(&self) -> Response {
        if self.makes(Mistake::Accepts) {
            (StatusCode::ACCEPTED, axum::Json(json!({}))).into_response()
        } else if self.makes(Mistake::EmptyBody) {
            StatusCode::OK.into_response()
        } else {
            axum::Json(json!({})).into_response()
        }
    }
}
