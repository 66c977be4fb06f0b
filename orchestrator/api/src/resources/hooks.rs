//! `/v1/hooks/callback`: providers of kind `hooks` call back. Only the tokens that they were sent count here, and they count nowhere else.
//!
//! The content type is ignored, since clients send any or none: the body is JSON.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use os_upgrade_api_types::query::NoParameters;
use os_upgrade_api_types::route::{Declaration, Dialect};
use os_upgrade_api_types::routes::hooks::{
    AcceptedUpdate, BELOW_PREFIX, CALL_BACK, CallBackAnswer, PREFIX, RefusedUpdate,
};
use os_upgrade_api_types::word::{CallBackRefusal, Word};
use os_upgrade_auth::{Denied, bearer};
use os_upgrade_kernel::{self as kernel, ConfigProvider, DesiredOperation, State as Site};
use os_upgrade_protocol::HostName;
use os_upgrade_provider_rules::ProviderName;
use os_upgrade_provider_rules::hooks::{
    CALLBACK_BYTES_MAX, CallbackError, CallbackToken, ConfigUpdate, UpdateError, read_callback,
};
use os_upgrade_site::published_state::PublishedState;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::refusal::retry_after;
use crate::http::{authorization, extract, reply};

/// The routes, which check the caller themselves.
pub(crate) const DECLARATIONS: [&Declaration; 1] = [CALL_BACK.declaration()];

/// How many hosts a record names: a follower passes no larger requests on.
const HOSTS_AT_ONCE: usize = 1_000;

const _: () = assert!(Dialect::CallBack.body_bytes_max() == CALLBACK_BYTES_MAX);

/// The routes in the dialect of call-backs, below their prefix.
pub(crate) fn routes() -> Router<Api> {
    Router::new().route(BELOW_PREFIX, post(call_back)).fallback(not_found)
}

async fn not_found(uri: Uri) -> Problem {
    Problem::not_found(format!("nothing exists at {PREFIX}{}", uri.path()))
}

/// How a call-back with a valid token ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Some host is asked about again.
    Accepted,
    /// All that it names was refused.
    Refused,
    /// It cannot be read.
    Invalid,
    /// There were too many.
    TooMany,
    /// Nothing can be done now, or what was done is unknown.
    Unavailable,
}

impl Outcome {
    /// The label in the metrics.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Invalid => "invalid",
            Self::TooMany => "rate",
            Self::Unavailable => "unavailable",
        }
    }
}

async fn call_back(State(api): State<Api>, request: Request) -> Response {
    let published = match api.published_for_change() {
        Ok(published) => published,
        Err(problem) => return problem.into_response(),
    };
    let provider = match caller(&published.state, request.headers()) {
        Ok(provider) => provider.clone(),
        Err(denied) => {
            let peer = authorization::peer(&request);
            api.authenticator.denials().record(denied.as_str(), peer, Instant::now());
            return authorization::Refusal::Denied(denied).answer(request.method());
        }
    };
    let (outcome, response) = match api.call_back_rate.admit(&provider) {
        Err(wait) => (Outcome::TooMany, too_many(&provider, wait)),
        Ok(()) => match answer(&api, &published, &provider, request).await {
            Ok((outcome, response)) => (outcome, response),
            Err(problem) if problem.status().is_server_error() => {
                (Outcome::Unavailable, problem.into_response())
            }
            Err(problem) => (Outcome::Invalid, problem.into_response()),
        },
    };
    let labels = [("provider", provider.to_string()), ("outcome", outcome.as_str().to_owned())];
    api.answers.call_backs.get_or_create(&labels).inc();
    response
}

/// The provider that was sent the token of a request. Every token of every provider is compared, whichever is the right one.
fn caller<'a>(state: &'a Site, headers: &HeaderMap) -> Result<&'a ProviderName, Denied> {
    let presented = CallbackToken::digest_of(&bearer(headers)?).ok_or(Denied::Invalid)?;
    let mut found = None;
    for (name, provider) in &state.desired.hooks {
        for digest in &provider.tokens {
            if CallbackToken::is_same_digest(&presented, digest) {
                found = Some(name);
            }
        }
    }
    found.ok_or(Denied::Invalid)
}

fn too_many(provider: &ProviderName, wait: Duration) -> Response {
    let message = format!(
        "provider {provider} calls back too often: about fewer hosts, or with more of them in one call-back"
    );
    let mut response = Problem::new(StatusCode::TOO_MANY_REQUESTS, message).into_response();
    retry_after(&mut response, wait.as_secs() + 1);
    response
}

