//! Disruption budgets: their status, computed from pods as the disruption controller does, and what an eviction takes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};

use crate::deletion::timestamp;
use crate::failure::{Failure, about};
use crate::owner::Owner;
use crate::resource::{BUDGETS, PODS};
use crate::selector::Labels;
use crate::store::{Key, Store};

/// How long a pod counts as disrupted after an eviction that did not delete it.
const DISRUPTED_SECS: i64 = 120;
/// The seconds after which an eviction may be repeated while the status is being computed.
const STALE_STATUS_RETRY_SECS: u32 = 10;
/// The owners whose number of pods is not known to the controller, and their resources.
const UNSCALED_OWNERS: [(&str, &str); 2] = [("DaemonSet", "daemonsets.apps"), ("Job", "jobs.batch")];

/// How many pods their owners want.
#[derive(Debug, Default)]
pub(crate) struct Scales(BTreeMap<Owner, i64>);

impl Scales {
    /// Sets how many pods an owner wants. Without, it is the most that were there at once.
    pub(crate) fn set(&mut self, owner: Owner, pods: i64) {
        self.0.insert(owner, pods);
    }

    fn observe(&mut self, store: &Store) {
        let mut counts = BTreeMap::<Owner, i64>::new();
        for pod in store.list(PODS, None).iter().filter(|pod| !is_terminating(pod)) {
            if let Some(owner) = Owner::of(pod) {
                *counts.entry(owner).or_default() += 1;
            }
        }
        for (owner, count) in counts {
            let known = self.0.entry(owner).or_default();
            *known = count.max(*known);
        }
    }

    /// The pods that the owners of these want; an error names an owner for which that is not known.
    fn expected(&self, pods: &[Arc<Value>]) -> Result<i64, String> {
        let owners: BTreeSet<Owner> = pods.iter().filter_map(|pod| Owner::of(pod)).collect();
        let unscaled = |owner: &Owner| UNSCALED_OWNERS.iter().find(|(kind, _)| *kind == owner.kind);
        if let Some((_, resource)) = owners.iter().find_map(unscaled) {
            return Err(format!("{resource} does not implement the scale subresource"));
        }
        Ok(owners.iter().map(|owner| self.0.get(owner).copied().unwrap_or_default()).sum())
    }
}

/// Whether a pod is ready.
fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn is_terminating(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

fn selects(budget: &Value, pod: &Value) -> bool {
    Labels::of_object(&budget["spec"]["selector"]).is_some_and(|labels| labels.matches(pod))
}

/// A number, or a share of `whole`, rounded up.
fn scaled(value: &Value, whole: i64) -> i64 {
    let percent =
        value.as_str().and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse::<i64>().ok());
    percent.map_or_else(|| value.as_i64().unwrap_or_default(), |percent| (whole * percent + 99) / 100)
}

/// Writes the status of every budget, if a pod or a budget has changed since this version.
pub(crate) fn update_all(store: &mut Store, scales: &mut Scales, since: Option<u64>, now: DateTime<Utc>) {
    // Owners have more pods only where one is new or has changed; what ends changes nothing about the most that were there.
    if store.changed(PODS, since).iter().any(|pod| !is_terminating(pod)) {
        scales.observe(store);
    }
    let concerns = |key: &Key| key.resource == PODS || key.resource == BUDGETS;
    if since.is_some_and(|since| !store.changes_after(since).iter().any(|change| concerns(&change.key))) {
        return;
    }
    for budget in store.list(BUDGETS, None) {
        let namespace = budget["metadata"]["namespace"].as_str().unwrap_or_default();
        let key = Key::new(BUDGETS, namespace, budget["metadata"]["name"].as_str().unwrap_or_default());
        let mut pods = store.list(PODS, Some(namespace));
        pods.retain(|pod| selects(&budget, pod));
        let mut after = Value::clone(&budget);
        after["status"] = status(&budget, &pods, scales, now);
        store.put(&key, after);
    }
}

fn status(budget: &Value, pods: &[Arc<Value>], scales: &Scales, now: DateTime<Utc>) -> Value {
    let spec = &budget["spec"];
    let disrupted = still_disrupted(budget, pods, now);
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let is_healthy =
        |pod: &&Arc<Value>| is_ready(pod) && !is_terminating(pod) && !disrupted.contains_key(&name(pod));
    let healthy = i64::try_from(pods.iter().filter(is_healthy).count()).unwrap();
    let count = i64::try_from(pods.len()).unwrap();
    let numbers = if spec["maxUnavailable"].is_null() {
        let minimum = &spec["minAvailable"];
        if minimum.is_string() {
            scales.expected(pods).map(|expected| (expected, scaled(minimum, expected)))
        } else {
            Ok((count, minimum.as_i64().unwrap_or_default()))
        }
    } else {
        let desired = |expected| (expected - scaled(&spec["maxUnavailable"], expected)).max(0);
        scales.expected(pods).map(|expected| (expected, desired(expected)))
    };
    let (expected, desired) = match numbers {
        Ok(numbers) => numbers,
        Err(why) => return failed(budget, &why, now),
    };
    let allowed = if expected > 0 { (healthy - desired).max(0) } else { 0 };
    json!({
        "observedGeneration": budget["metadata"]["generation"],
        "disruptedPods": disrupted,
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": [condition(budget, allowed > 0, sufficiency(allowed), "", now)],
    })
}

