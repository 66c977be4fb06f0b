//! The Kubernetes nodes of hosts. Rules:
//!
//! - `servers`: no API server starts beside another node that is under way, and no node beside an API server.
//! - `drain`: no `upgrade` and no `reboot` is stored for a host whose node is not cordoned for it, or was not seen to be empty
//!   under the same fence since its part began, and for a reboot in a run since it was decided. A pod that arrives, and an
//!   administrator who lifts the cordon, after that look are nobody's fault.
//! - `cordon`: a node is not uncordoned while its host is at work, and a slot is not released while the node is cordoned for it,
//!   unless an operator releases it or the settings keep the node of a host that failed.
//! - `admin`: a cordon of an administrator that was there before ours is there after it, and no other is left.
//! - `evict`: only from nodes that are cordoned for hosts under way, and no pod of the site itself or of a running job.
//! - `fence`: once a leader was told that its fence is in the mark, no earlier one changes anything.
//! - `unreachable`: no entry of the reboot queue starts while more nodes than allowed have not been ready for minutes, those under
//!   way excepted.
//! - `backoff`: pauses double from the first to the longest, with at most the jitter on top.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use os_upgrade_kernel::fact::{ControlFact, NodeFact, QueueFact, RunFact, SlotFact};
use os_upgrade_kernel::reboot_queue::EntryEvent;
use os_upgrade_kernel::slot::ReleaseCause;
use os_upgrade_kernel::{
    Backoff, CommandJob, Fact, HostEvent, NodeFence, NodeJob, NodeOrder, NodeOutcome, NodeStep, NodeWait,
    Order, PodObstacle, Reason,
};
use os_upgrade_protocol::{Action, HostName};

use super::enrolment::Enrolled;
use super::violation::Violation;
use crate::cluster::{PodKind, Seen};
use crate::plan::Plan;
use crate::time::{MINUTE, Micros, SECOND};

/// How long after the end of a host's part an eviction may still arrive: a leader that was deposed learns of it late.
const EVICTED_LATE_MAX: Micros = 90 * SECOND;

/// How long a node is not ready before every leader that starts an entry knows, and its record has arrived.
const UNREADY_KNOWN_AFTER: Micros = 5 * MINUTE;

/// The first pause, in seconds, after a drain that only budgets kept from going on.
const BUDGET_FIRST_SECS: u64 = 10;

/// How far the part of a host is, by the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Part {
    /// It has none, or that has ended.
    #[default]
    None,
    /// Its node is drained.
    Draining,
    /// It is told to upgrade or reboot.
    Told,
    /// It has answered `done`.
    Recovering,
}

/// A list that showed no pod that has to go.
#[derive(Debug, Clone, Copy)]
struct Look {
    at: Micros,
    fence: NodeFence,
    /// Whether somebody else has made the node schedulable since.
    lifted: bool,
}

/// What is known of a node.
#[derive(Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent of each other")]
struct Node {
    part: Part,
    /// The index of the entry of the reboot queue that it is for, if it is for one.
    entry: Option<u64>,
    /// Since when a look counts for its next command.
    look_from: Micros,
    /// When its part ended last.
    ended: Micros,
    /// Whether its host's slot was requested and not granted, so that its cordon, if it has one, is an earlier one.
    awaits_slot: bool,
    /// Whether it is to be uncordoned.
    uncordon_due: bool,
    /// Since when it was to be uncordoned last.
    uncordon_from: Micros,
    /// Whether it may stay cordoned without a part, because its host failed or an operator released its slot.
    kept: bool,
    /// How often its drain was given up, by run or entry.
    backoffs: BTreeMap<String, u32>,
    /// Whether it is cordoned for us, by the cluster.
    is_marked: bool,
    /// When it was seen to be without a mark last.
    unmarked: Micros,
    /// Whether an administrator had cordoned it before us. `None` if one has cordoned it since, which nobody can tell apart.
    admin: Option<bool>,
    /// Since when it is not ready.
    unready: Option<Micros>,
    look: Option<Look>,
    /// The fence under which an attempt to reboot it by command began.
    began_under: u64,
    /// The latest fence that a leader was told to be in its mark.
    told: Option<NodeFence>,
}

impl Node {
    fn is_under_way(&self) -> bool {
        self.part != Part::None || self.uncordon_due
    }

    fn ends(&mut self, now: Micros) {
        self.part = Part::None;
        self.ended = now;
    }

    /// The host failed: its node may stay as it is.
    fn fails(&mut self, now: Micros) {
        self.kept |= self.part == Part::Told;
        self.ends(now);
    }
}

