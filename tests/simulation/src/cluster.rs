//! A Kubernetes cluster: its nodes, their pods, and what its API server makes of the work on a node.

use std::collections::BTreeMap;

use fastrand::Rng;
use os_upgrade_kernel::{
    NodeFence, NodeJob, NodeOrder, NodeOutcome, Owner, PODS_NAMED_MAX, Pod as NamedPod, PodObstacle, Pods,
    SeenMark, SeenNode,
};
use os_upgrade_protocol::HostName;

use crate::bug::Bug;
use crate::time::{MINUTE, Micros, SECOND, beginning, span};

/// How long after the cordon a controller relaxes its budget, at most.
const RELAXED_WITHIN: Micros = 20 * SECOND;
/// How long a slow pod terminates, at most.
const SLOW_MAX: Micros = 4 * MINUTE;

/// What a pod is, as far as drains are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PodKind {
    /// It goes when it is asked to.
    Free,
    /// It takes this long to terminate.
    Slow(Micros),
    /// It never terminates.
    Stuck,
    /// Its budget allows its eviction this long after the cordon, if at all.
    Budget(Option<Micros>),
    /// Its job runs until then, if it ever ends.
    Job(Option<Micros>),
    /// It is one of the orchestrator, the bus, or a worker.
    Own,
}

/// A pod.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    number: u64,
    pub(crate) kind: PodKind,
    /// When it is gone, once it has been evicted.
    gone_at: Option<Micros>,
}

/// Our mark on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) fence: NodeFence,
    pub(crate) owner: Owner,
    /// Whether the node was unschedulable before.
    pub(crate) was_unschedulable: bool,
}

/// A node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) is_api_server: bool,
    pub(crate) is_ready: bool,
    pub(crate) boot_id: String,
    pub(crate) is_unschedulable: bool,
    pub(crate) mark: Option<Mark>,
    /// Since when it is unschedulable.
    cordoned_at: Micros,
    /// Grows with each change of its cordon.
    version: u64,
    /// The run or entry for which it was seen to be empty.
    emptied_for: Option<Owner>,
    pub(crate) pods: Vec<Pod>,
}

/// What a request has changed or seen, as the cluster's log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It is cordoned, or its mark has another fence or owner; `was_unschedulable`: what it was before the first mark.
    Marked { was_unschedulable: bool },
    /// Its pods were listed, while it was cordoned and marked; `is_empty`: none has to go.
    Listed { is_empty: bool },
    /// A pod was evicted.
    Evicted { kind: PodKind, is_marked: bool },
    /// Its mark was removed, which leaves it schedulable or not.
    Uncordoned { is_unschedulable: bool },
}

/// The cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// By host. A node that was deleted is absent.
    pub(crate) nodes: BTreeMap<HostName, Node>,
    /// The hosts that are nodes, each with whether it is an API server.
    members: BTreeMap<HostName, bool>,
    /// Whether its API server answers.
    pub(crate) is_up: bool,
    pods: u64,
    versions: u64,
}

fn pods_of(remaining: &[&Pod], now: Micros, obstacle: impl Fn(&Pod) -> PodObstacle) -> Pods {
    let named = remaining.iter().take(PODS_NAMED_MAX).map(|pod| NamedPod {
        namespace: "site".to_owned(),
        name: pod.name(),
        owner: None,
        obstacle: obstacle(pod),
        since: beginning() + span(now),
    });
    Pods { count: remaining.len(), first: named.collect(), kubelet_silent: false }
}

impl Pod {
    pub(crate) fn name(&self) -> String {
        format!("p{}", self.number)
    }

    /// Whether a drain has to wait for it.
    fn counts(&self, now: Micros) -> bool {
        match self.kind {
            PodKind::Own => false,
            PodKind::Job(until) => until.is_none_or(|until| until > now),
            PodKind::Free | PodKind::Slow(_) | PodKind::Stuck | PodKind::Budget(_) => true,
        }
    }

    /// Why it may not be evicted at `now` from a node that is cordoned since `cordoned_at`.
    fn obstacle(&self, now: Micros, cordoned_at: Micros) -> Option<PodObstacle> {
        match self.kind {
            PodKind::Job(_) => Some(PodObstacle::JobRunning),
            PodKind::Budget(relaxed) => {
                let is_relaxed = relaxed.is_some_and(|after| now >= cordoned_at + after);
                (!is_relaxed).then(|| PodObstacle::Budget { budgets: vec!["site/b".to_owned()] })
            }
            PodKind::Free | PodKind::Slow(_) | PodKind::Stuck | PodKind::Own => None,
        }
    }
}