/// The status of a budget that cannot be computed. What it was computed for last, and what came of that, stays.
fn failed(budget: &Value, why: &str, now: DateTime<Utc>) -> Value {
    let mut status = budget["status"].clone();
    for number in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        if number == "disruptionsAllowed" || status[number].is_null() {
            status[number] = json!(0);
        }
    }
    status["conditions"] = json!([condition(budget, false, "SyncFailed", why, now)]);
    status
}

fn sufficiency(allowed: i64) -> &'static str {
    if allowed > 0 { "SufficientPods" } else { "InsufficientPods" }
}

/// The condition `DisruptionAllowed`, which keeps its time while it stays what it is.
fn condition(budget: &Value, is_allowed: bool, reason: &str, message: &str, now: DateTime<Utc>) -> Value {
    let before = &budget["status"]["conditions"][0];
    let status = if is_allowed { "True" } else { "False" };
    let since = &before["lastTransitionTime"];
    let is_same = before["status"] == status && since.is_string();
    json!({
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": budget["metadata"]["generation"],
        "lastTransitionTime": if is_same { since.clone() } else { json!(timestamp(now)) },
    })
}

/// The pods of granted evictions that have not begun to terminate.
fn still_disrupted(budget: &Value, pods: &[Arc<Value>], now: DateTime<Utc>) -> Map<String, Value> {
    let Some(disrupted) = budget["status"]["disruptedPods"].as_object() else { return Map::new() };
    let is_there =
        |name: &str| pods.iter().any(|pod| pod["metadata"]["name"] == *name && !is_terminating(pod));
    let is_recent = |since: &Value| {
        let since = since.as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok());
        since.is_some_and(|since| now < since + TimeDelta::seconds(DISRUPTED_SECS))
    };
    let kept = disrupted.iter().filter(|(name, since)| is_there(name) && is_recent(since));
    kept.map(|(name, since)| (name.clone(), since.clone())).collect()
}

/// Asks the budgets of a pod for one disruption, and takes it unless this is a dry run.
pub(crate) fn take(
    store: &mut Store,
    pod: &Value,
    is_dry_run: bool,
    now: DateTime<Utc>,
) -> Result<(), Failure> {
    let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
    let mut budgets = store.list(BUDGETS, Some(namespace));
    budgets.retain(|budget| selects(budget, pod));
    let budget = match &budgets[..] {
        [] => return Ok(()),
        [budget] => budget,
        [_, _, ..] => {
            let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Failure::new(500, "", message));
        }
    };
    let (name, status) = (budget["metadata"]["name"].as_str().unwrap_or_default(), &budget["status"]);
    let number = |field: &str| status[field].as_i64().unwrap_or_default();
    if !is_ready(pod) {
        let (current, desired) = (number("currentHealthy"), number("desiredHealthy"));
        let always = budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
        if always || (current >= desired && desired > 0) {
            return Ok(());
        }
    }
    let generation = budget["metadata"]["generation"].as_i64().unwrap_or_default();
    if number("observedGeneration") < generation {
        let message = format!("The disruption budget {name} is still being processed by the server.");
        return Err(Failure::budget(&message).retry_after(STALE_STATUS_RETRY_SECS));
    }
    let allowed = number("disruptionsAllowed");
    if allowed < 0 {
        let message = format!(
            "poddisruptionbudget.policy \"{name}\" is forbidden: pdb disruptions allowed is negative"
        );
        return Err(Failure::new(403, "Forbidden", message).details(about(
            &BUDGETS,
            "poddisruptionbudget",
            name,
        )));
    }
    if allowed == 0 {
        return Err(Failure::budget(&refusal(name, status)));
    }
    if is_dry_run {
        return Ok(());
    }
    let mut after = Value::clone(budget);
    after["status"]["disruptionsAllowed"] = json!(allowed - 1);
    let evicted = pod["metadata"]["name"].as_str().unwrap_or_default();
    after["status"]["disruptedPods"][evicted] = json!(timestamp(now));
    after["status"]["conditions"] =
        json!([condition(budget, allowed > 1, sufficiency(allowed - 1), "", now)]);
    store.put(&Key::new(BUDGETS, namespace, name), after);
    Ok(())
}

fn refusal(name: &str, status: &Value) -> String {
    let condition = &status["conditions"][0];
    let (current, desired) = (&status["currentHealthy"], &status["desiredHealthy"]);
    if condition["reason"] == "SyncFailed" {
        let why = condition["message"].as_str().unwrap_or_default();
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {why}"
        );
    }
    if current.as_i64() <= desired.as_i64() {
        return format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        );
    }
    format!("The disruption budget {name} does not allow evicting pods currently")
}
