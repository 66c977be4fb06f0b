//! What a seed decides before anything happens: the size of the site, its policies, and which faults it has.
//!
//! No seed has every fault (swarm testing): a fault that is always present hides what only shows without it.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::TimeDelta;
use fastrand::Rng;
use os_upgrade_calendar::{Duration as WholeSeconds, Window};
use os_upgrade_kernel::config::{Retries, Rollout, UnreachablePolicy, WorkerApplication};
use os_upgrade_kernel::{
    ClientId, Config, LockProvider, OnFailure, OnRemoval, RebootSettings, Reclaim, Settings,
};
use os_upgrade_protocol::{Action, ApplicationName, GroupName, HostName};
use os_upgrade_shell::instance::RetentionSettings;
use serde_json::json;

use crate::bug::Bug;
use crate::cluster_plan::{self, ClusterPlan};
use crate::command_plan::CommandPlan;
use crate::delivery_plan::DeliveryPlan;
use crate::fault::Fault;
use crate::outage_plan::OutagePlan;
use crate::queue_plan::QueuePlan;
use crate::steer_plan::{Ailment, BadHost, SteerPlan};
use crate::time::{MILLI, Micros, SECOND};
use crate::unit_plan::UnitPlan;

/// A world, before anything happens in it.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) instances: usize,
    pub(crate) hosts: Vec<HostPlan>,
    pub(crate) settings: Settings,
    pub(crate) config: Config,
    pub(crate) publishes_max: usize,
    pub(crate) snapshot_weight: usize,
    pub(crate) retention: RetentionSettings,
    pub(crate) loss_confirmed_after: Duration,
    /// The time between two requests to the lock server.
    pub(crate) lock_interval: Duration,
    /// Whether a planted bug has every loss believed at once.
    pub(crate) trusts_loss_at_once: bool,
    /// Whether a planted bug has the times of records ignored.
    pub(crate) ignores_times: bool,
    pub(crate) tick: Micros,
    /// The longest time that a message usually takes.
    pub(crate) latency: Micros,
    /// Until when faults happen.
    pub(crate) faults_until: Micros,
    /// The mean time between two spontaneous faults.
    pub(crate) fault_every: Micros,
    /// The mean time between two acts of operators.
    pub(crate) act_every: Micros,
    /// How often each fault happens: in thousandths of its occasions, or as its share of the spontaneous faults.
    /// Faults that this seed does not have are absent.
    rates: BTreeMap<Fault, u32>,
    /// The reboot queue, if operators use it.
    pub(crate) queue: Option<QueuePlan>,
    /// The Kubernetes cluster, if the hosts are its nodes.
    pub(crate) cluster: Option<ClusterPlan>,
    /// The operator's commands, if they reboot the hosts of the queue.
    pub(crate) command: Option<CommandPlan>,
    /// The power cut of the whole site, if there is one.
    pub(crate) outage: Option<OutagePlan>,
    /// Who says what hosts are to have, if anybody does.
    pub(crate) delivery: Option<DeliveryPlan>,
    /// The units, if hosts run some.
    pub(crate) units: Option<UnitPlan>,
    /// Operators who steer runs, if there are any.
    pub(crate) steer: Option<SteerPlan>,
    /// FleetLock clients. Some have the names of hosts.
    pub(crate) clients: Vec<ClientId>,
    /// The mean time between two requests of one of them.
    pub(crate) client_every: Micros,
    /// Whether clients contend with runs for slots at the end.
    pub(crate) contended: bool,
    pub(crate) handler_max: Micros,
    pub(crate) boot_max: Micros,
    pub(crate) timeout_max: TimeDelta,
}

/// A host, before anything happens to it.
#[derive(Debug, Clone)]
pub(crate) struct HostPlan {
    pub(crate) group: Option<GroupName>,
    /// Whether its worker is made with the SDK; otherwise it only keeps the specification.
    pub(crate) sdk: bool,
    /// How many of a thousand of its upgrades require a reboot.
    pub(crate) reboots: u32,
    /// Whether its worker takes a `reboot` that names the boot to leave.
    pub(crate) reboots_on_request: bool,
    /// Whether its worker announces the boot that it runs in.
    pub(crate) announces_boot: bool,
}

