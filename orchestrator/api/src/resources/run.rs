//! `/v1/state/os-upgrade/trigger-upgrade-site`, `/cancel` and `/give-up-host`: starts a run, stops it, or continues it
//! without a host. The last is an extension of the specification.

use axum::extract::State;
use axum::http::StatusCode;
use os_upgrade_api_types::query::{NoParameters, Validate};
use os_upgrade_api_types::routes::runs::{CANCEL, GIVE_UP, HostToGiveUp, NoFields, TRIGGER, Trigger};
use os_upgrade_kernel::duration::Duration;
use os_upgrade_kernel::{Request, RunOperation};
use os_upgrade_protocol::RunId;
use uuid::Uuid;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Actor, Body, OptionalBody, Params, checked_reason};
use crate::http::form::Syntax;
use crate::routes::Routes;

/// The specification's default of `timeout`, in seconds: 4 h.
const TIMEOUT_DEFAULT_SECS: u64 = 4 * 3_600;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&TRIGGER, trigger).route(&CANCEL, cancel).route(&GIVE_UP, give_up)
}

/// Reads the body of a trigger: how long the run may take, if given.
pub(crate) fn read_trigger(body: &[u8], syntax: Syntax) -> Result<Option<Duration>, Problem> {
    crate::http::document::parse::<Trigger>(body, syntax).map(|body| body.timeout)
}

async fn trigger(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    OptionalBody(body): OptionalBody<Trigger>,
) -> Result<StatusCode, Problem> {
    let timeout = body.and_then(|body| body.timeout).unwrap_or(Duration::from_secs(TIMEOUT_DEFAULT_SECS));
    // Version 7: ids given later sort later.
    let run =
        RunId::new(&Uuid::now_v7().to_string()).map_err(|error| Problem::internal(error.to_string()))?;
    let operation = RunOperation::Trigger { run, timeout };
    let request = Request { actor, validate: params.is_validation(), operation };
    api.change(request).await
}

async fn cancel(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(NoParameters {}): Params<NoParameters>,
    OptionalBody(_): OptionalBody<NoFields>,
) -> Result<StatusCode, Problem> {
    api.change(Request::new(actor, RunOperation::Cancel)).await
}

async fn give_up(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(HostToGiveUp { host, reason }): Body<HostToGiveUp>,
) -> Result<StatusCode, Problem> {
    let operation = RunOperation::GiveUpHost { host, reason: checked_reason(&reason)? };
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}
