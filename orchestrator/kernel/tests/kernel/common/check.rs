//! Checks after every input, whatever it was: the kernel's part of the promises S1 to S6, and turns.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use os_upgrade_kernel::fact::{EnrolmentFact, QueueFact, RunFact, SlotFact};
use os_upgrade_kernel::reboot_queue::{AttemptStage, EntryEvent, EntryStatus};
use os_upgrade_kernel::{
    Batch, Effect, Enrolment, Fact, HostEvent, HostStatus, Input, LockProvider, NodeJob, NodeOrder,
    NodeStage, Order, Reason, Record, Run, RunHost, Slot, SlotJob, SlotOrder, SlotState, State, View,
    effects,
};
use os_upgrade_protocol::{Action, GroupName, HostName};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// An input, the state and view it was decided on, and the record that was decided.
pub(crate) struct Step<'a> {
    pub(crate) before: &'a State,
    pub(crate) view: &'a View,
    pub(crate) input: &'a Input,
    pub(crate) record: &'a Record,
}

/// Checks `step`, which led to `after`.
pub(crate) fn step(step: &Step<'_>, after: &State, lowered: bool) {
    replays(step, after);
    is_settled(step, after);
    slots_are_counted(after, lowered);
    sent_commands_are_covered_by_slots(after, lowered);
    reboots_are_covered_by_slots(step, after);
    external_slots_are_released(step, after);
    only_enrolled_hosts_begin(step, after);
    runs_end(step, after);
    nodes_are_covered_by_slots(after);
    let counted: usize =
        after.run.iter().flat_map(|run| HostStatus::ALL.map(|status| run.count(status))).sum();
    assert_eq!(counted, after.run.as_ref().map_or(0, |run| run.hosts().len()));
}

fn round_trip<T: Serialize + DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

/// The journal leads to the same state, and so does a snapshot, including the index, which is rebuilt when read.
fn replays(step: &Step<'_>, after: &State) {
    let record: Record = round_trip(step.record);
    assert_eq!(record, *step.record);
    let mut replayed = step.before.clone();
    replayed.apply_record(&record).unwrap();
    assert_eq!(replayed, *after);
    assert_eq!(round_trip(after), *after);
}

/// Nothing more follows from the state, nor from the same message again; effects are a function of the state.
fn is_settled(step: &Step<'_>, after: &State) {
    let again = |input: &Input| {
        let mut batch = Batch::new(after, step.record.at);
        batch.decide(step.view, input);
        batch.finish().0.facts
    };
    let mut ticked = again(&Input::Tick);
    // What follows for units is found at ticks only, and it may take several of them.
    ticked.retain(|fact| !matches!(fact, Fact::Unit(_)));
    assert_eq!(ticked, []);
    match step.input {
        Input::Control { .. }
        | Input::Due { .. }
        | Input::Missed { .. }
        | Input::LeadershipBegan
        | Input::FenceStored { .. }
        | Input::Settings(_)
        | Input::Retracted { .. }
        | Input::Purged { .. }
        | Input::ItemStored { .. }
        | Input::ItemRevoked { .. }
        | Input::ManifestStored { .. }
        | Input::HookTokenDrawn { .. }
        | Input::HookAnswered { .. } => {
            assert_eq!(again(step.input), [], "{:?} once more", step.input);
        }
        Input::Request(_) | Input::JobDone(_) | Input::NodesSeen | Input::Tick => {}
    }
    let (now, once_more): (Vec<_>, Vec<_>) = (effects(after).collect(), effects(after).collect());
    assert_eq!(now, once_more);
    let mut distinct = now.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), now.len(), "the same effect twice: {now:?}");
}

/// S1: no more holders than slots, beside those of failed hosts that do not count, unless the slots became fewer. The embedded slots of hosts are the holders on behalf of
/// runs in the semaphores.
fn slots_are_counted(after: &State, lowered: bool) {
    let mut holders = 0;
    for (group, semaphore) in after.semaphores.iter() {
        let limit = after.settings.failed.get(group).copied().unwrap_or(0) as usize;
        let failed = after.slots.values().filter(|slot| slot.group == *group && slot.failed).count();
        let may_be_held = semaphore.slots as usize + failed.min(limit);
        assert!(lowered || semaphore.holders.len() <= may_be_held, "{group}: {semaphore:?}");
        for (id, holder) in &semaphore.holders {
            let is_held = holder.client || holder.owner.is_some() || holder.hold.is_some();
            assert!(is_held, "{id} in {group} holds it for nobody");
            let slot = after.slots.iter().find(|(host, _)| host.as_str() == id).map(|(_, slot)| slot);
            let embedded =
                slot.filter(|slot| slot.provider == LockProvider::Embedded && slot.group == *group);
            let held = embedded.filter(|slot| slot.state == SlotState::Held).map(|slot| &slot.owner);
            assert_eq!(held, holder.owner.as_ref(), "{id} in {group}");
            holders += usize::from(holder.owner.is_some());
        }
    }
    let embedded = after.slots.values().filter(|slot| slot.provider == LockProvider::Embedded).count();
    assert_eq!(embedded, holders);
}

