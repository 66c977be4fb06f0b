//! `/v1/state/os-upgrade/hosts`, `/approve-hosts`, `/withdraw-host`, `/remove-host`, `/defer-host`,
//! `/end-deferral`, `/uncordon-host` and `/enrolment-history`:
//! every known host, and what operators decide about them. Extensions of the specification.

use std::borrow::Cow;
use std::collections::BTreeMap;

use os_upgrade_kernel::reboot_queue::EntryStatus;
use os_upgrade_kernel::{HostStatus, KeyState, MachineOffer};
use os_upgrade_protocol::{HostKey, HostName, Versions};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use crate::body::{Fact, HostWithReason, LateAnswer, Progress, Stamp, Why};
use crate::lists::list;
use crate::node::HostNode;
use crate::query::{self, FactList, NameList, Parameters, True, Validate};
use crate::route::{Answer, Method, OPERATOR, PathName, Route, Shape, Tag, VIEWER};
use crate::routes::providers::HostConfiguration;
use crate::routes::reboot_queue::EntryIndex;
use crate::routes::units::AnnouncedMachine;
use crate::text::{
    AuditReasonText, EnrolmentWord, EntryIndexText, EntryStatusWord, FactKeyText, HostKeyText,
    HostStatusWord, KeyStateWord, NameText, ReachabilityWord, RunIdText,
};
use crate::word::{Enrolment, Word};

/// A JSON list by hostname, or a page of it with `limit` or `after`.
pub const LIST: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/hosts",
    VIEWER,
    Tag::Upgrades,
    "list-hosts",
    "List the hosts, by name: their versions, and why they are not moving",
)
.query::<ListParameters>()
.answers(&[Answer::json("every known host, or a page of them", Shape::of::<HostList>(), || json!([host()]))]);

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

/// 204 once it is durable that all of them take part from the next run on, and that configuration for those with a key is sealed to it.
pub const APPROVE: Route<HostsToApprove> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/approve-hosts",
    OPERATOR,
    Tag::Upgrades,
    "approve-hosts",
    "Let hosts take part in runs",
)
.body::<HostsToApprove>(|| json!({"hosts": ["h01", "h02"], "keys": {"h01": KEY}}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "the hosts take part, or could"),
    Answer::new(409, "the host limit is exceeded, or a host announces another key or another machine by now"),
]);

/// 204 once it is durable that the host no longer takes part. In the active run it is not started; if it already has
/// its slot, its upgrade is completed.
pub const WITHDRAW: Route<HostWithReason> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/withdraw-host",
    OPERATOR,
    Tag::Upgrades,
    "withdraw-host",
    "Exclude a host from runs, even where hosts are approved automatically",
)
.body::<HostWithReason>(|| json!({"host": "h01", "reason": "it was sold"}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "the host no longer takes part, or would not"),
    Answer::new(404, "there is no such host"),
    Answer::new(409, "the host limit is exceeded"),
]);

/// 204 once it is durable that the host is gone. What the streams have of it is deleted then: its announcements, its versions,
/// its output and its consumer. If it announces itself again, it waits for approval, even where hosts are approved
/// automatically.
pub const REMOVE: Route<HostWithReason> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/remove-host",
    OPERATOR,
    Tag::Upgrades,
    "remove-host",
    "Forget a host that is gone, with everything that it has announced",
)
.body::<HostWithReason>(|| json!({"host": "h01", "reason": "it was scrapped"}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "the host is gone, or would be"),
    Answer::new(404, "there is no such host"),
    Answer::new(
        409,
        "the host sends heartbeats, is in the active run, or holds a slot; or the host limit is exceeded",
    ),
]);

/// 204 once it is durable that the host begins nothing for now: no run includes it, and its entries in the reboot queue stay queued. In the
/// active run it is not started; if it already has its slot and was told to upgrade, its upgrade is completed.
pub const DEFER: Route<HostToDefer> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/defer-host",
    OPERATOR,
    Tag::Upgrades,
    "defer-host",
    "Begin nothing on a host for now: no upgrade and no reboot",
)
.body::<HostToDefer>(
    || json!({"host": "h01", "until": "2026-11-27T22:00:00Z", "reason": "the quarter closes"}),
)
.query::<Validate>()
.answers(&[
    Answer::new(204, "the host is deferred, or would be"),
    Answer::new(404, "there is no such host"),
    Answer::new(409, "the end of the deferral has passed, or the host limit is exceeded"),
]);

