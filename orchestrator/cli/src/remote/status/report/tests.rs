//! The screen for sites in which something goes on.

use os_upgrade_api_types::openapi::fields_of;
use os_upgrade_api_types::routes::state::State;
use serde_json::json;

use super::*;

fn canvas(columns: Option<usize>) -> Canvas {
    Canvas { is_wide: false, columns, zone: Zone::Utc }
}

fn now() -> DateTime<Utc> {
    "2026-11-21T01:48:00Z".parse().unwrap()
}

/// Fields that the API always has, and in which most tests do not differ: of the values at a path, where `*` is every item.
fn required() -> Vec<(&'static str, Value)> {
    let time = "2026-11-21T01:00:00Z";
    vec![
        ("state hosts * node", json!({ "stage": "evicting", "since": time })),
        (
            "runs items *",
            json!({
                "trigger": "operator", "start-time": time, "not-after": time, "phase": "upgrading", "rollout": {}, "counts": {},
            }),
        ),
        ("missed-runs items *", json!({ "latest-start": time, "window-end": time, "recorded-at": time })),
        ("slots", json!({ "provider": "embedded", "reclaim": "never", "groups": [] })),
        ("slots groups *", json!({ "held": 1, "excess": 0, "holders": [], "waiters": [] })),
        (
            "slots groups * holders *",
            json!({ "since": time, "on-behalf-of": ["run"], "reason": "", "stuck": false }),
        ),
        ("cluster", json!({ "leader": null, "instances": [], "streams": [] })),
        (
            "cluster instances *",
            json!({
                "role": "follower", "reachable": true, "ready": true, "position": 7, "address": "10.0.0.1:8080",
                "version": "0.1.0", "last-seen": time,
            }),
        ),
    ]
}

/// Adds to the objects at `path` in `value` the `fields` that they do not have.
fn complete(value: &mut Value, path: &[&str], fields: &Value) {
    match (path.split_first(), value) {
        (Some((&"*", below)), Value::Array(items)) => {
            for item in items {
                complete(item, below, fields);
            }
        }
        (Some((name, below)), Value::Object(members)) => {
            if let Some(member) = members.get_mut(*name) {
                complete(member, below, fields);
            }
        }
        (None, Value::Object(members)) => {
            for (name, field) in fields.as_object().unwrap() {
                members.entry(name).or_insert_with(|| field.clone());
            }
        }
        _ => {}
    }
}

fn read(answers: &Value) -> Report {
    let mut answers = answers.clone();
    complete(&mut answers, &[], &json!({ "slots": {}, "cluster": {} }));
    for (path, fields) in required() {
        complete(&mut answers, &path.split(' ').collect::<Vec<_>>(), &fields);
    }
    Report::read(&answers).unwrap()
}

fn active() -> Value {
    let waiting = |name: &str| {
        json!({
            "hostname": name, "status": "waiting", "why": { "kind": "host-under-way", "text": "waiting for its turn: h03 is under way" },
        })
    };
    json!({
        "state": {
            "status": "upgrading", "pending-hosts": 2, "next-upgrade-at": "2026-11-22T01:00:00Z",
            "current-upgrade-info": {
                "id": "019aa3f0-0000-7000-8000-000000000001", "not-after": "2026-11-21T05:00:00Z",
                "counts": { "upgraded": 2, "failed": 1, "upgrading": 1, "waiting": 5 },
            },
            "hosts": [
                { "hostname": "h01", "status": "upgraded", "why": { "kind": "a kind", "text": "it is upgraded" } },
                { "hostname": "h03", "status": "upgrading", "why": { "kind": "reply-awaited", "text": "its worker has not answered upgrade yet" }, "progress": { "percent": 40, "text": "unpacking\u{1b}[2J" } },
                waiting("h04"), waiting("h05"), waiting("h06"), waiting("h07"), waiting("h08"),
                { "hostname": "new", "why": { "kind": "awaits-approval", "text": "waits for approval: os-upgrade hosts approve new" } },
            ],
        },
        "runs": { "items": [{ "id": "019aa3f0-0000-7000-8000-000000000001", "trigger": "operator", "actor": "token ci", "phase": "upgrading" }] },
        "slots": { "groups": [{ "group": "default", "holders": [
            { "id": "h02", "run": "019aa000-0000-7000-8000-000000000001", "reason": "it failed: no space left", "stuck": true },
            { "id": "h03", "run": "019aa3f0-0000-7000-8000-000000000001", "reason": "upgrading" },
        ] }] },
        "cluster": { "leader": "a1", "warnings": ["the instances differ"] },
        "windows": { "windows": [{ "start": "2026-11-22T01:00:00Z", "end": "2026-11-22T05:00:00Z" }] },
    })
}

