//! `/healthz` and `/readyz`, for whatever starts and watches this process.

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use os_upgrade_shell::node::Leadership;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::error::{Problem, Routine};
use super::extract::{Nothing, Params};
use super::openapi::tag;
use super::openapi::types::RoleWord;
use super::reply;
use crate::cluster::Role;
use crate::site::Readiness;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(healthy)).routes(routes!(ready))
}

/// That it runs.
#[derive(Serialize, ToSchema)]
struct Health {
    healthy: bool,
}

/// That it can take a write, and who leads, if anybody does.
#[derive(Serialize, ToSchema)]
#[schema(as = Ready)]
struct TakesWrites<'a> {
    ready: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RoleWord>)]
    role: Option<Role>,
    /// The instance that leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<&'a str>,
    /// There are secrets that this instance has no key to, and it does without.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sealed: bool,
}

/// 200 as long as requests are answered at all.
#[utoipa::path(
    get, path = "/healthz", operation_id = "read-health", tag = tag::ORCHESTRATOR,
    summary = "Ask whether the orchestrator runs",
    responses(
        (status = 200, description = "it does", body = Health),
    )
)]
async fn healthy(Params(Nothing {}): Params<Nothing>) -> Result<Response, Problem> {
    reply::json(&Health { healthy: true })
}

/// 200 once a write can be taken, by this instance or by the leader to which it passes it on; until then 503 with the
/// reason.
#[utoipa::path(
    get, path = "/readyz", operation_id = "read-readiness", tag = tag::ORCHESTRATOR,
    summary = "Ask whether the orchestrator can take a write",
    responses(
        (status = 200, description = "it can, or passes it on to the leader", body = TakesWrites),
    )
)]
async fn ready(
    State(api): State<Api>,
    Params(Nothing {}): Params<Nothing>,
) -> Result<Response, (Extension<Routine>, Problem)> {
    let present = api.site.present();
    if let Some(sealed) = present.view.sealed.clone() {
        return Err((Extension(Routine), sealed.into()));
    }
    match &present.readiness {
        Readiness::Ready => {
            let (role, leader) = match &present.leadership {
                Leadership::Here(me) => (Some(Role::Leader), Some(me.instance.as_str())),
                Leadership::At(leader) => (Some(Role::Follower), Some(leader.instance.as_str())),
                Leadership::Unknown => (None, None),
            };
            let ready = TakesWrites {
                ready: true,
                role,
                leader,
                sealed: api.options.strongbox.sealed(&present.state.strongbox).is_some(),
            };
            reply::json(&ready).map_err(|problem| (Extension(Routine), problem))
        }
        Readiness::NotReady(reason) | Readiness::Halted(reason) => {
            Err((Extension(Routine), Problem::unavailable(reason.clone())))
        }
    }
}