/// 204 once it is durable that the host is not deferred, also if it was not before.
pub const END_DEFERRAL: Route<DeferralToEnd> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/end-deferral",
    OPERATOR,
    Tag::Upgrades,
    "end-deferral",
    "End the deferral of a host",
)
.body::<DeferralToEnd>(|| json!({"host": "h01"}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "the host is not deferred, or would not be"),
    Answer::new(404, "there is no such host"),
]);

/// 204 once it is durable that the host's Kubernetes node is to be as it was before; the node itself follows when the API server of
/// the cluster answers.
pub const UNCORDON: Route<HostWithReason> = Route::new(
    Method::Post,
    "/v1/state/os-upgrade/uncordon-host",
    OPERATOR,
    Tag::Upgrades,
    "uncordon-host",
    "Uncordon the Kubernetes node of a host that failed",
)
.body::<HostWithReason>(|| json!({"host": "h01", "reason": "its disk was replaced"}))
.query::<Validate>()
.answers(&[
    Answer::new(204, "the node is being uncordoned, or would be"),
    Answer::new(404, "the node of the host is not cordoned by this site"),
    Answer::new(409, "the host is under way, or a command may still be on its way to it"),
]);

/// The approvals, withdrawals and removals of hosts, and the nodes that operators had uncordoned, newest first.
pub const HISTORY: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/enrolment-history",
    VIEWER,
    Tag::Upgrades,
    "list-enrolments",
    "List the approvals, withdrawals, removals and deferrals of hosts, and who had which node uncordoned, newest first",
)
.query::<FactList>()
.answers(&[Answer::json(
    "a page of the list",
    Shape::of::<EnrolmentList>(),
    || json!({"items": [enrolment()]}),
)]);

/// A key, for examples.
const KEY: &str = "nHaF0Wj3lDqkJ8y7o3oZb0pYc2mT5kXvR1sUeQwGzB4";

fn host() -> Value {
    json!({
        "hostname": "h01",
        "applications": ["os-upgrade-debian"],
        "labels": {"rack": "r1"},
        "boot-id": "5e1f6c1e-0b36-4a4e-9a3f-0f5d3c1b7f53",
        "reboot-required": "/run/reboot-required was created by linux-image-6.12.43-amd64",
        "reboot-queue": {"index": "7", "status": "queued"},
        "reboots-on-request": true,
        "group": "default",
        "reachability": "reachable",
        "enrolment": "approved",
        "decided-by": "anna",
        "decided-at": "2026-11-20T12:00:00Z",
        "key": {"status": "pinned", "approved": KEY, "approved-by": "anna", "approved-at": "2026-11-20T12:00:00Z", "announced": KEY, "application": "os-upgrade-debian"},
        "configurations": [{"provider": "app", "state": "applied", "since": "2026-11-20T12:00:07Z"}],
        "announced-at": "2026-11-20T11:58:00Z",
        "last-upgraded-at": "2026-10-24T01:07:12Z",
        "last-result": {"run": "019aa3f0-0000-7000-8000-000000000001", "status": "upgraded"},
        "versions": {"linux-image-amd64": "6.12.43"},
        "versions-time": "2026-11-20T12:00:00Z",
        "status": "preparing",
        "since": "2026-11-21T01:00:01Z",
        "why": {
            "kind": "reply-awaited",
            "action": "prepare",
            "text": "its worker has not answered prepare yet",
            "until": "2026-11-21T05:00:00Z",
        },
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
    /// The maximum number of entries; the default is all.
    #[param(minimum = 1, maximum = 500)]
    #[serde(default, deserialize_with = "query::page")]
    pub limit: Option<u32>,
    /// The `next` of the previous page: return entries whose names come after this one.
    pub after: Option<String>,
    /// Return only announced hosts that wait for approval.
    #[param(inline)]
    pub pending: Option<True>,
    /// Return only the keys of the entries.
    #[param(inline)]
    pub keys: Option<True>,
    /// Return only the number of entries. Takes precedence over `keys`.
    #[param(inline)]
    pub count: Option<True>,
}

impl Parameters for ListParameters {
    const NAMES: &'static [&'static str] = &["limit", "after", "pending", "keys", "count"];
}

impl ListParameters {
    /// Whether to list only hosts that wait for approval, and the parameters of a list by name.
    pub fn split(self) -> (bool, NameList) {
        let Self { limit, after, pending, keys, count } = self;
        (pending.is_some(), NameList { limit, after, keys, count })
    }
}

list! {
    /// The hosts, by name, or a page of them; or their names; or their number.
    HostList = whole of Host<'static>, or NameText
}

list! {
    /// A page of what operators decided about hosts, newest first; or of its keys; or their number.
    EnrolmentList = page of Fact<'static>, or FactKeyText
}

/// Hosts to approve.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostsToApprove {
    /// The names of the hosts, which need not be announced yet.
    #[schema(value_type = Vec<NameText>, min_items = 1, max_items = 1000)]
    pub hosts: Vec<HostName>,
    /// The keys that some of them announce, as they were seen: configuration for these hosts is sealed to them. Nothing is approved if one has
    /// changed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = HashMap<String, HostKeyText>, required = false)]
    pub keys: BTreeMap<HostName, HostKey>,
    /// The machines that some of them announce, as they were seen: these hosts may run units. Nothing is approved if one has changed, or has the
    /// id of another host's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = HashMap<String, AnnouncedMachine<'static>>, required = false)]
    pub machines: BTreeMap<HostName, MachineOffer>,
}

