//! `/v1/state/reboot-queue`: hosts that are to reboot without an upgrade. An extension of the specification.
//!
//! The first six fields of an entry are those of CKE's reboot queue, with the same names, in snake case. So are the others, so that
//! an entry has one style.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use os_upgrade_kernel::reboot_queue::EntryStatus;
use os_upgrade_protocol::HostName;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::body::{Fact, Progress, Stamp, Why};
use crate::lists::list;
use crate::query::{self, FactList, ListMode, Parameters, True, Validate};
use crate::route::{Answer, Method, OPERATOR, PathName, Route, Shape, Tag, VIEWER};
use crate::text::{AuditReasonText, EntryIndexText, EntryStatusWord, FactKeyText, NameText};
use crate::word::Word;

/// A JSON list in the order of the indices, or a page of it with `limit` or `after`.
pub const LIST: Route = Route::new(
    Method::Get,
    "/v1/state/reboot-queue",
    VIEWER,
    Tag::Reboots,
    "list-reboots",
    "List the entries of the reboot queue, in order, and why each is not progressing",
)
.query::<ListParameters>()
.answers(&[Answer::json("every entry, or a page of them", Shape::of::<EntryList>(), || json!([entry()]))]);

/// One entry of the list.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/reboot-queue/{index}",
    VIEWER,
    Tag::Reboots,
    "read-reboot",
    "Read an entry of the reboot queue",
)
.names(&[PathName::new("index", "the index of an entry", Shape::of::<EntryIndexText>(), Some("7"))])
.answers(&[
    Answer::json("the entry", Shape::of::<Entry<'static>>(), entry),
    Answer::new(404, "there is no such entry"),
]);

/// 201 once it is durable that all of them are queued, or an error, and none is.
pub const ADD: Route<NodesToReboot> = Route::new(
    Method::Post,
    "/v1/state/reboot-queue/add",
    OPERATOR,
    Tag::Reboots,
    "add-reboots",
    "Queue a reboot of each of these hosts, or of none if one of them cannot be queued",
)
.body::<NodesToReboot>(|| json!({"nodes": ["h01", "h02"], "reason": "a new kernel"}))
.query::<Validate>()
.answers(&[
    Answer::created(
        "the reboots are queued: their entries, in order, as far as they are not over yet",
        Shape::list_of::<Entry<'static>>(),
        || json!([entry()]),
    ),
    Answer::new(204, "the reboots could be queued"),
    Answer::new(404, "no worker has announced itself on one of the hosts"),
    Answer::new(
        409,
        "a host is not approved, is queued already, or has no worker, or one that does not reboot it on request; or the queue is full",
    ),
]);

/// 204 once it is durable that the entry is cancelled. One whose host reboots stays until the host is back.
pub const CANCEL: Route<EntryToCancel> = Route::new(
    Method::Post,
    "/v1/state/reboot-queue/cancel",
    OPERATOR,
    Tag::Reboots,
    "cancel-reboot",
    "Cancel an entry of the reboot queue; a reboot that has begun is not undone",
)
.body::<EntryToCancel>(|| json!({"index": "7", "reason": "not tonight"}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "the entry is cancelled, or would be"),
    Answer::new(404, "there is no such entry"),
]);

/// As [`CANCEL`], for every entry.
pub const CANCEL_ALL: Route<WhyAsked> = Route::new(
    Method::Post,
    "/v1/state/reboot-queue/cancel-all",
    OPERATOR,
    Tag::Reboots,
    "cancel-all-reboots",
    "Cancel every entry of the reboot queue; reboots that have begun are not undone",
)
.optional_body::<WhyAsked>(|| json!({"reason": "not tonight"}))
.query::<Validate>()
.answers(&[Answer::new(204, "every entry is cancelled, or would be")]);

/// 204 once it is durable that nobody waits for the host any more. Its slot stays held until the host answers, or an operator
/// releases it.
pub const GIVE_UP: Route<EntryToGiveUp> = Route::new(
    Method::Post,
    "/v1/state/reboot-queue/give-up",
    OPERATOR,
    Tag::Reboots,
    "give-up-reboot",
    "Remove an entry whose host will not be back; the host keeps its slot",
)
.body::<EntryToGiveUp>(|| json!({"index": "7", "reason": "power supply failed"}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "the entry is removed, or would be"),
    Answer::new(404, "there is no such entry"),
    Answer::new(409, "the entry has not begun, or its command or reply is not known yet"),
]);

