//! Bodies and parts of bodies that several resources share.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use os_upgrade_kernel::run::CountedAs;
use os_upgrade_kernel::{Cause, HostStatus, LateResult};
use os_upgrade_protocol::{HostName, time};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use utoipa::openapi::schema::{AdditionalProperties, KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::query::ListMode;
use crate::text::{ActionWord, AuditReasonText, HostStatusWord, NameText, WhyWord};
use crate::word::{WhyKind, Word};

/// A time in RFC 3339, UTC, whole seconds, as everywhere in the specification.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Stamp(pub DateTime<Utc>);

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&time::format(self.0))
    }
}

impl Serialize for Stamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&time::format(self.0))
    }
}

impl PartialSchema for Stamp {
    fn schema() -> RefOr<Schema> {
        let object = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339 in UTC."));
        object.examples([json!("2026-11-21T01:00:00Z")]).into()
    }
}

impl ToSchema for Stamp {
    fn name() -> Cow<'static, str> {
        "Time".into()
    }
}

/// What an operator decides about a host: to withdraw it, to remove it, to uncordon its node, or to let the active run continue
/// without it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostWithReason {
    /// The name of the host.
    #[schema(value_type = NameText)]
    pub host: HostName,
    /// The reason, for the history.
    #[schema(value_type = AuditReasonText)]
    pub reason: String,
}

/// A time in RFC 3339, UTC, with milliseconds, because many facts share a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Millis(pub DateTime<Utc>);

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The number of entries of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct Count {
    pub count: u64,
}

/// A page of a list.
#[derive(Debug, Serialize, Deserialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// What to continue `after`; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An entry of a list, or only its key.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Entry<K, T> {
    Key(K),
    Whole(T),
}

impl<K, T> Entry<K, T> {
    /// The key or the whole entry, as `mode` requires.
    pub fn of(mode: ListMode, key: impl FnOnce() -> K, whole: impl FnOnce() -> T) -> Self {
        match mode {
            ListMode::Keys => Self::Key(key()),
            ListMode::Entries | ListMode::Count => Self::Whole(whole()),
        }
    }
}

/// The number of hosts in each status; statuses without hosts are absent. Hosts of a run that an operator deferred or gave up are counted as
/// `deferred` and `given-up`, whatever their status.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counts(#[schema(inline)] pub BTreeMap<String, u64>);

impl Counts {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&BTreeMap<CountedAs, usize>> for Counts {
    fn from(counts: &BTreeMap<CountedAs, usize>) -> Self {
        Self(counts.iter().map(|(counted, count)| (counted.as_str().to_owned(), *count as u64)).collect())
    }
}

/// A part of a body whose two sides have types of their own: a server sends an `S`, and a client reads an `R`. `Other` is what only a
/// newer server says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TwoSided<S, R> {
    #[serde(skip_deserializing)]
    Sent(S),
    Read(R),
    Other(Value),
}

impl<S, R> TwoSided<S, R> {
    /// What a client has read, if this version knows it; `None` also for what this process has built itself.
    pub const fn read(&self) -> Option<&R> {
        match self {
            Self::Read(read) => Some(read),
            Self::Sent(_) | Self::Other(_) => None,
        }
    }

    /// What a client has read, if only a newer version knows it.
    pub const fn other(&self) -> Option<&Value> {
        match self {
            Self::Other(other) => Some(other),
            Self::Sent(_) | Self::Read(_) => None,
        }
    }
}

/// What a client reads of something that has a kind and details.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kind {
    pub kind: String,
}

/// What a client reads of a cause: its kind, and the data in further fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ReadCause {
    kind: Word<WhyKind>,
    #[serde(flatten)]
    data: Map<String, Value>,
}

/// Why something does not go on, or did not:
/// `{"kind":"reply-awaited","action":"prepare","text":"its worker has not answered prepare yet","until":"..."}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    #[serde(flatten)]
    cause: TwoSided<Box<Cause>, ReadCause>,
    /// The sentence.
    pub text: String,
    /// When time alone ends it, at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Stamp>,
    /// Since when, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Stamp>,
}

