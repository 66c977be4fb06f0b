//! Floods: one host sends as many messages as it can, while runs of other hosts go on. Nothing but its own credentials is
//! used.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_nats::{Client, HeaderMap, Message, jetstream};
use futures::StreamExt as _;
use os_upgrade_protocol::{Announcement, ApplicationName, HostName, Progress, subject};
use reqwest::Method;
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::files;
use crate::host::{APPLICATION, Host};
use crate::memory::Memory;
use crate::orchestrator::Orchestrator;
use crate::rest::Rest;
use crate::secured_nats::SecuredNats;
use crate::wait::within;

/// The host that floods.
const FLOODER: &str = "flooder";
/// How long the upgrade of a host takes, in seconds.
const UPGRADE_SECS: &str = "0.2";
/// Undisturbed runs that are measured.
const UNDISTURBED_RUNS: u32 = 2;
/// The subject of the floor's messages, in the orchestrators' account. Nobody listens to it.
const FLOOR: &str = "floods.floor";
/// A header of the last message.
const LAST: &str = "Last";
/// The time between two bursts of messages.
const BURST_INTERVAL: Duration = Duration::from_millis(10);
/// The time between two looks at a run.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time between two looks at the site.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);
/// How long a run may take, before it counts as incomplete.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long a restart may take.
const RESTART_PATIENCE: Duration = Duration::from_mins(5);

/// How much longer a run under a flood may take, compared to one while the same messages go to nobody, in percent. That they
/// are sent, and go through the nats-server, takes its share of the machine whatever the orchestrator does.
const SLOWER_PERCENT_MAX: u32 = 20;
/// By how many bytes the orchestrator's memory may grow.
const MEMORY_MAX: u64 = 64 << 20;
/// By how many bytes the orchestrator's data may grow.
const DATA_MAX: u64 = 4 << 20;
/// By how many bytes the log may grow.
const LOG_MAX: u64 = 256 << 10;

/// What the host sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Valid announcements, each of another application.
    Announcements,
    /// Announcements that cannot be read.
    Junk,
    /// Heartbeats.
    Heartbeats,
    /// Progress.
    Progress,
    /// Replies to no command.
    Replies,
    /// Versions.
    Versions,
    /// Requests for its consumer.
    Consumers,
}

impl Kind {
    /// How many messages a second a flood has, unless the bus takes less: of a kind that the bus stores, each of which waits
    /// for the disk; of one that makes the bus work; and of one that it passes on.
    pub const fn per_second(self) -> u32 {
        match self {
            Self::Announcements | Self::Junk | Self::Replies | Self::Versions => 500,
            Self::Consumers => 2_000,
            Self::Heartbeats | Self::Progress => 20_000,
        }
    }

