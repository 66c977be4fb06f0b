//! The faults, and how each is repaired.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::roles::Roles;
use crate::cluster::ClusterSite;
use crate::host::Host;
use crate::nats_cluster::SERVERS;
use crate::random::Random;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// SIGKILL to the leader, which is started again.
    LeaderKilled,
    /// SIGSTOP to the leader for a while, in half of all cases longer than its lease.
    LeaderPaused,
    /// The leader is cut off from all nats-servers for a while.
    LeaderCutOff,
    /// SIGKILL to a follower.
    FollowerKilled,
    /// SIGSTOP to a follower for a while.
    FollowerPaused,
    /// SIGKILL to the nats-server that leads the journal.
    JournalServerKilled,
    /// SIGKILL to any nats-server.
    ServerKilled,
    /// SIGSTOP to a nats-server for a while.
    ServerPaused,
    /// A nats-server is cut off from the others for a while; its clients stay connected to it.
    ServerCutOff,
    /// SIGKILL to a worker, which is started again.
    WorkerKilled,
}

impl Fault {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::LeaderKilled,
        Self::LeaderPaused,
        Self::LeaderCutOff,
        Self::FollowerKilled,
        Self::FollowerPaused,
        Self::JournalServerKilled,
        Self::ServerKilled,
        Self::ServerPaused,
        Self::ServerCutOff,
        Self::WorkerKilled,
    ];

    /// Whether its target is the leader.
    pub const fn hits_leader(self) -> bool {
        matches!(self, Self::LeaderKilled | Self::LeaderPaused | Self::LeaderCutOff)
    }

    /// Whether its target is a nats-server.
    pub const fn hits_server(self) -> bool {
        matches!(
            self,
            Self::JournalServerKilled | Self::ServerKilled | Self::ServerPaused | Self::ServerCutOff
        )
    }

    /// Its shortest and longest duration, in milliseconds.
    const fn duration_range(self) -> (u64, u64) {
        match self {
            Self::LeaderKilled => (0, 12_000),
            Self::LeaderPaused | Self::LeaderCutOff => (500, 13_000),
            Self::FollowerKilled => (0, 3_000),
            Self::FollowerPaused => (200, 4_000),
            Self::JournalServerKilled | Self::ServerKilled => (100, 4_000),
            Self::ServerPaused | Self::ServerCutOff => (500, 7_000),
            Self::WorkerKilled => (0, 1),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::LeaderKilled => "leader killed",
            Self::LeaderPaused => "leader paused",
            Self::LeaderCutOff => "leader cut off",
            Self::FollowerKilled => "follower killed",
            Self::FollowerPaused => "follower paused",
            Self::JournalServerKilled => "NATS server that leads the journal killed",
            Self::ServerKilled => "NATS server killed",
            Self::ServerPaused => "NATS server paused",
            Self::ServerCutOff => "NATS server cut off from the others",
            Self::WorkerKilled => "worker killed",
        })
    }
}

/// A planned fault.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    fault: Fault,
    /// How many hosts must have begun, unless `after` is set: then the time since the previous fault.
    hosts: usize,
    after: Option<Duration>,
}

/// A fault that has been injected.
#[derive(Debug, Clone, Copy)]
pub struct InjectedFault {
    /// Its kind.
    pub fault: Fault,
    /// The index of the affected orchestrator, nats-server or worker process.
    pub target: usize,
    /// When it was injected.
    pub at: Instant,
    /// When to repair it.
    until: Instant,
    /// When it was repaired; `None` before.
    pub repaired: Option<Instant>,
}

/// The faults of one run.
#[derive(Debug)]
pub struct Faults {
    /// In reverse order: the next fault is the last element.
    plan: Vec<Planned>,
    /// Those already injected.
    pub injected: Vec<InjectedFault>,
    last: Instant,
}

/// Plans `count` faults of these `kinds` for a run of `hosts` hosts: two thirds when the run reaches some progress, the
/// others some time after the previous fault, when the run may stand still.
pub fn plan(random: &mut Random, kinds: &[Fault], count: usize, hosts: usize) -> Vec<Planned> {
    // A third of the runs has faults of orchestrators only, and a third of nats-servers only.
    let theme = random.below(3);
    let fits = |fault: &&Fault| match theme {
        0 => !fault.hits_server(),
        1 => fault.hits_server() || **fault == Fault::WorkerKilled,
        _ => true,
    };
    let fitting: Vec<Fault> = kinds.iter().filter(fits).copied().collect();
    let kinds = if fitting.is_empty() { kinds } else { &fitting };
    let mut progress: Vec<usize> = (0..count).map(|_| random.index(hosts.saturating_sub(2).max(1))).collect();
    progress.sort_unstable();
    let mut plan: Vec<Planned> = progress
        .into_iter()
        .map(|hosts| {
            let fault = *random.pick(kinds);
            let after = (random.below(3) == 0).then(|| random.millis(0, 4_000));
            Planned { fault, hosts, after }
        })
        .collect();
    plan.reverse();
    plan
}

impl Faults {
    /// Faults of which none has been injected yet.
    pub fn new(plan: Vec<Planned>) -> Self {
        Self { plan, injected: Vec::new(), last: Instant::now() }
    }

    /// Whether all injected faults are repaired.
    pub fn all_repaired(&self) -> bool {
        self.injected.iter().all(|injected| injected.repaired.is_some())
    }

    /// Whether no planned fault is left.
    pub const fn all_injected(&self) -> bool {
        self.plan.is_empty()
    }

