//! The jobs of the cluster: cordons, drains and uncordons the nodes of hosts, and says how they are.
//!
//! Each job looks anew, and only what came of the last rounds of a drain is remembered ([`memory`]), so that a pod that was
//! refused is not asked for in each of them.

mod connection;
mod failure;
mod from_settings;
mod memory;
mod node_from;
mod orders;
mod outcome;
mod seen;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use imbl::OrdMap;
use kube::core::Selector;
use os_upgrade_console::describe;
use os_upgrade_kernel::{Job, JobDone, NodeJob, NodeOutcome, SeenNode};
use os_upgrade_protocol::HostName;
use os_upgrade_settings::NodeFrom;
use os_upgrade_shell::jobs::JobReport;

use self::connection::Connection;
pub use self::failure::Failure;
use self::memory::Memory;
use self::orders::{Halt, Work};
use crate::kubernetes::client::Access;
use crate::kubernetes::drain::{Drainer, Pace};
pub use crate::kubernetes::drain::{NamedPod, Preview};
use crate::kubernetes::node_event::NodeEvents;
use crate::kubernetes::permit::Permit;
use crate::kubernetes::plan::Policy;
use crate::kubernetes::request_rate::RequestRate;
use crate::kubernetes::rights::{Right, needed};

/// Which cluster it is, and how its nodes are treated.
#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// How it is found, and who asks it.
    pub access: Access,
    /// The site, in the marks of nodes. Sites that share a cluster have different names.
    pub site: String,
    /// Which node belongs to a host.
    pub node_from: NodeFrom,
    /// Which pods are treated with care.
    pub policy: Policy,
    /// How often it is asked, whatever for.
    pub requests: RequestRate,
    /// How soon pods that are refused are tried again.
    pub pace: Pace,
    /// The labels of the nodes that are API servers. An empty selector chooses all nodes.
    pub api_servers: Selector,
}

/// A cluster. Cheap to clone; clones share what they know of it.
#[derive(Debug, Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
    /// When the journal of the site was created, if that is known: it tells marks of this journal from those of others.
    journal: Option<DateTime<Utc>>,
}

#[derive(Debug)]
struct Shared {
    config: ClusterConfig,
    connection: Connection,
    memory: Memory,
    events: NodeEvents,
    /// The nodes whose marks could not be read when all nodes were looked at last.
    unreadable: Mutex<BTreeSet<String>>,
}

impl Cluster {
    /// A cluster that has not been asked anything yet.
    pub fn new(config: ClusterConfig) -> Self {
        let connection = Connection::new(config.access.clone(), config.requests.clone());
        let (memory, events, unreadable) = (Memory::default(), NodeEvents::default(), Mutex::default());
        let shared = Shared { config, connection, memory, events, unreadable };
        Self { shared: Arc::new(shared), journal: None }
    }

    /// The same cluster, for the site with the journal that was created at this time.
    #[must_use]
    pub fn for_journal(self, created_at: DateTime<Utc>) -> Self {
        Self { journal: Some(created_at), ..self }
    }

    /// Carries `job` out. `may_write` says right before each write whether this instance still leads.
    pub async fn carry_out(&self, job: NodeJob, may_write: impl Fn() -> bool + Send + Sync) -> JobReport {
        if !may_write() {
            return not_begun(job);
        }
        let (outcome, retry_after) = match self.work(&job, Permit::new(&may_write)).await {
            Ok(outcome) => {
                let pause = outcome::pause(&job.order, &outcome, Utc::now());
                (outcome, pause)
            }
            Err(Halt::NotLeading) => return not_begun(job),
            Err(Halt::Failed(failure)) => failure.into_outcome(),
        };
        let NodeJob { order, host, .. } = &job;
        match outcome.without_mark() {
            NodeOutcome::Unreachable { why } => {
                tracing::warn!(%host, ?order, why = %describe(why), "the API server does not answer as it should");
            }
            NodeOutcome::Refused { detail } => tracing::warn!(%host, ?order, detail, "Kubernetes refuses"),
            NodeOutcome::Superseded { fence } => {
                tracing::warn!(%host, ?order, ?fence, "a later leader, or one of another journal, has marked the node");
            }
            NodeOutcome::CordonLost { detail } => tracing::warn!(%host, ?order, detail, "a cordon is lost"),
            NodeOutcome::Clear
            | NodeOutcome::Remaining { .. }
            | NodeOutcome::VolumesInUse { .. }
            | NodeOutcome::Drained { .. }
            | NodeOutcome::Held
            | NodeOutcome::Unmarked
            | NodeOutcome::FoundUnschedulable { .. }
            | NodeOutcome::Uncordoned
            | NodeOutcome::NotReady => {}
        }
        JobReport { done: JobDone::Cluster(job, outcome), retry_after }
    }

