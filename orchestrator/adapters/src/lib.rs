//! What carries out jobs in systems outside of the bus: a module for each.

pub mod fleetlock;
mod lock_server;

use os_upgrade_kernel::Job;
use os_upgrade_shell::jobs::JobReport;

use crate::fleetlock::FleetLockClient;

/// A way to each system that there is.
#[derive(Debug, Clone, Default)]
pub struct Adapters {
    /// The lock server, where one is configured.
    pub lock_server: Option<FleetLockClient>,
}

impl Adapters {
    /// Carries `job` out. Right before each write outside `may_write` says whether this instance still leads: the process
    /// may have stood still since it was told to begin.
    pub async fn carry_out(&self, job: Job, may_write: impl Fn() -> bool) -> JobReport {
        match job {
            Job::LockServer(job) => lock_server::ask(self.lock_server.as_ref(), job, may_write).await,
        }
    }
}
