//! `/v1/config/strongbox/secrets` and `/v1/state/strongbox`: the site's secrets, which can be written and never read,
//! and their key.

pub(crate) mod history;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use os_upgrade_api_types::body::{Count, Entry, Stamp};
use os_upgrade_api_types::query::{ListMode, NameList, NoParameters};
use os_upgrade_api_types::routes::strongbox::{LIST, PUT, READ, REMOVE, Secret, Secrets, Strongbox, UNSEAL};
use os_upgrade_console::describe;
use os_upgrade_kernel::{Request, Sealed, SecretName, SecretOperation};
use os_upgrade_provider_rules::Origin;
use os_upgrade_site::strongbox::SECRET_BYTES_MAX;
use os_upgrade_site::strongbox::key::Key;
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::context::Api;
use crate::http::error::Problem;
use crate::http::extract::{Actor, Body, Name, Params};
use crate::http::reply;
use crate::routes::Routes;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .route(&LIST, list)
        .route(&PUT, put)
        .route(&REMOVE, remove)
        .route(&READ, read)
        .route(&UNSEAL, unseal)
        .merge(history::routes())
}

impl From<Sealed> for Problem {
    fn from(sealed: Sealed) -> Self {
        Self::unavailable(describe(&sealed).to_string())
    }
}

async fn list(State(api): State<Api>, Params(params): Params<NameList>) -> Result<Response, Problem> {
    let published = api.published()?;
    let kept = &published.state.strongbox.secrets;
    let mode = params.mode();
    if mode == ListMode::Count {
        return reply::json(&Count { count: kept.len() as u64 });
    }
    let secrets = kept.iter().map(|(name, secret)| Secret {
        name: name.as_str().into(),
        actor: secret.actor.as_str().into(),
        origin: secret.origin.as_ref().map(|origin| origin.to_string().into()),
        since: Stamp(secret.since),
    });
    let (page, next) = params.page(secrets, |secret| secret.name.to_string());
    let secrets = page.into_iter().map(|secret| {
        let name = secret.name.clone();
        Entry::of(mode, || name, || secret)
    });
    let secrets = secrets.collect();
    reply::json(&Secrets { secrets, next })
}

async fn put(
    State(api): State<Api>,
    Actor(actor): Actor,
    Name(name): Name,
    Params(NoParameters {}): Params<NoParameters>,
    body: Result<Body<Value>, Problem>,
) -> Result<StatusCode, Problem> {
    let name = secret_name(&name)?;
    let (value, origin) = secret_value(body)?;
    if value.is_empty() || value.len() > SECRET_BYTES_MAX {
        return Err(Problem::bad_request(format!("value: expected 1 to {SECRET_BYTES_MAX} bytes")));
    }
    let published = api.published_for_change()?;
    let keep = api.options.strongbox.keep(&published.state.strongbox, name, origin, &value);
    let keep = keep.map_err(|why| {
        let info = json!({ "kind": "strongbox-sealed", "why": why });
        Problem::from(why).with_info(info)
    })?;
    let keep = keep.map_err(|error| Problem::internal(error.to_string()))?;
    api.change(Request::new(actor, keep)).await
}

async fn remove(
    State(api): State<Api>,
    Actor(actor): Actor,
    Name(name): Name,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<StatusCode, Problem> {
    let name = secret_name(&name)?;
    api.change(Request::new(actor, SecretOperation::Remove { name })).await
}

async fn read(
    State(api): State<Api>,
    Params(NoParameters {}): Params<NoParameters>,
) -> Result<Response, Problem> {
    let published = api.published()?;
    let kept = &published.state.strongbox;
    let sealed = api.options.strongbox.sealed(kept);
    reply::json(&Strongbox {
        sealed: sealed.is_some(),
        reason: sealed.map(|sealed| describe(&sealed).to_string()),
        secrets: kept.secrets.len(),
    })
}

async fn unseal(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(NoParameters {}): Params<NoParameters>,
    body: Result<Body<Value>, Problem>,
) -> Result<StatusCode, Problem> {
    let key = Key::parse(&only_field(body, "key")?)
        .map_err(|error| Problem::bad_request(format!("key: {error}")))?;
    if api.options.strongbox.unseal(&api.published_for_change()?.state.strongbox, key) {
        tracing::info!(actor, "the strongbox was unsealed");
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::new(StatusCode::FORBIDDEN, "this is not the key of the strongbox"))
    }
}

fn secret_name(text: &str) -> Result<SecretName, Problem> {
    SecretName::new(text).map_err(|error| Problem::bad_request(error.to_string()))
}

/// The value of a secret, and the origin to which it may go. Errors quote nothing of the body but the origin.
fn secret_value(body: Result<Body<Value>, Problem>) -> Result<(Zeroizing<String>, Option<Origin>), Problem> {
    let expected = || {
        let what =
            "expected an object with the string \"value\", perhaps the string \"origin\", and nothing else";
        Problem::bad_request(what.to_owned())
    };
    let Value::Object(mut fields) = unquoted(body)? else { return Err(expected()) };
    let (value, origin) = (fields.remove("value"), fields.remove("origin"));
    let Some(Value::String(value)) = value.filter(|_| fields.is_empty()) else { return Err(expected()) };
    let value = Zeroizing::new(value);
    let origin = match origin {
        None => None,
        Some(Value::String(origin)) => {
            Some(Origin::new(&origin).map_err(|error| Problem::bad_request(format!("origin: {error}")))?)
        }
        Some(_) => return Err(expected()),
    };
    Ok((value, origin))
}

/// The body, or null if it is no JSON: the error would quote some of it.
fn unquoted(body: Result<Body<Value>, Problem>) -> Result<Value, Problem> {
    match body {
        Ok(Body(body)) => Ok(body),
        Err(problem) if problem.status() == StatusCode::BAD_REQUEST => Ok(Value::Null),
        Err(problem) => Err(problem),
    }
}

/// The string in `name`, the only field of the body. Errors quote nothing of the body, which may hold a secret.
fn only_field(body: Result<Body<Value>, Problem>, name: &str) -> Result<Zeroizing<String>, Problem> {
    if let Value::Object(mut fields) = unquoted(body)?
        && fields.len() == 1
        && let Some(Value::String(text)) = fields.remove(name)
    {
        return Ok(Zeroizing::new(text));
    }
    Err(Problem::bad_request(format!("expected an object with the string {name:?} and nothing else")))
}
