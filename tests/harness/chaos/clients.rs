//! Operators who change the configuration through any orchestrator, and lock clients that compete for the one slot of a
//! group. The answers they get are collected and checked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};

use crate::host::APPLICATION;
use crate::random::Random;
use crate::rest::Rest;

/// The group that the lock clients compete for. It has one slot.
pub const OUTSIDE: &str = "outside";
const CONFIG: &str = "/v1/config/os-upgrade";
const LOCK: &str = "/v1/pre-reboot";
const UNLOCK: &str = "/v1/steady-state";
const TRIGGER: &str = "/v1/state/os-upgrade/trigger-upgrade-site";
/// Number of clients that compete for the slot.
const LOCK_CLIENTS: usize = 2;
const PAUSE: Duration = Duration::from_millis(50);

/// The answers of one run.
#[derive(Debug, Clone, Default)]
pub struct Outcomes {
    /// Marks of the configurations whose PUT was answered 2xx, in order.
    pub granted: Vec<String>,
    /// Marks of those whose answer was that nothing changed.
    pub unchanged: Vec<String>,
    /// Number of requests without a certain outcome.
    pub unknown: usize,
    /// Number of grants of the slot.
    pub locks: usize,
}

/// Ids that may hold the slot although their client did not get the answer. The value is whether the id is still in use.
#[derive(Debug, Default)]
pub struct Leftovers(Mutex<BTreeMap<String, bool>>);

impl Leftovers {
    fn begin(&self, id: &str) {
        self.0.lock().unwrap().insert(id.to_owned(), true);
    }

    fn end(&self, id: &str, clean: bool) {
        let mut ids = self.0.lock().unwrap();
        if clean {
            ids.remove(id);
        } else {
            ids.insert(id.to_owned(), false);
        }
    }

    /// Ids that their client no longer uses.
    fn idle(&self) -> Vec<String> {
        let ids = self.0.lock().unwrap();
        ids.iter().filter(|(_, used)| !**used).map(|(id, _)| id.clone()).collect()
    }

    /// Marks all ids as unused.
    pub fn all_idle(&self) {
        self.0.lock().unwrap().values_mut().for_each(|used| *used = false);
    }
}

/// The clients of one run.
#[derive(Debug)]
pub struct Clients {
    rests: Vec<Rest>,
    leftovers: Arc<Leftovers>,
    max_concurrent: u64,
    random: Mutex<Random>,
    outcomes: Mutex<Outcomes>,
    /// The client that was last granted the slot and has not begun to release it.
    holder: Mutex<Option<usize>>,
    violations: Mutex<Vec<String>>,
}

impl Clients {
    /// Clients that have not sent any request yet.
    pub fn new(rests: Vec<Rest>, leftovers: Arc<Leftovers>, random: Random, max_concurrent: u64) -> Self {
        let (outcomes, holder, violations) = Default::default();
        let random = Mutex::new(random);
        Self { rests, leftovers, max_concurrent, random, outcomes, holder, violations }
    }

    /// A random orchestrator for the next request.
    fn any(&self) -> &Rest {
        let index = self.random.lock().unwrap().index(self.rests.len());
        &self.rests[index]
    }

    /// Configures the site and starts the run after `last`, retrying until that succeeds. Returns its id.
    pub async fn start_run(&self, last: Option<&str>) -> String {
        while !self.configure().await {}
        loop {
            let rest = self.any();
            // Started by this request, or by an earlier one whose answer was lost.
            let is_started = matches!(rest.try_call(Method::POST, TRIGGER, "").await, Some((204 | 409, _)));
            if !is_started {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            // An orchestrator shows what it has answered.
            match rest.newest_run_or_none().await {
                Some(id) if Some(id.as_str()) != last => return id,
                Some(_) | None => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Puts a configuration with a unique mark. Returns whether it was accepted.
    async fn configure(&self) -> bool {
        let mark = format!("mark-{}", uuid::Uuid::new_v4().simple());
        let body = config(self.max_concurrent, &mark);
        let answer = self.any().try_call(Method::PUT, CONFIG, &body).await;
        let mut outcomes = self.outcomes.lock().unwrap();
        match answer {
            Some((200..=299, _)) => {
                outcomes.granted.push(mark);
                return true;
            }
            Some((_, body)) if is_unchanged(&body) => outcomes.unchanged.push(mark),
            Some(_) | None => outcomes.unknown += 1,
        }
        false
    }

    /// Sends requests until the task is aborted.
    pub fn spawn(clients: &Arc<Self>) -> JoinHandle<()> {
        let clients = Arc::clone(clients);
        tokio::spawn(async move {
            let mut tasks = JoinSet::new();
            let operator = Arc::clone(&clients);
            tasks.spawn(async move {
                loop {
                    operator.configure().await;
                    tokio::time::sleep(PAUSE).await;
                }
            });
            for client in 0..LOCK_CLIENTS {
                let clients = Arc::clone(&clients);
                tasks.spawn(async move {
                    loop {
                        clients.lock_and_unlock(client).await;
                    }
                });
            }
            tasks.join_all().await;
        })
    }

    /// Takes the slot, if it is free, and releases it. Each attempt uses a new id, so that a request carried out long after
    /// its client gave up is not mistaken for a current one.
    async fn lock_and_unlock(&self, client: usize) {
        let id = uuid::Uuid::new_v4().simple().to_string();
        self.leftovers.begin(&id);
        let status = self.any().try_fleet_lock(LOCK, OUTSIDE, &id).await;
        if status == Some(200) {
            self.granted(client);
            tokio::time::sleep(PAUSE).await;
            self.holder.lock().unwrap().take_if(|holder| *holder == client);
            let unlocked = self.unlock(&id).await;
            self.leftovers.end(&id, unlocked);
        } else {
            // Without an answer the id may hold the slot.
            self.leftovers.end(&id, status == Some(409));
            tokio::time::sleep(PAUSE).await;
            for id in self.leftovers.idle() {
                self.unlock(&id).await;
            }
        }
    }

    async fn unlock(&self, id: &str) -> bool {
        self.any().try_fleet_lock(UNLOCK, OUTSIDE, id).await == Some(200)
    }

    fn granted(&self, client: usize) {
        self.outcomes.lock().unwrap().locks += 1;
        let before = self.holder.lock().unwrap().replace(client);
        if let Some(other) = before.filter(|other| *other != client) {
            let what = format!("the slot of {OUTSIDE} was granted to {client} while {other} held it");
            self.violations.lock().unwrap().push(what);
        }
    }

    /// The answers so far.
    pub fn outcomes(&self) -> Outcomes {
        self.outcomes.lock().unwrap().clone()
    }

    /// Answers that contradict each other.
    pub fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap().clone()
    }
}

/// The configuration that operators put. The mark identifies it.
fn config(max_concurrent: u64, mark: &str) -> String {
    json!({
        "worker-applications": [{ "name": APPLICATION }, { "name": mark }],
        "rollout": { "max-concurrent": max_concurrent },
    })
    .to_string()
}

fn is_unchanged(body: &Value) -> bool {
    body["errors"][0]["error-info"]["outcome"] == "unchanged"
}

/// Ends when an orchestrator shows the end of the run.
pub fn watch_end(rests: Vec<Rest>, id: String) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut each = JoinSet::new();
        for rest in rests {
            let id = id.clone();
            each.spawn(async move {
                while rest.run(&id).await.result().is_none() {
                    tokio::time::sleep(PAUSE).await;
                }
            });
        }
        each.join_next().await;
    })
}
