//! The reboot queue: its entries, operators' control of them, and the queue in the state, the history and the metrics.

use os_upgrade_api_types::routes::hosts::Host;
use os_upgrade_api_types::routes::reboot_queue::{Entry, EntryIndex};
use os_upgrade_api_types::routes::state::State;
use os_upgrade_kernel::Settings;
use os_upgrade_test_site::put_config;

use super::*;

const LIST: &str = "GET /v1/state/reboot-queue";
const ADD: &str = "POST /v1/state/reboot-queue/add";
const CANCEL: &str = "POST /v1/state/reboot-queue/cancel";
const CANCEL_ALL: &str = "POST /v1/state/reboot-queue/cancel-all";
const GIVE_UP: &str = "POST /v1/state/reboot-queue/give-up";
const DISABLE: &str = "POST /v1/state/reboot-queue/disable";
const ENABLE: &str = "POST /v1/state/reboot-queue/enable";
const RESET_BACKOFF: &str = "POST /v1/state/reboot-queue/reset-backoff";
const IS_ENABLED: &str = "GET /v1/state/reboot-queue/is-enabled";
const HISTORY: &str = "GET /v1/state/reboot-queue/history";
const STATE: &str = "GET /v1/state/os-upgrade?fields=reboot-queue";

/// A site whose workers reboot their hosts on request, but for those of `others`.
fn site<'a>(hosts: impl IntoIterator<Item = &'a str>, others: &[&str]) -> TestSite {
    let mut site = TestSite::new(hosts);
    let names: Vec<HostName> = site.view.hosts.keys().cloned().collect();
    for name in names {
        let seen = site.view.hosts.get_mut(&name).unwrap();
        seen.boot_id = Some(format!("boot-of-{name}"));
        seen.reboots_on_request = !others.contains(&name.as_str());
    }
    site.view.has_read_control = true;
    site
}

/// An API over a site with a disabled queue.
async fn disabled() -> TestApi {
    let api = TestApi::new(site(["h01", "h02", "h03", "old"], &["old"]), &[]).await;
    assert_eq!(api.call(DISABLE, r#"{"reason":"a freeze"}"#).await, (204, Value::Null));
    api
}

async fn entries(api: &TestApi) -> Vec<Entry<'static>> {
    api.read(LIST).await
}

fn fields(items: &Value, field: &str) -> Vec<Value> {
    items.as_array().unwrap().iter().map(|item| item[field].clone()).collect()
}

#[tokio::test]
async fn entries_are_shown_with_what_keeps_them() {
    let api = disabled().await;
    assert_eq!(api.call(LIST, "").await, (200, json!([])));
    let body = r#"{"nodes":["h02","h01"],"reason":"a new kernel"}"#;
    assert_eq!(api.call(&format!("{ADD}?validate=true"), body).await, (204, Value::Null));
    assert_eq!(api.call(LIST, "").await, (200, json!([])));
    let (status, added) = api.call(ADD, body).await;
    let entry = json!({
        "index": "0",
        "node": "h02",
        "status": "queued",
        "last_transition_time": "2026-11-21T05:00:03Z",
        "drain_backoff_count": 0,
        "added_at": "2026-11-21T05:00:03Z",
        "added_by": "api",
        "reason": "a new kernel",
        "cancel_requested": false,
        "required": false,
        "why": { "kind": "disabled", "text": "the queue is disabled" },
        "of_queue": true,
    });
    assert_eq!((status, &added[0], &added[1]["node"]), (201, &entry, &json!("h01")));
    assert_eq!(api.call(LIST, "").await, (200, added.clone()));
    assert_eq!(api.call(&format!("{LIST}/0"), "").await, (200, entry));
    for unknown in ["2", "00", "x", "-1"] {
        let message = format!("the reboot queue has no entry {unknown:?}");
        assert_eq!(api.call(&format!("{LIST}/{unknown}"), "").await, (404, error(&message)));
    }
    assert_eq!(api.call(IS_ENABLED, "").await, (200, json!({"enabled": false})));
    let brief = json!({"enabled": false, "counts": {"queued": 2}, "why": {"kind": "disabled", "text": "the queue is disabled"}});
    assert_eq!(api.call(STATE, "").await, (200, json!({ "reboot-queue": brief })));

    assert_eq!(api.call(ENABLE, "").await, (204, Value::Null));
    assert_eq!(api.call(IS_ENABLED, "").await, (200, json!({"enabled": true})));
    let entries = entries(&api).await;
    let kind = |why: &Option<Why>| json!(why)["kind"].as_str().unwrap().to_owned();
    let told = entries.iter().map(|entry| (entry.status.as_str(), kind(&entry.why), entry.of_queue));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [("rebooting", "command-unsent".to_owned(), false), ("queued", "full".to_owned(), true)]
    );
    assert_eq!(entries[0].boot_id.as_deref(), Some("boot-of-h02"));
    let brief = api.read::<State<'_>>(STATE).await.reboot_queue.unwrap();
    assert_eq!((brief.enabled, kind(&brief.why)), (true, "full".to_owned()));
    assert_eq!(json!(brief.counts), json!({"queued": 1, "rebooting": 1}));
}