/// 204 once it is durable that every entry may start again, however often it was put back.
pub const RESET_BACKOFF: Route = Route::new(
    Method::Post,
    "/v1/state/reboot-queue/reset-backoff",
    OPERATOR,
    Tag::Reboots,
    "reset-reboot-backoff",
    "Let every entry that has backed off start again at once",
)
.query::<Validate>()
.answers(&[Answer::new(204, "no entry has backed off, or none would have")]);

/// 204 once it is durable that entries may start.
pub const ENABLE: Route<WhyAsked> = Route::new(
    Method::Post,
    "/v1/state/reboot-queue/enable",
    OPERATOR,
    Tag::Reboots,
    "enable-reboots",
    "Let entries of the reboot queue start",
)
.optional_body::<WhyAsked>(|| json!({"reason": "the freeze is over"}))
.query::<Validate>()
.answers(&[Answer::new(204, "the queue is enabled, or would be")]);

/// 204 once it is durable that no further entry starts. What is under way is finished.
pub const DISABLE: Route<WhyAsked> = Route::new(
    Method::Post,
    "/v1/state/reboot-queue/disable",
    OPERATOR,
    Tag::Reboots,
    "disable-reboots",
    "Start no further entry of the reboot queue",
)
.optional_body::<WhyAsked>(|| json!({"reason": "a freeze"}))
.query::<Validate>()
.answers(&[Answer::new(204, "the queue is disabled, or would be")]);

/// Whether entries may start.
pub const IS_ENABLED: Route = Route::new(
    Method::Get,
    "/v1/state/reboot-queue/is-enabled",
    VIEWER,
    Tag::Reboots,
    "are-reboots-enabled",
    "Read whether entries of the reboot queue may start",
)
.answers(&[Answer::json("whether they may", Shape::of::<IsEnabled>(), || json!({"enabled": true}))]);

/// What operators did about the queue, and what became of its entries, newest first.
pub const HISTORY: Route = Route::new(
    Method::Get,
    "/v1/state/reboot-queue/history",
    VIEWER,
    Tag::Reboots,
    "list-reboot-history",
    "List what operators did about the reboot queue, and what became of its entries, newest first",
)
.query::<FactList>()
.answers(&[Answer::json("a page of the list", Shape::of::<RebootHistory>(), || json!({"items": [fact()]}))]);

fn entry() -> Value {
    json!({
        "index": "7",
        "node": "h01",
        "status": "rebooting",
        "last_transition_time": "2026-11-21T01:00:05Z",
        "drain_backoff_count": 0,
        "added_at": "2026-11-21T01:00:00Z",
        "added_by": "anna",
        "reason": "a new kernel",
        "cancel_requested": false,
        "required": false,
        "boot_id": "5e1f6c1e-0b36-4a4e-9a3f-0f5d3c1b7f53",
        "why": {
            "kind": "reply-awaited",
            "text": "its worker has not answered reboot since 2026-11-21T01:00:05Z",
            "since": "2026-11-21T01:00:05Z",
        },
    })
}

fn fact() -> Value {
    json!({
        "sequence": 12,
        "place": 0,
        "time": "2026-11-21T01:00:00.000Z",
        "type": "reboots-queued",
        "actor": "anna",
        "fact": {"type": "reboots-queued", "hosts": ["h01"], "actor": "anna", "reason": "a new kernel"},
    })
}

/// The parameters of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListParameters {
    /// The maximum number of entries; the default is all.
    #[param(minimum = 1, maximum = 500)]
    #[serde(default, deserialize_with = "query::page")]
    pub limit: Option<u32>,
    /// The `next` of the previous page: return entries with a larger index.
    #[param(value_type = Option<EntryIndexText>)]
    pub after: Option<EntryIndex>,
    /// Return only the indices of the entries.
    #[param(inline)]
    pub keys: Option<True>,
    /// Return only the number of entries. Takes precedence over `keys`.
    #[param(inline)]
    pub count: Option<True>,
}

impl Parameters for ListParameters {
    const NAMES: &'static [&'static str] = &["limit", "after", "keys", "count"];
}

