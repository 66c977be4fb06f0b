//! `/v1/config/os-upgrade`: what operators intend.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use os_upgrade_kernel::config::{Rollout, WorkerApplication};
use os_upgrade_kernel::{Config, Expected, Request};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::error::Problem;
use super::extract::{Actor, Body, Nothing, Params, Validate};
use super::form::Syntax;
use super::openapi::tag;
use super::openapi::types;
use super::reply;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(read, replace))
}

/// The body of a PUT: the configuration, and what the specification has beyond it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ConfigBody {
    #[serde(default)]
    worker_applications: Vec<WorkerApplication>,
    #[serde(default)]
    rollout: Rollout,
    /// The specification's key, which this version takes only when it is empty: it starts no run by itself, and to
    /// accept windows that are then not kept to would be worse than to refuse them.
    #[serde(default)]
    maintenance_windows: Vec<IgnoredAny>,
}

impl ConfigBody {
    fn into_config(self) -> Result<Config, Problem> {
        if self.maintenance_windows.is_empty() {
            return Ok(Config { worker_applications: self.worker_applications, rollout: self.rollout });
        }
        let message = "maintenance-windows: this version starts no upgrade by itself; leave them out and use \
                       POST /v1/state/os-upgrade/trigger-upgrade-site";
        Err(Problem::bad_request(message).with_info(json!({ "place": "maintenance-windows" })))
    }
}

/// Reads the body of a PUT.
pub(super) fn read_body(body: &[u8], syntax: Syntax) -> Result<Config, Problem> {
    super::document::parse::<ConfigBody>(body, syntax)?.into_config()
}

/// 200, or 404 when nothing is configured.
#[utoipa::path(
    get, path = "/v1/config/os-upgrade", operation_id = "read-configuration", tag = tag::CONFIGURATION,
    summary = "Retrieve the configuration of os upgrade",
    responses(
        (status = 200, description = "the configuration", body = types::ConfigBody),
        (status = 404, description = "there is no configuration"),
    )
)]
async fn read(State(api): State<Api>, Params(Nothing {}): Params<Nothing>) -> Result<Response, Problem> {
    match &api.site.present().state.config {
        Some(config) => reply::json(config),
        None => Err(Problem::not_found("there is no configuration")),
    }
}

/// 201 when there was none, 204 when there was.
#[utoipa::path(
    put, path = "/v1/config/os-upgrade", operation_id = "replace-configuration", tag = tag::CONFIGURATION,
    summary = "Replace or create the os upgrade",
    params(Validate),
    request_body = types::ConfigBody,
    responses(
        (status = 201, description = "it was created"),
        (status = 204, description = "it was replaced, or is valid"),
    )
)]
async fn replace(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(body): Body<ConfigBody>,
) -> Result<StatusCode, Problem> {
    let config = body.into_config()?;
    let request = Request::PutConfig { config, expected: Expected::Anything, actor, validate: params.only() };
    let accepted = api.site.request(request).await??;
    Ok(reply::granted(&accepted))
}
