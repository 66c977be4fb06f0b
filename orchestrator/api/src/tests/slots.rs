//! Holders and waiters of slots, and operators' actions on them.

use os_upgrade_api_types::routes::slots::Slots;
use os_upgrade_api_types::routes::state::State;
use os_upgrade_kernel::{
    ClientId, JobDone, LockOutcome, LockProvider, OnFailure, Reclaim, Settings, SlotJob, SlotOperation,
    SlotOrder,
};
use os_upgrade_protocol::{Action, GroupName, Outcome};
use os_upgrade_test_site::{put_config, trigger};

use super::*;

const STATE: &str = "GET /v1/state/fleet-lock";
const HOLD: &str = "POST /v1/state/fleet-lock/hold";
const RELEASE: &str = "POST /v1/state/fleet-lock/release";

/// A site with two slots, whose host h01 has failed in run r1, and its records.
pub(super) fn failed() -> (TestSite, Vec<Committed>) {
    let mut site = TestSite::new(["h01", "h02"]);
    let groups = [(GroupName::new("default").unwrap(), 2)].into();
    let settings =
        Settings { groups, on_failure: OnFailure::Hold, auto_approve: true, ..Settings::default() };
    let records = [Input::Settings(settings), put_config()].map(|input| site.decide_record(&[input]));
    let mut records = Vec::from(records);
    records.push(site.fence());
    records.push(site.decide_record(&[trigger("r1")]));
    records.push(site.send());
    records.push(site.reply(["h01", "h02"], Action::Prepare, &Outcome::Done));
    records.push(site.send());
    records.push(site.reply(["h01"], Action::Upgrade, &Outcome::error("no space left")));
    (site, records)
}

fn about(id: &str, reason: &str) -> String {
    json!({ "group": "default", "id": id, "reason": reason }).to_string()
}

fn claim(id: &str) -> String {
    json!({ "client_params": { "id": id, "group": "default" } }).to_string()
}

fn slots_json(state: &os_upgrade_kernel::State, now: chrono::DateTime<chrono::Utc>) -> Value {
    serde_json::to_value(resources::slots::slots(state, now)).unwrap()
}

impl TestApi {
    async fn lock(&self, id: &str) -> u16 {
        self.ask_as_client("/v1/pre-reboot", id).await
    }

    async fn unlock(&self, id: &str) -> u16 {
        self.ask_as_client("/v1/steady-state", id).await
    }

    async fn ask_as_client(&self, path: &str, id: &str) -> u16 {
        let request = Request::post(path).header("fleet-lock-protocol", "true");
        self.send(request.body(Body::from(claim(id))).unwrap()).await.0
    }

    async fn holders(&self) -> Vec<String> {
        let slots: Slots<'_> = self.read(STATE).await;
        slots.groups[0].holders.iter().map(|holder| holder.id.to_string()).collect()
    }
}

/// Who waits behind a host that failed may wait in vain.
#[tokio::test]
async fn refusal_says_that_a_failed_host_keeps_its_slot() {
    let (site, records) = failed();
    assert!(site.state.run.is_none(), "the run has ended");
    let api = TestApi::new(site, &records).await;
    assert_eq!(api.call(HOLD, &about("rack-7", "a new disk")).await, (204, Value::Null));
    let request = Request::post("/v1/pre-reboot").header("fleet-lock-protocol", "true");
    let (status, _, body) = api.send(request.body(Body::from(claim("node-7"))).unwrap()).await;
    let value = serde_json::from_str::<Value>(&body).unwrap()["value"].as_str().unwrap().to_owned();
    assert_eq!(status, 409);
    let kept = "; h01 did not succeed, and keeps its slot until an operator has looked after it";
    assert!(value.starts_with("all 2 slots are held by h01 since ") && value.ends_with(kept), "{value}");
}

#[tokio::test]
async fn holders_and_waiters_are_shown() {
    let (site, records) = failed();
    let api = TestApi::new(site, &records).await;
    assert_eq!(api.call(HOLD, &about("rack-7", "a new disk")).await, (204, Value::Null));
    assert_eq!(api.lock("rack-7").await, 200);
    // The test's clock is behind: read now, every slot is held for long, and waiters are forgotten.
    assert_eq!(api.lock("node-7").await, 409);
    let slots: Slots<'_> = api.read(STATE).await;
    let failed = "failed in run r1 (upgrade failed: no space left)";
    let hold = json!({ "actor": "api", "reason": "a new disk", "since": "2026-11-21T05:00:09Z" });
    let expected = json!({
        "provider": "embedded",
        "reclaim": "never",
        "groups": [{
            "group": "default",
            "slots": 2,
            "held": 2,
            "excess": 0,
            "holders": [
                {
                    "id": "h01", "since": "2026-11-21T05:00:06Z", "on-behalf-of": ["run"], "run": "r1",
                    "reason": failed, "stuck": false, "kept": true
                },
                {
                    "id": "rack-7", "since": "2026-11-21T05:00:09Z", "on-behalf-of": ["client", "operator"],
                    "hold": hold, "reason": "taken by a FleetLock client; held by api: a new disk", "stuck": false
                },
            ],
            "waiters": [{
                "id": "node-7", "kind": "client", "since": "2026-11-21T05:00:11Z",
                "last-asked": "2026-11-21T05:00:11Z"
            }],
        }],
    });
    let at = "2026-11-21T05:01:00Z".parse().unwrap();
    let published = api.site.published();
    assert_eq!(slots.groups[0].held, 2);
    assert_eq!(slots_json(&published.state, at), expected);
    let late = at + chrono::TimeDelta::hours(2);
    let later = resources::slots::slots(&published.state, late);
    assert!(later.groups[0].holders[0].stuck);
    assert!(later.groups[0].waiters.is_empty());
}

