//! The declaration of a route. Who may ask for it is an argument of the constructor: there is no route without it.
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

/// Who may ask for a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anybody, without credentials.
    Anybody,
    /// Whoever has this role, or one above it.
    Role(Role),
    /// Whoever may ask for slots of the lock group that the body names, with the credentials of FleetLock clients.
    LockGroup,
}

/// Anybody.
pub const ANYBODY: Access = Access::Anybody;
/// Viewers and those above them.
pub const VIEWER: Access = Access::Role(Role::Viewer);
/// Operators and admins.
pub const OPERATOR: Access = Access::Role(Role::Operator);
/// Admins.
pub const ADMIN: Access = Access::Role(Role::Admin);

/// How a route speaks: its errors, its limits, and the credentials that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// As the specification has it: `errors`, JSON or YAML, bearer tokens.
    Specification,
    /// As FleetLock has it: `kind` and `value`, JSON, and HTTP Basic or certificates beside bearer tokens.
    FleetLock,
}

impl Dialect {
    /// Largest body of a request, in bytes.
    pub const fn body_bytes_max(self) -> usize {
        match self {
            Self::Specification => 1024 * 1024,
            Self::FleetLock => 64 * 1024,
        }
    }
}

/// A method of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads; HEAD is answered too.
    Get,
    /// Replaces or creates.
    Put,
    /// Does something.
    Post,
    /// Changes a part.
    Patch,
    /// Takes away.
    Delete,
    /// Says what may be done.
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
    /// What operators intend.
    Configuration,
    /// How upgrades stand, and starting and stopping them.
    Upgrades,
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
            Self::Slots => "slots",
            Self::FleetLock => "fleet-lock",
            Self::Orchestrator => "orchestrator",
        }
    }
}

/// The shape of a value, and the named shapes that it refers to.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub(crate) schema: fn() -> RefOr<Schema>,
    pub(crate) components: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl Shape {
    /// A shape with a name of its own in the description.
    pub const fn of<T: ToSchema>() -> Self {
        Self { schema: reference::<T>, components: with_own::<T> }
    }

    /// A list of values of such a shape.
    pub const fn list_of<T: ToSchema>() -> Self {
        Self { schema: list::<T>, components: with_own::<T> }
    }

    /// A shape that has no name.
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

/// The shape of `T` by its name, and those that it refers to.
pub(crate) fn with_own<T: ToSchema>(components: &mut Vec<(String, RefOr<Schema>)>) {
    components.push((T::name().into_owned(), T::schema()));
    T::schemas(components);
}

/// What a body may be.
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

/// What a route answers, where that is special about it: what any route may answer is added to all.
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

    /// The answer 200 in text of one of these media types.
    pub const fn text(when: &'static str, media_types: &'static [&'static str]) -> Self {
        Self { texts: media_types, ..Self::new(200, when) }
    }

    /// The same with these headers: their names, and what each says.
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
    /// The name that stands at `{name}`.
    pub const fn new(
        name: &'static str,
        meaning: &'static str,
        shape: Shape,
        example: Option<&'static str>,
    ) -> Self {
        Self { name, meaning, shape, example }
    }
}

/// What is said of a route, whatever its body.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// Its method.
    pub method: Method,
    /// Its path, with `{name}` for each name in it.
    pub path: &'static str,
    /// Who may ask for it.
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
    /// How it speaks.
    pub const fn dialect(&self) -> Dialect {
        match self.access {
            Access::Anybody | Access::Role(_) => Dialect::Specification,
            Access::LockGroup => Dialect::FleetLock,
        }
    }
}

/// A route, to which a `B` is sent.
#[derive(Debug)]
pub struct Route<B = ()> {
    declaration: Declaration,
    body: PhantomData<fn(&B)>,
}

impl Route {
    /// `method` at `path`, with its group, its name (`operationId`) and one line about it.
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

    /// The same with a body, such as `example`.
    #[must_use]
    pub const fn body<B: ToSchema>(self, example: fn() -> Value) -> Route<B> {
        self.body_described::<B, B>(example)
    }

    /// The same with a body that may be left out.
    #[must_use]
    pub const fn optional_body<B: ToSchema>(self, example: fn() -> Value) -> Route<B> {
        let Route { declaration, body } = self.body::<B>(example);
        Route { declaration: Declaration { body_is_optional: true, ..declaration }, body }
    }

    /// The same with a body `B` that is described by `D`, because `B` is not the API's own.
    #[must_use]
    pub const fn body_described<B, D: ToSchema>(self, example: fn() -> Value) -> Route<B> {
        let content = Content::new(JSON, Shape::of::<D>(), example);
        let declaration = Declaration { body: Some(content), ..self.declaration };
        Route { declaration, body: PhantomData }
    }
}

impl<B> Route<B> {
    /// The same with more to be said of it than one line.
    #[must_use]
    pub const fn description(self, text: &'static str) -> Self {
        Self { declaration: Declaration { description: Some(text), ..self.declaration }, ..self }
    }

    /// The same with these names in its path.
    #[must_use]
    pub const fn names(self, names: &'static [PathName]) -> Self {
        assert!(names.len() == placeholders(self.declaration.path), "as many names as the path has");
        Self { declaration: Declaration { names, ..self.declaration }, ..self }
    }

    /// The same with the headers `H`.
    #[must_use]
    pub const fn headers<H: IntoParams>(self) -> Self {
        Self { declaration: Declaration { headers: Some(parameters::<H>), ..self.declaration }, ..self }
    }

    /// The same with the query parameters `Q`.
    #[must_use]
    pub const fn query<Q: IntoParams>(self) -> Self {
        Self { declaration: Declaration { query: Some(parameters::<Q>), ..self.declaration }, ..self }
    }

    /// The same with bodies of other media types.
    #[must_use]
    pub const fn other_bodies(self, other_bodies: &'static [Content]) -> Self {
        Self { declaration: Declaration { other_bodies, ..self.declaration }, ..self }
    }

    /// The same with these answers.
    #[must_use]
    pub const fn answers(self, answers: &'static [Answer]) -> Self {
        Self { declaration: Declaration { answers, ..self.declaration }, ..self }
    }

    /// What is said of it.
    pub const fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// Its path, with `{name}` for each name in it.
    pub const fn path(&self) -> &'static str {
        self.declaration.path
    }

    /// A request by it, with `names` in the path, in their order.
    ///
    /// # Panics
    /// There are more names or fewer than the path has.
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

    /// A request by it, which has no names in its path.
    pub fn call(&self) -> Call<B> {
        self.named([])
    }
}

/// How many names a path has.
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

/// A request by a route, to which a `B` is sent.
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
    /// The same with a query parameter.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// The method.
    pub const fn method(&self) -> Method {
        self.method
    }

    /// The segments of the path, as they are before anything in them is encoded.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// The query parameters, likewise.
    pub fn query(&self) -> &[(&'static str, String)] {
        &self.query
    }
}