/// A host that is to be deferred.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostToDefer {
    #[schema(value_type = NameText)]
    pub host: HostName,
    /// Why, for the history.
    #[schema(value_type = AuditReasonText)]
    pub reason: String,
    /// When that ends by itself, in the future; absent: when somebody ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Stamp>,
}

/// A host whose deferral is to end.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeferralToEnd {
    #[schema(value_type = NameText)]
    pub host: HostName,
    /// Why, for the history.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<AuditReasonText>)]
    pub reason: Option<String>,
}

/// That a host begins nothing for now.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Deferred<'a> {
    /// Who deferred it.
    pub actor: Cow<'a, str>,
    pub reason: Cow<'a, str>,
    pub since: Stamp,
    /// When that ends by itself; absent if it lasts until an operator ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Stamp>,
}

/// How a host ended in a run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct LastResult<'a> {
    #[schema(value_type = RunIdText)]
    pub run: Cow<'a, str>,
    #[schema(value_type = HostStatusWord)]
    pub status: Word<HostStatus>,
    /// Why it did not succeed; absent if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// What its worker answered after its part in the run had ended; absent if it answered nothing.
    #[serde(rename = "late-answer", skip_serializing_if = "Option::is_none")]
    pub late_answer: Option<LateAnswer>,
    /// In how many runs it was not reached, one after the other, up to this one; absent if it was. Runs that an operator took it out of
    /// do not count.
    #[serde(default, rename = "not-reached", skip_serializing_if = "is_none_of_them")]
    #[schema(required = false)]
    pub not_reached: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
const fn is_none_of_them(count: &u32) -> bool {
    *count == 0
}

/// An entry of the reboot queue.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct InQueue {
    #[schema(value_type = EntryIndexText)]
    pub index: EntryIndex,
    #[schema(value_type = EntryStatusWord)]
    pub status: Word<EntryStatus>,
}

/// The slot of a host.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HostSlot<'a> {
    /// The lock group.
    pub group: Cow<'a, str>,
    /// When it was granted, or requested if it has not been granted.
    pub since: Stamp,
    /// The run that took it; absent if the reboot queue did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RunIdText>)]
    pub run: Option<Cow<'a, str>>,
    /// The entry of the reboot queue for which it was taken; absent if a run took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<EntryIndexText>)]
    pub entry: Option<EntryIndex>,
    /// Whether the host keeps it though nothing is under way there, because it failed or was given up; absent if it does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub kept: bool,
    /// Whether a late answer of its worker gives it back; absent if the host was not told anything by a command to its worker.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub awaits_worker: bool,
}