/// How many hosts a world with units has at least.
const MACHINES_MIN: usize = 3;

/// From so short that many boots take longer to so long that none does.
const BOOT_TIMEOUTS: [WholeSeconds; 3] =
    [WholeSeconds::from_secs(5), WholeSeconds::from_secs(60), WholeSeconds::from_secs(1_800)];

pub(crate) fn application() -> ApplicationName {
    ApplicationName::new("debian").expect("a valid name")
}

/// The name of the host of this index.
pub(crate) fn host_name(index: usize) -> HostName {
    HostName::new(&format!("h{index}")).expect("a valid name")
}

fn group(name: &str) -> GroupName {
    GroupName::new(name).expect("a valid name")
}

impl Plan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let no_faults = rng.u32(..20) == 0;
        let rates = if no_faults { BTreeMap::new() } else { draw_rates(rng) };
        // Then some runs should still be active when the bus is back.
        let bus_stays_away = rates.contains_key(&Fault::BusAwayForHours) && rng.bool();
        // Then it shows whether a host is waited for until the end of its run.
        let rolls_back = rates.contains_key(&Fault::MachineRolledBack) && rng.bool();
        let hosts = if rng.u32(..12) == 0 { rng.usize(5..10) } else { rng.usize(1..5) };
        Self {
            instances: rng.usize(1..=3),
            hosts: (0..hosts).map(|_| HostPlan::draw(rng)).collect(),
            settings: draw_settings(rng),
            config: draw_config(rng),
            publishes_max: *rng.choice(&[1, 4, 64]).expect("not empty"),
            snapshot_weight: *rng.choice(&[20, 80, 4_000]).expect("not empty"),
            retention: RetentionSettings {
                snapshot_stands: Duration::from_secs(*rng.choice(&[0, 10, 60]).expect("not empty")),
                journal_messages_max: *rng.choice(&[30, 10_000]).expect("not empty"),
            },
            trusts_loss_at_once: false,
            ignores_times: false,
            loss_confirmed_after: if rng.bool() { Duration::ZERO } else { Duration::from_secs(30) },
            lock_interval: Duration::from_millis(1_100),
            tick: *rng.choice(&[100 * MILLI, 500 * MILLI, SECOND]).expect("not empty"),
            latency: *rng.choice(&[MILLI, 20 * MILLI, 300 * MILLI]).expect("not empty"),
            faults_until: rng.u64(60..400) * SECOND,
            fault_every: rng.u64(2..20) * SECOND,
            act_every: rng.u64(2..20) * SECOND,
            rates,
            queue: None,
            cluster: None,
            command: None,
            outage: None,
            delivery: None,
            units: None,
            steer: None,
            clients: draw_clients(rng),
            client_every: *rng.choice(&[400 * MILLI, 3 * SECOND, 15 * SECOND]).expect("not empty"),
            contended: rng.u32(..6) == 0,
            handler_max: *rng.choice(&[50 * MILLI, 3 * SECOND, 40 * SECOND]).expect("not empty"),
            boot_max: *rng.choice(&[SECOND, 30 * SECOND, 90 * SECOND]).expect("not empty"),
            timeout_max: TimeDelta::seconds(rng.i64(20..300))
                * if bus_stays_away || rolls_back { 60 } else { 1 },
        }
    }

    /// The plan with a reboot queue that operators use.
    pub(crate) fn with_queue(mut self, rng: &mut Rng) -> Self {
        self.queue = Some(QueuePlan::draw(rng));
        self.settings.reboot = RebootSettings {
            max_concurrent: rng.u32(1..=3),
            unreachable_max: *rng.choice(&[0, 1, 10]).expect("not empty"),
            in_windows: rng.u32(..4) == 0,
            ..RebootSettings::default()
        };
        for host in &mut self.hosts {
            host.reboots_on_request = rng.u32(..6) > 0;
            host.announces_boot = host.reboots_on_request;
        }
        // A world without any faults stays one.
        if !self.rates.is_empty() {
            for fault in Fault::ALL.into_iter().filter(|fault| fault.is_of_queue()) {
                if rng.bool() {
                    self.rates.insert(fault, 1 + rng.u32(..fault.rate_max()));
                }
            }
        }
        self
    }

    /// The plan with a Kubernetes cluster whose nodes are hosts. These have workers with the SDK's rules: others answer that they
    /// have rebooted and have not, so that their nodes never come back.
    pub(crate) fn with_cluster(mut self, rng: &mut Rng) -> Self {
        self.cluster = Some(ClusterPlan::draw(rng, self.hosts.len()));
        self.settings.kubernetes = Some(cluster_plan::draw_settings(rng, self.names()));
        self.settings.reboot.backoff = cluster_plan::draw_backoff(rng);
        self.settings.reboot.api_servers = cluster_plan::draw_order(rng);
        for host in &mut self.hosts {
            host.sdk = true;
        }
        if !self.rates.is_empty() {
            for fault in Fault::ALL.into_iter().filter(|fault| fault.is_of_cluster()) {
                if rng.bool() {
                    self.rates.insert(fault, 1 + rng.u32(..fault.rate_max()));
                }
            }
        }
        self
    }

    /// The plan with a power cut of the whole site, after which no clock knows the time.
    pub(crate) fn with_outage(mut self, rng: &mut Rng) -> Self {
        self.outage = (!self.rates.is_empty()).then(|| OutagePlan::draw(rng));
        self
    }

    /// The plan with operators who steer runs.
    pub(crate) fn with_steering(mut self, rng: &mut Rng) -> Self {
        self.steer = Some(SteerPlan::draw(rng));
        self.config.rollout.expected_duration = rng.bool().then(|| WholeSeconds::from_secs(rng.u64(1..=60)));
        self.config.rollout.prepare_timeout = rng.bool().then(|| WholeSeconds::from_secs(rng.u64(1..=30)));
        self.config.rollout.upgrade_timeout = rng.bool().then(|| WholeSeconds::from_secs(rng.u64(1..=30)));
        self.config.rollout.max_preparing = rng.bool().then(|| rng.u32(1..=3));
        self.config.rollout.retries = rng.bool().then(|| Retries {
            prepare: rng.u32(0..=3),
            backoff: WholeSeconds::from_secs(rng.u64(1..=10)),
            max_backoff: WholeSeconds::from_secs(rng.u64(1..=60)),
        });
        for group in self.settings.groups.keys() {
            if rng.bool() {
                self.settings.failed.insert(group.clone(), rng.u32(1..=2));
            }
        }
        // With others there is somebody to starve.
        let hosts = self.hosts.len();
        if let Some(steer) = self.steer.as_mut().filter(|_| hosts > 1 && rng.u32(..3) == 0) {
            steer.bad_host = Some(BadHost::draw(rng, hosts));
        }
        self
    }

    /// The plan with providers that say what hosts are to have.
    pub(crate) fn with_delivery(mut self, rng: &mut Rng) -> Self {
        let names: Vec<HostName> = self.names().collect();
        let delivery = DeliveryPlan::draw(rng, &names);
        self.config.config_providers.clone_from(&delivery.providers);
        "hall-1".clone_into(&mut self.settings.site);
        self.delivery = Some(delivery);
        if !self.rates.is_empty() {
            for fault in Fault::ALL.into_iter().filter(|fault| fault.is_of_delivery()) {
                if rng.bool() {
                    self.rates.insert(fault, 1 + rng.u32(..fault.rate_max()));
                }
            }
            // What hosts have may then be newer than what the site knows.
            if rng.u32(..5) == 0 {
                self.rates.insert(Fault::MachineRolledBack, Fault::MachineRolledBack.rate_max());
            }
        }
        self
    }

    /// The plan with providers that are told of events and call back, if it has providers.
    pub(crate) fn with_hooks(mut self, rng: &mut Rng) -> Self {
        self.delivery = self.delivery.map(|delivery| delivery.with_hooks(rng));
        if let Some(delivery) = &self.delivery {
            self.config.config_providers.clone_from(&delivery.providers);
        }
        self
    }

    /// The plan with a host that the site removes, and with workers that lose the state of their configurations.
    pub(crate) fn with_forgetting(mut self, rng: &mut Rng) -> Self {
        if let Some(delivery) = &mut self.delivery {
            delivery.removes_host = rng.bool();
        }
        let lost = Fault::DesiredStateLost;
        if !self.rates.is_empty() && rng.bool() {
            self.rates.insert(lost, 1 + rng.u32(..lost.rate_max()));
        }
        self
    }

    /// The plan with hosts that run units. These take no configuration: a host has one report, and it is its agent's.
    pub(crate) fn with_units(mut self, rng: &mut Rng) -> Self {
        // Between fewer there is little to choose. The nodes of a cluster were drawn with the hosts.
        while self.cluster.is_none() && self.hosts.len() < MACHINES_MIN {
            self.hosts.push(HostPlan::draw(rng));
        }
        let units = UnitPlan::draw(rng, self.hosts.len());
        if let Some(delivery) = &mut self.delivery {
            delivery.configures.resize(self.hosts.len(), false);
            for (configures, has_agent) in delivery.configures.iter_mut().zip(&units.agents) {
                *configures &= !has_agent;
            }
        }
        self.units = Some(units);
        if !self.rates.is_empty() {
            for fault in Fault::ALL.into_iter().filter(|fault| fault.is_of_units()) {
                if rng.bool() {
                    self.rates.insert(fault, 1 + rng.u32(..fault.rate_max()));
                }
            }
        }
        self
    }

    /// The plan with a command that reboots the hosts of the queue.
    pub(crate) fn with_command(mut self, rng: &mut Rng) -> Self {
        let command = CommandPlan::draw(rng);
        self.settings.reboot.command = Some(command.settings);
        self.command = Some(command);
        for host in &mut self.hosts {
            host.announces_boot |= rng.u32(..4) > 0;
        }
        if !self.rates.is_empty() {
            for fault in Fault::ALL.into_iter().filter(|fault| fault.is_of_command()) {
                if rng.bool() {
                    self.rates.insert(fault, 1 + rng.u32(..fault.rate_max()));
                }
            }
        }
        self
    }

    /// The hosts that are nodes, each with whether it is an API server.
    pub(crate) fn nodes(&self) -> BTreeMap<HostName, bool> {
        let (Some(cluster), Some(settings)) = (&self.cluster, &self.settings.kubernetes) else {
            return BTreeMap::new();
        };
        let nodes = self.names().zip(cluster.api_servers.iter().copied());
        nodes.filter(|(host, _)| settings.includes(host)).collect()
    }

    /// The names of the hosts.
    pub(crate) fn names(&self) -> impl Iterator<Item = HostName> + use<> {
        (0..self.hosts.len()).map(host_name)
    }

    /// The plan with the faults that `bug` needs, and with the bug itself if it is one of settings.
    pub(crate) fn with_bug(mut self, bug: Bug) -> Self {
        // These end the world, perhaps before the bug has shown.
        self.rates.retain(|fault, _| !fault.ends_the_world());
        for fault in bug.needed_faults() {
            self.rates.insert(*fault, fault.rate_max());
        }
        // They only show when another instance leads too, and while requests are made.
        if matches!(bug, Bug::JournalUnfenced | Bug::CommandUnfenced | Bug::NoBarrier) {
            self.instances = 3;
            self.act_every = 2 * SECOND;
            self.settings.provider = LockProvider::Embedded;
        }
        if bug == Bug::CopyHidden {
            self.instances = 3;
            self.settings.provider = LockProvider::Embedded;
        }
        if matches!(bug, Bug::UnapprovedEnlisted | Bug::WithdrawalForgotten | Bug::RemovalForgotten) {
            self.settings.auto_approve = bug != Bug::UnapprovedEnlisted;
            self.act_every = 2 * SECOND;
        }
        // A leader has to fail in the seconds in which a host answers its reboot.
        if bug == Bug::GivenUpUnheard {
            self.rates.retain(|fault, _| *fault == Fault::OrchestratorCrash);
            (self.fault_every, self.act_every) = (4 * SECOND, 2 * SECOND);
            for host in &mut self.hosts {
                host.reboots = 1_000;
            }
        }
        if bug.is_of_queue() || bug.is_of_cluster() {
            self.settings.provider = LockProvider::Embedded;
            let RebootSettings { backoff, api_servers, command, .. } = self.settings.reboot;
            let max_concurrent =
                if bug.is_of_cluster() { 3 } else { RebootSettings::default().max_concurrent };
            self.settings.reboot =
                RebootSettings { max_concurrent, backoff, api_servers, command, ..RebootSettings::default() };
            self.settings.auto_approve = true;
            if let Some(queue) = &mut self.queue {
                queue.act_every = 3 * SECOND;
            }
        }
        if bug.is_of_delivery() {
            self = self.with_delivery_bug(bug);
        }
        if bug.is_of_units() {
            self = self.with_unit_bug();
        }
        if bug == Bug::FailedCounted {
            self.settings.provider = LockProvider::Embedded;
            self.settings.on_failure = OnFailure::Hold;
            self.settings.failed = self.settings.groups.keys().map(|group| (group.clone(), 1)).collect();
            let bad_host = BadHost { index: 0, action: Action::Upgrade, ailment: Ailment::Fails };
            if let Some(steer) = &mut self.steer {
                steer.bad_host = Some(bad_host);
            }
        }
        if bug == Bug::LeftForTooLong {
            self.settings.provider = LockProvider::Embedded;
        }
        if bug == Bug::LateRequestForgotten {
            self.settings.provider = LockProvider::External;
        }
        if matches!(bug, Bug::AnsweredOnce | Bug::IdsUnread) {
            self.timeout_max = TimeDelta::hours(2);
        }
        if bug == Bug::LockServerHurried {
            self.lock_interval = Duration::ZERO;
        }
        self.trusts_loss_at_once = bug == Bug::LossBelievedAtOnce;
        self.ignores_times = bug == Bug::RecordTimesUnread;
        self
    }

    /// The plan for a bug of the delivery: hosts take part, and much happens.
    fn with_delivery_bug(mut self, bug: Bug) -> Self {
        self.settings.auto_approve = true;
        if bug == Bug::DesiredUnfenced {
            (self.instances, self.settings.provider) = (3, LockProvider::Embedded);
        }
        if let Some(delivery) = &mut self.delivery {
            delivery.act_every = 2 * SECOND;
            delivery.is_restored = true;
            delivery.configures.fill(true);
            delivery.removes_host |= bug == Bug::EmptyManifestPurged;
            if bug == Bug::RevocationForgotten {
                for provider in &mut delivery.providers {
                    provider.on_removal = OnRemoval::Remove;
                }
                self.config.config_providers.clone_from(&delivery.providers);
            }
            if bug.is_of_hooks() {
                delivery.plant_hooks(bug);
                self.config.config_providers.clone_from(&delivery.providers);
            }
        }
        self
    }

    /// The plan for a bug of units: every host runs some, and much happens.
    fn with_unit_bug(mut self) -> Self {
        self.settings.auto_approve = true;
        if let Some(delivery) = &mut self.delivery {
            delivery.configures.fill(false);
        }
        if let Some(units) = &mut self.units {
            units.agents.fill(true);
            (units.act_every, units.job_max) = (2 * SECOND, 10 * SECOND);
        }
        self
    }

    /// Whether some clock is always right: that of the bus, or those of all hosts, which send their time.
    pub(crate) fn clocks_are_witnessed(&self) -> bool {
        let hosts_are_right = self.hosts.iter().all(|host| host.sdk) && self.rate(Fault::ClockStep) == 0;
        self.outage.is_none() && (self.rate(Fault::BusClockStep) == 0 || hosts_are_right)
    }

    /// How often `fault` happens, as in `rates`; 0 if this seed does not have it.
    pub(crate) fn rate(&self, fault: Fault) -> u32 {
        self.rates.get(&fault).copied().unwrap_or(0)
    }

    /// Draws one of the spontaneous faults, according to their shares.
    pub(crate) fn pick_fault(&self, rng: &mut Rng) -> Option<Fault> {
        let spontaneous = || self.rates.iter().filter(|(fault, _)| fault.is_spontaneous());
        let total: u32 = spontaneous().map(|(_, share)| share).sum();
        let mut left = rng.u32(..total.max(1));
        spontaneous()
            .find(|(_, share)| {
                let found = left < **share;
                left = left.saturating_sub(**share);
                found
            })
            .map(|(fault, _)| *fault)
    }
}