impl Node {
    /// The pods that have to go before it is drained.
    fn due(&self, now: Micros) -> Vec<&Pod> {
        self.pods.iter().filter(|pod| pod.counts(now)).collect()
    }

    fn is_cordoned_by_us(&self) -> bool {
        self.is_unschedulable && self.mark.is_some()
    }
}

impl Cluster {
    pub(crate) fn new(members: BTreeMap<HostName, bool>) -> Self {
        let mut cluster = Self { nodes: BTreeMap::new(), members, is_up: true, pods: 0, versions: 0 };
        for host in cluster.members.keys().cloned().collect::<Vec<_>>() {
            cluster.register(&host, "boot-0".to_owned(), true);
        }
        cluster
    }

    pub(crate) fn is_member(&self, host: &HostName) -> bool {
        self.members.contains_key(host)
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = &HostName> {
        self.members.keys()
    }

    /// The kubelet of `host` makes its node, unless it is there.
    pub(crate) fn register(&mut self, host: &HostName, boot_id: String, is_ready: bool) {
        let Some(is_api_server) = self.members.get(host).copied() else { return };
        self.versions += 1;
        let node = Node {
            is_api_server,
            is_ready,
            boot_id,
            is_unschedulable: false,
            mark: None,
            cordoned_at: 0,
            version: self.versions,
            emptied_for: None,
            pods: Vec::new(),
        };
        self.nodes.entry(host.clone()).or_insert(node);
    }

    /// The nodes, as they are shown.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (HostName, SeenNode)> + '_ {
        self.nodes.iter().map(|(host, node)| {
            let seen = SeenNode {
                name: host.to_string(),
                boot_id: Some(node.boot_id.clone()),
                is_ready: node.is_ready,
                is_api_server: node.is_api_server,
                is_unschedulable: node.is_unschedulable,
                mark: node
                    .mark
                    .as_ref()
                    .map(|mark| SeenMark { fence: mark.fence, is_of_other_journal: false }),
            };
            (host.clone(), seen)
        })
    }

    /// Adds a pod to the node of `host`.
    pub(crate) fn add_pod(&mut self, host: &HostName, kind: PodKind) {
        self.pods += 1;
        let number = self.pods;
        if let Some(node) = self.nodes.get_mut(host) {
            node.pods.push(Pod { number, kind, gone_at: None });
        }
    }

    /// A kind of pod; `stubborn` of a hundred stand in the way of a drain.
    pub(crate) fn draw_kind(rng: &mut Rng, stubborn: u32, now: Micros) -> PodKind {
        if rng.u32(..100) >= stubborn {
            return *rng.choice(&[PodKind::Free, PodKind::Free, PodKind::Own]).expect("not empty");
        }
        match rng.u32(..7) {
            0 => PodKind::Stuck,
            1..=2 => PodKind::Slow(rng.u64(..SLOW_MAX)),
            3 => PodKind::Budget(None),
            4..=5 => PodKind::Budget(Some(rng.u64(..RELAXED_WITHIN))),
            _ => PodKind::Job(rng.bool().then(|| now + rng.u64(..5 * MINUTE))),
        }
    }

    /// Removes pods of `host`: those that `is_it` names.
    pub(crate) fn remove_pods(&mut self, host: &HostName, is_it: impl Fn(&Pod) -> bool) {
        if let Some(node) = self.nodes.get_mut(host) {
            node.pods.retain(|pod| !is_it(pod));
        }
    }

    /// Somebody else makes the node of `host` schedulable, or not. Returns whether that changes anything.
    pub(crate) fn set_unschedulable(&mut self, now: Micros, host: &HostName, is_unschedulable: bool) -> bool {
        let Some(node) = self.nodes.get_mut(host).filter(|node| node.is_unschedulable != is_unschedulable)
        else {
            return false;
        };
        self.versions += 1;
        (node.is_unschedulable, node.version, node.cordoned_at) = (is_unschedulable, self.versions, now);
        true
    }

    /// Somebody removes the marks of a time that nobody remembers.
    pub(crate) fn remove_marks(&mut self) {
        for node in self.nodes.values_mut() {
            if let Some(mark) = node.mark.take() {
                self.versions += 1;
                (node.version, node.is_unschedulable) = (self.versions, mark.was_unschedulable);
            }
        }
    }

