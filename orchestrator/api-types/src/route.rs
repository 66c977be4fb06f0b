//! The declaration of a route. Its access is an argument of the constructor, so no route lacks it.
//!
//! ```
//! use os_upgrade_api_types::route::{Method, Route, Tag, VIEWER};
//! const READ: Route = Route::new(Method::Get, "/v1/state/x", VIEWER, Tag::Orchestrator, "read-x", "Read x");
//! ```
//! ```compile_fail,E0061
//! use os_upgrade_api_types::route::{Method, Route, Tag};
//! const READ: Route = Route::new(Method::Get, "/v1/state/x", Tag::Orchestrator, "read-x", "Read x");
//! ```

use std::marker::PhantomData;

use serde_json::Value;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{IntoParams, ToSchema};

use crate::role::Role;

/// The media type of JSON.
pub const JSON: &str = "application/json";

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody, without credentials.
    Anybody,
    /// Callers with this role, or a higher one.
    Role(Role),
    /// Callers that may request slots of the lock group in the body, with the credentials of FleetLock clients.
    LockGroup,
    /// Providers of kind `hooks`, with a call-back token that they were sent. No other credentials count.
    CallBack,
}

/// Anybody, without credentials.
pub const ANYBODY: Access = Access::Anybody;
/// Viewers, operators and admins.
pub const VIEWER: Access = Access::Role(Role::Viewer);
/// Operators and admins.
pub const OPERATOR: Access = Access::Role(Role::Operator);
/// Admins.
pub const ADMIN: Access = Access::Role(Role::Admin);

/// The conventions of a route: its errors, its limits, and the credentials that it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Those of the specification: `errors`, JSON or YAML, bearer tokens.
    Specification,
    /// Those of FleetLock: `kind` and `value`, JSON, and HTTP Basic or certificates besides bearer tokens.
    FleetLock,
    /// Those of call-backs: `errors`, JSON whatever the content type, and the tokens of call-backs.
    CallBack,
    /// Those of fleet, in both of its versions: an error entity, JSON, bearer tokens.
    Fleet,
}

impl Dialect {
    /// Largest body of a request, in bytes.
    pub const fn body_bytes_max(self) -> usize {
        match self {
            Self::Specification | Self::CallBack | Self::Fleet => 1024 * 1024,
            Self::FleetLock => 64 * 1024,
        }
    }
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads; HEAD is answered too.
    Get,
    /// Replaces or creates.
    Put,
    /// Performs an operation.
    Post,
    /// Changes a part.
    Patch,
    /// Deletes.
    Delete,
    /// Lists the methods.
    Options,
}

impl Method {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Put => "PUT",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }
}

/// The groups of routes, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// The intended configuration, and its secrets.
    Configuration,
    /// The progress of upgrades, starting and stopping them, and hosts.
    Upgrades,
    /// The reboot queue.
    Reboots,
    /// Units and the machines on which they run.
    Units,
    /// Slots, for operators.
    Slots,
    /// FleetLock, for other programs.
    FleetLock,
    /// The orchestrator itself.
    Orchestrator,
}

impl Tag {
    /// Its name in the description.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Upgrades => "upgrades",
            Self::Reboots => "reboot-queue",
            Self::Units => "units",
            Self::Slots => "slots",
            Self::FleetLock => "fleet-lock",
            Self::Orchestrator => "orchestrator",
        }
    }
}

/// The schema of a value, and the named schemas that it references.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub(crate) schema: fn() -> RefOr<Schema>,
    pub(crate) components: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl Shape {
    /// A schema with a name of its own in the description.
    pub const fn of<T: ToSchema>() -> Self {
        Self { schema: reference::<T>, components: with_own::<T> }
    }

    /// A list of values with such a schema.
    pub const fn list_of<T: ToSchema>() -> Self {
        Self { schema: list::<T>, components: with_own::<T> }
    }

    /// A schema without a name.
    pub const fn inline<T: ToSchema>() -> Self {
        Self { schema: T::schema, components: T::schemas }
    }
}

fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

fn list<T: ToSchema>() -> RefOr<Schema> {
    ArrayBuilder::new().items(Ref::from_schema_name(T::name())).into()
}

/// The schema of `T` with its name, and those that it references.
pub(crate) fn with_own<T: ToSchema>(components: &mut Vec<(String, RefOr<Schema>)>) {
    components.push((T::name().into_owned(), T::schema()));
    T::schemas(components);
}

