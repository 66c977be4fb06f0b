//! The Kubernetes cluster: how jobs reach it, what happens in it by itself, and how it is healed.

use os_upgrade_kernel::reboot_queue::Entry;
use os_upgrade_kernel::{
    NoAnswer, NodeJob, NodeOperation, NodeOutcome, NodeWait, Pods, Reason, RebootOperation, Request as Call,
    Run,
};
use os_upgrade_protocol::HostName;
use os_upgrade_shell::instance::Event;
use os_upgrade_shell::jobs::{JobId, JobReport};

use super::World;
use crate::agenda::{Item, Process};
use crate::bug::Bug;
use crate::cluster::{Cluster, PodKind, Seen};
use crate::fault::Fault;
use crate::host::boot_id;
use crate::outside;
use crate::peer::Peer;
use crate::request::{Answer, Request};
use crate::time::{MINUTE, Micros, SECOND};

/// The time between two looks of an instance at the nodes.
const LOOKS_EVERY: Micros = 10 * SECOND;
/// How much later than its sender gives up the API server may carry out a write.
const LATE_MAX: Micros = 20 * SECOND;
/// How long the cluster waits before it takes a silent kubelet for lost.
const LOST_AFTER: Micros = 40 * SECOND;
/// How long a kubelet takes after the boot.
const KUBELET_MAX: Micros = 20 * SECOND;
/// How many pods a node has, at most.
const PODS_MAX: usize = 8;

impl World {
    /// The first pods, and everything that happens again and again.
    pub(super) fn begin_cluster(&mut self) {
        let Some(plan) = self.plan.cluster.clone() else { return };
        for host in self.nodes() {
            for _ in 0..self.rng.usize(..=plan.pods_max) {
                self.pod_arrives(&host);
            }
            if self.plan.rate(Fault::CordonedByAdmin) > 0 && self.rng.u32(..6) == 0 {
                self.administrator_sets(&host, true);
            }
        }
        self.after(LOOKS_EVERY, Item::LookAtNodes);
        self.after(plan.act_every, Item::ActOnCluster);
    }

    fn nodes(&self) -> Vec<HostName> {
        self.cluster.iter().flat_map(|cluster| cluster.nodes.keys().cloned()).collect()
    }

    fn pod_arrives(&mut self, host: &HostName) {
        let stubborn = self.plan.cluster.as_ref().map_or(0, |plan| plan.stubborn);
        let kind = Cluster::draw_kind(&mut self.rng, stubborn, self.now);
        let Some(cluster) = &mut self.cluster else { return };
        if cluster.nodes.get(host).is_some_and(|node| node.pods.len() < PODS_MAX) {
            cluster.add_pod(host, kind);
        }
    }

    /// Every instance asks for the nodes.
    pub(super) fn look_at_nodes(&mut self) {
        self.at(LOOKS_EVERY, Item::LookAtNodes);
        if self.is_rolled_back || self.faults.contains_key(&Fault::WorkerStateLost) {
            self.reboot_what_has_not();
        }
        for instance in 0..self.instances.len() {
            let Some(cluster) = self.cluster.as_ref().filter(|cluster| cluster.is_up) else { return };
            let nodes = cluster.shown().collect();
            if self.occurs(Fault::KubernetesSilent) {
                continue;
            }
            let (boot, at) = (self.instances[instance].boot, self.clock_of(instance).monotonic);
            let what = Process::Event(Event::ClusterSeen { nodes, at });
            let latency = self.latency();
            self.at(latency, Item::Process { instance, boot, what });
        }
    }

    /// Something happens in the cluster by itself.
    pub(super) fn act_on_cluster(&mut self) {
        let Some(plan) = self.plan.cluster.as_ref().filter(|_| self.faults_enabled) else { return };
        let every = 2 * plan.act_every * self.slowdown();
        self.after(every, Item::ActOnCluster);
        let members: Vec<HostName> =
            self.cluster.iter().flat_map(|cluster| cluster.members().cloned()).collect();
        let Some(host) = self.rng.choice(members) else { return };
        let node = self.cluster.as_ref().and_then(|cluster| cluster.nodes.get(&host));
        let (is_there, is_schedulable, is_server) =
            node.map_or((false, false, false), |node| (true, !node.is_unschedulable, node.is_api_server));
        match self.rng.u32(..20) {
            // Few pods tolerate a cordon.
            0..=7 if is_schedulable || self.rng.u32(..10) == 0 => self.pod_arrives(&host),
            8 if self.occurs_spontaneously(Fault::KubernetesDown) => self.cluster_goes_down(),
            9..=10 if self.occurs_spontaneously(Fault::CordonedByAdmin) => {
                self.administrator_sets(&host, true);
            }
            11..=12 if self.occurs_spontaneously(Fault::UncordonedByAdmin) => {
                self.administrator_sets(&host, false);
            }
            // Which nodes are API servers nobody knows without the nodes.
            13 if is_there && !is_server && self.occurs_spontaneously(Fault::NodeDeleted) => {
                self.delete_node(&host);
            }
            14..=15 if self.operators.granted > 0 => self.uncordon_by_operator(&host),
            _ => {}
        }
    }

