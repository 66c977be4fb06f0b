//! What is known of the pods that are still on a node, from one round to the next. Pure: times come in with what happens.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use os_upgrade_kernel::{Pod, PodObstacle};
use tokio::time::Instant;

use super::super::plan::{Action, Fallback, Ignored, PlannedPod, PodRef};
use super::report::{NamedPod, blocks, is_like, is_refusal, pod};

#[derive(Debug)]
struct Record {
    obstacle: PodObstacle,
    /// Since when there are obstacles of this kind.
    since: DateTime<Utc>,
    /// When the pod is tried again; never if absent.
    due: Option<Instant>,
}

/// The pods of the last list, and what came of the attempts to get rid of them.
#[derive(Debug, Default)]
pub struct Progress {
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
                Action::Await => {
                    let finalizers = pod.finalizers.first;
                    let obstacle = if finalizers.is_empty() {
                        PodObstacle::Terminating
                    } else {
                        PodObstacle::Finalizers { finalizers }
                    };
                    self.record(&pod.pod, obstacle, now, None);
                }
                Action::WaitForJob => self.record(&pod.pod, PodObstacle::JobRunning, now, None),
                Action::WaitForPod => self.record(&pod.pod, PodObstacle::Awaited, now, None),
                // It may have been waited for before.
                Action::Evict(_) if self.is_never_due(&pod.pod) => self.forget(&pod.pod),
                Action::Ignore(_) | Action::Evict(_) => {}
            }
        }
    }

    fn is_never_due(&self, pod: &PodRef) -> bool {
        self.records.get(&pod.uid).is_some_and(|record| record.due.is_none())
    }

    /// Records why a pod is still there.
    pub(super) fn record(
        &mut self,
        pod: &PodRef,
        obstacle: PodObstacle,
        now: DateTime<Utc>,
        due: Option<Instant>,
    ) {
        let same = self.records.get(&pod.uid).filter(|before| is_like(&before.obstacle, &obstacle));
        let since = same.map_or(now, |before| before.since);
        self.records.insert(pod.uid.clone(), Record { obstacle, since, due });
    }

    /// Forgets why a pod was still there: nothing keeps it any more.
    pub(super) fn forget(&mut self, pod: &PodRef) {
        self.records.remove(&pod.uid);
    }

    /// Whether all pods that had to go are gone.
    pub(super) fn is_drained(&self) -> bool {
        !self.pods.iter().any(PlannedPod::has_to_go)
    }

    /// How many volumes the pods that stay may have in use: each of their claims, whoever shares it, is one.
    pub(super) fn volumes_staying(&self) -> usize {
        let staying = || self.pods.iter().filter(|pod| !pod.has_to_go());
        let claims: BTreeSet<(&str, &str)> = staying()
            .flat_map(|pod| {
                pod.volumes.claims.iter().map(|claim| (pod.pod.namespace.as_str(), claim.as_str()))
            })
            .collect();
        claims.len() + staying().map(|pod| pod.volumes.ephemeral).sum::<usize>()
    }

    /// Whether there is a pod before whose end no drain begins.
    pub(super) fn must_not_begin(&self) -> bool {
        self.pods.iter().any(|pod| matches!(pod.action, Action::WaitForJob | Action::WaitForPod))
    }

    /// The pods that would be missed: whether a controller replaces them, and what they have stored on the node, is for whoever drains
    /// to know.
    pub(super) fn losses(&self) -> impl Iterator<Item = NamedPod> {
        let evictable = self.pods.iter().filter(|pod| matches!(pod.action, Action::Evict(_)));
        evictable.map(NamedPod::from).filter(|pod| pod.is_bare || pod.has_empty_dir)
    }

    /// Whether a pod would have to stay.
    pub(super) fn is_refused(&self) -> bool {
        self.records.values().any(|record| is_refusal(&record.obstacle))
    }

    /// The pods whose budgets are being computed.
    pub(super) fn pending(&self, now: DateTime<Utc>) -> Vec<Pod> {
        let is_pending = |pod: &Pod| matches!(pod.obstacle, PodObstacle::BudgetPending { .. });
        self.remaining(now).map(|(_, pod)| pod).filter(is_pending).collect()
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
            Action::Ignore(_) | Action::Await | Action::WaitForJob | Action::WaitForPod => None,
        });
        evictable.collect()
    }

    /// The pods that have to go, as they were listed and with what keeps them.
    pub(super) fn remaining(&self, now: DateTime<Utc>) -> impl Iterator<Item = (&PlannedPod, Pod)> {
        self.pods.iter().filter(|pod| pod.has_to_go()).map(move |planned| {
            let record = self.records.get(&planned.pod.uid);
            let obstacle = record.map_or(PodObstacle::NotTried, |record| record.obstacle.clone());
            let since = record.map_or(now, |record| record.since);
            (planned, pod(planned, obstacle, since))
        })
    }

    /// The pods that keep the node from being drained.
    pub(super) fn blocked(&self, now: DateTime<Utc>) -> Vec<Pod> {
        self.remaining(now).map(|(_, pod)| pod).filter(|pod| blocks(&pod.obstacle)).collect()
    }

    /// The pods of this project.
    pub(super) fn own(&self) -> impl Iterator<Item = &PlannedPod> {
        self.pods.iter().filter(|pod| pod.action == Action::Ignore(Ignored::Own))
    }
}
