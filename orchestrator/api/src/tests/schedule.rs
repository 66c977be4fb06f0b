//! Windows in the configuration and the state, with the specification's samples.

use chrono::{DateTime, Utc};
use os_upgrade_api_types::routes::config::sample;
use os_upgrade_api_types::routes::state::State;
use os_upgrade_api_types::routes::windows::Windows;
use os_upgrade_kernel::config::tag::Expected;
use os_upgrade_kernel::{self as kernel, Clock, ConfigOperation, RunOperation, View};
use os_upgrade_test_site::{cancel, put_config, run_id, trigger};

use super::*;
use crate::http::fields::Keep;

const CONFIG: &str = "/v1/config/os-upgrade";
const STATE: &str = "GET /v1/state/os-upgrade";
const MISSED: &str = "GET /v1/state/os-upgrade/missed-runs";
const WINDOWS: &str = "GET /v1/state/os-upgrade/windows";

/// The specification's sample of a configuration, verbatim.
const SAMPLE: &str = "worker-applications:
  - name: os-upgrade-debian
maintenance-windows:
  - days-of-week: Friday, Saturday
    start-time: 01:00
    timezone: site-local
    duration: 4h
";

fn reading(path: &str, accept: &str) -> Request<Body> {
    Request::get(path).header("accept", accept).body(Body::empty()).unwrap()
}

