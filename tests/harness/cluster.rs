//! A site of one test on three nats-servers, with several orchestrators, each of which can be cut off from them.

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

/// An orchestrator and its lines to the servers.
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

    /// Cuts it off from all servers; nobody is told.
    pub fn cut_off(&self) {
        self.lines.iter().for_each(Proxy::cut);
    }

    /// Ends that; what was sent meanwhile arrives late.
    pub fn heal(&self) {
        self.lines.iter().for_each(Proxy::heal);
    }

    /// Ends that with new connections; what was sent meanwhile is lost.
    pub fn heal_anew(&self) {
        self.lines.iter().for_each(Proxy::heal_anew);
    }
}

/// The site.
#[derive(Debug)]
pub struct ClusterSite {
    // First, so that they are gone before what they use.
    /// The orchestrators.
    pub members: Vec<Member>,
    /// Their bus.
    pub nats: NatsCluster,
    directory: TempDir,
    jetstream: jetstream::Context,
}

impl ClusterSite {
    /// A site with so many orchestrators, with `more` in their configuration, of which one leads and the others follow.
    pub async fn start(orchestrators: usize, more: &str) -> Self {
        let nats = NatsCluster::start().await;
        let mut members = join_all((0..orchestrators).map(|_| Member::new(&nats, more))).await;
        // The first makes the streams.
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

    /// The bus, as the test sees it.
    pub const fn jetstream(&self) -> &jetstream::Context {
        &self.jetstream
    }

    /// The file to which all hosts' scripts write what they do.
    pub fn log(&self) -> PathBuf {
        self.directory.path().join("said")
    }

    /// What all hosts' scripts have said, in order.
    pub fn said(&self) -> Vec<String> {
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

    /// The orchestrator that leads, if one says so, but `except`.
    async fn find_leader(&self, except: Option<usize>) -> Option<usize> {
        for (index, member) in self.members.iter().enumerate() {
            let role = if Some(index) == except { None } else { member.orchestrator.role().await };
            if role.is_some_and(|(role, _)| role == "leader") {
                return Some(index);
            }
        }
        None
    }

    /// Waits until an orchestrator leads, and returns which.
    pub async fn leader(&self) -> usize {
        eventually("an orchestrator to lead", async || self.find_leader(None).await).await
    }

    /// Waits until another orchestrator than this one leads. This one is not asked: it may not answer.
    pub async fn leader_but(&self, but: usize) -> usize {
        eventually("another orchestrator to lead", async || self.find_leader(Some(but)).await).await
    }

    /// Sends an orchestrator a signal.
    pub fn signal(&self, member: usize, signal: Signal) {
        self.members[member].orchestrator.signal(signal);
    }
}
