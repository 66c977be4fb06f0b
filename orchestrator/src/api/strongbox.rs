//! `/v1/config/strongbox/secrets` and `/v1/state/strongbox`: the secrets that the site keeps, which can be written and never
//! read, and the key to them.

pub(super) mod history;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use os_upgrade_kernel::{Request, Sealed, SecretName, SecretOperation};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use zeroize::Zeroizing;

use super::Api;
use super::error::Problem;
use super::extract::{Actor, Body, Name, Nothing, Params};
use super::listing::{Count, Entry, Listing, Wanted, entry};
use super::openapi::{lists, tag, types};
use super::reply::{self, Stamp};
use crate::strongbox::SECRET_BYTES_MAX;
use crate::strongbox::key::Key;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default()
        .routes(routes!(list))
        .routes(routes!(put, remove))
        .routes(routes!(read))
        .routes(routes!(unseal))
        .merge(history::routes())
}

impl From<Sealed> for Problem {
    fn from(sealed: Sealed) -> Self {
        Self::unavailable(sealed.to_string())
    }
}

/// The secrets of a site, or a page of them.
#[derive(Serialize)]
struct Secrets<'a> {
    secrets: Vec<Entry<&'a str, Secret<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A secret, without its value.
#[derive(Serialize, ToSchema)]
pub(super) struct Secret<'a> {
    /// What it is called.
    #[schema(value_type = types::SecretNameText)]
    name: &'a str,
    /// Who has it kept.
    actor: &'a str,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    since: Stamp,
}

/// Whether secrets can be used.
#[derive(Serialize, ToSchema)]
struct Strongbox {
    /// Whether there are secrets, or one is needed, and no key to them here.
    sealed: bool,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// How many secrets are kept.
    secrets: usize,
}

/// A secret to be kept.
#[derive(ToSchema)]
#[schema(as = SecretValue)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its description is used: the body is read without a word of it in errors")]
struct SecretBody {
    /// The secret, up to 8 KiB.
    #[schema(value_type = types::SecretText)]
    value: String,
}

/// The key of the strongbox.
#[derive(ToSchema)]
#[schema(as = StrongboxKey)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "as above")]
struct KeyBody {
    /// 32 bytes in base64, as `os-upgrade strongbox key` prints them.
    #[schema(value_type = types::KeyText)]
    key: String,
}

/// 200: names, and who has them kept since when. Values are never shown.
#[utoipa::path(
    get, path = "/v1/config/strongbox/secrets", operation_id = "list-secrets", tag = tag::CONFIGURATION,
    summary = "List the secrets that are kept, without their values",
    params(Listing),
    responses((status = 200, description = "the secrets, or a page of them", body = lists::SecretList))
)]
async fn list(State(api): State<Api>, Params(params): Params<Listing>) -> Result<Response, Problem> {
    let present = api.present()?;
    let kept = &present.state.strongbox.secrets;
    let wanted = params.wanted();
    if wanted == Wanted::Count {
        return reply::json(&Count { count: kept.len() as u64 });
    }
    let secrets = kept.iter().map(|(name, secret)| Secret {
        name: name.as_str(),
        actor: &secret.actor,
        since: Stamp(secret.since),
    });
    let (page, next) = params.page(secrets, |secret| secret.name.to_owned());
    let secrets = page.into_iter().map(|secret| {
        let name = secret.name;
        entry(wanted, || name, || secret)
    });
    let secrets = secrets.collect();
    reply::json(&Secrets { secrets, next })
}