/// A site of two upgraded hosts, with the sample configured since.
async fn upgraded() -> TestApi {
    let mut site = TestSite::new(["h01", "h02"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    records.extend(site.whole_run("r1"));
    let api = TestApi::new(site, &records).await;
    let put = format!("PUT {CONFIG}");
    assert_eq!(api.send(build(&put, "application/yaml", SAMPLE)).await.0, 204);
    api
}

/// The state as it is at `now`, on the wire.
fn json_at(api: &TestApi, now: &str) -> Value {
    let now: DateTime<Utc> = now.parse().unwrap();
    serde_json::from_slice(&state::write(&api.site.published(), &Keep::All, now).unwrap()).unwrap()
}

/// The same, as clients read it.
fn at(api: &TestApi, now: &str) -> State<'static> {
    serde_json::from_value(json_at(api, now)).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn specification_configuration_round_trips() {
    for (content_type, body) in [("application/yaml", SAMPLE), ("application/json", &sample().to_string())] {
        let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
        let put = format!("PUT {CONFIG}");
        assert_eq!(api.send(build(&put, content_type, body)).await.0, 201, "{content_type}");
        assert_eq!(api.call(&format!("GET {CONFIG}"), "").await, (200, sample()));
        let (status, _, yaml) = api.send(reading(CONFIG, "application/yaml")).await;
        assert_eq!((status, serde_saphyr::from_str::<Value>(&yaml).unwrap()), (200, sample()));
        let patch = format!("PATCH {CONFIG}");
        assert_eq!(api.send(build(&patch, content_type, body)).await.0, 204, "{content_type}");
        assert_eq!(api.call(&format!("GET {CONFIG}"), "").await, (200, sample()));
    }
}

#[tokio::test]
async fn specification_state_is_reproduced() {
    let api = upgraded().await;
    let state = json_at(&api, "2026-11-25T20:59:42Z");
    assert_eq!(state["worker-applications"], sample()["worker-applications"]);
    assert_eq!(state["maintenance-windows"], sample()["maintenance-windows"]);
    assert_eq!((&state["status"], &state["next-upgrade-in"]), (&json!("idle"), &json!("1d4h18s")));
    let workers = ["h01", "h02"].map(|host| json!({"host": host, "application": "os-upgrade-debian"}));
    assert_eq!(state["scheduled-workers"], json!(workers));
    let last = &state["last-upgrade-info"];
    for key in ["start-time", "end-time", "result", "hosts"] {
        assert!(keys(last).contains(&key), "{key}: {last}");
    }
    assert_eq!(last["result"], "completed");
    for (host, name) in last["hosts"].as_array().unwrap().iter().zip(["h01", "h02"]) {
        assert_eq!((&host["hostname"], &host["status"]), (&json!(name), &json!("upgraded")));
    }
    // Extensions of the specification.
    let next = "2026-11-27T01:00:00Z";
    assert_eq!(state["next-upgrade-at"], next);
    let why = format!("no run is active; the next starts automatically at {next}");
    let why = json!({"kind": "no-run", "text": why, "until": next});
    let hosts = ["h01", "h02"].map(|host| json!({"hostname": host, "why": why}));
    assert_eq!(state["hosts"], json!(hosts));

    // Both forms are equal, except for the time until the next run, which changes between the requests.
    let (_, mut json) = api.call(STATE, "").await;
    let (_, _, yaml) = api.send(reading("/v1/state/os-upgrade", "application/yaml")).await;
    let mut yaml: Value = serde_saphyr::from_str(&yaml).unwrap();
    for state in [&mut json, &mut yaml] {
        let left = state.as_object_mut().unwrap().remove("next-upgrade-in").unwrap();
        assert!(left.as_str().unwrap().parse::<os_upgrade_calendar::Duration>().is_ok(), "{left}");
    }
    assert_eq!(yaml, json);
}

#[tokio::test]
async fn next_run_metrics_match_the_state() {
    let api = upgraded().await;
    let published = PublishedState { is_read: true, ..api.site.published().as_ref().clone() };
    let lines = |published: &PublishedState, now: &str| {
        let (answers, authenticator, options) =
            (Answers::default(), Authenticator::default(), Options::default());
        let text = resources::metrics::text(
            &answers,
            published,
            &published.view.clock,
            &resources::metrics::Stored::default(),
            &authenticator,
            &options,
            now.parse().unwrap(),
        )
        .unwrap();
        let prefixes = ["os_upgrade_next_upgrade", "os_upgrade_missed_runs", "os_upgrade_last_missed_run"];
        let is_next_run = |line: &&str| prefixes.iter().any(|prefix| line.starts_with(prefix));
        text.lines().filter(is_next_run).map(ToOwned::to_owned).collect::<Vec<_>>()
    };
    // 2026-11-27T01:00:00Z.
    let at = "os_upgrade_next_upgrade_seconds 1795741200";
    let none_missed = "os_upgrade_missed_runs_total 0";
    assert_eq!(lines(&published, "2026-11-25T20:59:42Z"), [at, none_missed]);
    let unseen =
        PublishedState { view: View { clock: Clock::TRUSTED, ..View::default() }, ..published.clone() };
    let blocked = r#"os_upgrade_next_upgrade_blocked{reason="no-hosts"} 1"#;
    assert_eq!(lines(&unseen, "2026-11-27T01:00:00Z"), [at, blocked, none_missed]);
    let unread = PublishedState { is_read: false, ..published };
    assert_eq!(lines(&unread, "2026-11-25T20:59:42Z"), [""; 0]);
}

#[tokio::test]
async fn missed_runs_are_listed() {
    let mut site = TestSite::new(["h01"]);
    let config = serde_json::from_value(sample()).unwrap();
    let put = ConfigOperation::Put { config, expected: Expected::Anything };
    let mut records = vec![site.decide_record(&[Input::Request(kernel::Request::new("anna", put).into())])];
    // The windows are on Fridays and Saturdays: one is blocked, and during the next no orchestrator leads.
    let friday = os_upgrade_calendar::Occurrence {
        start: "2026-11-27T01:00:00Z".parse().unwrap(),
        end: "2026-11-27T05:00:00Z".parse().unwrap(),
    };
    let by = kernel::StartBlocker::NoneApproved { hosts: 1, withdrawn: 0 }.into();
    site.now = "2026-11-29T12:00:00.250Z".parse().unwrap();
    site.view.has_awaited_replies = true;
    let blocked = Some(kernel::BlockedStart { occurrence: friday, by });
    records.push(site.decide_record(&[Input::Missed { blocked }]));
    let api = TestApi::new(site, &records).await;

    let missed = |day: u32, why: &Value| {
        json!({
            "window-start": format!("2026-11-{day}T01:00:00Z"),
            "latest-start": format!("2026-11-{day}T05:00:00Z"),
            "window-end": format!("2026-11-{day}T05:00:00Z"),
            "recorded-at": "2026-11-29T12:00:01Z",
            "why": why,
        })
    };
    let no_leader = json!({"kind": "no-leader", "text": "no orchestrator led"});
    let text = "the only host of the configured applications was not approved";
    let none_approved = json!({"kind": "none-approved", "hosts": 1, "text": text});
    let items = [missed(28, &no_leader), missed(27, &none_approved)];
    assert_eq!(api.call(MISSED, "").await, (200, json!({ "items": items })));
    assert_eq!(api.call(&format!("{MISSED}?count=true"), "").await, (200, json!({"count": 2})));
    let page = api.call(&format!("{MISSED}?limit=1"), "").await.1;
    assert_eq!((&page["items"], &page["next"]), (&json!([items[0]]), &json!("2.1")));
    // They are no runs.
    assert_eq!(api.call("GET /v1/state/os-upgrade/runs", "").await, (200, json!({"items": []})));
    let state = &api.site.published().state;
    assert_eq!(
        (state.missed.total, state.missed.last.as_ref().unwrap().start),
        (2, "2026-11-28T01:00:00Z".parse().unwrap())
    );
}

#[tokio::test]
async fn fields_and_content_select_state() {
    let api = upgraded().await;
    let of = async |query: &str| api.call(&format!("{STATE}?{query}"), "").await;
    assert_eq!(of("content=config").await, (200, sample()));
    let (_, rest) = of("content=nonconfig").await;
    let others = [
        "hosts",
        "last-upgrade-info",
        "next-upgrade-at",
        "next-upgrade-in",
        "oldest-success",
        "scheduled-workers",
        "status",
    ];
    assert_eq!(keys(&rest), others);
    for (query, expected) in [
        ("fields=status", json!({"status": "idle"})),
        (
            "fields=last-upgrade-info/result,status",
            json!({"status": "idle", "last-upgrade-info": {"result": "completed"}}),
        ),
        (
            "fields=last-upgrade-info/counts/upgraded",
            json!({"last-upgrade-info": {"counts": {"upgraded": 2}}}),
        ),
        ("fields=hosts/hostname", json!({"hosts": [{"hostname": "h01"}, {"hostname": "h02"}]})),
        ("fields=maintenance-windows/duration", json!({"maintenance-windows": [{"duration": "4h"}]})),
        (
            "fields=maintenance-windows/duration,status&content=config",
            json!({"maintenance-windows": [{"duration": "4h"}]}),
        ),
        ("fields=maintenance-windows/duration,status&content=nonconfig", json!({"status": "idle"})),
        ("fields=status&content=config", json!({})),
        ("fields=current-upgrade-info/id,rollout,next-upgrade-why", json!({})),
    ] {
        let (status, found) = of(query).await;
        assert_eq!((status, found), (200, expected), "{query}");
    }
    for query in ["content=all", "fields=colour", "fields=hosts/colour", "content=", "depth=1"] {
        assert_eq!(of(query).await.0, 400, "{query}");
    }
}

/// Every field of a complete state can be selected individually.
#[tokio::test]
async fn every_field_can_be_selected() {
    fn paths(value: &Value, parent: &str, found: &mut std::collections::BTreeSet<String>) {
        for value in value.as_array().into_iter().flatten() {
            paths(value, parent, found);
        }
        for (name, value) in value.as_object().into_iter().flatten() {
            let path = if parent.is_empty() { name.clone() } else { format!("{parent}/{name}") };
            paths(value, &path, found);
            found.insert(path);
        }
    }
    let mut site = TestSite::new(["h01", "h02"]);
    let mut records = vec![site.decide_record(&[put_config()]), site.fence()];
    records.extend(site.whole_run("r1"));
    records.push(site.decide_record(&[trigger("r2")]));
    records.push(site.decide_record(&[cancel()]));
    let api = TestApi::new(site, &records).await;
    let mut whole = sample();
    whole["deny-windows"] = json!([{"cron": "0 0 0 24 12 *", "duration": "2d", "not-before": "2026-01-01"}]);
    whole["start-jitter"] = json!("10m");
    whole["minimum-remaining"] = json!("30m");
    whole["rollout"] = rollout(json!({"max-concurrent": 2}));
    let (status, answer) = api.call(&format!("PUT {CONFIG}"), &whole.to_string()).await;
    assert_eq!(status, 204, "{answer}");
    let (_, state) = api.call(STATE, "").await;
    let mut found = std::collections::BTreeSet::new();
    paths(&state, "", &mut found);
    for path in found {
        let (status, part) = api.call(&format!("{STATE}?fields={path}"), "").await;
        assert_eq!(status, 200, "{path}: {part}");
        assert_eq!(keys(&part), [path.split('/').next().unwrap()], "{path}");
    }
    assert_eq!(api.call(&format!("{STATE}?content=config"), "").await, (200, whole));
}

#[tokio::test]
async fn reason_without_scheduled_run() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let now = "2026-11-27T02:00:00Z";
    let kind = |state: &State<'_>| json!(state.next_upgrade_why)["kind"].as_str().unwrap().to_owned();
    assert_eq!(kind(&at(&api, now)), "no-configuration");
    let put = format!("PUT {CONFIG}");
    assert_eq!(api.call(&put, "{}").await.0, 201);
    assert_eq!(kind(&at(&api, now)), "no-windows");
    assert_eq!(api.send(build(&put, "application/yaml", SAMPLE)).await.0, 204);
    let state = at(&api, now);
    assert_eq!(kind(&state), "no-hosts");
    let next = (state.next_upgrade_in.map(|left| left.to_string()), state.next_upgrade_at);
    assert_eq!(next, (Some("0s".to_owned()), Some(stamp(now))));
    let over = format!("{SAMPLE}    not-after: 2020-01-01\n");
    assert_eq!(api.send(build(&put, "application/yaml", &over)).await.0, 204);
    let state = at(&api, now);
    assert_eq!(kind(&state), "no-occurrence");
    assert_eq!((state.next_upgrade_in, state.next_upgrade_at), (None, None));
    let why = "no run starts automatically: no upcoming maintenance window is long enough";
    assert_eq!(state.next_upgrade_why.unwrap().text, why);
}

#[tokio::test]
async fn deny_window_in_force_is_told() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let put = format!("PUT {CONFIG}");
    let deny =
        |days: &str| json!({"deny-windows": [{"cron": "0 0 0 28 11 *", "duration": days}]}).to_string();
    assert_eq!(api.call(&put, &deny("24h")).await.0, 201);
    for (now, expected) in [
        ("2026-11-27T23:59:59Z", None),
        ("2026-11-28T00:00:00Z", Some("2026-11-29T00:00:00Z")),
        ("2026-11-29T00:00:00Z", None),
    ] {
        assert_eq!(at(&api, now).denied_until, expected.map(stamp), "{now}");
    }
    // The end is that of the last one that follows without a gap.
    let following = json!({"deny-windows": [
        {"cron": "0 0 0 28 11 *", "duration": "24h"}, {"cron": "0 0 0 29 11 *", "duration": "6h"},
        {"cron": "0 0 5 29 11 *", "duration": "2h"}, {"cron": "0 1 7 29 11 *", "duration": "2h"},
    ]});
    assert_eq!(api.call(&put, &following.to_string()).await.0, 204);
    for (now, expected) in [
        ("2026-11-28T00:00:00Z", Some("2026-11-29T07:00:00Z")),
        ("2026-11-29T06:59:59Z", Some("2026-11-29T07:00:00Z")),
        ("2026-11-29T07:00:00Z", None),
    ] {
        assert_eq!(at(&api, now).denied_until, expected.map(stamp), "{now}");
    }
    // Whatever the time is now, it is denied.
    assert_eq!(api.call(&put, r#"{"deny-windows":[{"cron":"0 0 0 * * *","duration":"24h"}]}"#).await.0, 204);
    let windows: Windows = api.read(WINDOWS).await;
    assert!(windows.denied_until.is_some(), "{windows:?}");
}

/// The maintenance windows would be long enough: it is the deny window that leaves none of them.
#[tokio::test]
async fn deny_windows_that_leave_no_opening_are_told() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let put = format!("PUT {CONFIG}");
    let config = json!({
        "maintenance-windows": [{"days-of-week": "Friday", "start-time": "01:00", "duration": "4h"}],
        "deny-windows": [{"days-of-week": "Friday", "start-time": "00:00", "duration": "6h"}],
    });
    assert_eq!(api.call(&put, &config.to_string()).await.0, 201);
    let state = at(&api, "2026-11-25T00:00:00Z");
    let why = "no run starts automatically: deny windows leave no upcoming maintenance window long enough";
    assert_eq!(json!(state.next_upgrade_why), json!({"kind": "no-occurrence", "text": why}));
    let problem = "deny windows keep the maintenance windows closed that follow, for two years at least";
    let found = api.call(&format!("{WINDOWS}?from=2026-11-25T00:00:00Z"), "").await;
    assert_eq!(found, (200, json!({"windows": [], "problem": problem, "site-timezone": "UTC"})));
    // The end of one window is denied, and none follows; or another does, which touches it or begins later.
    let dated = |start: &str, day: &str, hours: u32| {
        let date = format!("2026-11-{day}");
        json!({"cron": format!("0 0 {start} {day} * *"), "duration": format!("{hours}h"), "not-before": date, "not-after": date})
    };
    let (first, deny) = (dated("20", "27", 4), dated("22", "27", 30));
    for (windows, expected) in [
        (json!([first]), None),
        (json!([first, dated("0", "28", 2)]), Some(problem)),
        (json!([first, dated("1", "28", 2)]), Some(problem)),
    ] {
        let config = json!({"maintenance-windows": windows, "deny-windows": [deny]});
        assert_eq!(api.call(&put, &config.to_string()).await.0, 204);
        for (from, is_listed) in [("2026-11-25T00:00:00Z", true), ("2026-11-27T22:30:00Z", false)] {
            let found: Windows = api.read(&format!("{WINDOWS}?from={from}")).await;
            assert_eq!(found.windows.len(), usize::from(is_listed), "{found:?}");
            assert_eq!(found.problem.as_deref(), expected, "{windows} {from}");
        }
    }
}

#[tokio::test]
async fn windows_are_previewed() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    assert_eq!(api.call(WINDOWS, "").await, (404, error("there is no configuration")));
    let put = format!("PUT {CONFIG}");
    assert_eq!(api.call(&put, "{}").await.0, 201);
    assert_eq!(api.call(WINDOWS, "").await, (200, json!({"windows": [], "site-timezone": "UTC"})));
    // A second window that overlaps the first; a day without any, in the past, as one that is in force would be named.
    let config = json!({
        "worker-applications": [],
        "maintenance-windows": [
            {"days-of-week": "Friday, Saturday", "start-time": "01:00", "duration": "4h"},
            {"days-of-week": "Friday", "start-time": "04:00", "duration": "3h"},
        ],
        "deny-windows": [
            {"cron": "0 0 0 28 11 * 2020", "duration": "24h"},
        ],
    });
    let (status, answer) = api.call(&put, &config.to_string()).await;
    assert_eq!(status, 204, "{answer}");
    let times = |day: &str, from: u32, to: u32| json!({"start": format!("{day}T{from:02}:00:00Z"), "end": format!("{day}T{to:02}:00:00Z")});
    let (first, second, third) =
        (times("2020-11-27", 1, 7), times("2020-12-04", 1, 7), times("2020-12-05", 1, 5));
    for (query, expected) in [
        ("count=3&from=2020-11-25T00:00:00Z", json!([first, second, third])),
        // An open occurrence is listed first.
        ("count=1&from=2020-11-27T06:59:59Z", json!([first])),
        ("count=1&from=2020-11-27T08:59:59%2B02:00", json!([first])),
        ("count=1&from=2020-11-27T07:00:00Z", json!([second])),
    ] {
        let found = api.call(&format!("{WINDOWS}?{query}"), "").await;
        assert_eq!(found, (200, json!({ "windows": expected, "site-timezone": "UTC" })), "{query}");
    }
    for (query, count) in
        [("", 10), ("count=1000", 1_000), ("from=0000-01-01T00:00:00Z", 10), ("from=9999-12-31T23:59:59Z", 0)]
    {
        let found: Windows = api.read(&format!("{WINDOWS}?{query}")).await;
        assert_eq!(found.windows.len(), count, "{query}");
    }
    for query in ["count=0", "count=1001", "count=x", "from=tomorrow", "from=2020-11-27", "from=", "to=x"] {
        let (status, refused) = api.call(&format!("{WINDOWS}?{query}"), "").await;
        assert_eq!(status, 400, "{query}: {refused}");
    }
}

