//! What a lost part costs: in each of many runs of a site one part is killed or restarted, and the time that the run takes
//! is compared with an undisturbed one. The site is that of `docker/compose.yaml`: three nats-servers with an account for
//! each host, two orchestrators, three hosts that reboot.

use std::fmt;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use os_upgrade_protocol::subject;
use reqwest::Method;
use tempfile::TempDir;

use crate::host::{APPLICATION, Host};
use crate::orchestrator::Orchestrator;
use crate::random::Random;
use crate::rest::{Rest, Run};
use crate::secured_nats::SecuredNats;
use crate::wait::{eventually, within};

const SERVERS: usize = 3;
const ORCHESTRATORS: usize = 2;
const HOSTS: usize = 3;
/// How long the upgrade of a host takes, in seconds.
const UPGRADE_SECS: &str = "0.3";
/// How many undisturbed runs are measured; the fastest counts.
const UNDISTURBED_RUNS: usize = 3;
/// How long a killed part is away, if it is started again at once.
const AWAY: Duration = Duration::from_millis(500);
/// Timeout of an API request.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How long a run may take before the test fails.
const PATIENCE: Duration = Duration::from_mins(2);

/// What a loss may cost, beyond the undisturbed run.
const COST_MAX: Duration = Duration::from_secs(6);
/// The same where the leader is killed: the lease, and a second.
const LEADER_COST_MAX: Duration = Duration::from_secs(7);

/// What is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Loss {
    /// A worker is killed, and started again.
    Worker,
    /// A worker is killed and started again up to ten seconds before the run.
    WorkerBefore,
    /// The following orchestrator is killed, and started again.
    Follower,
    /// The leading orchestrator is stopped gracefully, and started again.
    LeaderRestarted,
    /// The leading orchestrator is killed, and started again.
    Leader,
    /// The leading orchestrator is killed, and is away until the run has ended.
    LeaderAway,
    /// A nats-server that leads no stream is killed, and started again.
    Server,
    /// A nats-server that leads no stream is killed and started again up to ten seconds before the run.
    ServerBefore,
    /// A nats-server that leads no stream is killed, and is away until the run has ended.
    ServerAway,
    /// The nats-server that leads the control stream is killed, and started again.
    StreamLeader,
}

impl Loss {
    /// What it may cost; `None` where the nats-servers elect leaders of streams, which takes them up to nine seconds.
    const fn cost_max(self) -> Option<Duration> {
        match self {
            Self::Worker
            | Self::WorkerBefore
            | Self::Follower
            | Self::LeaderRestarted
            | Self::Server
            | Self::ServerBefore
            | Self::ServerAway => Some(COST_MAX),
            Self::Leader | Self::LeaderAway => Some(LEADER_COST_MAX),
            Self::StreamLeader => None,
        }
    }

    const fn is_before(self) -> bool {
        matches!(self, Self::WorkerBefore | Self::ServerBefore)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Worker => "worker killed",
            Self::WorkerBefore => "worker killed before the run",
            Self::Follower => "follower killed",
            Self::LeaderRestarted => "leader restarted",
            Self::Leader => "leader killed",
            Self::LeaderAway => "leader killed, and away",
            Self::Server => "nats-server that leads no stream killed",
            Self::ServerBefore => "nats-server that leads no stream killed before the run",
            Self::ServerAway => "nats-server that leads no stream killed, and away",
            Self::StreamLeader => "nats-server that leads the control stream killed",
        })
    }
}

/// What the losses of one kind have cost.
#[derive(Debug)]
pub struct Costs {
    loss: Loss,
    /// The time of each run beyond that of an undisturbed one, sorted.
    costs: Vec<Duration>,
}

impl Costs {
    fn new(loss: Loss, mut costs: Vec<Duration>) -> Self {
        costs.sort_unstable();
        Self { loss, costs }
    }

    /// What exceeds the bound, for each run.
    pub fn excesses(&self) -> impl Iterator<Item = Option<String>> {
        self.costs.iter().map(|cost| {
            let exceeds = self.loss.cost_max().is_some_and(|max| *cost > max);
            exceeds.then(|| format!("{}: {:.1} s", self.loss, cost.as_secs_f64()))
        })
    }
}

