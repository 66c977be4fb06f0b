//! `/v1/config/os-upgrade`: what operators intend.
//!
//! A write is decided by whoever leads, on what is configured by then: it is told what the writer's conditions expect.
//! An answer to a write has no `ETag`: what is kept may be another text than what was sent.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

mod conditions;
mod history;
pub(crate) mod patch;

use axum::extract::{Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::http::header::{ALLOW, ETAG, HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::config::{CHANGE, ConfigBody, DELETE, DESCRIBE, READ, REPLACE, ReadParameters};
use os_upgrade_api_types::openapi::fields_of;
use os_upgrade_api_types::query::Validate;
use os_upgrade_kernel::Expected;
use os_upgrade_kernel::{Accepted, Config, ConfigOperation, ConfigRefusal, Request};
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_site::snapshot::SiteSnapshot;

use self::conditions::{Conditions, Read, entity_tag};
use self::patch::Patch;
use crate::context::Api;
use crate::http::document::{from_value, parse};
use crate::http::error::Problem;
use crate::http::extract::{Actor, Body, Params, bytes, empty_body};
use crate::http::fields::{Keep, Kept};
use crate::http::form::{Form, Syntax};
use crate::http::reply;
use crate::routes::Routes;

/// How long a change may be tried again because others have changed the configuration meanwhile.
const RETRIED_WITHIN: Duration = Duration::from_secs(3);

/// How long to wait for what the leader knows already.
const BEHIND_PAUSE: Duration = Duration::from_millis(10);

/// RFC 5789.
const ACCEPT_PATCH: HeaderName = HeaderName::from_static("accept-patch");

const METHODS: &str = "GET, HEAD, PUT, PATCH, DELETE, OPTIONS";

/// The paths of all fields.
pub(crate) static FIELDS: LazyLock<Vec<String>> = LazyLock::new(fields_of::<ConfigBody>);

pub(crate) fn routes() -> Routes {
    Routes::default()
        .route(&READ, read)
        .route(&REPLACE, replace)
        .route(&CHANGE, change)
        .route(&DELETE, delete)
        .route(&DESCRIBE, options)
        .merge(history::routes())
}

/// Reads the body of a PUT.
pub(crate) fn read_body(body: &[u8], syntax: Syntax) -> Result<Config, Problem> {
    parse(body, syntax)
}

async fn read(
    State(api): State<Api>,
    form: Form,
    conditions: Conditions,
    Params(params): Params<ReadParameters>,
) -> Result<Response, Problem> {
    let keep = params.fields.map_or(Ok(Keep::All), |fields| Keep::parse(&fields, &FIELDS))?;
    let present = api.snapshot()?;
    let (Some(config), Some(tag)) = (present.state.config.as_deref(), present.state.config_tag()) else {
        return Err(Problem::not_found("there is no configuration"));
    };
    let mut response = match conditions.of_read(&tag, form.syntax) {
        Read::Answered => reply::json(&Kept(config, &keep))?,
        Read::Known => StatusCode::NOT_MODIFIED.into_response(),
        Read::Refused => return Err(ConfigRefusal::ConfigChanged { tag: Some(tag) }.into()),
    };
    response.headers_mut().insert(ETAG, entity_tag(&tag, form.syntax)?);
    Ok(response)
}

async fn replace(
    State(api): State<Api>,
    Actor(actor): Actor,
    conditions: Conditions,
    Params(params): Params<Validate>,
    Body(config): Body<Config>,
) -> Result<StatusCode, Problem> {
    let ask = |expected| ConfigOperation::Put { config: config.clone(), expected };
    conditional(&api, &conditions, &actor, params.only(), ask).await
}

async fn delete(
    State(api): State<Api>,
    Actor(actor): Actor,
    conditions: Conditions,
    Params(params): Params<Validate>,
) -> Result<StatusCode, Problem> {
    let ask = |expected| ConfigOperation::Delete { expected };
    conditional(&api, &conditions, &actor, params.only(), ask).await
}

async fn options() -> Response {
    let headers = [
        (ALLOW, HeaderValue::from_static(METHODS)),
        (ACCEPT_PATCH, HeaderValue::from_static(patch::ACCEPTED)),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Asks for a write under `conditions`.
async fn conditional(
    api: &Api,
    conditions: &Conditions,
    actor: &str,
    validate: bool,
    ask: impl Fn(Expected) -> ConfigOperation,
) -> Result<StatusCode, Problem> {
    let ask = |expected| Request { actor: actor.to_owned(), validate, operation: ask(expected) };
    if let Some(expected) = conditions.expected() {
        let answer = api.site.request(ask(expected)).await?;
        return answer
            .map(|accepted| reply::granted(&accepted))
            .map_err(|refusal| unmet(conditions, refusal));
    }
    // Whoever decides can only be told what must be there: so it is what is there now, as far as that is wanted.
    let end = Instant::now() + RETRIED_WITHIN;
    loop {
        let tag = api.snapshot_for_change()?.state.config_tag();
        if !conditions.hold(tag.as_deref()) {
            return Err(unmet(conditions, ConfigRefusal::ConfigChanged { tag }));
        }
        match api.site.request(ask(exactly(tag.as_deref()))).await? {
            Ok(accepted) => return Ok(reply::granted(&accepted)),
            Err(ConfigRefusal::ConfigChanged { .. }) => again(api, tag.as_deref(), end).await?,
            Err(refusal) => return Err(refusal.into()),
        }
    }
}

/// Why a write under `conditions` was refused.
fn unmet(conditions: &Conditions, refusal: ConfigRefusal) -> Problem {
    let is_there = matches!(refusal, ConfigRefusal::ConfigChanged { tag: Some(_) });
    let problem = Problem::from(refusal);
    if is_there && conditions.want_none() {
        problem.with_message(
            "there is a configuration already, and If-None-Match: * asks for none: leave it out",
        )
    } else {
        problem
    }
}

/// Nothing but what has `tag`.
fn exactly(tag: Option<&str>) -> Expected {
    tag.map_or(Expected::Absent, |tag| Expected::Tags(vec![tag.to_owned()]))
}

/// Returns when it is worth another try, after one on what had `tag`.
async fn again(api: &Api, tag: Option<&str>, end: Instant) -> Result<(), Problem> {
    if Instant::now() >= end {
        let why = "the configuration was changed by others again and again";
        return Err(NotDone::unchanged(why).into());
    }
    if api.snapshot_for_change()?.state.config_tag().as_deref() == tag {
        tokio::time::sleep(BEHIND_PAUSE).await;
    }
    Ok(())
}

async fn change(
    State(api): State<Api>,
    Actor(actor): Actor,
    conditions: Conditions,
    Params(params): Params<Validate>,
    request: HttpRequest,
) -> Result<Response, Problem> {
    let headers = request.headers().clone();
    let body = bytes(request, &api).await?;
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(empty_body());
    }
    let patch = match Patch::read(&headers, &body) {
        Ok(patch) => patch,
        Err(problem) => return Ok(refused(problem)),
    };
    let change = Change { patch, conditions, actor, validate: params.only() };
    let end = Instant::now() + RETRIED_WITHIN;
    loop {
        let present = api.snapshot_for_change()?;
        if let Some(accepted) = change.attempt(&api, &present).await? {
            return Ok(reply::granted(&accepted).into_response());
        }
        again(&api, present.state.config_tag().as_deref(), end).await?;
    }
}

fn refused(problem: Problem) -> Response {
    let mut response = problem.into_response();
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        response.headers_mut().insert(ACCEPT_PATCH, HeaderValue::from_static(patch::ACCEPTED));
    }
    response
}

/// A patch, and under which conditions it is to be applied.
struct Change {
    patch: Patch,
    conditions: Conditions,
    actor: String,
    validate: bool,
}

impl Change {
    /// Changes what is configured in `present`; nothing comes of it when that is not the present any more.
    async fn attempt(&self, api: &Api, present: &SiteSnapshot) -> Result<Option<Accepted>, Problem> {
        let state = &present.state;
        let expected = exactly(state.config_tag().as_deref());
        let patched = self.patched(present);
        // This instance may be behind the leader: what cannot be done is not said before it is known that it is not.
        let operation = match (&patched, state.config.as_deref()) {
            (Ok(config), _) | (Err(_), Some(config)) => {
                ConfigOperation::Put { config: config.clone(), expected }
            }
            (Err(_), None) => ConfigOperation::Delete { expected },
        };
        let validate = self.validate || patched.is_err();
        let request = Request { actor: self.actor.clone(), validate, operation };
        match (api.site.request(request).await?, patched) {
            (Ok(_), Err(problem)) => Err(problem),
            (Ok(accepted), Ok(_)) => Ok(Some(accepted)),
            (Err(ConfigRefusal::ConfigChanged { .. }), _) => Ok(None),
            (Err(refusal), _) => Err(refusal.into()),
        }
    }

    fn patched(&self, present: &SiteSnapshot) -> Result<Config, Problem> {
        let state = &present.state;
        let config = state.config.as_deref().ok_or(ConfigRefusal::NoConfiguration)?;
        let tag = state.config_tag();
        if !self.conditions.hold(tag.as_deref()) {
            return Err(unmet(&self.conditions, ConfigRefusal::ConfigChanged { tag }));
        }
        let value = serde_json::to_value(config).map_err(|error| Problem::internal(error.to_string()))?;
        let config: Config = from_value(self.patch.apply(value)?)?;
        config.validate().map_err(ConfigRefusal::from)?;
        Ok(config)
    }
}