/// S4: a host under way holds a slot of its group on behalf of the run. S2: without a run nothing is sent.
fn sent_commands_are_covered_by_slots(after: &State, lowered: bool) {
    if let Some(run) = &after.run {
        assert!(run.under_way().len() - run.overdue().len() <= run.rollout.max_concurrent as usize);
        let is_told =
            |host: &&RunHost| host.command.is_some_and(|it| it.action == Action::Prepare && !it.answered);
        // Those that hold a slot do not count, nor did those that held one when they were told, of which there may have been more before semaphores
        // were lowered, or at a lock server.
        let is_bounded = !lowered && after.settings.provider == LockProvider::Embedded;
        if let Some(max) = run.rollout.max_preparing.filter(|_| is_bounded) {
            let held: usize = after.semaphores.iter().map(|(_, semaphore)| semaphore.slots as usize).sum();
            let others = run.unprepared().iter().filter(|name| !after.slots.contains_key(*name));
            let unanswered = others.filter_map(|name| run.host(name)).filter(is_told);
            let groups: BTreeSet<_> = run.hosts().values().map(|host| &host.group).collect();
            assert!(unanswered.count() < max as usize + groups.len() + held);
        }
        for name in run.under_way() {
            let slot = after.slots.get(name).unwrap_or_else(|| panic!("{name} is under way without a slot"));
            let group = &run.host(name).unwrap().group;
            assert_eq!(
                (&slot.state, slot.owner.run(), &slot.group),
                (&SlotState::Held, Some(&run.id), group),
                "{name}"
            );
        }
    }
    for effect in effects(after) {
        match effect {
            Effect::Send(Order { id, not_after: None, boot_id }) => {
                let (index, entry) = after.entry_under_way(&id.host).expect("it is sent for an entry");
                assert_eq!((id.run, boot_id), (entry.owner(index).id(), entry.boot_id.clone()));
                assert!(after.fence.as_ref().is_some_and(|fence| fence.passed));
            }
            Effect::Send(Order { id, not_after: Some(not_after), boot_id: _ }) => {
                let run = after.run.as_ref().expect("nothing is sent without a run");
                assert_eq!((&id.run, not_after), (&run.id, run.not_after));
                assert!(after.fence.as_ref().is_some_and(|fence| fence.passed));
                assert_eq!(run.under_way().contains(&id.host), id.action != Action::Prepare, "{id}");
            }
            Effect::Job(job) => {
                if let Some(SlotJob { order, host, group }) = SlotJob::of(&job) {
                    let slot = &after.slots[host];
                    assert_eq!((slot.provider, &slot.group), (LockProvider::External, group));
                    let in_run = after.run.as_ref().is_some_and(|run| run.waiting().contains(host));
                    let is_waiting = in_run || after.entry_of_slot(host).is_some();
                    assert!(is_waiting || *order == SlotOrder::Unlock);
                }
            }
            Effect::NewFence { .. } | Effect::Retract { .. } | Effect::Purge(_) | Effect::Manifest(_) => {}
        }
    }
}

/// The host of an entry that is under way holds its slot for the entry, and no run has it under way. As many as may be start, and
/// none while the queue is disabled.
fn reboots_are_covered_by_slots(step: &Step<'_>, after: &State) {
    let queue = &after.reboot_queue;
    for (index, entry) in queue.under_way() {
        let slot = after.slots.get(&entry.host).unwrap_or_else(|| panic!("{entry:?} has no slot"));
        assert_eq!((slot.state, &slot.owner), (SlotState::Held, &entry.owner(index)), "{entry:?}");
        assert!(!after.run.as_ref().is_some_and(|run| run.under_way().contains(&entry.host)), "{entry:?}");
        assert_eq!(
            entry.status == EntryStatus::Rebooting,
            (entry.boot_id.is_some() && entry.command.is_some()) || entry.attempt.is_some()
        );
    }
    let starts = |fact: &Fact| {
        matches!(fact, Fact::Queue(QueueFact::Reboot { event: EntryEvent::Started { .. }, .. }))
    };
    if step.record.facts.iter().any(starts) {
        assert!(queue.under_way().count() <= after.settings.reboot.max_concurrent as usize);
        assert!(!(step.before.reboot_queue.disabled && queue.disabled));
    }
    // An entry that was cancelled stays until its node is uncordoned.
    let is_cordoned = |host: &HostName| after.nodes.contains_key(host);
    let mut cancelled = queue.entries.values().filter(|entry| entry.status == EntryStatus::Cancelled);
    assert!(cancelled.all(|entry| is_cordoned(&entry.host)));
}

