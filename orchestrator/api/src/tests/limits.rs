//! Requests beyond the limits are refused in the dialect of their path.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use os_upgrade_auth::Authenticator;
use os_upgrade_settings::Settings;
use serde_json::json;

use super::*;
use crate::feed::Feed;
use crate::http::call_back_rate::CallBackRate;
use crate::http::dialect::Dialects;
use crate::http::listener::SubscriberCounts;
use crate::http::shared_answer::SharedAnswer;

const CLAIM: &str = r#"{"client_params":{"id":"a","group":"default"}}"#;

/// Options with the limits that these environment variables set.
pub(super) fn limited(variables: &[(&str, &str)]) -> Options {
    let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
    let settings: Settings = os_upgrade_settings::load(None, variables).unwrap();
    Options { limits: Limits::from_settings(&settings.api), ..Options::default() }
}

/// What the handlers of `api` share, with these permits to render what is large.
pub(super) fn rendering_with(api: &TestApi, renders: &Arc<Semaphore>) -> Api {
    Api {
        site: api.site.clone(),
        history: api.history.clone(),
        feed: Feed::new(api.site.clone(), api.history.clone(), SubscriberCounts::default()),
        renders: Arc::clone(renders),
        whole_state: SharedAnswer::default(),
        answers: Answers::default(),
        call_back_rate: CallBackRate::default(),
        authenticator: Authenticator::default(),
        description: &DESCRIPTION,
        options: Options::default(),
    }
}

/// The API of a site whose core never answers, with the settings of these environment variables.
async fn api(variables: &[(&str, &str)]) -> (TestApi, mpsc::Receiver<Call>) {
    let (mut api, calls) = TestApi::silent(Readiness::Ready).await;
    let options = limited(variables);
    let site = api.site.clone().with_timeout(Duration::from_secs(30));
    api.router = router(site, api.history.clone(), Authenticator::default(), &options);
    (api, calls)
}

async fn ask(api: &TestApi, request: &str, body: &str, peer: &str) -> (u16, HeaderMap, Value) {
    let mut request = build(request, "application/json", body);
    request.headers_mut().insert("fleet-lock-protocol", "true".parse().unwrap());
    let peer: SocketAddr = peer.parse().unwrap();
    request.extensions_mut().insert(ConnectInfo(peer));
    let (status, headers, body) = api.send(request).await;
    (status, headers, serde_json::from_str(&body).unwrap_or_default())
}

#[tokio::test]
async fn requests_in_flight_are_limited() {
    let (api, mut calls) = api(&[("OS_UPGRADE_API__REQUESTS_IN_FLIGHT", "1")]).await;
    let peer = "127.0.0.1:1";
    let first = async { ask(&api, "POST /v1/pre-reboot", CLAIM, peer).await };
    let meanwhile = async {
        // The instance has received a call, so the first request is under way.
        let call = calls.recv().await.unwrap();
        let message = "too many requests are under way: try again later";
        for (request, expected) in [
            ("GET /v1/state/os-upgrade", error(message)),
            ("GET /nowhere", error(message)),
            ("POST /v1/state/os-upgrade/trigger-upgrade-site", not_done(&NotDone::unchanged(message))),
            ("POST /fleetlock/v1/steady-state", json!({ "kind": "busy", "value": message })),
            ("GET /v1-alpha/nowhere", fleet_error(503, message)),
            ("PUT /fleet/v1/units/a.service", fleet_error(503, &NotDone::unchanged(message).to_string())),
        ] {
            let (status, headers, body) = ask(&api, request, CLAIM, peer).await;
            assert_eq!((status, body), (503, expected), "{request}");
            assert_eq!(headers["retry-after"], "1", "{request}");
            assert_eq!(headers["content-type"], "application/json", "{request}");
        }
        for path in ["/healthz", "/readyz"] {
            assert_eq!(ask(&api, &format!("GET {path}"), "", peer).await.0, 200, "{path}");
        }
        let answer = Ok(os_upgrade_kernel::Accepted::Done);
        let _ = call.answer.send(Ok(Answered { answer, sequence: 0 }));
    };
    let ((status, _, _), ()) = tokio::join!(first, meanwhile);
    assert_eq!(status, 200);
    let (status, _, text) = api.send(build("GET /metrics", "", "")).await;
    assert_eq!(status, 200, "an ended request makes room");
    assert!(text.contains("os_upgrade_api_refused_total{reason=\"busy\"} 6\n"), "{text}");
}

/// One address sends requests whose bodies never arrive; other addresses are still served.
#[tokio::test]
async fn slow_address_does_not_block_others() {
    let (api, _calls) = api(&[("OS_UPGRADE_API__REQUESTS_IN_FLIGHT", "8")]).await;
    let slow = (0..20).map(|_| {
        let never = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let mut request = Request::post("/fleetlock/v1/pre-reboot").body(never).unwrap();
        request.headers_mut().insert("fleet-lock-protocol", "true".parse().unwrap());
        request.extensions_mut().insert(ConnectInfo::<SocketAddr>("192.0.2.1:1".parse().unwrap()));
        tokio::spawn(api.router.clone().oneshot(request))
    });
    let slow: Vec<_> = slow.collect();
    // Half of the permits are taken, and the others were refused.
    while slow.iter().filter(|slow| slow.is_finished()).count() < 16 {
        tokio::task::yield_now().await;
    }
    assert_eq!(ask(&api, "GET /v1/state/os-upgrade", "", "192.0.2.1:1").await.0, 503);
    assert_eq!(ask(&api, "GET /v1/state/os-upgrade", "", "192.0.2.2:1").await.0, 200);
    assert_eq!(ask(&api, "GET /healthz", "", "192.0.2.1:1").await.0, 200);
}

