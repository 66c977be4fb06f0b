//! `/healthz` and `/readyz`, for whatever starts and watches this process.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use os_upgrade_shell::node::Leadership;
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

/// 200 once a write can be taken, by this instance or by the leader to which it passes it on; until then 503 with the
/// reason.
async fn ready(State(api): State<Api>) -> Result<Response, Problem> {
    let present = api.site.present();
    match &present.readiness {
        Readiness::Ready => reply::json(&match &present.leadership {
            Leadership::Here(me) => json!({ "ready": true, "role": "leader", "leader": me.instance }),
            Leadership::At(leader) => {
                json!({ "ready": true, "role": "follower", "leader": leader.instance })
            }
            Leadership::Unknown => json!({ "ready": true }),
        }),
        Readiness::NotReady(reason) | Readiness::Halted(reason) => Err(Problem::unavailable(reason.clone())),
    }
}
