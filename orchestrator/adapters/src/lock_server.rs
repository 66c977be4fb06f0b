//! The job of the lock server: takes and gives back the slots of a run's hosts.

use os_upgrade_console::describe;
use os_upgrade_kernel::{Job, JobDone, LockOutcome, NoAnswer, SlotJob};
use os_upgrade_shell::jobs::JobReport;

use crate::fleet_lock_client::{FleetLockClient, Reply};

/// Sends one request to the lock server, if the lease lasts long enough.
pub(super) async fn ask(
    client: Option<&FleetLockClient>,
    job: SlotJob,
    may_write: impl Fn() -> bool,
) -> JobReport {
    if !may_write() {
        tracing::info!(host = %job.host, order = ?job.order, "the lock server is not asked: the lease is running out");
        return JobDone::NotBegun(Job::LockServer(job)).into();
    }
    let Reply { outcome, retry_after, status: _ } = match client {
        None => LockOutcome::Unreachable { why: NoAnswer::NotConfigured }.into(),
        Some(client) => client.request(job.order, &job.group, &job.host).await,
    };
    let problem = match &outcome {
        LockOutcome::Granted | LockOutcome::Denied { .. } => None,
        LockOutcome::Unreachable { why } => Some(describe(why).to_string()),
        LockOutcome::Protocol { detail } => Some(detail.clone()),
    };
    if let Some(detail) = problem {
        tracing::warn!(host = %job.host, order = ?job.order, detail, "the lock server does not answer as it should");
    }
    JobReport { done: JobDone::LockServer(job, outcome), retry_after }
}