/// The head of a table of costs.
pub const HEAD: &str = "| lost | times | median | longest | above 6 s |\n|---|---:|---:|---:|---:|";

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [median, longest] =
            [self.costs.len() / 2, self.costs.len() - 1].map(|at| self.costs[at].as_secs_f64());
        let above = self.costs.iter().filter(|cost| **cost > COST_MAX).count();
        write!(f, "| {} | {} | {median:.1} s | {longest:.1} s | {above} |", self.loss, self.costs.len())
    }
}

/// A site under test.
pub struct LossySite {
    // First fields: dropped before what they use.
    hosts: Vec<Host>,
    orchestrators: Vec<Orchestrator>,
    rests: Vec<Rest>,
    jetstream: jetstream::Context,
    nats: SecuredNats,
    _directory: TempDir,
    /// How long an undisturbed run takes.
    undisturbed: Duration,
    random: Random,
}

impl LossySite {
    /// Starts a site, and measures undisturbed runs.
    pub async fn start(random: Random) -> Self {
        let nats = SecuredNats::start(SERVERS).await;
        let mut orchestrators: Vec<Orchestrator> = (0..ORCHESTRATORS).map(|_| nats.orchestrator()).collect();
        for orchestrator in &mut orchestrators {
            // The first creates the streams.
            orchestrator.start_ready().await;
        }
        orchestrators[0].rest.configure(APPLICATION).await;
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("said");
        let mut hosts = Vec::new();
        for number in 1..=HOSTS {
            let mut host = nats.host(&log, &format!("h{number:02}")).await.reboots_after(UPGRADE_SECS);
            host.start();
            hosts.push(host);
        }
        let client = nats.client(&nats.issued().orchestrator_credentials()).await;
        let rest = |orchestrator: &Orchestrator| Rest::with_timeout(orchestrator.address(), ANSWER_WITHIN);
        let mut site = Self {
            rests: orchestrators.iter().map(rest).collect(),
            hosts,
            orchestrators,
            jetstream: jetstream::new(client),
            nats,
            _directory: directory,
            undisturbed: Duration::MAX,
            random,
        };
        for _ in 0..UNDISTURBED_RUNS {
            site.healthy().await;
            let begun = Instant::now();
            let run = site.start_run().await;
            site.await_end(&run).await;
            site.undisturbed = site.undisturbed.min(begun.elapsed());
        }
        site
    }

    /// How long an undisturbed run takes.
    pub const fn undisturbed(&self) -> Duration {
        self.undisturbed
    }

    /// Loses a part in each of this number of runs.
    pub async fn measure(&mut self, loss: Loss, runs: usize) -> Costs {
        let mut costs = Vec::new();
        for _ in 0..runs {
            self.healthy().await;
            costs.push(self.run_once(loss).await.saturating_sub(self.undisturbed));
        }
        Costs::new(loss, costs)
    }

    /// Waits until every part works: all instances are ready, all copies of the streams current, all hosts reachable.
    async fn healthy(&mut self) {
        for orchestrator in &self.orchestrators {
            orchestrator.ready().await;
        }
        eventually("every copy of the streams to be current", async || {
            let status = self.orchestrators[0].cluster_status().await?;
            let is_current = |stream: &serde_json::Value| {
                let copies = stream["replicas"].as_array();
                stream["leader"].is_string()
                    && copies.is_some_and(|copies| copies.iter().all(|copy| copy["current"] == true))
            };
            status["streams"].as_array()?.iter().all(is_current).then_some(())
        })
        .await;
        let names: Vec<&str> = self.hosts.iter().map(Host::name).collect();
        for rest in &self.rests {
            rest.await_scheduled(&names).await;
            eventually("every host to be reachable", async || {
                let (_, hosts) = rest.try_call(Method::GET, "/v1/state/os-upgrade/hosts", "").await?;
                let hosts = hosts.as_array()?.clone();
                hosts.iter().all(|host| host["reachability"] == "reachable").then_some(())
            })
            .await;
        }
    }