#[test]
fn an_active_run_on_one_screen() {
    let expected = "\
run 019aa3f0-0000, upgrading, started by token ci; 3h12m left, until 2026-11-21T05:00:00Z
[###########-------------------] 3 of 9: 1 failed, 2 upgraded, 1 upgrading, 5 waiting

AT WORK
  h03: upgrading 40 % unpacking\u{fffd}[2J

WAITING
  h04, h05, h06 and 2 more: waiting for its turn: h03 is under way

next:   a run starts at 2026-11-22T01:00:00Z, in 23h12m
window: 2026-11-22T01:00:00Z to 2026-11-22T05:00:00Z
last:   there has been no run

NEEDS A PERSON
  2 hosts wait for approval: os-upgrade hosts list --pending
  h02 holds a slot of group default: it failed: no space left; since 2026-11-21T01:00:00Z
    why: os-upgrade run show 019aa000-0000 h02
    retry it: os-upgrade run start h02
    release: os-upgrade lock release --group=default --id=h02 --reason=TEXT
  the instances differ";
    let report = read(&active());
    assert_eq!(report.screen(&canvas(None), now()), expected);
    // Commands are whole in a narrow terminal too.
    let narrow = "
  h02 holds a slot of group default: it failed: no
    space left; since 2026-11-21T01:00:00Z
    why: os-upgrade run show 019aa000-0000 h02
    retry it: os-upgrade run start h02
    release: os-upgrade lock release --group=default --id=h02 --reason=TEXT
  the instances differ";
    let screen = report.screen(&canvas(Some(50)), now());
    assert!(screen.ends_with(narrow), "{screen}");
    let summary =
        "upgrading; run 019aa3f0-0000: 1 failed, 2 upgraded, 1 upgrading, 5 waiting; 3 matters need a person";
    assert_eq!(report.summary(), summary);
}

/// What of `value` the API answers where it is asked for `fields` alone.
fn selected(value: &Value, fields: &[&str]) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| selected(item, fields)).collect(),
        Value::Object(members) => {
            let kept = members.iter().filter_map(|(name, member)| {
                let below: Vec<&str> = fields
                    .iter()
                    .filter_map(|field| field.strip_prefix(name.as_str())?.strip_prefix('/'))
                    .collect();
                match (fields.contains(&name.as_str()), below.is_empty()) {
                    (true, _) => Some((name.clone(), member.clone())),
                    (false, false) => Some((name.clone(), selected(member, &below))),
                    (false, true) => None,
                }
            });
            Value::Object(kept.collect())
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other.clone(),
    }
}