#[derive(Debug)]
pub(super) struct Nodes {
    /// By host; empty without a cluster.
    by_host: BTreeMap<HostName, Node>,
    servers: BTreeSet<HostName>,
    /// The last fence in the journal.
    fence: u64,
    backoff: Backoff,
    uncordon_failed: bool,
    unreachable_max: u32,
    drained: u64,
}

fn broken(rule: &'static str, text: String) -> Result<(), Violation> {
    Err(Violation::new(rule, text))
}

impl Nodes {
    pub(super) fn new(plan: &Plan) -> Self {
        let nodes = plan.nodes();
        let servers = nodes.iter().filter(|(_, is_server)| **is_server);
        Self {
            by_host: nodes.keys().map(|host| (host.clone(), Node::default())).collect(),
            servers: servers.map(|(host, _)| host.clone()).collect(),
            fence: 0,
            backoff: plan.settings.reboot.backoff,
            uncordon_failed: plan
                .settings
                .kubernetes
                .as_ref()
                .is_some_and(|settings| settings.uncordon_failed),
            unreachable_max: plan.settings.reboot.unreachable_max,
            drained: 0,
        }
    }

    /// How often a node was drained before its host was told to upgrade or reboot.
    pub(super) fn drained(&self) -> u64 {
        self.drained
    }

    /// The nodes that may stay cordoned without a reason in the journal.
    pub(super) fn kept(&self) -> impl Iterator<Item = &HostName> {
        self.by_host.iter().filter(|(_, node)| node.kept).map(|(host, _)| host)
    }

    /// A fact of the time `at` was added to the journal.
    #[expect(clippy::wildcard_enum_match_arm, reason = "a rule names the facts that it is about")]
    pub(super) fn fact(&mut self, now: Micros, at: DateTime<Utc>, fact: &Fact) -> Result<(), Violation> {
        match fact {
            Fact::Run(RunFact::Host { run, host, event }) => {
                if let HostEvent::SlotGranted { drain, .. } = event {
                    return self.starts(now, host, *drain, None);
                }
                if let HostEvent::BackedOff { until, reason } = event {
                    return self.backs_off(now, at, &format!("{run} {host}"), host, (*until, Some(reason)));
                }
                if let Some(node) = self.by_host.get_mut(host).filter(|node| node.entry.is_none()) {
                    of_run(node, now, event);
                }
                Ok(())
            }
            Fact::Queue(QueueFact::Reboot { index, host, event }) => {
                if let EntryEvent::Started { drain, .. } = event {
                    return self.starts(now, host, *drain, Some(*index));
                }
                if let EntryEvent::BackedOff { until, reason } = event {
                    return self.backs_off(now, at, &index.to_string(), host, (*until, reason.as_ref()));
                }
                let fence = self.fence;
                if let Some(node) = self.by_host.get_mut(host).filter(|node| node.entry == Some(*index)) {
                    if let EntryEvent::AttemptBegan = event {
                        node.began_under = fence;
                    }
                    of_queue(node, now, event);
                }
                Ok(())
            }
            Fact::Queue(QueueFact::BackoffReset { .. }) => {
                for node in self.by_host.values_mut() {
                    node.backoffs.retain(|owner, _| owner.contains(' '));
                }
                Ok(())
            }
            Fact::Control(ControlFact::Fenced { sequence, .. }) => {
                self.fence = *sequence;
                Ok(())
            }
            Fact::Node(NodeFact::Step { host, step }) => self.step(now, host, step),
            Fact::Slot(SlotFact::Requested { host, .. }) => {
                if let Some(node) = self.by_host.get_mut(host) {
                    node.awaits_slot = true;
                }
                Ok(())
            }
            Fact::Slot(SlotFact::ReleaseDue { host, why } | SlotFact::Released { host, why }) => {
                self.released(host, *why)
            }
            // The other facts concern no node.
            _ => Ok(()),
        }
    }

    fn starts(
        &mut self,
        now: Micros,
        host: &HostName,
        drain: bool,
        entry: Option<u64>,
    ) -> Result<(), Violation> {
        if let Some(node) = self.by_host.get_mut(host) {
            node.awaits_slot = false;
        }
        let mut others = self.by_host.iter().filter(|(other, node)| *other != host && node.is_under_way());
        let is_server = self.servers.contains(host);
        if let Some((other, _)) = others.find(|(other, _)| is_server || self.servers.contains(*other))
            && self.by_host.contains_key(host)
        {
            return broken(
                "servers",
                format!("{host} starts beside {other}; {:?} are API servers", self.servers),
            );
        }
        let Some(node) = self.by_host.get_mut(host) else { return Ok(()) };
        if !drain {
            return broken("drain", format!("{host} starts without a drain"));
        }
        (node.part, node.entry, node.look_from) = (Part::Draining, entry, now);
        // What was to be undone is part of the new drain.
        node.uncordon_due = false;
        Ok(())
    }

