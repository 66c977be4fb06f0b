//! A site driven by random events.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::config::Rollout;
use os_upgrade_kernel::{
    ClockDoubt, CommandJob, CommandOrder, CommandOutcome, Config, ConfigOperation, ControlMessage, Effect,
    EnrolmentOperation, Expected, HostStatus, InReplyTo, Input, Job, JobDone, KubernetesSettings,
    LockOperation, LockOutcome, LockProvider, ManifestOrder, NoAnswer, NodeFence, NodeJob, NodeOperation,
    NodeOrder, NodeOutcome, NodeStage, OnFailure, Order, Pods, Purge, Reachability, RebootCommandSettings,
    RebootOperation, RebootSettings, Reclaim, Request, Run, RunOperation, SeenHost, SeenNode, Settings,
    SlotJob, SlotOperation, SlotOrder, SlotState, Targets,
};
use os_upgrade_protocol::{Action, CommandId, GroupName, HostName, Outcome, Reply, RunId};

use super::moves::{CLIENTS, HOSTS, Lie, Move};
use super::{Site, application, client, config, group, host, run, seen, slot_done};

fn name_of(index: usize) -> HostName {
    host(HOSTS[index % HOSTS.len()])
}

fn group_of(index: usize) -> GroupName {
    group(["default", "edge", "rack"][index % 3])
}

fn reboot_command(checks_boot: bool) -> RebootCommandSettings {
    RebootCommandSettings { within: Duration::from_secs(30), checks_boot }
}

fn cluster(uncordon_failed: bool) -> KubernetesSettings {
    KubernetesSettings { drain_timeout: Duration::from_secs(300), uncordon_failed, hosts: None }
}

fn outcome_of(index: usize) -> LockOutcome {
    match index % 4 {
        0 => LockOutcome::Granted,
        1 => LockOutcome::Denied { lock_kind: "full".to_owned(), value: "full".to_owned() },
        2 => LockOutcome::Unreachable { why: NoAnswer::Failed { detail: "refused".to_owned() } },
        _ => LockOutcome::Protocol { detail: "teapot".to_owned() },
    }
}

fn result_of(index: usize) -> Outcome {
    match index % 4 {
        0 | 1 => Outcome::Done,
        2 => Outcome::RebootRequired,
        _ => Outcome::error("no space left"),
    }
}

/// A bus that may store messages later, and a lock server with two slots in each group.
#[derive(Debug, Default)]
pub(crate) struct World {
    in_flight: Vec<(CommandId, u64)>,
    landed: BTreeSet<(CommandId, u64)>,
    holders: BTreeMap<GroupName, BTreeSet<HostName>>,
    /// Hosts that were commanded to start and have not answered `done`, so that they may be at work: the sequence of the
    /// command.
    at_work: BTreeMap<HostName, u64>,
    /// Whether the provider was changed: a slot of the old provider is then released whatever its host does.
    switched: bool,
    /// Nodes that are cordoned for this site, with the fence in their mark.
    cordoned: BTreeMap<HostName, NodeFence>,
    /// Those of them that were seen to be empty since.
    drained: BTreeSet<HostName>,
}

impl World {
    fn lock(&mut self, host: &HostName, group: &GroupName) -> bool {
        let holders = self.holders.entry(group.clone()).or_default();
        let free = holders.len() < 2 || holders.contains(host);
        if free {
            holders.insert(host.clone());
        }
        free
    }

    fn unlock(&mut self, host: &HostName, group: &GroupName) -> bool {
        self.holders.entry(group.clone()).or_default().remove(host);
        true
    }

