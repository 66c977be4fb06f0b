//! `/v1/config/os-upgrade`: the configuration that operators write.
//!
//! The leader decides a write, against the configuration of that moment and the writer's conditions, which are passed
//! to it. The answer to a write has no `ETag`, because the stored text may differ from the one that was sent.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

mod conditions;
mod history;
pub(crate) mod patch;
mod warned;

use axum::extract::{Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::http::header::{ALLOW, ETAG, HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use os_upgrade_api_types::openapi::fields_of;
use os_upgrade_api_types::query::Validate;
use os_upgrade_api_types::routes::config::{
    CHANGE, ConfigBody, DELETE, DESCRIBE, READ, REPLACE, ReadParameters,
};
use os_upgrade_kernel::{Accepted, Config, ConfigOperation, ConfigRefusal, Expected, Request};
use os_upgrade_shell::not_done::NotDone;
use os_upgrade_site::published_state::PublishedState;

use self::conditions::{Conditions, Read, entity_tag};
use self::patch::Patch;
use self::warned::AnswerForm;
use crate::context::Api;
use crate::http::document::{from_value, parse};
use crate::http::error::Problem;
use crate::http::extract::{Actor, Body, Params, bytes, empty_body};
use crate::http::fields::{self, Keep};
use crate::http::form::{Form, Syntax};
use crate::http::prefer::Preference;
use crate::http::reply;
use crate::routes::Routes;

/// How long a write is retried while others change the configuration.
const RETRY_TIMEOUT: Duration = Duration::from_secs(3);

/// Pause while this instance catches up with the leader.
const CATCH_UP_PAUSE: Duration = Duration::from_millis(10);

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
    let published = api.published()?;
    let (Some(config), Some(tag)) = (published.state.config.as_deref(), published.state.config_tag()) else {
        return Err(Problem::not_found("there is no configuration"));
    };
    let mut response = match conditions.for_read(&tag, form.syntax) {
        Read::Send => {
            let mut bytes = Vec::new();
            fields::write(&mut bytes, config, &keep).map_err(|error| Problem::internal(error.to_string()))?;
            reply::json_bytes(bytes)
        }
        Read::NotModified => StatusCode::NOT_MODIFIED.into_response(),
        Read::Failed => return Err(ConfigRefusal::ConfigChanged { tag: Some(tag) }.into()),
    };
    response.headers_mut().insert(ETAG, entity_tag(&tag, form.syntax)?);
    Ok(response)
}

async fn replace(
    State(api): State<Api>,
    Actor(actor): Actor,
    conditions: Conditions,
    preference: Preference,
    Params(params): Params<Validate>,
    Body(config): Body<Config>,
) -> Result<Response, Problem> {
    let validate = params.is_validation();
    let before = api.published().ok();
    let operation = |expected| ConfigOperation::Put { config: config.clone().into(), expected };
    let status = write_if(&api, &conditions, &actor, validate, operation).await?;
    let form = AnswerForm::of(validate, preference);
    warned::answer(&api, before, Some(config), status, form).await
}

async fn delete(
    State(api): State<Api>,
    Actor(actor): Actor,
    conditions: Conditions,
    preference: Preference,
    Params(params): Params<Validate>,
) -> Result<Response, Problem> {
    let validate = params.is_validation();
    let before = api.published().ok();
    let operation = |expected| ConfigOperation::Delete { expected };
    let status = write_if(&api, &conditions, &actor, validate, operation).await?;
    warned::answer(&api, before, None, status, AnswerForm::of(validate, preference)).await
}

async fn options() -> Response {
    let headers = [
        (ALLOW, HeaderValue::from_static(METHODS)),
        (ACCEPT_PATCH, HeaderValue::from_static(patch::ACCEPTED)),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Requests a write under `conditions`.
async fn write_if(
    api: &Api,
    conditions: &Conditions,
    actor: &str,
    validate: bool,
    operation: impl Fn(Expected) -> ConfigOperation,
) -> Result<StatusCode, Problem> {
    let request = |expected| Request { actor: actor.to_owned(), validate, operation: operation(expected) };
    if let Some(expected) = conditions.expected() {
        let answer = api.site.request(request(expected)).await?;
        return answer
            .map(|accepted| reply::granted(&accepted))
            .map_err(|refusal| refusal_problem(conditions, refusal));
    }
    // These conditions cannot be passed to the leader. Check them here, and expect the tag that was checked.
    let end = Instant::now() + RETRY_TIMEOUT;
    loop {
        let tag = api.published_for_change()?.state.config_tag();
        if !conditions.hold(tag.as_deref()) {
            return Err(refusal_problem(conditions, ConfigRefusal::ConfigChanged { tag }));
        }
        match api.site.request(request(expect_tag(tag.as_deref()))).await? {
            Ok(accepted) => return Ok(reply::granted(&accepted)),
            Err(ConfigRefusal::ConfigChanged { .. }) => wait_for_retry(api, tag.as_deref(), end).await?,
            Err(refusal) => return Err(refusal.into()),
        }
    }
}

/// The error of a write under `conditions` that was refused.
fn refusal_problem(conditions: &Conditions, refusal: ConfigRefusal) -> Problem {
    let is_there = matches!(refusal, ConfigRefusal::ConfigChanged { tag: Some(_) });
    let problem = Problem::from(refusal);
    if is_there && conditions.require_absence() {
        problem.with_message(
            "a configuration exists, and If-None-Match: * requires that there is none: leave it out",
        )
    } else {
        problem
    }
}

/// Expects exactly the configuration with `tag`, or none.
fn expect_tag(tag: Option<&str>) -> Expected {
    tag.map_or(Expected::Absent, |tag| Expected::Tags(vec![tag.to_owned()]))
}

/// Waits before a retry of a write that expected `tag`. Fails after `end`.
async fn wait_for_retry(api: &Api, tag: Option<&str>, end: Instant) -> Result<(), Problem> {
    if Instant::now() >= end {
        let why = "others kept changing the configuration";
        return Err(NotDone::unchanged(why).into());
    }
    if api.published_for_change()?.state.config_tag().as_deref() == tag {
        tokio::time::sleep(CATCH_UP_PAUSE).await;
    }
    Ok(())
}

async fn change(
    State(api): State<Api>,
    Actor(actor): Actor,
    conditions: Conditions,
    preference: Preference,
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
        Err(problem) => return Ok(patch_refused(problem)),
    };
    let change = Change { patch, conditions, actor, validate: params.is_validation() };
    let end = Instant::now() + RETRY_TIMEOUT;
    loop {
        let published = api.published_for_change()?;
        if let Some((accepted, config)) = change.attempt(&api, &published).await? {
            let form = AnswerForm::of(change.validate, preference);
            let status = reply::granted(&accepted);
            return warned::answer(&api, Some(published), Some(config), status, form).await;
        }
        wait_for_retry(&api, published.state.config_tag().as_deref(), end).await?;
    }
}

fn patch_refused(problem: Problem) -> Response {
    let mut response = problem.into_response();
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        response.headers_mut().insert(ACCEPT_PATCH, HeaderValue::from_static(patch::ACCEPTED));
    }
    response
}

/// A patch, and the conditions under which to apply it.
struct Change {
    patch: Patch,
    conditions: Conditions,
    actor: String,
    validate: bool,
}

impl Change {
    /// Applies the patch to the configuration in `published`, and returns the result. `None` if that is no longer the
    /// current one.
    async fn attempt(
        &self,
        api: &Api,
        published: &PublishedState,
    ) -> Result<Option<(Accepted, Config)>, Problem> {
        let state = &published.state;
        let expected = expect_tag(state.config_tag().as_deref());
        let patched = self.patched(published);
        // This instance may be behind the leader. Before an error is reported, a validation request confirms that the
        // leader has the same configuration.
        let operation = match (&patched, state.config.as_deref()) {
            (Ok(config), _) | (Err(_), Some(config)) => {
                ConfigOperation::Put { config: config.clone().into(), expected }
            }
            (Err(_), None) => ConfigOperation::Delete { expected },
        };
        let validate = self.validate || patched.is_err();
        let request = Request { actor: self.actor.clone(), validate, operation };
        match (api.site.request(request).await?, patched) {
            (Ok(_), Err(problem)) => Err(problem),
            (Ok(accepted), Ok(config)) => Ok(Some((accepted, config))),
            (Err(ConfigRefusal::ConfigChanged { .. }), _) => Ok(None),
            (Err(refusal), _) => Err(refusal.into()),
        }
    }

    fn patched(&self, published: &PublishedState) -> Result<Config, Problem> {
        let state = &published.state;
        let config = state.config.as_deref().ok_or(ConfigRefusal::NoConfiguration)?;
        let tag = state.config_tag();
        if !self.conditions.hold(tag.as_deref()) {
            return Err(refusal_problem(&self.conditions, ConfigRefusal::ConfigChanged { tag }));
        }
        let value = serde_json::to_value(config).map_err(|error| Problem::internal(error.to_string()))?;
        let config: Config = from_value(self.patch.apply(value, &FIELDS)?)?;
        config.validate().map_err(ConfigRefusal::from)?;
        Ok(config)
    }
}
