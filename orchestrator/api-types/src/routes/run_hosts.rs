//! `/v1/state/os-upgrade/runs/{id}/hosts/{hostname}`: what happened to a host in a run. An extension of the specification.

use std::borrow::Cow;

use os_upgrade_kernel::HostStatus;
use os_upgrade_protocol::Versions;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::body::{LateAnswer, Stamp};
use crate::route::{Answer, Method, PathName, Route, Shape, Tag, VIEWER};
use crate::routes::runs::HostOfRunInFull;
use crate::text::{HostStatusWord, RunIdText};
use crate::word::Word;

/// A host of a run with its phases; 404 if there is no such run, or the host is not in it.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/runs/{id}/hosts/{hostname}",
    VIEWER,
    Tag::Upgrades,
    "read-host-of-run",
    "Read what happened to a host in a run: its phases, and answers that came too late",
)
.names(&[
    PathName::new("id", "the id of a run", Shape::of::<RunIdText>(), None),
    PathName::new("hostname", "the name of a host", Shape::inline::<String>(), Some("h01")),
])
.answers(&[
    Answer::json("the host in the run", Shape::of::<HostReport<'static>>(), || {
        json!({
            "hostname": "h01",
            "application": "os-upgrade-debian",
            "group": "default",
            "status": "timed-out",
            "since": "2026-11-21T01:30:04Z",
            "why": {
                "kind": "boot-timeout",
                "after": "30m",
                "text": "the host did not come back within 30m after its reboot",
            },
            "start-time": "2026-11-21T01:00:03Z",
            "end-time": "2026-11-21T01:30:04Z",
            "command": {"action": "reboot", "sequence": 9},
            "phases": [
                {"status": "pending", "start-time": "2026-11-21T01:00:00Z", "end-time": "2026-11-21T01:00:01Z", "seconds": 1},
                {
                    "status": "preparing",
                    "start-time": "2026-11-21T01:00:01Z",
                    "end-time": "2026-11-21T01:00:03Z",
                    "seconds": 2,
                    "attempts": 1,
                },
            ],
            "late-answers": [{"time": "2026-11-21T01:42:10Z", "action": "reboot", "result": "done"}],
            "versions-before": {"linux-image-amd64": "6.1.140"},
            "versions-after": {"linux-image-amd64": "6.12.43"},
        })
    }),
    Answer::new(404, "there is no such run, or the host is not in it"),
]);

/// What happened to a host in a run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HostReport<'a> {
    #[serde(flatten)]
    pub host: HostOfRunInFull<'a>,
    /// The statuses that the host went through, in order, but for the last if that is final.
    pub phases: Vec<HostPhase>,
    /// Answers of its worker that came after its part in the run had ended, or that answered nothing; of each minute the
    /// first.
    pub late_answers: Vec<LateAnswer>,
    /// The versions that it had published before its upgrade began; absent if none are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HashMap<String, String>>)]
    pub versions_before: Option<Cow<'a, Versions>>,
    /// The versions that it published last after its upgrade began, before the next run started; absent if it published
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<HashMap<String, String>>)]
    pub versions_after: Option<Cow<'a, Versions>>,
    /// Why it is not known now which versions it has published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versions_unavailable: Option<String>,
}

/// A time that a host of a run was in one status.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HostPhase {
    #[schema(value_type = HostStatusWord)]
    pub status: Word<HostStatus>,
    pub start_time: Stamp,
    /// Absent while it lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<Stamp>,
    /// How long it lasted, in whole seconds; absent while it lasts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// How many times its command was sent; absent if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}
