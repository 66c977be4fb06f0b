//! What an instance says of its site over the API: whatever machine it is on.

use os_upgrade_api_types::route::Call;
use os_upgrade_api_types::routes::cluster::ClusterState;
use os_upgrade_api_types::routes::{self, cluster, health, state};
use os_upgrade_console::rows::cluster::trouble;
use serde::Deserialize as _;
use serde_json::Value;

use super::check::Check;
use crate::rest::Client;

/// What is read of the state.
const FIELDS: &str = "next-upgrade-reason,next-upgrade-why,pending-hosts,config-warnings";
/// The beginning of the reasons about clocks.
const CLOCK: &str = "clock-";

/// Every check. Each part that cannot be read is a problem of its own. Without a leader, what an instance says of the site is what was
/// last known.
pub(super) async fn examine(client: &Client) -> Vec<Check> {
    let mut checks = part(client, "instance", health::READY.call(), instance).await;
    let mut is_led = true;
    let of_cluster = |answer: &Value| {
        is_led = ClusterState::deserialize(answer).is_ok_and(|cluster| trouble(&cluster).is_none());
        cluster(answer)
    };
    checks.extend(part(client, "cluster", cluster::READ.call(), of_cluster).await);
    let shown = |checks: Vec<Check>| {
        checks.into_iter().map(|check| if is_led { check } else { last_known(check) }).collect()
    };
    let call = state::READ.call().with("fields", FIELDS);
    checks.extend(part(client, "site", call, |answer| shown(site(answer))).await);
    checks.extend(part(client, "slots", routes::slots::READ.call(), |answer| shown(slots(answer))).await);
    checks
}