    fn backs_off(
        &mut self,
        now: Micros,
        at: DateTime<Utc>,
        owner: &str,
        host: &HostName,
        (until, reason): (DateTime<Utc>, Option<&Reason>),
    ) -> Result<(), Violation> {
        let Some(node) = self.by_host.get_mut(host) else { return Ok(()) };
        node.ends(now);
        let count = node.backoffs.entry(owner.to_owned()).or_default();
        *count += 1;
        let Backoff { first, max, jitter } = self.backoff;
        // Budgets are often spent for seconds.
        let is_by_budgets = matches!(reason, Some(Reason::DrainRefused { pods })
            if pods.first.iter().all(|pod| matches!(pod.obstacle, PodObstacle::Budget { .. })));
        let first = if is_by_budgets { first.as_secs().min(BUDGET_FIRST_SECS) } else { first.as_secs() };
        let doubled = (1..*count).fold(first, |pause, _| pause.saturating_mul(2));
        let least = i64::try_from(doubled.min(max.as_secs())).unwrap_or(i64::MAX);
        let jitter = i64::try_from(jitter.as_secs()).unwrap_or(0);
        let most = least + if is_by_budgets { jitter.min(least) } else { jitter };
        let pause = (until - at).num_seconds();
        // Times are cut to whole seconds.
        if pause < least - 1 || pause > most + 1 {
            let text =
                format!("{host} backs off for {pause} s the {count}. time, and should for {least} to {most}");
            return broken("backoff", text);
        }
        Ok(())
    }

    fn step(&mut self, now: Micros, host: &HostName, step: &NodeStep) -> Result<(), Violation> {
        let Some(node) = self.by_host.get_mut(host) else {
            return broken("drain", format!("{host} is no node: {step:?}"));
        };
        match step {
            NodeStep::UncordonDue { .. } | NodeStep::UncordonRequested { .. } => {
                if node.part == Part::Told {
                    return broken(
                        "cordon",
                        format!("{host} is to be uncordoned while it is at work: {step:?}"),
                    );
                }
                (node.uncordon_due, node.uncordon_from, node.kept) = (true, now, false);
            }
            NodeStep::Uncordoned => (node.uncordon_due, node.kept) = (false, false),
            // A leader that was deposed sees marks of its successor, and must not conclude that they are of another journal.
            NodeStep::Waiting { waits: waits @ NodeWait::ForeignMark { .. } } => {
                return broken("foreign-mark", format!("{host} is said to wait for {waits:?}"));
            }
            NodeStep::Cordoned { .. }
            | NodeStep::EvictionBegan
            | NodeStep::RecheckBegan
            | NodeStep::Waiting { .. }
            | NodeStep::Drained { .. } => {}
        }
        Ok(())
    }

    fn released(&mut self, host: &HostName, why: ReleaseCause) -> Result<(), Violation> {
        let Some(node) = self.by_host.get_mut(host) else { return Ok(()) };
        if std::mem::take(&mut node.awaits_slot) {
            return Ok(());
        }
        let may_stay = match why {
            ReleaseCause::Operator => true,
            ReleaseCause::Failed => !self.uncordon_failed,
            ReleaseCause::Upgraded
            | ReleaseCause::Rebooted
            | ReleaseCause::NeverSent
            | ReleaseCause::NotNeeded
            | ReleaseCause::DrainGivenUp
            | ReleaseCause::LateDone => false,
        };
        if may_stay {
            node.kept |= node.is_marked && !node.uncordon_due;
        } else if node.is_marked && node.unmarked < node.uncordon_from {
            return broken(
                "cordon",
                format!("the slot of {host} is released ({why:?}) while its node is cordoned"),
            );
        }
        Ok(())
    }

    /// A command is stored in the stream under `fence`.
    pub(super) fn commanded(&mut self, order: &Order, fence: u64) -> Result<(), Violation> {
        let id = &order.id;
        if id.action == Action::Prepare {
            return Ok(());
        }
        self.check_drained(&id.host, fence, || id.to_string())
    }