    /// The cluster carries out a job; returns what it answers.
    fn cluster(&mut self, job: &NodeJob, outcome: usize) -> NodeOutcome {
        let host = &job.host;
        match &job.order {
            NodeOrder::Check { is_cordoned: true, .. } | NodeOrder::Evict { is_cordoned: true, .. }
                if outcome == 2 =>
            {
                self.cordoned.remove(host);
                NodeOutcome::CordonLost { detail: "made schedulable".to_owned() }
            }
            NodeOrder::Check { .. } | NodeOrder::Evict { .. } => {
                self.cordoned.insert(host.clone(), job.fence);
                match outcome {
                    1 => NodeOutcome::Remaining {
                        pods: Pods { count: 1, first: Vec::new(), kubelet_silent: false },
                    },
                    0 if matches!(job.order, NodeOrder::Check { .. }) => NodeOutcome::Clear,
                    _ => {
                        self.drained.insert(host.clone());
                        NodeOutcome::Drained { boot_id: Some("one".to_owned()) }
                    }
                }
            }
            NodeOrder::Hold => {
                self.cordoned.entry(host.clone()).and_modify(|fence| *fence = job.fence);
                NodeOutcome::Held
            }
            NodeOrder::Uncordon { ready: true, .. } if outcome == 1 => NodeOutcome::NotReady,
            NodeOrder::Uncordon { .. } => {
                self.cordoned.remove(host);
                self.drained.remove(host);
                NodeOutcome::Uncordoned
            }
        }
    }

    /// The state matches the lock server: no host is at work without a slot, and no slot is forgotten.
    pub(crate) fn check(&self, site: &Site) {
        let external = |slot: &&os_upgrade_kernel::Slot| slot.provider == LockProvider::External;
        for (group, holders) in &self.holders {
            for host in holders {
                let slot = site.state.slots.get(host).filter(external);
                assert_eq!(slot.map(|slot| &slot.group), Some(group), "{host} is forgotten");
            }
        }
        for host in self.cordoned.keys() {
            assert!(site.state.nodes.contains_key(host), "nobody uncordons {host}");
        }
        for host in self.at_work.keys().filter(|_| !self.switched) {
            let slot_state = site.state.slots.get(host).map(|slot| slot.state);
            assert_eq!(slot_state, Some(SlotState::Held), "{host} may be at work");
        }
        for (host, slot) in &site.state.slots {
            if external(&slot) && slot.state == SlotState::Held {
                assert!(self.holders[&slot.group].contains(host), "{host}: {slot:?} is not held");
            }
        }
    }
}

/// A site driven by moves.
pub(crate) struct Play {
    pub(crate) site: Site,
    /// How many runs have been triggered.
    runs: usize,
    /// A consistent bus and lock server; without them their messages are arbitrary.
    pub(crate) world: Option<World>,
    /// How many boots the operator's command has ended.
    boots: u32,
    /// Slots that external clients were granted and have not released.
    granted: BTreeSet<(GroupName, &'static str)>,
}

impl Play {
    pub(crate) fn new() -> Self {
        let mut site = Site::ready(&HOSTS[..4]);
        let node = |name: &str| {
            let is_api_server = name == "h4";
            let (name, boot_id) = (host(name), Some("one".to_owned()));
            let node = SeenNode {
                name: name.to_string(),
                boot_id,
                is_ready: true,
                is_api_server,
                ..SeenNode::default()
            };
            (name, node)
        };
        site.view.nodes = Some(HOSTS[..4].iter().copied().map(node).collect());
        site.view.hosts.insert(host("h3"), seen(Some("edge")));
        let rebooting = |seen: &SeenHost| SeenHost {
            boot_id: Some("one".to_owned()),
            reboots_on_request: true,
            ..seen.clone()
        };
        let hosts = site.view.hosts.iter().map(|(name, seen)| (name.clone(), rebooting(seen)));
        site.view.hosts = hosts.collect();
        Self { site, runs: 0, world: None, boots: 0, granted: BTreeSet::new() }
    }

    pub(crate) fn input(&mut self, input: Input) {
        self.site.input(input);
    }

    /// Plays a step. After each one, the external holders are the clients that were granted a slot.
    pub(crate) fn play(&mut self, step: &Move) {
        self.perform(step);
        let semaphores = self.site.state.semaphores.iter();
        let held: Vec<_> = semaphores
            .flat_map(|(group, semaphore)| {
                semaphore.holders.iter().map(move |(id, holder)| (group, id, holder))
            })
            .filter(|(_, _, holder)| holder.client)
            .map(|(group, id, _)| (group.clone(), id.as_str()))
            .collect();
        assert_eq!(held, self.granted.iter().cloned().collect::<Vec<_>>(), "after {step:?}");
    }

