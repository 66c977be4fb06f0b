//! `/v1/state/os-upgrade/hosts/{hostname}/drain-preview`: what the drain of a host's Kubernetes node would do. An extension of the
//! specification.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::node::WaitingPod;
use crate::route::{Answer, Method, OPERATOR, PathName, Route, Shape, Tag};

/// Nothing is changed: the API server of the cluster is asked to evict each pod in a dry run.
pub const PREVIEW: Route = Route::new(
    Method::Get,
    "/v1/state/os-upgrade/hosts/{hostname}/drain-preview",
    OPERATOR,
    Tag::Upgrades,
    "preview-drain",
    "Read what the drain of a host's Kubernetes node would do, without draining it",
)
.names(&[PathName::new("hostname", "the name of a host", Shape::inline::<String>(), Some("h01"))])
.answers(&[
    Answer::json("what would become of the pods", Shape::of::<Preview<'static>>(), || {
        json!({
            "evicted": [
                {"namespace": "shop", "name": "web-7c9f", "owner": "ReplicaSet/web", "empty-dir": true},
                {"namespace": "shop", "name": "shell", "bare": true},
            ],
            "deleted": [],
            "awaited": [],
            "blocked": [{
                "namespace": "shop",
                "name": "db-0",
                "owner": "StatefulSet/db",
                "obstacle": "budget",
                "text": "is kept by the budget db",
                "since": "2026-11-21T01:00:00Z",
            }],
            "own": [],
        })
    }),
    Answer::new(404, "there is no such host, or it is not a node of a cluster"),
]);

/// What a drain would do. Pods of daemon sets and static pods stay, and are not named.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = DrainPreview)]
pub struct Preview<'a> {
    /// The pods that would be evicted. Each is judged on its own: a budget may allow each of several evictions, and not all of them.
    pub evicted: Vec<PodName<'a>>,
    /// The pods that would be deleted, because a budget refuses their eviction and their namespace is not protected.
    pub deleted: Vec<PodName<'a>>,
    /// The pods that are terminating, whose end would be waited for.
    pub awaited: Vec<PodName<'a>>,
    /// The pods that would keep the node from being drained as things are.
    pub blocked: Vec<WaitingPod<'a>>,
    /// The pods of the orchestrator itself, which stay.
    pub own: Vec<PodName<'a>>,
}

/// A pod by its name.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PodName<'a> {
    pub namespace: Cow<'a, str>,
    pub name: Cow<'a, str>,
    /// Its controller, as in `StatefulSet/db`; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Cow<'a, str>>,
    /// Whether no controller replaces it; absent if one does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub bare: bool,
    /// Whether it has data in an `emptyDir`, which end with it; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub empty_dir: bool,
}
