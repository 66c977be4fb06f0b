//! `/healthz` and `/readyz`, for whatever starts and watches this process.

use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use os_upgrade_shell::node::Leadership;
use serde_json::json;

use super::Api;
use super::error::{Problem, Routine};
use super::reply;
use crate::site::Readiness;

pub(super) fn routes() -> Router<Api> {
    Router::new().route("/healthz", get(healthy)).route("/readyz", get(ready))
}

/// 200 as long as requests are answered at all.
async fn healthy() -> Result<Response, Problem> {
    reply::json(&json!({ "healthy": true }))
}

/// 200 once a write can be taken, by this instance or by the leader to which it passes it on; until then 503 with the
/// reason.
async fn ready(State(api): State<Api>) -> Result<Response, (Extension<Routine>, Problem)> {
    let present = api.site.present();
    match &present.readiness {
        Readiness::Ready => {
            let role = match &present.leadership {
                Leadership::Here(me) => json!({ "ready": true, "role": "leader", "leader": me.instance }),
                Leadership::At(leader) => {
                    json!({ "ready": true, "role": "follower", "leader": leader.instance })
                }
                Leadership::Unknown => json!({ "ready": true }),
            };
            reply::json(&role).map_err(|problem| (Extension(Routine), problem))
        }
        Readiness::NotReady(reason) | Readiness::Halted(reason) => {
            Err((Extension(Routine), Problem::unavailable(reason.clone())))
        }
    }
}