/// 201 or 204 once it is durable, sealed; 503 without the key.
#[utoipa::path(
    put, path = "/v1/config/strongbox/secrets/{name}", operation_id = "put-secret", tag = tag::CONFIGURATION,
    summary = "Keep a secret, in place of the one of this name if there is one",
    params(("name" = types::SecretNameText, Path, description = "what it is called", example = "lock-server")),
    request_body = SecretBody,
    responses(
        (status = 201, description = "it is kept"),
        (status = 204, description = "it is kept in place of the one before"),
        (status = 409, description = "another key has been given meanwhile, or there are too many"),
    )
)]
async fn put(
    State(api): State<Api>,
    Actor(actor): Actor,
    Name(name): Name,
    Params(Nothing {}): Params<Nothing>,
    body: Result<Body<Value>, Problem>,
) -> Result<StatusCode, Problem> {
    let name = secret_name(&name)?;
    let value = only(body, "value")?;
    if value.is_empty() || value.len() > SECRET_BYTES_MAX {
        return Err(Problem::bad_request(format!("value: expected 1 to {SECRET_BYTES_MAX} bytes")));
    }
    let present = api.present()?;
    let keep = api.options.strongbox.keep(&present.state.strongbox, name, &value)?;
    let keep = keep.map_err(|error| Problem::internal(error.to_string()))?;
    api.change(Request::new(actor, keep)).await
}

/// 204 once it is durable. It needs no key.
#[utoipa::path(
    delete, path = "/v1/config/strongbox/secrets/{name}", operation_id = "remove-secret", tag = tag::CONFIGURATION,
    summary = "Keep a secret no longer",
    params(("name" = types::SecretNameText, Path, description = "what it is called", example = "lock-server")),
    responses(
        (status = 204, description = "it is kept no longer"),
        (status = 404, description = "there is none of this name"),
    )
)]
async fn remove(
    State(api): State<Api>,
    Actor(actor): Actor,
    Name(name): Name,
    Params(Nothing {}): Params<Nothing>,
) -> Result<StatusCode, Problem> {
    let name = secret_name(&name)?;
    api.change(Request::new(actor, SecretOperation::Remove { name })).await
}

/// 200, about this instance.
#[utoipa::path(
    get, path = "/v1/state/strongbox", operation_id = "read-strongbox", tag = tag::ORCHESTRATOR,
    summary = "Ask whether this instance can use the secrets",
    responses((status = 200, description = "whether it can", body = Strongbox))
)]
async fn read(State(api): State<Api>, Params(Nothing {}): Params<Nothing>) -> Result<Response, Problem> {
    let present = api.present()?;
    let kept = &present.state.strongbox;
    let sealed = api.options.strongbox.sealed(kept);
    reply::json(&Strongbox {
        sealed: sealed.is_some(),
        reason: sealed.map(|sealed| sealed.to_string()),
        secrets: kept.secrets.len(),
    })
}

/// 204 once this instance has the key, which it keeps in memory only; 403 if the secrets were sealed with another.
#[utoipa::path(
    post, path = "/v1/state/strongbox/unseal", operation_id = "unseal-strongbox", tag = tag::ORCHESTRATOR,
    summary = "Give this instance the key to the secrets",
    request_body = KeyBody,
    responses(
        (status = 204, description = "it has the key"),
        (status = 403, description = "this is not the key, or the token may not do this"),
    )
)]
async fn unseal(
    State(api): State<Api>,
    Actor(actor): Actor,
    Params(Nothing {}): Params<Nothing>,
    body: Result<Body<Value>, Problem>,
) -> Result<StatusCode, Problem> {
    let key =
        Key::parse(&only(body, "key")?).map_err(|error| Problem::bad_request(format!("key: {error}")))?;
    if api.options.strongbox.unseal(&api.present()?.state.strongbox, key) {
        tracing::info!(actor, "the strongbox was unsealed");
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::new(StatusCode::FORBIDDEN, "this is not the key of the strongbox"))
    }
}

fn secret_name(text: &str) -> Result<SecretName, Problem> {
    SecretName::new(text).map_err(|error| Problem::bad_request(error.to_string()))
}

/// The text of the only field, `name`. What is wrong is said without a word of the body.
fn only(body: Result<Body<Value>, Problem>, name: &str) -> Result<Zeroizing<String>, Problem> {
    let body = match body {
        Ok(Body(body)) => body,
        Err(problem) if problem.status() == StatusCode::BAD_REQUEST => Value::Null,
        Err(problem) => return Err(problem),
    };
    if let Value::Object(mut fields) = body
        && fields.len() == 1
        && let Some(Value::String(text)) = fields.remove(name)
    {
        return Ok(Zeroizing::new(text));
    }
    Err(Problem::bad_request(format!("expected an object with the text {name:?} and nothing else")))
}
