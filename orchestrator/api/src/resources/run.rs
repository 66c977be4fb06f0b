//! `/v1/state/os-upgrade/trigger-upgrade-site`, `/cancel` and `/give-up-host`: starts a run, stops it, or continues it
//! without a host. The last is an extension of the specification.

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::body::HostWithReason;
use os_upgrade_api_types::headers;
use os_upgrade_api_types::query::{NoParameters, Validate};
use os_upgrade_api_types::routes::runs::{CANCEL, Cancel, EVENTS_MAX, GIVE_UP, READ, TRIGGER, Trigger};
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::{Request, RunOperation};
use os_upgrade_protocol::RunId;
use uuid::Uuid;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Actor, Body, OptionalBody, Params, checked_reason};
use crate::http::form::Syntax;
use crate::http::prefer::{APPLIED, PREFERENCE_APPLIED, Preference};
use crate::resources::runs;
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
    preference: Preference,
    Params(params): Params<Validate>,
    OptionalBody(body): OptionalBody<Trigger>,
) -> Result<Response, Problem> {
    let (timeout, reason) = body.map_or((None, None), |body| (body.timeout, body.reason));
    let timeout = timeout.unwrap_or(Duration::from_secs(TIMEOUT_DEFAULT_SECS));
    let reason = reason.as_deref().map(checked_reason).transpose()?;
    // Version 7: ids given later sort later.
    let run =
        RunId::new(&Uuid::now_v7().to_string()).map_err(|error| Problem::internal(error.to_string()))?;
    let location = HeaderValue::try_from(format!("/{}", READ.named([run.as_str()]).segments().join("/")));
    let location = location.map_err(|error| Problem::internal(error.to_string()))?;
    let id = HeaderValue::try_from(run.as_str()).map_err(|error| Problem::internal(error.to_string()))?;
    let validate = params.is_validation();
    let operation = RunOperation::Trigger { run: run.clone(), timeout, reason };
    let status = api.change(Request { actor, validate, operation }).await?;
    if validate {
        return Ok(status.into_response());
    }
    let mut response = match preference {
        Preference::Specified => status.into_response(),
        Preference::Representation => represented(&api, &run).await.unwrap_or_else(|| status.into_response()),
    };
    response.headers_mut().insert(LOCATION, location);
    response.headers_mut().insert(headers::RUN, id);
    Ok(response)
}

/// The answer that shows a run that has started; `None` if the history cannot show it yet. The run has started all the
/// same, so that this is no error.
async fn represented(api: &Api, run: &RunId) -> Option<Response> {
    let mut response = runs::render(api, run, EVENTS_MAX, None).await.ok()??;
    *response.status_mut() = StatusCode::CREATED;
    response.headers_mut().insert(PREFERENCE_APPLIED, APPLIED);
    Some(response)
}

async fn cancel(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(NoParameters {}): Params<NoParameters>,
    OptionalBody(body): OptionalBody<Cancel>,
) -> Result<StatusCode, Problem> {
    let reason = body.and_then(|body| body.reason);
    let reason = reason.as_deref().map(checked_reason).transpose()?;
    api.change(Request::new(actor, RunOperation::Cancel { reason })).await
}

async fn give_up(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(params): Params<Validate>,
    Body(HostWithReason { host, reason }): Body<HostWithReason>,
) -> Result<StatusCode, Problem> {
    let operation = RunOperation::GiveUpHost { host, reason: checked_reason(&reason)? };
    api.change_and_log(Request { actor, validate: params.is_validation(), operation }).await
}