/// A host at work has its node drained, if it has one, and a node that is to be uncordoned before its slot is released has a slot.
/// Nothing is evicted but for a host that holds its slot for it.
fn nodes_are_covered_by_slots(after: &State) {
    for (host, node) in &after.nodes {
        let slot = after.slots.get(host);
        let held = slot.filter(|slot| slot.state == SlotState::Held);
        let in_run = after.run.as_ref().and_then(|run| run.host(host)).map(|in_run| in_run.status);
        match &node.stage {
            NodeStage::Uncordoning { release: Some(_), .. } => assert!(held.is_some(), "{host}: {node:?}"),
            NodeStage::Checking | NodeStage::Evicting | NodeStage::Drained | NodeStage::Rechecking => {
                assert!(in_run != Some(HostStatus::Recovering), "{host}: {node:?}");
            }
            NodeStage::Uncordoning { release: None, .. } => {}
        }
        // Without a cluster in the settings a host is upgraded while an earlier cordon of its node is still being ended.
        let is_ending = matches!(node.stage, NodeStage::Uncordoning { release: None, .. });
        let at_work = matches!(in_run, Some(HostStatus::Upgrading | HostStatus::Rebooting));
        let is_drained = matches!(node.stage, NodeStage::Drained | NodeStage::Rechecking);
        assert!(!at_work || is_drained || is_ending, "{host}: {node:?}");
    }
    for (_, entry) in after.reboot_queue.under_way() {
        let host = &entry.host;
        // What the operator's command reboots has a slot, and is drained.
        if entry.is_at(AttemptStage::Running) {
            assert_eq!(after.slots[host].state, SlotState::Held, "{host}");
            let stage = after.nodes.get(host).map(|node| &node.stage);
            assert!(
                matches!(
                    stage,
                    None | Some(NodeStage::Drained | NodeStage::Uncordoning { release: None, .. })
                ),
                "{host}: {stage:?}"
            );
        }
    }
    for effect in effects(after) {
        let Effect::Job(job) = effect else { continue };
        let Some(NodeJob { order, host, .. }) = NodeJob::of(&job) else { continue };
        if let NodeOrder::Check { owner, .. } | NodeOrder::Evict { owner, .. } = order {
            let slot = &after.slots[host];
            assert_eq!((slot.state, &slot.owner), (SlotState::Held, owner), "{host}");
        }
    }
    let under_way = after.run.iter().flat_map(|run| run.under_way().iter().map(move |host| (run, host)));
    for (run, host) in under_way {
        let status = run.host(host).unwrap().status;
        let needs_node = matches!(status, HostStatus::Draining | HostStatus::Recovering);
        assert!(!needs_node || after.nodes.contains_key(host), "{host} is {status} without a node");
    }
}

/// A slot that a lock server may hold for a host is removed only once the server has confirmed its release.
fn external_slots_are_released(step: &Step<'_>, after: &State) {
    for (host, slot) in step.before.slots.iter().filter(|(_, slot)| slot.provider == LockProvider::External) {
        let released = step.record.facts.iter().any(
            |fact| matches!(fact, Fact::Slot(SlotFact::Released { host: released, .. }) if released == host),
        );
        let kept = after
            .slots
            .get(host)
            .is_some_and(|now| now.provider == LockProvider::External && now.group == slot.group);
        assert!(kept || released, "{host}: {slot:?} is gone");
        if matches!(slot.state, SlotState::Releasing { .. }) && !released {
            assert_eq!(after.slots[host].state, slot.state, "{host}");
        }
    }
}

