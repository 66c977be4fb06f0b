//! `/v1/state/os-upgrade/trigger-upgrade-site`, `/cancel` and `/give-up-host`: starts a run, stops it, or continues it
//! without a host. The last is an extension of the specification.

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use chrono::Utc;
use os_upgrade_api_types::body::{HostWithReason, Stamp};
use os_upgrade_api_types::headers;
use os_upgrade_api_types::query::{NoParameters, Validate};
use os_upgrade_api_types::routes::runs::{
    CANCEL, Cancel, EVENTS_MAX, GIVE_UP, HostInPreview, READ, RunPreview, TRIGGER, Trigger,
};
use os_upgrade_calendar::Duration;
use os_upgrade_kernel::{Enlisted, Preview, Request, RunOperation, TIMEOUT_DEFAULT, Targets, preview};
use os_upgrade_protocol::RunId;
use uuid::Uuid;

use crate::bodies;
use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Actor, Body, OptionalBody, Params, checked_reason};
use crate::http::form::Syntax;
use crate::http::prefer::{APPLIED, PREFERENCE_APPLIED, Preference};
use crate::http::reply;
use crate::resources::runs;
use crate::routes::Routes;

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
    let Trigger { timeout, hosts, retry, reason } = body.unwrap_or_default();
    // A list that came out empty does not mean everybody.
    if hosts.as_ref().is_some_and(Vec::is_empty) {
        return Err(Problem::bad_request("hosts: name one at least, or leave it out for the whole site"));
    }
    let targets = Targets { hosts: hosts.unwrap_or_default(), retry };
    // A run of chosen hosts makes way for the next one of the site.
    let timeout = timeout.or_else(|| targets.is_all().then_some(TIMEOUT_DEFAULT));
    let reason = reason.as_deref().map(checked_reason).transpose()?;
    // Version 7: ids given later sort later.
    let run =
        RunId::new(&Uuid::now_v7().to_string()).map_err(|error| Problem::internal(error.to_string()))?;
    let location = HeaderValue::try_from(format!("/{}", READ.named([run.as_str()]).segments().join("/")));
    let location = location.map_err(|error| Problem::internal(error.to_string()))?;
    let id = HeaderValue::try_from(run.as_str()).map_err(|error| Problem::internal(error.to_string()))?;
    let validate = params.is_validation();
    let operation = RunOperation::Trigger { run: run.clone(), timeout, targets: targets.clone(), reason };
    let status = api.change(Request { actor, validate, operation }).await?;
    if validate {
        return match preference {
            Preference::Specified => Ok(status.into_response()),
            // The leader has judged; what this instance sees may be a moment older.
            Preference::Representation => {
                Ok(previewed(&api, timeout, &targets).unwrap_or_else(|_| status.into_response()))
            }
        };
    }
    let mut response = match preference {
        Preference::Specified => status.into_response(),
        Preference::Representation => represented(&api, &run).await.unwrap_or_else(|| status.into_response()),
    };
    response.headers_mut().insert(LOCATION, location);
    response.headers_mut().insert(headers::RUN, id);
    Ok(response)
}

/// The answer that shows what a run would be of that starts now.
fn previewed(api: &Api, timeout: Option<Duration>, targets: &Targets) -> Result<Response, Problem> {
    let published = api.published()?;
    let now = Utc::now();
    let Preview { hosts, not_after } = preview(&published.state, &published.view, timeout, targets, now)?;
    let host = |entry: Enlisted| HostInPreview {
        hostname: entry.host.to_string(),
        group: entry.group.to_string(),
        why: entry.skipped.map(bodies::why),
    };
    // One that is due now, and is kept back for the moment, is lost as well.
    let next = published.forecast(now).start().map(|start| start.at);
    let cost = next.filter(|next| !targets.is_all() && *next < not_after);
    let body = RunPreview {
        not_after: Stamp(not_after),
        hosts: hosts.into_iter().map(host).collect(),
        costs_start_at: cost.map(Stamp),
    };
    let mut response = reply::json(&body)?;
    response.headers_mut().insert(PREFERENCE_APPLIED, APPLIED);
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