    /// The operator's command is run for a host. Its leader may have a newer fence since the attempt began: no other one has led in
    /// between, or the attempt would be unknown.
    pub(super) fn command_runs(&mut self, job: &CommandJob) -> Result<(), Violation> {
        let fence = self.by_host.get(&job.host).map_or(0, |node| node.began_under);
        self.check_drained(&job.host, fence, || format!("{job:?}"))
    }

    fn check_drained(
        &mut self,
        host: &HostName,
        fence: u64,
        what: impl Fn() -> String,
    ) -> Result<(), Violation> {
        let Some(node) = self.by_host.get_mut(host) else { return Ok(()) };
        let look = node.look.filter(|look| look.fence.sequence == fence && look.at >= node.look_from);
        match look {
            Some(look) if node.is_marked || look.lifted => {
                self.drained += 1;
                Ok(())
            }
            Some(_) | None => {
                broken("drain", format!("{} under fence {fence}, and its node is {node:?}", what()))
            }
        }
    }

    /// The API server has carried out a job, and answers this.
    pub(super) fn job_done(
        &mut self,
        now: Micros,
        job: &NodeJob,
        outcome: &NodeOutcome,
        seen: &[Seen],
    ) -> Result<(), Violation> {
        let Some(node) = self.by_host.get_mut(&job.host) else {
            return broken("drain", format!("{job:?} is about no node"));
        };
        let told = node.told;
        let mut checked = Ok(());
        for seen in seen {
            let is_change = !matches!(seen, Seen::Listed { .. });
            if is_change && told.is_some_and(|told| told > job.fence) {
                checked = checked.and(broken("fence", format!("{job:?} does {seen:?}, after {told:?}")));
            }
            checked = checked.and(node.saw(now, job, seen));
        }
        let is_written = match outcome.without_mark() {
            NodeOutcome::Clear
            | NodeOutcome::Remaining { .. }
            | NodeOutcome::VolumesInUse { .. }
            | NodeOutcome::Drained { .. }
            | NodeOutcome::Held => true,
            NodeOutcome::CordonLost { .. }
            | NodeOutcome::FoundUnschedulable { .. }
            | NodeOutcome::Superseded { .. }
            | NodeOutcome::Unmarked
            | NodeOutcome::Uncordoned
            | NodeOutcome::NotReady
            | NodeOutcome::Unreachable { .. }
            | NodeOutcome::Refused { .. } => false,
        };
        if is_written {
            node.told = node.told.max(Some(job.fence));
        }
        checked
    }

    /// An administrator makes a node schedulable, or not.
    pub(super) fn administrator_set(&mut self, host: &HostName, is_unschedulable: bool) {
        let Some(node) = self.by_host.get_mut(host) else { return };
        if node.is_marked {
            node.admin = if is_unschedulable { None } else { Some(false) };
            node.look = node.look.map(|look| Look { lifted: true, ..look });
        }
    }

    /// The kubelet of a node is ready, or lost.
    pub(super) fn is_ready(&mut self, now: Micros, host: &HostName, is_ready: bool) {
        if let Some(node) = self.by_host.get_mut(host) {
            node.unready = if is_ready { None } else { node.unready.or(Some(now)) };
        }
    }

    /// An entry of the reboot queue starts.
    pub(super) fn check_unreachable<'a>(
        &'a self,
        now: Micros,
        fact: &Fact,
        enrolled: &Enrolled,
        silent: impl Iterator<Item = &'a HostName>,
    ) -> Result<(), Violation> {
        let Fact::Queue(QueueFact::Reboot { host, event: EntryEvent::Started { .. }, .. }) = fact else {
            return Ok(());
        };
        let is_missing = |(_, node): &(&HostName, &Node)| {
            let is_unready = node.unready.is_some_and(|since| since + UNREADY_KNOWN_AFTER < now);
            is_unready && !node.is_under_way()
        };
        let unready = self.by_host.iter().filter(is_missing).map(|(other, _)| other);
        let missing = unready.chain(silent).filter(|other| *other != host && enrolled.takes_part(other));
        let missing: BTreeSet<&HostName> = missing.collect();
        if missing.len() > self.unreachable_max as usize {
            let text = format!(
                "{host} starts while {missing:?} are not ready or silent, of {}",
                self.unreachable_max
            );
            return broken("unreachable", text);
        }
        Ok(())
    }

    /// A Node object was deleted, and with it our mark.
    pub(super) fn deleted(&mut self, now: Micros, host: &HostName) {
        let Some(node) = self.by_host.get_mut(host) else { return };
        (node.is_marked, node.unmarked, node.admin, node.told) = (false, now, None, None);
        node.unready = None;
        node.look = node.look.map(|look| Look { lifted: true, ..look });
    }
}