    fn put_config(&mut self, rollout: Rollout, applications: bool) {
        let mut config = Config { rollout, ..config() };
        if !applications {
            config.worker_applications[0].name = application("nobodys");
        }
        let put = ConfigOperation::Put { config: config.into(), expected: Expected::Anything };
        self.input(Input::Request(Request::new("admin", put).into()));
    }

    fn deliver(&mut self) {
        for effect in self.site.effects() {
            if let Effect::Send(Order { id, .. }) = effect {
                self.send(id, true);
            }
        }
    }

    /// Every host that the run prepares is prepared.
    pub(crate) fn prepare(&mut self) {
        self.deliver();
        let hosts = self.site.state.run.iter().flat_map(Run::hosts);
        let preparing = hosts.filter(|(_, host)| host.status == HostStatus::Preparing);
        for name in preparing.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.site.reply(name.as_str(), Action::Prepare, Outcome::Done, InReplyTo::default());
        }
    }

    fn perform(&mut self, step: &Move) {
        match *step {
            Move::CarryOut { effect, outcome } => self.carry_out(effect, outcome),
            Move::Deliver => self.deliver(),
            Move::Answer { host, result, header } => self.answer(host, result, header),
            Move::Trigger { timeout_secs, validate } => {
                self.runs += 1;
                let (id, timeout) = (run(&format!("r{}", self.runs)), Duration::from_secs(timeout_secs));
                let operation = RunOperation::Trigger {
                    run: id,
                    timeout: Some(timeout),
                    targets: Targets::default(),
                    reason: None,
                };
                let request = Request { actor: "admin".to_owned(), validate, operation };
                self.input(Input::Request(request.into()));
            }
            Move::Cancel => self
                .input(Input::Request(Request::new("admin", RunOperation::Cancel { reason: None }).into())),
            Move::Wait { seconds } => {
                self.site.now += TimeDelta::seconds(seconds);
                self.input(Input::Tick);
            }
            Move::Skew { seconds } => {
                self.site.view.clock.doubt = seconds.map(|seconds| ClockDoubt::ClockSkew { seconds });
                self.input(Input::Tick);
            }
            Move::See { host, group, reachability, gone } => self.see(host, group, reachability, gone),
            Move::Hear { heard } => {
                self.site.view.has_awaited_replies = heard;
                self.input(Input::Tick);
            }
            Move::PutConfig { rollout, applications } => self.put_config(rollout.into(), applications),
            Move::Settings { external, release, slots, groups, approves, kubernetes, command } => {
                let provider = if external { LockProvider::External } else { LockProvider::Embedded };
                if let Some(world) = &mut self.world {
                    world.switched |= self.site.state.settings.provider != provider;
                }
                self.input(Input::Settings(Settings {
                    provider,
                    default_group: group("default"),
                    on_failure: if release { OnFailure::Release } else { OnFailure::Hold },
                    groups: (0..groups).map(|index| (group_of(index), slots[index])).collect(),
                    reclaim: Reclaim::Inventory,
                    auto_approve: approves,
                    kubernetes: kubernetes.map(cluster),
                    reboot: RebootSettings {
                        command: command.map(reboot_command),
                        ..RebootSettings::default()
                    },
                    ..Settings::default()
                }));
            }
            Move::Fence => {
                self.site.fence();
            }
            Move::Client { id, group, unlock } => {
                let (group, id) = (group_of(group), CLIENTS[id % CLIENTS.len()]);
                let known = (group.clone(), id);
                let operation = if unlock {
                    LockOperation::Unlock { group, id: client(id) }
                } else {
                    LockOperation::Lock { group, id: client(id) }
                };
                let request = Request::new(id, operation);
                match (self.site.input(Input::Request(request.into())).answer, unlock) {
                    (Some(Ok(_)), false) => drop(self.granted.insert(known)),
                    (Some(Ok(_)), true) => drop(self.granted.remove(&known)),
                    (Some(Err(_)) | None, _) => {}
                }
            }
            Move::Operator { id, group, choice } => {
                let (group, id) = (group_of(group), CLIENTS[id % CLIENTS.len()]);
                let known = (group.clone(), id);
                let (name, reason) = (client(id), "disk".to_owned());
                let operation = match choice % 3 {
                    0 => SlotOperation::Hold { group, id: name, reason },
                    1 => SlotOperation::Release { group, id: name, reason },
                    _ => SlotOperation::Reclaim { group, id: name },
                };
                let request = Request::new("eve", operation).into();
                let before = self.site.state.slots.get(&host(id)).map(|slot| slot.group.clone());
                if let (Some(Ok(_)), 1 | 2) = (self.site.input(Input::Request(request)).answer, choice % 3) {
                    // Operators know whether the host is at work outside of runs.
                    if let Some(world) = self.world.as_mut().filter(|_| before.as_ref() == Some(&known.0)) {
                        world.at_work.remove(&host(id));
                    }
                    self.granted.remove(&known);
                }
            }
            Move::Enrol { host, choice } => self.enrol(name_of(host), choice),
            Move::Reboot { host, choice } => self.reboot(name_of(host), choice),
            Move::Lie(lie) => self.lie(lie),
        }
    }

