//! A lock server takes and frees the slots of hosts of runs.

use os_upgrade_kernel::{JobDone, LockOutcome, SlotJob};
use os_upgrade_shell::jobs::JobReport;

use crate::fleetlock::client::{FleetLockClient, Reply};

/// Asks the lock server once.
pub(super) async fn ask(
    client: Option<&FleetLockClient>,
    job: SlotJob,
    may_write: impl Fn() -> bool,
) -> JobReport {
    let not_asked = |why: &str| Reply::from(LockOutcome::Unreachable { detail: why.to_owned() });
    let Reply { outcome, retry_after, status: _ } = match client {
        _ if !may_write() => not_asked("not asked: the lease was running out"),
        None => not_asked("no [fleet-lock] url is configured"),
        Some(client) => client.ask(job.order, &job.group, &job.host).await,
    };
    if let LockOutcome::Unreachable { detail } | LockOutcome::Protocol { detail } = &outcome {
        tracing::warn!(host = %job.host, order = ?job.order, detail, "the lock server does not answer as it should");
    }
    JobReport { done: JobDone::LockServer(job, outcome), retry_after }
}
