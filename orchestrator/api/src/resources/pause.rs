//! `/v1/state/os-upgrade/pause` and `/resume`.

use axum::extract::State;
use axum::http::StatusCode;
use os_upgrade_api_types::query::Validate;
use os_upgrade_api_types::routes::pause::{PAUSE, Pause, RESUME, Resume};
use os_upgrade_kernel::{PauseOperation, Request};

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Actor, Body, OptionalBody, Params, checked_reason};
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default().route(&PAUSE, pause).route(&RESUME, resume)
}

async fn pause(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(Pause { reason, until }): Body<Pause>,
) -> Result<StatusCode, Problem> {
    let (reason, until) = (checked_reason(&reason)?, until.map(|until| until.0));
    let operation = PauseOperation::Pause { reason, until };
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}

async fn resume(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    OptionalBody(body): OptionalBody<Resume>,
) -> Result<StatusCode, Problem> {
    let reason = body.unwrap_or_default().reason.as_deref().map(checked_reason).transpose()?;
    let operation = PauseOperation::Resume { reason };
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}