impl Node {
    fn saw(&mut self, now: Micros, job: &NodeJob, seen: &Seen) -> Result<(), Violation> {
        let host = &job.host;
        match seen {
            Seen::Marked { was_unschedulable } => {
                if !self.is_marked {
                    self.unmarked = now;
                    self.admin = Some(*was_unschedulable);
                }
                self.is_marked = true;
            }
            Seen::Listed { is_empty } => {
                self.look = is_empty.then_some(Look { at: now, fence: job.fence, lifted: false });
            }
            Seen::Evicted { kind, is_marked } => return self.evicted(now, host, *kind, *is_marked),
            Seen::Uncordoned { is_unschedulable } => {
                let (admin, part) = (self.admin, self.part);
                (self.is_marked, self.unmarked, self.admin, self.look) = (false, now, None, None);
                if part == Part::Told {
                    return broken("cordon", format!("{host} is uncordoned while it is at work, by {job:?}"));
                }
                if admin.is_some_and(|admin| admin != *is_unschedulable) {
                    let text =
                        format!("{host} is left unschedulable={is_unschedulable}, and was {admin:?} before");
                    return broken("admin", text);
                }
                if !matches!(job.order, NodeOrder::Uncordon { .. }) {
                    return broken("cordon", format!("{host} is uncordoned by {job:?}"));
                }
            }
        }
        Ok(())
    }

    fn evicted(&self, now: Micros, host: &HostName, kind: PodKind, is_marked: bool) -> Result<(), Violation> {
        let is_ours = self.part != Part::None || self.ended + EVICTED_LATE_MAX > now;
        let is_allowed = match kind {
            PodKind::Free | PodKind::Slow(_) | PodKind::Stuck | PodKind::Budget(Some(_)) => true,
            PodKind::Budget(None) | PodKind::Own => false,
            PodKind::Job(until) => until.is_some_and(|until| until <= now),
        };
        if is_marked && is_ours && is_allowed {
            return Ok(());
        }
        broken("evict", format!("{kind:?} is evicted from {host}, cordoned: {is_marked}, {self:?}"))
    }
}

/// What an event of a run means for a node.
fn of_run(node: &mut Node, now: Micros, event: &HostEvent) {
    match event {
        HostEvent::Drained => node.part = Part::Told,
        HostEvent::RebootRequired => node.look_from = now,
        HostEvent::Recovering => node.part = Part::Recovering,
        HostEvent::Failed { .. } | HostEvent::TimedOut { .. } => node.fails(now),
        HostEvent::Upgraded
        | HostEvent::Skipped { .. }
        | HostEvent::Cancelled { .. }
        | HostEvent::NotReached { .. } => node.ends(now),
        HostEvent::SlotGranted { .. }
        | HostEvent::BackedOff { .. }
        | HostEvent::CommandSent { .. }
        | HostEvent::Prepared
        | HostEvent::Waiting { .. }
        | HostEvent::PrepareBegan
        | HostEvent::PrepareFailed { .. }
        | HostEvent::Overdue { .. }
        | HostEvent::TurnLost => {}
    }
}

/// What an event of an entry of the reboot queue means for a node.
fn of_queue(node: &mut Node, now: Micros, event: &EntryEvent) {
    match event {
        EntryEvent::RebootBegan { .. } | EntryEvent::AttemptBegan => node.part = Part::Told,
        // It is drained once more.
        EntryEvent::AttemptDue { .. } if node.part == Part::Told => {
            (node.part, node.look_from) = (Part::Draining, now);
        }
        EntryEvent::Booted { .. } => node.part = Part::Recovering,
        EntryEvent::GivenUp { .. } => node.fails(now),
        EntryEvent::Rebooted | EntryEvent::NotRebooted => node.ends(now),
        EntryEvent::Cancelled { .. } if node.part == Part::Draining => node.ends(now),
        EntryEvent::Cancelled { .. }
        | EntryEvent::Removed
        | EntryEvent::Started { .. }
        | EntryEvent::BackedOff { .. }
        | EntryEvent::Waiting { .. }
        | EntryEvent::AttemptDue { .. }
        | EntryEvent::AttemptSucceeded
        | EntryEvent::AttemptUnknown { .. }
        | EntryEvent::CommandSent { .. }
        | EntryEvent::Failed { .. } => {}
    }
}
