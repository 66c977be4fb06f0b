//! `/v1/config/strongbox/secrets` and `/v1/state/strongbox`: the site's secrets, which can be written and never read,
//! and their key.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::body::{Millis, Stamp};
use crate::lists::list;
use crate::query::{FactList, NameList};
use crate::route::{ADMIN, Answer, Method, PathName, Route, Shape, Tag, VIEWER};
use crate::text::{FactKeyText, KeyText, SecretNameText, SecretText, StrongboxWord};
use crate::word::{StrongboxStep, Word};

const SECRET: &str = "/v1/config/strongbox/secrets/{name}";

const NAMES: &[PathName] =
    &[PathName::new("name", "the name of the secret", Shape::of::<SecretNameText>(), Some("lock-server"))];

/// The secrets' names, and who stored them when. Values are never shown.
pub const LIST: Route = Route::new(
    Method::Get,
    "/v1/config/strongbox/secrets",
    VIEWER,
    Tag::Configuration,
    "list-secrets",
    "List the stored secrets, without their values",
)
.query::<NameList>()
.answers(&[Answer::json(
    "the secrets, or a page of them",
    Shape::of::<SecretList>(),
    || json!({"secrets": [{"name": "lock-server", "actor": "eve", "since": "2026-11-21T12:00:00Z"}]}),
)]);

/// 201 or 204 once the sealed secret is durable; 503 without the key.
pub const PUT: Route<SecretValue> = Route::new(
    Method::Put,
    SECRET,
    ADMIN,
    Tag::Configuration,
    "put-secret",
    "Store a secret, or replace the one of this name",
)
.body::<SecretValue>(|| json!({"value": "orchestrator:password"}))
.names(NAMES)
.answers(&[
    Answer::new(201, "the secret is stored"),
    Answer::new(204, "the secret is replaced"),
    Answer::new(409, "another key has been set meanwhile, or there are too many secrets"),
]);

/// 204 once the removal is durable. Needs no key.
pub const REMOVE: Route =
    Route::new(Method::Delete, SECRET, ADMIN, Tag::Configuration, "remove-secret", "Remove a secret")
        .names(NAMES)
        .answers(&[
            Answer::new(204, "the secret is removed"),
            Answer::new(404, "there is no secret of this name"),
        ]);

/// Whether the answering instance can use the secrets.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/strongbox",
    VIEWER,
    Tag::Orchestrator,
    "read-strongbox",
    "Check whether this instance can use the secrets",
)
.answers(&[Answer::json(
    "the state of the strongbox",
    Shape::of::<Strongbox>(),
    || json!({"sealed": false, "secrets": 1}),
)]);

/// 204 once the instance has the key, which it keeps in memory only; 403 if the secrets were sealed with another key.
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
    Answer::new(204, "the instance has the key"),
    Answer::new(403, "this is not the key, or the token may not do this"),
]);

/// Who stored and removed which secrets, and when. The sealed values are not shown.
pub const HISTORY: Route = Route::new(
    Method::Get,
    "/v1/state/strongbox/history",
    VIEWER,
    Tag::Orchestrator,
    "list-strongbox-changes",
    "List who stored and removed which secrets, newest first",
)
.query::<FactList>()
.answers(&[Answer::json("a page of the list", Shape::of::<StrongboxHistory>(), || {
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
    /// The secrets, by name; or their names; or their number.
    SecretList = secrets of Secret<'static>, or SecretNameText
}

list! {
    /// A page of changes of the strongbox, newest first; or of their keys; or their number.
    StrongboxHistory = page of StrongboxChange<'static>, or FactKeyText
}

/// The secrets, or a page of them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Secrets<T> {
    pub secrets: Vec<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A secret, without its value.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Secret<'a> {
    /// The name of the secret.
    #[schema(value_type = SecretNameText)]
    pub name: Cow<'a, str>,
    /// Who stored it.
    #[serde(default)]
    #[schema(required)]
    pub actor: Cow<'a, str>,
    /// The only origin to which providers of configuration may send it; absent if to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Cow<'a, str>>,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    pub since: Stamp,
}

/// The state of the strongbox in this instance.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Strongbox {
    /// Whether there are secrets, or one is needed, and this instance has no key.
    pub sealed: bool,
    /// Why it is sealed; absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The number of stored secrets.
    pub secrets: usize,
}

/// A secret to store.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretValue {
    /// The secret, up to 8 KiB.
    #[schema(value_type = SecretText)]
    pub value: String,
    /// The only origin to which providers of configuration may send it, such as `https://files.example`; absent if to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2048)]
    pub origin: Option<String>,
}

/// The key of the strongbox.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StrongboxKey {
    /// 32 bytes in base64, as `os-upgrade strongbox key` prints them.
    #[schema(value_type = KeyText)]
    pub key: String,
}

/// A change of the strongbox.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StrongboxChange<'a> {
    /// The sequence of its record in the journal.
    pub sequence: u64,
    /// Its place in that record, from 0.
    pub place: u64,
    #[schema(value_type = Stamp)]
    pub time: Millis,
    /// `strongbox-made` when the first secret is sealed with a key, in the same record as that secret.
    #[serde(rename = "type")]
    #[schema(value_type = StrongboxWord)]
    pub kind: Word<StrongboxStep>,
    /// Who made the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<Cow<'a, str>>,
    /// The name of the secret; absent for a change of the whole strongbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<SecretNameText>)]
    pub name: Option<String>,
}