    fn enrol(&mut self, host: HostName, choice: usize) {
        let reason = "moved".to_owned();
        if choice % 6 == 5 {
            let give_up = RunOperation::GiveUpHost { host, reason };
            self.input(Input::Request(Request::new("eve", give_up).into()));
            return;
        }
        let operation = match choice % 6 {
            0 | 1 => {
                let (hosts, keys) = (vec![host], BTreeMap::new());
                EnrolmentOperation::Approve { hosts, keys, machines: BTreeMap::new() }
            }
            2 => EnrolmentOperation::Remove { host, reason },
            _ if choice.is_multiple_of(4) => EnrolmentOperation::Defer { host, reason, until: None },
            _ if choice % 4 == 1 => EnrolmentOperation::EndDeferral { host, reason: None },
            _ => EnrolmentOperation::Withdraw { host, reason },
        };
        let request = Request { actor: "eve".to_owned(), validate: choice == 3, operation };
        self.input(Input::Request(request.into()));
    }

    fn reboot(&mut self, host: HostName, choice: usize) {
        let picked = choice / 10 % self.site.state.reboot_queue.entries.len().max(1);
        let index = self.site.state.reboot_queue.entries.keys().nth(picked).copied().unwrap_or(0);
        let reason = None;
        if choice % 11 == 10 {
            let name = host.clone();
            let uncordon = NodeOperation::Uncordon { host, reason: "mended".to_owned() };
            self.input(Input::Request(Request::new("eve", uncordon).into()));
            // Without a cluster in the settings, an operator says that the node is looked after.
            if let Some(world) = self.world.as_mut().filter(|_| !self.site.state.nodes.contains_key(&name)) {
                world.cordoned.remove(&name);
            }
            return;
        }
        let operation = match choice % 11 {
            0..=3 => RebootOperation::Add { hosts: vec![host], reason },
            4 => RebootOperation::Cancel { index, reason },
            5 => RebootOperation::GiveUp { index, reason: "burnt".to_owned() },
            6 => RebootOperation::Disable { reason },
            7 | 8 => RebootOperation::Enable { reason },
            _ => RebootOperation::CancelAll { reason },
        };
        self.input(Input::Request(Request::new("eve", operation).into()));
    }

