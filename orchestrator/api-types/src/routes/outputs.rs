//! `/v1/state/os-upgrade/runs/{id}/hosts/{hostname}/output`: what a host's commands printed in a run. An extension of the
//! specification.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::body::Stamp;
use crate::route::{Answer, Method, OPERATOR, PathName, Route, Shape, Tag};
use crate::text::{ActionWord, RunIdText};

/// The last lines of what the commands printed, oldest command first; 404 with the reason if there are none.
pub const READ: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/runs/{id}/hosts/{hostname}/output",
    OPERATOR,
    Tag::Upgrades,
    "read-output",
    "Read what the commands of a run printed on a host",
)
.names(&[
    PathName::new("id", "the id of a run", Shape::of::<RunIdText>(), None),
    PathName::new("hostname", "the name of a host", Shape::inline::<String>(), Some("h01")),
])
.answers(&[
    Answer::json("what the commands printed", Shape::of::<Outputs>(), || {
        json!({"items": [{
            "action": "upgrade",
            "attempt": 1,
            "time": "2026-11-21T01:24:06Z",
            "text": "$ apt-get dist-upgrade\nUnpacking linux-image-amd64 ...\nE: no space left on device\n",
        }]})
    }),
    Answer::new(404, "there is no such output: none was sent, or newer output has taken its place"),
]);

/// What the commands of a run printed on a host, oldest first; up to three of a host's last commands are kept.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Outputs {
    /// One entry for each command.
    pub items: Vec<OutputOfCommand>,
}

/// What a command printed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct OutputOfCommand {
    /// The action of the command.
    #[schema(value_type = ActionWord)]
    pub action: Cow<'static, str>,
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// When it was stored, just before the host's reply.
    pub time: Stamp,
    /// The last lines: at most 200, and 64 KiB. Escape sequences are left out, and control characters replaced by U+FFFD.
    pub text: String,
}