impl HostPlan {
    fn draw(rng: &mut Rng) -> Self {
        let group = match rng.u32(..6) {
            0 => Some(group("edge")),
            _ => None,
        };
        let (sdk, reboots) = (rng.u32(..5) > 0, *rng.choice(&[0, 500, 1_000]).expect("not empty"));
        Self { group, sdk, reboots, reboots_on_request: false, announces_boot: false }
    }
}

fn draw_rates(rng: &mut Rng) -> BTreeMap<Fault, u32> {
    let known = rng.u32(10..60);
    let mut rates = BTreeMap::new();
    for fault in Fault::ALL.into_iter().filter(|fault| fault.is_of_every_world()) {
        // Those that end a world early are rare.
        if fault.ends_the_world() && rng.u32(..4) > 0 {
            continue;
        }
        if rng.u32(..100) < known {
            rates.insert(fault, 1 + rng.u32(..fault.rate_max()));
        }
    }
    rates
}

fn draw_clients(rng: &mut Rng) -> Vec<ClientId> {
    let client = |name: &str| ClientId::new(name).expect("a valid id");
    let mut clients: Vec<ClientId> =
        (0..rng.u32(1..=6)).map(|number| client(&format!("c{number}"))).collect();
    clients.push(client("h0"));
    clients
}

