//! Enrolment of hosts: how it is shown, and operators' decisions.

use os_upgrade_api_types::body::Page;
use os_upgrade_api_types::routes::hosts::Host;
use os_upgrade_api_types::routes::state::State;
use os_upgrade_api_types::word::{WhyKind, Word};
use os_upgrade_kernel::{Configures, KeyState, Settings};
use os_upgrade_protocol::{ApplicationName, HostKey};
use os_upgrade_test_site::put_config;

use super::*;

const HOSTS: &str = "GET /v1/state/os-upgrade/hosts";
const APPROVE: &str = "POST /v1/state/os-upgrade/approve-hosts";
const DEFER: &str = "POST /v1/state/os-upgrade/defer-host";
const END_DEFERRAL: &str = "POST /v1/state/os-upgrade/end-deferral";
const WITHDRAW: &str = "POST /v1/state/os-upgrade/withdraw-host";
const REMOVE: &str = "POST /v1/state/os-upgrade/remove-host";
const HISTORY: &str = "GET /v1/state/os-upgrade/enrolment-history";
const TRIGGER: &str = "POST /v1/state/os-upgrade/trigger-upgrade-site";

/// An API over a site where hosts wait for approval.
async fn unapproved_site() -> TestApi {
    let mut site = TestSite::new(["h01", "h02", "h03"]);
    for (name, seconds) in [("h01", 0), ("h02", 60)] {
        let seen = site.view.hosts.get_mut(&host(name)).unwrap();
        seen.announced_at = Some("2026-11-21T04:00:00Z".parse().unwrap());
        seen.announced_at = seen.announced_at.map(|at| at + chrono::TimeDelta::seconds(seconds));
    }
    let records = vec![site.decide_record(&[Input::Settings(Settings::default()), put_config()])];
    TestApi::new(site, &records).await
}

async fn shown(api: &TestApi, path: &str) -> Host<'static> {
    api.read(&format!("{HOSTS}/{path}")).await
}

async fn names(api: &TestApi, query: &str) -> Value {
    api.call(&format!("{HOSTS}?{query}keys=true"), "").await.1
}