/// A kind of body: its media type, schema and example.
#[derive(Debug, Clone, Copy)]
pub struct Content {
    pub(crate) media_type: &'static str,
    pub(crate) shape: Shape,
    pub(crate) example: Option<fn() -> Value>,
}

impl Content {
    /// A body of `media_type`.
    pub const fn new(media_type: &'static str, shape: Shape, example: fn() -> Value) -> Self {
        Self { media_type, shape, example: Some(example) }
    }
}

/// An answer of a route. Answers that any route may give are added to all routes.
#[derive(Debug, Clone, Copy)]
pub struct Answer {
    pub(crate) status: u16,
    pub(crate) when: &'static str,
    pub(crate) json: Option<Content>,
    pub(crate) texts: &'static [&'static str],
    pub(crate) headers: &'static [(&'static str, Option<&'static str>)],
}

impl Answer {
    /// An answer of `status` without a body, unless it is an error.
    pub const fn new(status: u16, when: &'static str) -> Self {
        Self { status, when, json: None, texts: &[], headers: &[] }
    }

    /// The answer 200 in JSON, such as `example`.
    pub const fn json(when: &'static str, shape: Shape, example: fn() -> Value) -> Self {
        Self { json: Some(Content::new(JSON, shape, example)), ..Self::new(200, when) }
    }

    /// The answer 201 in JSON, such as `example`.
    pub const fn created(when: &'static str, shape: Shape, example: fn() -> Value) -> Self {
        Self { json: Some(Content::new(JSON, shape, example)), ..Self::new(201, when) }
    }

    /// The answer 202 in JSON, such as `example`.
    pub const fn accepted(when: &'static str, shape: Shape, example: fn() -> Value) -> Self {
        Self { json: Some(Content::new(JSON, shape, example)), ..Self::new(202, when) }
    }

    /// The answer 200 in text of one of these media types.
    pub const fn text(when: &'static str, media_types: &'static [&'static str]) -> Self {
        Self { texts: media_types, ..Self::new(200, when) }
    }

    /// Adds headers: their names and meanings.
    #[must_use]
    pub const fn with_headers(self, headers: &'static [(&'static str, Option<&'static str>)]) -> Self {
        Self { headers, ..self }
    }
}

/// A name in the path of a route.
#[derive(Debug, Clone, Copy)]
pub struct PathName {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) shape: Shape,
    pub(crate) example: Option<&'static str>,
}

impl PathName {
    /// The name at `{name}` in the path.
    pub const fn new(
        name: &'static str,
        meaning: &'static str,
        shape: Shape,
        example: Option<&'static str>,
    ) -> Self {
        Self { name, meaning, shape, example }
    }
}

/// The declaration of a route, without the type of its body.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// The HTTP method.
    pub method: Method,
    /// The path, with `{name}` for each name in it.
    pub path: &'static str,
    /// Who may call it.
    pub access: Access,
    pub(crate) tag: Tag,
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) description: Option<&'static str>,
    pub(crate) names: &'static [PathName],
    pub(crate) headers: Option<fn() -> Vec<Parameter>>,
    pub(crate) query: Option<fn() -> Vec<Parameter>>,
    pub(crate) body: Option<Content>,
    pub(crate) body_is_optional: bool,
    pub(crate) other_bodies: &'static [Content],
    pub(crate) answers: &'static [Answer],
}

impl Declaration {
    /// Its conventions, which follow from its access.
    pub const fn dialect(&self) -> Dialect {
        match self.access {
            Access::Anybody | Access::Role(_) => Dialect::Specification,
            Access::LockGroup => Dialect::FleetLock,
            Access::CallBack => Dialect::CallBack,
        }
    }
}

/// A route whose request body is a `B`.
#[derive(Debug)]
pub struct Route<B = ()> {
    declaration: Declaration,
    body: PhantomData<fn(&B)>,
}

impl Route {
    /// `method` at `path`, with its group, its `operationId` and a one-line summary.
    pub const fn new(
        method: Method,
        path: &'static str,
        access: Access,
        tag: Tag,
        id: &'static str,
        summary: &'static str,
    ) -> Self {
        let declaration = Declaration {
            method,
            path,
            access,
            tag,
            id,
            summary,
            description: None,
            names: &[],
            headers: None,
            query: None,
            body: None,
            body_is_optional: false,
            other_bodies: &[],
            answers: &[],
        };
        Self { declaration, body: PhantomData }
    }

