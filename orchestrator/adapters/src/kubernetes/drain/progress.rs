//! What a drain knows of the pods that are still there. Pure, but for times that come in with what happens.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::super::plan::{Action, Fallback, Ignored, PlannedPod, PodRef};
use super::report::{Reason, RemainingPod};

#[derive(Debug)]
struct Record {
    reason: Reason,
    /// Since when there are reasons of this kind.
    since: DateTime<Utc>,
    /// When the pod is tried again; never if absent.
    due: Option<Instant>,
}

/// The pods of the last list, and what came of the attempts to get rid of them.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pods: Vec<PlannedPod>,
    /// By uid.
    records: BTreeMap<String, Record>,
}

impl Progress {
    /// Takes a fresh list.
    pub(super) fn update(&mut self, pods: Vec<PlannedPod>, now: DateTime<Utc>) {
        self.pods = pods;
        let pods = &self.pods;
        self.records.retain(|uid, _| pods.iter().any(|pod| pod.pod.uid == *uid));
        for pod in self.pods.clone() {
            match pod.action {
                Action::Await { until } => self.record(&pod.pod, Reason::Terminating { until }, now, None),
                Action::WaitForJob => self.record(&pod.pod, Reason::JobRunning, now, None),
                Action::Ignore(_) | Action::Evict(_) => {}
            }
        }
    }

    /// Records why a pod is still there.
    pub(super) fn record(&mut self, pod: &PodRef, reason: Reason, now: DateTime<Utc>, due: Option<Instant>) {
        let same = self.records.get(&pod.uid).filter(|before| before.reason.is_like(&reason));
        let since = same.map_or(now, |before| before.since);
        self.records.insert(pod.uid.clone(), Record { reason, since, due });
    }

    /// Forgets why a pod was still there: nothing keeps it any more.
    pub(super) fn forget(&mut self, pod: &PodRef) {
        self.records.remove(&pod.uid);
    }

    /// Whether all pods that had to go are gone.
    pub(super) fn is_drained(&self) -> bool {
        !self.pods.iter().any(PlannedPod::has_to_go)
    }

    /// Whether a job is running.
    pub(super) fn waits_for_job(&self) -> bool {
        self.pods.iter().any(|pod| pod.action == Action::WaitForJob)
    }

    /// Whether a pod would have to stay.
    pub(super) fn is_refused(&self) -> bool {
        self.records.values().any(|record| record.reason.is_refusal())
    }

    /// Whether what is left will not go, whatever is waited for.
    pub(super) fn is_hopeless(&self) -> bool {
        let is_final =
            |pod: &PlannedPod| self.records.get(&pod.pod.uid).is_some_and(|record| record.reason.is_final());
        self.pods.iter().filter(|pod| pod.has_to_go()).all(is_final)
    }

    /// The pods that are to be evicted now. Those that were not tried come first, then those that wait longest: otherwise the
    /// first ones of the list could take all turns.
    pub(super) fn due(&self, now: Instant) -> Vec<(PlannedPod, Fallback)> {
        let due_at = |pod: &PlannedPod| self.records.get(&pod.pod.uid).map(|record| record.due);
        let is_due = |pod: &PlannedPod| due_at(pod).is_none_or(|due| due.is_some_and(|due| due <= now));
        let mut due: Vec<&PlannedPod> = self.pods.iter().filter(|pod| is_due(pod)).collect();
        due.sort_by_key(|pod| due_at(pod));
        let evictable = due.into_iter().filter_map(|pod| match pod.action {
            Action::Evict(fallback) => Some((pod.clone(), fallback)),
            Action::Ignore(_) | Action::Await { .. } | Action::WaitForJob => None,
        });
        evictable.collect()
    }

    /// The pods that have to go.
    pub(super) fn remaining(&self) -> Vec<RemainingPod> {
        let remaining = self.pods.iter().filter(|pod| pod.has_to_go());
        remaining
            .map(|pod| {
                let record = self.records.get(&pod.pod.uid);
                RemainingPod {
                    pod: pod.pod.clone(),
                    controller: pod.controller.clone(),
                    reason: record.map_or(Reason::NotTried, |record| record.reason.clone()),
                    since: record.map(|record| record.since),
                }
            })
            .collect()
    }

    /// The pods of this project.
    pub(super) fn own(&self) -> Vec<PodRef> {
        let own = self.pods.iter().filter(|pod| pod.action == Action::Ignore(Ignored::Own));
        own.map(|pod| pod.pod.clone()).collect()
    }
}
