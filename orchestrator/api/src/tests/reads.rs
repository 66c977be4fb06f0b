//! Reads: whole bodies.

use futures::FutureExt as _;
use os_upgrade_api_types::routes::health::Ready;
use os_upgrade_api_types::routes::hosts::Host;
use os_upgrade_api_types::routes::runs::RunInFull;
use os_upgrade_api_types::routes::state::State;
use os_upgrade_protocol::{Action, Outcome};
use os_upgrade_test_site::{cancel, put_config, trigger};

use super::*;
use crate::context::LARGE_HOSTS;

const STATE: &str = "GET /v1/state/os-upgrade";
const HOSTS: &str = "GET /v1/state/os-upgrade/hosts";

/// A site with a run that failed on its first host, and a run that is preparing.
fn failed_and_active() -> (TestSite, Vec<Committed>) {
    let mut site = TestSite::new(["h01", "h02"]);
    let mut records =
        vec![site.decide_record(&[put_config()]), site.fence(), site.decide_record(&[trigger("r1")])];
    records.push(site.send());
    records.push(site.reply(["h01", "h02"], Action::Prepare, &Outcome::Done));
    records.push(site.send());
    records.push(site.reply(["h01"], Action::Upgrade, &Outcome::error("disk full")));
    records.push(site.decide_record(&[trigger("r2")]));
    records.push(site.send());
    records.push(site.reply(["h02"], Action::Prepare, &Outcome::Done));
    (site, records)
}

#[tokio::test]
async fn empty_site() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    assert_eq!(
        api.call(STATE, "").await,
        (
            200,
            json!({
                "status": "idle",
                "next-upgrade-why": { "kind": "no-configuration", "text": "no run starts automatically: nothing is configured" },
                "hosts": [{
                    "hostname": "h01",
                    "why": {"kind": "not-announced", "text": "no worker has announced itself on it"},
                }],
            })
        )
    );
    assert_eq!(api.call("GET /v1/state/os-upgrade/runs", "").await, (200, json!({"items": []})));
}

#[tokio::test]
async fn hosts_that_need_a_reboot_say_so() {
    let mut site = TestSite::new(["h01", "h02"]);
    let seen = site.view.hosts.get_mut(&host("h02")).unwrap();
    seen.boot_id = Some("b7".to_owned());
    seen.reboot_required = Some("a new kernel".to_owned());
    site.view.hosts.get_mut(&host("h01")).unwrap().reboot_ineffective = Some("the old one runs".to_owned());
    let api = TestApi::new(site, &[]).await;
    let hosts: Vec<Host<'_>> = api.read(HOSTS).await;
    let said = |index: usize| (hosts[index].boot_id.as_deref(), hosts[index].reboot_required.as_deref());
    assert_eq!((said(0), said(1)), ((None, None), (Some("b7"), Some("a new kernel"))));
    let missed = |index: usize| hosts[index].reboot_ineffective.as_deref();
    assert_eq!((missed(0), missed(1)), (Some("the old one runs"), None));
    let (_, _, metrics) = api.send(build("GET /metrics", "", "")).await;
    for line in ["os_upgrade_hosts_reboot_required 1", "os_upgrade_hosts_reboot_ineffective 1"] {
        assert!(metrics.lines().any(|metric| metric == line), "{line}: {metrics}");
    }
}

/// Readers of the whole state get the very same bytes until it changes, and never older ones.
#[tokio::test]
async fn whole_state_is_rendered_once() {
    let (mut site, records) = failed_and_active();
    let api = TestApi::new(site.clone(), &records).await;
    let read = async || {
        let request = build(STATE, "application/json", "");
        to_bytes(api.router.clone().oneshot(request).await.unwrap().into_body(), usize::MAX).await.unwrap()
    };
    let mut is_shared = false;
    // A second may end between two reads.
    for _ in 0..10 {
        let (first, second) = (read().await, read().await);
        is_shared |= first.as_ptr() == second.as_ptr();
    }
    assert!(is_shared);
    let last = |bytes: &[u8]| {
        let state: State<'_> = serde_json::from_slice(bytes).unwrap();
        state.last_upgrade_info.unwrap().result
    };
    assert_eq!(last(&read().await).as_str(), "failed");
    site.decide_record(&[cancel()]);
    api.shown.store(Arc::new(published(&site)));
    assert_eq!(last(&read().await).as_str(), "cancelled");
}

