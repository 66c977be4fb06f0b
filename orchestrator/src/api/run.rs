//! `/v1/state/os-upgrade/trigger-upgrade-site`, `/cancel` and `/give-up-host`: starting a run, stopping it, and going on
//! in it without a host. The last is an extension of the specification.

use axum::extract::State;
use axum::http::StatusCode;
use os_upgrade_kernel::duration::Duration;
use os_upgrade_kernel::{Request, RunOperation};
use os_upgrade_protocol::{HostName, RunId};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::Api;
use super::error::Problem;
use super::extract::{Actor, Body, Nothing, OptionalBody, Params, Validate, checked_reason};
use super::form::Syntax;
use super::openapi::{tag, types};

/// The specification's default of `timeout`, in seconds: 4h.
const TIMEOUT_DEFAULT_SECS: u64 = 4 * 3_600;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(trigger)).routes(routes!(cancel)).routes(routes!(give_up))
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
    let operation = RunOperation::Trigger { run, timeout };
    let request = Request { actor, validate: params.only(), operation };
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
    api.change(Request::new(actor, RunOperation::Cancel)).await
}

/// A host that the active run is to go on without.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = HostToGiveUp)]
#[serde(deny_unknown_fields)]
struct GiveUp {
    /// Its name.
    #[schema(value_type = types::NameText)]
    host: HostName,
    /// Why, for its history.
    #[schema(value_type = types::AuditReasonText)]
    reason: String,
}

/// 204 once it is durable that the run does not wait for it. Where it had begun, its slot stays held, whatever
/// `[fleet-lock] on-failure` is, until it says that it is through or an operator releases it.
#[utoipa::path(
    post, path = "/v1/state/os-upgrade/give-up-host", operation_id = "give-up-host", tag = tag::UPGRADES,
    summary = "Go on in the active run without a host",
    params(Validate),
    request_body = GiveUp,
    responses(
        (status = 204, description = "the run does not wait for it any more, or would not"),
        (status = 404, description = "the host is not in the active run"),
        (status = 409, description = "no run is active, or the host is through; or what it was told is not known yet"),
    )
)]
async fn give_up(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(GiveUp { host, reason }): Body<GiveUp>,
) -> Result<StatusCode, Problem> {
    let operation = RunOperation::GiveUpHost { host, reason: checked_reason(&reason)? };
    api.order(Request { actor, validate: params.only(), operation }).await
}