    /// Draws whether a fault of this seed happens now, which it does on every second occasion.
    fn occurs_spontaneously(&mut self, fault: Fault) -> bool {
        let occurs = self.faults_enabled && self.plan.rate(fault) > 0 && self.rng.bool();
        if occurs {
            self.count(fault);
        }
        occurs
    }

    fn cluster_goes_down(&mut self) {
        if let Some(cluster) = &mut self.cluster {
            cluster.is_up = false;
        }
        let longest = if self.rng.bool() { 10 * SECOND } else { 3 * MINUTE };
        self.after(longest, Item::ClusterBack);
    }

    pub(super) fn cluster_back(&mut self) {
        if let Some(cluster) = &mut self.cluster {
            cluster.is_up = true;
        }
    }

    fn administrator_sets(&mut self, host: &HostName, is_unschedulable: bool) {
        let now = self.now;
        let Some(cluster) = &mut self.cluster else { return };
        if cluster.set_unschedulable(now, host, is_unschedulable) {
            self.checker.administrator_set(host, is_unschedulable);
            self.trace
                .record(now, || format!("{host}: an administrator sets unschedulable={is_unschedulable}"));
        }
    }

    /// Somebody deletes a Node. Its kubelet makes it anew after a while.
    fn delete_node(&mut self, host: &HostName) {
        let Some(cluster) = &mut self.cluster else { return };
        cluster.nodes.remove(host);
        self.checker.node_deleted(host);
        let host = host.clone();
        self.after(2 * MINUTE, Item::NodeMade { host });
    }

    pub(super) fn node_made(&mut self, name: &HostName) {
        let Some(host) = self.hosts.iter().find(|host| host.name == *name) else { return };
        let (boot_id, is_up) = (host.boot_id(), host.is_up);
        if let Some(cluster) = &mut self.cluster {
            cluster.register(name, boot_id, is_up);
            self.checker.node_is_ready(name, cluster.nodes.get(name).is_some_and(|node| node.is_ready));
        }
    }

    /// Usually of a node that an operator has seen to be cordoned at some instance.
    fn uncordon_by_operator(&mut self, host: &HostName) {
        let index = self.rng.usize(..self.instances.len());
        let seen = self.instances[index].logic.as_ref().map(|logic| logic.state().nodes.clone());
        let seen = self.rng.choice(seen.into_iter().flatten().map(|(host, _)| host).collect::<Vec<_>>());
        let host = seen.unwrap_or_else(|| host.clone());
        let operation = NodeOperation::Uncordon { host, reason: "it is mended".to_owned() };
        self.request(index, Call::new("operator", operation).into());
    }

    /// A host goes down: its kubelet is silent.
    pub(super) fn kubelet_stops(&mut self, index: usize) {
        let host = &self.hosts[index];
        if self.cluster.as_ref().is_some_and(|cluster| cluster.is_member(&host.name)) {
            let boot = host.boot;
            self.after(LOST_AFTER, Item::KubeletLost { host: index, boot });
        }
    }

    /// A host that is still down is not ready.
    pub(super) fn kubelet_lost(&mut self, index: usize, boot: u32) {
        let host = &self.hosts[index];
        if host.boot != boot || host.is_up {
            return;
        }
        if let Some(node) = self.cluster.as_mut().and_then(|cluster| cluster.nodes.get_mut(&host.name)) {
            node.is_ready = false;
            self.checker.node_is_ready(&host.name, false);
        }
    }

    /// A host has booted: its kubelet starts soon.
    pub(super) fn kubelet_starts(&mut self, index: usize) {
        let host = &self.hosts[index];
        if self.cluster.as_ref().is_some_and(|cluster| cluster.is_member(&host.name)) {
            let boot = host.boot;
            self.after(KUBELET_MAX, Item::KubeletUp { host: index, boot });
        }
    }

    /// The kubelet tells its boot, and that it is ready.
    pub(super) fn kubelet_up(&mut self, index: usize, boot: u32) {
        let host = &self.hosts[index];
        if host.boot != boot || !host.is_up {
            return;
        }
        if let Some(node) = self.cluster.as_mut().and_then(|cluster| cluster.nodes.get_mut(&host.name)) {
            (node.is_ready, node.boot_id) = (true, boot_id(boot));
            self.checker.node_is_ready(&host.name, true);
        }
    }

