//! `/v1/state/fleet-lock`: the holders of slots, the waiters, and operators' actions on slots. An extension of the
//! specification.

use std::borrow::Cow;

use os_upgrade_kernel::{ClientId, FactCursor, LockProvider};
use os_upgrade_protocol::GroupName;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::body::{Fact, Stamp, Why};
use crate::lists::list;
use crate::query::paged;
use crate::route::{Answer, Method, OPERATOR, PathName, Route, Shape, Tag, VIEWER};
use crate::routes::reboot_queue::EntryIndex;
use crate::text::{
    AuditReasonText, BehalfWord, ClientText, EntryIndexText, FactKeyText, GroupText, LockProviderWord,
    ReclaimWord, WaiterWord,
};
use crate::word::{Behalf, Word};

/// The slots of all groups, answered by any instance.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/fleet-lock",
    VIEWER,
    Tag::Slots,
    "read-slots",
    "Read the holders and waiters of slots",
)
.answers(&[Answer::json("slots by group", Shape::of::<Slots<'static>>(), example)]);

/// The actions of operators on slots, newest first; with `clients` also those of FleetLock clients.
pub const HISTORY: Route = Route::new(
    Method::Get,
    "/v1/state/fleet-lock/history",
    VIEWER,
    Tag::Slots,
    "list-slot-orders",
    "List the actions of operators on slots, or also those of FleetLock clients, newest first",
)
.query::<HistoryParameters>()
.answers(&[Answer::json("a page of the list", Shape::of::<OrderList>(), || json!({"items": [order()]}))]);

/// 204 once the slot is held; 409 when none is free.
pub const HOLD: Route<AboutSlot> = Route::new(
    Method::Post,
    "/v1/state/fleet-lock/hold",
    OPERATOR,
    Tag::Slots,
    "hold-slot",
    "Hold a slot until an operator releases it",
)
.body::<AboutSlot>(|| json!({"group": "default", "id": "h01", "reason": "disk replacement"}))
.answers(&[
    Answer::new(204, "the slot is held"),
    Answer::new(404, "there is no such group"),
    Answer::new(409, "no slot is free, or it is already held"),
]);

/// 204 once the slot is free, or being released at its lock server; 409 while its host is being upgraded.
pub const RELEASE: Route<AboutSlot> = Route::new(
    Method::Post,
    "/v1/state/fleet-lock/release",
    OPERATOR,
    Tag::Slots,
    "release-slot",
    "Release a slot, regardless of its holder",
)
.body::<AboutSlot>(|| json!({"group": "default", "id": "h01", "reason": "power supply failed"}))
.answers(&[
    Answer::new(204, "the slot is free, or being released at its lock server"),
    Answer::new(404, "nothing with this id holds a slot or waits for one"),
    Answer::new(409, "its host is being upgraded"),
]);

/// Releases the slot of a host that has left the inventory; 409 unless `reclaim` is `inventory`.
pub const RECLAIM: Route = Route::new(
    Method::Delete,
    "/v1/state/fleet-lock/{group}/{id}",
    OPERATOR,
    Tag::Slots,
    "reclaim-slot",
    "Release the slot of a host that has left the inventory",
)
.names(&[
    PathName::new("group", "the group", Shape::of::<GroupText>(), Some("default")),
    PathName::new("id", "the id of the holder", Shape::of::<ClientText>(), Some("h01")),
])
.answers(&[
    Answer::new(204, "the slot is free, or being released at its lock server"),
    Answer::new(404, "nothing with this id holds a slot or waits for one"),
    Answer::new(
        409,
        "it has not left the inventory, its host is being upgraded, or `reclaim` is not `inventory`",
    ),
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
                    "reason": "disk replacement",
                    "since": "2026-11-21T01:00:00Z",
                },
                "reason": "held by api 127.0.0.1: disk replacement",
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
            "reason": "disk replacement",
        },
    })
}

paged!(
    /// The parameters of the history.
    HistoryParameters by FactCursor, described by FactKeyText;
    /// Also the slots that `FleetLock` clients took and released.
    clients
);

list! {
    /// A page of actions on slots, newest first; or of their keys; or their number.
    OrderList = page of Fact<'static>, or FactKeyText
}

/// The slot to act on, and the reason.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AboutSlot {
    #[schema(value_type = GroupText)]
    pub group: GroupName,
    #[schema(value_type = ClientText)]
    pub id: ClientId,
    /// The reason, for the history.
    #[schema(value_type = AuditReasonText)]
    pub reason: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Slots<'a> {
    /// What grants slots to hosts of runs: the `embedded` semaphores, or an `external` lock server.
    #[schema(value_type = LockProviderWord)]
    pub provider: Word<LockProvider>,
    /// Whose slots a `DELETE` releases: `never` any, or those of hosts that have left the `inventory`.
    #[schema(value_type = ReclaimWord)]
    pub reclaim: Cow<'static, str>,
    pub groups: Vec<SlotGroup<'a>>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SlotGroup<'a> {
    pub group: Cow<'a, str>,
    /// The number of slots; absent where an external lock server counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Of how many failed hosts the slots do not count against hosts of runs; absent if each counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    pub held: usize,
    /// How many slots are held beyond their number, after it was reduced. Those that do not count are none of them.
    pub excess: usize,
    pub holders: Vec<SlotHolder<'a>>,
    pub waiters: Vec<SlotWaiter<'a>>,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SlotHolder<'a> {
    pub id: Cow<'a, str>,
    pub since: Stamp,
    #[schema(value_type = Vec<BehalfWord>)]
    pub on_behalf_of: Vec<Word<Behalf>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Cow<'a, str>>,
    /// The entry of the reboot queue for which it is held; absent if it is for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<EntryIndexText>)]
    pub entry: Option<EntryIndex>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold<'a>>,
    pub reason: String,
    /// Why the lock server has not released the slot so far; absent if it has not been asked to, or has not refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// Whether the slot has been held for longer than `[fleet-lock] stuck-after`.
    pub stuck: bool,
    /// Whether its host keeps it though nothing is under way there, because it failed or was given up; absent if it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub kept: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Hold<'a> {
    pub actor: Cow<'a, str>,
    pub reason: Cow<'a, str>,
    pub since: Stamp,
}

#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SlotWaiter<'a> {
    pub id: Cow<'a, str>,
    /// `host` for a host of a run, `client` for a FleetLock client.
    #[schema(value_type = WaiterWord)]
    pub kind: Cow<'static, str>,
    pub since: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_asked: Option<Stamp>,
}