    /// The subject and the payload of message number `number`.
    fn message(self, host: &HostName, number: u64) -> (String, Vec<u8>) {
        let application = || ApplicationName::new(&format!("application-{number}")).unwrap();
        match self {
            Self::Announcements => {
                let announcement = Announcement::new(host.clone(), application());
                (subject::worker(&application(), host), announcement.to_payload())
            }
            Self::Junk => (subject::worker(&application(), host), b"junk".to_vec()),
            Self::Heartbeats => (subject::presence(host), Vec::new()),
            Self::Progress => (subject::progress(host), Progress::new(7, 50, "unpacking").to_payload()),
            Self::Replies => {
                (subject::reply(host), br#"{"action":"upgrade","result":"it did not work"}"#.to_vec())
            }
            Self::Versions => (subject::versions(host), format!(r#"{{"linux":"{number}"}}"#).into_bytes()),
            Self::Consumers => (subject::consumer_request(host), b"{}".to_vec()),
        }
    }
}

/// How much is sent.
#[derive(Debug, Clone, Copy)]
pub struct Flood {
    /// The kind of its messages.
    pub kind: Kind,
    /// How long it lasts. The last run that began in this time is still completed under it.
    pub lasts: Duration,
    /// Messages a second, unless the bus takes less.
    pub per_second: u32,
    /// The other hosts.
    pub hosts: usize,
}

/// What a flood has cost.
#[derive(Debug)]
pub struct Cost {
    flood: Flood,
    /// Messages sent.
    sent: u64,
    /// How long an undisturbed run takes.
    undisturbed: Duration,
    /// How long a run takes while the same messages go to nobody.
    floor: Duration,
    /// How long a run takes under the flood.
    flooded: Duration,
    /// How often the orchestrator lost its leadership, also after a restart.
    leaderships_lost: usize,
    /// Other hosts that were not reachable at some moment.
    unreachable: BTreeSet<String>,
    /// Runs that did not upgrade every host.
    incomplete: usize,
    /// By how many bytes the memory, the data directory, the streams and the log have grown.
    memory: u64,
    data: u64,
    streams: u64,
    log: u64,
    /// How long a restart takes afterwards.
    restart: Duration,
}

impl Cost {
    /// What exceeds the bounds.
    pub fn excesses(&self) -> Vec<String> {
        let is_slow = self.flooded > self.floor * (100 + SLOWER_PERCENT_MAX) / 100;
        let slow = is_slow.then(|| format!("the run is slowed down: {self}"));
        slow.into_iter().chain(self.harm()).collect()
    }

    /// What exceeds the bounds, whatever else the machine does.
    pub fn harm(&self) -> Vec<String> {
        let checks = [
            (self.leaderships_lost > 0, "leadership is lost"),
            (!self.unreachable.is_empty(), "other hosts are not reachable"),
            (self.incomplete > 0, "a run did not upgrade every host"),
            (self.memory > MEMORY_MAX, "memory grows"),
            (self.data > DATA_MAX, "data grows"),
            (self.log > LOG_MAX, "the log grows"),
        ];
        let exceeded = checks.into_iter().filter(|(exceeds, _)| *exceeds);
        exceeded.map(|(_, what)| format!("{what}: {self}")).collect()
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "| {:?} | {} | {:.2} s | {:.2} s | {:.2} s | {} | {} | {} | {} | {} | {} | {:.1} s |",
            self.flood.kind,
            self.sent,
            self.undisturbed.as_secs_f64(),
            self.floor.as_secs_f64(),
            self.flooded.as_secs_f64(),
            self.leaderships_lost,
            self.unreachable.len(),
            kib(self.memory),
            kib(self.data),
            kib(self.streams),
            kib(self.log),
            self.restart.as_secs_f64(),
        )
    }
}

/// The head of a table of costs.
pub const HEAD: &str = "| flood | sent | undisturbed run | run beside the floor | run under the flood | leaderships lost | unreachable | memory | data | streams | log | restart |\n\
                        |---|---|---|---|---|---|---|---|---|---|---|---|";

fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes / 1024)
}

/// A site with hosts that are upgraded again and again.
struct FloodedSite {
    // First field: dropped before what it uses.
    hosts: Vec<Host>,
    orchestrator: Orchestrator,
    nats: SecuredNats,
    _directory: TempDir,
}

