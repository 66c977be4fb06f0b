//! `/v1/config/strongbox/secrets` and `/v1/state/strongbox`: the secrets that the site keeps, which can be written and never
//! read, and the key to them.

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::body::{Millis, Stamp};
use crate::lists::list;
use crate::query::{FactList, NameList};
use crate::route::{ADMIN, Answer, Method, PathName, Route, Shape, Tag, VIEWER};
use crate::text::{FactKeyText, KeyText, SecretNameText, SecretText, StrongboxWord};

const SECRET: &str = "/v1/config/strongbox/secrets/{name}";

const NAMES: &[PathName] =
    &[PathName::new("name", "what it is called", Shape::of::<SecretNameText>(), Some("lock-server"))];

/// Names, and who has them kept since when. Values are never shown.
pub const LIST: Route = Route::new(
    Method::Get,
    "/v1/config/strongbox/secrets",
    VIEWER,
    Tag::Configuration,
    "list-secrets",
    "List the secrets that are kept, without their values",
)
.query::<NameList>()
.answers(&[Answer::json(
    "the secrets, or a page of them",
    Shape::of::<SecretList>(),
    || json!({"secrets": [{"name": "lock-server", "actor": "eve", "since": "2026-11-21T12:00:00Z"}]}),
)]);

/// 201 or 204 once it is durable, sealed; 503 without the key.
pub const PUT: Route<SecretValue> = Route::new(
    Method::Put,
    SECRET,
    ADMIN,
    Tag::Configuration,
    "put-secret",
    "Keep a secret, in place of the one of this name if there is one",
)
.body::<SecretValue>(|| json!({"value": "orchestrator:password"}))
.names(NAMES)
.answers(&[
    Answer::new(201, "it is kept"),
    Answer::new(204, "it is kept in place of the one before"),
    Answer::new(409, "another key has been given meanwhile, or there are too many"),
]);

/// 204 once it is durable. It needs no key.
pub const REMOVE: Route =
    Route::new(Method::Delete, SECRET, ADMIN, Tag::Configuration, "remove-secret", "Keep a secret no longer")
        .names(NAMES)
        .answers(&[Answer::new(204, "it is kept no longer"), Answer::new(404, "there is none of this name")]);

/// Whether the instance that answers can use the secrets.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/strongbox",
    VIEWER,
    Tag::Orchestrator,
    "read-strongbox",
    "Ask whether this instance can use the secrets",
)
.answers(&[Answer::json(
    "whether it can",
    Shape::of::<Strongbox>(),
    || json!({"sealed": false, "secrets": 1}),
)]);

/// 204 once the instance has the key, which it keeps in memory only; 403 if the secrets were sealed with another.
pub const UNSEAL: Route<StrongboxKey> = Route::new(
    Method::Post,
    "/v1/state/strongbox/unseal",
    ADMIN,
    Tag::Orchestrator,
    "unseal-strongbox",
    "Give this instance the key to the secrets",
)
.body::<StrongboxKey>(|| json!({"key": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="}))
.answers(&[
    Answer::new(204, "it has the key"),
    Answer::new(403, "this is not the key, or the token may not do this"),
]);

/// Who had which secrets kept and removed, and when. What was sealed is not shown.
pub const HISTORY: Route = Route::new(
    Method::Get,
    "/v1/state/strongbox/history",
    VIEWER,
    Tag::Orchestrator,
    "list-strongbox-changes",
    "List who had which secrets kept and removed, newest first",
)
.query::<FactList>()
.answers(&[Answer::json("a page of it", Shape::of::<StrongboxHistory>(), || {
    json!({"items": [{
        "sequence": 12,
        "place": 0,
        "time": "2026-11-20T12:00:00.000Z",
        "type": "secret-kept",
        "actor": "anna",
        "name": "lock-server",
    }]})
})]);

list! {
    /// The secrets, by name; or their names; or how many there are.
    SecretList = secrets of Secret<'static>, or SecretNameText
}

list! {
    /// A page of what was done about secrets, newest first; or of the keys of that; or how much there is.
    StrongboxHistory = page of StrongboxChange<'static>, or FactKeyText
}

/// A secret, without its value.
#[derive(Debug, Serialize, ToSchema)]
pub struct Secret<'a> {
    /// What it is called.
    #[schema(value_type = SecretNameText)]
    pub name: &'a str,
    /// Who has it kept.
    pub actor: &'a str,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub since: Stamp,
}

/// Whether secrets can be used.
#[derive(Debug, Serialize, ToSchema)]
pub struct Strongbox {
    /// Whether there are secrets, or one is needed, and no key to them here.
    pub sealed: bool,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many secrets are kept.
    pub secrets: usize,
}

/// A secret to be kept.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretValue {
    /// The secret, up to 8 KiB.
    #[schema(value_type = SecretText)]
    pub value: String,
}

/// The key of the strongbox.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StrongboxKey {
    /// 32 bytes in base64, as `os-upgrade strongbox key` prints them.
    #[schema(value_type = KeyText)]
    pub key: String,
}

/// What was done about secrets.
#[derive(Debug, Serialize, ToSchema)]
pub struct StrongboxChange<'a> {
    /// Of its record in the journal.
    pub sequence: u64,
    /// In that record, from 0.
    pub place: u64,
    #[schema(value_type = Stamp)]
    pub time: Millis,
    /// `strongbox-made` where the first secret was sealed with a key, in the same record as that.
    #[serde(rename = "type")]
    #[schema(value_type = StrongboxWord)]
    pub kind: &'a str,
    /// Who did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<&'a str>,
    /// Of the secret, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SecretNameText>)]
    pub name: Option<String>,
}