/// Everything on the screen is asked for.
#[test]
fn fields_that_are_asked_for_make_the_same_screen() {
    let mut answers = active();
    let known = fields_of::<State<'_>>();
    let unknown: Vec<_> =
        super::super::FIELDS.iter().filter(|field| !known.iter().any(|it| it == *field)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    answers["state"]["hosts"][0]["reboot-ineffective"] = json!("kernel 6.2 is installed, and 6.1 runs");
    answers["state"]["hosts"][0]["also"] = json!([{ "kind": "host-withdrawn", "text": "withdrawn" }]);
    answers["state"]["hosts"].as_array_mut().unwrap().push(json!({
        "hostname": "h02", "why": { "kind": "node-under-way", "text": "its node is being uncordoned" },
        "node": { "stage": "uncordoning", "waits": { "kind": "not-ready", "text": "it is not ready" } },
    }));
    let whole = read(&answers).screen(&canvas(None), now());
    assert!(whole.contains("until its node is uncordoned: it is not ready"), "{whole}");
    answers["state"] = selected(&answers["state"], &super::super::FIELDS);
    assert_eq!(read(&answers).screen(&canvas(None), now()), whole);
}

/// What an operator who gave a reboot up has to end: nothing else does.
#[test]
fn node_without_a_worker_that_was_given_up() {
    let answers = json!({
        "state": { "status": "idle", "hosts": [{
            "hostname": "n1", "why": { "kind": "slot-held", "text": "it has held a slot" }, "node": { "stage": "drained", "kept": true },
        }] },
        "slots": { "groups": [{ "group": "default", "holders": [
            { "id": "n1", "entry": "4", "reason": "taken for entry 4 of the reboot queue", "stuck": false },
        ] }] },
        "cluster": { "leader": "a1" },
    });
    let screen = read(&answers).screen(&canvas(None), now());
    let expected = "
NEEDS A PERSON
  n1 holds a slot of group default: taken for entry 4 of the reboot queue; since 2026-11-21T01:00:00Z
    release: os-upgrade lock release --group=default --id=n1 --reason=TEXT
  the node of n1 stays cordoned, because its host failed or was given up; since 2026-11-21T01:00:00Z
    uncordon: os-upgrade hosts uncordon --reason=TEXT n1";
    assert!(screen.ends_with(expected), "{screen}");
}

#[test]
fn cancelled_run_says_by_whom() {
    let mut answers = active();
    answers["state"]["current-upgrade-info"]["stopping"] =
        json!({ "kind": "cancelled", "actor": "eve", "reason": "wrong kernel" });
    let screen = read(&answers).screen(&canvas(None), now());
    let expected = "run 019aa3f0-0000, being cancelled by eve: wrong kernel, started by token ci; 3h12m left";
    assert!(screen.starts_with(expected), "{screen}");
    answers["state"]["current-upgrade-info"]["stopping"] = json!({ "kind": "failed", "host": "h02" });
    let screen = read(&answers).screen(&canvas(None), now());
    assert!(screen.starts_with("run 019aa3f0-0000, stopping after the failure of h02, "), "{screen}");
}

/// Hosts that are cancelled are not upgraded: the bar says how far the others are.
#[test]
fn bar_leaves_out_cancelled_hosts() {
    let mut answers = active();
    answers["state"]["current-upgrade-info"]["counts"] =
        json!({ "cancelled": 7, "upgrading": 1, "upgraded": 1 });
    let screen = read(&answers).screen(&canvas(None), now());
    let bar = "\n[#####################---------] 1 of 2: 7 cancelled, 1 upgraded, 1 upgrading\n";
    assert!(screen.contains(bar), "{screen}");
}

/// What is shown without a leader, or by one that has lost the bus, may be old, and the first line says so.
#[test]
fn nobody_leads_is_said_first() {
    let mut answers = active();
    answers["cluster"] = json!({ "leader": null, "instances": [
        { "instance": "a1", "not-ready-reason": "NATS is unreachable: connection refused" },
    ] });
    let report = read(&answers);
    let trouble = "no instance leads (NATS is unreachable: connection refused): nothing goes on";
    let screen = report.screen(&canvas(None), now());
    assert!(screen.starts_with(&format!("{trouble}; last known:\n\nrun 019a")), "{screen}");
    let summary = report.summary();
    assert!(summary.starts_with(&format!("{trouble}; last known: upgrading; run 019a")), "{summary}");
    answers["cluster"]["leader"] = json!("a1");
    let screen = read(&answers).screen(&canvas(None), now());
    assert!(screen.starts_with("a1 leads and is not ready (NATS is unreachable"), "{screen}");
    answers["cluster"]["instances"][0] = json!({ "instance": "a1" });
    let screen = read(&answers).screen(&canvas(None), now());
    assert!(screen.starts_with("run 019a"), "{screen}");
}

#[test]
fn holder_that_the_active_run_tries_again_needs_nobody() {
    let mut answers = active();
    answers["slots"]["groups"][0]["holders"][0]["stuck"] = json!(false);
    let named = |answers: &Value| read(answers).screen(&canvas(None), now()).contains("h02 holds a slot");
    assert!(named(&answers));
    let preparing = json!({ "hostname": "h02", "status": "preparing" });
    answers["state"]["hosts"].as_array_mut().unwrap().push(preparing);
    assert!(!named(&answers));
}

/// A run skips a withdrawn host, so that `run start` would not end what it holds.
#[test]
fn withdrawn_holder_is_not_retried() {
    let mut answers = active();
    let blocked = json!({ "hostname": "h02", "why": { "kind": "slot-held", "text": "it has held a slot" },
        "also": [{ "kind": "host-withdrawn", "text": "withdrawn" }] });
    answers["state"]["hosts"].as_array_mut().unwrap().push(blocked);
    let screen = read(&answers).screen(&canvas(None), now());
    let expected = "
    why: os-upgrade run show 019aa000-0000 h02
    let it take part again: os-upgrade hosts approve h02
    release: ";
    assert!(screen.contains(expected) && !screen.contains("os-upgrade run start"), "{screen}");
}

#[test]
fn run_without_an_application_upgrades_nothing() {
    let mut answers = active();
    answers["state"]["config-warnings"] = json!([{ "kind": "no-applications", "message": "x" }]);
    let screen = read(&answers).screen(&canvas(None), now());
    let expected = "\nnext:   a run would upgrade nothing: no application is configured\nwindow: ";
    assert!(screen.contains(expected), "{screen}");
}

/// A window that opens during a run waits for its end.
#[test]
fn run_that_is_due_waits_for_the_active_one() {
    let mut answers = active();
    answers["state"]["next-upgrade-at"] = json!("2026-11-21T01:48:00Z");
    let screen = read(&answers).screen(&canvas(None), now());
    assert!(screen.contains("next:   a run starts as soon as run 019aa3f0-0000 has ended"), "{screen}");
}

#[test]
fn an_idle_site_on_one_screen() {
    let answers = json!({
        "state": {
            "status": "idle", "next-upgrade-why": { "kind": "no-occurrence", "text": "no run starts automatically: no upcoming maintenance window is long enough" },
            "denied-until": "2026-11-22T00:00:00Z",
            "window-used-by": { "kind": "cancel", "run": "019aa3f0-0000-7000-8000-000000000001" },
            "config-warnings": [{ "kind": "not-announced", "message": "no host announces typo" }],
            "last-upgrade-info": {
                "id": "019aa3f0-0000-7000-8000-000000000001", "start-time": "2026-11-21T01:00:00Z",
                "end-time": "2026-11-21T01:24:07Z", "result": "completed", "counts": { "upgraded": 2 },
            },
            "hosts": [{ "hostname": "h01", "why": { "kind": "no-run", "text": "no run is active" } }],
        },
        "runs": { "items": [] }, "slots": { "groups": [] }, "cluster": { "leader": "a1" }, "windows": null,
    });
    let expected = "\
no run is active; the site is idle

next:   no run starts automatically: no upcoming maintenance window is long enough
open:   the window starts no further run: run 019aa3f0-0000 was cancelled in it
denied: a deny window is in force until 2026-11-22T00:00:00Z
last:   run 019aa3f0-0000 completed after 24m7s at 2026-11-21T01:24:07Z: 2 upgraded

NEEDS A PERSON
  no host announces typo";
    assert_eq!(read(&answers).screen(&canvas(None), now()), expected);
}

/// Even if its slot was released since; while it holds one, that needs a person.
#[test]
fn host_that_failed_in_the_last_run_is_shown() {
    let host = |name: &str, status: &str| json!({ "hostname": name, "status": status, "why": { "kind": "worker-error", "text": "no space" } });
    let mut answers = json!({
        "state": {
            "status": "idle",
            "last-upgrade-info": {
                "id": "019aa3f0-0000-7000-8000-000000000001", "start-time": "2026-11-21T01:00:00Z", "result": "failed",
                "hosts": [host("h01", "failed"), host("h02", "failed"), host("h03", "upgraded"), host("h04", "timed-out")],
            },
        },
        "slots": { "groups": [{ "group": "default", "holders": [{ "id": "h04" }] }] },
    });
    let screen = read(&answers).screen(&canvas(None), now());
    assert!(
        screen.contains("\n\nFAILED IN THE LAST RUN\n  h01, h02: failed (no space)\n\nnext: "),
        "{screen}"
    );
    // What their workers answered later counts.
    let mut late = |index: usize, result: &str| {
        answers["state"]["last-upgrade-info"]["hosts"][index]["late-answer"] =
            json!({ "time": "2026-11-21T05:04:00Z", "action": "upgrade", "result": result });
    };
    late(0, "done");
    late(1, "reboot-required");
    let screen = read(&answers).screen(&canvas(None), now());
    let expected =
        "\n  h02: failed (no space); it answered reboot-required at 2026-11-21T05:04:00Z\n\nnext: ";
    assert!(screen.contains(expected), "{screen}");
    answers["state"]["current-upgrade-info"] = active()["state"]["current-upgrade-info"].clone();
    let screen = read(&answers).screen(&canvas(None), now());
    assert!(!screen.contains("FAILED"), "{screen}");
}

/// Once a run has started since, it is history.
#[test]
fn missed_run_is_shown_until_the_next_run() {
    let shown = |started: Option<&str>, is_active: bool| {
        let mut answers =
            if is_active { active() } else { json!({ "state": { "status": "idle", "hosts": [] } }) };
        answers["missed-runs"] = json!({ "items": [{
            "window-start": "2026-11-21T01:00:00Z", "unrecorded": 2,
            "why": { "kind": "no-leader", "text": "no orchestrator\u{1b} led" },
        }] });
        let runs = started.map(|at| json!({ "id": "r1", "start-time": at }));
        answers["runs"] = json!({ "items": runs.as_slice() });
        let screen = read(&answers).screen(&canvas(Some(80)), now());
        screen.lines().find(|line| line.starts_with("missed:")).map(ToOwned::to_owned)
    };
    let expected = "missed: the run of 2026-11-21T01:00:00Z: no orchestrator\u{fffd} led (and 2 more befor…";
    for (started, is_active, is_shown) in [
        (None, false, true),
        (Some("2026-11-21T00:59:59.5Z"), false, true),
        (Some("2026-11-21T00:59:59.5Z"), true, true),
        (Some("2026-11-21T01:00:00.5Z"), true, false),
        (Some("2026-11-21T06:00:00Z"), false, false),
    ] {
        let expected = is_shown.then_some(expected);
        assert_eq!(shown(started, is_active).as_deref(), expected, "{started:?} {is_active}");
    }
}

#[test]
fn one_screen_is_enough_for_any_site() {
    let mut answers = active();
    let long = "n".repeat(255);
    let host = |at: usize| json!({ "hostname": format!("{long}{at}"), "status": "upgrading", "why": { "kind": "a kind", "text": "x" } });
    let waiting = |at: usize| json!({ "hostname": format!("w{at}"), "status": "waiting", "why": { "kind": "a kind", "text": format!("{long}{at}") } });
    answers["state"]["hosts"] = (0..500).map(host).chain((0..500).map(waiting)).collect();
    answers["cluster"]["warnings"] = (0..500).map(|at| json!(format!("{long}{at}"))).collect();
    let screen = read(&answers).screen(&canvas(Some(80)), now());
    assert!(screen.lines().count() <= 40, "{screen}");
    assert!(screen.lines().all(|line| console::measure_text_width(line) <= 80), "{screen}");
    assert!(screen.contains("and 493 more"), "{screen}");
    assert!(screen.ends_with("\n  and 499 more"), "{screen}");
    let alone = "x ".repeat(500);
    answers["cluster"]["warnings"] = json!([alone]);
    answers["slots"] = json!({});
    answers["state"]["pending-hosts"] = json!(0);
    let screen = read(&answers).screen(&canvas(Some(20)), now());
    assert!(screen.lines().filter(|line| line.contains("x x")).count() > NEED_LINES_MAX, "{screen}");
}

fn entry(index: &str, node: &str, kind: &str, why: &str) -> Value {
    let needs_operator = ["failed", "attempt-unknown"].contains(&kind);
    json!({
        "index": index, "node": node, "status": "rebooting", "last_transition_time": "2026-11-21T01:00:05Z",
        "drain_backoff_count": 0, "added_at": "2026-11-21T01:00:00Z", "cancel_requested": false, "required": false,
        "why": { "kind": kind, "text": why }, "needs_operator": needs_operator,
    })
}

/// An entry that failed, and a slot whose entry was given up, need a person; what is at work does not.
#[test]
fn the_reboot_queue_on_the_screen() {
    let held =
        |id: &str, entry: &str| json!({ "id": id, "entry": entry, "reason": format!("for entry {entry}") });
    let answers = json!({
        "state": {
            "status": "idle",
            "reboot-queue": { "enabled": true, "counts": { "queued": 3, "rebooting": 2 }, "why": { "kind": "full", "text": "2 are under way" } },
            "hosts": [{ "hostname": "h07", "why": { "kind": "reboot-under-way", "text": "entry 7 is at work on it" } }],
        },
        "reboots": { "items": [
            entry("7", "h07", "reply-awaited", "its worker has not answered"), entry("8", "h08", "failed", "reboot failed: x"),
            entry("9", "h09", "attempt-unknown", "it was killed"), entry("10", "h10", "retry-awaited", "it is run again"),
        ] },
        "slots": { "groups": [{ "group": "default", "holders": [held("h05", "5"), held("h07", "7"), held("h08", "8")] }] },
        "cluster": { "leader": "a1" },
    });
    let screen = read(&answers).screen(&canvas(None), now());
    let queue = "
REBOOT QUEUE
  enabled: 3 queued, 2 rebooting; none starts: 2 are under way
  entry 7, h07 rebooting: its worker has not answered
  entry 10, h10 rebooting: it is run again

next:";
    assert!(screen.starts_with("no run is active; the reboot queue is at work\n"), "{screen}");
    assert!(screen.contains(queue) && !screen.contains("WAITING"), "{screen}");
    let needs = "
NEEDS A PERSON
  h05 holds a slot of group default: for entry 5; since 2026-11-21T01:00:00Z
    release: os-upgrade lock release --group=default --id=h05 --reason=TEXT
  entry 8, h08 rebooting: reboot failed: x
    give up: os-upgrade reboot-queue give-up 8 --reason=TEXT
  entry 9, h09 rebooting: it was killed
    give up: os-upgrade reboot-queue give-up 9 --reason=TEXT";
    assert!(screen.ends_with(needs), "{screen}");
}

/// What waits for pods is at work, and what stays cordoned needs a person.
#[test]
fn kubernetes_nodes_on_the_screen() {
    let mut answers = active();
    let host = |name: &str, status: &str, why: &str, kind: &str, kept: bool| {
        json!({
            "hostname": name, "status": status, "why": { "kind": kind, "text": why },
            "node": if kept { json!({ "kept": true }) } else { json!({}) },
        })
    };
    let pods = "its node is being drained since 2026-11-21T01:00:00Z: pod shop/db-0 is kept by the budget db";
    let out_of_run = json!({
        "hostname": "h 9", "why": { "kind": "node-cordoned", "text": "its node stays cordoned; no run is active" },
        "node": { "kept": true }, "reboot-ineffective": "kernel 6.2 is installed, and 6.1 runs even after a reboot",
    });
    answers["state"]["hosts"] = json!([
        host("h01", "draining", pods, "node-under-way", false),
        host("h02", "recovering", "its node is being uncordoned", "node-under-way", false),
        host("h03", "failed", "upgrade failed: no space left", "worker-error", true),
        out_of_run,
    ]);
    answers["slots"] = json!({});
    answers["state"]["pending-hosts"] = json!(0);
    answers["cluster"]["warnings"] = json!([]);
    let screen = read(&answers).screen(&canvas(None), now());
    let at_work = format!(
        "
AT WORK
  h01: draining: {pods}
  h02: recovering: its node is being uncordoned

next:"
    );
    assert!(screen.contains(&at_work), "{screen}");
    let needs = "
NEEDS A PERSON
  the node of h03 stays cordoned, because its host failed or was given up; since 2026-11-21T01:00:00Z
    uncordon: os-upgrade hosts uncordon --reason=TEXT h03
  the node of h 9 stays cordoned, because its host failed or was given up; since 2026-11-21T01:00:00Z
    uncordon: os-upgrade hosts uncordon --reason=TEXT 'h 9'
  h 9: kernel 6.2 is installed, and 6.1 runs even after a reboot";
    assert!(screen.ends_with(needs), "{screen}");
}

/// The slot is given back with the cordon, so that neither another run nor a release is what helps.
#[test]
fn run_that_has_left_a_node_unready_on_the_screen() {
    let mut answers = active();
    answers["state"]["current-upgrade-info"] = Value::Null;
    answers["state"]["pending-hosts"] = json!(0);
    answers["state"]["hosts"] = json!([{
        "hostname": "h02", "why": { "kind": "no-run", "text": "no run is active" },
        "node": { "stage": "uncordoning", "waits": { "kind": "not-ready", "text": "it is not ready" } },
    }]);
    answers["slots"] = json!({ "groups": [{ "group": "default", "holders": [
        { "id": "h02", "run": "019aa000-0000-7000-8000-000000000001", "reason": "upgrading", "stuck": false },
    ] }] });
    let screen = read(&answers).screen(&canvas(None), now());
    let needs = "
NEEDS A PERSON
  h02 holds a slot of group default until its node is uncordoned: it is not ready
    why: os-upgrade run show 019aa000-0000 h02
    uncordon: os-upgrade hosts uncordon --reason=TEXT h02
  the instances differ";
    assert!(screen.ends_with(needs), "{screen}");
    // Nothing but the API server helps where that does not answer.
    let waits = json!({ "kind": "unreachable", "text": "the API server does not answer" });
    answers["state"]["hosts"][0]["node"]["waits"] = waits;
    let screen = read(&answers).screen(&canvas(None), now());
    let needs = "uncordoned: the API server does not answer
    why: os-upgrade run show 019aa000-0000 h02
  the instances differ";
    assert!(screen.ends_with(needs), "{screen}");
    // Nor does a release of the slot of an entry that was given up.
    let holder = json!({ "id": "h02", "entry": "7", "reason": "rebooting for entry 7", "stuck": true });
    answers["slots"]["groups"][0]["holders"][0] = holder;
    answers["reboots"] = json!({ "items": [] });
    let screen = read(&answers).screen(&canvas(None), now());
    assert!(
        screen.ends_with("uncordoned: the API server does not answer\n  the instances differ"),
        "{screen}"
    );
    // While an entry or a run is at work, its node cannot be uncordoned by hand.
    answers["reboots"] =
        json!({ "items": [entry("7", "h02", "reply-awaited", "its worker has not answered")] });
    let screen = read(&answers).screen(&canvas(None), now());
    assert!(
        screen.contains(
            "\n  h02 holds a slot of group default: rebooting for entry 7; since 2026-11-21T01:00:00Z\n"
        ),
        "{screen}"
    );
    assert!(!screen.contains("hosts uncordon"), "{screen}");
}
