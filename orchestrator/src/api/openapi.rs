//! `/openapi.json`: the API described for programs, made from the routes themselves.
//!
//! Every handler says its path, parameters, bodies and answers where it stands (`#[utoipa::path]`), and is registered
//! with that, so the document and the router cannot differ. What all have in common is added here: errors that any
//! endpoint may answer (`errors`), who may call, and examples (`examples`). FleetLock, which is told apart before the
//! router, is described in `fleet_lock`; types that the kernel keeps, in `types`.

pub(super) mod errors;
pub(super) mod examples;
pub(super) mod fleet_lock;
mod forms;
pub(super) mod lists;
mod parts;
mod sites;
pub(super) mod types;

use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use utoipa::OpenApi as _;
use utoipa::openapi::path::{Operation, Parameter, PathItem};
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, OpenApi, RefOr, Required, Schema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;
use super::authority;
use super::error::Problem;
use super::extract::{Nothing, Params};
use super::form::{self, Form, Syntax};

/// The groups of endpoints, in the order in which they are shown.
pub(super) mod tag {
    /// What operators intend.
    pub(in crate::api) const CONFIGURATION: &str = "configuration";
    /// How upgrades stand, and starting and stopping them.
    pub(in crate::api) const UPGRADES: &str = "upgrades";
    /// Slots, for operators.
    pub(in crate::api) const SLOTS: &str = "slots";
    /// FleetLock, for other programs.
    pub(in crate::api) const FLEET_LOCK: &str = "fleet-lock";
    /// The orchestrator itself.
    pub(in crate::api) const ORCHESTRATOR: &str = "orchestrator";
}

/// The name of the security scheme of everything that needs a token.
const BEARER: &str = "accessToken";

/// The name of the security scheme of FleetLock clients, which cannot send a token otherwise.
const BASIC: &str = "fleetLock";

const NO_SCOPES: [&str; 0] = [];

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "OS upgrades of a site",
        description = "Configures when and how the hosts of a site are upgraded, starts and stops upgrades, and shows \
                       how they stand. Times are RFC 3339 in UTC."
    ),
    tags(
        (name = tag::CONFIGURATION, description = "What operators intend."),
        (name = tag::UPGRADES, description = "How upgrades stand, and starting and stopping them."),
        (name = tag::SLOTS, description = "Who holds a slot and who waits for one, and what operators do about it."),
        (name = tag::FLEET_LOCK, description = "Slots for other programs: the FleetLock protocol. The same paths \
                                                are served below `/fleetlock`."),
        (name = tag::ORCHESTRATOR, description = "The orchestrator itself."),
    ),
    components(schemas(errors::Errors, fleet_lock::LockErrorBody, types::RunIdText, types::TagsText))
)]
struct Head;

pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::default().routes(routes!(read))
}

/// The document of the API, in JSON.
pub(super) fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        let (_, described) = super::routes().split_for_parts();
        let infallible = "a document has string keys and no fallible part";
        let mut document = serde_json::to_value(complete(described)).expect(infallible);
        parts::allow(&mut document);
        serde_json::to_string_pretty(&document).expect(infallible)
    });
    &DOCUMENT
}

/// The same in YAML, or why not.
fn document_in_yaml() -> Result<&'static str, Problem> {
    static DOCUMENT: LazyLock<Result<String, String>> =
        LazyLock::new(|| form::to_yaml(document().as_bytes()));
    DOCUMENT.as_deref().map_err(|why| Problem::internal(why.clone()))
}

/// This document. Anybody may ask for it, so it is kept in both syntaxes.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "read-openapi", tag = tag::ORCHESTRATOR,
    summary = "Read the description of this API",
    responses((status = 200, description = "an OpenAPI 3.1 document", body = serde_json::Value))
)]
async fn read(Params(Nothing {}): Params<Nothing>, form: Form) -> Result<Response, Problem> {
    let text = match form.syntax {
        // What is JSON is known to differ.
        Syntax::Json => return Ok(([(CONTENT_TYPE, form.media_type)], document()).into_response()),
        Syntax::Yaml => tokio::task::spawn_blocking(document_in_yaml).await,
    };
    let text = text.map_err(|error| Problem::internal(error.to_string()))??;
    Ok(form::vary(([(CONTENT_TYPE, form.media_type)], text).into_response()))
}

/// `described`, with what all endpoints have in common.
fn complete(described: OpenApi) -> OpenApi {
    let mut document = Head::openapi();
    document.merge(described);
    document.merge(fleet_lock::Described::openapi());
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A token made with `os-upgrade token create`."));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer.build()));
    let basic = HttpBuilder::new()
        .scheme(HttpAuthScheme::Basic)
        .description(Some("The name and the secret of such a token. A client certificate will do too."));
    components.add_security_scheme(BASIC, SecurityScheme::Http(basic.build()));
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            if operation.tags.iter().flatten().any(|tag| tag == tag::FLEET_LOCK) {
                fleet_lock::add(operation);
                let schemes = [BEARER, BASIC].map(|scheme| SecurityRequirement::new(scheme, NO_SCOPES));
                operation.security = Some(schemes.into());
            } else {
                forms::refuse(path, method, operation);
                sites::add(path, operation);
                errors::add(path, operation);
                optional(operation);
                if !authority::is_public(path) {
                    operation.security = Some(vec![SecurityRequirement::new(BEARER, NO_SCOPES)]);
                }
            }
            examples::add(path, method, operation);
            if path.starts_with("/v1/state/") || path.starts_with("/v1/config/") {
                forms::add(operation);
            }
        }
    }
    document
}

/// What may be left out, a body or a parameter, is not `null` when it is there.
fn optional(operation: &mut Operation) {
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(Parameter { schema: Some(schema), .. }) = parameter {
            not_null(schema);
        }
    }
    let Some(RefOr::T(body)) = &mut operation.request_body else { return };
    for content in body.content.values_mut() {
        if let RefOr::T(Content { schema: Some(schema), .. }) = content
            && not_null(schema)
        {
            body.required = Some(Required::False);
        }
    }
}

/// Takes `null` out of `schema`; whether it was in it.
fn not_null(schema: &mut RefOr<Schema>) -> bool {
    match schema {
        RefOr::T(Schema::OneOf(either)) => {
            let Some(other) = either.items.iter().find(|item| matches!(item, RefOr::Ref(_))) else {
                return false;
            };
            *schema = other.clone();
            true
        }
        RefOr::T(Schema::Object(object)) => match &object.schema_type {
            SchemaType::Array(types) if types.contains(&Type::Null) => {
                let others = types.iter().filter(|known| **known != Type::Null).cloned().collect();
                object.schema_type = SchemaType::Array(others);
                true
            }
            SchemaType::Array(_) | SchemaType::Type(_) | SchemaType::AnyValue => false,
        },
        RefOr::Ref(_) | RefOr::T(_) => false,
    }
}

/// What `item` describes, by method.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let PathItem { get, put, post, delete, options, head, patch, .. } = item;
    let all = [
        ("GET", get),
        ("PUT", put),
        ("POST", post),
        ("DELETE", delete),
        ("OPTIONS", options),
        ("HEAD", head),
        ("PATCH", patch),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}