/// The key of a host, to which configuration for it is sealed: X25519, 32 bytes in base64url.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct KeyOfHost<'a> {
    #[schema(value_type = KeyStateWord)]
    pub status: Word<KeyState>,
    /// The approved one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HostKeyText>)]
    pub approved: Option<HostKey>,
    /// Who approved it; absent if it was the first one of a host that is approved automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<Stamp>,
    /// The one that it announces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HostKeyText>)]
    pub announced: Option<HostKey>,
    /// The application that announces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<Cow<'a, str>>,
    /// Other applications of the host that announce one, which does not count: one of a host takes configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub refused_applications: Vec<Cow<'a, str>>,
}

/// A host in the list.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Host<'a> {
    pub hostname: Cow<'a, str>,
    /// Whether no worker has announced itself on it: it is known as a node of the Kubernetes cluster, by its slot or its entry in the
    /// reboot queue, or by what operators decided; absent if a worker has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub without_worker: bool,
    /// The applications whose workers are announced on it.
    pub applications: Vec<Cow<'a, str>>,
    /// Applications announced on it that do not count, because there are too many; the first ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused_applications: Vec<Cow<'a, str>>,
    /// The labels that its workers announce; the first 64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = HashMap<String, String>)]
    pub labels: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// The boot id that it announces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<Cow<'a, str>>,
    /// Why it needs a reboot, as its worker says; absent if it needs none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reboot_required: Option<Cow<'a, str>>,
    /// What a reboot should have brought and did not, such as a kernel, as its worker says; absent if it brought everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reboot_ineffective: Option<Cow<'a, str>>,
    /// Its first entry in the reboot queue; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reboot_queue: Option<InQueue>,
    /// Whether each of its workers reboots it on request, as the reboot queue does; absent if one does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub reboots_on_request: bool,
    /// The lock group whose slot it needs.
    pub group: Cow<'a, str>,
    /// Its slot; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<HostSlot<'a>>,
    #[schema(value_type = ReachabilityWord)]
    pub reachability: Cow<'static, str>,
    /// When it was found to be unreachable; absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable_since: Option<Stamp>,
    /// When its last heartbeat, announcement or reply arrived; absent if it is not unreachable, or if none has arrived since this
    /// instance started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_heard_at: Option<Stamp>,
    /// Whether it takes part in runs.
    #[schema(value_type = EnrolmentWord)]
    pub enrolment: Word<Enrolment>,
    /// Who approved or withdrew it; absent if nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<Cow<'a, str>>,
    /// When it was approved or withdrawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Stamp>,
    /// That it begins nothing for now; absent if it may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferred: Option<Deferred<'a>>,
    /// Its key; absent if it takes no configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyOfHost<'a>>,
    /// The providers of configuration that select it, and how far what each gave is there; then what is left over of others. Absent if there is
    /// nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub configurations: Vec<HostConfiguration<'a>>,
    /// When the bus stored the last announcement of a worker on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announced_at: Option<Stamp>,
    /// When a run last upgraded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_upgraded_at: Option<Stamp>,
    /// How it ended in the last run in which it took part and that is over; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_result: Option<LastResult<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HashMap<String, String>>)]
    pub versions: Option<Cow<'a, Versions>>,
    /// When the bus stored these versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions_time: Option<Stamp>,
    /// Its status in the active run; absent if it takes no part.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HostStatusWord>)]
    pub status: Option<Word<HostStatus>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Stamp>,
    /// Why it is not moving, what is decisive; absent if nothing keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// Why else it is not moving.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub also: Vec<Why>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress<'a>>,
    /// The name of its Kubernetes node; absent if the cluster has shown none of late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_node: Option<Cow<'a, str>>,
    /// The state of its Kubernetes node while that stays cordoned, or is being drained or uncordoned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<HostNode<'a>>,
}
