//! Adapters carry out jobs in systems outside of the bus: a module per system.

pub mod cluster;
pub mod fleet_lock_client;
mod http_error;
pub mod kubernetes;
mod lock_server;
pub mod providers;
pub mod reboot_command;
#[cfg(test)]
mod test_server;

use std::time::Duration;

use os_upgrade_kernel::{Job, NoAnswer};
use os_upgrade_shell::jobs::JobReport;

use crate::cluster::Cluster;
use crate::fleet_lock_client::FleetLockClient;
use crate::providers::Providers;
use crate::reboot_command::RebootCommands;

/// The clients of all systems.
#[derive(Debug, Clone, Default)]
pub struct Adapters {
    /// The client of the lock server; `None` if none is configured.
    pub lock_server: Option<FleetLockClient>,
    /// The Kubernetes cluster; `None` if none is configured.
    pub cluster: Option<Cluster>,
    /// The operator's commands that reboot hosts; `None` if none are configured.
    pub reboot_commands: Option<RebootCommands>,
    /// The providers of configuration.
    pub providers: Providers,
}

impl Adapters {
    /// Carries `job` out. `may_write` is called right before each write to a system. It returns whether this instance still
    /// leads, since the process may have been paused after the job was started.
    pub async fn carry_out(&self, job: Job, may_write: impl Fn() -> bool + Send + Sync) -> JobReport {
        match job {
            Job::Cluster(job) => match &self.cluster {
                Some(cluster) => cluster.carry_out(job, may_write).await,
                None => Job::Cluster(job).unanswered(NoAnswer::NotConfigured).into(),
            },
            Job::LockServer(job) => lock_server::ask(self.lock_server.as_ref(), job, may_write).await,
            Job::RebootCommand(job) => match &self.reboot_commands {
                Some(commands) => commands.carry_out(job, may_write).await,
                None => Job::RebootCommand(job).unanswered(NoAnswer::NotConfigured).into(),
            },
        }
    }

    /// How long `job` takes at most, if its settings say so.
    pub fn within(&self, job: &Job) -> Option<Duration> {
        match job {
            Job::RebootCommand(_) => self.reboot_commands.as_ref().map(RebootCommands::within),
            Job::Cluster(_) | Job::LockServer(_) => None,
        }
    }
}
