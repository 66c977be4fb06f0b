//! What goes wrong, and how it is mended.

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
    /// SIGSTOP to the leader for a while, in half of the cases longer than its lease.
    LeaderPaused,
    /// The leader cut off from all nats-servers for a while.
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
    /// A nats-server cut off from the others for a while; its clients stay connected to it.
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

    /// Whether it hits a leader.
    pub const fn is_the_leaders(self) -> bool {
        matches!(self, Self::LeaderKilled | Self::LeaderPaused | Self::LeaderCutOff)
    }

    /// Whether it hits a nats-server.
    pub const fn is_a_servers(self) -> bool {
        matches!(
            self,
            Self::JournalServerKilled | Self::ServerKilled | Self::ServerPaused | Self::ServerCutOff
        )
    }

    /// Between how many milliseconds it lasts.
    const fn lasts(self) -> (u64, u64) {
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
            Self::JournalServerKilled => "NATS node that leads the journal killed",
            Self::ServerKilled => "NATS node killed",
            Self::ServerPaused => "NATS node paused",
            Self::ServerCutOff => "NATS node cut off from the others",
            Self::WorkerKilled => "worker killed",
        })
    }
}

/// A fault to come.
#[derive(Debug, Clone, Copy)]
pub struct Planned {
    fault: Fault,
    /// How many hosts must have begun, or how much time must have passed since the fault before.
    hosts: usize,
    after: Option<Duration>,
}

/// A fault that has struck.
#[derive(Debug, Clone, Copy)]
pub struct Struck {
    /// Which.
    pub fault: Fault,
    /// The orchestrator, nats-server or worker process that it hit.
    pub target: usize,
    /// When.
    pub at: Instant,
    /// When it is to be mended.
    until: Instant,
    /// When it was.
    pub mended: Option<Instant>,
}

/// The faults of one run.
#[derive(Debug)]
pub struct Faults {
    /// The next one is the last.
    plan: Vec<Planned>,
    /// Those that have struck.
    pub struck: Vec<Struck>,
    last: Instant,
}

/// What is to go wrong in a run of so many hosts, `count` faults of these `kinds`: two thirds at some progress of the
/// run, the others at some time after the one before, when it may well stand still.
pub fn plan(random: &mut Random, kinds: &[Fault], count: usize, hosts: usize) -> Vec<Planned> {
    // A third of the runs has trouble with orchestrators only, and a third with nats-servers only.
    let theme = random.below(3);
    let fits = |fault: &&Fault| match theme {
        0 => !fault.is_a_servers(),
        1 => fault.is_a_servers() || **fault == Fault::WorkerKilled,
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
    /// Nothing has struck yet.
    pub fn new(plan: Vec<Planned>) -> Self {
        Self { plan, struck: Vec::new(), last: Instant::now() }
    }

    /// Whether nothing is out of order any more.
    pub fn all_mended(&self) -> bool {
        self.struck.iter().all(|struck| struck.mended.is_some())
    }

    /// Whether there is nothing to come any more.
    pub const fn all_have_struck(&self) -> bool {
        self.plan.is_empty()
    }

    fn snapshot(&self) -> impl Iterator<Item = &Struck> {
        self.struck.iter().filter(|struck| struck.mended.is_none())
    }

    /// Whether this orchestrator has been killed and is not to run yet.
    pub fn is_down(&self, member: usize) -> bool {
        let killed = |struck: &Struck| matches!(struck.fault, Fault::LeaderKilled | Fault::FollowerKilled);
        self.snapshot().any(|struck| killed(struck) && struck.target == member)
    }

    fn is_hit(&self, servers: bool, target: usize) -> bool {
        let same = |struck: &Struck| struck.fault.is_a_servers() == servers && struck.target == target;
        self.snapshot().any(|struck| same(struck) && struck.fault != Fault::WorkerKilled)
    }

    /// Lets the next fault strike, if it is time: `hosts` have begun.
    pub async fn strike(
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
        hit(fault, target, site, workers).await;
        let (from, to) = fault.lasts();
        let at = Instant::now();
        self.struck.push(Struck { fault, target, at, until: at + random.millis(from, to), mended: None });
        self.last = at;
    }

    /// What the fault hits; nothing as long as there is nothing to hit.
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
                roles.leader().filter(|leader| !self.is_hit(false, *leader))
            }
            Fault::FollowerKilled | Fault::FollowerPaused => {
                let leader = roles.leader();
                let free = |member: &usize| Some(*member) != leader && !self.is_hit(false, *member);
                let followers: Vec<usize> = (0..site.members.len()).filter(free).collect();
                (!followers.is_empty()).then(|| *random.pick(&followers))
            }
            // One at a time: two of three cannot do without the third.
            _ if fault.is_a_servers() && self.snapshot().any(|struck| struck.fault.is_a_servers()) => None,
            Fault::JournalServerKilled => site.nats.journal_leader(site.jetstream()).await,
            Fault::ServerKilled | Fault::ServerPaused | Fault::ServerCutOff => Some(random.index(SERVERS)),
            Fault::WorkerKilled => (!workers.is_empty()).then(|| random.index(workers.len())),
        }
    }

    /// Mends what is due, or everything.
    pub async fn mend(&mut self, site: &mut ClusterSite, random: &mut Random, everything: bool) {
        for struck in &mut self.struck {
            let now = Instant::now();
            if struck.mended.is_none() && (everything || struck.until <= now) {
                mend(struck, site, random).await;
                struck.mended = Some(now);
            }
        }
    }

    /// How often each kind has struck.
    pub fn counts(&self) -> BTreeMap<Fault, usize> {
        let mut counts = BTreeMap::new();
        for struck in &self.struck {
            *counts.entry(struck.fault).or_default() += 1;
        }
        counts
    }

    /// The same in words.
    pub fn words(&self) -> String {
        let words: Vec<String> = self.struck.iter().map(|struck| struck.fault.to_string()).collect();
        words.join(", ")
    }
}

async fn hit(fault: Fault, target: usize, site: &mut ClusterSite, workers: &[Host]) {
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

async fn mend(struck: &Struck, site: &mut ClusterSite, random: &mut Random) {
    let target = struck.target;
    let anew = random.below(2) == 0;
    match struck.fault {
        Fault::LeaderKilled | Fault::FollowerKilled => site.members[target].orchestrator.start(),
        Fault::LeaderPaused | Fault::FollowerPaused => site.signal(target, Signal::SIGCONT),
        Fault::LeaderCutOff if anew => site.members[target].heal_anew(),
        Fault::LeaderCutOff => site.members[target].heal(),
        Fault::JournalServerKilled | Fault::ServerKilled => site.nats.start_again(target).await,
        Fault::ServerPaused => site.nats.signal(target, Signal::SIGCONT),
        Fault::ServerCutOff => site.nats.lines(target).for_each(|line| {
            if anew {
                line.heal_anew();
            } else {
                line.heal();
            }
        }),
        Fault::WorkerKilled => {}
    }
}