/// Hosts that take part in a run were enrolled when it started; a host withdrawn since then has begun, or never begins.
fn only_enrolled_hosts_begin(step: &Step<'_>, after: &State) {
    let started = step.record.facts.iter().filter_map(|fact| {
        if let Fact::Run(RunFact::Started { hosts, .. }) = fact { Some(hosts) } else { None }
    });
    for entry in started.flatten() {
        let enrolled = step.before.enrolled(&entry.host);
        match &entry.skipped {
            None | Some(Reason::Unreachable) => {
                assert!(enrolled.takes_part(), "{entry:?} is {enrolled:?}");
                assert!(!after.enrolment.deferred.contains_key(&entry.host), "{entry:?} is deferred");
            }
            Some(reason) => assert_eq!(step.before.left_out(&entry.host).as_ref(), Some(reason)),
        }
    }
    for (name, host) in after.run.iter().flat_map(Run::hosts) {
        let may_begin =
            [HostStatus::Pending, HostStatus::Preparing, HostStatus::Prepared, HostStatus::Waiting];
        let Enrolment { withdrawn, deferred, .. } = &after.enrolment;
        let is_out = withdrawn.contains_key(name) || deferred.contains_key(name);
        assert!(!(is_out && may_begin.contains(&host.status)), "{name} is left out, and {}", host.status);
    }
    assert!(after.enrolment.withdrawn.keys().all(|host| !after.enrolment.approved.contains_key(host)));
}

/// Every host of an ended run has a final status, and a run ends at its `not-after`.
fn runs_end(step: &Step<'_>, after: &State) {
    if let Some(ended) = &after.last_run {
        assert!(ended.is_finished() && ended.ended.is_some());
        assert!(ended.unsent().is_empty() && ended.under_way().is_empty());
    }
    if let Some(run) = &after.run {
        assert!(run.ended.is_none() && !run.is_finished());
        assert!(step.record.at < run.not_after || !step.view.may_time_out());
        let is_grant = |fact: &Fact| {
            matches!(fact, Fact::Slot(SlotFact::Requested { owner, .. }) if owner.is_run(&run.id))
                || matches!(fact, Fact::Run(RunFact::Host { event: HostEvent::SlotGranted { .. }, .. }))
        };
        assert!(step.record.at < run.not_after || !step.record.facts.iter().any(is_grant));
    } else {
        // Without a run slots are requested for entries of the reboot queue alone.
        let is_of_run = |(host, slot): (&HostName, &Slot)| {
            slot.state == SlotState::Requested && after.entry_of_slot(host).is_none()
        };
        assert!(!after.slots.iter().any(is_of_run));
    }
}

/// The turns of the hosts, told from the facts alone.
#[derive(Debug, Default)]
pub(crate) struct LastTurns {
    runs: usize,
    /// The number of the run in which each host had its last turn.
    last: BTreeMap<HostName, usize>,
    /// The same as far as it counts in the newest run.
    in_run: BTreeMap<HostName, usize>,
    /// The hosts of the newest run that were told to prepare, if only some are at a time: one that comes no further has had its turn.
    told: BTreeSet<HostName>,
    are_some_told: bool,
}

impl LastTurns {
    /// Follows the facts of `step`, and checks that each embedded slot goes to the host whose turn it is.
    pub(crate) fn follow(&mut self, step: &Step<'_>) {
        let mut state = step.before.clone();
        for fact in &step.record.facts {
            if let Fact::Run(RunFact::Host { host, event: HostEvent::SlotGranted { provider, .. }, .. }) =
                fact
            {
                if *provider == LockProvider::Embedded {
                    Turn { turns: self, state: &state, view: step.view, now: step.record.at }.check(host);
                }
                self.last.insert(host.clone(), self.runs);
                self.in_run.insert(host.clone(), self.runs);
            } else if let Fact::Run(RunFact::Started { rollout, .. }) = fact {
                self.runs += 1;
                self.in_run = self.last.clone();
                (self.told, self.are_some_told) = (BTreeSet::new(), rollout.max_preparing.is_some());
            } else if let Fact::Run(RunFact::Host { host, event, .. }) = fact {
                let is_over = matches!(event, HostEvent::Failed { .. } | HostEvent::TimedOut { .. });
                if self.are_some_told
                    && matches!(event, HostEvent::CommandSent { action: Action::Prepare, .. })
                {
                    self.told.insert(host.clone());
                } else if is_over && self.told.contains(host) {
                    self.last.insert(host.clone(), self.runs);
                }
            } else if let Fact::Enrolment(EnrolmentFact::HostRemoved { host, .. }) = fact {
                self.last.remove(host);
            }
            state.apply(step.record.at, fact).unwrap();
        }
    }
}

/// A site just before one of its hosts is granted a slot in a run.
struct Turn<'a> {
    turns: &'a LastTurns,
    state: &'a State,
    view: &'a View,
    now: DateTime<Utc>,
}