#[tokio::test]
async fn lists_are_in_the_order_of_numbers() {
    let hosts: Vec<String> = (0..12).map(|number| format!("h{number:02}")).collect();
    let api = TestApi::new(site(hosts.iter().map(String::as_str), &[]), &[]).await;
    assert_eq!(api.call(DISABLE, "").await.0, 204);
    assert_eq!(api.call(ADD, &json!({ "nodes": hosts }).to_string()).await.0, 201);
    let keys =
        |from: u64, to| Value::from((from..to).map(|index: u64| index.to_string()).collect::<Vec<_>>());
    assert_eq!(api.call(&format!("{LIST}?keys=true"), "").await, (200, keys(0, 12)));
    assert_eq!(api.call(&format!("{LIST}?count=true"), "").await, (200, json!({"count": 12})));
    let page = |from, to, next: Option<&str>| match next {
        Some(next) => json!({ "items": keys(from, to), "next": next }),
        None => json!({ "items": keys(from, to) }),
    };
    let pages = [
        ("limit=9", page(0, 9, Some("8"))),
        ("after=8&limit=2", page(9, 11, Some("10"))),
        ("after=10", page(11, 12, None)),
    ];
    for (query, expected) in pages {
        assert_eq!(api.call(&format!("{LIST}?keys=true&{query}"), "").await, (200, expected), "{query}");
    }
    assert_eq!(api.call(&format!("{LIST}?after=x"), "").await.0, 400);
}