/// Windows are validated only for the next five years, so later ones may turn out to be unusable.
#[tokio::test]
async fn unclear_windows_are_reported() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let config = json!({
        "worker-applications": [{"name": "os-upgrade-debian"}],
        "maintenance-windows": [
            {"days-of-week": "Friday", "start-time": "01:00", "duration": "4h"},
            {"cron": "0 0 0 * * * 2040-2050", "duration": "25h"},
        ],
    });
    assert_eq!(api.call(&format!("PUT {CONFIG}"), &config.to_string()).await.0, 201);
    let problem = |since: &str| {
        format!(
            "maintenance-windows: from {since} on they overlap one another for more than 366 days, so that none begins \
             after that; shorten their duration, such as every day from 00:00 for 24h, or leave days out"
        )
    };
    let (status, found) = api.call(&format!("{WINDOWS}?from=2039-12-29T00:00:00Z"), "").await;
    let friday = json!({"start": "2039-12-30T01:00:00Z", "end": "2039-12-30T05:00:00Z"});
    assert_eq!(status, 200);
    assert_eq!(
        found,
        json!({
            "windows": [friday], "problem": problem("2040-01-01T00:00:00Z"), "site-timezone": "UTC",
        })
    );
    let state = json_at(&api, "2040-07-01T00:00:00Z");
    assert_eq!(state["next-upgrade-why"]["kind"], "unclear-windows");
    let expected = problem("2040-01-01T00:00:00Z");
    assert_eq!(
        sentence(&state["hosts"][0]),
        format!("no run is active; no run starts automatically: {expected}")
    );
}