    pub(crate) fn lie(&mut self, lie: Lie) {
        match lie {
            Lie::FenceStored { sequence } => {
                self.input(Input::FenceStored { sequence, leader: "other".to_owned() });
            }
            Lie::Command { host, run: of, action, attempt, named } => {
                let runs = self.runs.max(1);
                let id = CommandId {
                    run: run(&format!("r{}", 1 + of % runs)),
                    host: name_of(named),
                    action: Action::ALL[action % 3],
                    attempt,
                };
                let host = if host % 4 == 0 { name_of(host / 4) } else { id.host.clone() };
                self.site.control(ControlMessage::Command { host, id: Some(id) });
            }
            Lie::Reply { host, action, result, in_reply_to, malformed } => {
                let reply = Reply { action: Action::ALL[action % 3], result: result_of(result) };
                let reply = if malformed { Err("not JSON".to_owned()) } else { Ok(reply) };
                let in_reply_to = InReplyTo { sequence: in_reply_to, run: None };
                self.site.control(ControlMessage::Reply { host: name_of(host), reply, in_reply_to });
            }
            Lie::OldControl { sequence } => {
                let message = ControlMessage::Unknown { subject: "x".to_owned() };
                self.input(Input::Control { sequence, message });
                self.site.last_sequence = self.site.last_sequence.max(sequence);
            }
            Lie::Gap { by } => self.site.last_sequence += by,
            Lie::Lock { host, outcome, unlock } => {
                let order = if unlock { SlotOrder::Unlock } else { SlotOrder::Lock };
                self.input(slot_done(order, name_of(host), outcome_of(outcome)));
            }
            Lie::Retracted { host, sequence, deleted } => {
                self.input(Input::Retracted { host: name_of(host), sequence, deleted });
            }
        }
    }

    pub(crate) fn carry_out(&mut self, effect: usize, outcome: usize) {
        if outcome % 4 == 3 {
            self.land_one(effect);
        }
        let effects = self.site.effects();
        if effects.is_empty() {
            return;
        }
        match effects[effect % effects.len()].clone() {
            Effect::Send(Order { id, .. }) => self.send(id, outcome % 4 < 2),
            Effect::Job(job) => {
                if let Some(job) = NodeJob::of(&job).cloned() {
                    let outcome = self.request_node(&job, outcome);
                    return self.input(Input::JobDone(JobDone::Cluster(job, outcome)));
                }
                if let Some(job) = CommandJob::of(&job).cloned() {
                    return self.run_command(job, outcome);
                }
                let Some(job) = SlotJob::of(&job).cloned() else { unreachable!("there is no other system") };
                let outcome = self.request_lock(outcome, |world| match job.order {
                    SlotOrder::Lock => world.lock(&job.host, &job.group),
                    SlotOrder::Unlock => world.unlock(&job.host, &job.group),
                });
                self.input(Input::JobDone(JobDone::LockServer(job, outcome)));
            }
            Effect::NewFence { .. } => {
                self.site.fence();
            }
            Effect::Manifest(ManifestOrder { host, revision, .. }) => {
                self.input(Input::ManifestStored { host, revision });
            }
            Effect::Purge(Purge { host, announced, .. }) => self.input(Input::Purged { host, announced }),
            Effect::Retract { host, sequence } => {
                self.input(Input::Retracted { host, sequence, deleted: outcome.is_multiple_of(2) });
            }
        }
    }

    /// A command is published, and is stored in the stream at once or later.
    fn send(&mut self, id: CommandId, at_once: bool) {
        let fence = self.site.state.fence.as_ref().map_or(0, |fence| fence.sequence);
        match &mut self.world {
            Some(world) => {
                world.in_flight.push((id, fence));
                if at_once {
                    self.land_one(self.world.as_ref().map_or(0, |world| world.in_flight.len() - 1));
                }
            }
            None => {
                self.site.command(id);
            }
        }
    }

    /// One of the published commands is stored, unless the bus refuses it for an old fence.
    fn land_one(&mut self, index: usize) {
        let fence = self.site.state.fence.as_ref().map_or(0, |fence| fence.sequence);
        let Some(world) = self.world.as_mut().filter(|world| !world.in_flight.is_empty()) else { return };
        let (id, sent_under) = world.in_flight.swap_remove(index % world.in_flight.len());
        let is_start = id.action != Action::Prepare;
        if sent_under != fence {
            return;
        }
        // Like the dispatcher, which publishes a command once under a fence, however often the effect is derived.
        if !world.landed.insert((id.clone(), fence)) {
            return;
        }
        let is_ending = |node: &os_upgrade_kernel::Node| matches!(node.stage, NodeStage::Uncordoning { .. });
        let node = self.site.state.nodes.get(&id.host).filter(|node| !is_ending(node));
        if is_start && node.is_some() {
            assert!(world.drained.contains(&id.host), "{id} lands on a node that is not drained");
            assert_eq!(world.cordoned.get(&id.host).map(|mark| mark.sequence), Some(fence), "{id}");
        }
        let slot = self.site.state.slots.get(&id.host);
        assert!(!is_start || slot.is_some_and(|slot| slot.state == SlotState::Held), "{id} lands: {slot:?}");
        if is_start {
            world.at_work.insert(id.host.clone(), self.site.last_sequence + 1);
        }
        self.site.command(id);
    }