/// Readers of a large site may get what was rendered a moment before, but see what this instance has changed.
#[tokio::test]
async fn whole_state_of_a_large_site_shows_changes() {
    let names: Vec<String> = (0..LARGE_HOSTS).map(|number| format!("h{number:03}")).collect();
    let site = || TestSite::new(names.iter().map(String::as_str));
    let api = TestApi::new(site(), &[]).await;
    let configured = async || !api.call(STATE, "").await.1["worker-applications"].is_null();
    assert!(!configured().await);
    let body = r#"{"worker-applications":[{"name":"os-upgrade-debian"}]}"#;
    assert_eq!(api.call("PUT /v1/config/os-upgrade", body).await.0, 201);
    tokio::time::pause();
    assert!(configured().await);
    // Somebody else has deleted it, and what is refused here changes nothing.
    api.shown.store(Arc::new(published(&site())));
    assert_eq!(api.call("PUT /v1/config/os-upgrade", "{").await.0, 400);
    assert!(configured().await);
    tokio::time::advance(Duration::from_secs(2)).await;
    assert!(!configured().await);
}

/// An API whose state is at record `recorded`, over an empty store.
async fn ahead(site: &TestSite, recorded: u64) -> (TestApi, Projector) {
    let (directory, projector) = store().await;
    let shown = Arc::new(ArcSwap::from_pointee(PublishedState { recorded, ..published(site) }));
    let handle = SiteHandle::new(shown, mpsc::channel(1).0);
    (TestApi::over(handle, projector.history().await.unwrap(), directory), projector)
}