    /// What a request of now must find unchanged if it is carried out late.
    pub(crate) fn version(&self, host: &HostName) -> Option<u64> {
        self.nodes.get(host).map(|node| node.version)
    }

    /// Carries out a job. Returns the answer, and what the cluster's log has.
    pub(crate) fn carry_out(
        &mut self,
        now: Micros,
        job: &NodeJob,
        bug: Option<Bug>,
    ) -> (NodeOutcome, Vec<Seen>) {
        let Some(node) = self.nodes.get_mut(&job.host) else { return (answer_without_node(job), Vec::new()) };
        node.pods.retain(|pod| pod.gone_at.is_none_or(|gone_at| gone_at > now));
        let taken_over = match job.order {
            NodeOrder::Uncordon { takes_over, .. } => takes_over,
            NodeOrder::Check { .. } | NodeOrder::Evict { .. } | NodeOrder::Hold => None,
        };
        let mark = node.mark.as_ref().map(|mark| mark.fence);
        if let Some(fence) = mark.filter(|fence| *fence > job.fence && Some(*fence) != taken_over)
            && bug != Some(Bug::MarkUnfenced)
        {
            return (NodeOutcome::Superseded { fence }, Vec::new());
        }
        self.versions += 1;
        let version = self.versions;
        match &job.order {
            NodeOrder::Check { is_cordoned: true, .. } | NodeOrder::Evict { is_cordoned: true, .. }
                if !node.is_cordoned_by_us() =>
            {
                (NodeOutcome::CordonLost { detail: "it was made schedulable".to_owned() }, Vec::new())
            }
            NodeOrder::Check { owner, .. } => {
                let mut seen = node.cordon(now, version, (job.fence, false), owner, bug);
                let outcome = node.check(now, &mut seen);
                if let (NodeOutcome::Drained { .. }, Some(Bug::RepeatedUndrained)) = (&outcome, bug) {
                    node.emptied_for = Some(owner.clone());
                }
                (node.with_mark(outcome), seen)
            }
            NodeOrder::Evict { owner, is_ours, .. } => {
                let mut seen = node.cordon(now, version, (job.fence, *is_ours), owner, bug);
                if bug.is_some_and(|bug| bug.remembers(owner)) && node.emptied_for.as_ref() == Some(owner) {
                    let drained = NodeOutcome::Drained { boot_id: Some(node.boot_id.clone()) };
                    return (node.with_mark(drained), seen);
                }
                let outcome = node.evict(now, &mut seen, bug);
                if let NodeOutcome::Drained { .. } = outcome {
                    node.emptied_for = Some(owner.clone());
                }
                (node.with_mark(outcome), seen)
            }
            NodeOrder::Hold if node.mark.is_none() => (NodeOutcome::Unmarked, Vec::new()),
            NodeOrder::Hold => {
                let seen = node.hold(version, job.fence);
                (node.with_mark(NodeOutcome::Held), seen)
            }
            NodeOrder::Uncordon { ready, left, is_ours, .. } => {
                let has_left = left.as_ref().is_none_or(|left| *left != node.boot_id);
                if *ready && !(node.is_ready && has_left) {
                    return (NodeOutcome::NotReady, Vec::new());
                }
                (NodeOutcome::Uncordoned, node.uncordon(version, *is_ours))
            }
        }
    }
}

/// The answer about a node that was deleted.
fn answer_without_node(job: &NodeJob) -> NodeOutcome {
    let detail = || "there is no such node".to_owned();
    match &job.order {
        NodeOrder::Check { is_cordoned: true, .. } | NodeOrder::Evict { is_cordoned: true, .. } => {
            NodeOutcome::CordonLost { detail: detail() }
        }
        NodeOrder::Check { is_cordoned: false, .. } | NodeOrder::Evict { is_cordoned: false, .. } => {
            NodeOutcome::Refused { detail: detail() }
        }
        NodeOrder::Hold => NodeOutcome::Unmarked,
        NodeOrder::Uncordon { .. } => NodeOutcome::Uncordoned,
    }
}

