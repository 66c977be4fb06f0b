//! `/v1/state/os-upgrade/hosts`, `/approve-hosts`, `/withdraw-host` and `/enrolment-history`: every host that is known,
//! and which of them operators let take part in runs. Extensions of the specification.

use os_upgrade_protocol::{HostName, Versions};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::body::{Blocker, Fact, Progress, ReasonFields, Stamp};
use crate::lists::list;
use crate::query::{self, FactList, NameList, Parameters, True, Validate};
use crate::route::{Answer, Method, OPERATOR, PathName, Route, Shape, Tag, VIEWER};
use crate::text::{AuditReasonText, EnrolmentWord, FactKeyText, HostStatusWord, NameText, ReachabilityWord};

/// A JSON list by hostname, or with `limit` or `after` a page of it.
pub const LIST: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/hosts",
    VIEWER,
    Tag::Upgrades,
    "list-hosts",
    "List the hosts, by name: their versions, and why they are not moving",
)
.query::<ListParameters>()
.answers(&[Answer::json("every host that is known, or a page of them", Shape::of::<HostList>(), || {
    json!([host()])
})]);

/// One entry of the list, which a worker may read at its start to compare versions.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/hosts/{hostname}",
    VIEWER,
    Tag::Upgrades,
    "read-host",
    "Read a host",
)
.names(&[PathName::new("hostname", "the name of a host", Shape::inline::<String>(), Some("h01"))])
.answers(&[
    Answer::json("the host", Shape::of::<Host<'static>>(), host),
    Answer::new(404, "there is no such host"),
]);

/// 204 once it is durable that they take part from the next run on, all of them or none.
pub const APPROVE: Route<HostsToApprove> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/approve-hosts",
    OPERATOR,
    Tag::Upgrades,
    "approve-hosts",
    "Let hosts take part in runs",
)
.body::<HostsToApprove>(|| json!({"hosts": ["h01", "h02"]}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "they take part, or could"),
    Answer::new(409, "there is no place for so many hosts"),
]);

/// 204 once it is durable that it takes no part any more. In the active run it is not started; where it has its slot
/// already, it goes on to its end there.
pub const WITHDRAW: Route<HostToWithdraw> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/withdraw-host",
    OPERATOR,
    Tag::Upgrades,
    "withdraw-host",
    "Let a host take part in runs no more, also where hosts are approved by themselves",
)
.body::<HostToWithdraw>(|| json!({"host": "h01", "reason": "it was sold"}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "it takes no part any more, or would not"),
    Answer::new(404, "there is no such host"),
    Answer::new(409, "forgotten, it would take part again at once; or there is no place for another"),
]);

/// Who approved and withdrew which hosts, newest first.
pub const HISTORY: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/enrolment-history",
    VIEWER,
    Tag::Upgrades,
    "list-enrolments",
    "List which hosts operators approved and withdrew, newest first",
)
.query::<FactList>()
.answers(&[Answer::json("a page of it", Shape::of::<EnrolmentList>(), || json!({"items": [enrolment()]}))]);

fn host() -> Value {
    json!({
        "hostname": "h01",
        "applications": ["os-upgrade-debian"],
        "group": "default",
        "reachability": "reachable",
        "enrolment": "approved",
        "decided-by": "anna",
        "decided-at": "2026-11-20T12:00:00Z",
        "announced-at": "2026-11-20T11:58:00Z",
        "versions": {"linux-image-amd64": "6.12.43"},
        "versions-time": "2026-11-20T12:00:00Z",
        "status": "preparing",
        "since": "2026-11-21T01:00:01Z",
        "why": "its worker has not answered prepare yet",
        "until": "2026-11-21T05:00:00Z",
        "blockers": [{"kind": "reply-awaited", "action": "prepare", "until": "2026-11-21T05:00:00Z"}],
        "progress": {"percent": 40, "text": "downloading linux-image-amd64"},
    })
}

fn enrolment() -> Value {
    json!({
        "sequence": 12,
        "place": 0,
        "time": "2026-11-20T12:00:00.000Z",
        "type": "hosts-approved",
        "actor": "anna",
        "fact": {"type": "hosts-approved", "hosts": ["h01", "h02"], "actor": "anna"},
    })
}

/// The parameters of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListParameters {
    /// How many entries at most; all unless given.
    #[param(minimum = 1, maximum = 500)]
    #[serde(default, deserialize_with = "query::page")]
    pub limit: Option<u32>,
    /// The `next` of the page before: entries whose names come after this one.
    pub after: Option<String>,
    /// Only those that have announced themselves and wait for approval.
    #[param(inline)]
    pub pending: Option<True>,
    /// Only the keys of the entries.
    #[param(inline)]
    pub keys: Option<True>,
    /// Only how many entries there are. It goes before `keys`.
    #[param(inline)]
    pub count: Option<True>,
}

impl Parameters for ListParameters {
    const NAMES: &'static [&'static str] = &["limit", "after", "pending", "keys", "count"];
}

impl ListParameters {
    /// Whether only those are wanted that wait for approval, and what any list by name is asked.
    pub fn split(self) -> (bool, NameList) {
        let Self { limit, after, pending, keys, count } = self;
        (pending.is_some(), NameList { limit, after, keys, count })
    }
}

list! {
    /// The hosts, by name, or a page of them; or their names; or how many there are.
    HostList = whole of Host<'static>, or NameText
}

list! {
    /// A page of which hosts operators approved and withdrew, newest first; or of the keys of that; or how much there is.
    EnrolmentList = page of Fact<'static>, or FactKeyText
}

/// Hosts that are to take part.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostsToApprove {
    /// Their names; also of such as have not announced themselves yet.
    #[schema(value_type = Vec<NameText>, min_items = 1, max_items = 1000)]
    pub hosts: Vec<HostName>,
}

/// A host that is to take part no more.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostToWithdraw {
    /// Its name.
    #[schema(value_type = NameText)]
    pub host: HostName,
    /// Why, for the audit.
    #[schema(value_type = AuditReasonText)]
    pub reason: String,
    /// Keep no note of it: while its announcement is there, or once it announces itself again, it waits for approval like one
    /// that has never been seen.
    #[serde(default)]
    #[schema(required = false)]
    pub forget: bool,
}

/// A host as it stands in the list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Host<'a> {
    pub hostname: &'a str,
    /// Those whose workers have announced themselves on it.
    pub applications: Vec<&'a str>,
    /// The lock group whose slot it needs.
    pub group: &'a str,
    #[schema(value_type = ReachabilityWord)]
    pub reachability: &'static str,
    /// Whether it takes part in runs.
    #[schema(value_type = EnrolmentWord)]
    pub enrolment: &'static str,
    /// Who approved or withdrew it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<&'a str>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Stamp>,
    /// When the bus took the last announcement of a worker on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announced_at: Option<Stamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HashMap<String, String>>)]
    pub versions: Option<&'a Versions>,
    /// When the bus took those versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions_time: Option<Stamp>,
    /// Where it is in the active run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HostStatusWord>)]
    pub status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Stamp>,
    /// Why it is not moving.
    pub why: &'a str,
    #[serde(flatten)]
    pub reason: ReasonFields<'a>,
    /// When, at the latest, that changes by time alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Stamp>,
    /// What keeps it from moving, the decisive one first.
    pub blockers: Vec<Blocker>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress<'a>>,
}
