//! `/openapi.json`: the `OpenAPI` document, built from the declarations of the routes.
//!
//! What routes have in common is added here: errors that any route may answer (`errors`, `lock_errors`), security, and
//! the forms of bodies (`forms`).

mod errors;
mod fields;
mod forms;
mod lock_errors;
mod parts;
mod sites;

pub use self::fields::fields_of;
use serde_json::Value;
use utoipa::OpenApi as _;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn,
};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, ObjectBuilder, OpenApi, RefOr, Required, Response, ResponseBuilder, Schema,
};

use crate::route::{
    Access, Answer, Content, Declaration, Dialect, Method, PathName, Shape, Tag, placeholders,
};
use crate::routes::fleet_lock::Meant;
use crate::text::{RunIdText, TagsText};

/// The name of the security scheme for bearer tokens.
const BEARER: &str = "accessToken";

/// The name of the security scheme for FleetLock clients, which may send a token by HTTP Basic.
const BASIC: &str = "fleetLock";

/// The name of the security scheme for call-backs.
const CALL_BACK: &str = "callBackToken";

const NO_SCOPES: [&str; 0] = [];

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "OS upgrades of a site",
        description = "Configures when and how the hosts of a site are upgraded, starts and stops upgrades, and shows \
                       their progress. Times are RFC 3339 in UTC."
    ),
    tags(
        (name = Tag::Configuration.as_str(), description = "The intended configuration, and its secrets."),
        (name = Tag::Upgrades.as_str(), description = "The progress of upgrades, starting and stopping them, and hosts."),
        (name = Tag::Reboots.as_str(), description = "Hosts that are to reboot without an upgrade."),
        (name = Tag::Units.as_str(), description = "Where units of systemd run, and why one does not. They are changed with fleet's API."),
        (name = Tag::Slots.as_str(), description = "The holders and waiters of slots, and operators' actions on them."),
        (name = Tag::FleetLock.as_str(), description = "Slots for other programs: the FleetLock protocol. The same \
                                                        paths are served below `/fleetlock`."),
        (name = Tag::Orchestrator.as_str(), description = "The orchestrator itself."),
    ),
    components(schemas(errors::Errors, lock_errors::LockErrorBody, Meant, RunIdText, TagsText))
)]
struct Head;

/// The description of `routes`, an `OpenAPI` document.
///
/// # Panics
/// A route does not declare the names in its path.
pub fn document<'a>(routes: impl IntoIterator<Item = &'a Declaration>) -> Value {
    let mut document = Head::openapi();
    for route in routes {
        add(&mut document, route);
    }
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A token made with `os-upgrade token create`."));
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer.build()));
    let basic = HttpBuilder::new()
        .scheme(HttpAuthScheme::Basic)
        .description(Some("The name and the secret of such a token. A client certificate is accepted too."));
    components.add_security_scheme(BASIC, SecurityScheme::Http(basic.build()));
    let call_back = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A `callback_token` that the provider was sent: its last 16 count."));
    components.add_security_scheme(CALL_BACK, SecurityScheme::Http(call_back.build()));
    let mut document =
        serde_json::to_value(document).expect("a document has string keys and no fallible part");
    parts::allow(&mut document);
    document
}

fn add(document: &mut OpenApi, route: &Declaration) {
    assert_eq!(route.names.len(), placeholders(route.path), "the names of {}", route.path);
    document.paths.add_path_operation(route.path, vec![method(route.method)], operation(route));
    let components = document.components.get_or_insert_default();
    let answers = route.answers.iter().filter_map(|answer| answer.json.as_ref());
    let contents = route.body.iter().chain(route.other_bodies).chain(answers);
    for shape in contents.map(|content| content.shape) {
        let mut schemas = Vec::new();
        (shape.components)(&mut schemas);
        components.schemas.extend(schemas);
    }
}

