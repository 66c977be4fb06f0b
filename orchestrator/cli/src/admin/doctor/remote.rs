//! What an instance says of its site over the API: whatever machine it is on.

use os_upgrade_api_types::route::Call;
use os_upgrade_api_types::routes::cluster::{ClusterState, CopiesState};
use os_upgrade_api_types::routes::health::Ready;
use os_upgrade_api_types::routes::slots::Slots;
use os_upgrade_api_types::routes::state::State;
use os_upgrade_api_types::routes::{self, cluster, health, state};
use os_upgrade_console::rows::cluster::trouble;
use os_upgrade_console::{Need, delivery_needs, unit_needs};
use serde::de::DeserializeOwned;

use super::check::{Check, Verdict};
use super::configuration;
use crate::rest::Client;

/// What is read of the state.
const FIELDS: &str = "next-upgrade-why,pending-hosts,config-warnings,delivery,units";

/// Every check. Each part that cannot be read is a problem of its own. Without a leader, what an instance says of the site is what was
/// last known.
pub(super) async fn examine(client: &Client) -> Vec<Check> {
    let mut checks = part(client, "instance", health::READY.call(), instance).await;
    let mut is_led = true;
    let of_cluster = |answer: &ClusterState<'static>| {
        is_led = trouble(answer).is_none();
        cluster(answer)
    };
    checks.extend(part(client, "cluster", cluster::READ.call(), of_cluster).await);
    let shown = |checks: Vec<Check>| {
        checks.into_iter().map(|check| if is_led { check } else { last_known(check) }).collect()
    };
    let call = state::READ.call().with("fields", FIELDS);
    checks.extend(part(client, "site", call, |answer: &State<'static>| shown(site(answer))).await);
    let of_slots = |answer: &Slots<'static>| shown(slots(answer));
    checks.extend(part(client, "slots", routes::slots::READ.call(), of_slots).await);
    checks
}

/// The checks of what `call` answers.
async fn part<T: DeserializeOwned>(
    client: &Client,
    name: &str,
    call: Call,
    check: impl FnOnce(&T) -> Vec<Check>,
) -> Vec<Check> {
    match client.read(call).await {
        Ok(answer) => check(&answer),
        Err(error) => {
            let advice = "see that an instance runs there, and that the token may read";
            vec![Check::problem(name, format!("{error:#}"), advice)]
        }
    }
}

/// The check of something that may have changed since.
fn last_known(check: Check) -> Check {
    Check { found: format!("last known: {}", check.found), ..check }
}

/// An instance that is ready. One that is not refuses to answer, and says why.
fn instance(ready: &Ready<'static>) -> Vec<Check> {
    let role = ready.role.as_deref().unwrap_or("unknown");
    let leader = ready.leader.as_deref().unwrap_or("unknown");
    let mut checks = vec![Check::ok("instance", format!("ready, {role}; the leader is {leader}"))];
    if let Some(changed) = ready.changed_setting.as_deref() {
        checks.push(Check::problem("streams", changed, "put it back with `nats stream edit`"));
    }
    if let Some(old) = ready.zone_data.old.as_deref() {
        let advice = "install the system's newest tzdata on its machine";
        checks.push(Check::warning("time zone data", old, advice));
    }
    checks
}

fn cluster(state: &ClusterState<'static>) -> Vec<Check> {
    let ClusterState { leader, instances, streams, warnings } = state;
    let advice = "`os-upgrade cluster status` shows all of it";
    let mut checks = Vec::new();
    if leader.is_none() {
        checks.push(Check::problem("cluster", "no instance leads", advice));
    }
    for away in instances.iter().filter(|instance| !instance.reachable) {
        let found = format!("instance {} has not been heard since {}", away.instance, away.last_seen);
        checks.push(Check::warning("cluster", found, advice));
    }
    for stream in streams {
        if let CopiesState::Unknown { problem } = &stream.replication {
            checks.push(Check::problem("streams", format!("{}: {problem}", stream.stream), advice));
        }
    }
    checks.extend(warnings.iter().map(|warning| Check::warning("cluster", warning, advice)));
    if checks.is_empty() {
        let found = format!("a leader, {} instances, {} streams", instances.len(), streams.len());
        checks.push(Check::ok("cluster", found));
    }
    checks
}

fn site(state: &State<'static>) -> Vec<Check> {
    let mut checks = Vec::new();
    if state.is_clock_in_doubt() {
        let found = state.next_upgrade_why.as_ref().map_or("", |why| why.text.as_str());
        checks.push(Check::problem("clock", found, "correct the clocks of its machines"));
    }
    if let Some(pending) = state.pending_hosts.filter(|pending| *pending > 0) {
        let advice =
            "list them with `os-upgrade hosts list --pending`, then `os-upgrade hosts approve NAME...`";
        checks.push(Check::warning("enrolment", format!("hosts waiting for approval: {pending}"), advice));
    }
    for warning in &state.config_warnings {
        let advice = "change it with `os-upgrade config edit`";
        checks.push(Check::warning("upgrade configuration", &warning.message, advice));
    }
    checks.extend(
        state.delivery.iter().flat_map(delivery_needs).map(|need| warning(configuration::NAME, need)),
    );
    checks.extend(state.units.iter().flat_map(unit_needs).map(|need| warning("units", need)));
    if checks.is_empty() {
        checks.push(Check::ok("site", "its configuration fits its hosts, and none waits for approval"));
    }
    checks
}

/// What needs a person, with the commands that help.
fn warning(of: &'static str, Need { what, commands }: Need) -> Check {
    let commands: Vec<_> = commands.iter().map(|(name, command)| format!("{name}: `{command}`")).collect();
    let advice = Some(commands.join("; ")).filter(|advice| !advice.is_empty());
    Check { verdict: Verdict::Warning, advice, ..Check::ok(of, what) }
}

fn slots(slots: &Slots<'static>) -> Vec<Check> {
    let holders = slots.groups.iter().flat_map(|group| &group.holders);
    let stuck: Vec<Check> = holders
        .filter(|holder| holder.stuck)
        .map(|holder| {
            let found = format!("{} has held its slot for long: {}", holder.id, holder.reason);
            Check::warning("slots", found, "look after it; `os-upgrade lock list` shows every slot")
        })
        .collect();
    if stuck.is_empty() { vec![Check::ok("slots", "none has been held for long")] } else { stuck }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read<T: DeserializeOwned>(answer: Value) -> T {
        serde_json::from_value(answer).unwrap()
    }

    fn instance_of_cluster(name: &str, is_reachable: bool) -> Value {
        json!({
            "instance": name, "role": "leader", "reachable": is_reachable, "ready": true, "position": 7, "address": "x",
            "version": "1.2.3", "last-seen": "2026-11-21T01:00:00Z",
        })
    }

    fn holder(id: &str, is_stuck: bool, reason: &str) -> Value {
        let since = "2026-11-21T01:00:00Z";
        json!({ "id": id, "since": since, "on-behalf-of": ["run"], "reason": reason, "stuck": is_stuck })
    }

    fn slots_with(holders: &[Value]) -> Slots<'static> {
        let group = json!({ "group": "default", "held": 1, "excess": 0, "holders": holders, "waiters": [] });
        read(json!({ "provider": "embedded", "reclaim": "never", "groups": [group] }))
    }

    fn verdicts(checks: &[Check]) -> Vec<(&str, Verdict)> {
        checks.iter().map(|check| (check.name.as_str(), check.verdict)).collect()
    }

    #[test]
    fn a_site_without_faults_has_one_line_for_each_part() {
        let zone_data = json!({ "version": "2026f", "source": "system" });
        let ready = json!({ "ready": true, "role": "leader", "leader": "a1", "zone-data": zone_data });
        let state = json!({ "leader": "a1", "instances": [instance_of_cluster("a1", true)], "streams": [] });
        let (instance, cluster) = (instance(&read(ready)), cluster(&read(state)));
        let checks = [instance, cluster, site(&read(json!({}))), slots(&slots_with(&[]))].concat();
        assert_eq!(checks.len(), 4);
        assert!(checks.iter().all(|check| check.verdict == Verdict::Ok), "{checks:?}");
        assert_eq!(checks[0].found, "ready, leader; the leader is a1");
    }

    /// What is not asked for is not found.
    #[test]
    fn fields_that_are_examined_are_read() {
        let known = os_upgrade_api_types::openapi::fields_of::<State<'_>>();
        for field in ["next-upgrade-why", "pending-hosts", "config-warnings", "delivery", "units"] {
            assert!(known.iter().any(|it| it == field), "{field}");
            assert!(FIELDS.split(',').any(|asked| asked == field), "{field}");
        }
    }

    #[test]
    fn faults_are_named() {
        let zone_data = json!({ "source": "built-in", "old": "windows go by old data" });
        let ready = json!({ "ready": true, "zone-data": zone_data });
        assert_eq!(verdicts(&instance(&read(ready)))[1], ("time zone data", Verdict::Warning));
        let state = json!({
            "leader": null, "instances": [instance_of_cluster("b1", false)],
            "streams": [{"stream": "journal", "problem": "1 of 3 replicas is offline"}], "warnings": ["settings differ"],
        });
        let expected = [
            ("cluster", Verdict::Problem),
            ("cluster", Verdict::Warning),
            ("streams", Verdict::Problem),
            ("cluster", Verdict::Warning),
        ];
        let checks = cluster(&read(state));
        assert_eq!(verdicts(&checks), expected);
        assert_eq!(checks[1].found, "instance b1 has not been heard since 2026-11-21T01:00:00Z");
        let state = json!({
            "next-upgrade-why": { "kind": "clock-behind", "text": "no run starts automatically: the clock is behind" },
            "pending-hosts": 2, "config-warnings": [{"kind": "x", "message": "no application"}],
        });
        let expected = [
            ("clock", Verdict::Problem),
            ("enrolment", Verdict::Warning),
            ("upgrade configuration", Verdict::Warning),
        ];
        assert_eq!(verdicts(&site(&read(state))), expected);
        let failed =
            json!({ "name": "app", "host": "h1", "failure": "it refuses", "since": "2026-11-21T01:00:00Z" });
        let on_host = json!({ "provider": "app", "host": "h2", "error": "no such directory", "count": 1 });
        let delivery = json!({
            "failed-providers": [failed], "failed-configurations": [on_host], "crossed-site": "hall-2",
        });
        let checks = site(&read(json!({ "delivery": delivery })));
        assert_eq!(verdicts(&checks), [(configuration::NAME, Verdict::Warning); 3]);
        assert_eq!(checks[0].advice, None);
        assert!(checks[1].found.starts_with("provider app fails for every host"), "{checks:?}");
        let advice = "try it: `os-upgrade providers test app --host=h1`";
        assert_eq!(checks[1].advice.as_deref(), Some(advice));
        assert!(checks[2].found.starts_with("h2 cannot revoke configuration app"), "{checks:?}");
        let failed = json!({ "failed": { "units": 1, "first": "a.service", "host": "h1" } });
        let checks = site(&read(json!({ "units": failed })));
        assert_eq!(verdicts(&checks), [("units", Verdict::Warning)]);
        assert_eq!(checks[0].advice.as_deref(), Some("look: `os-upgrade units status a.service`"));
        let found = slots(&slots_with(&[holder("h1", true, "failed in run r1"), holder("h2", false, "x")]));
        assert_eq!(found[0].found, "h1 has held its slot for long: failed in run r1");
        assert_eq!(found.len(), 1);
    }
}