impl ListParameters {
    /// What the list returns.
    pub const fn mode(&self) -> ListMode {
        ListMode::of(self.keys, self.count)
    }

    /// Whether a page is requested.
    pub const fn is_paged(&self) -> bool {
        self.limit.is_some() || self.after.is_some()
    }
}

list! {
    /// The entries, by index, or a page of them; or their indices; or their number.
    EntryList = whole of Entry<'static>, or EntryIndexText
}

list! {
    /// A page of facts about the reboot queue, newest first; or of their keys; or their number.
    RebootHistory = page of Fact<'static>, or FactKeyText
}

/// The index of an entry: a number from 0 that is never used twice. It is written as a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryIndex(pub u64);

/// A text is no index of an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the index of an entry, a number such as 7")]
pub struct NoEntryIndex(String);

impl fmt::Display for EntryIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for EntryIndex {
    type Err = NoEntryIndex;

    fn from_str(text: &str) -> Result<Self, NoEntryIndex> {
        // Neither `+7` nor `007`: one entry has one name.
        let index = text.parse().ok().filter(|index: &u64| index.to_string() == text);
        index.map(Self).ok_or_else(|| NoEntryIndex(text.to_owned()))
    }
}

impl Serialize for EntryIndex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EntryIndex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Hosts whose reboots are to be queued.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodesToReboot {
    /// The names of the hosts, in the order in which they are to reboot.
    #[schema(value_type = Vec<NameText>, min_items = 1, max_items = 20000)]
    pub nodes: Vec<HostName>,
    /// The reason, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AuditReasonText>)]
    pub reason: Option<String>,
}

/// An entry to cancel.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EntryToCancel {
    #[schema(value_type = EntryIndexText)]
    pub index: EntryIndex,
    /// The reason, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AuditReasonText>)]
    pub reason: Option<String>,
}

/// An entry to give up.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EntryToGiveUp {
    #[schema(value_type = EntryIndexText)]
    pub index: EntryIndex,
    /// The reason, for the history.
    #[schema(value_type = AuditReasonText)]
    pub reason: String,
}

/// Why an operator changes the queue.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WhyAsked {
    /// The reason, for the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AuditReasonText>)]
    pub reason: Option<String>,
}

/// Whether entries may start.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct IsEnabled {
    pub enabled: bool,
}

/// An entry of the reboot queue.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own in the JSON")]
pub struct Entry<'a> {
    #[schema(value_type = EntryIndexText)]
    pub index: EntryIndex,
    /// The host that is to reboot.
    pub node: Cow<'a, str>,
    #[schema(value_type = EntryStatusWord)]
    pub status: Word<EntryStatus>,
    /// When it entered this status.
    pub last_transition_time: Stamp,
    /// How many drains in a row were given up.
    pub drain_backoff_count: u32,
    /// Until when it does not start again; absent if it may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_backoff_expire: Option<Stamp>,
    /// When it was added.
    pub added_at: Stamp,
    /// The operator who queued it; absent if it was queued without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_by: Option<Cow<'a, str>>,
    /// Why, as the operator says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// Whether it was cancelled while its host rebooted: it ends when the host is back.
    pub cancel_requested: bool,
    /// Whether it was queued without an operator, because its host needs a reboot.
    pub required: bool,
    /// The boot that its host is to leave; absent until the host is told to reboot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<Cow<'a, str>>,
    /// Why it is not progressing; absent if nothing keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// Whether this keeps every entry from starting; absent if it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub of_queue: bool,
    /// Whether it goes on only once an operator has looked after its host: it failed, or nobody knows whether it did; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub needs_operator: bool,
    /// The end of what `reboot-command` printed when it failed, for callers with the role operator; absent if it printed nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress<'a>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_written_in_one_way() {
        assert_eq!("0".parse(), Ok(EntryIndex(0)));
        assert_eq!(serde_json::from_str::<EntryIndex>("\"12\"").unwrap(), EntryIndex(12));
        assert_eq!(serde_json::to_string(&EntryIndex(12)).unwrap(), "\"12\"");
        for wrong in ["", "+7", "07", "-1", " 7", "7.0", "seven", "99999999999999999999"] {
            assert!(wrong.parse::<EntryIndex>().is_err(), "{wrong}");
        }
        assert!(serde_json::from_str::<EntryIndex>("12").is_err());
    }
}