/// The checks of what `call` answers.
async fn part(
    client: &Client,
    name: &str,
    call: Call,
    check: impl FnOnce(&Value) -> Vec<Check>,
) -> Vec<Check> {
    match client.call(call).await {
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
fn instance(ready: &Value) -> Vec<Check> {
    let text = |name: &str| ready[name].as_str().unwrap_or("unknown").to_owned();
    let mut checks =
        vec![Check::ok("instance", format!("ready, {}; the leader is {}", text("role"), text("leader")))];
    if let Some(changed) = ready["changed-setting"].as_str() {
        checks.push(Check::problem("streams", changed, "put it back with `nats stream edit`"));
    }
    if let Some(old) = ready["zone-data"]["old"].as_str() {
        checks.push(Check::warning(
            "time zone data",
            old,
            "install the system's newest tzdata on its machine",
        ));
    }
    checks
}

fn cluster(state: &Value) -> Vec<Check> {
    let items = |name: &str| state[name].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let advice = "`os-upgrade cluster status` shows all of it";
    let mut checks = Vec::new();
    let (instances, streams) = (items("instances"), items("streams"));
    if state["leader"].is_null() {
        checks.push(Check::problem("cluster", "no instance leads", advice));
    }
    for away in instances.iter().filter(|instance| instance["reachable"] == false) {
        let found = format!(
            "instance {} has not been heard since {}",
            text(&away["instance"]),
            text(&away["last-seen"])
        );
        checks.push(Check::warning("cluster", found, advice));
    }
    for stream in streams.iter().filter(|stream| stream["problem"].is_string()) {
        let found = format!("{}: {}", text(&stream["stream"]), text(&stream["problem"]));
        checks.push(Check::problem("streams", found, advice));
    }
    checks.extend(items("warnings").iter().map(|warning| Check::warning("cluster", text(warning), advice)));
    if checks.is_empty() {
        let found = format!("a leader, {} instances, {} streams", instances.len(), streams.len());
        checks.push(Check::ok("cluster", found));
    }
    checks
}

fn site(state: &Value) -> Vec<Check> {
    let mut checks = Vec::new();
    let reason = state["next-upgrade-reason"].as_str().unwrap_or_default();
    if reason.starts_with(CLOCK) {
        let found = state["next-upgrade-why"].as_str().unwrap_or(reason);
        checks.push(Check::problem("clock", found, "correct the clocks of its machines"));
    }
    if let Some(pending) = state["pending-hosts"].as_u64().filter(|pending| *pending > 0) {
        let advice =
            "list them with `os-upgrade hosts list --pending`, then `os-upgrade hosts approve NAME...`";
        checks.push(Check::warning("enrolment", format!("hosts waiting for approval: {pending}"), advice));
    }
    for warning in state["config-warnings"].as_array().into_iter().flatten() {
        let found = warning["message"].as_str().unwrap_or_default();
        checks.push(Check::warning(
            "upgrade configuration",
            found,
            "change it with `os-upgrade config edit`",
        ));
    }
    if checks.is_empty() {
        checks.push(Check::ok("site", "its configuration fits its hosts, and none waits for approval"));
    }
    checks
}

fn slots(slots: &Value) -> Vec<Check> {
    let groups = slots["groups"].as_array().into_iter().flatten();
    let holders = groups.flat_map(|group| group["holders"].as_array().into_iter().flatten());
    let stuck: Vec<Check> = holders
        .filter(|holder| holder["stuck"] == true)
        .map(|holder| {
            let text = |name: &str| holder[name].as_str().unwrap_or_default();
            let found = format!("{} has held its slot for long: {}", text("id"), text("reason"));
            Check::warning("slots", found, "look after it; `os-upgrade lock list` shows every slot")
        })
        .collect();
    if stuck.is_empty() { vec![Check::ok("slots", "none has been held for long")] } else { stuck }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admin::doctor::check::Verdict;

    fn verdicts(checks: &[Check]) -> Vec<(&str, Verdict)> {
        checks.iter().map(|check| (check.name.as_str(), check.verdict)).collect()
    }

    #[test]
    fn a_site_without_faults_has_one_line_for_each_part() {
        let ready =
            json!({"ready": true, "role": "leader", "leader": "a1", "zone-data": {"version": "2026f"}});
        let state =
            json!({"leader": "a1", "instances": [{"instance": "a1", "reachable": true}], "streams": []});
        let checks =
            [instance(&ready), cluster(&state), site(&json!({})), slots(&json!({"groups": []}))].concat();
        assert_eq!(checks.len(), 4);
        assert!(checks.iter().all(|check| check.verdict == Verdict::Ok), "{checks:?}");
        assert_eq!(checks[0].found, "ready, leader; the leader is a1");
    }

    #[test]
    fn faults_are_named() {
        let ready = json!({"ready": true, "zone-data": {"old": "windows go by old data"}});
        assert_eq!(verdicts(&instance(&ready))[1], ("time zone data", Verdict::Warning));
        let state = json!({
            "leader": null, "instances": [{"instance": "b1", "reachable": false, "last-seen": "2026-11-21T01:00:00Z"}],
            "streams": [{"stream": "journal", "problem": "1 of 3 replicas is offline"}], "warnings": ["settings differ"],
        });
        let expected = [
            ("cluster", Verdict::Problem),
            ("cluster", Verdict::Warning),
            ("streams", Verdict::Problem),
            ("cluster", Verdict::Warning),
        ];
        assert_eq!(verdicts(&cluster(&state)), expected);
        let state = json!({
            "next-upgrade-reason": "clock-behind", "next-upgrade-why": "no run starts automatically: the clock is behind",
            "pending-hosts": 2, "config-warnings": [{"kind": "x", "message": "no application"}],
        });
        let expected = [
            ("clock", Verdict::Problem),
            ("enrolment", Verdict::Warning),
            ("upgrade configuration", Verdict::Warning),
        ];
        assert_eq!(verdicts(&site(&state)), expected);
        let holders =
            json!([{"id": "h1", "stuck": true, "reason": "failed in run r1"}, {"id": "h2", "stuck": false}]);
        let found = slots(&json!({"groups": [{"group": "default", "holders": holders}]}));
        assert_eq!(found[0].found, "h1 has held its slot for long: failed in run r1");
        assert_eq!(found.len(), 1);
    }
}