/// Floods a new site.
pub async fn run(flood: Flood) -> Cost {
    let mut site = FloodedSite::start(flood.hosts).await;
    let credentials = site.nats.admit(FLOODER).await;
    let client = site.nats.client(&credentials).await;
    let orchestrators = site.nats.client(&site.nats.issued().orchestrator_credentials()).await;
    let mut undisturbed = Runs::default();
    for _ in 0..UNDISTURBED_RUNS {
        undisturbed.add(site.upgrade_all().await);
    }
    let sender = Sender::start(orchestrators.clone(), flood, |kind, host, number| {
        (FLOOR.to_owned(), kind.message(host, number).1)
    });
    let compared = site.upgrade_for(flood.lasts / 2).await;
    sender.stop().await;
    let sizes = site.sizes();
    let log = site.orchestrator.log().len();
    let watch = Watch::start(site.orchestrator.rest.clone(), site.orchestrator.pid());
    let sender = Sender::start(client.clone(), flood, Kind::message);
    let flooded = site.upgrade_for(flood.lasts).await;
    let sent = sender.stop().await;
    assert_arrival(&client, &orchestrators, flood.kind, sent).await;
    let watched = watch.stop().await;
    assert!(watched.looks > 0, "the site was never seen");
    let after = site.sizes();
    let grown_log = site.orchestrator.log().len() - log;
    let began = Instant::now();
    site.orchestrator.kill_and_start().await;
    within(RESTART_PATIENCE, "the orchestrator to be ready again", async || {
        site.orchestrator.readiness().await?.is_empty().then_some(())
    })
    .await;
    let restart = began.elapsed();
    let mut incomplete = undisturbed.incomplete + compared.incomplete + flooded.incomplete;
    if incomplete == 0 {
        let (_, complete) = site.upgrade_all().await;
        incomplete += usize::from(!complete);
    }
    let lost = site.orchestrator.log()[log..].matches("no longer leading").count();
    Cost {
        flood,
        sent,
        undisturbed: undisturbed.mean(),
        floor: compared.mean(),
        flooded: flooded.mean(),
        leaderships_lost: lost,
        unreachable: watched.unreachable,
        incomplete,
        memory: watched.memory_max.saturating_sub(sizes.memory),
        data: after.data.saturating_sub(sizes.data),
        streams: after.streams.saturating_sub(sizes.streams),
        log: grown_log as u64,
        restart,
    }
}

/// Asserts that one more message of this client gets where the orchestrators listen. The nats-server has taken all before it
/// then, as they came over the same connection.
async fn assert_arrival(client: &Client, orchestrators: &Client, kind: Kind, number: u64) {
    let (to, payload) = kind.message(&HostName::new(FLOODER).unwrap(), number);
    let mut messages = orchestrators.subscribe(to.clone()).await.unwrap();
    // Its answer comes once the server has the subscription; a flush only tells that the request for it was written.
    jetstream::new(orchestrators.clone()).query_account().await.unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(LAST, "1");
    client.publish_with_headers(to, headers, payload.into()).await.unwrap();
    let is_last = |message: Message| message.headers.is_some_and(|headers| headers.get(LAST).is_some());
    let arrived = async { while !is_last(messages.next().await.expect("the subscription ended")) {} };
    let arrived = tokio::time::timeout(PATIENCE, arrived).await;
    assert!(arrived.is_ok(), "the flood does not get through");
}

/// Sends messages until it is stopped.
struct Sender {
    task: JoinHandle<()>,
    sent: Arc<AtomicU64>,
}