#[tokio::test]
async fn operators_hold_and_release_slots() {
    let (site, records) = failed();
    let api = TestApi::new(site, &records).await;
    assert_eq!(api.holders().await, ["h01"]);
    let bad = |message: &str| (400, error(message));
    assert_eq!(api.call(RELEASE, &about("h01", " ")).await, bad("reason: give a reason, for the history"));
    let long = about("h01", &"x".repeat(1_001));
    assert_eq!(api.call(RELEASE, &long).await, bad("reason: one line of at most 1000 bytes is expected"));
    let (status, missing) = api.call(RELEASE, r#"{"group":"default","id":"h01"}"#).await;
    let message = missing["errors"][0]["error-message"].as_str().unwrap();
    assert_eq!((status, message), (400, "missing field `reason` at line 1 column 30"));
    assert_eq!(api.call(RELEASE, &about("h01", "it burnt")).await, (204, Value::Null));
    assert_eq!(api.holders().await, [""; 0]);
    let (status, none) = api.call(RELEASE, &about("h01", "it burnt")).await;
    let message = none["errors"][0]["error-message"].as_str().unwrap();
    assert_eq!((status, message), (404, "h01 neither holds a slot of group default nor waits for one"));
    let nowhere = json!({ "group": "nowhere", "id": "h01", "reason": "x" }).to_string();
    assert_eq!(api.call(RELEASE, &nowhere).await.0, 404);
    assert_eq!(api.call(HOLD, &nowhere).await.0, 404);
    for id in ["a", "b"] {
        assert_eq!(api.call(HOLD, &about(id, "maintenance")).await.0, 204);
    }
    let (status, full) = api.call(HOLD, &about("c", "maintenance")).await;
    assert_eq!(
        (status, &full["errors"][0]["error-info"]["lock-kind"]),
        (409, &json!("failed_lock_semaphore_full"))
    );
}

/// An external lock server counts the slots, but slots that hosts hold there are still shown, with since and stuck.
#[tokio::test]
async fn slots_of_another_lock_server() {
    let mut site = TestSite::new(["h01"]);
    let provider = LockProvider::External;
    let settings = Settings { provider, groups: [].into(), auto_approve: true, ..Settings::default() };
    let group = GroupName::new("default").unwrap();
    let job = SlotJob { order: SlotOrder::Lock, host: host("h01"), group };
    let granted = Input::JobDone(JobDone::LockServer(job.clone(), LockOutcome::Granted));
    let mut records =
        Vec::from([Input::Settings(settings), put_config()].map(|input| site.decide_record(&[input])));
    records.push(site.fence());
    records.push(site.decide_record(&[trigger("r1")]));
    records.push(site.send());
    records.push(site.reply(["h01"], Action::Prepare, &Outcome::Done));
    records.push(site.decide_record(&[granted]));
    records.push(site.send());
    records.push(site.reply(["h01"], Action::Upgrade, &Outcome::error("no space left")));
    let api = TestApi::new(site.clone(), &records).await;
    let since = "2026-11-21T05:00:07Z";
    let holder = |reason: &str, stuck: bool| {
        json!({
            "provider": "external", "reclaim": "never",
            "groups": [{
                "group": "default", "held": 1, "excess": 0, "waiters": [],
                "holders": [{
                    "id": "h01", "since": since, "on-behalf-of": ["run"], "run": "r1", "reason": reason, "stuck": stuck
                }],
            }],
        })
    };
    // What it keeps though it failed is not yet being released.
    let kept = |reason: &str| {
        let mut slots = holder(reason, false);
        slots["groups"][0]["holders"][0]["kept"] = json!(true);
        slots
    };
    let at: chrono::DateTime<chrono::Utc> = since.parse().unwrap();
    let (soon, late) = (at + chrono::TimeDelta::minutes(119), at + chrono::TimeDelta::minutes(120));
    let failed = "failed in run r1 (upgrade failed: no space left)";
    assert_eq!(slots_json(&api.site.published().state, soon), kept(failed));
    assert_eq!(api.call(RELEASE, &about("h01", "it burnt")).await.0, 204);
    // The server has not confirmed the release, so the slot counts as held since it was granted.
    let state = &api.site.published().state;
    assert_eq!(slots_json(state, late), holder("being released: operator", true));
    let text = resources::metrics::text(
        &Answers::default(),
        &api.site.published(),
        &api.site.published().view.clock,
        &resources::metrics::Stored::default(),
        &Authenticator::default(),
        &Options::default(),
        late,
    )
    .unwrap();
    assert!(text.contains("os_upgrade_fleet_lock_stuck_holders{group=\"default\"} 1\n"), "{text}");
    assert!(text.contains("os_upgrade_fleet_lock_kept_holders{group=\"default\"} 0\n"), "{text}");
    assert!(!text.contains("os_upgrade_fleet_lock_slots{"), "{text}");
    let (status, refused) = api.call(HOLD, &about("a", "x")).await;
    assert_eq!(
        (status, &refused["errors"][0]["error-info"]["lock-kind"]),
        (409, &json!("other_lock_server"))
    );
    // It refuses the release, as some do for a host that they do not know.
    site.decide_record(&[release("h01")]);
    let denied = LockOutcome::Denied { lock_kind: "error".to_owned(), value: "no such node".to_owned() };
    let unlocked = Input::JobDone(JobDone::LockServer(SlotJob { order: SlotOrder::Unlock, ..job }, denied));
    assert_eq!(site.decide_record(std::slice::from_ref(&unlocked)).record.facts.len(), 1);
    assert_eq!(site.decide_record(&[unlocked]).record.facts, []);
    let mut expected =
        holder("being released: operator; the lock server refuses: no such node (error)", true);
    let refusal = "the lock server refuses: no such node (error)";
    expected["groups"][0]["holders"][0]["why"] =
        json!({"kind": "denied", "lock-kind": "error", "value": "no such node", "text": refusal});
    assert_eq!(slots_json(&site.state, late), expected);
    let text = resources::metrics::text(
        &Answers::default(),
        &published(&site),
        &published(&site).view.clock,
        &resources::metrics::Stored::default(),
        &Authenticator::default(),
        &Options::default(),
        late,
    )
    .unwrap();
    assert!(text.contains("os_upgrade_fleet_lock_refused_releases{group=\"default\"} 1\n"), "{text}");
    let keep = http::fields::Keep::All;
    let state = state::write(&Arc::new(published(&site)), &keep, late).unwrap();
    let hosts = serde_json::from_slice::<State<'_>>(&state).unwrap().hosts.unwrap();
    let why = &hosts[0].why.as_ref().unwrap().text;
    assert_eq!(why, &format!("its slot of group default is being given back: {refusal}"));
}

/// An operator releases the slot of `id`.
fn release(id: &str) -> Input {
    let (group, id) = (GroupName::new("default").unwrap(), ClientId::new(id).unwrap());
    let release = SlotOperation::Release { group, id, reason: "it burnt".to_owned() };
    Input::Request(os_upgrade_kernel::Request::new("api", release).into())
}

#[tokio::test]
async fn slot_history_is_newest_first() {
    let (site, records) = failed();
    let api = TestApi::new(site, &records).await;
    let history = async |query: &str| api.call(&format!("GET /v1/state/fleet-lock/history{query}"), "").await;
    assert_eq!(history("").await, (200, json!({ "items": [] })));
    assert_eq!(api.lock("node-7").await, 200);
    assert_eq!(api.call(RELEASE, &about("node-7", "it burnt")).await.0, 204);
    assert_eq!(api.call(HOLD, &about("rack-7", "a new disk")).await.0, 204);
    let (_, page) = history("?limit=1").await;
    let next = page["next"].as_str().unwrap();
    let item = &page["items"][0];
    assert_eq!(
        (&item["type"], &item["actor"], &item["fact"]["reason"]),
        (&json!("hold-placed"), &json!("api"), &json!("a new disk"))
    );
    let (_, page) = history(&format!("?after={next}")).await;
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    assert_eq!(page["items"][0]["fact"]["reason"], "it burnt");
    let cursor = |item: &Value| json!(format!("{}.{}", item["sequence"], item["place"]));
    let keys = json!({ "items": [next, cursor(&page["items"][0])] });
    assert_eq!(history("?keys=true").await, (200, keys));
    assert_eq!(history("?count=true").await, (200, json!({"count": 2})));
    assert_eq!(history("?count=true&clients=true").await, (200, json!({"count": 3})));
    let (_, page) = history("?clients=true").await;
    let item = &page["items"][2];
    assert_eq!(
        (&item["type"], &item["actor"], &item["fact"]["id"]),
        (&json!("lock-granted"), &json!("api"), &json!("node-7"))
    );
    assert_eq!(history("?limit=501").await.0, 400);
    assert_eq!(history("?after=x").await.0, 400);
}

#[tokio::test]
async fn reclaim_needs_setting_and_absent_host() {
    let (mut site, mut records) = failed();
    let reclaim = |id: &str| format!("DELETE /v1/state/fleet-lock/default/{id}");
    let api = TestApi::new(site.clone(), &records).await;
    let (status, refused) = api.call(&reclaim("h01"), "").await;
    assert_eq!((status, &refused["errors"][0]["error-info"]["kind"]), (409, &json!("reclaims-nothing")));
    let settings = Settings { reclaim: Reclaim::Inventory, ..(*site.state.settings).clone() };
    records.push(site.decide_record(&[Input::Settings(settings)]));
    let api = TestApi::new(site.clone(), &records).await;
    let (status, refused) = api.call(&reclaim("h01"), "").await;
    assert_eq!((status, &refused["errors"][0]["error-info"]["kind"]), (409, &json!("in-inventory")));
    site.view.hosts.remove(&host("h01"));
    site.view.left.insert(host("h01"));
    let api = TestApi::new(site, &records).await;
    assert_eq!(api.call(&reclaim("h01"), "").await, (204, Value::Null));
    assert_eq!(api.call(&reclaim("h01"), "").await.0, 404);
    let (status, bad) = api.call("DELETE /v1/state/fleet-lock/a_b/h01", "").await;
    assert_eq!((status, bad), (400, error("group: a group must match ^[a-zA-Z0-9.-]+$")));
    assert_eq!(api.call(&reclaim("h%0a1"), "").await.0, 400);
}

#[tokio::test]
async fn slot_metrics_are_exposed() {
    let (site, records) = failed();
    let api = TestApi::new(site, &records).await;
    assert_eq!((api.lock("a").await, api.lock("b").await), (200, 409));
    assert_eq!((api.unlock("b").await, api.unlock("a").await, api.lock("b").await), (200, 200, 200));
    assert_eq!(api.lock("a").await, 409);
    let (status, headers, text) = api.send(build("GET /metrics", "text/plain", "")).await;
    assert_eq!(status, 200);
    assert_eq!(headers["content-type"], "application/openmetrics-text; version=1.0.0; charset=utf-8");
    for line in [
        r#"os_upgrade_fleet_lock_answers_total{operation="lock",kind="granted"} 2"#,
        r#"os_upgrade_fleet_lock_answers_total{operation="unlock",kind="granted"} 1"#,
        r#"os_upgrade_fleet_lock_answers_total{operation="unlock",kind="nothing_held"} 1"#,
        r#"os_upgrade_fleet_lock_answers_total{operation="lock",kind="failed_lock_semaphore_full"} 2"#,
        r#"os_upgrade_fleet_lock_slots{group="default"} 2"#,
        r#"os_upgrade_fleet_lock_holders{group="default"} 2"#,
        r#"os_upgrade_fleet_lock_excess_holders{group="default"} 0"#,
        "# EOF",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
    for (accept, is_plain) in [
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1", false),
        ("*/*", false),
        ("text/plain;version=0.0.4", true),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", true),
        ("application/vnd.google.protobuf;q=0.7,text/plain;version=0.0.4;q=0.3", true),
    ] {
        let mut request = build("GET /metrics", "text/plain", "");
        request.headers_mut().insert("accept", accept.parse().unwrap());
        let (status, headers, text) = api.send(request).await;
        assert_eq!((status, &headers["vary"]), (200, &"accept".parse().unwrap()), "{accept}");
        let is_text = headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8";
        let counter = "# TYPE os_upgrade_fleet_lock_answers_total counter\n";
        assert_eq!((is_text, text.contains(counter)), (is_plain, is_plain), "{accept}: {headers:?}");
    }
    let published = api.site.published();
    let at: chrono::DateTime<chrono::Utc> = "2026-11-21T05:01:00Z".parse().unwrap();
    for (hours, stuck, waiters) in [(0, 0, 1), (3, 2, 0)] {
        let at = at + chrono::TimeDelta::hours(hours);
        let text = resources::metrics::text(
            &Answers::default(),
            &published,
            &published.view.clock,
            &resources::metrics::Stored::default(),
            &Authenticator::default(),
            &Options::default(),
            at,
        )
        .unwrap();
        for line in [
            format!("os_upgrade_fleet_lock_stuck_holders{{group=\"default\"}} {stuck}"),
            format!("os_upgrade_fleet_lock_waiters{{group=\"default\"}} {waiters}"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
        }
    }
}