#[tokio::test]
async fn request_rate_is_limited() {
    let (api, _calls) = api(&[("OS_UPGRADE_API__REQUESTS_PER_SECOND", "1")]).await;
    let message = "too many requests come from this address: try again later, and less often";
    for (number, (request, expected)) in [
        ("GET /healthz", error(message)),
        ("GET /nowhere", error(message)),
        ("PUT //v1/pre-reboot", json!({ "kind": "too_many_requests", "value": message })),
        ("GET /v1-alpha/units", fleet_error(429, message)),
        ("PUT /fleet/v1/units/a.service", fleet_error(429, message)),
    ]
    .into_iter()
    .enumerate()
    {
        let peer = format!("192.0.2.{number}:4");
        assert_ne!(ask(&api, request, "", &peer).await.0, 429, "{request}");
        let mut answer = ask(&api, request, "", &peer).await;
        // On a busy machine a second may have passed.
        for _ in 0..50 {
            if answer.0 != 429 {
                answer = ask(&api, request, "", &peer).await;
            }
        }
        let (status, headers, body) = answer;
        assert_eq!((status, body), (429, expected), "{request}");
        assert_eq!(headers["retry-after"], "1", "{request}");
    }
    for peer in ["127.0.0.1:4", "[::1]:4"] {
        for _ in 0..5 {
            assert_eq!(ask(&api, "GET /healthz", "", peer).await.0, 200, "{peer}");
        }
    }
}

#[tokio::test]
async fn zero_rate_is_unlimited() {
    let (api, _calls) = api(&[("OS_UPGRADE_API__REQUESTS_PER_SECOND", "0")]).await;
    for _ in 0..2_000 {
        assert_eq!(ask(&api, "GET /healthz", "", "192.0.2.1:4").await.0, 200);
    }
}

/// Sizes and timeouts of bodies, except FleetLock's, which are in `lock_edge`.
#[tokio::test]
async fn bodies_beyond_the_limits() {
    let (api, _calls) = api(&[]).await;
    let large = " ".repeat(Dialect::Specification.body_bytes_max() + 1);
    let (status, _, body) = ask(&api, "PUT /v1/config/os-upgrade", &large, "127.0.0.1:1").await;
    assert_eq!((status, body), (413, error("the body exceeds 1048576 bytes")));
    for unit in ["/v1-alpha/units/a.service", "/fleet/v1/units/a.service"] {
        let (status, _, body) = ask(&api, &format!("PUT {unit}"), &large, "127.0.0.1:1").await;
        assert_eq!((status, body), (413, fleet_error(413, "the body exceeds 1048576 bytes")));
    }
    tokio::time::pause();
    let late = "the body did not arrive in time";
    for (path, expected) in [
        ("/v1/config/os-upgrade", error(late)),
        ("/v1-alpha/units/a.service", fleet_error(408, late)),
        ("/fleet/v1/units/a.service", fleet_error(408, late)),
    ] {
        let never = Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
        let request = Request::put(path).header("content-type", "application/json");
        let (status, _, body) = api.send(request.body(never).unwrap()).await;
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, body), (408, expected), "{path}");
    }
}

/// Large conversions to YAML wait for a permit, until the request times out. The description needs none.
#[tokio::test]
async fn wait_for_conversion_is_limited() {
    let (api, _calls) = TestApi::silent(Readiness::Ready).await;
    let (authenticator, renders) = (Authenticator::default(), Arc::new(Semaphore::new(0)));
    let state = rendering_with(&api, &renders);
    let described = resources::openapi::routes().router(&authenticator, None);
    let large = format!("[{}0]", "0,".repeat(100_000));
    let large = async move || ([("content-type", "application/json")], large.clone());
    let routes = described.with_state(state).route("/large", axum::routing::get(large));
    let dialects = Dialects {
        specification: routes,
        fleet_lock: Router::new(),
        call_backs: Router::new(),
        fleet_v1_alpha: Router::new(),
        fleet_v1: Router::new(),
    };
    let whole = edge_router(dialects, renders, &authenticator, &Limits::default());
    let ask = async |path: &str| {
        let request = Request::get(path).header("accept", "application/yaml").body(Body::empty()).unwrap();
        let response = whole.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        (parts, to_bytes(body, usize::MAX).await.unwrap())
    };

    let (head, body) = ask("/openapi.json").await;
    assert_eq!(head.status, 200);
    assert_eq!(
        (&head.headers["content-type"], &head.headers["vary"]),
        (&"application/yaml".parse().unwrap(), &"accept".parse().unwrap())
    );
    assert_eq!(body, form::to_yaml(description().as_bytes()).unwrap());
    tokio::time::pause();
    let (head, body) = ask("/large").await;
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((head.status.as_u16(), body), (503, error("no answer within 20 s")));
}
