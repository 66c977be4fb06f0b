//! `/v1/state/fleet-lock`: who holds a slot, since when and why, who waits for one, and what operators can do about it.
//! An extension of the specification.

use os_upgrade_kernel::{ClientId, FactCursor, LockProvider};
use os_upgrade_protocol::{GroupName, RunId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::body::{Fact, Stamp};
use crate::lists::list;
use crate::query::paged;
use crate::route::{Answer, Method, OPERATOR, PathName, Route, Shape, Tag, VIEWER};
use crate::text::{
    AuditReasonText, BehalfWord, ClientText, FactKeyText, GroupText, LockProviderWord, ReclaimWord,
    WaiterWord,
};

/// The slots, by any instance.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/fleet-lock",
    VIEWER,
    Tag::Slots,
    "read-slots",
    "Read who holds a slot, and who waits for one",
)
.answers(&[Answer::json("slots by group", Shape::of::<Slots<'static>>(), example)]);

/// What operators, and with `clients` FleetLock clients, did about slots, newest first.
pub const HISTORY: Route = Route::new(
    Method::Get,
    "/v1/state/fleet-lock/history",
    VIEWER,
    Tag::Slots,
    "list-slot-orders",
    "List what operators, or also FleetLock clients, did about slots, newest first",
)
.query::<HistoryParameters>()
.answers(&[Answer::json("a page of it", Shape::of::<OrderList>(), || json!({"items": [order()]}))]);

/// 204 once the slot is held until it is released; 409 when none is free.
pub const HOLD: Route<AboutSlot> = Route::new(
    Method::Post,
    "/v1/state/fleet-lock/hold",
    OPERATOR,
    Tag::Slots,
    "hold-slot",
    "Hold a slot until it is released",
)
.body::<AboutSlot>(|| json!({"group": "default", "id": "h01", "reason": "its disk is exchanged"}))
.answers(&[
    Answer::new(204, "it is held"),
    Answer::new(404, "there is no such group"),
    Answer::new(409, "none is free, or it is held already"),
]);

/// 204 once the slot is free, or on its way back to its lock server; 409 while its host is at work.
pub const RELEASE: Route<AboutSlot> = Route::new(
    Method::Post,
    "/v1/state/fleet-lock/release",
    OPERATOR,
    Tag::Slots,
    "release-slot",
    "Release a slot, whoever holds it",
)
.body::<AboutSlot>(|| json!({"group": "default", "id": "h01", "reason": "it burnt"}))
.answers(&[
    Answer::new(204, "it is free, or on its way back to its lock server"),
    Answer::new(404, "nobody of this name holds one or waits for one"),
    Answer::new(409, "its host is at work"),
]);

/// As a release, of one that has left the inventory; 409 unless `reclaim` is `inventory`.
pub const RECLAIM: Route = Route::new(
    Method::Delete,
    "/v1/state/fleet-lock/{group}/{id}",
    OPERATOR,
    Tag::Slots,
    "reclaim-slot",
    "Take back the slot of one that has left the inventory",
)
.names(&[
    PathName::new("group", "the group", Shape::of::<GroupText>(), Some("default")),
    PathName::new("id", "who holds the slot", Shape::of::<ClientText>(), Some("h01")),
])
.answers(&[
    Answer::new(204, "it is free, or on its way back to its lock server"),
    Answer::new(404, "nobody of this name holds one or waits for one"),
    Answer::new(409, "it has not left the inventory, its host is at work, or `reclaim` is not `inventory`"),
]);

fn example() -> Value {
    json!({
        "provider": "embedded",
        "reclaim": "never",
        "groups": [{
            "group": "default",
            "slots": 1,
            "held": 1,
            "excess": 0,
            "holders": [{
                "id": "h01",
                "since": "2026-11-21T01:00:00Z",
                "on-behalf-of": ["operator"],
                "hold": {
                    "actor": "api 127.0.0.1",
                    "reason": "its disk is exchanged",
                    "since": "2026-11-21T01:00:00Z",
                },
                "reason": "held by api 127.0.0.1: its disk is exchanged",
                "stuck": false,
            }],
            "waiters": [{"id": "h02", "kind": "host", "since": "2026-11-21T01:00:05Z"}],
        }],
    })
}

fn order() -> Value {
    json!({
        "sequence": 12,
        "place": 0,
        "time": "2026-11-21T01:00:00.000Z",
        "type": "hold-placed",
        "actor": "api 127.0.0.1",
        "fact": {
            "type": "hold-placed",
            "group": "default",
            "id": "h01",
            "actor": "api 127.0.0.1",
            "reason": "its disk is exchanged",
        },
    })
}

paged!(
    /// The parameters of the history.
    HistoryParameters by FactCursor, described by FactKeyText;
    /// Also the slots that `FleetLock` clients were granted and gave back, and who asked.
    clients
);

list! {
    /// A page of what operators did about slots, newest first; or of the keys of that; or how much there is.
    OrderList = page of Fact<'static>, or FactKeyText
}

/// Whose slot it is about, and why.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AboutSlot {
    #[schema(value_type = GroupText)]
    pub group: GroupName,
    #[schema(value_type = ClientText)]
    pub id: ClientId,
    /// Why, for the audit.
    #[schema(value_type = AuditReasonText)]
    pub reason: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Slots<'a> {
    /// Who grants slots to hosts of runs: `embedded`, the semaphores here, or an `external` lock server.
    #[schema(value_type = LockProviderWord)]
    pub provider: LockProvider,
    /// Whose slots a `DELETE` takes back: nobody's, `never`, or theirs who have left the `inventory`.
    #[schema(value_type = ReclaimWord)]
    pub reclaim: &'static str,
    pub groups: Vec<SlotGroup<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SlotGroup<'a> {
    #[schema(value_type = String)]
    pub group: &'a GroupName,
    /// Absent where another lock server counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    pub held: usize,
    /// How many more are held than there are slots, since those became fewer.
    pub excess: usize,
    pub holders: Vec<SlotHolder<'a>>,
    pub waiters: Vec<SlotWaiter<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SlotHolder<'a> {
    pub id: &'a str,
    pub since: Stamp,
    #[schema(value_type = Vec<BehalfWord>)]
    pub on_behalf_of: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub run: Option<&'a RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold<'a>>,
    pub reason: String,
    /// Whether it has been held for longer than `[fleet-lock] stuck-after`.
    pub stuck: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Hold<'a> {
    pub actor: &'a str,
    pub reason: &'a str,
    pub since: Stamp,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SlotWaiter<'a> {
    pub id: &'a str,
    /// `host` for one of a run, `client` for one from outside.
    #[schema(value_type = WaiterWord)]
    pub kind: &'static str,
    pub since: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_asked: Option<Stamp>,
}