/// Nothing is approved by somebody who has seen another key.
#[tokio::test]
async fn keys_are_approved_as_they_were_seen() {
    let mut site = TestSite::new(["h01", "h02"]);
    let [first, second] = [1, 2].map(|byte| HostKey::new([byte; 32]));
    let application = ApplicationName::new("os-upgrade-debian").unwrap();
    let seen = site.view.hosts.get_mut(&host("h01")).unwrap();
    seen.configures = Some(Configures { application, key: second });
    let records = vec![site.decide_record(&[Input::Settings(Settings::default()), put_config()])];
    let api = TestApi::new(site, &records).await;
    let approve = async |key: HostKey| {
        api.call(APPROVE, &json!({ "hosts": ["h01", "h02"], "keys": { "h01": key } }).to_string()).await
    };
    let (status, body) = approve(first).await;
    assert_eq!(status, 409);
    let message = body["errors"][0]["error-message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains(&second.to_string()), "{body}");
    assert_eq!(names(&api, "pending=true&").await, json!(["h01", "h02"]));
    let status = async || shown(&api, "h01").await.key.unwrap().status;
    assert_eq!(status().await, Word::Known(KeyState::Waiting));
    assert_eq!(approve(second).await.0, 204);
    let key = shown(&api, "h01").await.key.unwrap();
    assert_eq!(
        (key.status, key.approved, key.announced),
        (Word::Known(KeyState::Pinned), Some(second), Some(second))
    );
    assert_eq!(key.approved_by.as_deref(), Some("api"));
    assert!(shown(&api, "h02").await.key.is_none());
    let (_, _, metrics) = api.send(Request::get("/metrics").body(Body::empty()).unwrap()).await;
    assert!(metrics.contains("os_upgrade_hosts_keys{state=\"pinned\"} 1"), "{metrics}");
}

#[tokio::test]
async fn hosts_wait_for_approval() {
    let api = unapproved_site().await;
    let (_, hosts) = api.call(HOSTS, "").await;
    let expected = json!({
        "hostname": "h02",
        "applications": ["os-upgrade-debian"],
        "group": "default",
        "reachability": "unknown",
        "enrolment": "pending",
        "announced-at": "2026-11-21T04:01:00Z",
        "why": {
            "kind": "awaits-approval",
            "host": "h02",
            "text": "waits for approval: os-upgrade hosts approve h02",
        },
    });
    assert_eq!(hosts[1], expected);
    assert_eq!(names(&api, "pending=true&").await, json!(["h01", "h02", "h03"]));
    let state: State<'_> = api.read("GET /v1/state/os-upgrade").await;
    assert_eq!((state.pending_hosts, state.scheduled_workers.unwrap().len()), (Some(3), 0));
    let (status, refused) = api.call(TRIGGER, "").await;
    let info = &refused["errors"][0]["error-info"];
    assert_eq!((status, info), (409, &json!({"kind": "none-approved", "hosts": 3})));

    let two = r#"{"hosts":["h01","h02"]}"#;
    assert_eq!(api.call(&format!("{APPROVE}?validate=true"), two).await, (204, Value::Null));
    assert_eq!(names(&api, "pending=true&").await, json!(["h01", "h02", "h03"]));
    assert_eq!(api.call(APPROVE, two).await, (204, Value::Null));
    assert_eq!(api.call(APPROVE, two).await, (204, Value::Null));
    assert_eq!(names(&api, "pending=true&").await, json!(["h03"]));
    assert_eq!(api.call(&format!("{HOSTS}?pending=true&count=true"), "").await, (200, json!({"count": 1})));
    let page: Page<Host<'_>> = api.read(&format!("{HOSTS}?pending=true&limit=1")).await;
    assert_eq!((page.items.len(), page.next), (1, None));
    let hosts: Vec<Host<'_>> = api.read(HOSTS).await;
    let approved = &hosts[0];
    assert_eq!(approved.hostname, "h01");
    assert_eq!((approved.enrolment.as_str(), approved.decided_by.as_deref()), ("approved", Some("api")));
    assert_eq!(api.call(TRIGGER, "").await.0, 204);
    let state: State<'_> = api.read("GET /v1/state/os-upgrade").await;
    let skipped = &state.current_upgrade_info.unwrap().hosts[2];
    let why = skipped.why.as_ref().and_then(Why::kind);
    assert_eq!((skipped.status.as_str(), why), ("skipped", Some(WhyKind::AwaitsApproval)));
    let (_, _, text) = api.send(build("GET /metrics", "", "")).await;
    for line in [r#"os_upgrade_hosts{enrolment="pending"} 1"#, r#"os_upgrade_hosts{enrolment="approved"} 2"#]
    {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
}

#[tokio::test]
async fn hosts_are_withdrawn() {
    let api = unapproved_site().await;
    assert_eq!(api.call(APPROVE, r#"{"hosts":["h01","h02","later"]}"#).await.0, 204);
    let body = |name: &str| json!({"host": name, "reason": " sold "}).to_string();
    assert_eq!(api.call(&format!("{WITHDRAW}?validate=true"), &body("h02")).await, (204, Value::Null));
    assert_eq!(api.call(WITHDRAW, &body("h02")).await, (204, Value::Null));
    let withdrawn = shown(&api, "h02").await;
    let why = withdrawn.why.unwrap().text;
    assert_eq!((withdrawn.enrolment.as_str(), &*why), ("withdrawn", "withdrawn by api: sold"));
    // Approved before it was announced; then removed.
    assert_eq!(shown(&api, "later").await.enrolment.as_str(), "approved");
    assert_eq!(api.call(REMOVE, &body("later")).await, (204, Value::Null));
    assert_eq!(api.call("GET /v1/state/os-upgrade/hosts/later", "").await.0, 404);
    assert_eq!(names(&api, "").await, json!(["h01", "h02", "h03"]));
    assert_eq!(names(&api, "pending=true&").await, json!(["h03"]));

    let (status, history) = api.call(HISTORY, "").await;
    let facts: Vec<_> =
        history["items"].as_array().unwrap().iter().map(|item| item["fact"].clone()).collect();
    let expected = [
        json!({"type": "host-removed", "host": "later", "actor": "api", "reason": "sold", "announced": 0}),
        json!({"type": "host-withdrawn", "host": "h02", "actor": "api", "reason": "sold"}),
        json!({"type": "hosts-approved", "hosts": ["h01", "h02", "later"], "actor": "api"}),
    ];
    assert_eq!((status, facts), (200, expected.to_vec()));
    assert_eq!(api.call(&format!("{HISTORY}?count=true"), "").await, (200, json!({"count": 3})));
}

#[tokio::test]
async fn hosts_are_deferred() {
    let api = unapproved_site().await;
    assert_eq!(api.call(APPROVE, r#"{"hosts":["h01","h02"]}"#).await.0, 204);
    let body =
        |until: &str| json!({"host": "h02", "reason": " the quarter closes ", "until": until}).to_string();
    let later = "2999-01-01T00:00:00Z";
    assert_eq!(api.call(&format!("{DEFER}?validate=true"), &body(later)).await, (204, Value::Null));
    assert!(shown(&api, "h02").await.deferred.is_none());
    assert_eq!(api.call(DEFER, &body(later)).await, (204, Value::Null));
    let host = shown(&api, "h02").await;
    let deferred = host.deferred.unwrap();
    assert_eq!((&*deferred.actor, &*deferred.reason), ("api", "the quarter closes"));
    assert_eq!(deferred.until.unwrap().to_string(), later);
    assert_eq!(host.why.unwrap().text, format!("deferred by api until {later}: the quarter closes"));
    assert_eq!(host.enrolment.as_str(), "approved");
    let (_, _, text) = api.send(build("GET /metrics", "", "")).await;
    assert!(text.lines().any(|line| line == "os_upgrade_hosts_deferred 1"), "{text}");
    assert_eq!(api.call(END_DEFERRAL, r#"{"host":"h02"}"#).await, (204, Value::Null));
    assert_eq!(api.call(END_DEFERRAL, r#"{"host":"h02"}"#).await, (204, Value::Null), "once more");
    assert!(shown(&api, "h02").await.deferred.is_none());
    let (_, history) = api.call(HISTORY, "").await;
    let types: Vec<_> = history["items"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert_eq!(types, ["deferral-ended", "host-deferred", "hosts-approved"]);
}

#[tokio::test]
async fn invalid_decisions_are_refused() {
    let api = unapproved_site().await;
    let many: Vec<String> = (0..1_001).map(|number| format!("h{number}")).collect();
    for (request, body, expected, message) in [
        (APPROVE, "{}".to_owned(), 400, "missing field `hosts`"),
        (APPROVE, r#"{"hosts":"h01"}"#.to_owned(), 400, "invalid type"),
        (APPROVE, r#"{"hosts":[""]}"#.to_owned(), 400, "a name must not be empty"),
        (APPROVE, r#"{"hosts":[]}"#.to_owned(), 400, "1 to 1000"),
        (APPROVE, json!({ "hosts": many }).to_string(), 400, "1 to 1000"),
        (APPROVE, r#"{"hosts":["h01"],"all":true}"#.to_owned(), 400, "unknown field `all`"),
        (WITHDRAW, r#"{"host":"h01"}"#.to_owned(), 400, "missing field `reason`"),
        (WITHDRAW, r#"{"host":"h01","reason":" "}"#.to_owned(), 400, "give a reason"),
        (WITHDRAW, r#"{"host":"nobody","reason":"x"}"#.to_owned(), 404, "there is no host nobody"),
        (DEFER, r#"{"host":"h01"}"#.to_owned(), 400, "missing field `reason`"),
        (DEFER, r#"{"host":"nobody","reason":"x"}"#.to_owned(), 404, "there is no host nobody"),
        (
            DEFER,
            r#"{"host":"h01","reason":"x","until":"2020-01-01T00:00:00Z"}"#.to_owned(),
            409,
            "until: 2020-01-01T00:00:00Z has passed",
        ),
        (END_DEFERRAL, r#"{"host":"nobody"}"#.to_owned(), 404, "there is no host nobody"),
        (REMOVE, r#"{"host":"nobody","reason":"x"}"#.to_owned(), 404, "there is no host nobody"),
        (REMOVE, r#"{"host":"h01"}"#.to_owned(), 400, "missing field `reason`"),
    ] {
        let (status, answer) = api.call(request, &body).await;
        assert_eq!(status, expected, "{request} {body}: {answer}");
        let said = answer["errors"][0]["error-message"].as_str().unwrap();
        assert!(said.contains(message), "{said}");
    }
    assert!(api.site.published().state.enrolment.is_empty());
}

#[tokio::test]
async fn withdrawal_overrides_auto_approve() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    assert_eq!(shown(&api, "h01").await.enrolment.as_str(), "auto");
    assert_eq!(api.call(WITHDRAW, r#"{"host":"h01","reason":"x"}"#).await.0, 204);
    assert_eq!(shown(&api, "h01").await.enrolment.as_str(), "withdrawn");
}

/// Clients of HTTP take `.` and `..` out of a path, and `/` separates its segments.
#[tokio::test]
async fn hosts_of_any_name_have_a_path() {
    let names = [".", "..", "a/b", "%2E", "a b", "ä"];
    let mut site = TestSite::new(names);
    let records = vec![site.decide_record(&[Input::Settings(Settings::default()), put_config()])];
    let api = TestApi::new(site, &records).await;
    let paths = ["%7F.", "%7f..", "a%2Fb", "%252E", "a%20b", "%C3%A4"];
    for (name, path) in names.into_iter().zip(paths).chain([(".", "%2E"), ("..", "%2e%2e")]) {
        assert_eq!(shown(&api, path).await.hostname, name, "{path}");
    }
}