impl Node {
    fn cordon(
        &mut self,
        now: Micros,
        version: u64,
        (fence, is_ours): (NodeFence, bool),
        owner: &Owner,
        bug: Option<Bug>,
    ) -> Vec<Seen> {
        // A mark on a node that somebody has made schedulable says nothing of what was before.
        let was_unschedulable = match &self.mark {
            Some(mark) => self.is_unschedulable && mark.was_unschedulable,
            None => self.is_unschedulable && !is_ours && bug != Some(Bug::AdminCordonForgotten),
        };
        let mark = Mark { fence, owner: owner.clone(), was_unschedulable };
        if self.is_unschedulable && self.mark.as_ref() == Some(&mark) {
            return Vec::new();
        }
        let seen = Seen::Marked { was_unschedulable: self.is_unschedulable };
        if !self.is_unschedulable {
            self.cordoned_at = now;
        }
        (self.is_unschedulable, self.mark, self.version) = (true, Some(mark), version);
        vec![seen]
    }

    fn hold(&mut self, version: u64, fence: NodeFence) -> Vec<Seen> {
        let was_unschedulable = self.is_unschedulable;
        let Some(mark) = self.mark.as_mut().filter(|mark| mark.fence != fence) else { return Vec::new() };
        (mark.fence, self.version) = (fence, version);
        vec![Seen::Marked { was_unschedulable }]
    }

    /// What came of a job, with what its mark says of the time before.
    fn with_mark(&self, outcome: NodeOutcome) -> NodeOutcome {
        if self.mark.as_ref().is_some_and(|mark| mark.was_unschedulable) {
            NodeOutcome::FoundUnschedulable { outcome: Box::new(outcome) }
        } else {
            outcome
        }
    }

    fn uncordon(&mut self, version: u64, is_ours: bool) -> Vec<Seen> {
        let Some(mark) = self.mark.take() else {
            let is_left = is_ours && self.is_unschedulable;
            if !is_left {
                return Vec::new();
            }
            (self.is_unschedulable, self.version) = (false, version);
            return vec![Seen::Uncordoned { is_unschedulable: false }];
        };
        self.is_unschedulable = self.is_unschedulable && mark.was_unschedulable;
        self.version = version;
        vec![Seen::Uncordoned { is_unschedulable: self.is_unschedulable }]
    }

    /// A dry run of all evictions.
    fn check(&self, now: Micros, seen: &mut Vec<Seen>) -> NodeOutcome {
        let due = self.due(now);
        seen.push(Seen::Listed { is_empty: due.is_empty() });
        if due.is_empty() {
            return NodeOutcome::Drained { boot_id: Some(self.boot_id.clone()) };
        }
        let refused: Vec<&Pod> =
            due.into_iter().filter(|pod| pod.obstacle(now, self.cordoned_at).is_some()).collect();
        if refused.is_empty() {
            return NodeOutcome::Clear;
        }
        let pods = pods_of(&refused, now, |pod| {
            pod.obstacle(now, self.cordoned_at).unwrap_or(PodObstacle::NotTried)
        });
        NodeOutcome::Remaining { pods }
    }

    /// Evicts each pod that is due, once, and lists those that are left.
    fn evict(&mut self, now: Micros, seen: &mut Vec<Seen>, bug: Option<Bug>) -> NodeOutcome {
        let (is_marked, cordoned_at) = (self.is_cordoned_by_us(), self.cordoned_at);
        for pod in &mut self.pods {
            let is_due = pod.counts(now) || bug == Some(Bug::OwnPodsEvicted);
            if !is_due || pod.gone_at.is_some() || pod.obstacle(now, cordoned_at).is_some() {
                continue;
            }
            pod.gone_at = Some(match pod.kind {
                PodKind::Stuck => Micros::MAX,
                PodKind::Slow(time) => now + time,
                PodKind::Free | PodKind::Budget(_) | PodKind::Job(_) | PodKind::Own => now + SECOND,
            });
            seen.push(Seen::Evicted { kind: pod.kind, is_marked });
        }
        let due = self.due(now);
        seen.push(Seen::Listed { is_empty: due.is_empty() });
        let is_trusted = bug == Some(Bug::SentBeforeDrained) && due.iter().all(|pod| pod.gone_at.is_some());
        if due.is_empty() || is_trusted {
            return NodeOutcome::Drained { boot_id: Some(self.boot_id.clone()) };
        }
        let pods =
            pods_of(&due, now, |pod| pod.obstacle(now, cordoned_at).unwrap_or(PodObstacle::Terminating));
        NodeOutcome::Remaining { pods }
    }
}
