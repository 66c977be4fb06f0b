//! FleetLock's endpoints: status and whole body, and what is held afterwards.

use super::*;
use crate::testing::put_config;

const LOCK: &str = "POST /v1/pre-reboot";
const UNLOCK: &str = "POST /v1/steady-state";

fn body(group: &str, id: &str) -> String {
    json!({ "client_params": { "id": id, "group": group } }).to_string()
}

fn lock_error(kind: &str, value: &str) -> Value {
    json!({ "kind": kind, "value": value })
}

impl TestApi {
    /// A request as a FleetLock client sends it: without a `Content-Type`.
    async fn fleet_lock(&self, request: &str, body: &str) -> (u16, Value) {
        let (method, path) = request.split_once(' ').unwrap();
        let request = Request::builder().method(method).uri(path).header("fleet-lock-protocol", "true");
        let (status, _, body) = self.send(request.body(Body::from(body.to_owned())).unwrap()).await;
        (status, serde_json::from_str(&body).unwrap())
    }

    fn holders(&self) -> Vec<String> {
        let state = &self.site.present().state;
        state.semaphores.iter().flat_map(|(_, semaphore)| semaphore.holders.keys().cloned()).collect()
    }
}

#[tokio::test]
async fn a_slot_is_taken_again_refused_to_others_and_given_back() {
    let api = TestApi::new(TestSite::new(["h01"]), &[]).await;
    let (granted, a, b) = ((200, json!({})), body("default", "a"), body("default", "b"));
    let full =
        lock_error("failed_lock_semaphore_full", "the only slot is held by a since 2026-11-21T05:00:01Z");
    assert_eq!(api.fleet_lock(LOCK, &a).await, granted);
    assert_eq!(api.fleet_lock("POST /fleetlock/v1/pre-reboot?x=1", &a).await, granted);
    assert_eq!(api.fleet_lock(LOCK, &b).await, (409, full.clone()));
    // Who holds nothing is told so, and nobody loses a slot by it.
    assert_eq!(api.fleet_lock(UNLOCK, &b).await, granted);
    assert_eq!(api.fleet_lock(LOCK, &b).await, (409, full));
    assert_eq!(api.holders(), ["a"]);
    assert_eq!(api.fleet_lock("POST /fleetlock/v1/steady-state", &a).await, granted);
    assert_eq!(api.fleet_lock(UNLOCK, &a).await, granted);
    assert_eq!(api.holders(), [""; 0]);
    assert_eq!(api.fleet_lock(LOCK, &b).await, granted);
    assert_eq!(api.holders(), ["b"]);
}

#[tokio::test]
async fn a_host_of_a_run_and_a_client_share_the_slots() {
    let mut site = TestSite::new(["h01"]);
    let records = [site.record(&[put_config()]), site.fence()];
    let api = TestApi::new(site, &records).await;
    assert_eq!(api.fleet_lock(LOCK, &body("default", "node-7")).await.0, 200);
    assert_eq!(api.call("POST /v1/state/os-upgrade/trigger-upgrade-site", "").await.0, 204);
    assert_eq!(api.fleet_lock(LOCK, &body("default", "node-8")).await.0, 409);
    assert_eq!(api.holders(), ["node-7"]);
}

#[tokio::test]
async fn what_is_refused() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    for request in [LOCK, UNLOCK] {
        for (body, status, expected) in [
            (body("x", "a"), 400, lock_error("unknown_group", "there is no group x")),
            (
                body("x_y", "a"),
                400,
                lock_error("invalid_group", "client_params.group: a group must match ^[a-zA-Z0-9.-]+$"),
            ),
            (body("default", ""), 400, lock_error("invalid_id", "client_params.id: an id must not be empty")),
            (" ".repeat(64 * 1024 + 1), 413, lock_error("body_too_large", "the body exceeds 65536 bytes")),
        ] {
            assert_eq!(api.fleet_lock(request, &body).await, (status, expected), "{request}");
        }
        let (status, error) = api.fleet_lock(request, "{").await;
        assert_eq!((status, &error["kind"]), (400, &json!("invalid_body")));
    }
    assert_eq!(api.holders(), [""; 0]);
}

#[tokio::test]
async fn a_request_that_is_not_meant_for_a_lock_server() {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let expected = lock_error(
        "missing_fleet_lock_header",
        "the header fleet-lock-protocol must be there once, with the value true",
    );
    for values in [&[][..], &["TRUE"], &["1"], &["true", "false"]] {
        let mut request = Request::post("/v1/pre-reboot");
        for value in values {
            request = request.header("fleet-lock-protocol", *value);
        }
        let (status, _, answer) = api.send(request.body(Body::from(body("default", "a"))).unwrap()).await;
        assert_eq!((status, serde_json::from_str::<Value>(&answer).unwrap()), (400, expected.clone()));
    }
    let expected = lock_error("method_not_allowed", "FleetLock requests are POSTed");
    for method in ["GET", "PUT"] {
        let request = build(&format!("{method} /v1/pre-reboot"), "application/json", &body("default", "a"));
        let (status, headers, answer) = api.send(request).await;
        assert_eq!((status, serde_json::from_str::<Value>(&answer).unwrap()), (405, expected.clone()));
        assert_eq!(headers["allow"], "POST");
    }
    assert_eq!(api.holders(), [""; 0]);
}

#[tokio::test]
async fn without_a_journal_nothing_is_granted() {
    let (api, _calls) = TestApi::silent(Readiness::NotReady("the bus is away".to_owned())).await;
    let value = "the bus is away: it may still come to be, look at the state";
    let expected = (503, lock_error("backend_unavailable", value));
    assert_eq!(api.fleet_lock(LOCK, &body("default", "a")).await, expected);
    assert_eq!(api.fleet_lock(UNLOCK, &body("default", "a")).await, expected);
}