#[tokio::test]
async fn every_scheduled_worker_is_listed() {
    let mut site = TestSite::new(["h01", "h02", "h03"]);
    let application = |name: &str| os_upgrade_protocol::ApplicationName::new(name).unwrap();
    for (name, applications) in [
        ("h01", &["os-upgrade-debian", "firmware", "another"][..]),
        ("h02", &["firmware"]),
        ("h03", &["another"]),
    ] {
        let applications = applications.iter().map(|name| application(name)).collect();
        site.view.hosts.get_mut(&host(name)).unwrap().applications = applications;
    }
    let api = TestApi::new(site, &[]).await;
    let config = json!({"worker-applications": [{"name": "os-upgrade-debian"}, {"name": "firmware"}]});
    assert_eq!(api.call(&format!("PUT {CONFIG}"), &config.to_string()).await.0, 201);
    let (_, state) = api.call(&format!("{STATE}?fields=scheduled-workers"), "").await;
    let expected = json!({"scheduled-workers": [
        {"host": "h01", "application": "os-upgrade-debian"},
        {"host": "h01", "application": "firmware"},
        {"host": "h02", "application": "firmware"},
    ]});
    assert_eq!(state, expected);
}

/// Gives up the only host, which ends the run.
fn give_up() -> Input {
    let give_up = RunOperation::GiveUpHost { host: host("h01"), reason: "no power".to_owned() };
    Input::Request(kernel::Request::new("api", give_up).into())
}

