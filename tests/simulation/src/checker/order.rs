//! Rule `turn`: of the hosts of a group that could start, the one whose last turn lies most runs back goes first.
//!
//! Runs and turns are counted here anew. A lock server's grants are left out: what else could start is judged when a slot is
//! requested, and the answer comes later.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use os_upgrade_kernel::fact::{EnrolmentFact, RunFact};
use os_upgrade_kernel::{Fact, HostEvent, HostStatus, LockProvider, Reason, RunHost, State};
use os_upgrade_protocol::{Action, GroupName, HostName};

use super::violation::Violation;

#[derive(Debug, Default)]
pub(super) struct TurnOrder {
    /// How many runs have started.
    runs: u64,
    /// Whether a host that is told to prepare keeps others from being prepared.
    preparing_is_bounded: bool,
    /// The number of the run in which each host had its last turn.
    last: BTreeMap<HostName, u64>,
}

impl TurnOrder {
    /// `fact` follows on `before`, at `at` by the leader's clock.
    pub(super) fn fact(&mut self, at: DateTime<Utc>, fact: &Fact, before: &State) -> Result<(), Violation> {
        if let Fact::Run(RunFact::Started { rollout, .. }) = fact {
            self.runs += 1;
            self.preparing_is_bounded = rollout.max_preparing.is_some();
        } else if let Fact::Run(RunFact::Host {
            host,
            event: HostEvent::TimedOut { reason } | HostEvent::Failed { reason },
            ..
        }) = fact
        {
            let is_unprepared = matches!(
                reason,
                Reason::PrepareTimeout { .. }
                    | Reason::NoReply { action: Action::Prepare, .. }
                    | Reason::WorkerError { action: Action::Prepare, .. }
            );
            if is_unprepared && self.preparing_is_bounded {
                self.last.insert(host.clone(), self.runs);
            }
        } else if let Fact::Enrolment(EnrolmentFact::HostRemoved { host, .. }) = fact {
            self.last.remove(host);
        } else if let Fact::Run(RunFact::Host {
            host,
            event: HostEvent::SlotGranted { group, provider, .. },
            ..
        }) = fact
        {
            let earlier =
                (*provider == LockProvider::Embedded).then(|| self.passed_over(at, host, group, before));
            self.last.insert(host.clone(), self.runs);
            if let Some(earlier) = earlier.flatten() {
                let text = format!(
                    "{host} has its turn in {group} before {earlier}, whose last one lies further back"
                );
                return Err(Violation::new("turn", text));
            }
        }
        Ok(())
    }

    /// A host that could have been granted the slot in place of `granted`, and should have been.
    fn passed_over(
        &self,
        at: DateTime<Utc>,
        granted: &HostName,
        group: &GroupName,
        before: &State,
    ) -> Option<HostName> {
        // Which nodes may be drained together is judged by what is seen of them.
        let run = before.run.as_ref().filter(|_| before.settings.kubernetes.is_none())?;
        let semaphore = before.semaphores.get(group)?;
        // A slot that is held already needs no free one.
        let is_scarce = semaphore.free() <= semaphore.waiters.remembered(at).count();
        if is_scarce && before.slots.contains_key(granted) {
            return None;
        }
        let waits_since = |in_run: &RunHost| (in_run.status == HostStatus::Waiting).then_some(in_run.since);
        let granted_waits = waits_since(run.host(granted)?);
        let place = |host: &HostName| (self.last.get(host).copied().unwrap_or(0), host.clone());
        let could_start = |(host, in_run): &(&HostName, &RunHost)| {
            matches!(in_run.status, HostStatus::Prepared | HostStatus::Waiting)
                && in_run.group == *group
                && in_run.backoff.is_none_or(|backoff| backoff.until <= at)
                && !before.slots.contains_key(*host)
                && !before.reboot_queue.under_way().any(|(_, entry)| entry.host == **host)
                // The host that waits already stays first, though another comes back meanwhile.
                && granted_waits.is_none_or(|since| in_run.status == HostStatus::Waiting && in_run.since <= since)
        };
        let passed_over =
            run.hosts().iter().filter(could_start).find(|(host, _)| place(host) < place(granted));
        passed_over.map(|(host, _)| host.clone())
    }
}
