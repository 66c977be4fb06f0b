//! Examples of bodies, by endpoint: where the specification has one, it is that.

use os_upgrade_kernel::config::Rollout;
use serde_json::{Value, json};
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Content, RefOr};

/// What is sent to an endpoint, if a body is.
fn request(path: &str, method: &str) -> Option<Value> {
    let example = match (method, path) {
        ("PUT", "/v1/config/os-upgrade") => {
            let rollout = rollout(json!({"max-concurrent": 2, "max-failures": 1}));
            sample_with(json!({"rollout": rollout}))
        }
        ("PATCH", "/v1/config/os-upgrade") => json!({"rollout": {"max-concurrent": 2}}),
        ("POST", "/v1/state/os-upgrade/trigger-upgrade-site") => json!({"timeout": "4h"}),
        ("POST", "/v1/state/os-upgrade/cancel") => json!({}),
        ("POST", "/v1/state/os-upgrade/give-up-host") => {
            json!({"host": "h01", "reason": "its power supply burnt"})
        }
        ("POST", "/v1/state/os-upgrade/approve-hosts") => json!({"hosts": ["h01", "h02"]}),
        ("POST", "/v1/state/os-upgrade/withdraw-host") => json!({"host": "h01", "reason": "it was sold"}),
        ("PUT", "/v1/config/strongbox/secrets/{name}") => json!({"value": "orchestrator:password"}),
        ("POST", "/v1/state/strongbox/unseal") => {
            json!({"key": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="})
        }
        ("POST", "/v1/state/fleet-lock/hold") => {
            json!({"group": "default", "id": "h01", "reason": "its disk is exchanged"})
        }
        ("POST", "/v1/state/fleet-lock/release") => {
            json!({"group": "default", "id": "h01", "reason": "it burnt"})
        }
        ("POST", "/v1/pre-reboot" | "/v1/steady-state") => {
            json!({"client_params": {"id": "c988d2509fdf5cdcbed39037c56406fb", "group": "default"}})
        }
        _ => return None,
    };
    Some(example)
}

/// What an endpoint answers when it does what is asked, if there is a body.
fn answer(path: &str, method: &str) -> Option<Value> {
    let example = match (method, path) {
        ("GET", "/v1/config/os-upgrade") => sample(),
        ("GET", "/v1/state/os-upgrade") => state(),
        ("GET", "/v1/state/os-upgrade/config-history") => json!({"items": [change()]}),
        ("GET", "/v1/state/os-upgrade/hosts") => json!([host()]),
        ("GET", "/v1/state/os-upgrade/hosts/{hostname}") => host(),
        ("GET", "/v1/state/os-upgrade/enrolment-history") => json!({"items": [enrolment()]}),
        ("GET", "/v1/state/os-upgrade/runs") => json!({"items": [run()]}),
        ("GET", "/v1/state/os-upgrade/runs/{id}") => run_in_full(),
        ("GET", "/v1/config/strongbox/secrets") => {
            json!({"secrets": [{"name": "lock-server", "actor": "eve", "since": "2026-11-21T12:00:00Z"}]})
        }
        ("GET", "/v1/state/strongbox") => json!({"sealed": false, "secrets": 1}),
        ("GET", "/v1/state/strongbox/history") => json!({"items": [{
            "sequence": 12,
            "place": 0,
            "time": "2026-11-20T12:00:00.000Z",
            "type": "secret-kept",
            "actor": "anna",
            "name": "lock-server",
        }]}),
        ("GET", "/v1/state/os-upgrade/windows") => json!({"windows": [
            {"start": "2026-11-27T01:00:00Z", "end": "2026-11-27T05:00:00Z"},
            {"start": "2026-11-28T01:00:00Z", "end": "2026-11-28T05:00:00Z"},
        ]}),
        ("GET", "/v1/state/cluster") => cluster(),
        ("GET", "/v1/state/fleet-lock") => slots(),
        ("GET", "/v1/state/fleet-lock/history") => json!({"items": [order()]}),
        ("POST", "/v1/pre-reboot" | "/v1/steady-state") => json!({}),
        ("GET", "/healthz") => json!({"healthy": true}),
        ("GET", "/readyz") => json!({"ready": true, "role": "leader", "leader": "orchestrator-1"}),
        ("GET", "/openapi.json") => json!({"openapi": "3.1.0"}),
        _ => return None,
    };
    Some(example)
}

/// The specification's sample of a configuration.
pub(in crate::api) fn sample() -> Value {
    json!({
        "worker-applications": [{"name": "os-upgrade-debian"}],
        "maintenance-windows": [{
            "days-of-week": "Friday, Saturday",
            "start-time": "01:00",
            "timezone": "site-local",
            "duration": "4h",
        }],
    })
}

/// The same, with `more` fields after it.
fn sample_with(more: Value) -> Value {
    let mut whole = sample();
    if let (Value::Object(fields), Value::Object(more)) = (&mut whole, more) {
        fields.extend(more);
    }
    whole
}

/// A rollout as it is shown: whole, with `settings` and the defaults of all others.
pub(in crate::api) fn rollout(settings: Value) -> Value {
    let rollout: Rollout = serde_json::from_value(settings).expect("settings of a rollout");
    serde_json::to_value(rollout).expect("a rollout has string keys and no fallible part")
}

/// The specification's, with what is ours beside it.
fn state() -> Value {
    sample_with(json!({
        "status": "idle",
        "next-upgrade-in": "1d4h18s",
        "next-upgrade-at": "2023-03-24T01:00:00Z",
        "scheduled-workers": [
            {"host": "h01", "application": "os-upgrade-debian"},
            {"host": "h02", "application": "os-upgrade-debian"},
        ],
        "last-upgrade-info": {
            "id": "0186ecc9-8080-7000-8000-000000000001",
            "start-time": "2023-03-17T01:00:00Z",
            "end-time": "2023-03-17T01:24:07Z",
            "result": "completed",
            "counts": {"upgraded": 2},
            "hosts": [
                {"hostname": "h01", "status": "upgraded", "since": "2023-03-17T01:12:02Z"},
                {"hostname": "h02", "status": "upgraded", "since": "2023-03-17T01:24:07Z"},
            ],
        },
        "hosts": [
            {
                "hostname": "h01",
                "why": "no run is active; the next starts by itself at 2023-03-24T01:00:00Z",
                "until": "2023-03-24T01:00:00Z",
            },
            {
                "hostname": "h02",
                "why": "no run is active; the next starts by itself at 2023-03-24T01:00:00Z",
                "until": "2023-03-24T01:00:00Z",
            },
        ],
    }))
}

fn change() -> Value {
    json!({
        "sequence": 12,
        "place": 0,
        "time": "2026-11-20T12:00:00.000Z",
        "actor": "anna",
        "difference": [{"path": "rollout/max-concurrent", "before": 1, "after": 2}],
        "configuration": {
            "worker-applications": [{"name": "os-upgrade-debian"}],
            "rollout": rollout(json!({"max-concurrent": 2})),
        },
    })
}

fn host() -> Value {
    json!({
        "hostname": "h01",
        "applications": ["os-upgrade-debian"],
        "group": "default",
        "reachability": "reachable",
        "enrolment": "approved",
        "decided-by": "anna",
        "decided-at": "2026-11-20T12:00:00Z",
        "announced-at": "2026-11-20T11:58:00Z",
        "versions": {"linux-image-amd64": "6.12.43"},
        "versions-time": "2026-11-20T12:00:00Z",
        "status": "preparing",
        "since": "2026-11-21T01:00:01Z",
        "why": "its worker has not answered prepare yet",
        "until": "2026-11-21T05:00:00Z",
        "blockers": [{"kind": "reply-awaited", "action": "prepare", "until": "2026-11-21T05:00:00Z"}],
        "progress": {"percent": 40, "text": "downloading linux-image-amd64"},
    })
}

fn enrolment() -> Value {
    json!({
        "sequence": 12,
        "place": 0,
        "time": "2026-11-20T12:00:00.000Z",
        "type": "hosts-approved",
        "actor": "anna",
        "fact": {"type": "hosts-approved", "hosts": ["h01", "h02"], "actor": "anna"},
    })
}

fn run() -> Value {
    json!({
        "id": "019aa3f0-0000-7000-8000-000000000001",
        "trigger": "operator",
        "actor": "api 127.0.0.1",
        "start-time": "2026-11-21T01:00:00Z",
        "not-after": "2026-11-21T05:00:00Z",
        "end-time": "2026-11-21T01:24:07Z",
        "result": "completed",
        "phase": "upgrading",
        "rollout": rollout(json!({})),
        "counts": {"upgraded": 1},
    })
}

fn run_in_full() -> Value {
    let mut run = run();
    run["hosts"] = json!([{
        "hostname": "h01",
        "application": "os-upgrade-debian",
        "group": "default",
        "status": "upgraded",
        "since": "2026-11-21T01:24:07Z",
        "start-time": "2026-11-21T01:00:03Z",
        "end-time": "2026-11-21T01:24:07Z",
        "command": {"action": "upgrade", "sequence": 6},
    }]);
    run["facts"] = json!([{
        "sequence": 7,
        "place": 0,
        "time": "2026-11-21T01:24:07.120Z",
        "type": "run-ended",
        "fact": {"type": "run-ended", "run": "019aa3f0-0000-7000-8000-000000000001", "result": "completed"},
    }]);
    run
}

fn cluster() -> Value {
    json!({
        "leader": "orchestrator-1",
        "instances": [{
            "instance": "orchestrator-1",
            "role": "leader",
            "reachable": true,
            "ready": true,
            "position": 1042,
            "lag": 0,
            "address": "10.0.0.1:8080",
            "version": "0.1.0",
            "timezone": "Europe/Stockholm",
            "last-seen": "2026-11-21T01:00:00Z",
        }],
        "streams": [{
            "stream": "os-upgrade-journal",
            "leader": "nats-1",
            "replicas": [{"server": "nats-2", "current": true, "offline": false, "lag": 0}],
        }],
    })
}

fn slots() -> Value {
    json!({
        "provider": "embedded",
        "reclaim": "never",
        "groups": [{
            "group": "default",
            "slots": 1,
            "held": 1,
            "excess": 0,
            "holders": [{
                "id": "h01",
                "since": "2026-11-21T01:00:00Z",
                "on-behalf-of": ["operator"],
                "hold": {
                    "actor": "api 127.0.0.1",
                    "reason": "its disk is exchanged",
                    "since": "2026-11-21T01:00:00Z",
                },
                "reason": "held by api 127.0.0.1: its disk is exchanged",
                "stuck": false,
            }],
            "waiters": [{"id": "h02", "kind": "host", "since": "2026-11-21T01:00:05Z"}],
        }],
    })
}

fn order() -> Value {
    json!({
        "sequence": 12,
        "place": 0,
        "time": "2026-11-21T01:00:00.000Z",
        "type": "hold-placed",
        "actor": "api 127.0.0.1",
        "fact": {
            "type": "hold-placed",
            "group": "default",
            "id": "h01",
            "actor": "api 127.0.0.1",
            "reason": "its disk is exchanged",
        },
    })
}

/// Adds the examples of `method` at `path`.
pub(super) fn add(path: &str, method: &str, operation: &mut Operation) {
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        show(body.content.values_mut(), request(path, method).as_ref());
    }
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && status.starts_with('2')
        {
            show(response.content.values_mut(), answer(path, method).as_ref());
        }
    }
}

fn show<'a>(contents: impl Iterator<Item = &'a mut RefOr<Content>>, example: Option<&Value>) {
    for content in contents {
        if let RefOr::T(content) = content
            && content.example.is_none()
        {
            content.example = example.cloned();
        }
    }
}
