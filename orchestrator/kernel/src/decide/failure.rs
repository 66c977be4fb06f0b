//! When a run has had enough failures.

use os_upgrade_protocol::HostName;

use crate::fact::Fact;
use crate::run::{HostStatus, Run, StopCause};

/// `host` is about to fail, or to be given up: no further one is started if that is one too many.
pub(super) fn stop(run: &Run, host: &HostName) -> Option<Fact> {
    let before = run.count(HostStatus::Failed) + run.count(HostStatus::TimedOut);
    let is_enough = run.stopping.is_none() && before >= run.rollout.max_failures as usize;
    let cause = StopCause::Failed { host: host.clone() };
    is_enough.then(|| Fact::RunStopping { run: run.id.clone(), cause })
}