/// A site whose open window is used after `inputs`.
async fn in_window(inputs: &[Input]) -> TestApi {
    let mut site = TestSite::new(["h01"]);
    let records: Vec<_> =
        inputs.iter().map(|input| site.decide_record(std::slice::from_ref(input))).collect();
    let api = TestApi::new(site, &records).await;
    let config = json!({
        "worker-applications": [{"name": "os-upgrade-debian"}],
        "maintenance-windows": [{"days-of-week": "Saturday", "start-time": "01:00", "duration": "5h"}],
    });
    let (status, answer) = api.call(&format!("PUT {CONFIG}"), &config.to_string()).await;
    assert!([201, 204].contains(&status), "{answer}");
    api
}

#[tokio::test]
async fn used_window_is_named() {
    let window = json!([{"days-of-week": "Saturday", "start-time": "02:00", "duration": "4h"}]);
    let config =
        json!({"worker-applications": [{"name": "os-upgrade-debian"}], "maintenance-windows": window});
    let expected = Expected::Anything;
    let put = ConfigOperation::Put { config: serde_json::from_value(config).unwrap(), expected };
    let put = Input::Request(kernel::Request::new("api", put).into());
    let due = Input::Due { run: run_id("r1") };
    let now = "2026-11-21T05:30:00Z";
    for (inputs, used_by, text) in [
        (vec![put.clone()], None, None),
        (
            vec![put.clone(), due.clone(), cancel()],
            Some(json!({"kind": "run", "run": "r1"})),
            Some("it has had its run, r1"),
        ),
        (
            vec![put_config(), trigger("r2"), cancel()],
            Some(json!({"kind": "cancel", "run": "r2"})),
            Some("run r2 was cancelled in it"),
        ),
        (
            vec![put, due, cancel(), trigger("r2"), give_up()],
            Some(json!({"kind": "earlier"})),
            Some("it has had a run or a cancel, or the site was restored in it"),
        ),
    ] {
        let api = in_window(&inputs).await;
        let state = json_at(&api, now);
        assert_eq!(state.get("window-used-by"), used_by.as_ref());
        let next = if used_by.is_some() { "2026-11-28T01:00:00Z" } else { now };
        assert_eq!(state["next-upgrade-at"], next);
        let host = &state["hosts"][0];
        match text {
            None => {
                let text = format!("no run is active; the next starts automatically at {now}");
                let why = json!({"kind": "no-run", "text": text, "until": now});
                assert_eq!(host, &json!({"hostname": "h01", "why": why}));
            }
            Some(text) => {
                let text = format!(
                    "no run is active; the next starts automatically at {next}; the maintenance window that is \
                     open until 2026-11-21T06:00:00Z starts none, because {text}"
                );
                assert_eq!(sentence(host), text);
                let used = json!({
                    "kind": "window-used", "window-used-by": used_by,
                    "open-until": "2026-11-21T06:00:00Z", "until": "2026-11-21T06:00:00Z",
                    "text": text.rsplit("; ").next().unwrap(),
                });
                assert_eq!(host["also"], json!([used]));
            }
        }
        // After the window it is history.
        assert!(at(&api, "2026-11-21T06:00:00Z").window_used_by.is_none());
    }
}
