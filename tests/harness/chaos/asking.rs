//! Operators who change the configuration through any orchestrator, and programs that take and give back the one slot
//! of a group: what they were answered, and what follows from it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::{JoinHandle, JoinSet};

use crate::host::APPLICATION;
use crate::random::Random;
use crate::rest::Rest;

/// The group that lock clients from outside contend for; it has one slot.
pub const OUTSIDE: &str = "outside";
const CONFIG: &str = "/v1/config/os-upgrade";
const LOCK: &str = "/v1/pre-reboot";
const UNLOCK: &str = "/v1/steady-state";
const TRIGGER: &str = "/v1/state/os-upgrade/trigger-upgrade-site";
/// Programs that contend for the slot.
const LOCK_CLIENTS: usize = 2;
const PAUSE: Duration = Duration::from_millis(50);

/// What was answered in one run.
#[derive(Debug, Clone, Default)]
pub struct Answered {
    /// The marks of the configurations whose PUT was answered 2xx, in order.
    pub granted: Vec<String>,
    /// Those that were answered with certainty that nothing was changed.
    pub unchanged: Vec<String>,
    /// Requests whose outcome was not told.
    pub unknown: usize,
    /// How often the slot was granted.
    pub locks: usize,
}

/// Ids that may hold the slot without anybody's having been told so.
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

    /// Those whose asker does not use them any more.
    fn idle(&self) -> Vec<String> {
        let ids = self.0.lock().unwrap();
        ids.iter().filter(|(_, used)| !**used).map(|(id, _)| id.clone()).collect()
    }

    /// Nobody asks any more.
    pub fn all_idle(&self) {
        self.0.lock().unwrap().values_mut().for_each(|used| *used = false);
    }
}

/// Everyone who asks in one run.
#[derive(Debug)]
pub struct Asking {
    rests: Vec<Rest>,
    leftovers: Arc<Leftovers>,
    max_concurrent: u64,
    random: Mutex<Random>,
    answered: Mutex<Answered>,
    /// Who was last told to hold the slot, and has not begun to give it back.
    holder: Mutex<Option<usize>>,
    violations: Mutex<Vec<String>>,
}

impl Asking {
    /// Nobody has asked yet.
    pub fn new(rests: Vec<Rest>, leftovers: Arc<Leftovers>, random: Random, max_concurrent: u64) -> Self {
        let (answered, holder, violations) = Default::default();
        let random = Mutex::new(random);
        Self { rests, leftovers, max_concurrent, random, answered, holder, violations }
    }

    /// Through which orchestrator the next request goes.
    fn any(&self) -> &Rest {
        let index = self.random.lock().unwrap().index(self.rests.len());
        &self.rests[index]
    }

    /// Configures the site and starts a run after the run `last`, whatever it takes; its id.
    pub async fn start_a_run(&self, last: Option<&str>) -> String {
        while !self.configure().await {}
        loop {
            let rest = self.any();
            // It is there, by this request or by an earlier one whose answer was lost.
            let is_there = matches!(rest.try_call(Method::POST, TRIGGER, "").await, Some((204 | 409, _)));
            if !is_there {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            // Who has answered shows it.
            match rest.newest_run_or_none().await {
                Some(id) if Some(id.as_str()) != last => return id,
                Some(_) | None => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Puts a configuration with a mark of its own; whether that was granted.
    async fn configure(&self) -> bool {
        let mark = format!("mark-{}", uuid::Uuid::new_v4().simple());
        let body = config(self.max_concurrent, &mark);
        let answer = self.any().try_call(Method::PUT, CONFIG, &body).await;
        let mut answered = self.answered.lock().unwrap();
        match answer {
            Some((200..=299, _)) => {
                answered.granted.push(mark);
                return true;
            }
            Some((_, body)) if says_unchanged(&body) => answered.unchanged.push(mark),
            Some(_) | None => answered.unknown += 1,
        }
        false
    }

    /// Asks until it is told to stop.
    pub fn go_on(asking: &Arc<Self>) -> JoinHandle<()> {
        let asking = Arc::clone(asking);
        tokio::spawn(async move {
            let mut everyone = JoinSet::new();
            let operator = Arc::clone(&asking);
            everyone.spawn(async move {
                loop {
                    operator.configure().await;
                    tokio::time::sleep(PAUSE).await;
                }
            });
            for client in 0..LOCK_CLIENTS {
                let asking = Arc::clone(&asking);
                everyone.spawn(async move {
                    loop {
                        asking.take_and_give_back(client).await;
                    }
                });
            }
            everyone.join_all().await;
        })
    }

    /// Takes the slot, if it is free, and gives it back. Each time under another id, so that a request that is carried
    /// out late, long after its asker has given up, is not mistaken for one of now.
    async fn take_and_give_back(&self, client: usize) {
        let id = uuid::Uuid::new_v4().simple().to_string();
        self.leftovers.begin(&id);
        let asked = self.any().try_fleet_lock(LOCK, OUTSIDE, &id).await;
        if asked == Some(200) {
            self.granted(client);
            tokio::time::sleep(PAUSE).await;
            self.holder.lock().unwrap().take_if(|holder| *holder == client);
            let given_back = self.give_back(&id).await;
            self.leftovers.end(&id, given_back);
        } else {
            // Nobody knows whether an id holds the slot whose asker was not told.
            self.leftovers.end(&id, asked == Some(409));
            tokio::time::sleep(PAUSE).await;
            for id in self.leftovers.idle() {
                self.give_back(&id).await;
            }
        }
    }

    async fn give_back(&self, id: &str) -> bool {
        self.any().try_fleet_lock(UNLOCK, OUTSIDE, id).await == Some(200)
    }

    fn granted(&self, client: usize) {
        self.answered.lock().unwrap().locks += 1;
        let before = self.holder.lock().unwrap().replace(client);
        if let Some(other) = before.filter(|other| *other != client) {
            let what = format!("the slot of {OUTSIDE} was granted to {client} while {other} held it");
            self.violations.lock().unwrap().push(what);
        }
    }

    /// What was answered so far.
    pub fn what_was_answered(&self) -> Answered {
        self.answered.lock().unwrap().clone()
    }

    /// What they were told that cannot be true.
    pub fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap().clone()
    }
}

/// The configuration that operators put: the application, how many at once, and a mark to know it by.
fn config(max_concurrent: u64, mark: &str) -> String {
    json!({
        "worker-applications": [{ "name": APPLICATION }, { "name": mark }],
        "rollout": { "max-concurrent": max_concurrent },
    })
    .to_string()
}

fn says_unchanged(body: &Value) -> bool {
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
