//! `?site=` where no other site can be reached.

use axum::http::StatusCode;
use os_upgrade_auth::{Caller, Rights, Role};

use crate::http::authorization::Identity;

use super::*;

/// The API of the site `here`, without a bus, and the router that answers other sites.
async fn routers() -> (TestApi, Router) {
    let api = TestApi::new(TestSite::new([]), &[]).await;
    let options = Options { sites: Sites::without_bus("here"), ..Options::default() };
    let Routers { edge, inner, feed: _, at_socket: _ } =
        Routers::new(api.site.clone(), api.history.clone(), Authenticator::default(), &options);
    (TestApi { router: edge, ..api }, inner)
}

#[tokio::test]
async fn own_site_answers_others_are_404() {
    let (api, _) = routers().await;
    let (status, state) = api.call("GET /v1/state/os-upgrade", "").await;
    assert_eq!(status, 200);
    assert_eq!(api.call("GET /v1/state/os-upgrade?site=here", "").await, (200, state));
    assert_eq!(api.call("GET /v1/state/os-upgrade/runs?limit=1&site=here", "").await.0, 200);
    for request in [
        "GET /v1/state/os-upgrade?site=there",
        "GET /v1/state/os-upgrade/runs/x?site=there",
        "POST /v1/state/os-upgrade/cancel?site=there",
    ] {
        let (status, body) = api.call(request, "").await;
        let text = body["errors"][0]["error-message"].as_str().unwrap();
        assert!(status == 404 && text.starts_with("no orchestrator serves the site \"there\""), "{text}");
    }
    for request in ["GET /v1/config/os-upgrade?site=here", "GET /v1/state/cluster?site=there"] {
        assert_eq!(api.call(request, "").await.0, 400, "{request}");
    }
    assert_eq!(api.call("GET /v1/state/os-upgrade/nothing?site=there", "").await.0, 404);
    assert_eq!(api.call("DELETE /v1/state/os-upgrade?site=there", "").await.0, 405);
}

#[tokio::test]
async fn forwarded_requests_keep_caller_rights() {
    let (_api, inner) = routers().await;
    let viewer = Rights::Role(Role::Viewer);
    let operator = Rights::Role(Role::Operator);
    for (rights, request, expected) in [
        (&viewer, "GET /v1/state/os-upgrade", StatusCode::OK),
        (&viewer, "POST /v1/state/os-upgrade/cancel", StatusCode::FORBIDDEN),
        (&operator, "POST /v1/state/os-upgrade/cancel", StatusCode::CONFLICT),
        (&Rights::Nothing, "GET /v1/state/os-upgrade", StatusCode::FORBIDDEN),
        (&operator, "GET /v1/state/os-upgrade?site=there", StatusCode::BAD_REQUEST),
    ] {
        let mut forwarded = build(request, "application/json", "");
        let caller = Caller { actor: "token eve at there".to_owned(), rights: rights.clone() };
        forwarded.extensions_mut().insert(caller.clone());
        forwarded.extensions_mut().insert(Identity(Ok(caller)));
        let response = inner.clone().oneshot(forwarded).await.unwrap();
        assert_eq!(response.status(), expected, "{request} as {rights:?}");
    }
}