/// Handles a call-back of the provider `name`; `Ok` once it is durable what it is asked about again.
async fn answer(
    api: &Api,
    published: &PublishedState,
    name: &ProviderName,
    request: Request,
) -> Result<(Outcome, Response), Problem> {
    let NoParameters {} = extract::parameters(request.uri())?;
    let body = extract::bytes_in(Dialect::CallBack, request, &()).await?;
    let members = read_callback(&body).map_err(|error| Problem::new(status(error), error.to_string()))?;
    let provider = published.state.hook_provider(name);
    let provider = provider.ok_or_else(|| Problem::not_found(format!("there is no provider {name}")))?;
    let (hosts, refused) = judge(published, provider, members);
    if hosts.is_empty() {
        let answer = CallBackAnswer { accepted: Vec::new(), refused };
        return Ok((Outcome::Refused, accepted(&answer)?));
    }
    let hosts: Vec<HostName> = hosts.into_iter().collect();
    if let Err(wait) = api.call_back_rate.admit_hosts(name, hosts.len()) {
        return Ok((Outcome::TooMany, too_many(name, wait)));
    }
    for part in hosts.chunks(HOSTS_AT_ONCE) {
        let operation = DesiredOperation::CallBack { provider: name.clone(), hosts: part.to_vec() };
        api.site.request(kernel::Request::new(format!("provider:{name}"), operation)).await??;
    }
    let device_names = hosts.iter().map(|host| host.as_str().into()).collect();
    let update = AcceptedUpdate { config_name: name.as_str().into(), device_names };
    let answer = CallBackAnswer { accepted: vec![update], refused };
    Ok((Outcome::Accepted, accepted(&answer)?))
}

fn accepted(answer: &CallBackAnswer<'_>) -> Result<Response, Problem> {
    Ok((StatusCode::ACCEPTED, reply::json(answer)?).into_response())
}

const fn status(error: CallbackError) -> StatusCode {
    match error {
        CallbackError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        CallbackError::NotAnArray { .. } | CallbackError::TooManyMembers | CallbackError::TooManyDevices => {
            StatusCode::BAD_REQUEST
        }
    }
}

/// The hosts about which `provider` is asked again, and what is refused of `members`.
fn judge(
    published: &PublishedState,
    provider: &ConfigProvider,
    members: Vec<Result<ConfigUpdate, UpdateError>>,
) -> (BTreeSet<HostName>, Vec<RefusedUpdate<'static>>) {
    let (mut accepted, mut refused) = (BTreeSet::new(), Vec::new());
    for (member, update) in members.into_iter().enumerate() {
        let mut refuse = |device_name: Option<&HostName>, reason: CallBackRefusal, detail: String| {
            let device_name = device_name.map(|host| host.to_string().into());
            refused.push(RefusedUpdate {
                member,
                device_name,
                reason: Word::Known(reason),
                detail: detail.into(),
            });
        };
        match update {
            Err(error) => refuse(None, CallBackRefusal::Invalid, error.to_string()),
            Ok(update) if update.provider != provider.name => {
                let detail = format!("the token is that of provider {}", provider.name);
                refuse(None, CallBackRefusal::NotItsOwn, detail);
            }
            Ok(update) => {
                for host in update.hosts {
                    match refusal(published, provider, &host) {
                        None => {
                            accepted.insert(host);
                        }
                        Some((reason, detail)) => refuse(Some(&host), reason, detail),
                    }
                }
            }
        }
    }
    (accepted, refused)
}

/// Why `provider` may not call back about `host`. A host of others is as unknown to it as one that does not exist.
fn refusal(
    published: &PublishedState,
    provider: &ConfigProvider,
    host: &HostName,
) -> Option<(CallBackRefusal, String)> {
    let PublishedState { state, view, .. } = published;
    let is_device = state.hook_device(&provider.name, host).is_some();
    let is_known = is_device || view.hosts.contains_key(host);
    let name = &provider.name;
    if !is_known || !provider.selects(host) || !state.enrolled(host).takes_part() {
        Some((CallBackRefusal::UnknownDevice, format!("provider {name} has no such device")))
    } else if is_device {
        None
    } else {
        let detail = "no key of the device is approved yet: the provider is asked once one is";
        Some((CallBackRefusal::NoKey, detail.to_owned()))
    }
}