#[tokio::test]
async fn history_catches_up_with_state() {
    let (site, records) = failed_and_active();
    let (api, mut projector) = ahead(&site, records.last().unwrap().sequence).await;
    let mut answer = std::pin::pin!(api.read::<RunInFull<'_>>("GET /v1/state/os-upgrade/runs/r2"));
    assert!(futures::poll!(&mut answer).is_pending());
    project(&mut projector, &records).await;
    assert_eq!(answer.await.run.id, "r2");
}

#[tokio::test]
async fn stalled_history_is_shown_as_is() {
    let (site, records) = failed_and_active();
    let (api, mut projector) = ahead(&site, u64::MAX).await;
    project(&mut projector, &records).await;
    let waits = || api.history.wait_for(u64::MAX).now_or_never().is_none();
    assert!(waits());
    // The same records cannot be applied twice.
    projector.apply(&streams(), None, &records).await.unwrap_err();
    assert!(!waits());
    project(&mut projector, &[]).await;
    assert!(waits());
    drop(projector);
    assert!(!waits());
    assert_eq!(api.call("GET /v1/state/os-upgrade/runs?count=true", "").await, (200, json!({ "count": 2 })));
}

#[tokio::test]
async fn state_of_a_site() {
    let (site, records) = failed_and_active();
    let api = TestApi::new(site, &records).await;
    let expected = json!({
        "worker-applications": [{"name": "os-upgrade-debian"}],
        "status": "preparing",
        "scheduled-workers": [
            {"host": "h01", "application": "os-upgrade-debian"},
            {"host": "h02", "application": "os-upgrade-debian"},
        ],
        "current-upgrade-info": {
            "id": "r2",
            "start-time": "2026-11-21T05:00:08Z",
            "not-after": "2026-11-21T09:00:08Z",
            "counts": {"prepared": 1, "preparing": 1},
            "hosts": [
                {"hostname": "h01", "status": "preparing", "since": "2026-11-21T05:00:09Z"},
                {"hostname": "h02", "status": "prepared", "since": "2026-11-21T05:00:10Z"},
            ],
        },
        "last-upgrade-info": {
            "id": "r1",
            "start-time": "2026-11-21T05:00:03Z",
            "end-time": "2026-11-21T05:00:07Z",
            "result": "failed",
            "counts": {"failed": 1, "not-reached": 1},
            "hosts": [
                {
                    "hostname": "h01",
                    "status": "failed",
                    "since": "2026-11-21T05:00:07Z",
                    "why": {"kind": "worker-error", "action": "upgrade", "message": "disk full", "text": "upgrade failed: disk full"},
                },
                {
                    "hostname": "h02",
                    "status": "not-reached",
                    "since": "2026-11-21T05:00:07Z",
                    "why": {"kind": "run-failed", "host": "h01", "text": "the run was ended by the failure of h01"},
                },
            ],
        },
        "next-upgrade-why": { "kind": "no-windows", "text": "no run starts automatically: no maintenance windows are configured" },
        "hosts": [
            {
                "hostname": "h01",
                "status": "preparing",
                "why": {"kind": "reply-awaited", "action": "prepare", "until": "2026-11-21T09:00:08Z", "text": "its worker has not answered prepare yet"},
            },
            {
                "hostname": "h02",
                "status": "prepared",
                "why": {"kind": "hosts-unprepared", "hosts": 1, "until": "2026-11-21T09:00:08Z", "text": "waiting until 1 more host is prepared"},
            },
        ],
    });
    assert_eq!(api.call(STATE, "").await, (200, expected));
}

#[tokio::test]
async fn hosts_with_versions_and_blockers() {
    let (site, records) = failed_and_active();
    let api = TestApi::new(site, &records).await;
    let first = json!({
        "hostname": "h01",
        "applications": ["os-upgrade-debian"],
        "group": "default",
        "reachability": "unknown",
        "enrolment": "auto",
        "last-result": {
            "run": "r1",
            "status": "failed",
            "why": {"kind": "worker-error", "action": "upgrade", "message": "disk full", "text": "upgrade failed: disk full"},
        },
        "versions": {"linux": "6.12.9"},
        "versions-time": "2026-11-20T12:00:00Z",
        "slot": {"group": "default", "since": "2026-11-21T05:00:05Z", "run": "r1"},
        "status": "preparing",
        "since": "2026-11-21T05:00:09Z",
        "why": {"kind": "reply-awaited", "action": "prepare", "until": "2026-11-21T09:00:08Z", "text": "its worker has not answered prepare yet"},
    });
    let second = json!({
        "hostname": "h02",
        "applications": ["os-upgrade-debian"],
        "group": "default",
        "reachability": "unknown",
        "enrolment": "auto",
        "last-result": {
            "run": "r1",
            "status": "not-reached",
            "why": {"kind": "run-failed", "host": "h01", "text": "the run was ended by the failure of h01"},
            "not-reached": 1,
        },
        "status": "prepared",
        "since": "2026-11-21T05:00:10Z",
        "why": {"kind": "hosts-unprepared", "hosts": 1, "until": "2026-11-21T09:00:08Z", "text": "waiting until 1 more host is prepared"},
    });
    assert_eq!(api.call(HOSTS, "").await, (200, json!([first, second])));
    let page = json!({"items": [first], "next": "h01"});
    assert_eq!(api.call(&format!("{HOSTS}?limit=1"), "").await, (200, page));
    assert_eq!(api.call(&format!("{HOSTS}/h02"), "").await, (200, second));

    // Versions may be published before the worker is announced.
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let unseen = json!({
        "hostname": "h01",
        "applications": [],
        "group": "default",
        "reachability": "unknown",
        "enrolment": "auto",
        "versions": {"linux": "6.12.9"},
        "without-worker": true,
        "versions-time": "2026-11-20T12:00:00Z",
        "why": {"kind": "not-announced", "text": "no worker has announced itself on it"},
    });
    assert_eq!(api.call(HOSTS, "").await, (200, json!([unseen])));
}

fn list_item(id: &str) -> Value {
    let rollout = rollout(json!({}));
    match id {
        "r1" => json!({
            "id": "r1",
            "trigger": "operator",
            "actor": "api",
            "start-time": "2026-11-21T05:00:03Z",
            "not-after": "2026-11-21T09:00:03Z",
            "end-time": "2026-11-21T05:00:07Z",
            "result": "failed",
            "phase": "upgrading",
            "stopping": {"kind": "failed", "host": "h01"},
            "rollout": rollout,
            "counts": {"failed": 1, "not-reached": 1},
        }),
        _ => json!({
            "id": "r2",
            "trigger": "operator",
            "actor": "api",
            "start-time": "2026-11-21T05:00:08Z",
            "not-after": "2026-11-21T09:00:08Z",
            "phase": "preparing",
            "rollout": rollout,
            "counts": {"prepared": 1, "preparing": 1},
        }),
    }
}

#[tokio::test]
async fn runs_are_paged_newest_first() {
    let (site, records) = failed_and_active();
    let api = TestApi::new(site, &records).await;
    let (first, second) = (list_item("r2"), list_item("r1"));
    for (query, expected) in [
        ("", json!({"items": [first, second]})),
        ("?limit=1", json!({"items": [first], "next": "r2"})),
        ("?limit=1&after=r2", json!({"items": [second]})),
        ("?after=r1", json!({"items": []})),
    ] {
        let found = api.call(&format!("GET /v1/state/os-upgrade/runs{query}"), "").await;
        assert_eq!(found, (200, expected), "{query}");
    }
}

/// `keys` lists only the keys; `count` returns the number of entries on all pages.
#[tokio::test]
async fn keys_and_counts_of_lists() {
    let (site, records) = failed_and_active();
    let api = TestApi::new(site, &records).await;
    assert_eq!(api.call("PUT /v1/config/os-upgrade", "{}").await.0, 204);
    for (list, query, expected) in [
        ("os-upgrade/hosts", "?keys=true", json!(["h01", "h02"])),
        ("os-upgrade/hosts", "?keys", json!(["h01", "h02"])),
        ("os-upgrade/hosts", "?count=true", json!({"count": 2})),
        ("os-upgrade/hosts", "?count=true&keys=true", json!({"count": 2})),
        ("os-upgrade/hosts", "?keys=true&limit=1", json!({"items": ["h01"], "next": "h01"})),
        ("os-upgrade/hosts", "?keys=true&limit=2", json!({"items": ["h01", "h02"]})),
        ("os-upgrade/hosts", "?keys=true&after=h01", json!({"items": ["h02"]})),
        ("os-upgrade/hosts", "?keys=true&after=h011", json!({"items": ["h02"]})),
        ("os-upgrade/hosts", "?after=h02", json!({"items": []})),
        ("os-upgrade/hosts", "?count=true&limit=1", json!({"count": 2})),
        ("os-upgrade/runs", "?keys=true", json!({"items": ["r2", "r1"]})),
        ("os-upgrade/runs", "?keys=true&limit=1", json!({"items": ["r2"], "next": "r2"})),
        ("os-upgrade/runs", "?keys=true&after=r2", json!({"items": ["r1"]})),
        ("os-upgrade/runs", "?count=true&limit=1", json!({"count": 2})),
        ("os-upgrade/config-history", "?keys=true", json!({"items": ["11.0", "1.0"]})),
        ("os-upgrade/config-history", "?keys=true&limit=1", json!({"items": ["11.0"], "next": "11.0"})),
        ("os-upgrade/config-history", "?count=true", json!({"count": 2})),
        ("fleet-lock/history", "?count=true", json!({"count": 0})),
    ] {
        let found = api.call(&format!("GET /v1/state/{list}{query}"), "").await;
        assert_eq!(found, (200, expected), "{list}{query}");
    }
    for list in ["os-upgrade/hosts", "os-upgrade/runs", "os-upgrade/config-history", "fleet-lock/history"] {
        for query in ["?keys=false", "?count=1", "?keys=no", "?limit=0", "?limit=501"] {
            assert_eq!(api.call(&format!("GET /v1/state/{list}{query}"), "").await.0, 400, "{list}{query}");
        }
    }
}

#[tokio::test]
async fn one_run_with_its_hosts_and_events() {
    let (site, records) = failed_and_active();
    let api = TestApi::new(site, &records).await;
    let mut expected = list_item("r1");
    expected["hosts"] = json!([
        {
            "hostname": "h01",
            "application": "os-upgrade-debian",
            "group": "default",
            "status": "failed",
            "since": "2026-11-21T05:00:07Z",
            "why": {"kind": "worker-error", "action": "upgrade", "message": "disk full", "text": "upgrade failed: disk full"},
            "start-time": "2026-11-21T05:00:05Z",
            "end-time": "2026-11-21T05:00:07Z",
            "command": {"action": "upgrade", "sequence": 6},
        },
        {
            "hostname": "h02",
            "application": "os-upgrade-debian",
            "group": "default",
            "status": "not-reached",
            "since": "2026-11-21T05:00:07Z",
            "why": {"kind": "run-failed", "host": "h01", "text": "the run was ended by the failure of h01"},
            "end-time": "2026-11-21T05:00:07Z",
            "command": {"action": "prepare", "sequence": 3},
        },
    ]);
    let last = "GET /v1/state/os-upgrade/runs/r1?events-after=7.2";
    let (status, found) = api.call(last, "").await;
    let id = found["events"][0]["id"].clone();
    expected["events"] = json!([
        {"id": id, "time": "2026-11-21T05:00:07.000Z", "kind": "run-ended", "run": "r1", "result": "failed",
         "counts": {"failed": 1, "not-reached": 1}},
    ]);
    assert_eq!((status, found), (200, expected));
    let all: RunInFull<'_> = api.read("GET /v1/state/os-upgrade/runs/r1").await;
    let kinds = |run: &RunInFull<'_>| -> String {
        let kinds = run.events.iter().map(|event| event.read().unwrap().what.kind());
        kinds.collect::<Vec<_>>().join(" ")
    };
    let expected = "run-started host host host host run-upgrading host host host run-stopping host run-ended";
    assert_eq!((&*kinds(&all), all.events_next), (expected, None));
    let some: RunInFull<'_> = api.read("GET /v1/state/os-upgrade/runs/r1?events-limit=2").await;
    assert_eq!((&*kinds(&some), some.events_next.as_deref()), ("run-started host", Some("4.0")));
    // The ids are those of the stream, which goes on after them.
    let id = id.as_str().unwrap();
    assert_eq!(id.split_once('.').unwrap().1, "7.3", "{id}");
}