    async fn work(&self, job: &NodeJob, permit: Permit<'_>) -> Result<NodeOutcome, Halt> {
        let Shared { config, connection, memory, events, .. } = &*self.shared;
        let client = connection.client().await?;
        let drainer = Drainer { client: &client, policy: &config.policy, pace: config.pace };
        let (site, node_from) = (&config.site, &config.node_from);
        let (client, journal) = (&client, self.journal);
        let work = Work { job, site, journal, node_from, client, drainer, permit, memory, events };
        let result = work.carry_out().await;
        if let Err(Halt::Failed(failure)) = &result {
            connection.failed(failure).await;
        }
        result
    }

    /// What a drain of the host's node would do. Nothing is changed.
    ///
    /// # Errors
    /// The host has no node, or the cluster cannot be asked.
    pub async fn preview(&self, host: &HostName) -> Result<Preview, Failure> {
        let Shared { config, connection, .. } = &*self.shared;
        let client = connection.client().await?;
        let drainer = Drainer { client: &client, policy: &config.policy, pace: config.pace };
        let preview = async {
            let node = node_from::node_of(&config.node_from, &client, host).await?;
            Ok(drainer.preview(&node).await?)
        };
        self.heed(preview.await).await
    }

    /// The rights that this client lacks, of those that the orchestrator needs in all namespaces with these settings.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub async fn missing_rights(&self) -> Result<Vec<Right>, Failure> {
        let client = self.shared.connection.client().await?;
        let mut missing = Vec::new();
        for right in needed(&self.shared.config.policy) {
            if !self.heed(client.has_right(right, "").await.map_err(Failure::from)).await? {
                missing.push(right);
            }
        }
        Ok(missing)
    }

    /// The nodes of hosts, by host, as they are now. A host to which several nodes lay claim is left out.
    ///
    /// # Errors
    /// The cluster cannot be asked.
    pub async fn nodes(&self) -> Result<OrdMap<HostName, SeenNode>, Failure> {
        let Shared { config, connection, unreadable, .. } = &*self.shared;
        let client = connection.client().await?;
        let nodes = self.heed(client.nodes().await.map_err(Failure::from)).await?;
        let all = seen::Nodes::new(nodes, &config.site, self.journal, &config.api_servers);
        let mut known = unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        for (node, detail) in &all.unreadable {
            if !known.contains(node) {
                tracing::warn!(
                    node,
                    detail,
                    "the mark of a node cannot be read, so nobody knows whose it is"
                );
            }
        }
        *known = all.unreadable.keys().cloned().collect();
        drop(known);
        Ok(all.by_host(&config.node_from))
    }

    /// Passes a result on, and takes what it says of the connection.
    async fn heed<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        if let Err(failure) = &result {
            self.shared.connection.failed(failure).await;
        }
        result
    }
}

fn not_begun(job: NodeJob) -> JobReport {
    tracing::info!(host = %job.host, order = ?job.order, "the cluster is not written to: the lease is running out");
    JobDone::NotBegun(Job::Cluster(job)).into()
}