impl Turn<'_> {
    /// Of the hosts that are next in their groups, the one whose last turn lies most runs back is granted its slot, ties by
    /// name.
    fn check(&self, granted: &HostName) {
        let run = self.state.run.as_ref().unwrap();
        let mut groups: BTreeMap<&GroupName, Vec<_>> = BTreeMap::new();
        for (name, host) in run.hosts().iter().filter(|(name, host)| self.is_ready(name, host)) {
            groups.entry(&host.group).or_default().push((name, host));
        }
        let group = &run.host(granted).unwrap().group;
        for (of, hosts) in groups {
            let next = self.next(run, &hosts);
            if of == group {
                assert_eq!(next, Some(granted), "of group {of}");
            } else if let Some(other) = next.filter(|other| self.may_be_drained(other)) {
                assert!(
                    self.place(granted) < self.place(other),
                    "{granted} is granted a slot before {other}"
                );
            }
        }
    }

    /// The one of the hosts of a group that is granted its next slot. Whoever waits stays first. If there is no slot for the
    /// first host, those go that hold theirs.
    fn next<'a>(&self, run: &Run, hosts: &[(&'a HostName, &RunHost)]) -> Option<&'a HostName> {
        let admits = |(name, host): &(&HostName, &RunHost)| {
            let arrived = if host.status == HostStatus::Waiting { host.since } else { self.now };
            let until = run.not_after;
            let uncounted = self.state.uncounted(self.view, &host.group, name);
            let semaphores = &self.state.semaphores;
            semaphores.admits_host(&host.group, name.as_str(), uncounted, arrived, self.now, until).is_ok()
        };
        let is_embedded =
            |slot: &Slot, host: &RunHost| slot.provider == LockProvider::Embedded && slot.group == host.group;
        let holds = |(name, host): &(&HostName, &RunHost)| {
            let slot = self.state.slots.get(*name).filter(|slot| is_embedded(slot, host));
            slot.is_some_and(|slot| slot.state == SlotState::Held)
        };
        let hosts = || hosts.iter().copied();
        let first =
            hosts().min_by_key(|(name, host)| (host.status != HostStatus::Waiting, self.place(name)))?;
        let next = if let Some(server) = hosts().find(|(name, _)| self.is_server_left(name))
            && admits(&first)
            && self.state.settings.has_node(first.0)
        {
            Some(server)
        } else if admits(&first) {
            // A slot that it holds elsewhere is released first.
            let slot = self.state.slots.get(first.0);
            Some(first).filter(|(_, host)| slot.is_none_or(|slot| is_embedded(slot, host)))
        } else {
            hosts().filter(holds).filter(admits).min_by_key(|(name, _)| self.place(name))
        };
        next.map(|(name, _)| name)
    }

    fn place<'a>(&self, name: &'a HostName) -> (usize, &'a HostName) {
        (self.turns.in_run.get(name).copied().unwrap_or(0), name)
    }

    /// Whether nothing about the host itself keeps it from starting.
    fn is_ready(&self, name: &HostName, host: &RunHost) -> bool {
        let is_blocked = |slot: &Slot| {
            matches!(slot.state, SlotState::Releasing { .. })
                || slot.may_see_late_command(self.state.fence.as_ref())
        };
        matches!(host.status, HostStatus::Prepared | HostStatus::Waiting)
            && host.backoff.is_none_or(|backoff| backoff.until <= self.now)
            && self.state.entry_under_way(name).is_none()
            && !self.state.slots.get(name).is_some_and(is_blocked)
    }

    /// Whether it is an API server that ended without success and still holds its slot.
    fn is_server_left(&self, name: &HostName) -> bool {
        let node = self.view.nodes.as_ref().and_then(|nodes| nodes.get(name));
        let is_at_work = self.state.entry_under_way(name).is_some()
            || self.state.run.as_ref().is_some_and(|run| run.under_way().contains(name));
        node.is_some_and(|node| node.is_api_server)
            && self.state.settings.has_node(name)
            && self.state.slots.get(name).is_some_and(|slot| slot.state == SlotState::Held)
            && !is_at_work
    }

    /// Whether every API server of the cluster is still drained alone if the node of `name` is drained now.
    fn may_be_drained(&self, name: &HostName) -> bool {
        let Some(nodes) = &self.view.nodes else { return !self.state.settings.has_node(name) };
        let is_server = |host: &HostName| nodes.get(host).is_some_and(|node| node.is_api_server);
        let under_way = self.state.nodes.keys().filter(|host| !self.state.stays_cordoned(host));
        let left = self.state.slots.keys().filter(|host| self.is_server_left(host));
        let mut others = under_way.chain(left).filter(|host| *host != name);
        !self.state.settings.has_node(name) || !others.any(|other| is_server(other) || is_server(name))
    }
}
