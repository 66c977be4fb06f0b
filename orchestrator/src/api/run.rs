//! `/v1/state/os-upgrade/trigger-upgrade-site` and `/cancel`: starting a run, and stopping it.

use axum::extract::State;
use axum::http::StatusCode;
use os_upgrade_kernel::Request;
use os_upgrade_kernel::duration::Duration;
use os_upgrade_protocol::RunId;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::Api;
use super::error::Problem;
use super::extract::{Actor, Nothing, OptionalBody, Params, Validate};
use super::form::Syntax;
use super::openapi::{tag, types};

/// The specification's default of `timeout`, in seconds: 4h.
const TIMEOUT_DEFAULT_SECS: u64 = 4 * 3_600;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(trigger)).routes(routes!(cancel))
}

/// How a run is to be started.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Trigger)]
#[serde(deny_unknown_fields)]
struct TriggerBody {
    /// The upgrade is aborted if not all hosts are upgraded within this time.
    #[schema(value_type = Option<types::TimeoutText>, default = "4h")]
    timeout: Option<Duration>,
}

/// Reads the body of a trigger; how long the run may take, if it says so.
pub(super) fn read_trigger(body: &[u8], syntax: Syntax) -> Result<Option<Duration>, Problem> {
    super::document::parse::<TriggerBody>(body, syntax).map(|body| body.timeout)
}

/// Parameters of a body that has none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NoFields {}

/// 204 once the run is durable; 404 without a configuration, 409 while a run is active or without a host.
#[utoipa::path(
    post, path = "/v1/state/os-upgrade/trigger-upgrade-site", operation_id = "trigger-upgrade-site", tag = tag::UPGRADES,
    summary = "Trigger an upgrade on this site now, whatever the maintenance windows",
    params(Validate),
    request_body = Option<TriggerBody>,
    responses(
        (status = 204, description = "it has begun, or could"),
        (status = 404, description = "there is no configuration"),
        (status = 409, description = "a run is active, or no host could take part"),
    )
)]
async fn trigger(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    OptionalBody(body): OptionalBody<TriggerBody>,
) -> Result<StatusCode, Problem> {
    let timeout = body.and_then(|body| body.timeout).unwrap_or(Duration::from_secs(TIMEOUT_DEFAULT_SECS));
    // Version 7: ids given later sort later.
    let run =
        RunId::new(&Uuid::now_v7().to_string()).map_err(|error| Problem::internal(error.to_string()))?;
    let request = Request::Trigger { run, timeout, actor, validate: params.only() };
    api.change(request).await
}

/// 204 once it is durable that no further host is started; 409 when no run is active.
#[utoipa::path(
    post, path = "/v1/state/os-upgrade/cancel", operation_id = "cancel-upgrade", tag = tag::UPGRADES,
    summary = "Start no further host in the active run",
    request_body = Option<NoFields>,
    responses(
        (status = 204, description = "no further host is started"),
        (status = 409, description = "no run is active"),
    )
)]
async fn cancel(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(Nothing {}): Params<Nothing>,
    OptionalBody(_): OptionalBody<NoFields>,
) -> Result<StatusCode, Problem> {
    api.change(Request::Cancel { actor }).await
}
