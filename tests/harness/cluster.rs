//! A site of one test with three nats-servers and several orchestrators, each of which can be cut off from the servers.

use std::path::PathBuf;

use async_nats::jetstream;
use futures::future::join_all;
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::host::{APPLICATION, Host};
use crate::nats_cluster::NatsCluster;
use crate::orchestrator::Orchestrator;
use crate::proxy::Proxy;
use crate::wait::eventually;

/// An orchestrator and its proxied connections to the servers.
#[derive(Debug)]
pub struct Member {
    /// The orchestrator.
    pub orchestrator: Orchestrator,
    lines: Vec<Proxy>,
}

impl Member {
    async fn new(nats: &NatsCluster, more: &str) -> Self {
        let lines = join_all(nats.addresses().into_iter().map(Proxy::start)).await;
        let urls: Vec<String> = lines.iter().map(|line| format!("nats://{}", line.address())).collect();
        let orchestrator = Orchestrator::new(&urls.join(","), &format!("replicas = 3\n{more}"));
        Self { orchestrator, lines }
    }

    /// Cuts it off from all servers, without closing connections.
    pub fn cut_off(&self) {
        self.lines.iter().for_each(Proxy::cut);
    }

    /// Reconnects it; what was sent in the meantime arrives late.
    pub fn heal(&self) {
        self.lines.iter().for_each(Proxy::heal);
    }

    /// Reconnects it with new connections; what was sent in the meantime is lost.
    pub fn heal_with_new_connections(&self) {
        self.lines.iter().for_each(Proxy::heal_with_new_connections);
    }
}

/// A site on a cluster.
#[derive(Debug)]
pub struct ClusterSite {
    // First field: dropped before what it uses.
    /// The orchestrators.
    pub members: Vec<Member>,
    /// Their bus.
    pub nats: NatsCluster,
    directory: TempDir,
    jetstream: jetstream::Context,
}

impl ClusterSite {
    /// A site with this number of orchestrators, with `more` in their configuration. One leads, the others follow.
    pub async fn start(orchestrators: usize, more: &str) -> Self {
        let nats = NatsCluster::start().await;
        let mut members = join_all((0..orchestrators).map(|_| Member::new(&nats, more))).await;
        // The first creates the streams.
        members[0].orchestrator.start_ready().await;
        for member in &mut members[1..] {
            member.orchestrator.start();
        }
        for member in &members {
            member.orchestrator.ready().await;
        }
        let jetstream = jetstream::new(nats.client().await);
        let site = Self { members, nats, directory: tempfile::tempdir().unwrap(), jetstream };
        site.members[0].orchestrator.rest.configure(APPLICATION).await;
        site
    }

    /// The test's own JetStream client.
    pub const fn jetstream(&self) -> &jetstream::Context {
        &self.jetstream
    }

    /// The file to which all hosts' scripts log.
    pub fn log(&self) -> PathBuf {
        self.directory.path().join("said")
    }

    /// The log of all hosts' scripts, in order.
    pub fn script_log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A host of this site, whose worker does not run yet.
    pub fn host(&self, name: &str) -> Host {
        Host::new(&self.nats.urls(), &self.log(), name)
    }

    /// Hosts `h01`, `h02` and so on, running; every other one reboots.
    pub async fn hosts(&self, count: usize) -> Vec<Host> {
        let host = |number: usize| {
            let host = self.host(&format!("h{number:02}"));
            if number.is_multiple_of(2) { host.reboots() } else { host }
        };
        let mut hosts: Vec<Host> = (1..=count).map(host).collect();
        for host in &mut hosts {
            host.start();
        }
        let names: Vec<&str> = hosts.iter().map(Host::name).collect();
        for member in &self.members {
            member.orchestrator.rest.await_scheduled(&names).await;
        }
        hosts
    }

    /// The orchestrator that reports that it leads, other than `except`.
    async fn find_leader(&self, except: Option<usize>) -> Option<usize> {
        for (index, member) in self.members.iter().enumerate() {
            let role = if Some(index) == except { None } else { member.orchestrator.role().await };
            if role.is_some_and(|(role, _)| role == "leader") {
                return Some(index);
            }
        }
        None
    }

    /// Waits until an orchestrator leads, and returns its index.
    pub async fn leader(&self) -> usize {
        eventually("an orchestrator to lead", async || self.find_leader(None).await).await
    }

    /// Waits until an orchestrator other than `but` leads. That one is not polled, because it may not answer.
    pub async fn leader_but(&self, but: usize) -> usize {
        eventually("another orchestrator to lead", async || self.find_leader(Some(but)).await).await
    }

    /// Sends an orchestrator a signal.
    pub fn signal(&self, member: usize, signal: Signal) {
        self.members[member].orchestrator.signal(signal);
    }
}