impl Why {
    /// What the kernel says, with its sentence.
    pub fn new(why: os_upgrade_kernel::Why, text: String) -> Self {
        let os_upgrade_kernel::Why { cause, until, since } = why;
        Self {
            cause: TwoSided::Sent(Box::new(cause)),
            text,
            until: until.map(Stamp),
            since: since.map(Stamp),
        }
    }

    /// What only a newer version knows, by its kind and its sentence.
    pub fn of_newer(kind: &str, text: String) -> Self {
        Self { cause: TwoSided::Other(json!({ "kind": kind })), text, until: None, since: None }
    }

    /// Its kind, for a client; absent if clients treat it as any other.
    pub fn kind(&self) -> Option<WhyKind> {
        self.cause.read()?.kind.known()
    }
}

impl PartialSchema for Why {
    fn schema() -> RefOr<Schema> {
        let meaning = "Why something does not go on, or did not. Details, such as an action or another host, are in further \
                      fields, which differ by kind; text is a sentence for people.";
        let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(meaning));
        let object = object.property("kind", WhyWord::schema()).required("kind");
        let object = object.property("text", String::schema()).required("text");
        let until =
            "When time alone ends it, at the latest; absent if time does not, or it is not known when.";
        let object = object.property("until", described(until));
        let object = object.property("since", described("Since when, as far as is known."));
        object.additional_properties(Some(AdditionalProperties::FreeForm(true))).into()
    }
}

/// A time with a meaning of its own.
fn described(meaning: &str) -> RefOr<Schema> {
    let time = ObjectBuilder::new().schema_type(Type::String).description(Some(meaning));
    time.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))).into()
}

impl ToSchema for Why {
    fn name() -> Cow<'static, str> {
        "Why".into()
    }
}

/// A host of a run: `{"hostname":"h01","status":"waiting","since":"...","why":{...}}`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct HostOfRun<'a> {
    pub hostname: Cow<'a, str>,
    #[schema(value_type = HostStatusWord)]
    pub status: Word<HostStatus>,
    #[serde(default)]
    #[schema(required)]
    pub since: Stamp,
    /// Why it waits or did not succeed; absent if nothing of that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// What its worker answered after its part in the run had ended; absent if it answered nothing.
    #[serde(rename = "late-answer", skip_serializing_if = "Option::is_none")]
    pub late_answer: Option<LateAnswer>,
    /// When it was upgraded after that; absent if it was not.
    #[serde(rename = "upgraded-since", skip_serializing_if = "Option::is_none")]
    pub upgraded_since: Option<Stamp>,
}

/// An answer of a worker that came after its host's part in the run had ended, or that answered nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LateAnswer {
    pub time: Stamp,
    #[schema(value_type = ActionWord)]
    pub action: Cow<'static, str>,
    /// `done`, `reboot-required` or `error`.
    #[schema(value_type = String)]
    pub result: Word<LateResult>,
}

impl LateAnswer {
    /// Whether the host is upgraded after all.
    pub fn is_done(&self) -> bool {
        self.result == Word::Known(LateResult::Done)
    }
}

/// The progress of the worker with the command under way, as it reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Progress<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 100)]
    pub percent: Option<u8>,
    pub text: Cow<'a, str>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Fact<'a> {
    /// The sequence of its record in the journal.
    pub sequence: u64,
    /// Its place in that record, from 0.
    pub place: u64,
    #[schema(value_type = Stamp)]
    pub time: Millis,
    #[serde(rename = "type")]
    pub name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Cow<'a, str>>,
    /// The whole fact; its fields differ by type.
    #[schema(value_type = Object)]
    pub fact: TwoSided<&'a RawValue, os_upgrade_kernel::Fact>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_of_a_newer_version_is_read() {
        let read = |kind: &str| {
            let why =
                json!({ "kind": kind, "host": "h01", "text": "a text", "until": "2026-11-21T01:42:10Z" });
            let read = serde_json::from_value::<Why>(why.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), why);
            read.kind()
        };
        assert_eq!((read("no-run"), read("of a newer version")), (Some(WhyKind::NoRun), None));
    }
}
