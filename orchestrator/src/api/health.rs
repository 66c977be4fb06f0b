//! `/healthz` and `/readyz`, for whatever starts and watches this process.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use serde_json::json;

use super::Api;
use super::error::Problem;
use super::reply;
use crate::site::Readiness;

/// The path of readiness.
pub(super) const READY: &str = "/readyz";

pub(super) fn routes() -> Router<Api> {
    Router::new().route("/healthz", get(healthy)).route(READY, get(ready))
}

/// 200 as long as requests are answered at all.
async fn healthy() -> Result<Response, Problem> {
    reply::json(&json!({ "healthy": true }))
}

/// 200 once a write can be taken; until then 503 with the reason.
async fn ready(State(api): State<Api>) -> Result<Response, Problem> {
    match &api.site.present().readiness {
        Readiness::Ready => reply::json(&json!({ "ready": true })),
        Readiness::NotReady(reason) => Err(Problem::unavailable(reason.clone())),
    }
}