    /// The outcome of work on a node. The request or the answer may be lost.
    fn request_node(&mut self, job: &NodeJob, outcome: usize) -> NodeOutcome {
        let mut anything = World::default();
        let world = self.world.as_mut().unwrap_or(&mut anything);
        let is_lost = outcome % 4 == 2;
        let answer = (outcome % 4 < 3).then(|| world.cluster(job, outcome / 4 % 4)).filter(|_| !is_lost);
        answer.unwrap_or(NodeOutcome::Unreachable { why: NoAnswer::TimedOut })
    }

    /// A command of the operator ends. It may have rebooted the host although it failed.
    fn run_command(&mut self, job: CommandJob, outcome: usize) {
        let outcome = match (&job.order, outcome % 5) {
            (CommandOrder::CheckBoot { .. }, 0 | 1) => CommandOutcome::Booted,
            (CommandOrder::CheckBoot { .. }, _) => CommandOutcome::NotBooted,
            (CommandOrder::Reboot { .. }, 3) => {
                return self.input(Input::JobDone(JobDone::NotBegun(Job::RebootCommand(job))));
            }
            (CommandOrder::Reboot { .. }, number) => {
                if number < 2 {
                    self.boots(&job.host);
                }
                match number {
                    0 => CommandOutcome::Succeeded,
                    1 => CommandOutcome::Failed { detail: "255".to_owned(), output: String::new() },
                    4 => CommandOutcome::NotStarted { detail: "no process".to_owned() },
                    _ => CommandOutcome::Unknown { detail: "signal 9".to_owned(), output: String::new() },
                }
            }
        };
        self.input(Input::JobDone(JobDone::RebootCommand(job, outcome)));
    }

    /// A host leaves its boot.
    fn boots(&mut self, host: &HostName) {
        self.boots += 1;
        let boot_id = Some(format!("boot-{}", self.boots));
        if let Some(node) = self.site.view.nodes.as_mut().and_then(|nodes| nodes.get_mut(host)) {
            node.boot_id.clone_from(&boot_id);
        }
        if let Some(seen) = self.site.view.hosts.get_mut(host) {
            seen.boot_id = boot_id;
        }
    }

    /// The outcome of a request to the lock server: a random one without a world; otherwise the server's answer, unless
    /// the request or the answer is lost.
    fn request_lock(&mut self, outcome: usize, call: impl FnOnce(&mut World) -> bool) -> LockOutcome {
        let Some(world) = &mut self.world else { return outcome_of(outcome) };
        let granted = outcome % 4 < 3 && call(world);
        match outcome % 4 {
            0 | 1 => outcome_of(usize::from(!granted)),
            _ => outcome_of(2),
        }
    }

    /// The worker of one of the hosts with a command answers it.
    pub(crate) fn answer(&mut self, index: usize, result: usize, header: bool) {
        let runs = self.site.state.run.iter().chain(&self.site.state.last_run);
        let of_run = runs.flat_map(|run| run.hosts().iter().map(|(name, host)| (run.id.clone(), name, host)));
        let of_run = of_run.filter_map(|(run, name, host)| {
            let command = host.command?;
            Some((run, name.clone(), command.action, command.sequence?))
        });
        let of_entries = self.site.state.reboot_queue.under_way().filter_map(|(index, entry)| {
            let command = entry.command?;
            Some((entry.owner(index).id(), entry.host.clone(), command.action, command.sequence?))
        });
        let sent: Vec<(RunId, HostName, Action, u64)> = of_run.chain(of_entries).collect();
        if let Some((run, name, action, sequence)) = sent.get(index % sent.len().max(1)) {
            let answers = |at: &u64| !header || at == sequence;
            if let Some(world) =
                self.world.as_mut().filter(|world| world.at_work.get(name).is_some_and(answers))
                && *action != Action::Prepare
                && result_of(result) == Outcome::Done
            {
                world.at_work.remove(name);
            }
            let in_reply_to =
                InReplyTo { sequence: header.then_some(*sequence), run: header.then(|| run.clone()) };
            self.site.reply(name.as_str(), *action, result_of(result), in_reply_to);
        }
    }

