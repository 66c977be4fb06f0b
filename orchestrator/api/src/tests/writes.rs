//! Writes: their answers, and their effects.

use chrono::{SubsecRound as _, TimeDelta, Utc};
use os_upgrade_api_types::body::{Page, Stamp};
use os_upgrade_api_types::routes::hosts::Host;
use os_upgrade_api_types::routes::runs::{Run, RunPreview, StopCause};
use os_upgrade_api_types::routes::state::State;
use os_upgrade_kernel::ClockDoubt;
use os_upgrade_test_site::put_config;

use super::*;

const CONFIG: &str = "PUT /v1/config/os-upgrade";
const TRIGGER: &str = "POST /v1/state/os-upgrade/trigger-upgrade-site";
const CANCEL: &str = "POST /v1/state/os-upgrade/cancel";
const GIVE_UP: &str = "POST /v1/state/os-upgrade/give-up-host";
const BODY: &str = r#"{"worker-applications":[{"name":"os-upgrade-debian"}]}"#;

/// The runs, newest first.
async fn runs(api: &TestApi) -> Vec<Run<'static>> {
    api.read::<Page<_>>("GET /v1/state/os-upgrade/runs").await.items
}

#[tokio::test]
async fn configuration_is_created_replaced_and_read() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let read = "GET /v1/config/os-upgrade";
    assert_eq!(api.call(&format!("{CONFIG}?validate=true"), BODY).await, (204, Value::Null));
    assert_eq!(api.call(read, "").await, (404, error("there is no configuration")));
    assert_eq!(api.call(CONFIG, BODY).await, (201, Value::Null));
    assert_eq!(api.call(CONFIG, BODY).await, (204, Value::Null));
    assert_eq!(api.call(read, "").await, (200, serde_json::from_str(BODY).unwrap()));
    // A rollout that is not the default is shown whole. This is the only API test that spells out all its fields.
    let other = r#"{"worker-applications":[],"rollout":{"max-concurrent":2}}"#;
    assert_eq!(api.call(CONFIG, other).await, (204, Value::Null));
    let expected = json!({
        "worker-applications": [],
        "rollout": {"max-concurrent": 2, "max-failures": 0, "unreachable": "skip", "boot-timeout": "30m"},
    });
    assert_eq!(api.call(read, "").await, (200, expected));
}