    /// Adds a body, such as `example`.
    #[must_use]
    pub const fn body<B: ToSchema>(self, example: fn() -> Value) -> Route<B> {
        self.body_described::<B, B>(example)
    }

    /// Adds an optional body.
    #[must_use]
    pub const fn optional_body<B: ToSchema>(self, example: fn() -> Value) -> Route<B> {
        let Route { declaration, body } = self.body::<B>(example);
        Route { declaration: Declaration { body_is_optional: true, ..declaration }, body }
    }

    /// Adds a body `B` that is described by `D`, because `B` is a type of another crate.
    #[must_use]
    pub const fn body_described<B, D: ToSchema>(self, example: fn() -> Value) -> Route<B> {
        let content = Content::new(JSON, Shape::of::<D>(), example);
        let declaration = Declaration { body: Some(content), ..self.declaration };
        Route { declaration, body: PhantomData }
    }
}

impl<B> Route<B> {
    /// Adds a description to the summary.
    #[must_use]
    pub const fn description(self, text: &'static str) -> Self {
        Self { declaration: Declaration { description: Some(text), ..self.declaration }, ..self }
    }

    /// Declares the names in the path.
    #[must_use]
    pub const fn names(self, names: &'static [PathName]) -> Self {
        assert!(names.len() == placeholders(self.declaration.path), "as many names as the path has");
        Self { declaration: Declaration { names, ..self.declaration }, ..self }
    }

    /// Adds the request headers `H`.
    #[must_use]
    pub const fn headers<H: IntoParams>(self) -> Self {
        Self { declaration: Declaration { headers: Some(parameters::<H>), ..self.declaration }, ..self }
    }

    /// Adds the query parameters `Q`.
    #[must_use]
    pub const fn query<Q: IntoParams>(self) -> Self {
        Self { declaration: Declaration { query: Some(parameters::<Q>), ..self.declaration }, ..self }
    }

    /// Adds bodies of other media types.
    #[must_use]
    pub const fn other_bodies(self, other_bodies: &'static [Content]) -> Self {
        Self { declaration: Declaration { other_bodies, ..self.declaration }, ..self }
    }

    /// Declares the answers.
    #[must_use]
    pub const fn answers(self, answers: &'static [Answer]) -> Self {
        Self { declaration: Declaration { answers, ..self.declaration }, ..self }
    }

    /// The declaration.
    pub const fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// Its path, with `{name}` for each name in it.
    pub const fn path(&self) -> &'static str {
        self.declaration.path
    }

    /// A call of the route, with `names` in the path, in order.
    ///
    /// # Panics
    /// The number of names differs from that in the path.
    pub fn named<const COUNT: usize>(&self, names: [&str; COUNT]) -> Call<B> {
        let mut names = names.into_iter();
        let segment = |segment: &str| {
            if segment.starts_with('{') {
                names.next().expect("a name for each of the path").to_owned()
            } else {
                segment.to_owned()
            }
        };
        let segments = self.path().split('/').skip(1).map(segment).collect();
        assert!(names.next().is_none(), "{} has fewer names", self.path());
        Call { method: self.declaration.method, segments, query: Vec::new(), body: PhantomData }
    }

    /// A call of the route, whose path has no names.
    pub fn call(&self) -> Call<B> {
        self.named([])
    }
}

/// The number of names in a path.
pub(crate) const fn placeholders(path: &str) -> usize {
    let (bytes, mut at, mut count) = (path.as_bytes(), 0, 0);
    while at < bytes.len() {
        if bytes[at] == b'{' {
            count += 1;
        }
        at += 1;
    }
    count
}

fn parameters<P: IntoParams>() -> Vec<Parameter> {
    P::into_params(|| Some(ParameterIn::Query))
}

/// A client's call of a route whose request body is a `B`.
#[derive(Debug)]
pub struct Call<B = ()> {
    method: Method,
    segments: Vec<String>,
    query: Vec<(&'static str, String)>,
    body: PhantomData<fn(&B)>,
}

impl<B> From<&Route<B>> for Call<B> {
    fn from(route: &Route<B>) -> Self {
        route.call()
    }
}

impl<B> Call<B> {
    /// A call of a route that another table declares, such as those of fleet's dialects.
    pub const fn at(method: Method, segments: Vec<String>) -> Self {
        Self { method, segments, query: Vec::new(), body: PhantomData }
    }

    /// Adds a query parameter.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// The method.
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The segments of the path, not encoded.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// The query parameters, not encoded.
    pub fn query(&self) -> &[(&'static str, String)] {
        &self.query
    }
}