    /// A job reaches the API server.
    pub(super) fn node_request_arrives(&mut self, request: &Request, id: JobId, job: &NodeJob) {
        self.outside.record(self.now, || outside::node(job));
        let Some(cluster) = self.cluster.as_ref() else { return };
        if !cluster.is_up {
            let why = NoAnswer::NotSent { detail: "connection refused".to_owned() };
            return self.node_answer(request, id, job, NodeOutcome::Unreachable { why });
        }
        let version = cluster.version(&job.host);
        // A job reads the node first, and writes on what it has read: of a sender that is gone or deposed only that has arrived.
        if !self.goes_on(request, job) && self.bug != Some(Bug::MarkUnfenced) {
            return;
        }
        if self.occurs(Fault::KubernetesLate) {
            let late = request.timeout + self.rng.u64(..LATE_MAX);
            let job = job.clone();
            return self.at(late, Item::LateNodeWrite { job: Box::new(job), version });
        }
        if self.occurs(Fault::KubernetesThrottles) {
            let why = NoAnswer::Failed { detail: "too many requests".to_owned() };
            return self.node_answer(request, id, job, NodeOutcome::Unreachable { why });
        }
        if self.occurs(Fault::KubernetesConflict) {
            let detail = "the node has changed again and again".to_owned();
            return self.node_answer(request, id, job, NodeOutcome::Refused { detail });
        }
        let outcome = self.carry_out_on_node(job, false);
        if !self.occurs(Fault::KubernetesUnanswered) {
            self.node_answer(request, id, job, outcome);
        }
    }

    /// Whether the process that sent the job is there, and leads as it did then.
    fn goes_on(&self, request: &Request, job: &NodeJob) -> bool {
        let Peer::Instance(index) = request.from else { return false };
        let instance = &self.instances[index];
        instance.boot == request.process
            && self.is_under(index, job)
            && self.bus.is_leased_to(&instance.nonce(), self.now)
    }

    /// Whether an instance is under the fence of the job, which belongs to the leadership that began it.
    pub(super) fn is_under(&self, index: usize, job: &NodeJob) -> bool {
        let fence = self.instances[index].logic.as_ref().and_then(|logic| logic.state().fence.as_ref());
        fence.is_some_and(|fence| fence.sequence == job.fence.sequence)
    }

    /// A write that its sender has given up is carried out, unless the node has changed since it was read.
    pub(super) fn late_node_write(&mut self, job: &NodeJob, version: Option<u64>) {
        let unchanged = self.cluster.as_ref().is_some_and(|cluster| cluster.version(&job.host) == version);
        if unchanged || self.bug == Some(Bug::MarkUnfenced) {
            self.carry_out_on_node(job, true);
        }
    }

    /// Carries a job out. One that is late is a single write, after which nobody looks.
    fn carry_out_on_node(&mut self, job: &NodeJob, is_late: bool) -> NodeOutcome {
        let (now, bug) = (self.now, self.bug);
        let Some(cluster) = &mut self.cluster else { unreachable!("a job reached it") };
        let (outcome, mut seen) = cluster.carry_out(now, job, bug);
        seen.retain(|seen| !(is_late && matches!(seen, Seen::Listed { .. })));
        self.trace.record(now, || format!("{}: {seen:?}, so {outcome:?}", job.host));
        self.checker.node_job_done(job, &outcome, &seen);
        outcome
    }

    fn node_answer(&mut self, request: &Request, id: JobId, job: &NodeJob, outcome: NodeOutcome) {
        let done = os_upgrade_kernel::JobDone::Cluster(job.clone(), outcome);
        let report = JobReport { done, retry_after: None };
        let event = Event::JobDone { id, report };
        if self.occurs(Fault::KubernetesSlow) {
            let Peer::Instance(instance) = request.from else { return };
            let late = request.timeout + self.rng.u64(..30 * SECOND);
            let what = Process::Return { request: request.id, event };
            return self.at(late, Item::Process { instance, boot: request.process, what });
        }
        self.answer(request, Answer::Instance(event));
    }

    /// After the faults: the API server answers, and every node is there.
    pub(super) fn heal_cluster(&mut self) {
        self.cluster_back();
        for index in 0..self.hosts.len() {
            let name = self.hosts[index].name.clone();
            self.node_made(&name);
        }
        if self.is_rolled_back
            && let Some(cluster) = &mut self.cluster
        {
            // They are of a time that nobody remembers.
            cluster.remove_marks();
        }
    }

    /// The API server stays away until an entry of the reboot queue names it as its blocker, in some worlds.
    pub(super) fn leave_cluster_down_for_queue(&mut self) {
        let Some(cluster) = &mut self.cluster else { return };
        if self.plan.rate(Fault::KubernetesDown) > 0 && !self.is_rolled_back {
            cluster.is_up = false;
        }
    }