#[tokio::test]
async fn run_is_triggered_once_and_cancelled() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    assert_eq!(api.call(CONFIG, BODY).await.0, 201);
    assert_eq!(api.call(&format!("{TRIGGER}?validate=true"), "").await, (204, Value::Null));
    assert!(api.site.published().state.run.is_none(), "validate starts nothing");
    assert_eq!(api.call(TRIGGER, r#"{"timeout":"10m"}"#).await, (204, Value::Null));
    let state = &api.site.published().state;
    let run = state.run.as_ref().unwrap();
    assert_eq!((run.not_after - run.started_at).num_minutes(), 10);
    let active = error_with(
        &format!("run {} is active: `os-upgrade run watch` shows it", run.id),
        &json!({"kind": "run-active", "run": run.id}),
    );
    assert_eq!(api.call(TRIGGER, "").await, (409, active));
    assert_eq!(api.call(CANCEL, "").await, (204, Value::Null));
    let none = error_with("no run is active", &json!({"kind": "no-run"}));
    assert_eq!(api.call(CANCEL, "").await, (409, none));
    let results: Vec<_> = runs(&api).await.into_iter().map(|run| run.result.unwrap().to_string()).collect();
    assert_eq!(results, ["cancelled"]);
}

/// The answer says which run has started, and shows it to clients that prefer so.
#[tokio::test]
async fn trigger_names_its_run() {
    for (prefer, query, expected) in
        [("", "", 204), ("return=representation", "", 201), ("return=representation", "?validate=true", 200)]
    {
        let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
        assert_eq!(api.call(CONFIG, BODY).await.0, 201);
        let mut request = build(&format!("{TRIGGER}{query}"), "application/json", r#"{"reason":" a CVE "}"#);
        request.headers_mut().insert("prefer", prefer.parse().unwrap());
        let (status, headers, body) = api.send(request).await;
        assert_eq!(status, expected, "{prefer} {query}");
        let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let run = api.site.published().state.run.clone();
        let id = run.as_ref().map(|run| run.id.to_string());
        assert_eq!(id.is_none(), query == "?validate=true");
        let path = id.as_ref().map(|id| format!("/v1/state/os-upgrade/runs/{id}"));
        assert_eq!((text("os-upgrade-run"), text("location")), (id, path.clone()));
        assert_eq!(text("preference-applied").as_deref(), (status != 204).then_some("return=representation"));
        if status == 201 {
            let shown = api.call(&format!("GET {}", path.unwrap()), "").await;
            assert_eq!((200, serde_json::from_str(&body).unwrap()), shown);
        } else if status == 200 {
            let preview: RunPreview = serde_json::from_str(&body).unwrap();
            let hosts: Vec<_> = preview.hosts.iter().map(|host| (&*host.hostname, &*host.group)).collect();
            assert_eq!(hosts, [("h01", "default")]);
        } else {
            assert_eq!(body, "");
        }
    }
}

/// A run of chosen hosts has them alone, and the last run of the whole site is still shown after it.
#[tokio::test]
async fn chosen_hosts_have_a_run_of_their_own() {
    let api = TestApi::new(TestSite::new(["h01", "h02", "h03"]), &[]).await;
    assert_eq!(api.call(CONFIG, BODY).await.0, 201);
    assert_eq!(api.call(TRIGGER, "").await.0, 204);
    assert_eq!(api.call(CANCEL, "").await.0, 204);
    let body = r#"{"hosts":["h03","h01"]}"#;
    let mut request = build(&format!("{TRIGGER}?validate=true"), "application/json", body);
    request.headers_mut().insert("prefer", "return=representation".parse().unwrap());
    let (_, _, preview) = api.send(request).await;
    let preview: RunPreview = serde_json::from_str(&preview).unwrap();
    assert_eq!(preview.hosts.iter().map(|host| &*host.hostname).collect::<Vec<_>>(), ["h01", "h03"]);
    assert_eq!(api.call(TRIGGER, body).await, (204, Value::Null));
    let names =
        |run: &os_upgrade_kernel::Run| run.hosts().keys().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(api.site.published().state.run.as_ref().unwrap()), ["h01", "h03"]);
    assert_eq!(api.call(CANCEL, "").await.0, 204);
    let state: State<'_> = api.read("GET /v1/state/os-upgrade").await;
    let (whole, targeted) = (state.last_upgrade_info.unwrap(), state.last_targeted_info.unwrap());
    assert_eq!((whole.hosts.len(), targeted.hosts.len()), (3, 2));
    let unknown = "hosts: h04 has no worker of a configured application; nothing is started";
    let info = json!({"kind": "no-targets", "hosts": [["h04", "unknown"]]});
    assert_eq!(api.call(TRIGGER, r#"{"hosts":["h04","h01"]}"#).await, (409, error_with(unknown, &info)));
    let (status, refused) = api.call(TRIGGER, r#"{"retry":"failed"}"#).await;
    let info = &refused["errors"][0]["error-info"];
    assert_eq!((status, info), (409, &json!({"kind": "nobody-to-retry", "retry": "failed"})));
    for body in [r#"{"retry":"upgraded"}"#, r#"{"hosts":[]}"#] {
        assert_eq!(api.call(TRIGGER, body).await.0, 400, "{body}");
    }
    // The next run of the whole site takes the place of both.
    assert_eq!(api.call(TRIGGER, "").await.0, 204);
    assert_eq!(api.call(CANCEL, "").await.0, 204);
    let state: State<'_> = api.read("GET /v1/state/os-upgrade").await;
    assert!(state.last_upgrade_info.is_some() && state.last_targeted_info.is_none());
}

#[tokio::test]
async fn reasons_of_trigger_and_cancel_are_shown() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    assert_eq!(api.call(CONFIG, BODY).await.0, 201);
    for body in [json!({"reason": " "}), json!({"reason": "x".repeat(1_001)}), json!({"reason": "a\nb"})] {
        assert_eq!(api.call(TRIGGER, &body.to_string()).await.0, 400, "{body}");
        assert_eq!(api.call(CANCEL, &body.to_string()).await.0, 400, "{body}");
    }
    assert_eq!(api.call(TRIGGER, r#"{"reason":" a CVE "}"#).await.0, 204);
    let state = async || api.read::<State<'static>>("GET /v1/state/os-upgrade").await;
    assert_eq!(state().await.current_upgrade_info.unwrap().reason.as_deref(), Some("a CVE"));
    assert_eq!(api.call(CANCEL, r#"{"reason":"a storm"}"#).await.0, 204);
    assert_eq!(state().await.last_upgrade_info.unwrap().reason.as_deref(), Some("a CVE"));
    let listed = &runs(&api).await[0];
    assert_eq!(listed.reason.as_deref(), Some("a CVE"));
    let cancelled = StopCause::Cancelled { actor: "api".to_owned(), reason: Some("a storm".to_owned()) };
    assert_eq!(listed.stopping.as_ref().unwrap().read(), Some(&cancelled));
    // A start without a reason shows none.
    assert_eq!(api.call(TRIGGER, "").await.0, 204);
    assert_eq!(runs(&api).await[0].reason, None);
}

#[tokio::test]
async fn default_timeout_is_four_hours() {
    for body in ["", " \n", "{}"] {
        let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
        assert_eq!(api.call(CONFIG, BODY).await.0, 201);
        assert_eq!(api.call(TRIGGER, body).await, (204, Value::Null), "{body:?}");
        let run = api.site.published().state.run.clone().unwrap();
        assert_eq!((run.not_after - run.started_at).num_minutes(), 240);
    }
}

#[tokio::test]
async fn blocked_trigger_is_refused() {
    let mut site = TestSite::new([]);
    let records = [site.decide_record(&[put_config()])];
    let api = TestApi::new(site.clone(), &records).await;
    let message = "no host has announced a worker of the configured applications (os-upgrade-debian)";
    let info = json!({"kind": "no-hosts", "applications": "os-upgrade-debian"});
    assert_eq!(api.call(TRIGGER, "").await, (409, error_with(message, &info)));
    let short = error_with("timeout: must be at least 1s", &json!({"kind": "timeout-too-short"}));
    assert_eq!(api.call(TRIGGER, r#"{"timeout":"0s"}"#).await, (400, short));

    site.view.clock.doubt = Some(ClockDoubt::ClockSkew { seconds: -60 });
    let api = TestApi::new(site, &records).await;
    let message = "the orchestrator's clock is 60 s behind NATS; no run starts until the time is certain";
    let info = json!({"kind": "clock-skew", "seconds": -60});
    assert_eq!(api.call(TRIGGER, "").await, (503, error_with(message, &info)));
}

#[tokio::test]
async fn silent_core() {
    let (api, calls) = TestApi::silent(Readiness::NotReady("NATS is unreachable".to_owned())).await;
    for (request, body) in [(CONFIG, BODY), (TRIGGER, ""), (CANCEL, "")] {
        let unknown = NotDone::unknown("NATS is unreachable");
        assert_eq!(api.call(request, body).await, (503, not_done(&unknown)), "{request}");
    }
    // Invalid requests are refused at once, without the instance.
    assert_eq!(api.call(TRIGGER, "[").await.0, 400);
    assert_eq!(api.call(TRIGGER, r#"["4h"]"#).await.0, 400);
    drop(calls);
    let unchanged = NotDone::unchanged("the orchestrator has stopped");
    assert_eq!(api.call(TRIGGER, "").await, (503, not_done(&unchanged)));

    let (api, _calls) = TestApi::silent(Readiness::Ready).await;
    let unknown = NotDone::unknown("the journal did not confirm the change in time");
    assert_eq!(api.call(TRIGGER, "").await, (503, not_done(&unknown)));
}

#[tokio::test]
async fn run_continues_without_given_up_host() {
    let api = TestApi::new(TestSite::new(["h01", "h02"]), &[]).await;
    let body = |host: &str| json!({ "host": host, "reason": " it burnt " }).to_string();
    let info = async |host: &str| {
        let (status, answer) = api.call(GIVE_UP, &body(host)).await;
        (status, answer["errors"][0]["error-info"]["kind"].clone())
    };
    assert_eq!(info("h01").await, (409, json!("no-run")));
    assert_eq!(api.call(CONFIG, BODY).await.0, 201);
    assert_eq!(api.call(TRIGGER, "").await.0, 204);
    assert_eq!(info("h03").await, (404, json!("not-in-run")));
    assert_eq!(api.call(GIVE_UP, r#"{"host":"h01","reason":" "}"#).await.0, 400);
    let shown = async || api.read::<Host<'static>>("GET /v1/state/os-upgrade/hosts/h01").await;
    assert_eq!(api.call(&format!("{GIVE_UP}?validate=true"), &body("h01")).await, (204, Value::Null));
    assert_eq!(shown().await.status.unwrap().as_str(), "pending");
    assert_eq!(api.call(GIVE_UP, &body("h01")).await, (204, Value::Null));
    let given_up = shown().await;
    assert_eq!(given_up.status.unwrap().as_str(), "cancelled");
    assert_eq!(given_up.why.unwrap().text, "given up by api: it burnt");
    assert_eq!(api.call(GIVE_UP, &body("h01")).await, (204, Value::Null), "it is so");
    // Without the last host the run ends.
    assert_eq!(api.call(GIVE_UP, &body("h02")).await, (204, Value::Null));
    assert_eq!(api.call(GIVE_UP, &body("h02")).await, (204, Value::Null), "it is so");
    assert_eq!(info("h03").await, (409, json!("no-run")));
}

/// A run of chosen hosts makes way for the next one that starts automatically, unless its timeout says otherwise: then it says so.
#[tokio::test]
async fn chosen_hosts_make_way_for_the_next_window() {
    let api = TestApi::new(TestSite::new(["h01", "h02"]), &[]).await;
    let opens = (Utc::now() + TimeDelta::hours(2)).trunc_subsecs(0);
    let config = json!({
        "worker-applications": [{"name": "os-upgrade-debian"}],
        "maintenance-windows": [{"cron": opens.format("%S %M %H %d %m *").to_string(), "duration": "1h"}],
    });
    assert_eq!(api.call(CONFIG, &config.to_string()).await.0, 201);
    let preview = async |body: &str| -> RunPreview {
        let mut request = build(&format!("{TRIGGER}?validate=true"), "application/json", body);
        request.headers_mut().insert("prefer", "return=representation".parse().unwrap());
        serde_json::from_str(&api.send(request).await.2).unwrap()
    };
    let chosen = preview(r#"{"hosts":["h01"]}"#).await;
    assert_eq!((chosen.not_after, chosen.costs_start_at), (Stamp(opens), None));
    let longer = preview(r#"{"hosts":["h01"],"timeout":"3h"}"#).await;
    assert!(longer.not_after.0 > opens);
    assert_eq!(longer.costs_start_at, Some(Stamp(opens)));
    assert_eq!(preview(r#"{"timeout":"3h"}"#).await.costs_start_at, None);
}