#[tokio::test]
async fn health() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    assert_eq!(api.call("GET /healthz", "").await, (200, json!({"healthy": true})));
    let Ready { ready, zone_data, .. } = api.read("GET /readyz").await;
    assert!(ready);
    let built_in = ("built-in", Some(chrono_tz::IANA_TZDB_VERSION));
    assert_eq!((&*zone_data.source, zone_data.version.as_deref()), built_in);
    let (api, _calls) = TestApi::silent(Readiness::default()).await;
    assert_eq!(api.call("GET /healthz", "").await, (200, json!({"healthy": true})));
    assert_eq!(api.call("GET /readyz", "").await, (503, error("starting")));
    let halted = Readiness::Halted { kind: "other-version", why: "it is newer".to_owned() };
    let (api, _calls) = TestApi::silent(halted).await;
    let answer =
        json!({"errors": [{"error-message": "it is newer", "error-info": {"kind": "other-version"}}]});
    assert_eq!(api.call("GET /readyz", "").await, (503, answer));
}

/// How many messages of the journal the history lacks.
#[tokio::test]
async fn history_that_is_behind_says_how_far() {
    let mut site = TestSite::new([]);
    let records = [site.decide_record(&[put_config()])];
    let api = TestApi::new(site, &records).await;
    let metric = async || {
        let (_, _, metrics) = api.send(build("GET /metrics", "application/json", "")).await;
        let line = metrics.lines().find(|line| line.starts_with("os_upgrade_history_behind ")).unwrap();
        line.rsplit_once(' ').unwrap().1.to_owned()
    };
    let behind = async || api.read::<Ready<'static>>("GET /readyz").await.history_behind;
    assert_eq!(behind().await, None);
    assert_eq!(metric().await, "0");

    let mut shown = PublishedState::clone(&api.shown.load());
    shown.recorded = records[0].sequence + 3;
    api.shown.store(Arc::new(shown));
    assert_eq!(behind().await, Some(3), "writes are accepted nevertheless");
    assert_eq!(metric().await, "3");
}

/// Large answers are serialized on other threads, with the same result.
#[tokio::test]
async fn large_site() {
    let names: Vec<String> = (0..500).map(|number| format!("h{number:02}")).collect();
    let mut site = TestSite::new(names.iter().map(String::as_str));
    let records = [site.decide_record(&[put_config()]), site.fence(), site.decide_record(&[trigger("r1")])];
    let api = TestApi::new(site, &records).await;
    let state: State<'_> = api.read(STATE).await;
    assert_eq!(state.scheduled_workers.unwrap().len(), 500);
    assert_eq!(state.current_upgrade_info.unwrap().hosts.len(), 500);
    assert_eq!(api.read::<Vec<Host<'_>>>(HOSTS).await.len(), 500);
}
