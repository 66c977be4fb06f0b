//! The requests of one job, one after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::labels::{Selector, SelectorExt as _};

use super::super::api::Mode;
use super::super::client::Client;
use super::super::error::Error;
use super::super::eviction::Verdict;
use super::super::objects::{Budget, Pod};
use super::super::permit::{Interrupted, Permit};
use super::super::plan::{Namespaces, PlannedPod, PodRef};
use super::super::rights::Right;

/// How soon it is tried again to drain a node whose pods are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The pause before a pod that was refused is tried again.
    pub retry: Duration,
    /// How often the dry run under the cordon is repeated while a pod is refused, as far as the time of one job allows. Some
    /// controllers relax a budget only once they see the cordon.
    pub retries: u32,
    /// How long evicted pods have to end; each pod's own time if absent. In whole seconds, 1 at least.
    pub grace: Option<Duration>,
    /// How long after its grace a pod is waited for whose kubelet is silent; for ever if absent.
    pub skip_terminating_after: Option<Duration>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { retry: Duration::from_secs(10), retries: 0, grace: None, skip_terminating_after: None }
    }
}

/// A budget that selects a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SelectingBudget {
    pub(super) name: String,
    /// Whether it allows a number of pods that depends on how many there should be, and nobody says how many.
    pub(super) has_nothing_to_count: bool,
}

impl From<&Budget> for SelectingBudget {
    fn from(budget: &Budget) -> Self {
        let is_relative = budget.spec.as_ref().is_some_and(|spec| {
            spec.max_unavailable.is_some() || matches!(spec.min_available, Some(IntOrString::String(_)))
        });
        // A status that is older than the budget says nothing of it.
        let status =
            budget.status.as_ref().filter(|status| status.observed_generation == budget.metadata.generation);
        Self {
            name: budget.metadata.name.clone().unwrap_or_default(),
            has_nothing_to_count: is_relative && status.is_some_and(|status| status.expected_pods == 0),
        }
    }
}

/// The requests of one job.
#[derive(Debug)]
pub(super) struct Session<'a> {
    client: &'a Client,
    pace: Pace,
    /// The budgets of namespaces that were asked for since the last list of pods.
    budgets: BTreeMap<String, Vec<Budget>>,
    /// The rights in namespaces that were asked for.
    rights: BTreeMap<(Right, String), bool>,
}

impl<'a> Session<'a> {
    pub(super) fn new(client: &'a Client, pace: Pace) -> Self {
        Self { client, pace, budgets: BTreeMap::new(), rights: BTreeMap::new() }
    }

    pub(super) fn pace(&self) -> Pace {
        self.pace
    }

    /// The pods of the node as they are now.
    pub(super) async fn pods(&mut self, node: &str) -> Result<Vec<Pod>, Error> {
        self.budgets.clear();
        self.client.pods_of(node).await
    }

    pub(super) async fn namespaces(&mut self) -> Result<Namespaces, Error> {
        Ok(self.client.namespaces().await?.into_iter().collect())
    }

    /// Asks what would come of an eviction. It changes nothing, so no permission is needed.
    pub(super) async fn judge(&mut self, pod: &PodRef) -> Result<Verdict, Error> {
        self.client.evict(self.client.turn().await, pod, Mode::DryRun).await
    }

    /// Asks what would come of a deletion. It changes nothing, so no permission is needed.
    pub(super) async fn judge_deletion(&mut self, pod: &PodRef) -> Result<Verdict, Error> {
        self.client.delete_pod(self.client.turn().await, pod, Mode::DryRun).await
    }

    /// Evicts a pod. Whether that is still allowed is asked last.
    pub(super) async fn evict(&mut self, pod: &PodRef, permit: Permit<'_>) -> Result<Verdict, Interrupted> {
        let turn = self.client.turn().await;
        permit.check()?;
        Ok(self.client.evict(turn, pod, self.real()).await?)
    }

    /// Deletes a pod. Whether that is still allowed is asked last.
    pub(super) async fn delete(&mut self, pod: &PodRef, permit: Permit<'_>) -> Result<Verdict, Interrupted> {
        let turn = self.client.turn().await;
        permit.check()?;
        Ok(self.client.delete_pod(turn, pod, self.real()).await?)
    }

    fn real(&self) -> Mode {
        Mode::Real { grace: self.pace.grace }
    }

    /// Whether there is a right in a namespace. Where the server does not say, there is none: it was just refused.
    pub(super) async fn has_right(&mut self, right: Right, namespace: &str) -> bool {
        let key = (right, namespace.to_owned());
        if let Some(has) = self.rights.get(&key) {
            return *has;
        }
        let has = self.client.has_right(right, namespace).await.unwrap_or_default();
        self.rights.insert(key, has);
        has
    }

    /// The budgets that select a pod.
    pub(super) async fn budgets_of(&mut self, pod: &PlannedPod) -> Result<Vec<SelectingBudget>, Error> {
        let namespace = &pod.pod.namespace;
        if !self.budgets.contains_key(namespace) {
            let budgets = self.client.budgets_of(namespace).await?;
            self.budgets.insert(namespace.clone(), budgets);
        }
        let budgets = self.budgets.get(namespace).into_iter().flatten();
        let selecting = budgets.filter(|budget| selects(budget, pod));
        Ok(selecting.map(SelectingBudget::from).collect())
    }
}

/// Whether a budget is about a pod. One without a selector is about none.
fn selects(budget: &Budget, pod: &PlannedPod) -> bool {
    let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
    selector
        .and_then(|selector| Selector::try_from(selector).ok())
        .is_some_and(|selector| selector.matches(&pod.labels))
}