    pub(crate) fn see(&mut self, host: usize, group: usize, reachability: usize, gone: bool) {
        let name = self::host(HOSTS[host % 4]);
        if gone {
            self.site.view.hosts.remove(&name);
        } else {
            let reachabilities = [
                Reachability::Unknown,
                Reachability::Awaited,
                Reachability::Reachable,
                Reachability::Unreachable,
            ];
            let mut seen = seen(None);
            seen.group = (!group.is_multiple_of(4)).then(|| group_of(group));
            seen.reachability = reachabilities[reachability % 4];
            seen.boot_id = Some(format!("b{}", reachability / 4 % 3));
            seen.reboots_on_request = !reachability.is_multiple_of(3);
            self.site.view.hosts.insert(name, seen);
        }
        self.input(Input::Tick);
    }

    /// Whether all that is left to do is to look at nodes until it is known which boot their hosts are to leave.
    fn awaits_only_boots(&self) -> bool {
        self.site.effects().iter().all(|effect| {
            let Effect::Job(job) = effect else { return false };
            let Some(NodeJob { host, .. }) = NodeJob::of(job) else { return false };
            self.site.state.entry_under_way(host).is_some_and(|(_, entry)| entry.command.is_none())
        })
    }

    /// If nothing but time helps, it passes: for a slot that is released once more, for a drain that was given up, for one that is
    /// to be, and for a host that is prepared again.
    fn pass_time(&mut self) {
        if !self.awaits_only_boots() {
            return;
        }
        let again = self.site.state.slots.values().filter_map(os_upgrade_kernel::Slot::unlock_again_at);
        let in_run = self.site.state.run.iter().flat_map(|run| run.hosts().values());
        let until = in_run.flat_map(|host| [host.backoff, host.retry]).flatten().map(|backoff| backoff.until);
        let drain_timeout = self.site.state.settings.drain_timeout().to_delta();
        let given_up = self.site.state.nodes.values().map(|node| node.since + drain_timeout);
        if let Some(next) = again.chain(until).chain(given_up).filter(|until| *until > self.site.now).min() {
            self.site.now = next;
            self.input(Input::Tick);
        }
    }

    /// Hosts that the operator's command may have rebooted are back, in another boot.
    fn hosts_are_back(&mut self) {
        let told = self.site.state.reboot_queue.under_way().filter(|(_, entry)| entry.attempt.is_some());
        for host in told.map(|(_, entry)| entry.host.clone()).collect::<Vec<_>>() {
            let back = self.site.view.hosts.entry(host.clone()).or_insert_with(|| seen(None));
            back.reachability = Reachability::Reachable;
            self.boots(&host);
        }
        self.input(Input::Tick);
    }

    /// Faults stop: every effect is carried out and every worker answers, until no run is active.
    pub(crate) fn heal(&mut self) {
        self.site.view.clock.doubt = None;
        self.site.view.has_awaited_replies = true;
        let claimed = self.site.state.fence.as_ref().map_or(0, |fence| fence.sequence);
        self.site.last_sequence = self.site.last_sequence.max(claimed);
        self.site.fence();
        for _ in 0..100 {
            self.hosts_are_back();
            self.pass_time();
            self.play(&Move::Deliver);
            for index in 0..2 * HOSTS.len() {
                self.answer(index, 0, true);
            }
            for index in 0..self.site.effects().len() {
                self.carry_out(index, 0);
            }
            let mut under_way = self.site.state.reboot_queue.under_way();
            let is_idle = under_way.all(|(_, entry)| entry.has_failed() || entry.command.is_none());
            if is_idle && self.site.state.run.is_none() && self.awaits_only_boots() {
                return;
            }
        }
        let (state, effects) =
            (super::render::state(&self.site.state), super::render::effects(&self.site.effects()));
        panic!("no end: {state:#?}, to do: {effects}");
    }
}