    /// Runs once, and returns how long that took.
    async fn run_once(&mut self, loss: Loss) -> Duration {
        let server = self.server(loss == Loss::StreamLeader).await;
        if loss.is_before() {
            self.lose(loss, server).await;
            self.healthy().await;
            tokio::time::sleep(self.random.millis(0, 10_000)).await;
        }
        let begun = Instant::now();
        let run = self.start_run().await;
        let away = if loss.is_before() {
            None
        } else {
            let undisturbed = self.undisturbed.as_millis().try_into().unwrap();
            let moment = self.random.millis(0, undisturbed);
            tokio::time::sleep(moment.saturating_sub(begun.elapsed())).await;
            self.lose(loss, server).await
        };
        let run = self.await_end(&run).await;
        let took = begun.elapsed();
        assert_eq!(run.result(), Some("completed"), "{loss}: {}", run.0);
        assert!(run.statuses().values().all(|status| *status == "upgraded"), "{loss}: {}", run.0);
        match away {
            Some(Away::Orchestrator(index)) => self.orchestrators[index].start(),
            Some(Away::Server(index)) => self.nats.start_again(index).await,
            None => {}
        }
        took
    }

    /// Kills or restarts a part, `server` if it is a nats-server. Returns what stays away.
    async fn lose(&mut self, loss: Loss, server: usize) -> Option<Away> {
        match loss {
            Loss::Worker | Loss::WorkerBefore => {
                let host = self.random.index(HOSTS);
                self.hosts[host].kill_worker();
                None
            }
            Loss::Follower => {
                let follower = 1 - self.leader().await;
                self.orchestrators[follower].kill().await;
                tokio::time::sleep(AWAY).await;
                self.orchestrators[follower].start();
                None
            }
            Loss::LeaderRestarted => {
                let leader = self.leader().await;
                self.orchestrators[leader].terminate().await;
                self.orchestrators[leader].start();
                None
            }
            Loss::Leader => {
                let leader = self.leader().await;
                self.orchestrators[leader].kill().await;
                tokio::time::sleep(AWAY).await;
                self.orchestrators[leader].start();
                None
            }
            Loss::LeaderAway => {
                let leader = self.leader().await;
                self.orchestrators[leader].kill().await;
                Some(Away::Orchestrator(leader))
            }
            Loss::Server | Loss::ServerBefore | Loss::StreamLeader => {
                self.nats.kill(server);
                tokio::time::sleep(AWAY).await;
                self.nats.start_again(server).await;
                None
            }
            Loss::ServerAway => {
                self.nats.kill(server);
                Some(Away::Server(server))
            }
        }
    }

    /// The index of the orchestrator that leads.
    async fn leader(&self) -> usize {
        eventually("an orchestrator to lead", async || {
            for (index, orchestrator) in self.orchestrators.iter().enumerate() {
                if orchestrator.role().await.is_some_and(|(role, _)| role == "leader") {
                    return Some(index);
                }
            }
            None
        })
        .await
    }

    /// The server that leads the control stream, or one that leads no stream.
    async fn server(&mut self, leads: bool) -> usize {
        loop {
            let leaders = eventually("every stream to have a leader", async || {
                self.nats.stream_leaders(&self.jetstream).await
            })
            .await;
            if leads {
                return leaders[subject::CONTROL_STREAM];
            }
            let leads_none = |server: &usize| leaders.values().all(|leader| leader != server);
            if let Some(server) = (0..SERVERS).find(leads_none) {
                return server;
            }
            // A server that has just been started leads none.
            let server = self.random.index(SERVERS);
            self.nats.kill(server);
            self.nats.start_again(server).await;
            self.healthy().await;
        }
    }

    /// Starts a run through any orchestrator, and returns its id.
    async fn start_run(&self) -> String {
        let before = self.rests[0].newest_run_or_none().await;
        eventually("a run to start", async || {
            for rest in &self.rests {
                let trigger = "/v1/state/os-upgrade/trigger-upgrade-site";
                let answer = rest.try_call(Method::POST, trigger, "").await;
                if answer.is_some_and(|(status, _)| status == 204) {
                    return rest.newest_run_or_none().await.filter(|id| Some(id) != before.as_ref());
                }
            }
            None
        })
        .await
    }

    /// Waits until an orchestrator shows the end of a run.
    async fn await_end(&self, id: &str) -> Run {
        within(PATIENCE, "the end of the run", async || {
            for rest in &self.rests {
                let run = rest.run(id).await;
                if run.result().is_some() {
                    return Some(run);
                }
            }
            None
        })
        .await
    }
}

/// A part that is away until the run has ended.
enum Away {
    Orchestrator(usize),
    Server(usize),
}