    /// Somebody removes every pod that stands in the way of a drain.
    pub(super) fn remove_stubborn_pods(&mut self) {
        for host in self.nodes() {
            if let Some(cluster) = &mut self.cluster {
                cluster.remove_pods(&host, |pod| !matches!(pod.kind, PodKind::Free | PodKind::Own));
            }
        }
    }

    fn remove_named_pods(&mut self, host: &HostName, pods: &Pods) {
        let names: Vec<&str> = pods.first.iter().map(|pod| pod.name.as_str()).collect();
        if let Some(cluster) = &mut self.cluster {
            cluster.remove_pods(host, |pod| names.contains(&pod.name().as_str()));
        }
    }

    /// Does what an operator would about what the node of an entry waits for.
    pub(super) fn help_node(&mut self, host: &HostName, waits: Option<&NodeWait>) {
        match waits {
            Some(NodeWait::Pods { pods }) => self.remove_named_pods(host, pods),
            Some(NodeWait::Unreachable { .. }) => self.cluster_back(),
            Some(NodeWait::NotReady) => self.free_hung_host(host),
            // Marks of a time that nobody remembers are removed at the end.
            Some(NodeWait::ForeignMark { .. } | NodeWait::Volumes { .. } | NodeWait::Refused { .. })
            | None => {}
        }
    }

    /// Does what an operator would about what the hosts of the active run wait for.
    pub(super) fn help_run(&mut self) {
        let Some(state) = self.leader().map(|leader| leader.state().clone()) else { return };
        for (host, in_run) in state.run.iter().flat_map(Run::hosts) {
            self.help_node(host, state.nodes.get(host).and_then(|node| node.waits.as_ref()));
            self.help_drain(host, in_run.reason.as_ref());
        }
    }

    /// After the machine was put back, a worker answers that its host has rebooted as it did before, without another boot. One that
    /// has lost its state does not know that its host has to reboot. The operator reboots a host whose node is waited for in vain.
    fn reboot_what_has_not(&mut self) {
        let Some(state) = self.leader().map(|leader| leader.state().clone()) else { return };
        let is_waited_for = |host: &HostName| {
            let node = state.nodes.get(host);
            let left = node.filter(|node| matches!(node.waits, Some(NodeWait::NotReady)));
            let seen = self.cluster.as_ref().and_then(|cluster| cluster.nodes.get(host));
            seen.is_some_and(|seen| {
                seen.is_ready && left.is_some_and(|node| node.left.as_ref() == Some(&seen.boot_id))
            })
        };
        let waiting: Vec<usize> =
            (0..self.hosts.len()).filter(|index| is_waited_for(&self.hosts[*index].name)).collect();
        for index in waiting {
            let boot = self.hosts[index].boot;
            if self.rng.u32(..60) == 0 {
                self.reboot(index, boot, None);
            }
        }
    }

    /// Does what an operator would about a drain that was given up.
    pub(super) fn help_backed_off(&mut self, entry: &Entry) {
        self.help_drain(&entry.host, entry.reason.as_ref());
        if self.rng.u32(..4) == 0
            && let Some(leader) = self.instances.iter().position(Self::leads)
        {
            self.request(leader, Call::new("operator", RebootOperation::ResetBackoff).into());
        }
    }

    /// Does what an operator would about why a host waits.
    fn help_drain(&mut self, host: &HostName, reason: Option<&Reason>) {
        if let Some(Reason::DrainRefused { pods }) = reason {
            self.remove_named_pods(host, pods);
        } else if let Some(Reason::DrainTimedOut { waits, .. }) = reason {
            self.help_node(host, waits.as_ref());
        } else if let Some(Reason::ClusterUnseen) = reason {
            self.cluster_back();
        }
    }

    /// At the end: operators uncordon the nodes of hosts that failed, and nothing else of ours is cordoned.
    pub(super) fn nodes_are_left_as_they_were(&mut self) -> bool {
        if self.cluster.is_none() {
            return true;
        }
        let kept: Vec<HostName> = self.checker.kept_nodes().cloned().collect();
        for host in kept {
            if let Some(leader) = self.instances.iter().position(Self::leads) {
                let operation = NodeOperation::Uncordon { host, reason: "the end".to_owned() };
                self.request(leader, Call::new("operator", operation).into());
            }
        }
        let nothing_is_left = |world: &Self| {
            let marked = |cluster: &Cluster| cluster.nodes.values().any(|node| node.mark.is_some());
            let known = world.leader().is_some_and(|leader| leader.state().nodes.is_empty());
            known && !world.cluster.as_ref().is_some_and(marked)
        };
        self.until("no node is cordoned any more", nothing_is_left)
    }
}