#[tokio::test]
async fn nodes_that_cannot_be_queued_are_named() {
    let api = disabled().await;
    assert_eq!(api.call(ADD, r#"{"nodes":["h03"]}"#).await.0, 201);
    let withdraw = r#"{"host":"h02","reason":"sold"}"#;
    assert_eq!(api.call("POST /v1/state/os-upgrade/withdraw-host", withdraw).await.0, 204);
    for (body, expected, message) in [
        (r#"{"nodes":[]}"#, 400, "no host is named"),
        ("{}", 400, "missing field `nodes`"),
        (r#"{"nodes":["h01","h01"]}"#, 400, "h01 is named twice; nothing is queued"),
        (r#"{"nodes":["h01",""]}"#, 400, "a name must not be empty"),
        (r#"{"nodes":["h01"],"reason":" "}"#, 400, "give a reason"),
        (
            r#"{"nodes":["h01","h98","h99"]}"#,
            404,
            "h98, h99 have announced no worker at this site; nothing is queued",
        ),
        (r#"{"nodes":["h01","h02"]}"#, 409, "h02 is not approved, or was withdrawn; nothing is queued"),
        (
            r#"{"nodes":["h01","old"]}"#,
            409,
            "old has no worker, or one that does not reboot it on request; nothing is queued",
        ),
        (r#"{"nodes":["h01","h03"]}"#, 409, "h03 waits already, as entry 0; nothing is queued"),
    ] {
        let (status, answer) = api.call(ADD, body).await;
        let said = answer["errors"][0]["error-message"].as_str().unwrap();
        assert!(status == expected && said.contains(message), "{body}: {status} {said}");
    }
    assert_eq!(entries(&api).await.iter().map(|entry| &*entry.node).collect::<Vec<_>>(), ["h03"]);
}

#[tokio::test]
async fn too_many_nodes_are_refused() {
    let api = disabled().await;
    let names = |length: usize| -> String {
        let names: Vec<String> = (0..100_000).map(|number| format!("{number:0length$}")).collect();
        json!({ "nodes": names }).to_string()
    };
    let (status, answer) = api.call(ADD, &names(5)).await;
    let message = "the reboot queue has room for 20000 more entries of 20000; nothing is queued";
    assert_eq!((status, answer["errors"][0]["error-message"].as_str()), (409, Some(message)));
    let (status, answer) = api.call(ADD, &names(20)).await;
    let message = "the body exceeds 1048576 bytes";
    assert_eq!((status, answer["errors"][0]["error-message"].as_str()), (413, Some(message)));
    assert_eq!(api.call(LIST, "").await, (200, json!([])));
}

#[tokio::test]
async fn entries_are_cancelled_and_given_up() {
    let api = TestApi::new(site(["h01", "h02", "h03"], &[]), &[]).await;
    assert_eq!(api.call(ADD, r#"{"nodes":["h01","h02","h03"]}"#).await.0, 201);
    for (request, body, expected, message) in [
        (CANCEL, r#"{"index":"9"}"#, 404, "the reboot queue has no entry 9"),
        (CANCEL, r#"{"index":9}"#, 400, "index: invalid type"),
        (CANCEL, r#"{"index":"+1"}"#, 400, "is not the index of an entry"),
        (GIVE_UP, r#"{"index":"0"}"#, 400, "missing field `reason`"),
        (GIVE_UP, r#"{"index":"9","reason":"x"}"#, 404, "the reboot queue has no entry 9"),
        (GIVE_UP, r#"{"index":"1","reason":"x"}"#, 409, "entry 1 is queued: cancel it instead"),
        // Its command is on its way.
        (GIVE_UP, r#"{"index":"0","reason":"x"}"#, 409, "is not known yet: try again in a moment"),
    ] {
        let (status, answer) = api.call(request, body).await;
        let said = answer["errors"][0]["error-message"].as_str().unwrap();
        assert!(status == expected && said.contains(message), "{body}: {status} {said}");
    }
    let cancel = r#"{"index":"1","reason":"not tonight"}"#;
    assert_eq!(api.call(&format!("{CANCEL}?validate=true"), cancel).await, (204, Value::Null));
    assert_eq!(api.call(&format!("{LIST}?count=true"), "").await.1, json!({"count": 3}));
    assert_eq!(api.call(CANCEL, cancel).await, (204, Value::Null));
    let left: Vec<_> = entries(&api).await.iter().map(|entry| entry.index).collect();
    assert_eq!(left, [EntryIndex(0), EntryIndex(2)]);
    assert_eq!(api.call(CANCEL_ALL, "").await, (204, Value::Null));
    let entries = entries(&api).await;
    let told = entries.iter().map(|entry| (entry.status.as_str(), entry.cancel_requested));
    assert_eq!(told.collect::<Vec<_>>(), [("rebooting", true)]);
    assert_eq!(api.call(RESET_BACKOFF, "").await, (204, Value::Null));
}

#[tokio::test]
async fn the_history_says_who_did_what() {
    let api = disabled().await;
    assert_eq!(api.call(ADD, r#"{"nodes":["h01"],"reason":" a new kernel "}"#).await.0, 201);
    assert_eq!(api.call(CANCEL, r#"{"index":"0","reason":"not tonight"}"#).await.0, 204);
    let (status, history) = api.call(HISTORY, "").await;
    let cancelled = json!({"kind": "cancelled", "actor": "api", "reason": "not tonight"});
    let expected = [
        json!({"type": "reboot", "index": 0, "host": "h01", "event": {"kind": "removed"}}),
        json!({"type": "reboot", "index": 0, "host": "h01", "event": cancelled}),
        json!({"type": "reboots-queued", "hosts": ["h01"], "actor": "api", "reason": "a new kernel"}),
        json!({"type": "reboot-queue-switched", "enabled": false, "actor": "api", "reason": "a freeze"}),
    ];
    assert_eq!((status, fields(&history["items"], "fact")), (200, expected.to_vec()));
    assert_eq!(fields(&history["items"], "actor")[1..], ["api", "api", "api"]);
    assert_eq!(api.call(&format!("{HISTORY}?count=true"), "").await, (200, json!({"count": 4})));
}

#[tokio::test]
async fn hosts_that_wait_for_approval_are_not_queued() {
    let mut site = site(["h01"], &[]);
    let records = vec![site.decide_record(&[Input::Settings(Settings::default()), put_config()])];
    let api = TestApi::new(site, &records).await;
    let (status, answer) = api.call(ADD, r#"{"nodes":["h01"]}"#).await;
    let info = json!({"kind": "not-approved", "hosts": ["h01"], "count": 1});
    assert_eq!((status, &answer["errors"][0]["error-info"]), (409, &info));
    assert_eq!(api.call(STATE, "").await, (200, json!({})));
    assert!(api.read::<Host<'_>>("GET /v1/state/os-upgrade/hosts/h01").await.reboots_on_request);
}

/// `/metrics` of an instance that has read the state.
async fn metrics(api: &TestApi) -> String {
    let read = PublishedState { is_read: true, ..api.site.published().as_ref().clone() };
    api.shown.store(Arc::new(read));
    api.send(build("GET /metrics", "", "")).await.2
}

#[tokio::test]
async fn the_queue_in_metrics_slots_and_hosts() {
    let api = TestApi::new(site(["h01", "h02", "h03"], &[]), &[]).await;
    assert_eq!(api.call(ADD, r#"{"nodes":["h01","h02"]}"#).await.0, 201);
    let text = metrics(&api).await;
    for line in [
        "os_upgrade_reboot_queue_enabled 1",
        "os_upgrade_reboot_queue_running 1",
        "os_upgrade_reboot_queue_entries 2",
        r#"os_upgrade_reboot_queue_items{status="queued"} 1"#,
        r#"os_upgrade_reboot_queue_items{status="draining"} 0"#,
        r#"os_upgrade_reboot_queue_items{status="rebooting"} 1"#,
        r#"os_upgrade_reboot_queue_items{status="cancelled"} 0"#,
        r#"os_upgrade_node_reboot_status{node="h01",status="rebooting"} 1"#,
        r#"os_upgrade_node_reboot_status{node="h01",status="queued"} 0"#,
        r#"os_upgrade_node_reboot_status{node="h02",status="queued"} 1"#,
        "os_upgrade_reboot_queue_failed 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
    assert!(!text.contains(r#"node="h03""#), "{text}");
    let longest =
        text.lines().find_map(|line| line.strip_prefix("os_upgrade_reboot_queue_oldest_rebooting_seconds "));
    assert!(longest.unwrap().parse::<u64>().unwrap() > 0, "the test's clock is behind: {text}");

    let (_, slots) = api.call("GET /v1/state/fleet-lock", "").await;
    let holder = &slots["groups"][0]["holders"][0];
    let expected = json!({
        "id": "h01", "since": "2026-11-21T05:00:01Z", "on-behalf-of": ["reboot-queue"], "entry": "0",
        "reason": "rebooting for entry 0 of the reboot queue", "stuck": holder["stuck"],
    });
    assert_eq!(holder, &expected);
    let (_, hosts) = api.call("GET /v1/state/os-upgrade/hosts", "").await;
    let entry = |index: &str, status: &str| json!({ "index": index, "status": status });
    assert_eq!(fields(&hosts, "reboot-queue"), [entry("0", "rebooting"), entry("1", "queued"), Value::Null]);
    let (_, shown) = api.call("GET /v1/state/os-upgrade/hosts/h02", "").await;
    assert_eq!(shown["reboot-queue"], entry("1", "queued"));
    assert_eq!(api.call(DISABLE, "").await.0, 204);
    let text = metrics(&api).await;
    assert!(
        text.contains("os_upgrade_reboot_queue_enabled 0\n")
            && text.contains("os_upgrade_reboot_queue_running 0\n")
    );
}