fn draw_settings(rng: &mut Rng) -> Settings {
    let slots = || [1, 1, 1, 2, 3];
    Settings {
        provider: if rng.bool() { LockProvider::Embedded } else { LockProvider::External },
        default_group: group("default"),
        on_failure: if rng.u32(..4) == 0 { OnFailure::Release } else { OnFailure::Hold },
        groups: [("default", slots()), ("edge", slots())]
            .into_iter()
            .map(|(name, slots)| (group(name), *rng.choice(&slots).expect("not empty")))
            .collect(),
        reclaim: if rng.bool() { Reclaim::Inventory } else { Reclaim::Never },
        auto_approve: rng.bool(),
        ..Settings::default()
    }
}

pub(crate) fn draw_config(rng: &mut Rng) -> Config {
    Config {
        worker_applications: vec![WorkerApplication { name: application() }],
        rollout: Rollout {
            max_concurrent: *rng.choice(&[1, 1, 2, 5]).expect("not empty"),
            max_failures: (*rng.choice(&[0, 0, 1, 10]).expect("not empty")).into(),
            unreachable: if rng.bool() { UnreachablePolicy::Skip } else { UnreachablePolicy::Fail },
            boot_timeout: *rng.choice(&BOOT_TIMEOUTS).expect("not empty"),
            ..Rollout::default()
        },
        ..draw_windows(rng)
    }
}

/// In every third configuration windows that open several times an hour; the rest is left at its default.
fn draw_windows(rng: &mut Rng) -> Config {
    if rng.u32(..3) != 0 {
        return Config::default();
    }
    let pick = |rng: &mut Rng, choices: &[u64]| *rng.choice(choices).expect("not empty");
    let every = pick(rng, &[10, 20, 30]);
    let minutes = |minutes: u64| os_upgrade_calendar::Duration::from_secs(60 * minutes);
    // Some windows adjoin.
    let lasts = if rng.bool() { every } else { every / 2 };
    Config {
        maintenance_windows: vec![window(0, every, lasts)],
        deny_windows: if rng.u32(..3) == 0 { vec![window(2, every, 1)] } else { Vec::new() },
        start_jitter: minutes(pick(rng, &[0, 0, 3])),
        minimum_remaining: minutes(pick(rng, &[0, 0, 2])),
        ..Config::default()
    }
}

/// A window that opens at minute `from` of an hour and every `every` minutes after.
pub(crate) fn window(from: u64, every: u64, lasts: u64) -> Window {
    let window = json!({ "cron": format!("0 {from}/{every} * * * *"), "duration": format!("{lasts}m") });
    serde_json::from_value(window).expect("a window")
}