const fn method(method: Method) -> HttpMethod {
    match method {
        Method::Get => HttpMethod::Get,
        Method::Put => HttpMethod::Put,
        Method::Post => HttpMethod::Post,
        Method::Patch => HttpMethod::Patch,
        Method::Delete => HttpMethod::Delete,
        Method::Options => HttpMethod::Options,
    }
}

fn operation(route: &Declaration) -> Operation {
    let names = route.names.iter().map(path_parameter);
    let others = [route.headers, route.query].into_iter().flatten().flat_map(|parameters| parameters());
    let parameters: Vec<Parameter> = names.chain(others.map(not_null)).collect();
    let mut operation = OperationBuilder::new()
        .operation_id(Some(route.id))
        .tag(route.tag.as_str())
        .summary(Some(route.summary))
        .description(route.description)
        .parameters(Some(parameters).filter(|parameters| !parameters.is_empty()))
        .request_body(request_body(route))
        .build();
    let answers = route.answers.iter().map(|answer| (answer.status.to_string(), RefOr::T(response(answer))));
    operation.responses.responses.extend(answers);
    match route.dialect() {
        Dialect::Specification => {
            forms::refuse(route, &mut operation);
            sites::add(route.path, &mut operation);
            errors::add(route, &mut operation);
        }
        Dialect::FleetLock => lock_errors::add(&mut operation),
        Dialect::CallBack => errors::add(route, &mut operation),
        // Its routes have declarations of their own, and discovery documents in place of this one.
        Dialect::Fleet => {}
    }
    let schemes: &[&str] = match route.access {
        Access::Anybody => &[],
        Access::Role(_) => &[BEARER],
        Access::LockGroup => &[BEARER, BASIC],
        Access::CallBack => &[CALL_BACK],
    };
    if !schemes.is_empty() {
        let requirement = |scheme: &&str| SecurityRequirement::new(*scheme, NO_SCOPES);
        operation.security = Some(schemes.iter().map(requirement).collect());
    }
    if ["/v1/state/", "/v1/config/"].iter().any(|below| route.path.starts_with(below)) {
        forms::add(&mut operation);
    }
    operation
}

fn path_parameter(name: &PathName) -> Parameter {
    ParameterBuilder::new()
        .name(name.name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(name.meaning))
        .schema(Some((name.shape.schema)()))
        .example(name.example.map(Value::from))
        .build()
}

fn request_body(route: &Declaration) -> Option<RequestBody> {
    let json = route.body.as_ref()?;
    let required = if route.body_is_optional { Required::False } else { Required::True };
    let body = RequestBodyBuilder::new().required(Some(required)).content(json.media_type, content(json));
    let others = route.other_bodies.iter();
    Some(others.fold(body, |body, other| body.content(other.media_type, content(other))).build())
}

fn response(answer: &Answer) -> Response {
    let text = Shape::inline::<String>();
    let texts = answer.texts.iter().map(|media_type| Content { media_type, shape: text, example: None });
    let mut response = ResponseBuilder::new().description(answer.when);
    for known in answer.json.into_iter().chain(texts) {
        response = response.content(known.media_type, content(&known));
    }
    for (name, meaning) in answer.headers {
        let header = HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String)));
        response = response.header(*name, header.description(*meaning).build());
    }
    response.build()
}

fn content(content: &Content) -> utoipa::openapi::Content {
    let built = ContentBuilder::new().schema(Some((content.shape.schema)()));
    built.example(content.example.map(|example| example())).build()
}

/// Removes `null` from the schema of an optional parameter: if present, it is not null.
fn not_null(mut parameter: Parameter) -> Parameter {
    match &mut parameter.schema {
        Some(RefOr::T(Schema::OneOf(either))) => {
            let other = either.items.iter().find(|item| matches!(item, RefOr::Ref(_))).cloned();
            parameter.schema = other.or(parameter.schema);
        }
        Some(RefOr::T(Schema::Object(object))) => {
            if let SchemaType::Array(types) = &mut object.schema_type {
                types.retain(|known| *known != Type::Null);
            }
        }
        Some(_) | None => {}
    }
    parameter
}