impl Sender {
    fn start(
        client: Client,
        flood: Flood,
        message: impl Fn(Kind, &HostName, u64) -> (String, Vec<u8>) + Send + 'static,
    ) -> Self {
        let sent = Arc::<AtomicU64>::default();
        let counter = Arc::clone(&sent);
        let task = tokio::spawn(async move {
            let host = HostName::new(FLOODER).unwrap();
            let began = Instant::now();
            let mut bursts = tokio::time::interval(BURST_INTERVAL);
            loop {
                bursts.tick().await;
                let due = began.elapsed().as_millis() * u128::from(flood.per_second) / 1000;
                for number in counter.load(Ordering::Relaxed)..due.try_into().unwrap() {
                    let (to, payload) = message(flood.kind, &host, number);
                    client.publish(to, payload.into()).await.unwrap();
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { task, sent }
    }

    /// Returns how many messages were sent.
    async fn stop(self) -> u64 {
        self.task.abort();
        let ended = self.task.await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "the flood ended by itself");
        self.sent.load(Ordering::Relaxed)
    }
}

/// Runs, one after the other.
#[derive(Debug, Default)]
struct Runs {
    count: u32,
    took: Duration,
    incomplete: usize,
}

impl Runs {
    fn add(&mut self, (took, complete): (Duration, bool)) {
        self.count += 1;
        self.took += took;
        self.incomplete += usize::from(!complete);
    }

    fn mean(&self) -> Duration {
        self.took.checked_div(self.count).unwrap_or_default()
    }
}

#[derive(Debug)]
struct Sizes {
    memory: u64,
    data: u64,
    streams: u64,
}

impl FloodedSite {
    async fn start(hosts: usize) -> Self {
        let nats = SecuredNats::start(1).await;
        let mut orchestrator = nats.orchestrator();
        orchestrator.set_environment("RUST_LOG", "info");
        orchestrator.start_ready().await;
        orchestrator.rest.configure(APPLICATION).await;
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("said");
        let mut running = Vec::new();
        for number in 1..=hosts {
            let mut host = nats.host(&log, &format!("h{number:02}")).await.takes(UPGRADE_SECS);
            host.start();
            running.push(host);
        }
        let names: Vec<&str> = running.iter().map(Host::name).collect();
        orchestrator.rest.await_scheduled(&names).await;
        Self { hosts: running, orchestrator, nats, _directory: directory }
    }

    /// Runs again and again for this long, until a run is incomplete.
    async fn upgrade_for(&self, lasts: Duration) -> Runs {
        let began = Instant::now();
        let mut runs = Runs::default();
        while began.elapsed() < lasts && runs.incomplete == 0 {
            runs.add(self.upgrade_all().await);
        }
        runs
    }

    /// Runs once. Returns how long it took, and whether every host was upgraded.
    async fn upgrade_all(&self) -> (Duration, bool) {
        let rest = &self.orchestrator.rest;
        let began = Instant::now();
        let before = rest.newest_run_or_none().await;
        let trigger = "/v1/state/os-upgrade/trigger-upgrade-site";
        let mut is_started = false;
        while began.elapsed() < PATIENCE {
            if !is_started {
                let answer = rest.try_call(Method::POST, trigger, "").await;
                is_started = answer.is_some_and(|(status, _)| status == 204);
            }
            let id = rest.newest_run_or_none().await.filter(|id| Some(id) != before.as_ref());
            if let Some(id) = id {
                let run = rest.run(&id).await;
                if run.result().is_some() {
                    let statuses = run.statuses();
                    let is_upgraded = |host: &Host| statuses.get(host.name()) == Some(&"upgraded");
                    return (began.elapsed(), self.hosts.iter().all(is_upgraded));
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        (began.elapsed(), false)
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            memory: Memory::of(self.orchestrator.pid()).unwrap().now,
            data: files::size(&self.orchestrator.directory().join("data")),
            streams: self.nats.stored(),
        }
    }
}

/// Looks at the site all the time.
struct Watch(JoinHandle<()>, Arc<Mutex<Watched>>);

#[derive(Debug, Default, Clone)]
struct Watched {
    unreachable: BTreeSet<String>,
    memory_max: u64,
    /// How often the site answered.
    looks: u64,
}

impl Watch {
    fn start(rest: Rest, pid: u32) -> Self {
        let watched = Arc::<Mutex<Watched>>::default();
        let shared = Arc::clone(&watched);
        let task = tokio::spawn(async move {
            loop {
                let hosts = rest.try_call(Method::GET, "/v1/state/os-upgrade/hosts", "").await;
                {
                    let mut watched = shared.lock().unwrap();
                    if let Some((200, hosts)) = hosts {
                        watched.looks += 1;
                        watched.unreachable.extend(unreachable(&hosts));
                    }
                    watched.memory_max = watched.memory_max.max(Memory::of(pid).unwrap().now);
                }
                tokio::time::sleep(SAMPLE_INTERVAL).await;
            }
        });
        Self(task, watched)
    }

    async fn stop(self) -> Watched {
        self.0.abort();
        drop(self.0.await);
        self.1.lock().unwrap().clone()
    }
}

/// The other hosts that are not reachable.
fn unreachable(hosts: &Value) -> BTreeSet<String> {
    let hosts = hosts.as_array().into_iter().flatten();
    let silent = hosts.filter(|host| host["reachability"] != "reachable");
    let names = silent.filter_map(|host| host["hostname"].as_str());
    names.filter(|name| *name != FLOODER).map(str::to_owned).collect()
}