    fn active(&self) -> impl Iterator<Item = &InjectedFault> {
        self.injected.iter().filter(|injected| injected.repaired.is_none())
    }

    /// Whether this orchestrator has been killed and must not be restarted yet.
    pub fn is_down(&self, member: usize) -> bool {
        let killed =
            |injected: &InjectedFault| matches!(injected.fault, Fault::LeaderKilled | Fault::FollowerKilled);
        self.active().any(|injected| killed(injected) && injected.target == member)
    }

    fn is_affected(&self, servers: bool, target: usize) -> bool {
        let same =
            |injected: &InjectedFault| injected.fault.hits_server() == servers && injected.target == target;
        self.active().any(|injected| same(injected) && injected.fault != Fault::WorkerKilled)
    }

    /// Injects the next fault if it is due. `hosts` have begun so far.
    pub async fn inject(
        &mut self,
        site: &mut ClusterSite,
        workers: &[Host],
        roles: &Roles,
        random: &mut Random,
        hosts: usize,
    ) {
        let Some(next) = self.plan.last() else { return };
        let due = match next.after {
            Some(after) => self.last.elapsed() >= after,
            None => hosts >= next.hosts,
        };
        if !due {
            return;
        }
        let fault = next.fault;
        let Some(target) = self.target(fault, site, workers, roles, random).await else { return };
        self.plan.pop();
        apply(fault, target, site, workers).await;
        let (from, to) = fault.duration_range();
        let at = Instant::now();
        self.injected.push(InjectedFault {
            fault,
            target,
            at,
            until: at + random.millis(from, to),
            repaired: None,
        });
        self.last = at;
    }

    /// Chooses the target of a fault; `None` while there is none.
    async fn target(
        &self,
        fault: Fault,
        site: &ClusterSite,
        workers: &[Host],
        roles: &Roles,
        random: &mut Random,
    ) -> Option<usize> {
        match fault {
            Fault::LeaderKilled | Fault::LeaderPaused | Fault::LeaderCutOff => {
                roles.leader().filter(|leader| !self.is_affected(false, *leader))
            }
            Fault::FollowerKilled | Fault::FollowerPaused => {
                let leader = roles.leader();
                let free = |member: &usize| Some(*member) != leader && !self.is_affected(false, *member);
                let followers: Vec<usize> = (0..site.members.len()).filter(free).collect();
                (!followers.is_empty()).then(|| *random.pick(&followers))
            }
            // One server at a time: with two of three down there is no quorum.
            _ if fault.hits_server() && self.active().any(|injected| injected.fault.hits_server()) => None,
            Fault::JournalServerKilled => site.nats.journal_leader(site.jetstream()).await,
            Fault::ServerKilled | Fault::ServerPaused | Fault::ServerCutOff => Some(random.index(SERVERS)),
            Fault::WorkerKilled => (!workers.is_empty()).then(|| random.index(workers.len())),
        }
    }

    /// Repairs the faults that are due, or all of them.
    pub async fn repair(&mut self, site: &mut ClusterSite, random: &mut Random, everything: bool) {
        for injected in &mut self.injected {
            let now = Instant::now();
            if injected.repaired.is_none() && (everything || injected.until <= now) {
                repair(injected, site, random).await;
                injected.repaired = Some(now);
            }
        }
    }

    /// How often each kind was injected.
    pub fn counts(&self) -> BTreeMap<Fault, usize> {
        let mut counts = BTreeMap::new();
        for injected in &self.injected {
            *counts.entry(injected.fault).or_default() += 1;
        }
        counts
    }

    /// The injected faults, separated by commas.
    pub fn summary(&self) -> String {
        let summary: Vec<String> = self.injected.iter().map(|injected| injected.fault.to_string()).collect();
        summary.join(", ")
    }
}

async fn apply(fault: Fault, target: usize, site: &mut ClusterSite, workers: &[Host]) {
    match fault {
        Fault::LeaderKilled | Fault::FollowerKilled => site.members[target].orchestrator.kill().await,
        Fault::LeaderPaused | Fault::FollowerPaused => site.signal(target, Signal::SIGSTOP),
        Fault::LeaderCutOff => site.members[target].cut_off(),
        Fault::JournalServerKilled | Fault::ServerKilled => site.nats.kill(target),
        Fault::ServerPaused => site.nats.signal(target, Signal::SIGSTOP),
        Fault::ServerCutOff => site.nats.lines(target).for_each(crate::proxy::Proxy::cut),
        Fault::WorkerKilled => workers[target].kill_worker(),
    }
}

async fn repair(injected: &InjectedFault, site: &mut ClusterSite, random: &mut Random) {
    let target = injected.target;
    let anew = random.below(2) == 0;
    match injected.fault {
        Fault::LeaderKilled | Fault::FollowerKilled => site.members[target].orchestrator.start(),
        Fault::LeaderPaused | Fault::FollowerPaused => site.signal(target, Signal::SIGCONT),
        Fault::LeaderCutOff if anew => site.members[target].heal_with_new_connections(),
        Fault::LeaderCutOff => site.members[target].heal(),
        Fault::JournalServerKilled | Fault::ServerKilled => site.nats.start_again(target).await,
        Fault::ServerPaused => site.nats.signal(target, Signal::SIGCONT),
        Fault::ServerCutOff => site.nats.lines(target).for_each(|line| {
            if anew {
                line.heal_with_new_connections();
            } else {
                line.heal();
            }
        }),
        Fault::WorkerKilled => {}
    }
}
